"""`ablate`: a study from its plan to its last cell; stopped or killed, the same command goes on with it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from engine.command_line import as_typed, command_line
from engine.errors import InputError, no_process
from tui_transformer.cli.columns import print_columns
from tui_transformer.cli.exit_codes import ExitCode
from tui_transformer.cli.output import answer, complain, emit, is_terminal, say
from tui_transformer.cli.run import loading
from tui_transformer.cli.study_plan import show_plan
from tui_transformer.cli.study_progress import Board, Json, Lines, Screen, how_it_stands, screen
from tui_transformer.cli.study_ready import How, Ready, make_ready
from tui_transformer.lab.analysis.detail import study_text
from tui_transformer.lab.analysis.entry import read_entry
from tui_transformer.lab.analysis.folder import read_study_file
from tui_transformer.lab.launch.logs import last_words_in
from tui_transformer.lab.studies.arguments import StudyArgs
from tui_transformer.lab.studies.record import ABSENT, SKIPPED, CellStatus, is_run, only_runner, study_file, write
from tui_transformer.lab.studies.runner import Audience, Orders, Runner
from tui_transformer.lab.studies.study import Study, read_study, shipped_studies

ASKED = {"study", "device", "jobs", "cells", "took"}  # of `measure_command`
STARTS = 60.0  # seconds for a detached runner to take its study


def list_command(*, as_json: bool) -> int:
    """The shipped studies, a line each."""
    studies = {name: read_study(path) for name, path in shipped_studies().items()}
    if as_json:
        for study in studies.values():
            variants = [variant.name for variant in study.variants]
            emit({"name": study.name, "base": study.base, "variants": variants, "description": study.description})
        return ExitCode.DONE
    rows = [(name, study.base, str(len(study.variants)), study.description) for name, study in studies.items()]
    print_columns([("STUDY", "BASE", "VARIANTS", "WHAT IT ASKS"), *rows])
    return ExitCode.DONE


def plan_command(asked: StudyArgs, how: How) -> int:
    """`--dry-run`: print what a study would be and cost; nothing is written."""
    show_plan(_measured(asked.resolve(how.runs_dir), how), how)
    return ExitCode.DONE


def ablate_command(asked: StudyArgs, how: How) -> int:
    """Run a study, or go on with one."""
    study = asked.resolve(how.runs_dir)
    with only_runner(how.runs_dir, study.name):
        ready = _measured(study, how)
        show_plan(ready, how)
        write(ready.study, how.runs_dir)
        return _run(ready, how)


def detached_command(asked: StudyArgs, how: How) -> int:
    """`--detach`: plan a study here, and leave it to a process of its own."""
    study = asked.resolve(how.runs_dir)
    with only_runner(how.runs_dir, study.name):
        ready = _measured(study, how)
        show_plan(ready, how)
        write(ready.study, how.runs_dir)
    file, log = study_file(how.runs_dir, study.name).resolve(), how.runs_dir / f".{study.name}.study.log"
    command = [sys.executable, "-m", "tui_transformer", "ablate", "--study", str(file), "--device", how.device]
    command += ["--jobs", str(ready.plan.jobs), "--runs-dir", str(how.runs_dir.resolve())]
    command += [f"--{how.failed}-failed"] if how.failed else []
    command += ["--data-dir", str(how.data_dir.resolve())] if how.data_dir is not None else []
    try:
        with log.open("ab") as out:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
    except OSError as error:
        raise no_process(error) from None
    deadline = time.monotonic() + STARTS
    while not is_run(how.runs_dir, study.name):
        if process.poll() in (ExitCode.DONE, ExitCode.FAILED):  # there was nothing to wait for
            break
        if process.poll() is not None or time.monotonic() > deadline:
            raise InputError(f"study '{study.name}' did not start: {last_words_in(log)}")
        time.sleep(0.05)
    if how.as_json:
        emit({"kind": "study", "name": study.name, "pid": process.pid, "state": "running"})
    else:
        shown = command_line("runs", runs_dir=how.runs_dir)
        answer(f"{study.name} runs in the background (process {process.pid}); {shown} shows its progress")
    return ExitCode.DONE


def measure_command(data_dir: Path | None) -> int:
    """What `tui_transformer.lab.studies.plan` starts: a plan for the study on stdin, as a line of JSON on stdout."""
    from tui_transformer.lab.studies.plan import plan_of

    try:
        asked = json.loads(sys.stdin.read())
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict) or asked.keys() != ASKED or not isinstance(asked["study"], str):
        raise InputError("measure-study: is for the studio alone, which writes a study on its standard input")
    with tempfile.NamedTemporaryFile("w", suffix=".study.toml", encoding="utf-8", delete=False) as file:
        file.write(asked.pop("study"))
    try:
        study = read_study(Path(file.name))
    finally:
        Path(file.name).unlink()
    emit(plan_of(study, **asked, data_dir=data_dir).to_json())
    return ExitCode.DONE


def _measured(study: Study, how: How) -> Ready:
    with loading("measuring what a step of each variant takes"):
        return make_ready(study, how)


def _run(ready: Ready, how: How) -> int:
    study, plan = ready.study, ready.plan
    command = as_typed()
    retry = how.failed == "retry"
    orders = Orders(study.name, how.runs_dir, how.data_dir, plan.devices, plan.jobs, retry, command)
    board = Board(plan, ready.standings)
    with _audience(board, how) as audience:
        runner = Runner(orders, ready.cells, ready.paths, audience)
        with _listening(runner) as heard:
            standings = runner.run()
    return _ended(study, standings, heard, how)


@contextmanager
def _audience(board: Board, how: How) -> Iterator[Audience]:
    if how.as_json:
        yield Json(board)
    elif is_terminal(sys.stderr):
        with screen() as live:
            yield Screen(board, live)
    else:
        yield Lines(board)


def _ended(study: Study, standings: Sequence[CellStatus], heard: Sequence[int], how: How) -> int:
    """Say how the study stands; the exit code."""
    undone = [standing for standing in standings if standing.state != "finished"]
    failed = [standing for standing in undone if standing.state in ("failed", SKIPPED)]
    if how.as_json:
        state = "finished" if not undone else "interrupted" if heard else "unfinished"
        counts = {"runs": len(standings), "finished": len(standings) - len(undone), "failed": len(failed)}
        emit({"kind": "study", "name": study.name, "state": state, **counts})
    if heard:
        words: list[str | Path] = ["ablate", "--study", study_file(how.runs_dir, study.name)]
        words += ["--jobs", str(how.jobs)] if how.jobs is not None else []
        again = command_line(*words, runs_dir=how.runs_dir, data_dir=how.data_dir, device=how.device)
        say(
            f"{signal.Signals(heard[0]).name}: {len(standings) - len(undone)} of {len(standings)} runs are done; "
            f"the same command continues it, or {again}"
        )
        return 128 + heard[0]
    for standing in undone:
        complain(f"run '{standing.cell.name}': {how_it_stands(standing)}{_more(standing)}")
    if failed and how.failed != "skip":
        say("--retry-failed takes the failed ones up again, --skip-failed leaves them out for good")
    if not how.as_json:
        _print_table(study, standings, how)
        table = command_line("compare", study.name, runs_dir=how.runs_dir)
        answer(f"{len(standings) - len(undone)} of {len(standings)} runs done; {table}")
    skipped = how.failed == "skip" and len(failed) == len(undone)
    return ExitCode.DONE if not undone or skipped else ExitCode.FAILED


def _print_table(study: Study, standings: Sequence[CellStatus], how: How) -> None:
    """What the runs so far say of the variants, as `compare` prints it."""
    entries = [read_entry(standing.path) for standing in standings if standing.state not in (ABSENT, SKIPPED)]
    width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
    sys.stdout.write(study_text(entries, read_study_file(study_file(how.runs_dir, study.name)), width=width) + "\n")


def _more(standing: CellStatus) -> str:
    """Why a run is not done, where it does not say so itself."""
    if standing.reason or standing.state == "stopped":
        return ""
    return "; its folder is gone" if standing.state == ABSENT else f"; {last_words_in(standing.path / 'log.txt')}"


@contextmanager
def _listening(runner: Runner) -> Iterator[list[int]]:
    """The first signal asks the cells for a checkpoint and their end, a second ctrl-c leaves at once; what came."""
    heard: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if heard and number == signal.SIGINT:
            os._exit(128 + number)
        heard.append(number)
        runner.stop()

    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may set handlers
    before = {n: signal.signal(n, stop) for n in numbers if signal.getsignal(n) is not signal.SIG_IGN}
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
