"""`pause | continue | stop`: a numbered command for whoever trains a run, and waiting until it is obeyed."""

import time
from pathlib import Path

from engine.errors import InputError
from engine.runs.commands import Command, send
from engine.runs.reader import LIVE_STATES, STILL, RunReader
from tui_transformer.cli.exit_codes import ExitCode
from tui_transformer.cli.output import answer, complain, emit, say

PATIENCE = 120.0  # seconds; a step or an evaluation batch of a large model may take long
LOOK = 0.1  # seconds between two looks


def control_command(run: str, command: Command, *, as_json: bool, runs_dir: Path) -> int:
    """Send a command and wait until the run has obeyed it."""
    reader = RunReader.resolve(run, runs_dir)
    if reader.state not in LIVE_STATES:
        raise InputError(f"run '{reader.name}' is {reader.state}, so there is nothing to {command.value}")
    deadline = time.monotonic() + PATIENCE
    while reader.state == "handing-over" and time.monotonic() < deadline:
        time.sleep(LOOK)  # who takes it over listens to what comes after
    number = send(reader.path, command)
    if reader.liveness() == "unknown":
        say(f"{reader.name}: of another machine; waiting until it answers, or for {STILL:.0f} s to see that it is gone")
    while reader.state in LIVE_STATES and reader.status.control_id < number:
        if time.monotonic() > deadline:
            complain(f"run '{reader.name}' has not answered for {PATIENCE:.0f} s; the command stays in control.json")
            return ExitCode.FAILED
        time.sleep(LOOK)
    while command is Command.STOP and reader.state in LIVE_STATES and time.monotonic() < deadline:
        time.sleep(LOOK)
    status = reader.status
    if as_json:
        emit(
            {
                "run": reader.name,
                "command": command.value,
                "id": number,
                "state": reader.state,
                "step": status.step,
            }
        )
    else:
        answer(f"{reader.name}: {reader.state} at step {status.step:,}")
    return ExitCode.DONE
