"""The proofs themselves, at their smallest and on the CPU: they pass, and fail where the code is wrong."""

from collections.abc import Callable

import pytest
import torch

from engine.config import presets
from engine.config.tasks import NextToken
from engine.data.objectives import Batch
from engine.model.positions import Positions
from engine.proofs.device import attention, memory, networks, resuming, speed
from engine.proofs.device.proof import Context
from engine.runs.verdict import CheckResult

pytestmark = pytest.mark.usefixtures("cached_checks", "cached_corpora", "minimal_leak_probe")


@pytest.fixture
def here(tmp_path) -> Context:
    return Context("cpu", tmp_path)


def test_every_preset_and_every_position_has_a_proof() -> None:
    names = [proof.name for proof in networks.preset_proofs()]
    assert names == [f"preset {preset.name}" for preset in presets.list_presets()]
    assert len(attention.attention_proofs()) == 8


@pytest.mark.parametrize("name", ["demo", "report-encoder", "copy"])
def test_a_preset_passes_whether_it_is_clean_or_made_to_leak(here, name: str) -> None:
    result = networks.miniature_preset(name, here, steps=2)
    assert result.status == "passed", result.why
    assert result.figures["first_loss_difference_fp32"] == 0.0


def test_a_cache_with_wrong_positions_fails_the_preset(here, monkeypatch) -> None:
    real = Positions.consecutive
    monkeypatch.setattr(
        Positions, "consecutive", classmethod(lambda cls, length, start=0, device=None: real(length, 0, device))
    )
    result = networks.miniature_preset("demo", here, steps=1)
    assert result.status == "failed" and "cached logits differ" in result.why


def test_an_unintended_leak_fails_the_preset(here, monkeypatch) -> None:
    monkeypatch.setattr(NextToken, "copy_leak", lambda self, config: None)
    result = networks.miniature_preset("report-encoder", here, steps=1)
    assert result.status == "failed" and "leak probe: LEAK instead of ok" in result.why


def test_a_first_loss_that_differs_from_the_cpus_fails_the_preset(here, monkeypatch) -> None:
    real = networks._first_step
    monkeypatch.setattr(
        networks, "_first_step", lambda *given: tuple(x * (1 + 1e-3 * (given[2] == "bf16") * 20) for x in real(*given))
    )
    result = networks.miniature_preset("demo", here, steps=1)
    assert result.status == "failed" and result.why.startswith("the first loss in bf16 is")


def test_every_attention_backend_is_compared_with_the_reference(here, monkeypatch) -> None:
    monkeypatch.setattr(attention, "TOKENS", 64)
    assert attention.compare_backends("rope", here).status == "passed"
    monkeypatch.setattr("engine.model.attention._sdpa_mask", lambda case: (None, False))
    result = attention.compare_backends("none", here)
    assert result.status == "failed" and "sdpa for global, causal" in result.why


def test_a_run_resumes_bit_for_bit_or_the_proof_fails(here, monkeypatch) -> None:
    assert resuming.resumed_run(False, "fp32", here).status == "passed"
    real = resuming.resume

    def inexact(*given, **named):
        ready = real(*given, **named)
        with torch.no_grad():
            ready.trainer.model.head.weight[0, 0] += 1e-6
        return ready

    monkeypatch.setattr(resuming, "resume", inexact)
    other = Context("cpu", here.folder / "again")
    other.folder.mkdir()
    result = resuming.resumed_run(False, "fp32", other)
    assert result.status == "failed" and "not bit-identical: metrics, weights, moments differ" in result.why


def test_two_runs_that_differ_fail_the_proof(here, monkeypatch) -> None:
    asked = iter(range(99))
    monkeypatch.setattr(resuming, "comparable_contents", lambda run: {"weights": bytes([next(asked)])})
    result = resuming.repeated_run("fp32", here)
    assert result.status == "failed" and result.why.startswith("not bit-identical: weights differ")


def test_a_checkpoint_crosses_devices_or_the_proof_fails(here, monkeypatch) -> None:
    assert resuming.cross_device_resume(here).status == "passed"
    monkeypatch.setattr(resuming, "_equal", lambda one, other: False)
    other = Context("cpu", here.folder / "again")
    other.folder.mkdir()
    assert resuming.cross_device_resume(other).status == "failed"


def test_a_step_in_pieces_matches_the_whole_step_or_the_proof_fails(here, monkeypatch) -> None:
    assert memory.simulated_oom(here).status == "passed"
    real = Batch.chunk
    monkeypatch.setattr(Batch, "chunk", lambda batch, count: list(real(batch, count))[: max(1, count - 1)])
    other = Context("cpu", here.folder / "again")
    other.folder.mkdir()
    result = memory.simulated_oom(other)
    assert result.status == "failed" and "the losses differ by" in result.why


def _waits(context: Context) -> CheckResult:
    return speed.no_host_sync("fp32", context)


def _breaks_a_kernel(context: Context) -> CheckResult:
    return resuming.lost_device(True, context)


@pytest.mark.parametrize("run", [_waits, _breaks_a_kernel, memory.real_oom])
def test_what_only_cuda_can_do_is_skipped_with_the_reason(here, run: Callable[[Context], CheckResult]) -> None:
    result = run(here)
    assert result.status == "skipped" and "CUDA" in result.why


def test_a_machine_without_a_compiler_skips_compiling_and_says_so(here, monkeypatch) -> None:
    monkeypatch.setattr(speed.shutil, "which", lambda name: None)
    result = speed.compiled_steps("fp32", here)
    assert result.status == "skipped" and "needs a C compiler" in result.why


@pytest.mark.slow
@pytest.mark.parametrize("name", memory.ESTIMATED)
def test_the_memory_estimate_is_close_to_the_measured_peak(here, name: str) -> None:
    assert memory.memory_estimate(name, here).status == "passed"


@pytest.mark.slow
def test_a_run_whose_device_is_lost_resumes_in_another_process(here) -> None:
    result = resuming.lost_device(False, here)
    assert result.status == "passed", result.why
