"""Compare: runs side by side, what differs, overlaid curves, and only conclusions that the data supports.

A worker thread reads the runs folder. Notes, tags, exports and reports are also written in threads.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import DescendantBlur
from textual.screen import Screen
from textual.widgets import Input, Static

from engine.clean import clean_line
from engine.errors import InputError
from engine.runs.manage import check_tag, write_notes
from engine.runs.tail import Metrics
from tui_transformer.lab.analysis.curves import MOST, Curves, Group, seeds_of
from tui_transformer.lab.analysis.detail import detail, group_detail
from tui_transformer.lab.analysis.entry import NO_RUN, Entry
from tui_transformer.lab.analysis.export import DATA, FORMATS, group_table, save, table
from tui_transformer.lab.analysis.folder import Folder, RunScan
from tui_transformer.lab.analysis.groups import unit_of
from tui_transformer.lab.analysis.sentences import verdict_sentence
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.analysis.view import RUNS, VARIANTS, Options, Selection, Shown, View
from tui_transformer.lab.charts.overlay import Drawn
from tui_transformer.lab.records.pace import PollInterval
from tui_transformer.lab.reports.formats import FORMATS as REPORTS
from tui_transformer.lab.reports.languages import LANGUAGES
from tui_transformer.lab.reports.selection import ReportSelection, of_runs, of_variants
from tui_transformer.studio.compare.overlay_charts import CompareCharts
from tui_transformer.studio.compare.pages import DetailPage, NotePage
from tui_transformer.studio.compare.run_table import RunTable, TableHead
from tui_transformer.studio.keys import bindings
from tui_transformer.studio.messages import Play, Say
from tui_transformer.studio.shared.dialog import Answer, Ask, AskText
from tui_transformer.studio.shared.line_list import SearchLine
from tui_transformer.studio.shared.palette import Palette

T = TypeVar("T")
TWO = 100  # least screen columns for two charts
NEEDS_A_ROW = ("by_variant", "detail", "play", "select", "pin", "sort", "reverse", "all_settings", "export", "report")
NEEDS_A_CURVE = ("train_curves", "log_y", "probe")
NEEDS_A_RUN = ("note", "tags", "over_seeds")  # not a variant
EXAMPLE = "rope   n_heads>=2   loss<1.3   badge:LEAK   tag:good   -failed"
FILE = "comparison"  # of an export, without suffix
SPOKEN = {"en": "in English", "zh": "in Chinese, 中文"}


class ComparePane(Vertical, can_focus=True):
    BINDINGS: ClassVar[list[BindingType]] = bindings("compare")

    def __init__(self, *, runs_dir: Path) -> None:
        super().__init__(id="compare")
        self.runs_dir = runs_dir
        self.folder, self.curves, self.view = Folder(runs_dir), Curves(), View()
        self.options, self.selection = Options(), Selection()
        self.look, self.metrics, self.shown = RunScan(), dict[Path, Metrics](), Shown()
        self.chosen: Path | None = None
        self.over_seeds = False  # whether curves are means over a variant's seeds
        self._title, self._nothing = Static("", id="compare-title"), Static("", id="compare-nothing")
        self._filter = SearchLine(EXAMPLE, self._focus_runs, id="compare-filter")
        self._filter.display = False
        self._mistake, self._hint = Static("", id="compare-mistake"), Static("", id="compare-hint")
        self._head, self._table, self._charts = TableHead(), RunTable(), CompareCharts()
        self._said: dict[Static, str] = {}
        self._looked = False
        self._changed: set[Path] = set()  # runs changed here, to be reread
        self._grouped: tuple[Path, ...] = ()  # the runs of the variants that are drawn
        self._interval = PollInterval()
        self._wake = asyncio.Event()  # set when something must be read at once

    def compose(self) -> ComposeResult:
        yield self._title
        yield self._filter
        yield self._mistake
        yield self._head
        yield self._table
        yield self._nothing
        yield self._hint
        yield self._charts

    def on_mount(self) -> None:
        self.add_class("-empty")
        self._say_in(self._nothing, Text("reading the runs…", style="dim"))
        self.run_worker(self._watch(), name="compare the runs", group="look", exclusive=True)

    def focus_first(self) -> None:
        self._focus_runs()
        self._wake.set()

    def _focus_runs(self) -> None:
        """Focus the table at once; the pane itself while there is no table, so that keys are heard."""
        self.screen.set_focus(self._table if self.shown.rows else self)

    def say(self, text: str) -> None:
        self.post_message(Say(text))

    def warn(self, text: str) -> None:
        self.post_message(Say(text, "warning"))

    # Looking

    async def _watch(self) -> None:
        while True:
            self._wake.clear()
            if not (self.display and self.size.width > 0):
                await self._wake.wait()
                continue
            started = time.perf_counter()
            baseline, runs = self.selection.baseline, self._grouped or self.selection.runs
            if runs and baseline is not None and baseline not in runs:
                runs = (*runs, baseline)
            look = await asyncio.to_thread(self.folder.look, frozenset(self._changed))
            metrics = await asyncio.to_thread(self.curves.read, runs)
            self._changed.clear()
            looked = time.perf_counter()
            changed = self._take(look, metrics)
            drawn = time.perf_counter() - looked + (self._charts.cost if changed else 0.0)
            wait = self._interval.next(changed=changed, cost=drawn + (looked - started) / 4)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait)

    def _take(self, look: RunScan, metrics: dict[Path, Metrics]) -> bool:
        """Show the current state; return whether anything is new."""
        first, self._looked = not self._looked, True
        another, more = first or look is not self.look, metrics != self.metrics
        self.look, self.metrics = look, metrics
        if another:
            self.selection.keep({entry.path for entry in look.entries})
            self.redraw()
        elif more:
            self.draw_charts()
        return another or more

    def look_now(self, run: Path) -> None:
        self._changed.add(run)
        self._wake.set()

    def on_show(self) -> None:
        self._wake.set()

    # Showing

    def redraw(self) -> None:
        selection, look = self.selection, self.look
        self.options = replace(self.options, baseline=selection.baseline, selected=selection.runs)
        self.shown = shown = self.view.arrange(look.entries, self.options, look.studies)
        marks = {run: (selection.slot(run), run == selection.baseline) for run in selection.runs}
        if selection.baseline is not None:
            marks[selection.baseline] = (selection.slot(selection.baseline), True)
        marks |= {v.path: (self._slot_of(v), v.is_baseline) for v in shown.variants}
        turned = bool(shown.rows) == self.has_class("-empty")
        with self.app.batch_update():
            self.set_class(not shown.rows, "-empty")
            self._table.show(shown, marks, self.chosen)
            self.chosen = self._table.chosen or self.chosen
            self._head.show(shown, self._table.layout_of, reverse=self.options.reverse)
            self.set_class(bool(shown.mistake), "-mistaken")
            self._say_in(self._mistake, Text(clean_line(shown.mistake)))
            self._say_in(self._title, _title(shown, self.options, look.problem))
            self._say_hint()
            if not shown.rows and self._looked:
                self._say_in(self._nothing, _nothing(shown, look.problem))
            self.draw_charts()
        if turned:
            self.refresh_bindings()
            if self.has_focus or self._table.has_focus or self.app.focused is None:
                self._focus_runs()

    def _say_hint(self) -> None:
        """Show the verdict under the cursor if the table cuts it, and what to do next."""
        row, lines = self._table.row, []
        if row is not None and isinstance(row.entry, VariantResult):
            lines.append(f"{row.entry.name}: {verdict_sentence(row.entry)}")
        elif row is not None and self._table.verdict_is_cut:
            lines.append(f"{row.entry.name}: {row.verdict}")
        if self.shown.rows and not self.options.selected:
            if self.shown.by == VARIANTS:
                lines.append("space draws its curves   enter opens it   p pins the baseline   v every run")
            elif self.shown.total == 1:
                lines.append("a comparison needs two runs: 1 designs another, 2 shows it learn")
            else:
                lines.append("space draws a run's curves   p pins the baseline   ← → columns   / filters")
        self.set_class(bool(lines), "-hinted")
        self._say_in(self._hint, Text("\n".join(map(clean_line, lines)), no_wrap=True, overflow="ellipsis"))

    def _say_in(self, where: Static, text: Text) -> None:
        if self._said.get(where) != text.markup:
            self._said[where] = text.markup
            where.update(text)

    def on_resize(self) -> None:
        self._charts.two = self.app.size.width >= TWO
        if self._looked:
            self.call_after_refresh(self.redraw)
        self._wake.set()

    # Choosing

    def current(self) -> Entry | None:
        """Return the run under the cursor; None in the view by variant, or on an extra row."""
        row = self._table.row
        if row is None or not isinstance(row.entry, Entry) or row.entry.state == NO_RUN:
            return None
        return row.entry

    def variant(self) -> VariantResult | None:
        row = self._table.row
        return row.entry if row is not None and isinstance(row.entry, VariantResult) else None

    def _representative(self) -> Entry | None:
        """The run under the cursor, or that of the variant there: its selected or pinned run."""
        variant = self.variant()
        if variant is None:
            return self.current()
        chosen = {*self.selection.runs, self.selection.baseline}
        return next((run for run in variant.runs if run.path in chosen), variant.group.representative)

    def on_line_list_chosen(self, event: RunTable.Chosen) -> None:
        event.stop()
        self.chosen = event.run
        self._say_hint()

    def on_line_list_opened(self, event: RunTable.Opened) -> None:
        event.stop()
        self.action_detail()

    def on_run_table_moved(self, event: RunTable.Moved) -> None:
        event.stop()
        self._head.show(self.shown, self._table.layout_of, reverse=self.options.reverse)
        self._say_hint()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """None, which greys it in the footer, if there is no run to act on."""
        if action in NEEDS_A_RUN and self.shown.by == VARIANTS:
            return None
        return None if action in (*NEEDS_A_ROW, *NEEDS_A_CURVE, *NEEDS_A_RUN) and not self.shown.rows else True

    def action_by_variant(self) -> None:
        """Toggle variants over seeds and every run; the cursor stays on its item."""
        at = self._representative()
        self.options = replace(self.options, by=RUNS if self.shown.by == VARIANTS else VARIANTS)
        self.redraw()
        self.refresh_bindings()
        if at is not None:
            there = (v.path for v in self.shown.variants if any(run.path == at.path for run in v.runs))
            self.chosen = next(there, at.path)
            self.redraw()

    def action_select(self) -> None:
        entry = self._representative()
        if entry is not None:
            if not self.selection.turn(entry.path):
                self.warn(f"{MOST} curves are as many as can be told apart: unselect one first")
            self._selected()

    def action_pin(self) -> None:
        entry = self._representative()
        if entry is not None:
            self.selection.pin(entry.path)
            self._selected()

    def action_unselect(self) -> None:
        self.selection.clear()
        self._selected()

    def _selected(self) -> None:
        if not self.selection.runs:
            self.options = replace(self.options, only=False)
        self.redraw()
        self._wake.set()

    def action_play(self) -> None:
        entry, two = self._representative(), self.selection.runs
        if len(two) == 2:
            self.post_message(Play(*two))
        elif entry is not None:
            self.post_message(Play(entry.path))

    # Filter and order

    def action_filter(self) -> None:
        self._filter.display = True
        self.screen.set_focus(self._filter)  # now: the next keys are meant for it

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.options = replace(self.options, query=event.value)
        self.redraw()

    def on_descendant_blur(self, event: DescendantBlur) -> None:
        if event.widget is self._filter and not self._filter.value:
            self._filter.display = False

    def action_back(self) -> None:
        """Undo, latest first: the filter, the selection view, the focus back to the table."""
        if self._filter.value:
            self._filter.value = ""
            self._filter.display = False  # an empty line would look as if it had the focus
        elif self.options.only:
            self.action_only()
        self._focus_runs()

    def action_only(self) -> None:
        if not self.selection.runs and not self.options.only:
            self.warn("no run is selected: space selects one")
            return
        self.options = replace(self.options, only=not self.options.only)
        self.redraw()

    def action_all_settings(self) -> None:
        self.options = replace(self.options, all_settings=not self.options.all_settings)
        self.redraw()

    def action_sort(self) -> None:
        keys = ["", *(column.key for column in self.shown.columns)]
        now = self.options.sort if self.options.sort in keys else ""
        self._sort(keys[(keys.index(now) + 1) % len(keys)])

    def action_reverse(self) -> None:
        self.options = replace(self.options, reverse=not self.options.reverse)
        self.redraw()

    def on_table_head_clicked(self, event: TableHead.Clicked) -> None:
        event.stop()
        if event.key == self.options.sort:
            self.action_reverse()
        else:
            self._sort(event.key)

    def _sort(self, key: str) -> None:
        self.options = replace(self.options, sort=key, reverse=False)
        self.redraw()

    # Charts: the curves of the selected runs, or means over the seeds of variants

    def draw_charts(self) -> None:
        entries, pinned, baseline = self.look.entries, self.shown.baseline, None
        by_path = {entry.path: entry for entry in entries}
        runs = [(self.selection.slot(run) or 0, by_path[run]) for run in self.selection.runs if run in by_path]
        if self.shown.by == VARIANTS and self.selection.runs:
            drawn = [(slot, v) for v in self.shown.variants if (slot := self._slot_of(v)) is not None]
            groups = [(slot, Group(v.name, v.group.drawn)) for slot, v in sorted(drawn, key=lambda pair: pair[0])]
            baselines = [v.family.baseline for _, v in drawn if v.family.baseline is not None]
            if baselines:
                baseline = Group(baselines[0].name, baselines[0].drawn)
        elif self.over_seeds and runs:
            seeds = seeds_of([run for _, run in runs], entries)
            groups = [(next(slot for slot, run in runs if run in group.runs), group) for group in seeds]
            if pinned is not None:
                (baseline,) = seeds_of([pinned], entries)
        else:
            self._grouped = ()
            self._charts.show(Drawn.of_runs(runs, pinned, self.metrics) if runs else None)
            return
        together = [group for _, group in groups] + ([baseline] if baseline is not None else [])
        paths = tuple(dict.fromkeys(run.path for group in together for run in group.runs))
        if set(paths) - set(self._grouped):
            self._wake.set()  # some are not read yet
        self._grouped = paths
        self._charts.show(Drawn(tuple(groups), baseline, self.metrics))

    def _slot_of(self, variant: VariantResult) -> int | None:
        """The index of a variant's letter: that of its first selected run."""
        return next((slot for run in variant.runs if (slot := self.selection.slot(run.path)) is not None), None)

    def action_x_axis(self) -> None:
        self._charts.turn_axis()

    def action_other_chart(self) -> None:
        self._charts.turn_view()

    def action_over_seeds(self) -> None:
        self.over_seeds = not self.over_seeds
        self.draw_charts()
        self._wake.set()

    def action_probe(self) -> None:
        self._charts.turn_probe()

    def action_log_y(self) -> None:
        self._charts.change(replace(self._charts.options, log=not self._charts.options.log))

    def action_train_curves(self) -> None:
        self._charts.change(replace(self._charts.options, train=not self._charts.options.train))

    # Detail, notes and tags

    def action_detail(self) -> None:
        entry, variant, palette = self.current(), self.variant(), Palette.of(self.app.theme_variables)
        if entry is not None:
            blocks = detail(entry, self.shown.baseline)
            self.app.push_screen(DetailPage(f"{entry.name}   {entry.state}", blocks, palette))
        elif variant is not None:
            title = f"{variant.group.title}   {variant.seeds()}"
            self.app.push_screen(DetailPage(title, group_detail(variant), palette))

    def _ask(self, page: Screen[T | None], then: Callable[[T], None]) -> None:
        self.app.push_screen(page, lambda answer: then(answer) if answer is not None else None)

    def action_note(self) -> None:
        entry = self.current()
        if entry is None:
            return

        def note(text: str) -> str:
            write_notes(entry.path, text=text)
            return f"{entry.name}: noted" if text else f"{entry.name} has no note now"

        self._ask(NotePage(entry.name, entry.notes), lambda text: self._write(lambda: note(text), entry.path))

    def action_tags(self) -> None:
        entry = self.current()
        if entry is None:
            return

        def tags_in(text: str) -> list[str]:
            return list(dict.fromkeys(tag for part in text.split(",") if (tag := part.strip().lstrip("#").strip())))

        def wrong(text: str) -> str:
            try:
                for one in tags_in(text):
                    check_tag(one)
            except InputError as error:
                return str(error)
            return ""

        def tag(tags: list[str]) -> str:
            write_notes(entry.path, add=tags, remove=set(entry.tags) - set(tags))
            return f"{entry.name}: {' '.join(f'#{tag}' for tag in tags)}" if tags else f"{entry.name} has no tags now"

        asked = AskText(f"Tags of {entry.name}", ", ".join(entry.tags), text="With commas between them.", wrong=wrong)
        self._ask(asked, lambda text: self._write(lambda: tag(tags_in(text)), entry.path))

    def _write(self, work: Callable[[], str], run: Path | None = None, *, group: str = "notes") -> None:
        """Write in a thread and show the outcome; a changed run is reread."""

        async def write() -> None:
            try:
                self.say(await asyncio.to_thread(work))
            except (InputError, OSError) as error:
                self.post_message(Say(str(error), "error"))
            if run is not None:
                self.look_now(run)

        self.run_worker(write(), group=group, exclusive=group == "report", exit_on_error=False)

    # Exports and reports

    def action_export(self) -> None:
        if not self.shown.rows:
            self.warn("no run is shown that could be exported")
            return

        def format_chosen(key: str) -> None:
            name = str(Path.cwd() / f"{FILE}.{FORMATS[key].ending}")
            asked = AskText(f"Write {FORMATS[key].name} to", name, wrong=lambda text: wrong_place(text, "file"))
            self._ask(asked, lambda text: place_chosen(key, Path(text).expanduser()))

        def place_chosen(key: str, path: Path) -> None:
            if not path.exists():
                export(key, path)
                return
            answers = [Answer(False, "Keep it"), Answer(True, "Write over it")]
            question: Ask[bool] = Ask(f"{path} exists already.", answers)
            self._ask(question, lambda yes: export(key, path) if yes else None)

        def export(key: str, path: Path) -> None:
            shown, everything = self.shown, self.options.all_settings

            def work() -> str:
                made = (
                    group_table(shown.variants, data=key in DATA, all_settings=everything)
                    if shown.by == VARIANTS
                    else table(shown.runs, shown.baseline, all_settings=everything)
                )
                save(FORMATS[key].write(made), path)
                what = shown.by if len(shown.rows) > 1 else shown.by.removesuffix("s")
                return f"{len(shown.rows):,} {what} written to {path.absolute()}"

            self._write(work, group="export")

        answers = [Answer(key, f"{kind.name}: {kind.what}") for key, kind in FORMATS.items()]
        rows, what = len(self.shown.rows), self.shown.by
        count = f"{rows:,} {what}" if rows > 1 else f"one {what.removesuffix('s')}"
        question: Ask[str] = Ask("Export the comparison", answers, f"{count}, in the order and with the filter shown.")
        self._ask(question, format_chosen)

    def what_is_reported(self) -> ReportSelection:
        look, selection = self.look, self.selection
        if self.shown.by == VARIANTS:
            return of_variants(look, self.shown.variants, selection.baseline, self.variant(), selection.runs)
        return of_runs(look, selection.runs, selection.baseline, self.current())

    def action_report(self) -> None:
        chosen = self.what_is_reported()
        if not chosen.entries:
            self.warn("no run is selected that could be reported")
            return

        def format_chosen(key: tuple[str, str]) -> None:
            folder = str(Path.cwd() / "reports" / ("-and-".join(chosen.studies) or chosen.entries[0].name))
            wrong = lambda text: wrong_place(text, "folder")
            asked = AskText("Write the report into the folder", folder, wrong=wrong)
            self._ask(asked, lambda text: folder_chosen(*key, Path(text).expanduser()))

        def folder_chosen(kind: str, language: str, out: Path) -> None:
            self.say(f"writing a report on {chosen.name} …")
            self._write(lambda: report(kind, language, out), group="report")

        def report(kind: str, language: str, out: Path) -> str:
            from tui_transformer.lab.reports.report import make  # matplotlib, off the event loop

            main, _ = make(chosen.entries, chosen.studies, kind=kind, language=language, out=out, pinned=chosen.pinned)
            return f"the report is {main.absolute()}"

        keys = [(kind, language) for kind in ("html", "latex", "markdown") for language in LANGUAGES]
        answers = [Answer(key, f"{REPORTS[key[0]].name} {SPOKEN[key[1]]}: {REPORTS[key[0]].what}") for key in keys]
        words = "What can be concluded, the model, data, settings, curves, tables, limits, and how to repeat it."
        words += f"\nRuns: {clean_line(chosen.names)}"
        question: Ask[tuple[str, str]] = Ask(f"A report on {chosen.name}", answers, words)
        self._ask(question, format_chosen)


def _title(shown: Shown, options: Options, problem: str) -> Text:
    count = f"{shown.count:,} of {shown.total:,}" if shown.count != shown.total else f"{shown.total:,}"
    parts = [f"{shown.by.upper()}  {count}"]
    if options.selected:
        parts.append(f"{len(options.selected)} selected")
    baselines = dict.fromkeys(v.name for v in shown.variants if v.is_baseline)
    if shown.by == VARIANTS and len(baselines) > 1:
        parts.append(f"◆ {len(baselines)} baselines")
    elif shown.by == VARIANTS:
        parts += [f"◆ {name}" for name in baselines]
    elif shown.baseline is not None:
        parts.append(f"◆ {shown.baseline.name}")
    if shown.sorted_by is not None:
        parts.append(f"by {shown.sorted_by.title} {'↓' if options.reverse else '↑'}")
    if shown.rows:
        parts.append(f"loss: {unit_of([row.entry for row in shown.rows])}")
    return Text(clean_line(problem or " · ".join(parts)), no_wrap=True, overflow="ellipsis")


def _nothing(shown: Shown, problem: str) -> Text:
    words = Text(justify="center")
    if problem:
        words.append(f"{clean_line(problem)}\n\n", "bold")
        return words.append("The studio looks again every two seconds.")
    if shown.total:
        words.append(f"{clean_line(shown.nothing)}\n\n", "bold")
        words.append("escape", "bold").append("  shows all runs again      ")
        return words.append("/", "bold").append("  changes the filter")
    words.append("There is nothing to compare yet\n\n", "bold")
    words.append("1", "bold").append("  choose a design      ").append("f5", "bold").append("  train it\n\n")
    return words.append("Two runs make a comparison: the settings that differ, curves over each other.", "dim")


def wrong_place(text: str, what: Literal["file", "folder"]) -> str:
    """Return why nothing can be written there; "" if it probably can."""
    try:
        path = Path(text).expanduser()
        if not text.strip():
            return f"a {what}'s name is needed"
        if what == "folder":
            return f"{path} is a file: a report is a folder" if path.is_file() else ""
        if path.is_dir():
            return f"{path} is a folder: add a file's name"
        return "" if path.parent.is_dir() else f"there is no folder {path.parent}"
    except (OSError, ValueError, RuntimeError) as error:
        return f"this cannot be a {what}: {error}"
