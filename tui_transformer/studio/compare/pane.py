"""Compare: runs side by side, what differs, curves over each other, and never more than can be concluded."""

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import DescendantBlur
from textual.widgets import Input, Static

from engine.clean import clean_line
from tui_transformer.lab.analysis.curves import MOST, Curves
from tui_transformer.lab.analysis.entry import NO_RUN, Entry
from tui_transformer.lab.analysis.folder import Folder
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.analysis.view import RUNS, VARIANTS, Options, Shown, View
from tui_transformer.lab.records.pace import Rhythm
from tui_transformer.lab.reports.selection import ReportSelection, of_runs, of_variants
from tui_transformer.studio.compare import words
from tui_transformer.studio.compare.drawing import CompareDrawing, Seen
from tui_transformer.studio.compare.run_table import RunTable
from tui_transformer.studio.compare.table_head import TableHead
from tui_transformer.studio.keys import COMPARE, bindings
from tui_transformer.studio.shared.search_line import SearchLine

if TYPE_CHECKING:
    from tui_transformer.studio.app import Studio

TWO = 100  # columns of the screen from which there are two charts
OF_RUNS = (
    "by_variant",
    "detail",
    "play",
    "note",
    "tags",
    "select",
    "pin",
    "sort",
    "reverse",
    "all_settings",
    "export",
    "report",
    "train_curves",
    "log_y",
    "over_seeds",
    "probe",
)
OF_SINGLE_RUNS = ("note", "tags", "over_seeds")
EXAMPLE = "rope   n_heads>=2   loss<1.3   badge:LEAK   tag:good   -failed"


class ComparePane(CompareDrawing, can_focus=True):
    """The third pane."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(COMPARE)
    DEFAULT_CSS = """
    ComparePane { height: 1fr; }
    ComparePane #compare-title { height: 1; padding: 0 1; color: $foreground 75%; background: $surface; }
    ComparePane #compare-filter { height: 1; border: none; padding: 0 1; background: $foreground 8%; }
    ComparePane #compare-mistake { display: none; height: auto; max-height: 2; padding: 0 1; color: $warning; }
    ComparePane.-mistaken #compare-mistake { display: block; }
    ComparePane #compare-hint { display: none; height: auto; max-height: 3; padding: 0 1; color: $foreground 65%; }
    ComparePane.-hinted #compare-hint { display: block; }
    ComparePane #compare-nothing { display: none; height: 1fr; content-align: center middle; text-align: center; }
    ComparePane.-empty #compare-nothing { display: block; }
    ComparePane.-empty RunTable, ComparePane.-empty TableHead { display: none; }
    """

    def __init__(self, *, runs_dir: Path) -> None:
        super().__init__(id="compare")
        self.runs_dir = runs_dir
        self.folder, self.curves, self.view = Folder(runs_dir), Curves(), View()
        self.options = Options()
        self.chosen: Path | None = None
        self._title, self._nothing = Static("", id="compare-title"), Static("", id="compare-nothing")
        self._filter = SearchLine(EXAMPLE, self._leave_filter, id="compare-filter")
        self._filter.display = False
        self._mistake, self._hint = Static("", id="compare-mistake"), Static("", id="compare-hint")
        self._head, self._table = TableHead(), RunTable()
        self._said: dict[Static, str] = {}
        self._looked = False
        self._fresh: set[Path] = set()
        self._rhythm = Rhythm()

    def compose(self) -> ComposeResult:
        """The filter, the table, the charts; what stands there while there is nothing."""
        yield self._title
        yield self._filter
        yield self._mistake
        yield self._head
        yield self._table
        yield self._nothing
        yield self._hint
        yield self._charts

    def on_mount(self) -> None:
        """Begin to look."""
        self.add_class("-empty")
        self._say_in(self._nothing, Text("reading the runs…", style="dim"))
        self.run_worker(self._watch(), name="compare the runs", group="look", exclusive=True)

    def focus_first(self) -> None:
        """Where keys go when the pane is shown."""
        self._focus_runs()
        self._wake.set()

    def _focus_runs(self) -> None:
        """The keys go to the table; to the pane itself while there is none, so that they are heard."""
        self.screen.set_focus(self._table if self.shown.rows else self)

    # Looking

    async def _watch(self) -> None:
        while True:
            self._wake.clear()
            if not self._is_seen():
                await self._wake.wait()
                continue
            started = time.perf_counter()
            seen = await asyncio.to_thread(self._look, self._runs_to_read(), frozenset(self._fresh))
            self._fresh.clear()
            looked = time.perf_counter()
            changed = self._take(seen)
            drawn = time.perf_counter() - looked + (self._charts.cost if changed else 0.0)
            wait = self._rhythm.next(changed=changed, cost=drawn + (looked - started) / 4)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait)

    def _look(self, runs: tuple[Path, ...], fresh: frozenset[Path]) -> Seen:
        return Seen(self.folder.look(fresh), self.curves.read(runs))

    def _runs_to_read(self) -> tuple[Path, ...]:
        baseline = self.selection.baseline
        runs = self._grouped or self.selection.runs
        return (*runs, baseline) if runs and baseline is not None and baseline not in runs else runs

    def _is_seen(self) -> bool:
        return bool(self.display) and self.size.width > 0

    def _take(self, seen: Seen) -> bool:
        """Show what there is now; whether anything is new."""
        before, self.seen, first = self.seen, seen, not self._looked
        self._looked = True
        new = first or seen.look is not before.look
        if new:
            self.selection.keep({entry.path for entry in seen.look.entries})
            self.redraw()
        elif seen.metrics != before.metrics:
            self.draw_charts()
            return True
        return new

    def look_now(self, run: Path) -> None:
        """A run has changed."""
        self._fresh.add(run)
        self._wake.set()

    def on_show(self) -> None:
        """The pane is shown: look at once."""
        self._wake.set()

    # Showing

    def redraw(self) -> None:
        """Filter, sort and show."""
        selection = self.selection
        self.options = replace(self.options, baseline=selection.baseline, selected=selection.runs)
        self.shown = self.view.arrange(self.seen.look.entries, self.options, self.seen.look.studies)
        marks = {run: (selection.slot(run), run == selection.baseline) for run in selection.runs}
        if selection.baseline is not None:
            marks[selection.baseline] = (selection.slot(selection.baseline), True)
        marks |= {v.path: (self.slot_of(v), v.is_baseline) for v in self.shown.variants}
        turned = bool(self.shown.rows) == self.has_class("-empty")
        with self.app.batch_update():
            self.set_class(not self.shown.rows, "-empty")
            self._table.show(self.shown, marks, self.chosen)
            self.chosen = self._table.chosen or self.chosen
            self._show_head()
            self._say_words()
            self.draw_charts()
        if turned:
            self.refresh_bindings()
            if self.has_focus or self._table.has_focus or self.app.focused is None:
                self._focus_runs()

    def _show_head(self) -> None:
        self._head.show(self.shown, self._table.layout_of, reverse=self.options.reverse)

    def _say_words(self) -> None:
        shown, problem = self.shown, self.seen.look.problem
        self.set_class(bool(shown.mistake), "-mistaken")
        self._say_in(self._mistake, Text(clean_line(shown.mistake)))
        self._say_in(self._title, words.title(shown, self.options, problem))
        self._say_hint()
        if not shown.rows and self._looked:
            self._say_in(self._nothing, words.nothing(shown, problem))

    def _say_hint(self) -> None:
        """The verdict under the cursor where the table does not say all of it, and what to do next."""
        verdict = words.said(self._table.row, cut=self._table.verdict_is_cut)
        lines = [line for line in (verdict, words.hint(self.shown, self.options)) if line]
        self.set_class(bool(lines), "-hinted")
        text = "\n".join(map(clean_line, lines))
        self._say_in(self._hint, Text(text, no_wrap=True, overflow="ellipsis"))

    def _say_in(self, where: Static, text: Text) -> None:
        """Nothing is painted again where the words are the same."""
        if self._said.get(where) != text.markup:
            self._said[where] = text.markup
            where.update(text)

    def on_resize(self) -> None:
        """One chart or two."""
        self._charts.two = self.app.size.width >= TWO
        if self._looked:
            self.call_after_refresh(self.redraw)
        self._wake.set()

    # Choosing

    def current(self) -> Entry | None:
        """The run under the cursor; None where variants are shown, or on a row that is no run."""
        row = self._table.row
        if row is None or not isinstance(row.entry, Entry) or row.entry.state == NO_RUN:
            return None
        return row.entry

    def variant(self) -> VariantResult | None:
        """The variant under the cursor; None where runs are shown."""
        row = self._table.row
        return row.entry if row is not None and isinstance(row.entry, VariantResult) else None

    def _standing_for(self) -> Entry | None:
        """The run under the cursor, or the one that stands for the variant there: what is selected or pinned of it."""
        variant = self.variant()
        if variant is None:
            return self.current()
        chosen = {*self.selection.runs, self.selection.baseline}
        return next((run for run in variant.runs if run.path in chosen), variant.group.representative)

    def what_is_shown(self) -> tuple[Shown, bool]:
        """The runs as they are shown, and whether with every setting."""
        return self.shown, self.options.all_settings

    def what_is_reported(self) -> ReportSelection:
        """The study, or the runs, that a report is asked for."""
        look, selection = self.seen.look, self.selection
        if self.shown.by == VARIANTS:
            return of_variants(look, self.shown.variants, selection.baseline, self.variant(), selection.runs)
        return of_runs(look, selection.runs, selection.baseline, self.current())

    def on_run_table_chosen(self, event: RunTable.Chosen) -> None:
        """The cursor went to another run."""
        event.stop()
        self.chosen = event.run
        self._say_hint()

    def on_run_table_opened(self, event: RunTable.Opened) -> None:
        """A run was clicked twice."""
        event.stop()
        self.action_detail()

    def on_run_table_moved(self, event: RunTable.Moved) -> None:
        """Other columns are seen."""
        event.stop()
        self._show_head()
        self._say_hint()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """None, which greys it in the footer, where there is no run to do it to."""
        if action in OF_SINGLE_RUNS and self.shown.by == VARIANTS:
            return None
        return None if action in OF_RUNS and not self.shown.rows else True

    def action_by_variant(self) -> None:
        """Variants over their seeds, or every run; the cursor stays with what it was on."""
        by = RUNS if self.shown.by == VARIANTS else VARIANTS
        at = self._standing_for()
        self.options = replace(self.options, by=by)
        self.redraw()
        self.refresh_bindings()
        if at is not None:
            there = (v.path for v in self.shown.variants if any(run.path == at.path for run in v.runs))
            self.chosen = next(there, at.path)
            self.redraw()

    def action_select(self) -> None:
        """Draw the run's curves, or no longer; of a variant, the mean of its runs'."""
        entry = self._standing_for()
        if entry is not None:
            if not self.selection.turn(entry.path):
                self.say(f"{MOST} curves are as many as can be told apart: unselect one first", "warning")
            self._selected()

    def action_pin(self) -> None:
        """Make the run, or the variant, the baseline, or take that back."""
        entry = self._standing_for()
        if entry is not None:
            self.selection.pin(entry.path)
            self._selected()

    def action_play(self) -> None:
        """Write with the run under the cursor, or with the two that are selected."""
        entry, two = self._standing_for(), self.selection.runs
        if len(two) == 2:
            cast("Studio", self.app).play(*two)
        elif entry is not None:
            cast("Studio", self.app).play(entry.path)

    def action_unselect(self) -> None:
        """Draw none."""
        self.selection.clear()
        self._selected()

    def _selected(self) -> None:
        if not self.selection.runs:
            self.options = replace(self.options, only=False)
        self.redraw()
        self._wake.set()

    # Filter and order

    def action_filter(self) -> None:
        """Type a filter."""
        self._filter.display = True
        self.screen.set_focus(self._filter)  # now: what is typed next is meant for it

    def _leave_filter(self) -> None:
        self.screen.set_focus(self._table if self.shown.rows else self)  # now: what is typed next is no filter

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while it is typed."""
        event.stop()
        self.options = replace(self.options, query=event.value)
        self.redraw()

    def on_descendant_blur(self, event: DescendantBlur) -> None:
        """An empty filter goes."""
        if event.widget is self._filter and not self._filter.value:
            self._filter.display = False

    def action_back(self) -> None:
        """No filter, all runs, the keys to the table; what was asked for last goes first."""
        if self._filter.value:
            self._filter.value = ""
            self._filter.display = False  # a line without a word in it would look as if it listened
        elif self.options.only:
            self.action_only()
        self._focus_runs()

    def action_only(self) -> None:
        """Only the selected runs, or all."""
        if not self.selection.runs and not self.options.only:
            self.say("no run is selected: space selects one", "warning")
            return
        self.options = replace(self.options, only=not self.options.only)
        self.redraw()

    def action_all_settings(self) -> None:
        """Every setting, or only those that differ."""
        self.options = replace(self.options, all_settings=not self.options.all_settings)
        self.redraw()

    def action_sort(self) -> None:
        """By the next column; after the last, the newest first again."""
        keys = ["", *(column.key for column in self.shown.columns)]
        now = self.options.sort if self.options.sort in keys else ""
        self._sort(keys[(keys.index(now) + 1) % len(keys)])

    def action_reverse(self) -> None:
        """The other way round."""
        self.options = replace(self.options, reverse=not self.options.reverse)
        self.redraw()

    def on_table_head_clicked(self, event: TableHead.Clicked) -> None:
        """By a column; once more, the other way round."""
        event.stop()
        if event.key == self.options.sort:
            self.action_reverse()
        else:
            self._sort(event.key)

    def _sort(self, key: str) -> None:
        self.options = replace(self.options, sort=key, reverse=False)
        self.redraw()
