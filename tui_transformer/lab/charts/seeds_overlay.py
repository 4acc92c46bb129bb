"""What the charts of the Compare pane draw of variants: means over seeds with intervals, and differences. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tui_transformer.lab.analysis.curves import Band, Group, Metrics, Points, band, difference_band, scored
from tui_transformer.lab.analysis.groups import comparable, other, unit_of, void
from tui_transformer.lab.charts.overlay import NO_METRICS, Drawn, Overlay, Stroke
from tui_transformer.lab.records.badges import badge

EACH = "● zero outside the interval, ○ inside"


@dataclass(frozen=True)
class DrawnGroups:
    """The selected variants with what their runs measured.

    Args:
        groups: by the number of their letter.
        baseline: the variant that differences are to.
        metrics: by run; missing while they are read.
    """

    groups: tuple[tuple[int, Group], ...]
    baseline: Group | None
    metrics: Mapping[Path, Metrics]

    @classmethod
    def of(cls, drawn: Drawn) -> "DrawnGroups":
        """Each run as a variant of its own."""
        own = {entry.path: Group(entry.name, (entry,)) for _, entry in drawn.entries}
        baseline = drawn.baseline
        pinned = None if baseline is None else own.get(baseline.path, Group(baseline.name, (baseline,)))
        return cls(tuple((slot, own[entry.path]) for slot, entry in drawn.entries), pinned, drawn.metrics)

    @property
    def versions(self) -> tuple[object, ...]:
        """Another value whenever something else would be drawn."""
        groups = [*self.groups, *([(-1, self.baseline)] if self.baseline is not None else [])]
        return tuple(
            (slot, group.label, run.path, run.protocol, tuple(run.badges), self.of_run(run.path).version)
            for slot, group in groups
            for run in group.runs
        )

    def of_run(self, run: Path) -> Metrics:
        """What it measured."""
        return self.metrics.get(run, NO_METRICS)

    def points(self, group: Group, axis: str) -> dict[int, Points]:
        """Its validation losses by seed."""
        return {seed: scored(self.of_run(run.path).validation, axis) for seed, run in group.by_seed.items()}


def sign(group: Group, baseline: Group | None) -> str:
    """The badge that makes the loss of one of its runs void, or ≠ where it is another measure than the baseline's."""
    found = next((void(run) for run in group.runs if void(run)), "")
    if found:
        return badge(found).word
    return "≠" if baseline is not None and any(other(run, baseline.runs[0]) for run in group.runs) else ""


def mean_curves(drawn: DrawnGroups, axis: str, *, log: bool) -> Overlay:
    """Every variant's validation loss: its mean over the seeds."""
    found = [(slot, group, band(drawn.points(group, axis))) for slot, group in drawn.groups]
    strokes = tuple(_stroke(slot, group, made, sign(group, drawn.baseline)) for slot, group, made in found)
    lowest = min((y for stroke in strokes for y in (*stroke.curve.y, *stroke.low)), default=0.0)
    return Overlay(
        f"mean validation loss, {unit_of([run for _, group in drawn.groups for run in group.runs])}",
        "mean loss",
        axis,
        strokes,
        waiting=_waiting(drawn, "no evaluation yet"),
        log=log and lowest > 0,
        notes=_notes([(group, made) for _, group, made in found]),
    )


def mean_differences(drawn: DrawnGroups, axis: str) -> Overlay:
    """Every variant minus the baseline, paired by seed at equal steps, where that means anything."""
    baseline = drawn.baseline
    if baseline is None:
        return Overlay("difference to a baseline", "difference", axis, zero=True, waiting="p pins the baseline")
    title = f"validation loss − {baseline.label}'s by seed, {unit_of(baseline.runs)}"
    others = [(slot, group) for slot, group in drawn.groups if group.runs != baseline.runs]
    if not others:
        waiting = "space selects variants to hold against it"
        return Overlay(title, "difference", axis, zero=True, waiting=waiting)
    level, found, reasons = drawn.points(baseline, axis), [], []
    for slot, group in others:
        if not all(comparable(run, pinned) for run in group.runs for pinned in baseline.runs):
            reasons.append(f"{group.label}: not comparable")
            continue
        made = difference_band(drawn.points(group, axis), level)
        if not made.n:
            reasons.append(f"{group.label}: no seed in common with {baseline.label}")
            continue
        found.append((slot, group, made))
    alone = reasons[0] if len(reasons) == 1 else f"none of these can be held against {baseline.label}"
    apart = (EACH,) if any(made.half for *_, made in found) else ()
    return Overlay(
        title,
        "difference",
        axis,
        tuple(_stroke(slot, group, made) for slot, group, made in found),
        zero=True,
        waiting=_waiting(drawn, alone if reasons else "no evaluation yet"),
        notes=(*_notes([(group, made) for _, group, made in found]), *apart),
    )


def _stroke(slot: int, group: Group, made: Band, sign: str = "") -> Stroke:
    return Stroke(slot, group.label, made.curve, sign=sign, seeds=made.n, half=made.half)


def _notes(found: list[tuple[Group, Band]]) -> tuple[str, ...]:
    """Why a mean ends early, and where there is no interval."""
    short = [f"{group.label}: {made.short}" for group, made in found if made.short]
    single = [group.label for group, made in found if made.n == 1]
    alone = [f"one seed, no interval: {', '.join(single)}"] if single else []
    return (*alone, *short)


def _waiting(drawn: DrawnGroups, otherwise: str) -> str:
    known = all(run.path in drawn.metrics for _, group in drawn.groups for run in group.runs)
    return otherwise if known else "reading…"
