"""A simulated GPU: tensors that report `cuda` or `mps` as their device but compute on the CPU, with real numbers.

To Python it is a separate device. It refuses what a real one would: an operation on tensors of two devices, a generator
of the wrong device, float64 on MPS. It records whatever would make the host wait for it. A tensor made on the CPU and
mixed with the card's is therefore found here, on a machine without a GPU.
"""

import contextlib
import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from engine.training import step

ATEN = torch.ops.aten
# Tags of operations that read a value or a shape that only the card knows.
WAITS = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
BY_INDEX = ("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index")


def leaves_of(args: Any, kwargs: Any) -> Iterator[Any]:
    """What an operation is given: nothing but tensors, numbers and lists of them, so torch's trees, which take most of
    the time where everything is tiny, are not needed.
    """
    for x in (*args, *(kwargs or {}).values()):
        if isinstance(x, (list, tuple)):
            yield from x
        else:
            yield x


def mapped(do: Callable[[Any], Any], x: Any) -> Any:
    return type(x)(map(do, x)) if isinstance(x, (list, tuple)) else do(x)


@functools.cache
def about(func: Any) -> tuple[str, bool]:
    """An operation's name, and whether its result can only be known by the card."""
    return func._schema.name.removeprefix("aten::"), any(tag in func.tags for tag in WAITS)


class WrongDevice(RuntimeError):
    """What a real card would refuse."""


class OnCard(Tensor):
    """A tensor of the card: `inner` has its numbers."""

    inner: Tensor
    card: "FakeCard"

    @staticmethod
    def __new__(cls, inner: Tensor, card: "FakeCard") -> "OnCard":
        made: OnCard = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, inner.shape, strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype
        )
        made.inner, made.card = inner, card
        return made

    def __repr__(self) -> str:
        return f"OnCard({tuple(self.shape)}, {self.dtype})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        card = next(x.card for x in leaves_of(args, kwargs) if isinstance(x, OnCard))
        return card.compute(func, args, kwargs or {})

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return self.card.device

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        return self.card.device.type == "cuda"

    @property
    def is_cpu(self) -> bool:  # type: ignore[override]
        return False


def data_of(tensor: Tensor) -> OnCard:
    """The tensor, known to be on the card; parameters are too."""
    assert isinstance(tensor, OnCard)
    return tensor


class FakeCard(TorchFunctionMode):
    """While active, its device can be used wherever torch takes one.

    Args:
        kind: `cuda` or `mps`.
    """

    def __init__(self, kind: str = "cuda", index: int = 0) -> None:
        super().__init__()
        self.device = torch.device(kind, index)
        self.waits: list[str] = []
        """Every place where the host waited for the card, in order."""
        self.moved: Counter[str] = Counter()
        """Copies to the card that the host did not wait for."""
        self.seeds: list[int] = []
        """What the card's own generator was seeded with."""
        self.became_current: list[torch.device] = []
        """The devices that were made a thread's current one."""
        self.deterministic: list[bool] = []
        """What torch was told about deterministic algorithms."""

    # What operations do

    def compute(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        name, waits = about(func)
        leaves = list(leaves_of(args, kwargs))
        if func in (ATEN.detach.default, ATEN.alias.default) and len(leaves) == 1:
            return OnCard(func(leaves[0].inner), self)
        if name not in BY_INDEX and waits:
            self.wait(name)
        if name in BY_INDEX and any(isinstance(x, Tensor) and x.dtype in (torch.bool, torch.uint8) for x in args[1]):
            self.wait(f"{name} by a mask, whose result has a shape that only the card knows")
        if name == "copy_":
            self._copied(args)
        elif name != "_to_copy":  # a copy between devices goes through `_to`
            self._same_device(name, leaves)
        if kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": torch.device("cpu")}
        inner = (mapped(self._inner, x) for x in args)
        out = func(*inner, **{key: mapped(self._inner, x) for key, x in kwargs.items()})
        if name == "copy_" and not isinstance(args[0], OnCard):
            return args[0]
        if name.endswith("_") and isinstance(args[0], OnCard):
            return args[0]  # in place
        return mapped(lambda x: self.on(x) if isinstance(x, Tensor) else x, out)

    def on(self, inner: Tensor) -> OnCard:
        """A tensor of the card with these numbers."""
        if self.device.type == "mps" and inner.dtype in (torch.float64, torch.complex128):
            raise WrongDevice("MPS has no float64")
        return OnCard(inner, self)

    def wait(self, what: str) -> None:
        frame: FrameType | None = sys._getframe()
        where = ""
        while frame is not None and not where:
            file = frame.f_code.co_filename
            if "/engine/" in file and "/tests/" not in file:
                where = f" at {file.partition('/engine/')[2]}:{frame.f_lineno}"
            frame = frame.f_back
        self.waits.append(what + where)

    @staticmethod
    def _inner(x: Any) -> Any:
        return x.inner if isinstance(x, OnCard) else x

    def _same_device(self, name: str, leaves: list[Any]) -> None:
        for x in leaves:
            if isinstance(x, torch.Generator) and x.device.type != self.device.type:
                raise WrongDevice(f"{name} on {self.device} with a generator of {x.device}")
            if isinstance(x, Tensor) and not isinstance(x, OnCard):
                if name in BY_INDEX and (x.dim() == 0 or x.dtype == torch.int64):
                    self.wait(f"{name} with positions or a number that are on the CPU")
                    continue
                if x.dim() == 0:  # torch takes single numbers from anywhere
                    continue
                raise WrongDevice(f"{name} of tensors on {self.device} and on {x.device}: {tuple(x.shape)}")

    def _copied(self, args: Any) -> None:
        to, what = args[:2]
        if not isinstance(to, OnCard):
            self.wait("copy to the CPU")
        elif not isinstance(what, OnCard):
            self.sent(what, non_blocking=len(args) > 2 and args[2])

    def sent(self, what: Tensor, *, non_blocking: bool) -> None:
        """A copy from the host: it waits unless the memory is pinned and the copy is non-blocking."""
        if non_blocking and getattr(what, "_pinned", False):
            self.moved["pinned"] += 1
        else:
            self.wait("copy to the card from memory that is not pinned, or without non_blocking")

    # Where Python names the device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if isinstance(func, type(Tensor.device.__get__)):  # a property of a tensor
            return func(*args, **kwargs)
        first = args[0] if args else None
        if name in ("cpu", "numpy", "tolist", "__array__") and isinstance(first, OnCard):
            if name == "numpy" or name == "__array__":
                raise WrongDevice("can't convert a tensor of a card to numpy")
            self.wait(name)
            data = first.detach().inner.clone()
            return data if name == "cpu" else data.tolist()
        if name == "new_tensor" and isinstance(first, OnCard):
            return self._made(torch.tensor, "tensor", args[1:], {"dtype": first.dtype, **kwargs, "device": self.device})
        if name == "pin_memory" and not isinstance(first, OnCard):
            pinned = first.clone()
            pinned._pinned = True
            return pinned
        if name == "is_pinned":
            return getattr(first, "_pinned", False)
        if name in ("to", "_to") and first is not None:
            return self._to(func, args, kwargs)
        if name == "cuda":
            return self._to(Tensor.to, (first, self.device), {})
        if name == "scaled_dot_product_attention" and kwargs.get("is_causal"):  # torch would make its mask on the CPU
            q, k = args[:2]
            causal = self.on(torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril())
            kwargs = {**kwargs, "is_causal": False, "attn_mask": causal}
        if self._is(kwargs.get("device")):
            return self._made(func, name, args, kwargs)
        return func(*args, **kwargs)

    def _is(self, device: Any) -> bool:
        return device is not None and torch.device(device).type == self.device.type

    def _made(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """What is created on the card."""
        generator = kwargs.get("generator")
        if generator is not None and generator.device.type != self.device.type:
            raise WrongDevice(f"{name} on {self.device} with a generator of {generator.device}")
        kwargs = {**kwargs, "device": torch.device("cpu")}
        if name == "as_tensor" and isinstance(args[0], OnCard):
            return args[0]
        if name in ("tensor", "as_tensor"):
            made = func(*args, **kwargs)
            self.sent(made, non_blocking=False)
            return self.on(made)
        if args and isinstance(args[0], OnCard):  # zeros_like and the like
            return func(*args, **{k: v for k, v in kwargs.items() if k != "device"})
        if isinstance(args[0] if args else None, Tensor) and args[0].device.type == "meta" and name == "empty_like":
            made = torch.empty(args[0].shape, dtype=args[0].dtype, device="cpu")
        else:
            made = func(*args, **kwargs)
        wanted = made.requires_grad
        return self.on(made.detach()).requires_grad_(wanted)

    def _to(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        first, rest = args[0], list(args[1:])
        device = kwargs.get("device")
        for i, x in enumerate(rest):
            if isinstance(x, Tensor):
                rest[i : i + 1], device = [x.dtype], x.device
                break
            if isinstance(x, str | torch.device):
                device = torch.device(rest.pop(i))
                break
        kwargs = {k: v for k, v in kwargs.items() if k != "device"}
        if device is None:
            return func(first, *rest, **kwargs)
        device = torch.device(device)
        dtype = kwargs.get("dtype", next((x for x in rest if isinstance(x, torch.dtype)), None))
        here, there = isinstance(first, OnCard), device.type == self.device.type
        if here == there:
            return first if dtype is None else first.to(dtype)
        flags = [x for x in rest if isinstance(x, bool)]
        non_blocking = kwargs.get("non_blocking", flags[0] if flags else False)
        if there:
            self.sent(first, non_blocking=non_blocking)
            return self.on(first.detach() if dtype is None else first.detach().to(dtype))
        self.wait("copy to the CPU")
        data = first.detach().inner.clone()
        return data if dtype is None else data.to(dtype)


@contextlib.contextmanager
def fake_card(kind: str = "cuda", index: int = 0) -> Iterator[FakeCard]:
    """A simulated card for the duration of the block: torch functions that would query a real one are replaced."""
    card = FakeCard(kind, index)
    autocast, fork_rng = torch.autocast, torch.random.fork_rng

    def seeded(seed: int) -> None:
        card.seeds.append(seed)
        torch.default_generator.manual_seed(seed)

    by_kind = torch._C._group_tensors_by_device_and_dtype

    def grouped(lists: Any, with_indices: bool = False) -> Any:  # torch asks the C++ tensor, which is the CPU's
        on_card = any(isinstance(x, OnCard) for x in lists[0])
        return {(card.device if on_card else kind[0], kind[1]): of for kind, of in by_kind(lists, with_indices).items()}

    class Generators:
        def __getitem__(self, i: int) -> Any:
            if i != index:
                raise WrongDevice(f"seeded the generator of card {i}, not of {index}")
            return mock.Mock(manual_seed=seeded)

    replaced: list[tuple[Any, str, Any]] = [
        (torch, "autocast", lambda kind, **settings: autocast("cpu", **settings)),
        (
            torch,
            "inference_mode",
            lambda mode=True: torch.set_grad_enabled(not mode),
        ),  # torch refuses inference views of Python tensors
        (torch.random, "fork_rng", lambda devices=(), **_: fork_rng([])),
        (torch._C, "_group_tensors_by_device_and_dtype", grouped),
        (torch.cuda, "manual_seed", lambda seed: None if index else seeded(seed)),  # of the current card, the first
        (torch.cuda, "default_generators", Generators()),
        (torch.cuda, "is_bf16_supported", lambda including_emulation=True: True),
        (torch.cuda, "device", lambda device: contextlib.nullcontext()),
        (torch.cuda, "set_device", card.became_current.append),
        (torch.cuda, "empty_cache", lambda: None),
        (torch, "use_deterministic_algorithms", card.deterministic.append),
        (step, "RecordedPass", Rerun),
        (step, "RecordedUpdate", RerunUpdate),
        (torch.cuda, "memory_allocated", lambda device=None: 0),
        (torch.mps, "manual_seed", seeded),
    ]
    with contextlib.ExitStack() as stack:
        for where, name, what in replaced:
            stack.enter_context(mock.patch.object(where, name, what))
        stack.enter_context(card)
        yield card


class Rerun:
    """A recorded pass, computed again each time."""

    def __init__(self, work: Any, piece: Any, parameters: Any) -> None:
        self.work, self.parameters, self.shape = work, parameters, piece.tokens.shape
        self.update: RerunUpdate | None = None

    def replay(self, piece: Any) -> tuple[Tensor, list[Tensor | None]]:
        assert piece.tokens.shape == self.shape
        assert all(parameter.grad is None for parameter in self.parameters)
        loss, grads = self.work(piece), [parameter.grad for parameter in self.parameters]
        for parameter in self.parameters:
            parameter.grad = None
        return loss, grads


class RerunUpdate:
    """A recorded update, made again each time."""

    def __init__(self, work: Any, optimizer: torch.optim.Optimizer) -> None:
        self.work = work

    def replay(self) -> Tensor:
        norm: Tensor = self.work()
        return norm


class OneDevice(TorchDispatchMode):
    """Refuses each operation that reads or makes a tensor on another device: torch's own meta kernels do not.

    Args:
        device: the only one; single numbers, which torch takes from anywhere, may be on the CPU, and empty tensors.
    """

    def __init__(self, device: str = "meta") -> None:
        super().__init__()
        self.kind = device

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for x in leaves_of((*args, out), kwargs):
            if isinstance(x, Tensor) and x.device.type != self.kind and x.dim() and x.numel():
                raise WrongDevice(f"{func._schema.name} has a tensor on {x.device}: {tuple(x.shape)}")
            if isinstance(x, torch.Generator) and x.device.type != self.kind:
                raise WrongDevice(f"{func._schema.name} has a generator of {x.device}")
        return out
