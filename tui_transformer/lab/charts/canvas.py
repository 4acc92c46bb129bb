"""A chart in characters, drawn by plotext: lines in dots of eight to a cell, levels, marks, axes. It gives cells.

plotext paints in numbered colours; here each number stands for the name of a style, which the screen's theme knows.
Points are thinned to what the columns can show before they are drawn: a million lines cost no more than a few.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import plotext

from tui_transformer.lab.charts.plot import thin, ticks
from tui_transformer.lab.formatting import short

Cell = tuple[str, str]  # a character, the name of its style
BLANK: Cell = (" ", "")
FROM_ZERO = 0.2  # of the largest x: a first point that is nearer to 0 lets the axis begin there
LOWEST = 1e-12  # whose logarithm is drawn; what is smaller is drawn there
ROOM_FOR_AXIS = 10  # rows from which the x axis has a line of its own
AXIS = "axis"
_PAINT = re.compile(r"\x1b\[(?:38;5;(\d+)|[\d;]*)m")


@dataclass(frozen=True)
class Line:
    """Points to join. `dots`: each point is marked as well, where they are few."""

    x: Sequence[float]
    y: Sequence[float]
    style: str
    dots: bool = False


@dataclass(frozen=True)
class Mark:
    """A single character. `on`: the style of the line that it is on; "" for none."""

    x: float
    y: float
    sign: str
    style: str
    on: str = ""


@dataclass(frozen=True)
class Canvas:
    """A drawn chart.

    Args:
        cells: rows from the top, each as wide as the chart.
        margin: columns left of the lines.
        rows: of the lines.
        low: x at the first column of the lines; `high` at the last.
        bottom: y at the lowest row, by its logarithm where `log`; `top` at the highest.
    """

    cells: list[list[Cell]]
    margin: int
    rows: int
    low: float
    high: float
    bottom: float = 0.0
    top: float = 1.0
    log: bool = False

    @property
    def _columns(self) -> int:
        return max(1, len(self.cells[0]) - self.margin - 1)

    def x_at(self, column: int) -> float:
        """What x a column of the chart shows."""
        share = min(1.0, max(0.0, (column - self.margin) / self._columns))
        return self.low + share * (self.high - self.low)

    def column_of(self, x: float) -> int:
        """The column of the chart that shows x."""
        span = self.high - self.low
        share = (x - self.low) / span if span > 0 else 0.0
        return self.margin + round(min(1.0, max(0.0, share)) * self._columns)

    def height_of(self, y: float) -> float:
        """Where y stands between the lowest row (0) and the highest (1); beyond them where it does."""
        return (_of(y, self.log) - self.bottom) / (self.top - self.bottom)


def draw(
    lines: Sequence[Line],
    *,
    width: int,
    height: int,
    x_text: Callable[[float], str],
    x_label: str = "",
    levels: Sequence[tuple[float, str]] = (),
    marks: Sequence[Mark] = (),
    top: float = math.inf,
    log: bool = False,
    also_x: Sequence[float] = (),
    also_y: Sequence[float] = (),
) -> Canvas | None:
    """Draw lines, the last on top.

    Args:
        lines: those without points are left out.
        width: columns in all.
        height: rows in all.
        x_text: writes a place on the x axis.
        x_label: what x is.
        levels: horizontal lines: y, style.
        marks: single characters.
        top: higher values are cut off.
        log: y by its logarithm; every y must be positive.
        also_x: places that must be seen as well.
        also_y: heights that must be seen as well, as far as `top` lets them.

    Returns:
        None where there is nothing to draw, or no room.
    """
    of_y = partial(_of, log=log)
    own_line = height >= ROOM_FOR_AXIS
    rows = height - (2 if own_line else 1)
    shown = [line for line in lines if len(line.x)]
    if not shown or rows < 2 or width < 16:
        return None
    levels = [(y, style) for y, style in levels if math.isfinite(y) and (y > 0 or not log)]
    low_x = min(*also_x, math.inf, *(line.x[0] for line in shown))
    high_x = max(*also_x, -math.inf, *(line.x[-1] for line in shown))
    if 0 < low_x < FROM_ZERO * high_x:
        low_x = 0.0
    within = [min(y, top) for line in shown for y in (min(line.y), max(line.y))] + [y for y, _ in levels]
    within += [min(y, top) for y in also_y]
    low_y, high_y = of_y(min(within)), of_y(max(within))
    if high_y - low_y < 1e-12:
        pad = abs(high_y) * 0.05 or 0.5
        low_y, high_y = low_y - pad, high_y + pad

    places, texts = _y_labels(low_y, high_y, rows, log)
    styles = list(dict.fromkeys([*(line.style for line in shown), *(style for _, style in levels)]))
    paint = {style: number for number, style in enumerate(styles, 1)}
    end = high_x if high_x > low_x else low_x + 1.0
    _begin(width, height, own_line=own_line)
    plotext.xlim(low_x, end)
    plotext.ylim(low_y, high_y)
    plotext.yticks(places, texts)
    left = max(len(text) for text in texts) + 1 if texts else 1
    across = _x_labels(low_x, high_x, width - left, x_text, x_label)
    plotext.xticks([x for x, _ in across], [text for _, text in across])
    for y, style in levels:
        plotext.plot([low_x, end], [of_y(y)] * 2, marker="┄", color=paint[style])
    for line in shown:
        points = _points(line, width - left)
        plotext.plot([x for x, _ in points], [of_y(y) for _, y in points], marker="braille", color=paint[line.style])
        if line.dots and len(points) <= (width - left) // 4:
            marks = [*(Mark(x, y, "•", line.style, on=line.style) for x, y in points), *marks]
    cells = _cells(plotext.build(), width, height, {str(number): style for style, number in paint.items()})
    plotext.clear_figure()
    margin = 1 + max((i for i, (c, _) in enumerate(cells[0]) if c in "│┤" and i <= left), default=left - 1)
    _name_x(cells, x_label)
    canvas = Canvas(cells, margin, rows, low_x, high_x, low_y, high_y, log)
    for mark in marks:
        if canvas.height_of(mark.y) <= 1.0:
            _put(canvas, mark)
    return canvas


def _of(y: float, log: bool) -> float:
    return math.log10(max(y, LOWEST)) if log else float(y)


def _begin(width: int, height: int, *, own_line: bool) -> None:
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.limit_size(False, False)  # it would ask what stdout is for the size of a terminal, and a screen is none
    plotext.plot_size(width, height)
    plotext.xaxes(own_line, False)
    plotext.yaxes(True, False)


def _cells(text: str, width: int, height: int, styles: dict[str, str]) -> list[list[Cell]]:
    """What plotext painted, by character: the name of its style, or that of the axes."""
    found = []
    for line in text.split("\n")[:height]:
        cells: list[Cell] = []
        style, done = AXIS, 0
        for code in _PAINT.finditer(line):
            cells += [(c, "" if c == " " else style) for c in line[done : code.start()]]
            style, done = styles.get(code[1] or "", AXIS), code.end()
        cells += [(c, "" if c == " " else style) for c in line[done:]]
        found.append((cells + [BLANK] * width)[:width])
    return found + [[BLANK] * width] * (height - len(found))


def _put(canvas: Canvas, mark: Mark) -> None:
    """A mark in its line's cell: plotext rounds a line's dots and a character's cell differently."""
    column, row = canvas.column_of(mark.x), round((1.0 - canvas.height_of(mark.y)) * (canvas.rows - 1))
    rows = [at for at in (row, row - 1, row + 1) if 0 <= at < canvas.rows]
    beside = [at for at in (column - 1, column + 1) if canvas.margin <= at < len(canvas.cells[0])]
    here = [(at, column) for at in rows]
    near = [*here, *((at, other) for at in rows for other in beside)]
    own = [(y, x) for y, x in near if mark.on and canvas.cells[y][x][1] == mark.on]
    line = [(y, x) for y, x in here if "\u2800" < canvas.cells[y][x][0] <= "\u28ff"]
    y, x = next(iter(own or line or here))
    canvas.cells[y][x] = (mark.sign, mark.style)


def _points(line: Line, columns: int) -> list[tuple[float, float]]:
    if len(line.x) <= 4 * columns:
        return list(zip(line.x, line.y, strict=True))
    return list(zip(*thin(line.x, line.y, 2 * columns), strict=True))


def _y_labels(low: float, high: float, rows: int, log: bool) -> tuple[list[float], list[str]]:
    """Places and texts of round numbers."""
    wanted = max(2, min(8, rows // 3))
    if not log:
        values = ticks(low, high, wanted)
        return values, _numbers(values)
    values = _log_ticks(low, high, wanted)
    return [math.log10(value) for value in values], _numbers(values)


def _log_ticks(low: float, high: float, wanted: int) -> list[float]:
    """One, two and five times powers of ten; where these are too few, evenly round numbers."""
    powers = range(math.floor(low), math.ceil(high) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        found = [f * 10.0**p for p in powers for f in factors if low - 1e-9 <= math.log10(f * 10.0**p) <= high + 1e-9]
        if len(found) >= min(3, wanted):
            return found
    return [value for value in ticks(10.0**low, 10.0**high, wanted) if value > 0]


def _numbers(values: Sequence[float]) -> list[str]:
    """All with as many decimals as the finest needs."""
    if not values:
        return []
    if max(abs(value) for value in values) >= 100_000:
        return [short(value).replace(" ", "") for value in values]
    for decimals in range(7):
        if all(abs(value - round(value, decimals)) < 1e-9 * max(1.0, abs(value)) for value in values):
            return [f"{value:,.{decimals}f}" for value in values]
    return [f"{value:.3g}" for value in values]


def _x_labels(
    low: float, high: float, columns: int, x_text: Callable[[float], str], x_label: str
) -> list[tuple[float, str]]:
    """Round numbers with room between them, and room for the name of x at the end."""
    found: list[tuple[float, str]] = []
    span, free = high - low, 0
    end = columns - len(x_label) - 1 if x_label else columns
    for value in ticks(low, high, max(2, columns // 14)):
        label, middle = x_text(value), round((value - low) / span * (columns - 1)) if span > 0 else 0
        start = max(0, min(middle - len(label) // 2, columns - len(label)))  # as plotext keeps it within
        if start >= free and start + len(label) <= end:
            found.append((value, label))
            free = start + len(label) + 2
    return found


def _name_x(cells: list[list[Cell]], x_label: str) -> None:
    """The name of x at the end of the last row, where nothing stands there."""
    room = len(x_label)
    if room and all(cell == BLANK for cell in cells[-1][-room:]):
        cells[-1][-room:] = [(c, AXIS) for c in x_label]
