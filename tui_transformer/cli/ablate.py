"""`ablate`: run a study from plan to last cell; after a stop or kill, the same command resumes it."""

import json as json_text
import shutil
import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from engine.command_line import RUNS, as_typed, command_line
from engine.config.toml import parse
from engine.errors import InputError, no_process
from tui_transformer.cli.commands import command
from tui_transformer.cli.options import Corpus, DataDir, Json, PresetName, RunsDir, Set, preset_names, study_names
from tui_transformer.cli.output import ExitCode, answer, complain, emit, is_terminal, loading, print_columns, say
from tui_transformer.cli.run import listening
from tui_transformer.cli.study_plan import ReadyStudy, RunOptions, make_ready, show_plan
from tui_transformer.cli.study_progress import Board, audience, how_it_stands
from tui_transformer.lab.analysis.detail import study_text
from tui_transformer.lab.analysis.entry import read_entry
from tui_transformer.lab.analysis.folder import read_study_file
from tui_transformer.lab.launch.launch import detached
from tui_transformer.lab.launch.logs import last_words_in
from tui_transformer.lab.studies.arguments import StudyArgs
from tui_transformer.lab.studies.record import ABSENT, SKIPPED, is_run, only_runner, study_file, write
from tui_transformer.lab.studies.runner import Runner
from tui_transformer.lab.studies.study import read_study, shipped_studies, study_of

MEASURED = {"study", "device", "jobs", "cells", "took"}  # input of `measure-study`
STARTS = 60.0  # seconds for a detached runner to lock its study


@command(20)
def ablate(
    study: Annotated[
        str | None,
        typer.Option("--study", help="A study: NAME of --list, or a TOML file.", autocompletion=study_names),
    ] = None,
    preset: PresetName = None,
    vary: Annotated[
        list[str] | None, typer.Option("--vary", help="An axis: model.n_heads=1,2,4,8; several: a grid.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option("--on", help="Another base for the variants, e.g. demo.", autocompletion=preset_names),
    ] = None,
    seeds: Annotated[str | None, typer.Option("--seeds", help="3: the seeds 1, 2 and 3; 1,5,9: these.")] = None,
    set_: Set = None,
    corpus: Corpus = None,
    name: Annotated[str | None, typer.Option("--name", help="The study's name, with which its runs' begin.")] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu, or several: cuda:0,cuda:1.")] = "auto",
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, max=256, help="Runs at a time.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only the plan: runs, time, disk, what differs.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Take up again what failed.")] = False,
    skip_failed: Annotated[bool, typer.Option("--skip-failed", help="What failed is no failure of the study.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Run it in a process of its own; returns at once.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="The studies that come with this.")] = False,
    json: Json = False,
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> int:
    """Train variants of one base with several seeds. Stopped or killed, the same command goes on with it."""
    if list_:
        return _list(as_json=json)
    if retry_failed and skip_failed:
        raise InputError("--retry-failed and --skip-failed exclude each other")
    failed = "retry" if retry_failed else "skip" if skip_failed else ""
    options = RunOptions(device, jobs, failed, json, runs_dir, data_dir)
    asked = StudyArgs(study, preset, tuple(vary or ()), on, seeds, tuple(set_ or ()), corpus, name).resolve(runs_dir)
    with nullcontext() if dry_run else only_runner(runs_dir, asked.name):
        with loading("measuring what a step of each variant takes"):
            ready = make_ready(asked, options)
        show_plan(ready, options)
        if dry_run:
            return ExitCode.DONE
        write(ready.study, runs_dir)
        if not detach:
            return _run(ready, options)
    return _detach(ready, options)


def _list(*, as_json: bool) -> int:
    rows = [("STUDY", "BASE", "VARIANTS", "WHAT IT ASKS")]
    for name, path in shipped_studies().items():
        study = read_study(path)
        rows.append((name, study.base, str(len(study.variants)), study.description))
        if as_json:
            variants = [variant.name for variant in study.variants]
            emit({"name": study.name, "base": study.base, "variants": variants, "description": study.description})
    if not as_json:
        print_columns(rows)
    return ExitCode.DONE


def _detach(ready: ReadyStudy, options: RunOptions) -> int:
    name, runs_dir = ready.study.name, options.runs_dir
    file, log = study_file(runs_dir, name).resolve(), runs_dir / f".{name}.study.log"
    words = ["ablate", "--study", str(file), "--device", options.device]
    words += ["--jobs", str(ready.plan.jobs), "--runs-dir", str(runs_dir.resolve())]
    words += [f"--{options.failed}-failed"] if options.failed else []
    words += ["--data-dir", str(options.data_dir.resolve())] if options.data_dir is not None else []
    try:
        process = detached(log, *words)
    except OSError as error:
        raise no_process(error) from None
    deadline = time.monotonic() + STARTS
    while not is_run(runs_dir, name):
        if process.poll() in (ExitCode.DONE, ExitCode.FAILED):  # there was nothing to wait for
            break
        if process.poll() is not None or time.monotonic() > deadline:
            raise InputError(f"study '{name}' did not start: {last_words_in(log)}")
        time.sleep(0.05)
    if options.as_json:
        emit({"kind": "study", "name": name, "pid": process.pid, "state": "running"})
    else:
        shown = command_line("runs", runs_dir=runs_dir)
        answer(f"{name} runs in the background (process {process.pid}); {shown} shows its progress")
    return ExitCode.DONE


@command(30, hidden=True)
def measure_study(data_dir: DataDir = None) -> int:
    """Plan the study on stdin; what `ablate` starts."""
    # Started by `tui_transformer.lab.studies.plan`: reads a study on stdin, writes its plan to stdout, as JSON lines.
    from tui_transformer.lab.studies.plan import plan_of

    try:
        asked = json_text.loads(sys.stdin.read())
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict) or asked.keys() != MEASURED or not isinstance(asked["study"], str):
        raise InputError("measure-study: is for the studio alone, which writes a study on its standard input")
    study = study_of(parse(asked.pop("study").encode(), "study"), Path("study"))
    emit(plan_of(study, **asked, data_dir=data_dir).dump())
    return ExitCode.DONE


def _run(ready: ReadyStudy, options: RunOptions) -> int:
    """Run a study; the first signal asks the cells to save a checkpoint and stop."""
    study, plan = ready.study, ready.plan
    with audience(Board(plan, ready.standings), as_json=options.as_json) as shown:
        runner = Runner(
            *(study.name, ready.cells, ready.paths, shown),
            *(options.runs_dir, options.data_dir, plan.devices, plan.jobs),
            retry_failed=options.failed == "retry",
            command=as_typed(),
        )
        with listening(lambda number: runner.stop()) as heard:
            standings = runner.run()
    undone = [standing for standing in standings if standing.state != "finished"]
    failed = [standing for standing in undone if standing.state in ("failed", SKIPPED)]
    done = len(standings) - len(undone)
    if options.as_json:
        state = "finished" if not undone else "interrupted" if heard else "unfinished"
        counts = {"runs": len(standings), "finished": done, "failed": len(failed)}
        emit({"kind": "study", "name": study.name, "state": state, **counts})
    if heard:
        words: list[str | Path] = ["ablate", "--study", study_file(options.runs_dir, study.name)]
        words += ["--jobs", str(options.jobs)] if options.jobs is not None else []
        again = command_line(*words, runs_dir=options.runs_dir, data_dir=options.data_dir, device=options.device)
        say(
            f"{signal.Signals(heard[0]).name}: {done} of {len(standings)} runs are done; "
            f"the same command continues it, or {again}"
        )
        return 128 + heard[0]
    for standing in undone:
        more = ""  # why a run is not done, if it does not say
        if not standing.reason and standing.state != "stopped":
            gone = standing.state == ABSENT
            more = f"; {'its folder is gone' if gone else last_words_in(standing.path / 'log.txt')}"
        complain(f"run '{standing.cell.name}': {how_it_stands(standing)}{more}")
    if failed and options.failed != "skip":
        say("--retry-failed takes the failed ones up again, --skip-failed leaves them out for good")
    if not options.as_json:
        # What the runs so far say about the variants, as in `compare`.
        entries = [read_entry(standing.path) for standing in standings if standing.state not in (ABSENT, SKIPPED)]
        file = read_study_file(study_file(options.runs_dir, study.name))
        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
        sys.stdout.write(study_text(entries, file, width=width) + "\n")
        table = command_line("compare", study.name, runs_dir=options.runs_dir)
        answer(f"{done} of {len(standings)} runs done; {table}")
    skipped = options.failed == "skip" and len(failed) == len(undone)
    return ExitCode.DONE if not undone or skipped else ExitCode.FAILED
