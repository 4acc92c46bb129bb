"""`pause`, `continue`, `stop`, `checkpoint`: send a training process a command and wait until it obeys."""

import time
from pathlib import Path

from engine.base.command_line import DEFAULT_RUNS_DIR
from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.runs.commands import RunCommand, send
from engine.runs.reader import LIVE_STATES, LOST_AFTER, RunReader
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import Json, RunArgument, RunsDir
from tui_transformer.cli.output import ExitCode, print_error, print_info, print_result

ANSWER_TIMEOUT = 120.0  # seconds; a step or an evaluation batch of a large model may take long
POLL_INTERVAL = 0.1  # seconds between polls
# What is said of a run that is not training, by the command.
TOO_LATE = {
    RunCommand.PAUSE: Message("run '{name}': {state}; there is nothing to pause"),
    RunCommand.CONTINUE: Message("run '{name}': {state}; there is nothing to continue"),
    RunCommand.STOP: Message("run '{name}': {state}; there is nothing to stop"),
    RunCommand.CHECKPOINT: Message("run '{name}': {state}; there is nothing to save"),
}


@command(70)
@examples({"pause demo": "Pause a run; `continue demo` ends the pause."})
def pause(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = DEFAULT_RUNS_DIR) -> int:
    """Pause a run at its next step; its process stays alive."""
    return _send_and_wait(RunCommand.PAUSE, run, json, runs_dir)


@command(80)
@examples({"continue demo": "Continue a paused run."})
def continue_(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = DEFAULT_RUNS_DIR) -> int:
    """Continue a paused run."""
    return _send_and_wait(RunCommand.CONTINUE, run, json, runs_dir)


@command(90)
@examples({"stop": "Stop the newest run; `resume` picks it up from there."})
def stop(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = DEFAULT_RUNS_DIR) -> int:
    """Stop a run at its next step, with a checkpoint to resume from."""
    return _send_and_wait(RunCommand.STOP, run, json, runs_dir)


@command(100)
@examples({"checkpoint demo": "Save a checkpoint now."})
def checkpoint(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = DEFAULT_RUNS_DIR) -> int:
    """Save a checkpoint at the run's next step, without stopping it."""
    return _send_and_wait(RunCommand.CHECKPOINT, run, json, runs_dir)


def _send_and_wait(command: RunCommand, run: str, json: bool, runs_dir: Path) -> int:
    reader = RunReader.resolve(run, runs_dir)
    if reader.state not in LIVE_STATES:
        raise InputError(TOO_LATE[command].format(name=reader.name, state=tr(reader.state)))
    deadline = time.monotonic() + ANSWER_TIMEOUT
    while reader.state == "handing-over" and time.monotonic() < deadline:
        time.sleep(POLL_INTERVAL)  # its next process hears only later commands
    number = send(reader.path, command)
    if reader.liveness() == "unknown":
        print_info(
            tr(
                "{name} is on another machine; waiting for an answer (after {seconds:.0f} s without a "
                "heartbeat, the run counts as lost)",
                name=reader.name,
                seconds=LOST_AFTER,
            )
        )
    while reader.state in LIVE_STATES and reader.status.control_id < number:
        if time.monotonic() > deadline:
            print_error(
                tr(
                    "run '{name}' has not answered for {seconds:.0f} s; the command stays in control.json",
                    name=reader.name,
                    seconds=ANSWER_TIMEOUT,
                )
            )
            return ExitCode.FAILED
        time.sleep(POLL_INTERVAL)
    while command is RunCommand.STOP and reader.state in LIVE_STATES and time.monotonic() < deadline:
        time.sleep(POLL_INTERVAL)
    state, step = reader.state, reader.status.step
    record = {"run": reader.name, "command": command.value, "id": number, "state": state, "step": step}
    text = tr("{name}: {state} at step {step:,}", name=reader.name, state=tr(state), step=step)
    print_result(record, text, as_json=json)
    return ExitCode.DONE
