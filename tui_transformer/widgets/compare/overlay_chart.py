"""A chart of several runs: colours and letters tell them apart, in the lines, the legend and the values."""

from typing import ClassVar

from rich.cells import cell_len

from tui_transformer.charts import usual_top
from tui_transformer.clean import clean_line
from tui_transformer.comparison.selection import LETTERS
from tui_transformer.widgets.canvas import BLANK, Canvas, Cell, Line, draw
from tui_transformer.widgets.chart import Chart, cells_of
from tui_transformer.widgets.compare.layout import fitted
from tui_transformer.widgets.compare.overlay import Overlay, Stroke
from tui_transformer.widgets.curves import AXIS_LABELS, Curve, axis_text

SHORTEST = 6  # columns of a name in the legend that still says something


class OverlayChart(Chart):
    """Draws an `Overlay`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "chart--zero",
        *(f"chart--{kind}{i}" for kind in ("run", "raw") for i in range(len(LETTERS))),
    }
    DEFAULT_CSS = "OverlayChart .chart--zero { color: $foreground 60%; }\n" + "".join(
        f"OverlayChart .chart--run{i} {{ color: $run-{letter}; }}\n"
        f"OverlayChart .chart--raw{i} {{ color: $run-{letter} 35%; }}\n"
        for i, letter in enumerate(LETTERS)
    )

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._overlay = Overlay()

    def draw(self, overlay: Overlay) -> None:
        """Show another one."""
        self._overlay, self.waiting = overlay, clean_line(overlay.waiting)
        self.redraw()

    def paint(self, width: int, height: int) -> Canvas | None:
        """Train below, validation above, a letter on each line, each at another place along it."""
        made = self._overlay
        strokes = made.drawn
        if not strokes:
            return None
        lines = [Line(s.train.x, s.train.y, f"raw{s.slot}") for s in strokes]
        lines += [Line(s.curve.x, s.curve.y, f"run{s.slot}") for s in strokes]
        values = [y for s in strokes for y in (*s.curve.y, *s.train.y)]
        marks = [_letter(stroke, i, len(strokes)) for i, stroke in enumerate(strokes) if stroke.curve.x]
        return draw(
            lines,
            width=width,
            height=height,
            x_text=lambda x: axis_text(made.axis, x),
            x_label=AXIS_LABELS[made.axis],
            levels=[(0.0, "zero")] if made.zero else [],
            marks=marks,
            top=float("inf") if made.zero or made.log else usual_top(values, min(values)),
            log=made.log,
        )

    def title(self, width: int) -> list[Cell]:
        """What y is, and the legend, whose names get the room that there is."""
        made = self._overlay
        style = "focused" if self.has_focus else "title"
        names = [(stroke, clean_line(stroke.name)) for stroke in made.drawn]
        longest = max((cell_len(name) for _, name in names), default=0)
        for label in (made.title, made.brief):
            for room in range(longest, SHORTEST - 1, -1):
                legend = [(" ".join(_words(s, _cut(name, room))), f"run{s.slot}") for s, name in names]
                taken = cell_len(clean_line(label)) + sum(cell_len(text) + 2 for text, _ in legend)
                if taken + (4 if made.log else 0) <= width:
                    return _title(clean_line(label), style, legend, width, log=made.log)
        legend = [(" ".join(_words(stroke, "")), f"run{stroke.slot}") for stroke, _ in names]
        return _title(made.brief, style, legend, width, log=made.log)

    def values(self, width: int, x: float | None) -> list[Cell]:
        """Each run at the cursor, or where it ends."""
        made = self._overlay
        strokes = [stroke for stroke in made.drawn if stroke.curve.x]
        if not strokes:
            return []
        place = "" if x is None else axis_text(made.axis, x)
        where = {"step": f"step {place}", "tokens": f"{place} tokens", "seconds": place}[made.axis]
        ends = [(s, s.curve.y[-1] if x is None else _value(s.curve, x)) for s in strokes]
        for head, decimals in (("at the end", 4), ("end", 4), ("end", 3), ("", 2)):
            cells = cells_of(head, "dim") if x is None else cells_of(where, "cursor")
            for stroke, value in ends:
                text = "–" if value is None else f"{value:{'+' if made.zero else ''}.{decimals}f}"
                cells += cells_of(f"  {LETTERS[stroke.slot]} {text}", f"run{stroke.slot}")
            if len(cells) <= width:
                break
        return cells[:width]


def _words(stroke: Stroke, name: str) -> list[str]:
    """Letter, sign and name; the sign is never cut."""
    return [word for word in (LETTERS[stroke.slot], stroke.sign, name) if word]


def _letter(stroke: Stroke, index: int, count: int) -> tuple[float, float, str, str]:
    """A letter on a line, further along for each of several lines so that they do not meet."""
    curve = stroke.curve
    at = min(len(curve.x) - 1, round((index + 1) / (count + 1) * (len(curve.x) - 1) + 0.25 * len(curve.x)))
    return curve.x[at], curve.y[at], LETTERS[stroke.slot], f"run{stroke.slot}"


def _value(curve: Curve, x: float) -> float | None:
    """Of the evaluation nearest to x; None beyond the ends of the run."""
    spacing = (curve.x[-1] - curve.x[0]) / max(1, len(curve.x) - 1)
    if not curve.x[0] - spacing <= x <= curve.x[-1] + spacing:
        return None
    near = curve.near(x)
    return None if near is None else curve.y[near]


def _title(label: str, style: str, legend: list[tuple[str, str]], width: int, *, log: bool) -> list[Cell]:
    parts = [*legend, *([("log", "dim")] if log else [])]
    cells = cells_of(label, style)
    cells += [BLANK] * max(0, width - cell_len(label) - sum(cell_len(text) + 2 for text, _ in parts))
    for text, of in parts:
        cells += [BLANK] * 2 + cells_of(text, of)
    return cells


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else fitted(text, width)
