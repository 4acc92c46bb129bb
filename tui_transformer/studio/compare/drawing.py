"""What the Compare pane draws under the table: the curves of the selected runs, or means over the seeds of variants."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tui_transformer.lab.analysis.curves import Group, Metrics, seeds_of
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.folder import RunScan
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.analysis.view import VARIANTS, Selection, Shown
from tui_transformer.lab.charts.overlay import Drawn, DrawnGroups
from tui_transformer.studio.compare.actions import CompareActions
from tui_transformer.studio.compare.charts import CompareCharts


@dataclass(frozen=True)
class Seen:
    """What one look found."""

    look: RunScan = field(default_factory=RunScan)
    metrics: dict[Path, Metrics] = field(default_factory=dict)


class CompareDrawing(CompareActions):
    """The charts of a pane that shows runs or variants, and the keys that draw them otherwise."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.selection, self.seen, self.shown = Selection(), Seen(), Shown()
        self.over_seeds = False  # whether curves are means over the seeds of a variant
        self._charts = CompareCharts()
        self._grouped: tuple[Path, ...] = ()  # the runs of the variants that are drawn
        self._wake = asyncio.Event()  # set where something has to be read at once

    def draw_charts(self) -> None:
        """Draw what is selected."""
        by_path = {entry.path: entry for entry in self.seen.look.entries}
        runs = [(self.selection.slot(run) or 0, by_path[run]) for run in self.selection.runs if run in by_path]
        baseline = self.shown.baseline
        if self.shown.by == VARIANTS and runs:
            self._draw_variants()
            return
        if not self.over_seeds or not runs:
            self._grouped = ()
            self._charts.show(Drawn(tuple(runs), baseline, self.seen.metrics) if runs else None)
            return
        slots = {entry.path: slot for slot, entry in runs}
        self.draw_groups(
            [(slots[chosen], group) for chosen, group in self._groups([entry for _, entry in runs])],
            next((group for _, group in self._groups([baseline])), None) if baseline is not None else None,
        )

    def _draw_variants(self) -> None:
        """Those of which a run is selected, beside the first one's baseline."""
        drawn = [(slot, v) for v in self.shown.variants if (slot := self.slot_of(v)) is not None]
        baselines = [v.family.baseline for _, v in drawn if v.family.baseline is not None]
        groups = [(slot, Group(v.name, v.group.drawn)) for slot, v in sorted(drawn, key=lambda pair: pair[0])]
        self.draw_groups(groups, Group(baselines[0].name, baselines[0].drawn) if baselines else None)

    def slot_of(self, variant: VariantResult) -> int | None:
        """The number of the letter of a variant: that of its first run that is selected."""
        return next((slot for run in variant.runs if (slot := self.selection.slot(run.path)) is not None), None)

    def _groups(self, chosen: Sequence[Entry]) -> list[tuple[Path, Group]]:
        """The variants of these runs, each with the first run that asked for it."""
        groups = seeds_of(chosen, self.seen.look.entries)
        return [(next(run.path for run in chosen if run in group.runs), group) for group in groups]

    def draw_groups(self, groups: Sequence[tuple[int, Group]], baseline: Group | None) -> None:
        """Draw variants as means over their seeds.

        Args:
            groups: by the number of their letter.
            baseline: the one that differences are to.
        """
        drawn = [group for _, group in groups] + ([baseline] if baseline is not None else [])
        runs = tuple(dict.fromkeys(run.path for group in drawn for run in group.runs))
        if set(runs) - set(self._grouped):
            self._wake.set()  # some are not read yet
        self._grouped = runs
        self._charts.show(DrawnGroups(tuple(groups), baseline, self.seen.metrics))

    def action_x_axis(self) -> None:
        """The next x axis."""
        self._charts.turn_axis()

    def action_other_chart(self) -> None:
        """The next chart: curves, differences, recall by distance."""
        self._charts.turn_view()

    def action_over_seeds(self) -> None:
        """Means over seeds, or every run by itself."""
        self.over_seeds = not self.over_seeds
        self.draw_charts()
        self._wake.set()

    def action_probe(self) -> None:
        """The next probe by distance."""
        self._charts.turn_probe()

    def action_log_y(self) -> None:
        """Logarithmic, or not."""
        self._charts.change(replace(self._charts.options, log=not self._charts.options.log))

    def action_train_curves(self) -> None:
        """The training losses as well, or not."""
        self._charts.change(replace(self._charts.options, train=not self._charts.options.train))
