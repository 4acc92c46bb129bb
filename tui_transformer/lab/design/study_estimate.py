"""What a study will cost, as far as it is known before it starts. No widget, no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.config.schema import RunConfig
from tui_transformer.lab.design.cost import Characters, cost
from tui_transformer.lab.design.fit import Fit
from tui_transformer.lab.design.study_draft import StudyDraft
from tui_transformer.lab.records.facts import number, table, whole
from tui_transformer.lab.studies.plan import disk_bytes


@dataclass(frozen=True)
class Estimate:
    """Time and disk of a study.

    Args:
        parameters: by variant.
        each: seconds of a run, by variant.
        seconds: of all runs; None while nothing was measured.
        disk: bytes of all runs; None while the vocabulary is not known.
        measured: whether a step of every variant was timed, and not the design's alone.
        at_once: runs at a time.
        threads: of each; 0 where not known.
        devices: they are spread over.
    """

    parameters: Mapping[str, int] = field(default_factory=dict)
    each: Mapping[str, float] = field(default_factory=dict)
    seconds: float | None = None
    disk: int | None = None
    measured: bool = False
    at_once: int = 1
    threads: int = 0
    devices: tuple[str, ...] = ()


def estimated(draft: StudyDraft, fit: Fit | None, characters: Characters | None = None) -> Estimate:
    """From the design's measured step: a variant takes as much longer as its steps have more operations.

    Args:
        draft: the study.
        fit: of the design; without it no time is known.
        characters: of a corpus that had to be read.
    """
    parameters: dict[str, int] = {}
    each: dict[str, float] = {}
    disk: int | None = 0
    design = draft.design.config
    work = _work(design, characters) if design is not None else None
    for line in draft.kept:
        name = line.variant.name
        found = [cost(config, characters) for config in line.configs]
        known = [(config, one) for config, one in zip(line.configs, found, strict=True) if one is not None]
        if not found or len(known) < len(found):
            disk = None
            continue
        parameters[name] = known[-1][1].parameters
        bytes_each = sum(disk_bytes(config, one.parameters) for config, one in known)
        disk = None if disk is None else disk + len(draft.seeds) * bytes_each
        own = [_work(config, characters) for config in line.configs]
        if fit is not None and work and None not in own:
            each[name] = fit.seconds * sum(filter(None, own)) / work
    seconds = len(draft.seeds) * sum(each.values()) if len(each) == len(draft.kept) else None
    devices = (fit.device,) if fit is not None else ()
    return Estimate(parameters, each, seconds, disk, devices=devices)


def _work(config: RunConfig, characters: Characters | None) -> float | None:
    """Operations of a whole run; of one that is counted in epochs, of a token, for its corpus stays the same."""
    found = cost(config, characters)
    if found is None:
        return None
    train = config.train
    if train.epochs is not None:
        return found.flops * train.epochs
    tokens = train.batch_tokens or train.batch_size * train.accumulation * config.window_targets
    return float(found.flops) * tokens * train.steps


def read_estimate(record: Mapping[str, Any]) -> Estimate | None:
    """From the plan that `ablate --dry-run --json` prints; None where it is none."""
    seconds = number(record.get("seconds"))
    if record.get("kind") != "plan" or seconds is None:
        return None
    prices = {name: table(price) for name, price in table(record.get("prices")).items()}
    each = {name: found for name, price in prices.items() if (found := number(price.get("seconds"))) is not None}
    sizes = {name: found for name, price in prices.items() if (found := whole(price.get("parameters")))}
    devices = record.get("devices")
    return Estimate(
        parameters=sizes,
        each=each,
        seconds=seconds,
        disk=whole(record.get("disk_bytes")) or None,
        measured=True,
        at_once=whole(record.get("jobs")) or 1,
        threads=whole(record.get("threads")),
        devices=tuple(map(str, devices)) if isinstance(devices, list) else (),
    )
