"""All proofs of `doctor --gpu`: the engine's, and the studio's and queue's during training."""

import asyncio
import os
import statistics
import threading
import time
from pathlib import Path

from engine.command_line import as_typed
from engine.config import presets
from engine.config.schema import RunConfig
from engine.errors import InputError
from engine.proof import attention, memory, networks, speed
from engine.proof.attention import attention_proofs
from engine.proof.memory import memory_proofs
from engine.proof.networks import preset_proofs
from engine.proof.result import Context, Figure, Proof, Result, failed, judged
from engine.proof.resuming import resuming_proofs, small_run
from engine.proof.speed import speed_proofs
from engine.runs.commands import Command, send
from engine.runs.reader import RunReader
from tui_transformer.cli.responsiveness import step_after
from tui_transformer.lab.launch import queue
from tui_transformer.lab.launch.launch import Training, await_start, enqueue, spawn
from tui_transformer.studio.settings import ENVIRONMENT

SIZE = (120, 36)  # columns and lines
WATCHED = 8.0  # seconds of training that are timed
TICK = 0.01  # seconds between event-loop delay measurements
# On a GPU the CPU is free to draw the screen; on a CPU training competes with it, and the figures are only reported.
SLOWEST = 0.1  # seconds; the largest allowed p95 delay of the event loop
SHARE = 0.8  # of the headless speed; the target is 0.95
PATIENCE = 60.0  # seconds for a process to obey a command


def every_proof() -> list[Proof]:
    return [
        *attention_proofs(),
        *resuming_proofs(),
        *preset_proofs(),
        *memory_proofs(),
        Proof("studio: a run trains in a thread beside a live chart", "studio", studio, seconds=35.0, limit=180.0),
        Proof("two runs on one device, in one process and in two", "queue", two_runs, seconds=20.0, limit=240.0),
        *speed_proofs(),
    ]


def settings() -> dict[str, object]:
    return {
        "preset_steps": networks.STEPS,
        "first_step_loss_and_gradient": dict(networks.FIRST_STEP),
        "cache_difference": networks.CACHED,
        "attention_difference": {str(dtype): allowed for dtype, allowed in attention.ALLOWED.items()},
        "piecewise_loss_nats": memory.LOSS,
        "memory_estimate": memory.NEAR,
        "compiled_loss_difference": speed.COMPILED,
        "loop_lag_p95_seconds": SLOWEST,
        "share_of_headless": SHARE,
    }


def _endless(context: Context) -> RunConfig:
    """A run that logs every step and continues until it is stopped; on a GPU at baseline size."""
    tables = presets.resolve(presets.find("demo" if context.device == "cpu" else "baseline")).dump()
    tables["train"] |= {"steps": 10**6, "threads": context.threads}
    tables["data"] |= {"corpus_size": 100_000}
    tables["evaluation"] |= {"every": 0, "sample_every": 0}
    tables["checkpoint"] |= {"every": 0}
    tables["log"] |= {"every": 1}
    return RunConfig.model_validate(tables)


def studio(context: Context) -> Result:
    """Train in the studio's worker thread, with its chart but no terminal; then train the same without the studio."""
    settings = context.folder / "settings.toml"
    settings.write_text('welcomed = true\nlaunch = "thread"\n', encoding="utf-8")
    os.environ[ENVIRONMENT] = str(settings)
    config = _endless(context)
    speed, late, text = asyncio.run(_in_studio(context, config))
    headless = _headless(context, config)
    slow, usual = sorted(late)[int(0.95 * len(late))], statistics.median(late)
    figures: dict[str, Figure] = {
        "loop_lag_p95_ms": round(1000 * slow, 1),
        "loop_lag_median_ms": round(1000 * usual, 1),
        "steps_per_second": round(speed, 2),
        "headless_steps_per_second": round(headless, 2),
        "share_of_headless": round(speed / headless, 3),
    }
    said = (
        f"{speed:.1f} steps/s, {speed / headless:.2f} of headless; the event loop's p95 delay is {1000 * slow:.0f} ms"
    )
    if "tok/s" not in text:
        return failed(f"the Train pane does not show the run: {said}", **figures)
    well = context.device == "cpu" or (slow <= SLOWEST and speed >= SHARE * headless)
    return judged(well, said, f"{said}; required: at most {1000 * SLOWEST:.0f} ms, at least {SHARE}", **figures)


async def _in_studio(context: Context, config: RunConfig) -> tuple[float, list[float], str]:
    """Steps per second, the event loop's delay (seconds), and the screen's contents."""
    from tui_transformer.studio.app import Studio
    from tui_transformer.studio.design.pane import DesignPane

    root = context.folder / "runs"
    root.mkdir()
    app = Studio(runs_dir=root, device=context.device)
    async with app.run_test(size=SIZE):
        app.post_message(DesignPane.Launch(config, as_typed(), "thread"))
        began = time.monotonic()
        while app.launches.here is None:
            if time.monotonic() - began > PATIENCE:
                raise InputError("the studio did not start the run")
            await asyncio.sleep(0.05)
        run = app.launches.here
        late: list[float] = []
        try:
            first, started = await asyncio.to_thread(step_after, run, 2)  # the first steps warm up
            while time.perf_counter() - started < WATCHED:
                before = time.perf_counter()
                await asyncio.sleep(TICK)
                late.append(max(0.0, time.perf_counter() - before - TICK))
            last, ended = await asyncio.to_thread(step_after, run, 0)
            strips = app.screen._compositor.render_strips()
            text = "\n".join("".join(part.text for part in strip) for strip in strips)
        finally:
            await asyncio.to_thread(app.launches.stop_here)
    return (last - first) / (ended - started), late, text


def _headless(context: Context, config: RunConfig) -> float:
    run = enqueue(config, runs_dir=context.folder / "runs", name="headless", command="")
    process = spawn("begin", run, device=context.device)
    try:
        first, started = step_after(run, 2)
        time.sleep(WATCHED)
        last, ended = step_after(run, 0)
    finally:
        process.kill()
        process.wait()
    return (last - first) / (ended - started)


def two_runs(context: Context) -> Result:
    """In one process a second run is refused; in the queue it waits until the device is free, then trains."""
    root = context.folder / "runs"
    root.mkdir()
    refusal = _second_thread(context, root)
    if "trains a run already" not in refusal:
        return failed(f"a second training thread in one process was not refused: {refusal or 'it started'}")
    before = enqueue(_endless(context), runs_dir=root, name="first", command="")
    process = spawn("begin", before, device=context.device)
    said: list[str] = []
    try:
        await_start(RunReader(before), process, 0)
        queued = queue.add(small_run(), runs_dir=root, name="second", command="", device=context.device, data_dir=None)
        runner = threading.Thread(target=queue.work, args=(root, context.device, said.append), daemon=True)
        runner.start()
        began = time.monotonic()
        while not any("waiting for first" in line for line in said):
            if time.monotonic() - began > PATIENCE:
                raise InputError("the queue does not wait for the first run")
            time.sleep(0.05)
        time.sleep(2.0)
        states = (RunReader(before).state, RunReader(queued).state)
        send(before, Command.STOP)
        process.wait(PATIENCE)
        runner.join(2 * PATIENCE)
    finally:
        process.kill()
        process.wait()
    ends = (RunReader(before).state, RunReader(queued).state)
    wrong = f"while the first run trained, the two were {' and '.join(states)}; in the end, {' and '.join(ends)}"
    right = "a second thread is refused; a queued run waits for the device, then finishes"
    return judged(states == ("running", "queued") and ends == ("stopped", "finished"), right, wrong)


def _second_thread(context: Context, root: Path) -> str:
    run = enqueue(_endless(context), runs_dir=root, name="thread", command="")
    one, other = (Training("begin", run, device=context.device) for _ in range(2))
    one.start()
    try:
        other.start()
    except InputError as error:
        return str(error)
    finally:
        one.stop("proved")
        one.join(PATIENCE)
    return ""
