"""Optimisations that must not change results: recorded and compiled steps, and steps that never wait."""

import importlib.util
import os
import shutil
import sysconfig
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch

from engine.base.language import Message
from engine.config import presets
from engine.config.schema import RunConfig
from engine.config.schemes import POSITIONS
from engine.model.numerics import make_repeatable, set_fp32_matmul
from engine.proofs.bench.cases import PRECISIONS, BenchmarkSpec, step_callable
from engine.proofs.bench.measure import time_interleaved
from engine.proofs.device.proof import Context, Proof
from engine.runs.verdict import CheckResult, failed, passed, passed_if, skipped
from engine.training.self_check import DROPOUTS, NO_DROPOUT
from engine.training.step import Stepper

COMPILED = {"fp32": 1e-4, "bf16": 1e-2, "fp32-fast": 1e-2}  # relative difference of losses
PARITY_STEPS = 5
SECONDS, ROUNDS = 0.6, 3  # of each contender


def speed_proofs() -> list[Proof]:
    waiting = Message("no wait for the device between log points, {precision}")
    recorded, compiled = Message("recorded steps, {precision}"), Message("compiled steps, {precision}")
    return [
        *(Proof(waiting.format(precision=p), "waiting", partial(no_host_sync, p)) for p in PRECISIONS),
        *(Proof(recorded.format(precision=p), "record", partial(recorded_steps, p)) for p in PRECISIONS),
        *(Proof(compiled.format(precision=p), "compile", partial(compiled_steps, p), 40.0, 200.0) for p in COMPILED),
    ]


def why_no_compiler(context: Context) -> str:
    compilers = [os.environ.get("CXX" if context.device == "cpu" else "CC", ""), "g++", "gcc", "clang++", "clang"]
    if not any(shutil.which(name) for name in compilers if name):
        return Message("torch.compile needs a C compiler, but there is none on PATH")
    if context.on_cuda and importlib.util.find_spec("triton") is None:
        return Message("torch.compile needs triton on CUDA, but it is not installed")
    if context.on_cuda and not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        return Message("triton needs Python's headers, but they are not installed")
    return ""


def compiled_steps(precision: str, context: Context) -> CheckResult:
    """Compiled steps give the losses of plain ones; compiling and both kinds of step are timed."""
    if why := why_no_compiler(context):
        return skipped(why)
    uncompiled, compiled = (_stepper(precision, compile_, context) for compile_ in ("never", "always"))
    expected = _step_and_read_losses(uncompiled, PARITY_STEPS)
    started = time.perf_counter()
    found = _step_and_read_losses(compiled, 1)
    compiling = time.perf_counter() - started
    found += _step_and_read_losses(compiled, PARITY_STEPS - 1, first=2)
    apart = max(abs(a - b) / abs(b) for a, b in zip(found, expected, strict=True))
    figures: dict[str, Any] = {"compiled_loss_difference": apart, "compiling_seconds": round(compiling, 1)}
    if not apart <= COMPILED[precision]:
        text = Message("compiled losses differ (relative error {apart:.2g})", apart=apart)
        return failed(text, **figures)
    contenders = {"compiled": step_callable(compiled, PARITY_STEPS), "plain": step_callable(uncompiled, PARITY_STEPS)}
    fast, slow = time_interleaved(contenders, rounds=ROUNDS, seconds=SECONDS, device=context.device)
    ratio = fast.median / slow.median
    figures |= {"compiled_tokens_per_second": fast.median, "plain_tokens_per_second": slow.median}
    text = Message(
        "losses match after {compiling:.0f} s of compiling; {ratio:.2f} × as fast", compiling=compiling, ratio=ratio
    )
    return passed(text, **figures)


def recorded_steps(precision: str, context: Context) -> CheckResult:
    """Steps of the demo give the same losses and weights whether they are replayed as a CUDA graph, taken plainly, or
    taken plainly once more; recorded and plain steps are timed.
    """
    if not context.on_cuda:
        return skipped(Message("steps can only be recorded on CUDA"))
    dropping = dict.fromkeys(DROPOUTS, 0.1)  # so that random numbers are compared, too
    steppers = {name: _stepper(precision, "never", context, **dropping) for name in ("recorded", "plain", "again")}
    for name, stepper in steppers.items():
        make_repeatable(stepper.device)
        stepper.records_steps &= name == "recorded"
    losses = [_step_and_read_losses(stepper, PARITY_STEPS) for stepper in steppers.values()]
    weights = [[weight.detach().clone() for weight in stepper.model.parameters()] for stepper in steppers.values()]
    same, repeated = (losses[1] == losses[i] and all(map(torch.equal, weights[1], weights[i])) for i in (0, 2))
    contenders = {name: step_callable(steppers[name], PARITY_STEPS) for name in ("recorded", "plain")}
    fast, slow = time_interleaved(contenders, rounds=ROUNDS, seconds=SECONDS, device=context.device)
    ratio = fast.median / slow.median
    kept = steppers["recorded"].records_steps
    wrong = Message("plain steps are not repeatable") if not repeated else Message("recorded and plain steps differ")
    return passed_if(
        same and repeated and kept,
        Message("bit-identical to plain steps after {n} steps; {ratio:.2f} × as fast", n=PARITY_STEPS, ratio=ratio),
        wrong if kept else Message("the steps could not be recorded"),
        recorded_tokens_per_second=fast.median,
        plain_tokens_per_second=slow.median,
    )


def _stepper(precision: str, compile_: str, context: Context, **model: object) -> Stepper:
    tables = presets.resolve(presets.find("demo")).dump()
    tables["model"] |= NO_DROPOUT | model
    tables["train"]["compile"] = compile_
    config, device = RunConfig.model_validate(tables), torch.device(context.device)
    spec = BenchmarkSpec(config, (precision,), (), device, torch.get_num_threads(), ROUNDS, SECONDS)
    config = spec.resolved(config, precision)
    set_fp32_matmul(config.train.fp32_matmul)
    return spec.stepper(config)


def _step_and_read_losses(stepper: Stepper, steps: int, *, first: int = 1) -> list[float]:
    results = [stepper.step(step) for step in range(first, first + steps)]
    return [result.read()[0] / result.n_targets for result in results]


def no_host_sync(precision: str, context: Context) -> CheckResult:
    """Steps between two log points never make the host wait for the device; CUDA raises an error where one would."""
    if not context.on_cuda:
        return skipped(Message("only CUDA reports where the host waits"))
    for position in POSITIONS:
        stepper = _stepper(precision, "never", context, position=position)
        _step_and_read_losses(stepper, 2)
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            results = [stepper.step(step) for step in range(3, 9)]
        finally:
            torch.cuda.set_sync_debug_mode("default")
        for result in results:
            result.read()
    text = Message("no waits in {n} steps with any of the {n2} position schemes", n=len(results), n2=len(POSITIONS))
    return passed(text)
