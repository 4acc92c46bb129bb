"""Compare: the answer of a study as a forest plot, or a table of runs or variants; under it, overlaid curves.

Until somebody selects or pins runs, those that answer are drawn.

A worker thread reads the runs folder. Notes, tags, exports and reports are also written in threads.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import DescendantBlur
from textual.widgets import Input

from engine.base.clean import clean_line
from engine.base.language import tr, trn
from engine.runs.manage import check_tag, write_notes
from engine.runs.tail import Metrics
from tui_transformer.lab.analysis.answer import StudyConclusion
from tui_transformer.lab.analysis.charts.overlay import ChartedRuns
from tui_transformer.lab.analysis.curves import MOST_CURVES, MetricsReader, SeedRuns, group_seeds
from tui_transformer.lab.analysis.detail import detail, variant_detail
from tui_transformer.lab.analysis.entry import NO_RUN, RunEntry
from tui_transformer.lab.analysis.folder import FolderContents, RunsFolder
from tui_transformer.lab.analysis.groups import unit_of
from tui_transformer.lab.analysis.lists import SENTENCES, join
from tui_transformer.lab.analysis.query import best_first
from tui_transformer.lab.analysis.sentences import conclusion_sentences, named, verdict_sentence
from tui_transformer.lab.analysis.verdict import VariantResult, seed_count
from tui_transformer.lab.analysis.view import RUNS, VARIANTS, Selection, View, ViewOptions, ViewTable
from tui_transformer.lab.records.pace import PollInterval
from tui_transformer.lab.records.seen import toggle_seen, why_cannot_be_acknowledged
from tui_transformer.lab.reports.selection import ReportSelection, other_selections, select_runs, select_variants
from tui_transformer.studio.compare.exports import export_comparison, report
from tui_transformer.studio.compare.forest import ForestList, ForestPlot
from tui_transformer.studio.compare.overlay_charts import CompareCharts
from tui_transformer.studio.compare.pages import DetailPage, NotePage
from tui_transformer.studio.compare.run_table import RunTable, TableHead
from tui_transformer.studio.compare.splitter import Splitter
from tui_transformer.studio.shared.dialog import TextDialog, error_text
from tui_transformer.studio.shared.keys import PANE_BINDINGS
from tui_transformer.studio.shared.line_list import LineList, SearchLine
from tui_transformer.studio.shared.messages import PlayRun, notify, show_errors
from tui_transformer.studio.shared.palette import Palette
from tui_transformer.studio.shared.panel import join_that_fit, panel
from tui_transformer.studio.shared.words import CachedText, empty_pane_text

TWO = 100  # least screen columns for two charts
NEEDS_A_ROW = ("by_variant", "detail", "play", "select", "pin", "sort", "reverse", "all_settings", "export", "report")
OF_THE_TABLE = ("sort", "reverse", "only", "all_settings")
NEEDS_A_CURVE = ("train_curves", "log_y", "probe")
NEEDS_A_RUN = ("note", "tags", "seen", "over_seeds")  # not a variant
SHARE, LEAST_TOP, LEAST_CHARTS = 0.4, 5, 9  # of the pane's lines the upper part may take; least lines of the two
AROUND_TITLE = 6  # columns of a frame
FEW = 4  # curves drawn at first where there are more variants than letters
EXAMPLE = "rope   n_heads>=2   loss<1.3   badge:LEAK   tag:good   -failed"


class ComparePane(Vertical, can_focus=True):
    BINDINGS: ClassVar[list[BindingType]] = [*PANE_BINDINGS["compare"]]

    def __init__(self, *, runs_dir: Path) -> None:
        super().__init__(id="compare")
        self.runs_dir = runs_dir
        self.folder, self.curves, self.view = RunsFolder(runs_dir), MetricsReader(), View()
        self.options, self.selection = ViewOptions(), Selection()
        self.scan, self.metrics, self.shown = FolderContents(), dict[Path, Metrics](), ViewTable()
        self.chosen: Path | None = None
        self.shows_answer = True  # whether the answer is shown, not the table
        self.answers: tuple[StudyConclusion, ...] = ()  # one for each study
        self._why = ""  # why there is none
        self.study: str | None = None  # whose answer is shown; None for the first
        self.measure = ""  # that the answer is about; "" for the primary one
        self.has_user_selection = False  # whether the selection and the baseline are the user's
        self.zoomed = False  # whether the charts have all the room
        self._top_lines: int | None = None  # of the upper part, as it was dragged
        self.averages_seeds = False  # whether curves are means over a variant's seeds
        self._title, self._nothing = CachedText(id="compare-title"), CachedText(id="compare-nothing")
        self._filter = SearchLine(EXAMPLE, self._focus_runs, id="compare-filter")
        self._filter.display = False
        self._mistake, self._hint = CachedText(id="compare-mistake"), CachedText(id="compare-hint")
        self._forest, self._head, self._table = ForestPlot(), TableHead(), RunTable()
        self._top = panel(Vertical(self._forest, self._head, self._table, id="compare-top"))
        self._sentence, self._splitter = CachedText(id="compare-sentence"), Splitter()
        self._charts = panel(CompareCharts(), tr("Charts"))
        self._has_scanned = False
        self._changed: set[Path] = set()  # runs changed here, to be reread
        self._grouped: tuple[Path, ...] = ()  # the runs of the variants that are drawn
        self._interval = PollInterval()
        self._wake = asyncio.Event()  # set when something must be read at once

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._filter
        yield self._mistake
        yield self._top
        yield self._nothing
        yield self._sentence
        yield self._hint
        yield self._splitter
        yield self._charts

    def on_mount(self) -> None:
        self.add_class("-empty")
        self._nothing.show(Text(tr("reading the runs…"), style="dim"))
        self.run_worker(self._poll_runs(), name="compare the runs", group="look", exclusive=True)

    def focus_first(self) -> None:
        self._focus_runs()
        self._wake.set()

    def _focus_runs(self) -> None:
        """Focus the table at once; the pane itself while there is no table, so that keys are heard."""
        table = self._forest.forest_list if self.answer is not None else self._table
        self.screen.set_focus(table if self.shown.rows and not self.zoomed else self)

    @property
    def answer(self) -> StudyConclusion | None:
        """The answer on screen; None if the table is."""
        if not self.shows_answer or not self.answers:
            return None
        return next((one for one in self.answers if one.study == self.study), self.answers[0])

    @property
    def selected_runs(self) -> tuple[Path, ...]:
        """The runs that the user has selected; not those drawn by default."""
        return self.selection.runs if self.has_user_selection else ()

    # Looking

    async def _poll_runs(self) -> None:
        while True:
            self._wake.clear()
            if not (self.display and self.size.width > 0):
                await self._wake.wait()
                continue
            started = time.perf_counter()
            baseline, runs = self.selection.baseline, self._grouped or self.selection.runs
            if runs and baseline is not None and baseline not in runs:
                runs = (*runs, baseline)
            look = await asyncio.to_thread(self.folder.scan, frozenset(self._changed))
            metrics = await asyncio.to_thread(self.curves.read, runs)
            self._changed.clear()
            looked = time.perf_counter()
            changed = self._apply(look, metrics)
            drawn = time.perf_counter() - looked + (self._charts.draw_seconds if changed else 0.0)
            wait = self._interval.next(changed=changed, cost=drawn + (looked - started) / 4)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait)

    def _apply(self, look: FolderContents, metrics: dict[Path, Metrics]) -> bool:
        """Show the current state; return whether anything is new."""
        first, self._has_scanned = not self._has_scanned, True
        another, more = first or look is not self.scan, metrics != self.metrics
        self.scan, self.metrics = look, metrics
        if another:
            self.selection.drop_missing({entry.path for entry in look.entries})
            self.redraw()
        elif more:
            self.draw_charts()
        return another or more

    def reread_run(self, run: Path) -> None:
        self._changed.add(run)
        self._wake.set()

    def on_show(self) -> None:
        self._wake.set()

    # Showing

    def redraw(self) -> None:
        selection, look = self.selection, self.scan
        pinned = selection.baseline if self.has_user_selection else None
        self.answers = self.view.conclusions(look.entries, look.studies, pinned, self.measure)
        self._why = "" if self.answers else self.view.why_no_conclusion(look.entries, look.studies, pinned)
        answer = self.answer
        if not self.has_user_selection:
            self._select_default_runs(answer)
        self.options = replace(self.options, baseline=selection.baseline, selected=self.selected_runs)
        self.shown = shown = self.view.arrange(look.entries, self.options, look.studies)
        marks = {run: (selection.slot(run), run == selection.baseline) for run in selection.runs}
        if selection.baseline is not None:
            marks[selection.baseline] = (selection.slot(selection.baseline), True)
        marks |= {v.path: (self._slot_of(v), v.is_baseline) for v in shown.variants}
        turned = bool(shown.rows) == self.has_class("-empty") or (answer is not None) != self.has_class("-answer")
        with self.app.batch_update():
            self.set_class(not shown.rows, "-empty")
            self.set_class(answer is not None, "-answer")
            if answer is not None:
                slots = {result.path: self._slot_of(result) for result in answer.results}
                self._forest.show(answer, slots, self.chosen)
                said = tr(join(SENTENCES, conclusion_sentences(answer)))
                self._sentence.show(Text(clean_line(said)))
            self._table.show(shown, marks, self.chosen)
            if answer is None:
                self.chosen = self._table.chosen or self.chosen
            self._head.show(shown, self._table.current_layout, reverse=self.options.reverse)
            self.set_class(bool(shown.mistake), "-mistaken")
            self._mistake.show(Text(clean_line(shown.mistake)))
            width = self.size.width - (AROUND_TITLE if self.app.has_class("framed") else 2)
            title = _answer_title(answer, len(self.answers)) if answer else _table_title(shown, self.options)
            words = Text(clean_line(look.problem or join_that_fit(title, width)), no_wrap=True, overflow="ellipsis")
            self._title.show(words)
            self._top.border_title = words
            self._show_hint()
            if not shown.rows and self._has_scanned:
                self._nothing.show(_empty_table_text(shown, look.problem))
            self.draw_charts()
            self._divide_height()
        if turned or not shown.total:
            self.refresh_bindings()
        if turned and self.app.focused in (None, self, self._table, self._forest.forest_list):
            self._focus_runs()

    def _select_default_runs(self, answer: StudyConclusion | None) -> None:
        """Draw the variants of the answer on screen, else of the first: the baseline, then from the best.

        Without any answer, draw the best runs, one of each variant.
        """
        self.selection.clear_runs()
        self.selection.baseline = None
        answer = answer or next(iter(self.answers), None)
        baseline = answer.baseline if answer is not None else None
        if answer is None:
            found: dict[object, Path] = {}
            for run in best_first(self.scan.entries):
                if run.last is not None:
                    found.setdefault((run.study.name, run.study.variant) if run.study else run.path, run.path)
            for path in list(found.values())[:FEW]:
                self.selection.toggle(path)
            return
        if answer.family.baseline is not None and answer.family.file.baseline != answer.family.baseline.name:
            self.selection.baseline = answer.family.baseline.representative.path
        others = [result for result in answer.results if result is not baseline]
        counted = [one for one in others if one.difference(answer.measure) is not None and not one.why_incomparable]
        counted += [result for result in others if result not in counted and any(run.live for run in result.runs)]
        drawn = [*([baseline] if baseline is not None else []), *counted]
        for result in drawn if len(drawn) <= MOST_CURVES else drawn[:FEW]:
            self.selection.toggle(result.group.representative.path)

    def _divide_height(self) -> None:
        """The upper part is as high as its rows, or as it was dragged; the charts have the rest."""
        self._splitter.display = self._charts.has_class("-drawn")
        if not self._splitter.display:
            self._top.styles.height = "1fr"
            return
        lines = self._forest.needed_lines if self.answer is not None else len(self.shown.rows) + 1
        frame = self._top.gutter.height
        usual = frame + min(lines, max(LEAST_TOP, int(SHARE * self.size.height)))
        most = max(LEAST_TOP + frame, self.size.height - LEAST_CHARTS - frame)
        if self._top_lines is not None:
            self._top_lines = max(2 + frame, min(self._top_lines, most))
        self._top.styles.height = self._top_lines or min(usual, most)

    def on_splitter_dragged(self, event: Splitter.Dragged) -> None:
        event.stop()
        self._top_lines = self._top.outer_size.height + event.y - self._splitter.region.y
        self._divide_height()

    def action_split(self, lines: int) -> None:
        self._top_lines = (self._top_lines or self._top.outer_size.height) + lines
        self._divide_height()

    def action_zoom(self) -> None:
        """Give the charts all the room, one at a time; once more takes it back."""
        if self.zoomed or self._charts.has_class("-drawn"):
            self.zoomed = not self.zoomed
            self.set_class(self.zoomed, "-zoom")
            self._charts.set_single_chart_mode(self.zoomed)
            self._focus_runs()

    def action_answer(self) -> None:
        """Turn between the answer and the table; the cursor stays on its variant."""
        at = self._current_run_or_representative()
        if not self.shows_answer and at is not None:
            studies = [result.group.study for result in self.shown.variants if result.path == self.chosen]
            self.study = next(iter(studies), at.study.name if at.study is not None else "")
        self.shows_answer = not self.shows_answer
        self._redraw_with_cursor_on(at)

    def action_next_study(self) -> None:
        if self.answer is not None and len(self.answers) > 1:
            now = self.answers.index(self.answer)
            self.study, self.measure = self.answers[(now + 1) % len(self.answers)].study, ""
            self.redraw()

    def on_forest_list_measure_changed(self, event: ForestList.MeasureChanged) -> None:
        event.stop()
        if self.answer is not None:
            keys = [measure.key for measure in self.answer.measures]
            self.measure = keys[(keys.index(self.answer.measure.key) + event.by) % len(keys)]
            self.redraw()

    def on_compare_charts_toggled(self, event: CompareCharts.Toggled) -> None:
        event.stop()
        self._charts.toggle_curve(event.slot)

    def on_line_list_letter_clicked(self, event: LineList.LetterClicked) -> None:
        event.stop()
        self.action_hide()

    def action_hide(self) -> None:
        """Hide the curve at the cursor, or show it again."""
        entry = self._current_run_or_representative()
        if entry is not None and (slot := self.selection.slot(entry.path)) is not None:
            self._charts.toggle_curve(slot)

    def _show_hint(self) -> None:
        """Show the verdict under the cursor if the table cuts it, and what to do next."""
        row, lines = self._table.row, []
        if row is not None and isinstance(row.entry, VariantResult):
            lines.append(tr(named(row.entry.name, verdict_sentence(row.entry))))
        elif row is not None and self._table.verdict_is_cut:
            lines.append(tr(named(row.entry.name, row.verdict)))
        if self.answer is not None:
            lines = [] if self.selection.runs else [tr("Nothing is plotted. space: plot this variant")]
        elif self.shown.total == 1 and self.shown.by == RUNS:
            lines.append(tr("You need two runs to compare. Press 1 to design another."))
        elif self.shown.rows and self._why:
            lines.append(self._why)
        elif self.shown.rows and not self.selection.runs:
            lines.append(
                tr(
                    "space: plot · p: set as baseline · v: {what}",
                    what=tr("every run") if self.shown.by == VARIANTS else tr("variants"),
                )
            )
        self.set_class(bool(lines), "-hinted")
        self._hint.show(Text("\n".join(map(clean_line, lines)), no_wrap=True, overflow="ellipsis"))

    def on_resize(self) -> None:
        self._charts.wide = self.app.size.width >= TWO
        if self._has_scanned:
            self.call_after_refresh(self.redraw)
        self._wake.set()

    # Choosing

    def current_run(self) -> RunEntry | None:
        """Return the run under the cursor; None in the views by variant, or on an extra row."""
        row = self._table.row if self.answer is None else None
        if row is None or not isinstance(row.entry, RunEntry) or row.entry.state == NO_RUN:
            return None
        return row.entry

    def current_variant(self) -> VariantResult | None:
        if self.answer is not None:
            return self._forest.forest_list.result
        row = self._table.row
        return row.entry if row is not None and isinstance(row.entry, VariantResult) else None

    def _current_run_or_representative(self) -> RunEntry | None:
        """The run under the cursor, or that of the variant there: its selected or pinned run."""
        variant = self.current_variant()
        if variant is None:
            return self.current_run()
        chosen = {*self.selection.runs, self.selection.baseline}
        return next((run for run in variant.runs if run.path in chosen), variant.group.representative)

    def on_line_list_chosen(self, event: RunTable.Chosen) -> None:
        event.stop()
        self.chosen = event.run
        self._show_hint()

    def on_line_list_opened(self, event: RunTable.Opened) -> None:
        event.stop()
        self.action_detail()

    def on_run_table_columns_moved(self, event: RunTable.ColumnsMoved) -> None:
        event.stop()
        self._head.show(self.shown, self._table.current_layout, reverse=self.options.reverse)
        self._show_hint()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """None, which greys it in the footer, if there is nothing to act on."""
        if self._has_scanned and not self.shown.total:
            return None
        if self.answer is not None and action in (*OF_THE_TABLE, *NEEDS_A_RUN):
            return None
        if action in ("next_study", "hide", "zoom", "split") and not self.shown.rows:
            return None
        if action in NEEDS_A_RUN and self.shown.by == VARIANTS:
            return None
        return None if action in (*NEEDS_A_ROW, *NEEDS_A_CURVE, *NEEDS_A_RUN) and not self.shown.rows else True

    def action_by_variant(self) -> None:
        """Toggle variants over seeds and every run; the cursor stays on its item."""
        at, to_runs = self._current_run_or_representative(), self.answer is None and self.shown.by == VARIANTS
        self.options, self.shows_answer = replace(self.options, by=RUNS if to_runs else VARIANTS), False
        self._redraw_with_cursor_on(at)

    def _redraw_with_cursor_on(self, at: RunEntry | None) -> None:
        """Show what was turned to, with the cursor on a run or its variant."""
        self.redraw()
        self.refresh_bindings()
        if at is not None:
            shown = self.answer.results if self.answer is not None else self.shown.variants
            there = (result.path for result in shown if any(run.path == at.path for run in result.runs))
            self.chosen = next(there, at.path)
            self.redraw()
        self._focus_runs()

    def action_select(self) -> None:
        entry = self._current_run_or_representative()
        if entry is not None:
            self.has_user_selection = True
            if not self.selection.toggle(entry.path):
                notify(self, tr("at most {n} curves can be told apart: deselect one first", n=MOST_CURVES), "warning")
            self._selection_changed()

    def action_pin(self) -> None:
        entry = self._current_run_or_representative()
        if entry is not None:
            self.has_user_selection = True
            self.selection.toggle_baseline(entry.path)
            self._selection_changed()

    def action_unselect(self) -> None:
        self.has_user_selection = True
        self.selection.clear_runs()
        self._selection_changed()

    def _selection_changed(self) -> None:
        if not self.selection.runs:
            self.options = replace(self.options, only=False)
        self.redraw()
        self._wake.set()

    def action_play(self) -> None:
        entry, two = self._current_run_or_representative(), self.selected_runs
        if len(two) == 2:
            self.post_message(PlayRun(*two))
        elif entry is not None:
            self.post_message(PlayRun(entry.path))

    # Filter and order

    def action_filter(self) -> None:
        if self.answer is not None:
            self.action_answer()
        self._filter.display = True
        self.screen.set_focus(self._filter)  # now: the next keys are meant for it

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._set_options(replace(self.options, query=event.value))

    def on_descendant_blur(self, event: DescendantBlur) -> None:
        if event.widget is self._filter and not self._filter.value:
            self._filter.display = False

    def action_back(self) -> None:
        """Undo, latest first: the part of a chart that is shown, one chart alone, the filter, the selection view."""
        if self._charts.shows_part:
            self._charts.reset_zoom()
            return
        if self.zoomed:
            self.action_zoom()
        elif self._filter.value:
            self._filter.value = ""
            self._filter.display = False  # an empty line would look as if it had the focus
        elif self.options.only:
            self.action_only()
        self._focus_runs()

    def action_only(self) -> None:
        if not self.selected_runs and not self.options.only:
            notify(self, tr("no run is selected: press space to select one"), "warning")
            return
        self._set_options(replace(self.options, only=not self.options.only))

    def action_all_settings(self) -> None:
        self._set_options(replace(self.options, all_settings=not self.options.all_settings))

    def action_sort(self) -> None:
        keys = ["", *(column.key for column in self.shown.columns)]
        now = self.options.sort if self.options.sort in keys else ""
        self._set_options(replace(self.options, sort=keys[(keys.index(now) + 1) % len(keys)], reverse=False))

    def action_reverse(self) -> None:
        self._set_options(replace(self.options, reverse=not self.options.reverse))

    def on_table_head_clicked(self, event: TableHead.Clicked) -> None:
        event.stop()
        if event.key == self.options.sort:
            self.action_reverse()
        else:
            self._set_options(replace(self.options, sort=event.key, reverse=False))

    def _set_options(self, options: ViewOptions) -> None:
        self.options = options
        self.redraw()

    # Charts: the curves of the selected runs, or means over the seeds of variants

    def draw_charts(self) -> None:
        entries, pinned, baseline = self.scan.entries, self.shown.baseline, None
        by_path = {entry.path: entry for entry in entries}
        runs = [(self.selection.slot(run) or 0, by_path[run]) for run in self.selection.runs if run in by_path]
        variants = self.answer.results if self.answer is not None else self.shown.variants
        if variants and self.selection.runs:
            drawn = [(slot, v) for v in variants if (slot := self._slot_of(v)) is not None]
            by_slot = sorted(drawn, key=lambda pair: pair[0])
            groups = [(slot, SeedRuns(v.name, v.group.charted_runs)) for slot, v in by_slot]
            baselines = [v.family.baseline for _, v in drawn if v.family.baseline is not None]
            if baselines:
                baseline = SeedRuns(baselines[0].name, baselines[0].charted_runs)
        elif self.averages_seeds and runs:
            seeds = group_seeds([run for _, run in runs], entries)
            groups = [(next(slot for slot, run in runs if run in group.runs), group) for group in seeds]
            if pinned is not None:
                (baseline,) = group_seeds([pinned], entries)
        else:
            self._grouped = ()
            if any(run.path not in self.metrics for _, run in runs):
                self._wake.set()  # some are not read yet
            self._charts.show(ChartedRuns.from_runs(runs, pinned, self.metrics) if runs else None)
            return
        together = [group for _, group in groups] + ([baseline] if baseline is not None else [])
        paths = tuple(dict.fromkeys(run.path for group in together for run in group.runs))
        if set(paths) - set(self._grouped):
            self._wake.set()  # some are not read yet
        self._grouped = paths
        self._charts.show(ChartedRuns(tuple(groups), baseline, self.metrics))

    def _slot_of(self, variant: VariantResult) -> int | None:
        """The index of a variant's letter: that of its first selected run."""
        return next((slot for run in variant.runs if (slot := self.selection.slot(run.path)) is not None), None)

    def action_x_axis(self) -> None:
        self._charts.next_axis()

    def action_other_chart(self) -> None:
        self._charts.next_view()

    def action_over_seeds(self) -> None:
        self.averages_seeds = not self.averages_seeds
        self.draw_charts()
        self._wake.set()

    def action_probe(self) -> None:
        self._charts.next_probe()

    def action_log_y(self) -> None:
        self._charts.set_options(replace(self._charts.options, log=not self._charts.options.log))

    def action_train_curves(self) -> None:
        self._charts.set_options(replace(self._charts.options, train=not self._charts.options.train))

    # Detail, notes and tags

    def action_detail(self) -> None:
        entry, variant, palette = self.current_run(), self.current_variant(), Palette.from_app(self.app)
        if entry is not None:
            blocks = detail(entry, self.shown.baseline)
            self.app.push_screen(DetailPage(f"{entry.name}   {tr(entry.state)}", blocks, palette))
        elif variant is not None:
            title = f"{variant.group.title}   {tr(variant.seeds_text())}"
            self.app.push_screen(DetailPage(title, variant_detail(variant), palette))

    @work(exit_on_error=False)
    async def action_note(self) -> None:
        entry = self.current_run()
        if entry is None:
            return
        text = await self.app.push_screen_wait(NotePage(entry.name, entry.notes))
        if text is not None:
            said = tr("{name}: note saved", name=entry.name) if text else tr("{name}: note removed", name=entry.name)
            await self._apply_notes_change(lambda: write_notes(entry.path, text=text), said, entry.path)

    @work(exit_on_error=False)
    async def action_tags(self) -> None:
        entry = self.current_run()
        if entry is None:
            return

        def tags_in(text: str) -> list[str]:
            return list(dict.fromkeys(tag for part in text.split(",") if (tag := part.strip().lstrip("#").strip())))

        wrong = lambda text: error_text(lambda: [check_tag(tag) for tag in tags_in(text)])
        words = tr("Separate them with commas.")
        asked = TextDialog(tr("Tags for {name}", name=entry.name), ", ".join(entry.tags), text=words, wrong=wrong)
        text = await self.app.push_screen_wait(asked)
        if text is not None:
            tags = tags_in(text)
            said = (
                f"{entry.name}: {' '.join(f'#{tag}' for tag in tags)}"
                if tags
                else tr("{name}: tags removed", name=entry.name)
            )
            gone = set(entry.tags) - set(tags)
            await self._apply_notes_change(lambda: write_notes(entry.path, add=tags, remove=gone), said, entry.path)

    @work(group="seen", exit_on_error=False)
    async def action_seen(self) -> None:
        entry = self.current_run()
        if entry is None:
            return
        if wrong := why_cannot_be_acknowledged(entry.name, entry.badges):
            notify(self, wrong, "warning")
            return
        await self._apply_notes_change(lambda: toggle_seen(entry.path, entry.badges), "", entry.path)

    async def _apply_notes_change(self, task: Callable[[], object], said: str, run: Path) -> None:
        """Write notes, tags or what was seen in a thread, say so, and read the run again."""
        with show_errors(self):
            done = await asyncio.to_thread(task)
            notify(self, said or str(done))
        self.reread_run(run)

    # Exports and reports

    @work(exit_on_error=False)
    async def action_export(self) -> None:
        await export_comparison(
            self,
            self.shown,
            self._shown_variants,
            filtered=self.answer is None,  # an answer has no filter
            all_settings=self.options.all_settings,
        )

    def report_selection(self) -> ReportSelection:
        look, selection = self.scan, self.selection
        runs, pinned = self.selected_runs, selection.baseline
        if self.answer is not None or self.shown.by == VARIANTS:
            return select_variants(look, self._shown_variants, pinned, self.current_variant(), runs)
        return select_runs(look, runs, pinned, self.current_run())

    @property
    def _shown_variants(self) -> Sequence[VariantResult]:
        """The variants that are shown; none in the view by run."""
        return self.answer.results if self.answer is not None else self.shown.variants

    def other_report_selections(self, chosen: ReportSelection) -> list[ReportSelection]:
        variant, run = self.current_variant(), self.current_run()
        at = variant.runs if variant is not None else [run] if run is not None else []
        shown = [run for result in self._shown_variants for run in result.runs] or self.shown.runs
        return other_selections(self.scan, chosen, self.selection.baseline, at, shown)

    @work(exit_on_error=False)
    async def action_report(self) -> None:
        chosen = self.report_selection()
        if chosen.entries:
            await report(self, [chosen, *self.other_report_selections(chosen)])
        else:
            notify(self, tr("no runs to report on: select some first"), "warning")


def _answer_title(answer: StudyConclusion, of: int) -> list[tuple[str, int]]:
    """Return the parts of the title, each with its rank: where there is no room, the highest go first."""
    runs = [run for result in answer.results for run in result.runs]
    seeds, planned = {result.planned for result in answer.results}, sum(result.planned for result in answer.results)
    finished, measure = sum(run.state == "finished" for run in runs), answer.measure
    at, measures = next(i for i, m in enumerate(answer.measures, 1) if m.key == measure.key), len(answer.measures)
    counts = trn("{n} variant", "{n} variants", len(answer.results))
    if len(seeds) == 1:
        counts = f"{counts} × {tr(seed_count(seeds.pop()))}"
    done = (
        (tr("both runs finished") if planned == 2 else tr("all {planned:,} runs finished", planned=planned))
        if finished == planned
        else tr("{finished:,} of {planned:,} runs finished", finished=finished, planned=planned)
    )
    baseline = answer.family.baseline
    parts = [(tr("Study  {study}", study=answer.study) if answer.study else tr("Runs"), 0), (counts, 1), (done, 2)]
    parts += [(tr("baseline {name}", name=baseline.name), 5)] if baseline is not None else []
    parts += [(tr(measure.name), 3)]  # under the plot, too
    parts += [(tr("← → measure {at} of {n}", at=at, n=measures), 4)] if measures > 1 else []
    return [*parts, (tr("V: next of {of}", of=of), 6)] if of > 1 else parts


def _table_title(shown: ViewTable, options: ViewOptions) -> list[tuple[str, int]]:
    n = f"{shown.total:,}"
    if shown.count != shown.total:
        n = tr("{n:,} of {total:,}", n=shown.count, total=shown.total)
    parts = [(f"{tr('Runs') if shown.by == RUNS else tr('Variants')}  {n}", 0)]
    if options.selected:
        parts.append((tr("{n} selected", n=len(options.selected)), 1))
    baselines = dict.fromkeys(v.name for v in shown.variants if v.is_baseline)
    if shown.by == VARIANTS and len(baselines) > 1:
        parts.append((tr("◆ {n} baselines", n=len(baselines)), 2))
    elif shown.by == VARIANTS:
        parts += [(f"◆ {name}", 2) for name in baselines]
    elif shown.baseline is not None:
        parts.append((f"◆ {shown.baseline.name}", 2))
    if shown.sorted_by is not None:
        parts.append((tr("by {column} {arrow}", column=shown.sorted_by.head, arrow="↓" if options.reverse else "↑"), 3))
    if shown.rows:
        parts.append((tr("loss: {unit}", unit=unit_of([row.entry for row in shown.rows])), 4))
    return parts


def _empty_table_text(shown: ViewTable, problem: str) -> Text:
    if problem or not shown.total:
        hint = tr("With two runs, this pane shows which settings differ and overlays the curves.")
        return empty_pane_text(tr("There is nothing to compare yet"), hint, problem)
    words = Text(justify="center").append(f"{clean_line(shown.why_empty)}\n\n", "bold")
    words.append("escape", "bold").append(tr("  shows all runs again      "))
    return words.append("/", "bold").append(tr("  changes the filter"))
