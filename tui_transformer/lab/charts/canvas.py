"""Charts as character cells, drawn by plotext: lines in braille dots (eight per cell), bands, levels, marks, axes.

plotext paints in numbered colours; here each number stands for a style name that the screen's theme defines.
Points are thinned to what the columns can show before drawing: a million points cost no more than a few.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import plotext
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.style import Style

from tui_transformer.lab.formatting import short

Cell = tuple[str, str]  # a character, the name of its style
BLANK: Cell = (" ", "")
FROM_ZERO = 0.2  # share of the largest x: if the first point is nearer to 0, the axis begins at 0
LOWEST = 1e-12  # on a log axis; smaller values are drawn there
ROOM_FOR_AXIS = 10  # least rows for the x axis to get its own line
AXIS = "axis"


@dataclass(frozen=True)
class Line:
    """Points to join. `dots`: mark each point too, where they are few."""

    x: Sequence[float]
    y: Sequence[float]
    style: str
    dots: bool = False
    label: str = ""


@dataclass(frozen=True)
class Mark:
    """A single character. `on`: the style of the line under it; "" for none."""

    x: float
    y: float
    sign: str
    style: str
    on: str = ""


@dataclass(frozen=True)
class Canvas:
    cells: list[list[Cell]]  # rows from the top, each as wide as the chart
    margin: int  # columns left of the lines
    rows: int  # of the lines
    low: float  # x at the first column of the lines; `high` at the last
    high: float
    bottom: float = 0.0  # y at the lowest row, by its logarithm where `log`; `top` at the highest
    top: float = 1.0
    log: bool = False

    @property
    def _columns(self) -> int:
        return max(1, len(self.cells[0]) - self.margin - 1)

    def x_at(self, column: int) -> float:
        share = min(1.0, max(0.0, (column - self.margin) / self._columns))
        return self.low + share * (self.high - self.low)

    def column_of(self, x: float) -> int:
        span = self.high - self.low
        share = (x - self.low) / span if span > 0 else 0.0
        return self.margin + round(min(1.0, max(0.0, share)) * self._columns)

    def height_of(self, y: float) -> float:
        """Return y's place between the lowest row (0) and the highest (1), or beyond them."""
        return (_of(y, self.log) - self.bottom) / (self.top - self.bottom)


def draw(
    lines: Sequence[Line],
    *,
    width: int,
    height: int,
    x_text: Callable[[float], str],
    x_label: str = "",
    levels: Sequence[tuple[float, str]] = (),  # horizontal lines: y, style
    marks: Sequence[Mark] = (),
    top: float = math.inf,  # higher values are cut off
    log: bool = False,  # y by its logarithm; every y must be positive
    also_x: Sequence[float] = (),  # y values that must also be visible, as far as `top` allows
    also_y: Sequence[float] = (),
) -> Canvas | None:
    """Draw lines, the last on top; None if there is nothing to draw, or no room."""
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
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.limit_size(False, False)  # it would ask stdout for a terminal size; a screen has none
    plotext.plot_size(width, height)
    plotext.xaxes(own_line, False)
    plotext.yaxes(True, False)
    plotext.xlim(low_x, end)
    plotext.ylim(low_y, high_y)
    plotext.yticks(places, texts)
    left = max(len(text) for text in texts) + 1 if texts else 1
    across = _x_labels(low_x, high_x, width - left, x_text, x_label)
    plotext.xticks([x for x, _ in across], [text for _, text in across])
    for level, style in levels:
        plotext.plot([low_x, end], [of_y(level)] * 2, marker="┄", color=paint[style])
    for line in shown:
        x, y = thin(line.x, line.y, 2 * (width - left))
        plotext.plot(x, [*map(of_y, y)], marker="braille", color=paint[line.style])
        if line.dots and len(x) <= (width - left) // 4:
            marks = [*(Mark(*at, "•", line.style, on=line.style) for at in zip(x, y, strict=True)), *marks]
    cells = _cells({number: style for style, number in paint.items()})
    plotext.clear_figure()
    margin = 1 + max((i for i, (c, _) in enumerate(cells[0]) if c in "│┤" and i <= left), default=left - 1)
    if x_label and all(cell == BLANK for cell in cells[-1][-len(x_label) :]):
        cells[-1][-len(x_label) :] = [(c, AXIS) for c in x_label]
    canvas = Canvas(cells, margin, rows, low_x, high_x, low_y, high_y, log)
    for mark in marks:
        if canvas.height_of(mark.y) <= 1.0:
            _put(canvas, mark)
    return canvas


def _of(y: float, log: bool) -> float:
    return math.log10(max(y, LOWEST)) if log else float(y)


def _cells(styles: dict[int, str]) -> list[list[Cell]]:
    """Return plotext's figure from the top: each character with its style's name, or the axes'."""
    figure = plotext._core._figure
    figure._build_matrix()  # what its `build` does before it joins characters and colours into one text
    made = figure.monitor.matrix
    painted = zip(reversed(made.marker), reversed(made.fullground), strict=True)
    return [
        [BLANK if c == " " else (c, styles.get(paint, AXIS)) for c, paint in zip(*row, strict=True)] for row in painted
    ]


def _put(canvas: Canvas, mark: Mark) -> None:
    """Put a mark in its line's cell: plotext rounds dots and characters differently."""
    column, row = canvas.column_of(mark.x), round((1.0 - canvas.height_of(mark.y)) * (canvas.rows - 1))
    rows = [at for at in (row, row - 1, row + 1) if 0 <= at < canvas.rows]
    beside = [at for at in (column - 1, column + 1) if canvas.margin <= at < len(canvas.cells[0])]
    here = [(at, column) for at in rows]
    near = [*here, *((at, other) for at in rows for other in beside)]
    own = [(y, x) for y, x in near if mark.on and canvas.cells[y][x][1] == mark.on]
    line = [(y, x) for y, x in here if "\u2800" < canvas.cells[y][x][0] <= "\u28ff"]
    y, x = next(iter(own or line or here))
    canvas.cells[y][x] = (mark.sign, mark.style)


def _y_labels(low: float, high: float, rows: int, log: bool) -> tuple[list[float], list[str]]:
    """Round numbers; on a log axis 1, 2 and 5 times powers of ten, unless these are too few."""
    wanted = max(2, min(8, rows // 3))
    if not log:
        values = ticks(low, high, wanted)
        return values, _numbers(values)
    powers = range(math.floor(low), math.ceil(high) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        values = [f * 10.0**p for p in powers for f in factors if low - 1e-9 <= math.log10(f * 10.0**p) <= high + 1e-9]
        if len(values) >= min(3, wanted):
            break
    else:
        values = [value for value in ticks(10.0**low, 10.0**high, wanted) if value > 0]
    return [math.log10(value) for value in values], _numbers(values)


def _numbers(values: Sequence[float]) -> list[str]:
    """All with the decimals that the finest needs."""
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
    """Round numbers with gaps between them, and room for the x name at the end."""
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


def line_chart(
    series: Sequence[Line],
    *,
    title: str,  # what y is, with its unit
    width: int,
    height: int,
    levels: Sequence[tuple[str, float, str]] = (),  # horizontal lines: label, y, colour
    top: float = math.inf,  # higher values are cut off, so that a steep start does not flatten the rest
    colour: bool = True,
) -> str:
    """Return a chart over the steps as lines of text; "" if nothing is finite."""
    known = [(one, points) for one in series if (points := thin(one.x, one.y, width))[0]]
    seen = [(label, y, paint) for label, y, paint in levels if math.isfinite(y)]
    canvas = draw(
        [Line(*points, one.style) for one, points in known],
        width=width,
        height=height - 1,
        x_text=lambda x: f"{x:,.10g}",
        x_label="step",
        levels=[(y, paint) for _, y, paint in seen],
        top=top,
    )
    if canvas is None:
        return ""
    head = [(c, "bold") for c in title]
    legend = [("━", one.label, one.style) for one, _ in known] + [("┄", label, paint) for label, _, paint in seen]
    for sign, label, paint in legend:
        if cell_len("".join(c for c, _ in head) + label) + 5 <= width:
            head += [*[BLANK] * 3, (sign, paint), BLANK, *((c, paint) for c in label)]
    rows = [head[:width], *canvas.cells]
    return "\n".join(_printed(row, colour=colour).rstrip() for row in rows)


def _printed(row: Sequence[Cell], *, colour: bool) -> str:
    plain = "".join(c for c, _ in row)
    if not colour:
        return plain
    styles = [style if style not in ("", AXIS) else "none" for _, style in row]
    ends = [i for i in range(1, len(row) + 1) if i == len(row) or styles[i] != styles[i - 1]]
    parts = zip([0, *ends], ends, strict=False)
    return "".join(Style.parse(styles[a]).render(plain[a:b], color_system=ColorSystem.EIGHT_BIT) for a, b in parts)


def thin(x: Sequence[float], y: Sequence[float], columns: int) -> tuple[list[float], list[float]]:
    """Finite points, at most two per column: each bucket's lowest and highest y, in x order."""
    points = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]
    if len(points) > 2 * columns:
        size = -(-len(points) // columns)
        kept = []
        for start in range(0, len(points), size):
            bucket = points[start : start + size]
            kept += sorted({min(bucket, key=lambda p: p[1]), max(bucket, key=lambda p: p[1])})
        points = kept
    return [a for a, _ in points], [b for _, b in points]


def usual_top(values: Sequence[float], low: float) -> float:
    """The top of a chart: cuts off the initial fall if it dwarfs the rest of the curve."""
    if len(values) < 20:
        return math.inf
    usual = sorted(values)[int(0.9 * len(values))]
    return low + 2.5 * (usual - low)


def ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    """Round numbers within [low, high], about as many as wanted."""
    if not high > low:
        return [low]
    raw = (high - low) / wanted
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * m for m in (1, 2, 2.5, 5, 10) if size * m >= raw)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


# What is drawn behind the lines. A band is the background of cells, so it covers no line.

ACROSS, UPRIGHT, ON = "┄", "┊", " on "  # `run0 on band1`: the style of a cell and of its background


@dataclass(frozen=True)
class Shade:
    x: Sequence[float]  # of its points
    ends: Sequence[tuple[float, float]]  # its lower and upper edge there
    style: str  # of its background, by the number of its run
    faint: Sequence[bool] = ()  # points where nothing can be concluded; () for none


def shade(canvas: Canvas, bands: Sequence[Shade]) -> None:
    """Fill the cells whose middle a band covers, and at least one in each column; the last band is on top."""
    for band in bands:
        if not band.x:
            continue
        x = band.x
        for column in range(canvas.column_of(x[0]), canvas.column_of(x[-1]) + 1):
            at = canvas.x_at(column)
            left = max(0, min(bisect_right(x, at) - 1, len(x) - 1))
            right = min(left + 1, len(x) - 1)
            share = min(1.0, max(0.0, (at - x[left]) / (x[right] - x[left]))) if right > left else 0.0
            edges = (a + share * (b - a) for a, b in zip(band.ends[left], band.ends[right], strict=True))
            low, high = ((1.0 - canvas.height_of(y)) * canvas.rows for y in edges)
            first, last = math.ceil(high - 0.5), math.floor(low - 0.5)
            if first > last:  # thinner than a row
                first = last = math.floor((low + high) / 2)
            faint = bool(band.faint) and (band.faint[left] or band.faint[right])
            for row in range(max(0, first), min(canvas.rows - 1, last) + 1):
                sign, style = canvas.cells[row][column]
                style = style.partition(ON)[0]
                canvas.cells[row][column] = (sign, f"{style}{ON}{'faint' if faint else 'band'}{band.style}")


def across(canvas: Canvas, y: float, style: str) -> None:
    """Draw a horizontal line at y, behind everything else, in the row where dots at y would be."""
    row = canvas.rows - 1 - round(canvas.height_of(y) * (4 * canvas.rows - 1)) // 4
    if 0 <= row < canvas.rows:
        for column in range(canvas.margin, len(canvas.cells[0])):
            if canvas.cells[row][column][0] == " ":
                _behind(canvas, row, column, ACROSS, style)


def upright(canvas: Canvas, x: float, style: str, top: Sequence[Cell] = ()) -> None:
    """Draw a vertical line at x, behind everything else, with letters at its top."""
    if not canvas.low <= x <= canvas.high:
        return
    column = canvas.column_of(x)
    for row in range(canvas.rows):
        if canvas.cells[row][column][0] in " ┄":
            _behind(canvas, row, column, UPRIGHT, style)
    start = max(canvas.margin, min(column, len(canvas.cells[0]) - len(top)))
    canvas.cells[0][start : start + len(top)] = top


def _behind(canvas: Canvas, row: int, column: int, sign: str, style: str) -> None:
    """Draw a sign and keep the cell's background."""
    _, on, band = canvas.cells[row][column][1].partition(ON)
    canvas.cells[row][column] = (sign, f"{style}{on}{band}")
