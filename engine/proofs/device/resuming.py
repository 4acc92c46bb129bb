"""Runs that end early and are resumed: in the same process, in another, on another device, after losing the device."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.base.language import Message
from engine.config import presets
from engine.config.schema import RunConfig
from engine.proofs.device.proof import THREADS, Context, Proof
from engine.proofs.device.worker import Worker, WorkerDied
from engine.runs.commands import RunCommand
from engine.runs.control import Control
from engine.runs.reader import RunReader
from engine.runs.twins import loss_and_gradient_hash
from engine.runs.verdict import CheckResult, failed, passed_if, skipped
from engine.training import checkpoint
from engine.training.assemble import ReadyRun, assemble, resume
from engine.training.self_check import DROPOUTS

STEPS, STOPPED = 12, 5  # the run's length, and where it is stopped: no checkpoint is due there
LOST, SAVED = 7, 4  # the step in which the device is lost, and the newest checkpoint by then
CHILD = 100.0  # seconds for a call in another process


def resuming_proofs() -> list[Proof]:
    """Repeating and resuming in fp32 and bf16; then changing and losing the device."""
    named: dict[str, Callable[[str, Context], CheckResult]] = {
        Message("the same run twice, {precision}"): repeated_run,
        Message("resumed in the same process, {precision}"): partial(resumed_run, False),
        Message("resumed in another process, {precision}"): partial(resumed_run, True),
    }
    return [
        *(
            Proof(name.format(precision=precision), "resume", partial(run, precision), seconds=6.0)
            for precision in ("fp32", "bf16")
            for name, run in named.items()
        ),
        Proof(Message("saved on the device, loaded on the CPU, and back"), "resume", cross_device_resume, seconds=5.0),
        *(
            Proof(name, "resume", partial(lost_device, really), 12.0, 240.0)
            for name, really in (
                (Message("device lost (simulated), then resumed"), False),
                (Message("device lost (kernel failure), then resumed"), True),
            )
        ),
    ]


class _StopAfter(Control):
    def __init__(self, steps: int) -> None:
        super().__init__()
        self._left = steps + 1  # the trainer also polls before its first step

    def poll(self) -> RunCommand | None:
        self._left -= 1
        if self._left == 0:
            self.enqueue_command(RunCommand.STOP, Message("stopped by a proof"))
        return super().poll()


def small_run(*, dropout: float = 0.1, **train: Any) -> RunConfig:
    """The demo in miniature with two micro-batches per step; it saves and evaluates every four steps."""
    tables = presets.resolve(presets.find("demo")).miniature().dump()
    tables["train"] |= {"steps": STEPS, "accumulation": 2, "precision": "fp32"} | train
    tables["model"] |= dict.fromkeys(DROPOUTS, dropout)
    return RunConfig.model_validate(tables)


def comparable_contents(run: Path) -> dict[str, bytes]:
    """What a finished run leaves, without timings: equal for two runs that are bit-identical."""
    last = checkpoint.find(RunReader(run), "last")
    return {
        "metrics": loss_and_gradient_hash(run).encode(),
        "samples": (run / "samples.jsonl").read_bytes(),
        "weights": (last / checkpoint.WEIGHTS).read_bytes(),
        "moments": (last / checkpoint.OPTIMIZER).read_bytes(),
    }


def train_run(
    context: Context,
    name: str,
    config: RunConfig,
    *,
    stop_after: int | None = None,
    hook: Callable[..., None] | None = None,
) -> Path:
    """Train a run to its end, or to a step, and return its folder; `hook` is called before each forward pass."""
    control = None if stop_after is None else _StopAfter(stop_after)
    ready = assemble(config, runs_dir=context.folder, name=name, device=context.device, control=control)
    if hook is not None:
        ready.trainer.model.register_forward_pre_hook(hook)
    _run_expecting_state(ready, "finished" if stop_after is None else "stopped")
    return ready.path


def _run_expecting_state(ready: ReadyRun, state: str) -> None:
    outcome = ready.trainer.run()
    if outcome.state != state:
        raise RuntimeError(f"{ready.path.name}: {outcome.state}, {outcome.step}: {outcome.reason}")


def _compare_runs(one: Path, other: Path, said: str) -> CheckResult:
    """Judge whether two runs left the same files, and if not, how far apart their weights are."""
    ours, theirs = comparable_contents(one), comparable_contents(other)
    differ = [what for what in ours if ours[what] != theirs[what]]
    apart = 0.0
    if differ:
        folders = [checkpoint.find(RunReader(run), "last") for run in (one, other)]
        weights = [checkpoint.load_tensors(folder / checkpoint.WEIGHTS) for folder in folders]
        largest = max(float(value.abs().max()) for value in weights[0].values())
        apart = max(float((value - weights[1][name]).abs().max()) for name, value in weights[0].items()) / largest
    wrong = Message(
        "not bit-identical: {differ} differ (relative difference in the weights: {apart:.2g})",
        differ=", ".join(differ),
        apart=apart,
    )
    text = Message("{said}: {ours} are bit-identical", said=said, ours=", ".join(ours))
    return passed_if(not differ, text, wrong, weights_difference=apart)


def repeated_run(precision: str, context: Context) -> CheckResult:
    """Two undisturbed runs of one config: unless these agree, no resumed run can."""
    config = small_run(precision=precision)
    one, other = (train_run(context, name, config) for name in ("one", "other"))
    return _compare_runs(one, other, Message("{steps} steps", steps=STEPS))


def resumed_run(elsewhere: bool, precision: str, context: Context) -> CheckResult:
    config = small_run(precision=precision)
    whole, stopped = train_run(context, "whole", config), train_run(context, "stopped", config, stop_after=STOPPED)
    if elsewhere:
        with Worker(context.folder / "log.txt") as other:
            other.call(resume_to_end, stopped, context.device, limit=CHILD)
    else:
        _run_expecting_state(resume(stopped, device=context.device), "finished")
    return _compare_runs(whole, stopped, Message("stopped at step {stopped} of {steps}", stopped=STOPPED, steps=STEPS))


def resume_to_end(run: Path, device: str) -> None:
    torch.set_num_threads(THREADS)
    _run_expecting_state(resume(run, device=device), "finished")


def cross_device_resume(context: Context) -> CheckResult:
    """A checkpoint from the device is loaded, trained and saved on the CPU, then loaded on the device again."""
    config = small_run()
    ready = assemble(config, runs_dir=context.folder, name="run", device=context.device, control=_StopAfter(STOPPED))
    _run_expecting_state(ready, "stopped")
    reader = RunReader(ready.path)
    weights = checkpoint.weights_of(ready.trainer.model)
    wrong: list[str] = []
    for device in ("cpu", context.device):
        if not _equal(weights, checkpoint.weights_of(checkpoint.load_network(reader, "last", device)[0])):
            text = Message(
                "weights saved on {saved_on} differ when loaded on {loaded_on}",
                saved_on=context.device,
                loaded_on=device,
            )
            wrong.append(text)
    on_cpu = resume(ready.path, device="cpu", control=_StopAfter(1))
    wrong += _state_differences(ready, on_cpu)
    _run_expecting_state(on_cpu, "stopped")
    back = resume(ready.path, device=context.device)
    wrong += _state_differences(on_cpu, back)
    _run_expecting_state(back, "finished")
    said = Message(
        "weights and moments stay bit-identical from {device} to the CPU and back; training continues",
        device=context.device,
    )
    return passed_if(not wrong, said, "; ".join(wrong), tensors=len(weights))


def _state_differences(saved: ReadyRun, loaded: ReadyRun) -> list[str]:
    one, other = (
        checkpoint.weights_of(ready.trainer.model)
        | checkpoint.moments_of(ready.trainer.model, ready.trainer.stepper.optimizer)
        for ready in (saved, loaded)
    )
    device, device2 = saved.trainer.device, loaded.trainer.device
    wrong = Message("state saved on {device} differs when loaded on {device2}", device=device, device2=device2)
    return [] if _equal(one, other) else [wrong]


def _equal(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def lost_device(really: bool, context: Context) -> CheckResult:
    """A device fails in the middle of a step; another process resumes the run from its last checkpoint.

    `really` makes a kernel fail, which needs CUDA; otherwise only its error is raised.
    """
    if really and not context.on_cuda:
        return skipped(Message("only a CUDA kernel can fail like this"))
    config = small_run()
    whole = train_run(context, "whole", config)
    with Worker(context.folder / "log.txt") as broken:
        try:
            state, reason, step = broken.call(
                _train_until_failure, config, context.folder, context.device, really, limit=CHILD
            )
        except WorkerDied as error:
            return failed(Message("the training process died with its device: {error}", error=error))
    run = context.folder / "broken"
    figures: dict[str, Any] = {"state": state, "last_checkpoint_step": step}
    expected = Message("step {saved} is the last one saved", saved=SAVED)
    if state != "failed" or step != SAVED or expected not in reason:
        text = Message(
            "expected a failed run with its checkpoint at step {saved}, but the run's state is {state}: {reason}",
            state=state,
            saved=SAVED,
            reason=reason,
        )
        return failed(text, **figures)
    with Worker(context.folder / "log.txt") as fresh:
        fresh.call(resume_to_end, run, context.device, limit=CHILD)
    text = Message("device lost at step {lost}, resumed from step {saved} in another process", lost=LOST, saved=SAVED)
    compared = _compare_runs(whole, run, text)
    return replace(compared, figures={**figures, **compared.figures})


def _train_until_failure(config: RunConfig, root: Path, device: str, really: bool) -> tuple[str, str, int]:
    """(state, reason, step of the newest checkpoint) of a run whose device breaks in step `LOST`."""
    torch.set_num_threads(THREADS)
    ready = assemble(config, runs_dir=root, name="broken", device=device)
    stepper, step_as_meant = ready.trainer.stepper, ready.trainer.stepper.step

    def broken(step: int, **given: Any) -> Any:
        if step == LOST and not really:
            raise torch.AcceleratorError("CUDA error: unspecified launch failure")
        if step == LOST:
            row = torch.zeros(4, device=stepper.device)
            row[torch.full((4,), 10**6, device=stepper.device)]  # out of bounds: the kernel asserts
        return step_as_meant(step, **given)

    stepper.step = broken  # type: ignore[method-assign]
    outcome = ready.trainer.run()
    folder, _ = checkpoint.newest_intact(ready.path)
    return outcome.state, outcome.reason, int(folder.name.removeprefix("step-"))
