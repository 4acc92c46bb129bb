"""Runs that end early and are resumed: in the same process, in another, on another device, after losing the device."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.config import presets
from engine.config.schema import RunConfig
from engine.proof.result import Context, Figure, Proof, Result, failed, judged
from engine.proof.worker import Ended, Worker
from engine.runs.commands import Command
from engine.runs.reader import RunReader
from engine.runs.twins import fingerprint
from engine.training import checkpoint
from engine.training.assemble import Ready, assemble, resume
from engine.training.control import Control
from engine.training.copies import DROPOUTS
from engine.training.tensors import load_tensors

STEPS, STOPPED = 12, 5  # the run's length, and where it is stopped: no checkpoint is due there
LOST, SAVED = 7, 4  # the step in which the device is lost, and the newest checkpoint by then
# CUDA's message when a kernel has failed; `is_device_failure` recognizes its beginning.
PLANTED = "CUDA error: unspecified launch failure"
CHILD = 100.0  # seconds for a call in another process


def resuming_proofs() -> list[Proof]:
    """Repeating and resuming in fp32 and bf16; then changing and losing the device."""
    proofs = []
    for precision in ("fp32", "bf16"):
        named: dict[str, partial[Result]] = {
            "the same run twice": partial(repeats, precision),
            "resumed in the same process": partial(resumes_here, precision),
            "resumed in another process": partial(resumes_elsewhere, precision),
        }
        proofs += [Proof(f"{name}, {precision}", "resume", run, seconds=6.0) for name, run in named.items()]
    return [
        *proofs,
        Proof("saved on the device, loaded on the CPU, and back", "resume", crosses_devices, seconds=5.0),
        Proof(
            "device lost (simulated), then resumed", "resume", partial(loses_device, False), seconds=12.0, limit=240.0
        ),
        Proof(
            "device lost (a kernel fails), then resumed",
            "resume",
            partial(loses_device, True),
            seconds=12.0,
            limit=240.0,
        ),
    ]


class _StopAfter(Control):
    """Requests a stop after a number of steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._left = steps + 1  # the trainer also polls before its first step

    def poll(self) -> Command | None:
        """The next command to obey, if any."""
        self._left -= 1
        if self._left == 0:
            self.request(Command.STOP, "stopped by a proof")
        return super().poll()


def small_run(*, dropout: float = 0.1, **train: Any) -> RunConfig:
    """The demo in miniature with two micro-batches per step; it saves and evaluates every four steps.

    Args:
        dropout: the rate of every kind of dropout.
        train: settings of `train`.
    """
    tables = presets.resolve(presets.find("demo")).miniature().dump()
    tables["train"] |= {"steps": STEPS, "accumulation": 2, "precision": "fp32"} | train
    tables["model"] |= dict.fromkeys(DROPOUTS, dropout)
    return RunConfig.model_validate(tables)


def left_behind(run: Path) -> dict[str, bytes]:
    """What a finished run leaves, without timings: equal for two runs that are bit-identical."""
    last = checkpoint.find(RunReader(run), "last")
    return {
        "metrics": fingerprint(run).encode(),
        "samples": (run / "samples.jsonl").read_bytes(),
        "weights": (last / checkpoint.WEIGHTS).read_bytes(),
        "moments": (last / checkpoint.OPTIMIZER).read_bytes(),
    }


def _whole(context: Context, name: str, config: RunConfig) -> Path:
    ready = assemble(config, runs_dir=context.folder, name=name, device=context.device)
    _end(ready, "finished")
    return ready.path


def _end(ready: Ready, state: str) -> None:
    outcome = ready.trainer.run()
    if outcome.state != state:
        raise RuntimeError(f"run '{ready.path.name}' {outcome.state} at step {outcome.step}: {outcome.reason}")


def _compared(one: Path, other: Path, said: str) -> Result:
    """Whether two runs left the same files, and if not, how far apart their weights are."""
    ours, theirs = left_behind(one), left_behind(other)
    differ = [what for what in ours if ours[what] != theirs[what]]
    apart = _weights_apart(one, other) if differ else 0.0
    wrong = f"not bit-identical: {', '.join(differ)} differ, weights by {apart:.2g} (relative)"
    return judged(not differ, f"{said}: {', '.join(ours)} are bit-identical", wrong, weights_difference=apart)


def _weights_apart(one: Path, other: Path) -> float:
    ours, theirs = (load_tensors(checkpoint.find(RunReader(run), "last") / checkpoint.WEIGHTS) for run in (one, other))
    largest = max(float(value.abs().max()) for value in ours.values())
    return max(float((ours[name] - theirs[name]).abs().max()) for name in ours) / largest


def repeats(precision: str, context: Context) -> Result:
    """Two undisturbed runs of one config: unless these agree, no resumed run can."""
    config = small_run(precision=precision)
    found = _compared(_whole(context, "one", config), _whole(context, "other", config), f"{STEPS} steps")
    if found.status == "passed":
        return found
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:  # is one of torch's kernels nondeterministic?
        again = _compared(_whole(context, "third", config), _whole(context, "fourth", config), "")
    finally:
        torch.use_deterministic_algorithms(False)
    equal = again.status == "passed"
    then = "equal" if equal else "still different"
    figures: dict[str, Figure] = {**found.figures, "equal_with_deterministic_algorithms": equal}
    return failed(f"{found.why}; with torch.use_deterministic_algorithms they are {then}", **figures)


def _stopped(context: Context, config: RunConfig) -> Path:
    ready = assemble(
        config, runs_dir=context.folder, name="stopped", device=context.device, control=_StopAfter(STOPPED)
    )
    _end(ready, "stopped")
    return ready.path


def resumes_here(precision: str, context: Context) -> Result:
    """A run is stopped and resumed in this process."""
    config = small_run(precision=precision)
    whole, stopped = _whole(context, "whole", config), _stopped(context, config)
    _end(resume(stopped, device=context.device), "finished")
    return _compared(whole, stopped, f"stopped at step {STOPPED} of {STEPS}")


def resumes_elsewhere(precision: str, context: Context) -> Result:
    """A run is stopped, then resumed in another process."""
    config = small_run(precision=precision)
    whole, stopped = _whole(context, "whole", config), _stopped(context, config)
    with Worker(context.folder / "log.txt") as other:
        other.call(go_on, stopped, context.device, context.threads, limit=CHILD)
    return _compared(whole, stopped, f"stopped at step {STOPPED} of {STEPS}")


def go_on(run: Path, device: str, threads: int) -> None:
    """Resume a run and train it to its end."""
    torch.set_num_threads(threads)
    _end(resume(run, device=device), "finished")


def crosses_devices(context: Context) -> Result:
    """A checkpoint of the device is loaded on the CPU, trained and saved there, and loaded on the device again."""
    config = small_run()
    ready = assemble(config, runs_dir=context.folder, name="run", device=context.device, control=_StopAfter(STOPPED))
    _end(ready, "stopped")
    reader = RunReader(ready.path)
    trained = checkpoint.weights_of(ready.trainer.model)
    wrong = []
    for device in ("cpu", context.device):
        if not _equal(trained, checkpoint.weights_of(checkpoint.load_network(reader, "last", device)[0])):
            wrong.append(f"weights saved on {context.device} differ when loaded on {device}")
    on_cpu = resume(ready.path, device="cpu", control=_StopAfter(1))
    wrong += _state_differs(ready, on_cpu)
    _end(on_cpu, "stopped")
    back = resume(ready.path, device=context.device)
    wrong += _state_differs(on_cpu, back)
    _end(back, "finished")
    said = f"weights and moments are bit-identical from {context.device} to the CPU and back; training continues"
    return judged(not wrong, said, "; ".join(wrong), tensors=len(trained))


def _state_differs(saved: Ready, loaded: Ready) -> list[str]:
    one, other = (_state(ready) for ready in (saved, loaded))
    wrong = f"state saved on {saved.trainer.device} differs when loaded on {loaded.trainer.device}"
    return [] if _equal(one, other) else [wrong]


def _state(ready: Ready) -> dict[str, Tensor]:
    trainer = ready.trainer
    state = dict(checkpoint.weights_of(trainer.model))
    for name, parameter in trainer.model.named_parameters():
        for key, value in trainer.stepper.optimizer.state[parameter].items():
            state[f"{name}/{key}"] = value.detach().cpu()
    return {name: value.clone() for name, value in state.items()}


def _equal(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def loses_device(really: bool, context: Context) -> Result:
    """A device fails in the middle of a step; another process resumes the run from its last checkpoint.

    Args:
        really: make a kernel fail, which needs CUDA; otherwise only raise its error.
        context: where.
    """
    if really and not context.on_cuda:
        return Result("skipped", "only a CUDA kernel can fail like this")
    config = small_run()
    whole = _whole(context, "whole", config)
    with Worker(context.folder / "log.txt") as broken:
        try:
            state, reason, step = broken.call(
                _broken, config, context.folder, context.device, context.threads, really, limit=CHILD
            )
        except Ended as error:
            return failed(f"the training process died with its device: {error}")
    run = context.folder / "broken"
    figures: dict[str, Figure] = {"state": state, "last_checkpoint_step": step}
    expected = f"step {SAVED} is the last one saved"
    if state != "failed" or step != SAVED or expected not in reason:
        return failed(f"the run is {state} instead of failed with its checkpoint of step {SAVED}: {reason}", **figures)
    with Worker(context.folder / "log.txt") as fresh:
        fresh.call(go_on, run, context.device, context.threads, limit=CHILD)
    compared = _compared(whole, run, f"lost in step {LOST}, resumed from step {SAVED} in another process")
    return Result(compared.status, compared.why, {**figures, **compared.figures})


def _broken(config: RunConfig, root: Path, device: str, threads: int, really: bool) -> tuple[str, str, int]:
    """(state, reason, step of the newest checkpoint) of a run whose device breaks in step `LOST`."""
    torch.set_num_threads(threads)
    ready = assemble(config, runs_dir=root, name="broken", device=device)
    stepper, take = ready.trainer.stepper, ready.trainer.stepper.take

    def broken(step: int, **given: Any) -> Any:
        if step == LOST and not really:
            raise torch.AcceleratorError(PLANTED)
        if step == LOST:
            row = torch.zeros(4, device=stepper.device)
            row[torch.full((4,), 10**6, device=stepper.device)]  # out of bounds: the kernel asserts
        return take(step, **given)

    stepper.take = broken  # type: ignore[method-assign]
    outcome = ready.trainer.run()
    folder, _ = checkpoint.newest_intact(ready.path)
    return outcome.state, outcome.reason, int(folder.name.removeprefix("step-"))
