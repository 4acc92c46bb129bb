"""`pause`, `continue`, `stop`, `checkpoint`: send a training process a command and wait until it obeys."""

import time
from pathlib import Path

from engine.base.command_line import RUNS
from engine.base.errors import InputError
from engine.base.language import tr
from engine.base.recorded_text import told
from engine.runs.commands import Command, send
from engine.runs.reader import LIVE_STATES, STILL, RunReader
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import Json, RunArgument, RunsDir
from tui_transformer.cli.output import ExitCode, complain, say, tell

PATIENCE = 120.0  # seconds; a step or an evaluation batch of a large model may take long
LOOK = 0.1  # seconds between polls
# What is said of a run that is not training, by the command.
TOO_LATE = {
    Command.PAUSE: tr("run '{name}': {state}; there is nothing to pause"),
    Command.CONTINUE: tr("run '{name}': {state}; there is nothing to continue"),
    Command.STOP: tr("run '{name}': {state}; there is nothing to stop"),
    Command.CHECKPOINT: tr("run '{name}': {state}; there is nothing to save"),
}


@command(70)
@examples(
    {
        "pause demo": tr("Pause a run; `continue demo` ends the pause."),
    }
)
def pause(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = RUNS) -> int:
    """Pause a run at its next step; its process stays alive."""
    return _sent(Command.PAUSE, run, json, runs_dir)


@command(80)
@examples(
    {
        "continue demo": tr("Continue a paused run."),
    }
)
def continue_(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = RUNS) -> int:
    """Continue a paused run."""
    return _sent(Command.CONTINUE, run, json, runs_dir)


@command(90)
@examples(
    {
        "stop": tr("Stop the newest run; `resume` picks it up from there."),
    }
)
def stop(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = RUNS) -> int:
    """Stop a run at its next step, with a checkpoint to resume from."""
    return _sent(Command.STOP, run, json, runs_dir)


@command(100)
@examples(
    {
        "checkpoint demo": tr("Save a checkpoint now."),
    }
)
def checkpoint(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = RUNS) -> int:
    """Save a checkpoint at the run's next step, without stopping it."""
    return _sent(Command.CHECKPOINT, run, json, runs_dir)


def _sent(command: Command, run: str, json: bool, runs_dir: Path) -> int:
    reader = RunReader.resolve(run, runs_dir)
    if reader.state not in LIVE_STATES:
        raise InputError(TOO_LATE[command].format(name=reader.name, state=told(reader.state)))
    deadline = time.monotonic() + PATIENCE
    while reader.state == "handing-over" and time.monotonic() < deadline:
        time.sleep(LOOK)  # its next process hears only later commands
    number = send(reader.path, command)
    if reader.liveness() == "unknown":
        say(
            tr(
                "{name} is on another machine; waiting for an answer (after {seconds:.0f} s without a "
                "heartbeat, the run counts as lost)",
                name=reader.name,
                seconds=STILL,
            )
        )
    while reader.state in LIVE_STATES and reader.status.control_id < number:
        if time.monotonic() > deadline:
            complain(
                tr(
                    "run '{name}' has not answered for {seconds:.0f} s; the command stays in control.json",
                    name=reader.name,
                    seconds=PATIENCE,
                )
            )
            return ExitCode.FAILED
        time.sleep(LOOK)
    while command is Command.STOP and reader.state in LIVE_STATES and time.monotonic() < deadline:
        time.sleep(LOOK)
    state, step = reader.state, reader.status.step
    record = {"run": reader.name, "command": command.value, "id": number, "state": state, "step": step}
    text = tr("{name}: {state} at step {step:,}", name=reader.name, state=told(state), step=step)
    tell(record, text, as_json=json)
    return ExitCode.DONE
