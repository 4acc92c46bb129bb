"""Code that only runs on CUDA, with the GPU's answers mocked: the paths work before anyone tries them on a GPU."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from engine.config import presets
from engine.model import numerics
from engine.proofs.bench import measure
from engine.proofs.device import memory, resuming, speed
from engine.proofs.device.proof import Context
from engine.proofs.device.prove import device_facts
from engine.training import step
from tests.fake_card import Rerun


@pytest.fixture
def here(tmp_path, monkeypatch) -> Context:
    """A context that treats the CPU as a CUDA device."""
    monkeypatch.setattr(Context, "on_cuda", property(lambda context: True))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)
    return Context("cpu", tmp_path)


@pytest.fixture
def small_demo(monkeypatch) -> None:
    """What is timed and compared is the demo in miniature."""
    real = presets.resolve
    monkeypatch.setattr(presets, "resolve", lambda preset: real(preset).miniature())


def test_a_wait_is_an_error_only_while_steps_are_checked(here, small_demo, monkeypatch) -> None:
    modes: list[Any] = []
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    real, taken = speed.Stepper.step, []
    monkeypatch.setattr(
        speed.Stepper, "step", lambda stepper, step: (taken.append((step, len(modes))), real(stepper, step))[1]
    )
    assert speed.no_host_sync("fp32", here).status == "passed"
    schemes = len(speed.POSITIONS)
    assert modes == ["error", "default"] * schemes
    each = [[(1, 2 * i), (2, 2 * i), *((step, 2 * i + 1) for step in range(3, 9))] for i in range(schemes)]
    assert taken == [one for scheme in each for one in scheme]


def test_a_wait_fails_the_proof_and_the_mode_is_restored(here, monkeypatch) -> None:
    modes: list[Any] = []
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    real = speed.Stepper.step

    def waits(stepper: speed.Stepper, step: int) -> Any:
        if modes:
            raise RuntimeError("called a synchronizing CUDA operation")
        return real(stepper, step)

    monkeypatch.setattr(speed.Stepper, "step", waits)
    with pytest.raises(RuntimeError, match="synchronizing"):
        speed.no_host_sync("fp32", here)
    assert modes == ["error", "default"]


class Clock:
    """An event that says which of all events it is: a second passes from one to the next."""

    recorded = 0

    def __init__(self, *, enable_timing: bool) -> None:
        self.at = 0

    def record(self) -> None:
        Clock.recorded += 1
        self.at = Clock.recorded

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def elapsed_time(self, end: "Clock") -> float:
        return 1000.0 * (end.at - self.at)


class Products(TorchDispatchMode):
    """A graph that counts the products recorded in it, and how often they are replayed."""

    def __init__(self) -> None:
        super().__init__()
        self.recorded = self.replays = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.recorded += func is torch.ops.aten.mm.out
        return func(*args, **(kwargs or {}))

    def replay(self) -> None:
        self.replays += 1


def test_a_gpus_products_are_recorded_and_timed_by_its_own_clock(monkeypatch) -> None:
    graphs: list[Products] = []
    monkeypatch.setattr(torch.cuda, "Event", Clock)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: (graphs.append(Products()), graphs[-1])[1])
    monkeypatch.setattr(torch.cuda, "graph", lambda graph: graph)
    a, b = torch.randn(64, 64), torch.randn(64, 64)
    assert measure._cuda_matmul_seconds(a, b) == pytest.approx(1 / measure.PRODUCTS)
    assert measure._cuda_matmul_seconds(a.t(), b) == pytest.approx(1 / measure.PRODUCTS)
    assert [(graph.recorded, graph.replays) for graph in graphs] == [(measure.PRODUCTS, measure.REPEATS)] * 2


def test_on_a_gpu_the_memory_of_the_first_calls_counts(monkeypatch) -> None:
    """Later calls of recorded kernels allocate nothing, although they use memory."""
    calls = 0

    def work() -> int:
        nonlocal calls
        calls += 1
        return 1

    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 100 * calls)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: min(900, 100 + 400 * calls))
    (speed_,) = measure.time_interleaved({"ours": work}, rounds=1, seconds=0.0, device="cuda")
    assert speed_.peak_bytes == 900


def test_a_gpu_is_described(monkeypatch) -> None:
    card = SimpleNamespace(major=9, minor=0, total_memory=80 * 10**9, multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "H100")
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    facts = device_facts("cuda:0")
    assert (facts["device_name"], facts["capability"], facts["bf16"]) == ("cuda:0 H100", "9.0", True)
    assert "driver" in facts and facts["device_memory_bytes"] == 80 * 10**9


def test_a_kernel_that_fails_does_so_in_the_step_that_is_lost(tmp_path) -> None:
    """On a CPU the same index is an error at once; the run ends as it does when CUDA reports it."""
    state, reason, saved = resuming._train_until_failure(resuming.small_run(), tmp_path, "cpu", True)
    assert (state, saved) == ("failed", resuming.SAVED) and reason.startswith("IndexError")


@pytest.mark.slow
def test_a_step_that_needs_more_memory_than_the_device_has_is_cut_into_pieces(here, monkeypatch) -> None:
    fractions: list[float] = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 100)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 600)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=1000))
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda part, device: fractions.append(part))
    real = memory.assemble

    def small(*given: Any, **named: Any) -> Any:
        ready = real(*given, **named)

        def crowded(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
            if fractions and model.training and len(inputs[0]) > 32:
                raise torch.OutOfMemoryError("CUDA out of memory")

        ready.trainer.model.register_forward_pre_hook(crowded)
        return ready

    monkeypatch.setattr(memory, "assemble", small)
    result = memory.real_oom(here)
    assert result.status == "passed" and result.figures["pieces"] == 2
    assert fractions == [pytest.approx(0.4), 1.0]


def test_recorded_steps_are_compared_with_plain_ones(here, small_demo, monkeypatch) -> None:
    monkeypatch.setattr(step, "RecordedPass", Rerun)
    monkeypatch.setattr(numerics, "records_graphs", lambda config, device: True)
    monkeypatch.setattr(speed, "make_repeatable", lambda device: None)
    monkeypatch.setattr(speed, "SECONDS", 0.01)
    monkeypatch.setattr(speed, "ROUNDS", 1)
    monkeypatch.setattr(speed, "PARITY_STEPS", 2)
    assert speed.recorded_steps("fp32", here).status == "passed"

    class Wrong(Rerun):
        def replay(self, piece: Any) -> Any:
            loss, grads = super().replay(piece)
            return loss, [None if grad is None else grad * 1.001 for grad in grads]

    monkeypatch.setattr(step, "RecordedPass", Wrong)
    assert speed.recorded_steps("fp32", here).why == "recorded and plain steps differ"
    monkeypatch.setattr(numerics, "records_graphs", lambda config, device: False)
    assert speed.recorded_steps("fp32", here).why == "the steps could not be recorded"
