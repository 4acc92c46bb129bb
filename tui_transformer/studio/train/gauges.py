"""What a machine does while it trains: a value and its recent past each, side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from tui_transformer.lab.formatting import BARS, memory, short
from tui_transformer.lab.records.facts import Record, number
from tui_transformer.lab.records.feed import RunRow
from tui_transformer.lab.records.run_view import RunView

ROOMY = 88  # columns from which all five stand in one row, their past under their value
GAP = 2


@dataclass(frozen=True)
class Gauge:
    """One of them: the key of a train record, its names, how a value is written, what a full bar is if not the most."""

    key: str
    label: str
    short: str
    write: Callable[[float], str]
    full: float | None = None


def _tight(value: float) -> str:
    return short(value).replace(" ", "")


GAUGES = (
    Gauge("lr", "learning rate", "lr", lambda value: f"{value:.2g}"),
    Gauge("grad_norm", "gradient norm", "grad", lambda value: f"{value:.3g}"),
    Gauge("tokens_per_second", "tokens/s", "tok/s", _tight),
    Gauge("device_load", "load", "", lambda value: f"{value:.0%}", 1.0),
    Gauge("memory_bytes", "memory", "mem", memory),
)


class Gauges(Static):
    """Two lines, whatever the width."""

    DEFAULT_CSS = """
    Gauges { height: 2; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__("", id="gauges")
        self._of: tuple[RunRow, RunView] | None = None
        self._seen: object = None

    def show(self, row: RunRow, view: RunView | None) -> None:
        """Show a run's; nothing is redrawn where there is no new record."""
        seen = (row.path, row.device, None if view is None else view.version, self.content_size)
        if seen == self._seen:
            return
        self._seen = seen
        self._of = (row, view) if view is not None else None
        self._draw()

    def on_resize(self, event: Resize) -> None:
        """As much as there is room for."""
        self._draw()

    def _draw(self) -> None:
        width = self.content_size.width
        if self._of is None or not self._of[1].train or width < 20:
            self.update("")
            return
        row, view = self._of
        self.update(_wide(row, view, width) if width >= ROOMY else _narrow(row, view, width))


def _label(gauge: Gauge, row: RunRow, *, brief: bool) -> str:
    if gauge.key == "device_load":
        unit = "CPU" if row.device.startswith("cpu") or not row.device else "GPU"
        return unit if brief else f"{unit} load"
    return gauge.short if brief else gauge.label


def _values(view: RunView, key: str, most: int) -> list[float]:
    """The newest, as many as there is room for: what went on lately matters more than the whole run."""
    found = [value for value in (number(record.get(key)) for record in view.train[-4 * most :]) if value is not None]
    stride = max(1, len(found) // max(1, most)) if key == "lr" else 1
    return found[::-1][::stride][:most][::-1]


def _now(view: RunView, gauge: Gauge) -> str:
    newest: Record = view.newest or (view.train[-1] if view.train else {})
    value = number(newest.get(gauge.key))
    return gauge.write(value) if value is not None else "–"


def _past(values: Sequence[float], gauge: Gauge, width: int) -> str:
    """Bars from zero, so that what hardly changes looks calm."""
    high = gauge.full or max(values, default=0.0)
    if len(values) < 2 or not high > 0:
        return " " * width
    bars = [BARS[round(min(1.0, max(0.0, value / high)) * (len(BARS) - 1))] for value in values]
    return "".join(bars).ljust(width)[:width]


def _wide(row: RunRow, view: RunView, width: int) -> Content:
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
        bottom = Content.assemble(bottom, gap, (_past(_values(view, gauge.key, each), gauge, each), "$primary 70%"))
    return Content.assemble(top, "\n", bottom)


def _narrow(row: RunRow, view: RunView, width: int) -> Content:
    each = (width - 2 * GAP) // 3
    lines = [GAUGES[:3], GAUGES[3:]]
    said = []
    for gauges in lines:
        line = Content("")
        for i, gauge in enumerate(gauges):
            label, value = _label(gauge, row, brief=True), _now(view, gauge)
            room = max(0, each - len(label) - len(value) - 2)
            past = _past(_values(view, gauge.key, room), gauge, room)
            line = Content.assemble(
                line,
                " " * (GAP if i else 0),
                (label, "$foreground 65%"),
                " ",
                (value, "bold"),
                " ",
                (past, "$primary 70%"),
            )
        said.append(line)
    return Content("\n").join(said)
