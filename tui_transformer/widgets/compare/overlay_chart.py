"""A chart of several runs: colours and letters tell them apart, in the lines, the legend and the values."""

import math
from dataclasses import replace
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
from tui_transformer.widgets.shade import Shade, shade, upright

MARK_EVERY = 6  # columns, at least, between two marks on a line
WHERE = {"step": "step {}", "tokens": "{} tokens", "distance": "{} back"}
SHORTEST = 6  # columns of a name in the legend that still says something


class OverlayChart(Chart):
    """Draws an `Overlay`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "chart--zero",
        *(f"chart--{kind}{i}" for kind in ("run", "raw", "band") for i in range(len(LETTERS))),
    }
    DEFAULT_CSS = "OverlayChart .chart--zero { color: $foreground 60%; }\n" + "".join(
        f"OverlayChart .chart--run{i} {{ color: $run-{letter}; }}\n"
        f"OverlayChart .chart--raw{i} {{ color: $run-{letter} 35%; }}\n"
        f"OverlayChart .chart--band{i} {{ color: $run-{letter} 45%; }}\n"
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
        if made.zero:
            marks = [*(mark for stroke in strokes for mark in _tellings(stroke, width)), *marks]
        bands = [
            Shade(s.curve.x, s.low, s.high, f"band{s.slot}", s.apart if made.zero else ()) for s in strokes if s.half
        ]
        edges = [y for band in bands for y in (*band.low, *band.high)]
        if made.log:
            edges = [y for y in edges if y > 0]
        canvas = draw(
            lines,
            width=width,
            height=height,
            x_text=lambda x: axis_text(made.axis, x),
            x_label=AXIS_LABELS[made.axis],
            levels=[*([(0.0, "zero")] if made.zero else []), *((y, "zero") for y in made.levels)],
            marks=marks,
            top=_top(made, values),
            log=made.log,
            also_x=[x for x, _ in made.reaches],
            also_y=(0.0, 1.0) if made.share else edges,
        )
        if canvas is not None:
            shade(canvas, bands)
            for x, slot in made.reaches:
                upright(canvas, x, f"run{slot}", LETTERS[slot])
        return canvas

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
        where = WHERE.get(made.axis, "{}").format(place)
        ends = [(s, s.curve.y[-1] if x is None else _value(s.curve, x)) for s in strokes]
        last = ("furthest", "far") if made.share else ("at the end", "end")
        for head, decimals in ((last[0], 4), (last[1], 4), (last[1], 3), ("", 2)):
            cells = cells_of(head, "dim") if x is None else cells_of(where, "cursor")
            for stroke, value in ends:
                text = "–" if value is None else _number(made, value, decimals)
                half = _half(stroke, x)
                text += f" ± {_number(replace(made, zero=False), half, decimals)}" if half is not None else ""
                cells += cells_of(f"  {LETTERS[stroke.slot]} {text}", f"run{stroke.slot}")
            if len(cells) <= width:
                break
        for note in made.notes:
            words = cells_of(f"   {clean_line(note)}", "dim")
            cells += words if len(cells) + len(words) <= width else []
        return cells[:width]


def _words(stroke: Stroke, name: str) -> list[str]:
    """Letter, sign and name; the sign is never cut."""
    seeds = f"n{stroke.seeds}" if stroke.seeds is not None else ""
    return [word for word in (LETTERS[stroke.slot], stroke.sign, name, seeds) if word]


def _letter(stroke: Stroke, index: int, count: int) -> tuple[float, float, str, str]:
    """A letter on a line, further along for each of several lines so that they do not meet."""
    curve = stroke.curve
    at = min(len(curve.x) - 1, round((index + 1) / (count + 1) * (len(curve.x) - 1) + 0.25 * len(curve.x)))
    return curve.x[at], curve.y[at], LETTERS[stroke.slot], f"run{stroke.slot}"


def _tellings(stroke: Stroke, width: int) -> list[tuple[float, float, str, str]]:
    """A mark on the mean where its interval leaves zero out, another one where it does not; not too many."""
    every = max(1, -(-len(stroke.apart) * MARK_EVERY // max(1, width)))
    points = list(zip(stroke.curve.x, stroke.curve.y, stroke.apart, strict=False))
    return [(x, y, "●" if apart else "○", f"run{stroke.slot}") for x, y, apart in points[::every]]


def _top(made: Overlay, values: list[float]) -> float:
    """Where the chart ends; the steep fall of the first steps is cut off."""
    if made.zero or made.log or made.share:
        return math.inf
    return usual_top(values, min(values))


def _number(made: Overlay, value: float, decimals: int) -> str:
    if made.share:
        return f"{value:.{max(0, decimals - 3)}%}".replace("%", " %" if decimals > 2 else "%")
    return f"{value:{'+' if made.zero else ''}.{decimals}f}"


def _half(stroke: Stroke, x: float | None) -> float | None:
    """Half the width of the interval at the cursor, or at the end."""
    if not stroke.half:
        return None
    if x is None:
        return stroke.half[-1]
    return _value(Curve(stroke.curve.x, stroke.half), x)


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
