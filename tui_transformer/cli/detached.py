"""`run --detach`, `run --queue`, `resume --detach`: a process of its own trains; this one returns at once."""

import shutil
from pathlib import Path

from engine.command_line import as_typed, command_line
from engine.errors import InputError, no_process
from engine.runs.reader import LIVE_STATES, RunReader
from tui_transformer.cli.output import answer, emit
from tui_transformer.cli.run import Request, loading
from tui_transformer.lab.launch import queue
from tui_transformer.lab.launch.launch import await_start, enqueue, spawn


def run_detached(
    request: Request, *, name: str | None, device: str, as_json: bool, runs_dir: Path, data_dir: Path | None
) -> int:
    """Start a run in the background."""
    command = as_typed()
    run = enqueue(request.resolve(), runs_dir=runs_dir, name=name, command=command)
    try:
        return _started("begin", RunReader(run), device=device, as_json=as_json, data_dir=data_dir)
    except InputError:
        if RunReader(run).status.checkpoint is None and RunReader(run).state not in LIVE_STATES:
            shutil.rmtree(run)  # what cannot be begun leaves nothing behind
        raise


def run_queued(
    request: Request, *, name: str | None, device: str, as_json: bool, runs_dir: Path, data_dir: Path | None
) -> int:
    """Put a run into its device's queue and see to it that somebody works through that."""
    config, command = request.resolve(), as_typed()
    device = _known(device)
    before = len(queue.waiting(runs_dir, device)) + len(queue.at_work(runs_dir, device))
    run = queue.add(config, runs_dir=runs_dir, name=name, command=command, device=device, data_dir=data_dir)
    try:
        queue.ensure_runner(runs_dir, device)
    except OSError as error:
        raise no_process(error, f"{run.name} is queued, but ") from None
    if as_json:
        emit({"kind": "run", "name": run.name, "path": str(run), "state": "queued", "before": before})
    else:
        answer(f"{run.name} is queued, {before} before it; {command_line('runs', runs_dir=runs_dir)}")
    return 0


def _known(device: str) -> str:
    """The device that is meant: `auto` and `cuda` have no queue of their own."""
    with loading("looking at the devices"):
        from engine.training.devices import resolve_device

        return str(resolve_device(device))


def queue_command(*, device: str, as_json: bool, runs_dir: Path) -> int:
    """Work through a device's queue."""

    def said(text: str) -> None:
        if as_json:
            emit({"kind": "queue", "text": text})
        else:
            answer(text, flush=True)

    runs_dir.mkdir(parents=True, exist_ok=True)
    device = _known(device)
    done = queue.work(runs_dir, device, said)
    if not as_json:
        answer(f"nothing waits for {device} any more; {done} trained")
    return 0


def resume_detached(run: str, *, device: str, as_json: bool, runs_dir: Path, data_dir: Path | None) -> int:
    """Go on with a run in the background."""
    reader = RunReader.resolve(run, runs_dir)
    if reader.state in LIVE_STATES:
        raise InputError(f"run '{reader.name}' is {reader.state} already")
    return _started("resume", reader, device=device, as_json=as_json, data_dir=data_dir)


def _started(verb: str, reader: RunReader, *, device: str, as_json: bool, data_dir: Path | None) -> int:
    before = reader.status.attempt if verb == "resume" else 0
    with loading("starting"):
        try:
            process = spawn(verb, reader.path, device=device, data_dir=data_dir)
        except OSError as error:
            raise no_process(error) from None
        await_start(reader, process, before)
    if as_json:
        emit({"kind": "run", "name": reader.name, "path": str(reader.path), "pid": process.pid, "state": reader.state})
    else:
        answer(f"{reader.name} trains in the background (process {process.pid}); {reader.command('watch')}")
    return 0
