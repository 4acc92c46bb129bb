"""Tabs under the charts: the run's samples, check findings, and events; one at a time."""

from collections.abc import Callable

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Click, DescendantBlur, DescendantFocus, Resize
from textual.widgets import Static

from engine.base.clean import clean_line
from engine.base.language import Message, tr
from engine.config.measures import probe_display_name
from engine.runs.records import ModelOutput
from tui_transformer.lab.formatting import bar, fit_to_width, rough_duration
from tui_transformer.lab.records.badges import SIGNS, badge, worst_first
from tui_transformer.lab.records.run_view import RunRow, RunView
from tui_transformer.studio.shared.keys import COMMAND_KEYS
from tui_transformer.studio.shared.name_line import NameLine, NameSpans

TABS: tuple[str, ...] = Message("samples"), Message("checks"), Message("log")
DIM = "$foreground 65%"
STYLES = {"good": "$success", "bad": "$error bold", "warn": "$warning bold"}  # of findings, by severity
BAR = 10  # columns of a probe's bar
STEP = 11  # columns of a step
EVENTS = {
    "begun again": Message("started over"),
    "checkpoint": Message("checkpoint"),
    "continued": Message("continued"),
    "damaged checkpoint": Message("damaged checkpoint"),
    "failed": Message("failed"),
    "finished": Message("finished"),
    "interrupted": Message("interrupted"),
    "leak": Message("leak"),
    "lint": Message("warning"),
    "paused": Message("paused"),
    "resumed": Message("resumed"),
    "started": Message("started"),
    "stopped": Message("stopped"),
}
TITLE = 3  # columns of a frame before its title
SCROLLS = (  # while a text has the focus
    Message("  ↑ ↓: scroll · esc: back to the runs"),
    Message(" ↑↓ scroll · esc runs"),
    Message(" esc: runs"),
)


class TabBody(VerticalScroll):
    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._text = Static("")
        self._shown: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        yield self._text

    def show(self, tab: str, view: RunView | None) -> None:
        if view is None:
            shown: tuple[object, ...] = (tab, None)
        else:
            parts = {
                "samples": view.samples or _no_samples_text(view),
                "checks": (view.findings, view.probes),
                "log": (view.events, view.log),
            }
            shown = (tab, view.path, parts[tab])
        if shown == self._shown:
            return
        other = shown[:2] != self._shown[:2]
        self._shown = shown
        at_end = self.scroll_y >= self.max_scroll_y - 1
        self._text.update(WRITE[tab](view) if view is not None else Content(""))
        if tab == "log" and (other or at_end):
            self.call_after_refresh(self.scroll_end, animate=False)
        elif other:
            self.scroll_home(animate=False)


class RunTabs(Vertical):
    """A run's three texts: one at a time, or two if there is room."""

    def __init__(self) -> None:
        super().__init__(id="run-tabs")
        self.tab = TABS[0]
        self.wide = False  # whether another fits beside it
        self._line = NameLine(self._tab_line, self.choose, id="tab-line")
        self._first, self._beside = TabBody(id="tab-first"), TabBody(id="tab-second")
        self._row: RunRow | None = None
        self._view: RunView | None = None
        self._shown: object = None  # what the line of names shows

    def compose(self) -> ComposeResult:
        yield self._line
        with Horizontal():
            yield self._first
            yield self._beside

    def choose(self, tab: str) -> None:
        self.tab = tab
        self._redraw()

    def show(self, row: RunRow | None, view: RunView | None) -> None:
        self._row, self._view = row, view
        shown = (
            self.tab,
            self._tab_shown_beside,
            self._badges_not_marked_seen,
            self._first.has_focus or self._beside.has_focus,
        )
        if shown != self._shown:
            self._shown = shown
            self._line.refresh()
            self.border_title = self._line_with_tab_names()[0].rstrip()
            self.border_subtitle = SCROLLS[0].strip() if shown[-1] else ""
        self._first.show(self.tab, view)
        self._beside.display = bool(self._tab_shown_beside)
        if self._tab_shown_beside:
            self._beside.show(self._tab_shown_beside, view)

    @property
    def _tab_shown_beside(self) -> str:
        """The text beside the chosen one; "" if there is no room for it."""
        return ("checks" if self.tab != "checks" else "samples") if self.wide else ""

    @property
    def _badges_not_marked_seen(self) -> tuple[str, ...]:
        """The badges of the findings that still hold and that nobody has marked as seen, worst first."""
        if self._row is None or self._view is None:
            return ()
        left = {*self._row.badges} - {*self._row.seen}
        names = (finding.badge for finding in self._view.findings)
        return worst_first(name for name in names if name is not None and name in left)

    def _line_with_tab_names(self, line: Content = Content()) -> tuple[Content, NameSpans]:
        """The tabs' names, lit up where their text is shown, after the start of a line."""
        places: NameSpans = []
        for name in TABS:
            start, other = line.cell_length, name == self._tab_shown_beside
            style = "$accent bold" if name == self.tab else "$foreground bold" if other else "$foreground 75%"
            line = Content.assemble(line, (f"{tr(name)} ", style), (COMMAND_KEYS[name], DIM))
            if name == "checks" and (unseen := self._badges_not_marked_seen):
                severity = badge(unseen[0]).severity
                line = Content.assemble(line, (f" {SIGNS[severity]}{len(unseen)}", STYLES[severity]))
            places.append((start, line.cell_length, name))
            line = Content.assemble(line, ("  ", ""))
        return line, places

    def _tab_line(self, width: int) -> tuple[Content, NameSpans]:
        """A line with the tabs' names; while a text has the focus, how to scroll it."""
        line, places = self._line_with_tab_names(Content.styled("── ", "$foreground 25%"))
        room = width - line.cell_length
        scrolls = self._first.has_focus or self._beside.has_focus
        words = next((words for words in map(tr, SCROLLS) if cell_len(words) <= room), "") if scrolls else ""
        rule = "─" * max(0, room - cell_len(words))
        return Content.assemble(line, (rule, "$foreground 25%"), (words, "$accent")), places

    def on_click(self, event: Click) -> None:
        """In the frame the tabs' names are its title."""
        if event.widget is self and event.y == 0:
            places = self._line_with_tab_names()[1]
            name = next((name for start, end, name in places if start <= event.x - TITLE < end), None)
            if name is not None:
                self.choose(name)

    @on(Resize)
    @on(DescendantFocus)
    @on(DescendantBlur)
    def _redraw(self) -> None:
        self.show(self._row, self._view)


def _no_samples_text(view: RunView) -> str:
    """`first sample at step 700 (in about 30 s)`."""
    if view.is_finished:
        return tr("no samples were written")
    soon = tr(" (in about {about})", about=rough_duration(view.sample_in)) if view.sample_in is not None else ""
    if view.sample_at:
        return tr("first sample at step {step:,}{soon}", step=view.sample_at, soon=soon)
    return tr("first sample at the end{soon}", soon=soon)


def samples_text(view: RunView) -> Content:
    if not view.samples:
        return Content.styled(_no_samples_text(view), DIM)
    parts = []
    for sample in view.samples:
        head = tr("step {step:,}", step=sample.step) + (
            tr(", temperature {temperature:g}", temperature=sample.temperature) if sample.temperature else ""
        )
        if sample.translations:
            parts.append(
                Content("\n").join([Content.styled(head, DIM), *map(_translated_sample_text, sample.translations)])
            )
        else:
            middle = "" if view.continues else "\n→ "
            parts.append(Content.assemble((head, DIM), "\n", (sample.prompt, "bold"), middle, sample.text.rstrip()))
    return Content("\n\n").join(parts)


def _translated_sample_text(row: ModelOutput) -> Content:
    source, reference, written = clean_line(row.source), clean_line(row.reference), clean_line(row.text)
    exact = bool(reference) and written.strip() == reference.strip()
    mark = ("✓ ", "$success") if exact else ("→ ", DIM)
    lines = [Content.styled(source, "bold"), Content.assemble(mark, written)]
    if reference and not exact:
        lines.append(Content.assemble(("= ", DIM), (reference, DIM)))
    return Content("\n").join(lines)


def checks_text(view: RunView) -> Content:
    if not (view.findings or view.probes):
        return Content.styled(tr("no checks yet: they run before training and at each evaluation"), DIM)
    lines = []
    for finding in view.findings:
        style = STYLES[finding.style]
        words = (clean_line(finding.words), "" if finding.is_ok else style)
        why = tr(": {why}", why=clean_line(finding.why))
        lines.append(Content.assemble((f"{finding.sign} ", style), words, (why, DIM)))
    if view.probes:
        names = [tr(probe_display_name(clean_line(probe.name))) for probe in view.probes]
        width = max(map(cell_len, names))
        counted = max(len(f"{probe.places:,}") for probe in view.probes)
        for name, probe in zip(names, view.probes, strict=True):
            chance = tr("chance {chance:>4.0%}", chance=probe.chance or 0.0)
            if probe.chance is None:
                chance = " " * cell_len(chance)
            lines.append(
                Content.assemble(
                    f"{fit_to_width(name, width)}  ",
                    (bar(probe.accuracy, BAR).ljust(BAR, "·"), "$success" if probe.beats_chance else DIM),
                    (f" {probe.accuracy:>4.0%}", "bold"),
                    (tr(" of {places}", places=f"{probe.places:>{counted},}") if probe.places else "", DIM),
                    (f"  {chance}  {tr(clean_line(probe.description))}", DIM),
                )
            )
    return Content("\n").join(lines)


def log_text(view: RunView) -> Content:
    lines = []
    for event in view.events:
        time = clean_line(event.time).replace("T", " ").partition("+")[0]
        said = f"  {clean_line(tr(event.text))}" if event.text else ""
        head = (f"{time}  {fit_to_width(tr('step {step:,}', step=event.step), STEP)}  ", DIM)
        lines.append(Content.assemble(head, (tr(EVENTS.get(event.event, "")) or clean_line(event.event), "bold"), said))
    if view.log:
        lines += [Content.styled("log.txt", DIM)] if lines else []
        lines += [Content(clean_line(line)) for line in view.log]
    return Content("\n").join(lines) if lines else Content.styled(tr("nothing has been logged yet"), DIM)


WRITE: dict[str, Callable[[RunView], Content]] = {"samples": samples_text, "checks": checks_text, "log": log_text}
