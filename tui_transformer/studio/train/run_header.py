"""A run in words and numbers: the lines above its charts, and its machine's gauges below."""

from collections.abc import Callable
from dataclasses import dataclass

from textual.content import Content
from textual.widgets import Static

from engine.clean import clean_line
from engine.runs.lineage import drawn
from tui_transformer.lab.charts.curves import curve_of
from tui_transformer.lab.formatting import BARS, duration, memory, short
from tui_transformer.lab.records.badges import badge
from tui_transformer.lab.records.run_view import RunRow, RunView
from tui_transformer.studio.shared.run_states import STATES, UNKNOWN, notice

COLOURS = {
    "live": "$accent bold",
    "paused": "$warning bold",
    "queued": "$foreground 70%",
    "good": "$success bold",
    "ended": "$foreground 80% bold",
    "bad": "$error bold",
    "dim": "$foreground 75%",
    "warning": "$warning",
    "error": "$error",
}
ALARMS = {"bad": "$error bold", "warn": "$warning bold"}  # style by severity of a badge
LEAST_BAR = 8


class RunHeader(Static):
    def __init__(self) -> None:
        super().__init__("", id="run-header")
        self._shown: Content | None = None
        self._of: tuple[RunRow, RunView | None, str] | None = None

    def show(self, row: RunRow, view: RunView | None, pending: str) -> None:
        """Show a run and its pending command; redraw only if the text changes."""
        self._of = row, view, pending
        width = max(30, self.content_size.width)
        lines = [_first_line(row, view, pending, width), _progress(row, view, width)]
        if view is not None and view.origin is not None:
            origin = f"from {view.origin.shown}"
            chain = f"{drawn(view.origin, row.name)}, {origin}" if view.origin.before is not None else origin
            lineage = clean_line(chain if len(clean_line(chain)) <= width else origin)
            cut = lineage if len(lineage) <= width else lineage[: width - 1] + "…"
            lines.append(Content.styled(cut, COLOURS["dim"]))
        said = notice(row, view)
        if said.text:
            lines.append(Content.styled(clean_line(said.text), COLOURS[said.style]))
        if view is not None and view.problems:
            lines.append(Content.styled(f"damaged: {', '.join(view.problems)}", COLOURS["warning"]))
        shown = Content("\n").join(lines)
        if self._shown is None or not shown.is_same(self._shown):
            self._shown = shown
            self.update(shown)

    def on_resize(self) -> None:
        if self._of is not None:
            self.show(*self._of)


def _first_line(row: RunRow, view: RunView | None, pending: str, width: int) -> Content:
    """Name and facts at the left, badges and state at the right; facts are dropped first if space is short."""
    style = STATES.get(row.state, UNKNOWN)
    words = row.state if row.state != "running" or row.phase in ("", "training") else row.phase.replace("-", " ")
    state = f"{style.sign} {clean_line(pending or words)}"
    badges = [(clean_line(name) + "  ", ALARMS[badge(name).severity]) for name in row.badges]
    facts = [clean_line(view.corpus)] if view is not None and view.corpus else []
    if view is not None and view.parameters:
        facts.append(f"{short(view.parameters)} parameters")
    if row.device:
        facts.append(clean_line(row.device))
    fixed = len(state) + sum(len(text) for text, _ in badges) + 2
    name = clean_line(row.name)
    while facts and len(name) + sum(len(fact) + 3 for fact in facts) + fixed > width:
        facts.pop()
    room = width - fixed - sum(len(fact) + 3 for fact in facts)
    if len(name) > room:
        name = name[: max(1, room - 1)] + "…"
    left = Content.assemble((name, "bold"), *((f" · {fact}", "$foreground 75%") for fact in facts))
    right = Content.assemble(*badges, (state, "$warning bold" if pending else COLOURS[style.style]))
    return Content.assemble(left, " " * max(1, width - left.cell_length - right.cell_length), right)


def _progress(row: RunRow, view: RunView | None, width: int) -> Content:
    parts = [f"{row.share:.0%}", f"step {row.step:,} / {row.steps:,}"]
    if row.live and view is not None:
        if view.newest is not None and view.newest.tokens_per_second:
            parts.append(f"{_tight(view.newest.tokens_per_second)} tok/s")
        if row.state == "running" and row.step >= row.steps:
            parts.append("finishing")
        elif row.state == "running":
            parts.append(f"{duration(view.eta)} left" if view.eta is not None else "warming up…")
    text = " · ".join(parts)
    if len(text) + LEAST_BAR + 2 > width and len(parts) > 2:
        text = " · ".join([parts[0], f"{row.step:,} / {row.steps:,}", *parts[2:]])
    while len(text) + LEAST_BAR + 2 > width and len(parts) > 1:
        parts.pop(1)
        text = " · ".join(parts)
    room = max(LEAST_BAR, width - len(text) - 2)
    full = row.share * room
    style = STATES.get(row.state, UNKNOWN).style
    colour = {"bad": "$error", "good": "$success", "paused": "$warning"}.get(style, "$accent")
    done = "━" * int(full) + ("╸" if full % 1 >= 0.5 and int(full) < room else "")
    return Content.assemble((done, colour), ("━" * (room - len(done)), "$foreground 20%"), f"  {text}")


ROOMY = 88  # least columns for all five gauges in one row, history under value
GAP = 2


def _tight(value: float) -> str:
    return short(value).replace(" ", "")


@dataclass(frozen=True)
class Gauge:
    """A train-record field, its names, its value's format, and a full bar's value if not the maximum."""

    key: str
    label: str
    brief: str
    write: Callable[[float], str]
    full: float | None = None


GAUGES = (
    Gauge("lr", "learning rate", "lr", lambda value: f"{value:.2g}"),
    Gauge("grad_norm", "gradient norm", "grad", lambda value: f"{value:.3g}"),
    Gauge("tokens_per_second", "tokens/s", "tok/s", _tight),
    Gauge("device_load", "{device} load", "{device}", lambda value: f"{value:.0%}", 1.0),
    Gauge("memory_bytes", "memory", "mem", memory),
)


class Gauges(Static):
    """Machine load while training: values with recent history, on two lines at any width."""

    def __init__(self) -> None:
        super().__init__("", id="gauges")
        self._of: tuple[RunRow, RunView] | None = None
        self._seen: object = None

    def show(self, row: RunRow, view: RunView | None) -> None:
        """Show a run's; redraw only for a new record."""
        seen = (row.path, row.device, None if view is None else view.version, self.content_size)
        if seen != self._seen:
            self._seen = seen
            self._of = (row, view) if view is not None else None
            self.on_resize()

    def on_resize(self) -> None:
        width = self.content_size.width
        if self._of is None or not self._of[1].train or width < 20:
            self.update("")
        else:
            self.update((_in_one_row if width >= ROOMY else _in_two_rows)(*self._of, width))


def _label(gauge: Gauge, row: RunRow, *, brief: bool) -> str:
    device = "CPU" if row.device.startswith("cpu") or not row.device else "GPU"
    return (gauge.brief if brief else gauge.label).format(device=device)


def _now(view: RunView, gauge: Gauge) -> str:
    value = getattr(view.newest, gauge.key, None)
    return gauge.write(value) if value is not None else "–"


def _past(view: RunView, gauge: Gauge, room: int) -> str:
    """The newest values that fit, as bars from zero, so that small changes look small."""
    values = curve_of(view.train[-4 * room :], "step", gauge.key).y
    stride = max(1, len(values) // max(1, room)) if gauge.key == "lr" else 1
    values = values[::-1][::stride][:room][::-1]
    high = gauge.full or max(values, default=0.0)
    if len(values) < 2 or not high > 0:
        return " " * room
    bars = [BARS[round(min(1.0, max(0.0, value / high)) * (len(BARS) - 1))] for value in values]
    return "".join(bars).ljust(room)[:room]


def _in_one_row(row: RunRow, view: RunView, width: int) -> Content:
    each = (width - GAP * (len(GAUGES) - 1)) // len(GAUGES)
    top, bottom = Content(""), Content("")
    brief = any(len(f"{_label(gauge, row, brief=False)} {_now(view, gauge)}") > each for gauge in GAUGES)
    for i, gauge in enumerate(GAUGES):
        gap = " " * (GAP if i else 0)
        label, value = _label(gauge, row, brief=brief), _now(view, gauge)
        if gauge.key == "memory_bytes" and view.memory_total and row.device == "cpu":
            value += f" of {memory(view.memory_total)}" if each > len(label) + 20 else ""
        text = Content.assemble((label, "$foreground 65%"), " ", (value, "bold"))
        top = Content.assemble(top, gap, text, " " * max(0, each - text.cell_length))
        bottom = Content.assemble(bottom, gap, (_past(view, gauge, each), "$primary 70%"))
    return Content.assemble(top, "\n", bottom)


def _in_two_rows(row: RunRow, view: RunView, width: int) -> Content:
    each = (width - 2 * GAP) // 3
    rows = []
    for gauges in (GAUGES[:3], GAUGES[3:]):
        line = Content("")
        for i, gauge in enumerate(gauges):
            label, value = _label(gauge, row, brief=True), _now(view, gauge)
            past = _past(view, gauge, max(0, each - len(label) - len(value) - 2))
            words = ((label, "$foreground 65%"), " ", (value, "bold"), " ", (past, "$primary 70%"))
            line = Content.assemble(line, " " * (GAP if i else 0), *words)
        rows.append(line)
    return Content("\n").join(rows)
