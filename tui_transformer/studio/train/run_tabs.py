"""Under the charts: what the run wrote, what the checks found, what happened; one at a time."""

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Click
from textual.widgets import Static

from engine.clean import clean, clean_line
from tui_transformer.lab.records.run_view import RunView

TABS = (("samples", "t", "samples"), ("checks", "v", "checks"), ("log", "l", "log"))
DIM = "$foreground 65%"
STYLES = {"good": "$success", "bad": "$error bold", "warn": "$warning bold"}  # of findings
BAR = 10  # columns of a probe's bar
SCROLLS = (
    "  ↑ ↓ scroll · escape: back to the runs",
    "  ↑↓ scroll · esc runs",
    " esc: runs",
)  # while a text has the keys


class TabLine(Static):
    """The names of the tabs, as a rule across the pane; a click chooses one."""

    DEFAULT_CSS = """
    TabLine { height: 1; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__("", id="tab-line")
        self._places: list[tuple[int, int, str]] = []

    def show(self, chosen: str, beside: str, wrong: int, *, scrolls: bool) -> None:
        """Light up what is shown; a number says how many checks found something.

        Args:
            chosen: the first tab.
            beside: the second, "" where there is room for one.
            wrong: checks that found something.
            scrolls: whether a text has the keys, which is said then.
        """
        line, self._places = Content.styled("── ", "$foreground 25%"), []
        for name, key, label in TABS:
            start = line.cell_length
            style = "$accent bold" if name == chosen else "$foreground bold" if name == beside else "$foreground 75%"
            line = Content.assemble(line, (f"{label} ", style), (key, DIM))
            if name == "checks" and wrong:
                line = Content.assemble(line, (f" ✗{wrong}", "$error bold"))
            self._places.append((start, line.cell_length, name))
            line = Content.assemble(line, ("  ", ""))
        room = self.content_size.width - line.cell_length
        words = next((words for words in SCROLLS if len(words) <= room), "") if scrolls else ""
        rule = "─" * max(0, room - len(words))
        line = Content.assemble(line, (rule, "$foreground 25%"), (words, "$accent"))
        self.update(line)

    def on_click(self, event: Click) -> None:
        """Choose the tab under the mouse."""
        offset = event.get_content_offset(self)
        tabs = self.parent
        if offset is not None and isinstance(tabs, RunTabs):
            for start, end, name in self._places:
                if start <= offset.x < end:
                    tabs.choose(name)


class TabBody(VerticalScroll):
    """The text of one tab."""

    DEFAULT_CSS = """
    TabBody { width: 1fr; height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
    TabBody:focus { background: $foreground 4%; }
    TabBody > Static { height: auto; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._text = Static("")
        self._shown: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        """A text of any length."""
        yield self._text

    def show(self, tab: str, view: RunView | None) -> None:
        """Show one; nothing is redrawn where the text is the same."""
        shown = (tab, None if view is None else view.path, _parts(tab, view))
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
    """The three texts of a run: one at a time, or two where there is room."""

    DEFAULT_CSS = """
    RunTabs { height: 1fr; min-height: 3; }
    RunTabs > Horizontal { height: 1fr; }
    RunTabs #tab-first { width: 9fr; }
    RunTabs #tab-second { width: 11fr; }
    """

    def __init__(self) -> None:
        super().__init__(id="run-tabs")
        self.tab = TABS[0][0]
        self.two = False  # whether there is room for another beside it
        self._line, self._first, self._beside = TabLine(), TabBody(id="tab-first"), TabBody(id="tab-second")
        self._view: RunView | None = None
        self._shown: object = None

    def compose(self) -> ComposeResult:
        """The names, and the texts."""
        yield self._line
        with Horizontal():
            yield self._first
            yield self._beside

    def choose(self, tab: str) -> None:
        """Show one of them."""
        self.tab = tab
        self.show(self._view)

    def show(self, view: RunView | None) -> None:
        """Show a run's."""
        self._view = view
        beside = ("checks" if self.tab != "checks" else "samples") if self.two else ""
        wrong = sum(not finding.fine for finding in view.findings) if view is not None else 0
        scrolls = self._first.has_focus or self._beside.has_focus
        shown = (self.tab, beside, wrong, scrolls, self.size.width)
        if shown != self._shown:
            self._shown = shown
            self._line.show(self.tab, beside, wrong, scrolls=scrolls)
        self._first.show(self.tab, view)
        self._beside.display = bool(beside)
        if beside:
            self._beside.show(beside, view)

    def on_resize(self) -> None:
        """The rule goes across."""
        self.show(self._view)

    def on_descendant_focus(self) -> None:
        """A text has the keys: say what arrows do."""
        self.show(self._view)

    def on_descendant_blur(self) -> None:
        """They choose runs again."""
        self.show(self._view)


def _parts(tab: str, view: RunView | None) -> object:
    if view is None:
        return None
    return {"samples": view.samples, "checks": (view.findings, view.probes), "log": (view.events, view.log)}[tab]


def _samples(view: RunView) -> Content:
    if not view.samples:
        return Content.styled("no samples yet: evaluation.sample_every says how often one is written", DIM)
    parts = []
    for sample in view.samples:
        head = f"step {sample.step:,}" + (f", temperature {sample.temperature:g}" if sample.temperature else "")
        if sample.translations:
            parts.append(Content("\n").join([Content.styled(head, DIM), *map(_translation, sample.translations)]))
            continue
        prompt, text = clean(sample.prompt), clean(sample.text)
        middle = "" if sample.continues else "\n→ "
        parts.append(Content.assemble((head, DIM), "\n", (prompt, "bold"), middle, text.rstrip()))
    return Content("\n\n").join(parts)


def _translation(row: tuple[str, str, str]) -> Content:
    source, reference, written = (clean_line(part) for part in row)
    exact = bool(reference) and written.strip() == reference.strip()
    lines = [
        Content.styled(source, "bold"),
        Content.assemble(("✓ " if exact else "→ ", "$success" if exact else DIM), written),
    ]
    if reference and not exact:
        lines.append(Content.assemble(("= ", DIM), (reference, DIM)))
    return Content("\n").join(lines)


def _checks(view: RunView) -> Content:
    if not (view.findings or view.probes):
        return Content.styled("no checks yet: the first come before training and at evaluations", DIM)
    lines = []
    for finding in view.findings:
        style = STYLES[finding.style]
        words = ("", "") if finding.fine else (clean_line(finding.words), style)
        rest = clean_line(finding.words) if finding.fine else ""
        lines.append(Content.assemble((f"{finding.sign} ", style), words, rest, (f": {clean_line(finding.why)}", DIM)))
    if view.probes:
        width = max(len(clean_line(probe.name)) for probe in view.probes)
        counted = max(len(f"{probe.places:,}") for probe in view.probes)
        for probe in view.probes:
            chance = f"chance {probe.chance:>4.0%}" if probe.chance is not None else " " * 11
            bar = _bar(probe.right)
            lines.append(
                Content.assemble(
                    f"{clean_line(probe.name):<{width}}  ",
                    (bar, "$success" if probe.beats_chance else DIM),
                    (f" {probe.right:>4.0%}", "bold"),
                    (f" of {probe.places:>{counted},}" if probe.places else "", DIM),
                    (f"  {chance}  {clean_line(probe.what)}", DIM),
                )
            )
    return Content("\n").join(lines)


def _bar(share: float) -> str:
    eighths = round(max(0.0, min(1.0, share)) * BAR * 8)
    full, rest = divmod(eighths, 8)
    blocks = "▏▎▍▌▋▊▉"
    return ("█" * full + (blocks[rest - 1] if rest else "")).ljust(BAR, "·")


def _log(view: RunView) -> Content:
    lines = []
    for event in view.events:
        time = clean_line(event.time).replace("T", " ").partition("+")[0]
        said = clean_line(event.text)
        lines.append(
            Content.assemble(
                (f"{time}  step {event.step:<6,} ", DIM), (clean_line(event.event), "bold"), f"  {said}" if said else ""
            )
        )
    if view.log:
        if lines:
            lines.append(Content.styled("log.txt", DIM))
        lines += [Content(clean_line(line)) for line in view.log]
    return Content("\n").join(lines) if lines else Content.styled("nothing was logged yet", DIM)


WRITE: dict[str, Callable[[RunView], Content]] = {"samples": _samples, "checks": _checks, "log": _log}
