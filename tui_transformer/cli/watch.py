"""`watch`: a run's progress from its run directory, wherever it was started."""

from pathlib import Path

from engine.runs.reader import LIVE_STATES, RunReader
from tui_transformer.cli.exit_codes import ExitCode
from tui_transformer.cli.output import complain


def watch_command(run: str, *, as_json: bool, runs_dir: Path) -> int:
    """Follow a live run to its end, then print what came out; leaving does not touch it."""
    from tui_transformer.cli.progress import follow
    from tui_transformer.cli.summary import print_summary

    reader = RunReader.resolve(run, runs_dir)
    if reader.state in LIVE_STATES:
        follow(reader, lambda: reader.state in LIVE_STATES, as_json=as_json)
    if not reader.path.is_dir():
        complain(f"run '{reader.name}' is gone: its folder {reader.path} vanished")
        return ExitCode.FAILED
    state = reader.state
    if state in ("failed", "lost"):
        why = reader.status.reason or "its process is gone"
        again = "" if reader.status.checkpoint else f"; {reader.command('resume')} starts it over"
        complain(f"run '{reader.name}' is {state} at step {reader.status.step:,}: {why}{again}")
        return ExitCode.FAILED
    if state == "unknown":
        complain(f"run '{reader.name}': status.json is missing or damaged; what follows is of its other files")
    print_summary(reader, as_json=as_json)
    return ExitCode.DONE
