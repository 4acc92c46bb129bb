"""`ablate`: run a study from plan to last cell; after a stop or kill, the same command resumes it."""

import json as json_text
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from engine.base.clean import clean_line
from engine.base.command_line import DEFAULT_RUNS_DIR, command_line, current_command_line
from engine.base.errors import InputError, comma_separated, process_start_error, write_error
from engine.base.language import Message, tr, trn
from engine.base.plain_files import read_regular_file
from engine.config.keys import diff
from engine.config.lints import lint
from engine.runs.files import write_atomic
from engine.runs.lineage import ARROW, INIT_FROM
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import (
    Corpus,
    DataDir,
    Json,
    PresetName,
    RunsDir,
    Set,
    SlurmOptions,
    preset_names,
    study_names,
)
from tui_transformer.cli.output import (
    ExitCode,
    is_terminal,
    print_answer,
    print_columns,
    print_error,
    print_info,
    print_json,
    print_result,
    setting_text,
    show_progress,
    warn,
)
from tui_transformer.cli.run.run import handle_signals
from tui_transformer.cli.work.study_progress import StudyProgress, cell_record, progress_listener
from tui_transformer.cli.work.workers import (
    LOCAL,
    configured_and_typed_slurm_options,
    require_known_launcher_options,
    show,
    start,
)
from tui_transformer.lab.analysis.detail import study_text
from tui_transformer.lab.analysis.entry import LOSS, read_entry
from tui_transformer.lab.analysis.folder import read_study_file
from tui_transformer.lab.analysis.power import power_sentence, similar_studies_sd
from tui_transformer.lab.analysis.statistics import detectable_difference
from tui_transformer.lab.formatting import memory, rough_duration, si_number
from tui_transformer.lab.records.run_states import status_text
from tui_transformer.lab.work.arguments import StudyArgs, resumed_study
from tui_transformer.lab.work.cells import (
    ABSENT,
    SKIPPED,
    CellStatus,
    cell_folders,
    cell_statuses,
    finished_run_wall_seconds,
)
from tui_transformer.lab.work.launchers import Workers
from tui_transformer.lab.work.logs import last_log_line
from tui_transformer.lab.work.plan import Plan, PlanRequest, make_plan_in_subprocess, time_steps_and_plan
from tui_transformer.lab.work.processes import start_detached
from tui_transformer.lab.work.runner import Runner
from tui_transformer.lab.work.runner_lock import be_only_runner, has_runner
from tui_transformer.lab.work.study import (
    FEWER,
    LONG_SECONDS,
    THREADS,
    Change,
    Study,
    StudyCell,
    read_started_study,
    read_study,
    shipped_studies,
    write_study,
)
from tui_transformer.lab.work.study_files import stop_file, study_file, study_lock

MOST_PLANNED = 2**26  # bytes of a plan
MOST_SHOWN = 10  # seeds


@dataclass(frozen=True)
class RunOptions:
    device: str  # `auto`, or comma-separated devices
    jobs: int | None  # cells at a time; None: as many as the machine can take
    failed: str  # what to do with failed cells: "retry", "skip", or "" to skip them and exit nonzero
    as_json: bool  # one JSON object per line
    runs_dir: Path
    data_dir: Path | None  # searched first for named corpora
    workers: Workers | None = None  # started elsewhere, in place of a runner here
    plan: Path | None = None  # of the same study, measured before: it is not timed again


@command(20)
@examples(
    {
        "ablate --study attention --on demo --seeds 5": "Run a built-in study at demo size.",
        "ablate --preset demo --vary model.n_heads=1,2,4 --seeds 5": "Vary one setting.",
        "ablate --study attention --on demo --dry-run": "Show only the plan and its cost.",
    }
)
def ablate(
    study: Annotated[
        str | None,
        typer.Option("--study", help="A study: a NAME from --list, or a TOML file.", autocompletion=study_names),
    ] = None,
    preset: PresetName = None,
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", help="A setting to vary: model.n_heads=1,2,4,8; repeat for a grid."),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option("--on", help="Another base for the variants, e.g. demo.", autocompletion=preset_names),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option("--seeds", help="3 means seeds 1, 2 and 3; 1,5,9 means exactly those.")
    ] = None,
    set_: Set = None,
    corpus: Corpus = None,
    name: Annotated[str | None, typer.Option("--name", help="The study's name; its runs' names start with it.")] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu, or several devices: cuda:0,cuda:1.")] = "auto",
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, max=256, help="Runs to train at once.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the plan: runs, time, disk, differences.")
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Retry the runs that failed.")] = False,
    skip_failed: Annotated[
        bool, typer.Option("--skip-failed", help="Don't count failed runs as a failure of the study.")
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Run in the background and return at once.")] = False,
    via: Annotated[str, typer.Option("--via", help="What starts the runs: local, slurm, ray or ssh.")] = LOCAL,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="With --via slurm or ray: how many workers to start.")
    ] = None,
    slurm: SlurmOptions = None,
    hosts: Annotated[
        str | None, typer.Option("--hosts", help="With --via ssh: the machines, e.g. node1,node2.")
    ] = None,
    address: Annotated[
        str | None, typer.Option("--address", help="With --via ray: cluster address; defaults to this machine.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the built-in studies.")] = False,
    plan_file: Annotated[Path | None, typer.Option("--plan", hidden=True)] = None,
    json: Json = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
    data_dir: DataDir = None,
) -> int:
    """Train variants of one base with several seeds. To continue an interrupted study, run the same command again."""
    if list_:
        _list(as_json=json)
        return ExitCode.DONE
    if retry_failed and skip_failed:
        raise InputError(Message("--retry-failed and --skip-failed cannot be combined"))
    failed = "retry" if retry_failed else "skip" if skip_failed else ""
    own = {"--jobs": jobs, "--skip-failed": skip_failed, "--detach": detach}
    require_known_launcher_options(
        via, own | {"--workers": workers, "--slurm": slurm, "--hosts": hosts, "--address": address}
    )
    asked = StudyArgs(study, preset, tuple(vary or ()), on, seeds, tuple(set_ or ()), corpus, name).resolve(runs_dir)
    elsewhere = None
    if via != LOCAL:
        more = (
            configured_and_typed_slurm_options(slurm)
            if via == "slurm"
            else tuple(filter(None, (hosts or address or "").split(",")))
        )
        count = len(more) if via == "ssh" else workers or 1
        elsewhere = Workers(via, asked.name, runs_dir, data_dir, device, count, retry_failed, more)
    options = RunOptions(device, jobs, failed, json, runs_dir, data_dir, elsewhere, plan_file)
    busy = tr(
        "study '{name}' is being run by another process in {runs_dir}; wait for it, or use a different --name",
        name=asked.name,
        runs_dir=runs_dir,
    )
    with nullcontext() if dry_run else be_only_runner(study_lock(runs_dir, asked.name), busy):
        with ExitStack() as progress:
            progress.enter_context(show_progress(tr("checking each variant")))
            shown: list[Study] = []

            def checked(study: Study, plan: Plan, statuses: Sequence[CellStatus]) -> None:
                progress.close()
                if not json and shown != [study]:
                    _show_plan(study, plan, statuses, options, again=bool(shown))
                shown[:] = [study]
                progress.enter_context(show_progress(tr("timing steps of the variants")))

            ready, plan, statuses = _make_ready(asked, options, checked)
        (_print_plan_record if json else _show_cost)(ready, plan, statuses, options)
        if elsewhere is not None:
            left = [status for status in statuses if status.verb != "done"]
            if not retry_failed and all(status.verb == "failed" for status in left):
                if left:
                    said = trn(
                        "{n} run failed; --retry-failed retries it",
                        "{n} runs failed; --retry-failed retries them",
                        len(left),
                    )
                    print_error(said)
                return ExitCode.FAILED if left else ExitCode.DONE
            show(elsewhere, as_json=json)
        if dry_run:
            return ExitCode.DONE
        write_study(ready, runs_dir)
        if elsewhere is None and not detach:
            return _run(ready, plan, statuses, options)
        stop_file(runs_dir, ready.name).unlink(missing_ok=True)  # it stopped earlier workers
    return _detach(ready.name, plan, options) if elsewhere is None else start(elsewhere, as_json=json)


def _list(*, as_json: bool) -> None:
    rows = [(tr("STUDY"), tr("BASE"), tr("VARIANTS"), tr("QUESTION"))]
    for name, path in shipped_studies().items():
        study = read_study(path)
        rows.append((name, study.base, str(len(study.variants)), tr(study.description)))
        if as_json:
            variants = [variant.name for variant in study.variants]
            print_json({"name": study.name, "base": study.base, "variants": variants, "description": study.description})
    if not as_json:
        print_columns(rows)


def _make_ready(
    asked: Study, options: RunOptions, checked: Callable[[Study, Plan, Sequence[CellStatus]], None]
) -> tuple[Study, Plan, list[CellStatus]]:
    """Return the study to run, its plan and its cells' states; every error is raised before a run directory exists.

    `checked` is given them before steps are timed, and again at the end: the number of seeds may depend on the time.
    """
    before = read_started_study(options.runs_dir, asked.name)
    study = asked if before is None else resumed_study(asked, before)
    if before is not None and len(study.seeds) > len(before.seeds):
        added = len(study.seeds) - len(before.seeds)
        warn(
            trn(
                "{n} more seed than the study started with: keep adding seeds until something differs, and "
                "something will",
                "{n} more seeds than the study started with: keep adding seeds until something differs, and "
                "something will",
                added,
            )
        )
    cells = study.cells()
    paths = cell_folders(study.name, cells, options.runs_dir)
    took, todo = dict[str, float](), 0
    statuses = cell_statuses(cells, paths)
    for status in statuses:
        if status.state != "finished":
            todo += 1
        elif seconds := finished_run_wall_seconds(status.path):
            took[status.cell.name_without_seed] = seconds
    chosen = THREADS in study.changes or any(THREADS in variant.changes for variant in study.variants)
    if options.workers is not None and not chosen:  # what they will be given is unknown: the least
        study, chosen = replace(study, changes={**study.changes, THREADS: 1}), True
        cells = study.cells()
        statuses = cell_statuses(cells, paths)
    device = options.device
    if options.workers is not None and device != "cpu":
        device = "auto"  # the workers' need not be here
    request = PlanRequest(study, device, options.jobs, max(1, todo), took, _read_plan(options.plan))
    plan = make_plan_in_subprocess(request, options.data_dir, lambda plan: checked(study, plan, statuses))
    if options.workers is not None:
        plan = plan.model_copy(update={"devices": (options.workers.via,), "jobs": options.workers.count})
    if before is None and not study.seeds_given and plan.seconds_for(statuses) > LONG_SECONDS:
        warn(tr("{n} seeds would take over an hour; --seeds {n} trains them anyway", n=len(study.seeds)))
        study = replace(study, seeds=FEWER)
        statuses = [status for status in statuses if status.cell.seed in FEWER]
    checked(study, plan, statuses)
    if not chosen:
        study = replace(study, changes={**study.changes, THREADS: plan.threads})
        kept = {status.cell.name for status in statuses}
        statuses = [one for one in cell_statuses(study.cells(), paths) if one.cell.name in kept]
    return study, plan, statuses


def _read_plan(file: Path | None) -> Plan:
    """Read an earlier plan; an empty one if there is none, or it cannot be read."""
    try:
        return Plan.read(json_text.loads(read_regular_file(file, MOST_PLANNED))) if file is not None else Plan()
    except (OSError, ValueError, RecursionError):
        return Plan()


def _print_plan_record(study: Study, plan: Plan, statuses: Sequence[CellStatus], options: RunOptions) -> None:
    todo = [status for status in statuses if status.state != "finished"]
    first, baseline = _first_cells(study, statuses)
    primary, power = _primary_and_power(study, baseline, options)
    size = len(study.seeds), len(study.variants)
    record = {
        "kind": "plan",
        "study": study.name,
        "base": study.base,
        "baseline": study.baseline,
        "primary": primary,
        "seeds": list(study.seeds),
        "detectable_sd": detectable_difference(*size) if size[0] > 1 else None,
        "power": power,
        "runs": len(statuses),
        "to_run": len(todo),
        "seconds": plan.seconds_for(todo),
        "disk_bytes": plan.disk_for(todo),
        "changes": {name: _changed(baseline, cell) for (name, stage), cell in first.items() if not stage},
        "stages": [stage.name for stage in study.stages],
        "expect": {variant.name: dict(variant.expect) for variant in study.variants},
        "cells": [cell_record(status) for status in statuses],
        **plan.dump(),
    }
    print_json(record)


def _first_cells(study: Study, statuses: Sequence[CellStatus]) -> tuple[dict[tuple[str, str], StudyCell], StudyCell]:
    """Return the cells of the first seed, by variant and stage, and the baseline's."""
    cells = (status.cell for status in statuses)
    first = {(cell.variant, cell.stage): cell for cell in cells if cell.seed == study.seeds[0]}
    return first, first[study.baseline, ""]


def _primary_and_power(study: Study, baseline: StudyCell, options: RunOptions) -> tuple[str, str]:
    """Return the primary measure, and a sentence on how large a difference in it the study can detect."""
    primary = study.primary or baseline.config.evaluation.select
    sd = similar_studies_sd(options.runs_dir, baseline.config) if primary == LOSS.key else None
    return primary, tr(power_sentence(len(study.seeds), len(study.variants), sd))


def _show_plan(study: Study, plan: Plan, statuses: Sequence[CellStatus], options: RunOptions, *, again: bool) -> None:
    """Print how many runs there are and what they can show; unless `again`, also the variants, with warnings."""
    first, baseline = _first_cells(study, statuses)
    primary, power = _primary_and_power(study, baseline, options)
    todo = sum(status.state != "finished" for status in statuses)
    done = tr(", {n} of them finished", n=len(statuses) - todo) if todo < len(statuses) else ""
    n = len(study.seeds)
    seeds = comma_separated(map(str, study.seeds)) if n <= MOST_SHOWN else tr("{n} in total", n=n)
    stages = tr(", in stages {value}", value=ARROW.join(stage.name for stage in study.stages)) if study.stages else ""
    print_answer(
        tr(
            "study {name} on {base}: {variants} × {n} ({seeds}){stages} = {runs}{done}",
            name=study.name,
            base=study.base,
            variants=trn("{n} variant", "{n} variants", len(study.variants)),
            n=trn("{n} seed", "{n} seeds", len(study.seeds)),
            seeds=seeds,
            stages=stages,
            runs=trn("{n} run", "{n} runs", len(statuses)),
            done=done,
        ),
        flush=True,
    )
    print_answer(
        tr("primary measure: {primary}; all measures share one error rate of 5 %", primary=tr(primary)), flush=True
    )
    if power:
        print_answer(power, flush=True)
    if again:
        return
    expectations = {variant.name: variant.expect for variant in study.variants}
    rows = [(tr("VARIANT"), tr("PARAMETERS"), tr("EXPECTED"), tr("DIFFERS FROM THE BASELINE BY"))]
    for cell in first.values():
        expect = {} if cell.stage else expectations[cell.variant]
        known = [f"{measure} {tr(outcome)}" for measure, outcome in expect.items() if outcome != "unknown"]
        # Leaves out unknowns, unless all are unknown.
        expected = comma_separated(known) or (tr("unknown") if expect else "")
        parameters = si_number(plan.prices[cell.name_without_seed].parameters)
        name = clean_line(f"{cell.variant}, {cell.stage}" if cell.stage else cell.variant)
        rows.append((name, parameters, expected, _differs(cell, baseline, first)))
    print_columns(rows)
    sys.stdout.flush()
    for text in dict.fromkeys(tr(found.message) for c in first.values() for found in lint(c.config)):
        warn(text)


def _show_cost(study: Study, plan: Plan, statuses: Sequence[CellStatus], options: RunOptions) -> None:
    """Print how long a run of each variant takes, and what is left to run."""
    alike: dict[tuple[str, float], list[str]] = {}  # a row for each time that was measured
    for cell in _first_cells(study, statuses)[0].values():
        price = plan.prices[cell.name_without_seed]
        key = f"≈ {rough_duration(price.seconds)}", price.seconds if price.measured else 0.0
        alike.setdefault(key, []).append(clean_line(cell.name_without_seed))
    rows = [(tr("PER RUN"), tr("VARIANTS"))]
    for (about, _), names in alike.items():
        some = names if len(names) <= MOST_SHOWN else [names[0], "…", names[-1]]
        rows.append((about, comma_separated(some)))
    print_columns(rows)
    todo = [status for status in statuses if status.state != "finished"]
    if not todo:
        return
    disk = plan.disk_for(todo)
    at_once = trn(
        "{jobs} at a time, {n} thread each", "{jobs} at a time, {n} threads each", plan.threads, jobs=plan.jobs
    )
    cost = tr("≈ {about} and {memory} of disk", about=rough_duration(plan.seconds_for(todo)), memory=memory(disk))
    print_answer(
        tr(
            "{runs} to run on {devices}, {at_once}: {cost}",
            runs=len(todo),
            devices=comma_separated(plan.devices),
            at_once=at_once,
            cost=cost,
        ),
        flush=True,
    )
    runs_dir = options.runs_dir.resolve()
    place = next(path for path in (runs_dir, *runs_dir.parents) if path.exists())
    free = shutil.disk_usage(place).free
    if disk > free:
        warn(
            tr(
                "the disk holding {place} has only {free} free; runs wait while it is full",
                place=place,
                free=memory(free),
            )
        )


def _differs(cell: StudyCell, baseline: StudyCell, first: Mapping[tuple[str, str], StudyCell]) -> str:
    if cell.variant == baseline.variant:
        return tr("of the baseline") if cell.stage else tr("the baseline")
    other = first.get((baseline.variant, cell.stage))
    if other is None:
        return tr("a stage that {variant} does not have", variant=baseline.variant)
    found = []
    if cell.parent_stage != other.parent_stage:
        origin = tr("starts from {origin}", origin=cell.parent_stage)
        found.append(origin if cell.parent_cell else tr("starts from fresh weights"))
    for key, (_, value) in _changed(other, cell).items():
        found.append(f"{key} = {setting_text(value)}")
    return comma_separated(found)


def _changed(baseline: StudyCell, cell: StudyCell) -> dict[str, Change]:
    """Return the settings that differ; which run a stage starts from is not one."""
    staged = baseline.parent_cell or cell.parent_cell
    found = diff(baseline.config, cell.config)
    return {key: change for key, change in found.items() if not (staged and key == INIT_FROM)}


def _detach(name: str, plan: Plan, options: RunOptions) -> int:
    runs_dir = options.runs_dir
    file, log = study_file(runs_dir, name).resolve(), runs_dir / f".{name}.study.log"
    planned = runs_dir.resolve() / f".{name}.study.plan"
    try:
        write_atomic(planned, json_text.dumps(plan.dump()))
    except OSError as error:
        raise write_error(tr("cannot write {filename}", filename=error.filename or planned), error) from None
    words = ["ablate", "--study", str(file), "--device", options.device, "--plan", str(planned)]
    words += ["--jobs", str(plan.jobs), "--runs-dir", str(runs_dir.resolve())]
    words += [f"--{options.failed}-failed"] if options.failed else []
    words += ["--data-dir", str(options.data_dir.resolve())] if options.data_dir is not None else []
    try:
        process = start_detached(log, *words)
    except OSError as error:
        raise process_start_error(error) from None
    while process.poll() is None and not has_runner(study_lock(runs_dir, name)):
        time.sleep(0.05)
    if process.poll() not in (None, ExitCode.DONE, ExitCode.FAILED):  # these may mean that nothing was left to do
        why = tr(last_log_line(log))
        raise InputError(Message("study '{name}' did not start: {last_words_in}", name=name, last_words_in=why))
    record = {"kind": "study", "name": name, "pid": process.pid, "state": "running"}
    shown = command_line("runs", runs_dir=runs_dir)
    text = tr(
        "{name} is running in the background (process {pid}); {shown} shows its progress",
        name=name,
        pid=process.pid,
        shown=shown,
    )
    print_result(record, text, as_json=options.as_json)
    return ExitCode.DONE


@command(30, hidden=True)
def measure_study(data_dir: DataDir = None) -> None:
    """Plan the study read from stdin; started by `ablate`."""
    # Started by `tui_transformer.lab.work.plan`: reads a study on stdin, writes two plans to stdout as JSON lines:
    # one once everything is checked, one once steps are timed.
    tell: Callable[[Plan], None] = lambda plan: print_json(plan.dump())
    tell(time_steps_and_plan(PlanRequest.from_json(sys.stdin.read()), data_dir, tell))


def _run(study: Study, plan: Plan, before: Sequence[CellStatus], options: RunOptions) -> int:
    """Run a study; the first signal asks the cells to save a checkpoint and stop."""
    with progress_listener(StudyProgress(plan, before), as_json=options.as_json) as shown:
        runner = Runner(
            study.name,
            [status.cell for status in before],
            {status.cell.name: status.path for status in before},
            shown,
            options.runs_dir,
            options.data_dir,
            plan.devices,
            plan.jobs,
            retry_failed=options.failed == "retry",
            command=current_command_line(),
        )
        with handle_signals(lambda number: runner.stop()) as heard:
            statuses = runner.run()
    undone = [status for status in statuses if status.state != "finished"]
    failed = [status for status in undone if status.state in ("failed", SKIPPED)]
    done = len(statuses) - len(undone)
    if options.as_json:
        state = "finished" if not undone else "interrupted" if heard else "unfinished"
        counts = {"runs": len(statuses), "finished": done, "failed": len(failed)}
        print_json({"kind": "study", "name": study.name, "state": state, **counts})
    if heard:
        words: list[str | Path] = ["ablate", "--study", study_file(options.runs_dir, study.name)]
        words += ["--jobs", str(options.jobs)] if options.jobs is not None else []
        again = command_line(*words, runs_dir=options.runs_dir, data_dir=options.data_dir, device=options.device)
        print_info(
            tr(
                "{signal}: {done} of {total} runs are done; to continue, run the same command again, or {again}",
                signal=signal.Signals(heard[0]).name,
                done=done,
                total=len(statuses),
                again=again,
            )
        )
        return 128 + heard[0]
    for status in undone:
        more = ""  # why a run is not done, if it does not say
        if not status.reason and status.state != "stopped":
            gone = status.state == ABSENT
            more = "; " + (tr("its folder is gone") if gone else tr(last_log_line(status.path / "log.txt")))
        print_error(
            tr("run '{name}': {standing}{more}", name=status.cell.name, standing=status_text(status), more=more)
        )
    if failed and options.failed != "skip":
        print_info(tr("--retry-failed retries the failed runs; --skip-failed leaves them out for good"))
    if not options.as_json:
        # What the runs so far say about the variants, as in `compare`.
        entries = [read_entry(status.path) for status in statuses if status.state not in (ABSENT, SKIPPED)]
        file = read_study_file(study_file(options.runs_dir, study.name))
        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
        sys.stdout.write(study_text(entries, file, width=width) + "\n")
        table = command_line("compare", study.name, runs_dir=options.runs_dir)
        print_answer(
            tr(
                "{done} of {total} runs done; to compare them: {command}",
                done=done,
                total=len(statuses),
                command=table,
            )
        )
    skipped = options.failed == "skip" and len(failed) == len(undone)
    return ExitCode.DONE if not undone or skipped else ExitCode.FAILED
