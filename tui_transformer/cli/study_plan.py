"""A study before it runs: the request checked against a started study, its cells, cost and plan in words."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.clean import clean_line
from engine.config.keys import diff
from engine.lints import lint
from engine.runs.lineage import ARROW, INIT_FROM
from tui_transformer.cli.output import answer, emit, print_columns, warn
from tui_transformer.cli.study_progress import cell_record
from tui_transformer.lab.formatting import about, memory, short
from tui_transformer.lab.studies.plan import Plan, measured
from tui_transformer.lab.studies.record import (
    THREADS,
    CellStatus,
    directories,
    gone_on_with,
    look_at_all,
    recorded,
    trained_seconds,
)
from tui_transformer.lab.studies.study import Cell, Change, Study

MOST_SHOWN = 10  # seeds


@dataclass(frozen=True)
class RunOptions:
    device: str  # `auto`, or comma-separated devices
    jobs: int | None  # cells at a time; None for what the machine can bear
    failed: str  # what to do with failed cells: "retry", "skip", or "" to skip them and exit nonzero
    as_json: bool  # one JSON object per line
    runs_dir: Path
    data_dir: Path | None  # searched first for named corpora


@dataclass(frozen=True)
class ReadyStudy:
    study: Study
    plan: Plan
    cells: Sequence[Cell]
    paths: dict[str, Path]
    standings: Sequence[CellStatus]


def make_ready(asked: Study, options: RunOptions) -> ReadyStudy:
    """Return the study to run and its plan; every error is raised before a run directory exists."""
    before = recorded(options.runs_dir, asked.name)
    study = asked if before is None else gone_on_with(asked, before)
    if before is not None and len(study.seeds) > len(before.seeds):
        added = len(study.seeds) - len(before.seeds)
        warn(f"{added} more seeds than it was started with: added until something differs, they will make it differ")
    cells = study.cells()
    paths = directories(study.name, cells, options.runs_dir)
    took, todo = dict[str, float](), 0
    for standing in look_at_all(cells, paths):
        if standing.state != "finished":
            todo += 1
        elif seconds := trained_seconds(standing.path):
            took[standing.cell.kind] = seconds
    plan = measured(
        study, device=options.device, jobs=options.jobs, cells=max(1, todo), took=took, data_dir=options.data_dir
    )
    if THREADS not in study.changes and not any(THREADS in variant.changes for variant in study.variants):
        study = replace(study, changes={**study.changes, THREADS: plan.threads})
        cells = study.cells()
    return ReadyStudy(study, plan, cells, paths, look_at_all(cells, paths))


def show_plan(ready: ReadyStudy, options: RunOptions) -> None:
    study, plan = ready.study, ready.plan
    todo = [standing for standing in ready.standings if standing.state != "finished"]
    first = {(cell.variant, cell.stage): cell for cell in ready.cells if cell.seed == study.seeds[0]}
    baseline = first[study.baseline, ""]
    primary = study.primary or baseline.config.evaluation.select
    seconds, disk = plan.seconds_for(todo), plan.disk_for(todo)
    if options.as_json:
        record = {
            "kind": "plan",
            "study": study.name,
            "base": study.base,
            "baseline": study.baseline,
            "primary": primary,
            "seeds": list(study.seeds),
            "runs": len(ready.cells),
            "to_run": len(todo),
            "seconds": seconds,
            "disk_bytes": disk,
            "changes": {name: _changed(baseline, cell) for (name, stage), cell in first.items() if not stage},
            "stages": [stage.name for stage in study.stages],
            "expect": {variant.name: dict(variant.expect) for variant in study.variants},
            "cells": [cell_record(standing) for standing in ready.standings],
            **plan.dump(),
        }
        emit(record)
        return
    for text in dict.fromkeys(f"{found.key}: {found.text}" for c in first.values() for found in lint(c.config)):
        warn(text)
    done = f", {len(ready.cells) - len(todo)} of them finished" if len(todo) < len(ready.cells) else ""
    seeds = ", ".join(map(str, study.seeds)) if len(study.seeds) <= MOST_SHOWN else f"{len(study.seeds)} of them"
    stages = f", in stages {ARROW.join(stage.name for stage in study.stages)}" if study.stages else ""
    variants = f"{len(study.variants)} variants × {len(study.seeds)} seeds ({seeds}){stages}"
    answer(f"study {study.name} on {study.base}: {variants} = {len(ready.cells)} runs{done}", flush=True)
    answer(f"primary measure: {primary}; all measures share one error rate of 5 %", flush=True)
    rows = [("VARIANT", "PARAMETERS", "A RUN", "EXPECTED", "DIFFERS FROM THE BASELINE BY")]
    for cell in first.values():
        price, expect = plan.prices[cell.kind], {} if cell.stage else study.variant(cell.variant).expect
        known = [f"{measure} {outcome}" for measure, outcome in expect.items() if outcome != "unknown"]
        expected = ", ".join(known) or ("unknown" if expect else "")  # leaves out unknowns, unless all are unknown
        name = clean_line(f"{cell.variant}, {cell.stage}" if cell.stage else cell.variant)
        rows.append(
            (name, short(price.parameters), f"≈ {about(price.seconds)}", expected, _differs(cell, baseline, first))
        )
    print_columns(rows)
    if not todo:
        return
    at_once = f"{plan.jobs} at a time, {plan.threads} thread{'s' * (plan.threads > 1)} each"
    cost = f"≈ {about(seconds)} and {memory(disk)} of disk"
    answer(f"{len(todo)} to run on {', '.join(plan.devices)}, {at_once}: {cost}", flush=True)
    runs_dir = options.runs_dir.resolve()
    place = next(path for path in (runs_dir, *runs_dir.parents) if path.exists())
    free = shutil.disk_usage(place).free
    if disk > free:
        warn(f"the disk of {place} has {memory(free)} free; runs wait when it is full")


def _differs(cell: Cell, baseline: Cell, first: Mapping[tuple[str, str], Cell]) -> str:
    if cell.variant == baseline.variant:
        return "of the baseline" if cell.stage else "the baseline"
    other = first.get((baseline.variant, cell.stage))
    if other is None:
        return f"a stage that {baseline.variant} has not"
    found = []
    if cell.begins_with != other.begins_with:
        found.append(f"starts from {cell.begins_with}" if cell.after else "starts from weights of its own")
    for key, (_, value) in _changed(other, cell).items():
        words = "unset" if value is None else clean_line(json.dumps(value, ensure_ascii=False))
        found.append(f"{key} = {words}")
    return ", ".join(found)


def _changed(baseline: Cell, cell: Cell) -> dict[str, Change]:
    """The settings that differ; a run's name does not show which stage it starts from."""
    staged = baseline.after or cell.after
    found = diff(baseline.config, cell.config)
    return {key: change for key, change in found.items() if not (staged and key == INIT_FROM)}
