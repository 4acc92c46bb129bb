"""What is timed: each case makes contenders of one config on one device."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.benchmark.limit import products_per_second
from engine.benchmark.measure import Contender, Speed, interleaved
from engine.benchmark.peers import peer, training_step
from engine.config.schema import RunConfig
from engine.data.loader import TextBatches, training_batches
from engine.data.objectives import make_objective
from engine.model.attention import softmax_attention
from engine.model.linear_attention import linear_attention
from engine.model.positions import PositionScheme
from engine.model.span import Span
from engine.model.transformer import build_model
from engine.model.visibility import Visibility
from engine.training.devices import keep_memory
from engine.training.numerics import set_fp32_matmul
from engine.training.step import Stepper

VOCABULARY = 65
OURS = "tui-transformer"
# Name of a precision here → (train.precision, train.fp32_matmul).
PRECISIONS = {"fp32": ("fp32", "exact"), "fp32-fast": ("fp32", "fast"), "bf16": ("bf16", "exact")}


@dataclass(frozen=True)
class Measured:
    """One case's result.

    Args:
        case: e.g. "training".
        setting: precision or length.
        unit: of the speeds.
        speeds: one a contender, ours first.
        limit: units a second that the machine's matrix products alone would allow, where that is known.
    """

    case: str
    setting: str
    unit: str
    speeds: Sequence[Speed]
    limit: float | None = None


@dataclass(frozen=True)
class Effort:
    """How much time a benchmark takes.

    Args:
        rounds: turns of each contender.
        seconds: the least that one turn takes.
        said: told what is being timed.
    """

    rounds: int
    seconds: float
    said: Callable[[str], None] = lambda _: None


def _batches(config: RunConfig, device: torch.device) -> TextBatches:
    tokens = torch.randint(VOCABULARY, (1_000_000,), generator=torch.Generator().manual_seed(0))
    return training_batches(tokens, config, make_objective(config, VOCABULARY), device)


def _resolved(config: RunConfig, precision: str, threads: int) -> RunConfig:
    data = config.dump()
    data["train"]["precision"], data["train"]["fp32_matmul"] = PRECISIONS[precision]
    data["train"]["threads"] = threads
    model = RunConfig.model_validate(data)
    return model.resolved(vocab_size=VOCABULARY, threads=threads, train_tokens=1_000_000)


def training(
    config: RunConfig, precision: str, against: Sequence[str], device: torch.device, threads: int, effort: Effort
) -> Measured:
    """Tokens a second of whole optimizer steps: ours as a run takes them, peers' in a bare loop.

    Every contender has the same process settings: threads, matrix-product rounding, allocator.
    """
    torch.set_num_threads(threads)
    keep_memory()
    config = _resolved(config, precision, threads)
    set_fp32_matmul(config.train.fp32_matmul)
    batches = _batches(config, device)
    stepper = Stepper(config, build_model(config.model, VOCABULARY, config.seed, device), batches)
    taken = 0

    def ours() -> int:
        nonlocal taken
        taken += 1
        return stepper.take(taken).n_targets

    contenders = [Contender(OURS, ours)]
    for name in against:
        network = peer(name, config, VOCABULARY, device)
        contenders.append(Contender(name, training_step(network, config, batches, config.train.precision, device)))
    effort.said("the limit of matrix products")
    limit = products_per_second(config, VOCABULARY, config.train.precision, device)
    speeds = interleaved(contenders, rounds=effort.rounds, seconds=effort.seconds, device=device, said=effort.said)
    set_fp32_matmul("exact")
    return Measured("training", precision, "tokens/s", speeds, limit)


def attention(length: int, device: torch.device, threads: int, effort: Effort) -> Measured:
    """Forward and backward of one attention, 4 heads of 64, batch 1: full (torch's kernel), window 16, linear."""
    torch.set_num_threads(threads)
    keep_memory()
    at, nothing = Span.run(length, 0, device), PositionScheme()
    q, k, v = (torch.randn(1, 4, length, 64, device=device, requires_grad=True) for _ in range(3))

    def softmax(see: Visibility, backend: str) -> Callable[[], Tensor]:
        return lambda: softmax_attention(q, k, v, at, at, see, nothing, backend=backend)

    window = Visibility(True, 16)
    kinds: dict[str, Callable[[], Tensor]] = {
        "full": softmax(Visibility(True), "sdpa"),
        "window 16": softmax(window, "banded"),
        "window 16, dense mask": softmax(window, "sdpa"),
        "linear": lambda: linear_attention(q, k, v, at, nothing, causal=True),
    }

    def step(compute: Callable[[], Tensor]) -> Callable[[], int]:
        def work() -> int:
            torch.autograd.backward(compute().sum())
            return length

        return work

    contenders = [Contender(name, step(compute)) for name, compute in kinds.items()]
    speeds = interleaved(contenders, rounds=effort.rounds, seconds=effort.seconds, device=device, said=effort.said)
    return Measured("attention", f"T = {length:,}", "tokens/s", speeds)
