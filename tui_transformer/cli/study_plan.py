"""A study's plan as people read it, and as JSON."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

from engine.clean import clean_line
from engine.config.keys import diff
from engine.lints import lint
from engine.runs.lineage import ARROW, INIT_FROM
from tui_transformer.cli.columns import print_columns
from tui_transformer.cli.output import answer, emit, warn
from tui_transformer.cli.study_progress import cell_record
from tui_transformer.cli.study_ready import How, Ready
from tui_transformer.lab.formatting import about, memory, short
from tui_transformer.lab.studies.study import Cell, Change, Study

MOST_SHOWN = 10  # seeds


def show_plan(ready: Ready, how: How) -> None:
    """What will be run, what it costs and what is expected, before anything starts."""
    if how.as_json:
        emit(_record(ready))
        return
    study, plan, todo = ready.study, ready.plan, ready.open
    configs = {cell.kind: cell.config for cell in ready.first}
    for text in dict.fromkeys(f"{found.key}: {found.text}" for config in configs.values() for found in lint(config)):
        warn(text)
    done = f", {len(ready.cells) - len(todo)} of them finished" if len(todo) < len(ready.cells) else ""
    seeds = ", ".join(map(str, study.seeds)) if len(study.seeds) <= MOST_SHOWN else f"{len(study.seeds)} of them"
    variants = f"{len(study.variants)} variants × {len(study.seeds)} seeds ({seeds}){_in_stages(study)}"
    answer(f"study {study.name} on {study.base}: {variants} = {len(ready.cells)} runs{done}", flush=True)
    answer(f"primary measure: {primary_of(ready)}; all measures share one error rate of 5 %", flush=True)
    rows = [("VARIANT", "PARAMETERS", "A RUN", "EXPECTED", "DIFFERS FROM THE BASELINE BY")]
    for cell in ready.first:
        price, expected = plan.prices[cell.kind], "" if cell.stage else _expected(study, cell.variant)
        name = clean_line(f"{cell.variant}, {cell.stage}" if cell.stage else cell.variant)
        differs = _differs(cell, ready)
        rows.append((name, short(price.parameters), f"≈ {about(price.seconds)}", expected, differs))
    print_columns(rows)
    if todo:
        _say_cost(ready, how)


def primary_of(ready: Ready) -> str:
    """The study's primary measure: the one it names, else the one its baseline selects checkpoints by."""
    baseline = next(cell for cell in ready.first if cell.variant == ready.study.baseline and not cell.stage)
    return ready.study.primary or baseline.config.evaluation.select


def _say_cost(ready: Ready, how: How) -> None:
    plan, todo = ready.plan, ready.open
    seconds, disk = plan.seconds(todo), plan.disk(todo)
    at_once = f"{plan.jobs} at a time, {plan.threads} thread{'s' * (plan.threads > 1)} each"
    answer(
        f"{len(todo)} to run on {', '.join(plan.devices)}, {at_once}: ≈ {about(seconds)} and {memory(disk)} of disk",
        flush=True,
    )
    runs_dir = how.runs_dir.resolve()
    place = next(path for path in (runs_dir, *runs_dir.parents) if path.exists())
    free = shutil.disk_usage(place).free
    if disk > free:
        warn(f"the disk of {place} has {memory(free)} free; runs wait when it is full")


def _in_stages(study: Study) -> str:
    names = ARROW.join(stage.name for stage in study.stages)
    return f", in stages {names}" if names else ""


def _differs(cell: Cell, ready: Ready) -> str:
    """What a variant, or a stage of one, changes against the baseline's."""
    baseline = ready.study.baseline
    if cell.variant == baseline:
        return "of the baseline" if cell.stage else "the baseline"
    other = next((one for one in ready.first if one.variant == baseline and one.stage == cell.stage), None)
    if other is None:
        return f"a stage that {baseline} has not"
    changes = [f"{key} = {_value(value)}" for key, (_, value) in _changed(other, cell).items()]
    return ", ".join([*_begins(cell, other), *changes])


def _begins(cell: Cell, other: Cell) -> Iterator[str]:
    """Where its first weights come from, where the baseline's come from elsewhere."""
    if cell.begins_with != other.begins_with:
        yield f"starts from {cell.begins_with}" if cell.after else "starts from weights of its own"


def _changed(baseline: Cell, cell: Cell) -> dict[str, Change]:
    """Settings that differ; where a stage starts from another is not said by the name of a run."""
    staged = baseline.after or cell.after
    found = diff(baseline.config, cell.config)
    return {key: change for key, change in found.items() if not (staged and key == INIT_FROM)}


def _expected(study: Study, name: str) -> str:
    """Without what is unknown, unless all is."""
    expect = study.variant(name).expect
    known = [f"{measure} {outcome}" for measure, outcome in expect.items() if outcome != "unknown"]
    return ", ".join(known) or ("unknown" if expect else "")


def _record(ready: Ready) -> dict[str, Any]:
    study, plan, todo = ready.study, ready.plan, ready.open
    baseline = next(cell for cell in ready.first if cell.variant == study.baseline and not cell.stage)
    return {
        "kind": "plan",
        "study": study.name,
        "base": study.base,
        "baseline": study.baseline,
        "primary": primary_of(ready),
        "seeds": list(study.seeds),
        "runs": len(ready.cells),
        "to_run": len(todo),
        "seconds": plan.seconds(todo),
        "disk_bytes": plan.disk(todo),
        "changes": {cell.variant: _changed(baseline, cell) for cell in ready.first if not cell.stage},
        "stages": [stage.name for stage in study.stages],
        "expect": {variant.name: dict(variant.expect) for variant in study.variants},
        "cells": [cell_record(standing) for standing in ready.standings],
        **plan.to_json(),
    }


def _value(value: object) -> str:
    return "unset" if value is None else clean_line(json.dumps(value, ensure_ascii=False))
