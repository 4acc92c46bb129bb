"""Charts in characters, drawn by plotext: lines in dots of eight to a cell, bands, levels, marks, axes. They are cells.

plotext paints in numbered colours; here each number stands for the name of a style, which the screen's theme knows.
Points are thinned to what the columns can show before they are drawn: a million lines cost no more than a few.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import plotext
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.style import Style

from tui_transformer.lab.formatting import short

Cell = tuple[str, str]  # a character, the name of its style
BLANK: Cell = (" ", "")
FROM_ZERO = 0.2  # of the largest x: a first point that is nearer to 0 lets the axis begin there
LOWEST = 1e-12  # whose logarithm is drawn; what is smaller is drawn there
ROOM_FOR_AXIS = 10  # rows from which the x axis has a line of its own
AXIS = "axis"


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
        share = min(1.0, max(0.0, (column - self.margin) / self._columns))
        return self.low + share * (self.high - self.low)

    def column_of(self, x: float) -> int:
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
    cells = _cells({number: style for style, number in paint.items()})
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


def _cells(styles: dict[int, str]) -> list[list[Cell]]:
    """What plotext made of its figure, from the top: each character with the name of its style, or that of the axes."""
    figure = plotext._core._figure
    figure._build_matrix()  # what its `build` does before it turns characters and colours into one text
    made = figure.monitor.matrix
    painted = zip(reversed(made.marker), reversed(made.fullground), strict=True)
    return [
        [BLANK if c == " " else (c, styles.get(paint, AXIS)) for c, paint in zip(*row, strict=True)] for row in painted
    ]


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


@dataclass(frozen=True)
class Series:
    """One line of a chart: x and y of equal length."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    width: int,
    height: int,
    levels: Sequence[tuple[str, float, str]] = (),
    top: float = math.inf,
    colour: bool = True,
) -> str:
    """Return a chart as lines of text, or the empty string if nothing is finite.

    Args:
        series: lines to draw; what is not finite of them is left out.
        title: what y is, with its unit.
        x_label: what x is, with its unit.
        width: columns.
        height: rows.
        levels: horizontal lines: label, y, colour.
        top: higher values are cut off, so that a steep start does not flatten the rest.
        colour: with escape codes for colour, or plain.
    """
    known = [(one, thin(one.x, one.y, width)) for one in series]
    known = [(one, points) for one, points in known if points[0]]
    seen = [(label, y, paint) for label, y, paint in levels if math.isfinite(y)]
    canvas = draw(
        [Line(*points, one.colour) for one, points in known],
        width=width,
        height=height - 1,
        x_text=lambda x: f"{x:,.10g}",
        x_label=x_label,
        levels=[(y, paint) for _, y, paint in seen],
        top=top,
    )
    if canvas is None:
        return ""
    head = [(c, "bold") for c in title]
    legend = [("━", one.label, one.colour) for one, _ in known] + [("┄", label, paint) for label, _, paint in seen]
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
    """Finite points, at most two a column: the lowest and highest y of each bucket, in order of x."""
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
    """Where a chart ends: the fall of the first steps, if it is many times the rest of the way, is cut off."""
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


# What is drawn between the lines. A band is a texture of dots, so that it is seen without colours and where it is
# thinner than a row; thick where something can be said there, thin where not. It never covers a line, and is thinner
# than one.

DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # of a braille character: [column][row from the top]
BRAILLE = 0x2800
NOTHING = (0, "")  # no dots, of no style
ACROSS, UPRIGHT = "┄", "┊"


@dataclass(frozen=True)
class Shade:
    """A band.

    Args:
        x: of its points.
        low: its lower edge there; `high` the upper.
        style: of its dots.
        thick: at which points every second place is a dot, not every fourth; () nowhere.
    """

    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    style: str
    thick: Sequence[bool] = ()


def shade(canvas: Canvas, bands: Sequence[Shade]) -> None:
    """Fill bands where nothing else is; of two that overlap, both are seen in the colour of the later one."""
    dots: dict[tuple[int, int], tuple[int, str]] = {}
    for band in bands:
        if not band.x:
            continue
        for column in range(canvas.column_of(band.x[0]), canvas.column_of(band.x[-1]) + 1):
            _column(canvas, band, column, dots)
    for (row, column), (pattern, style) in dots.items():
        if canvas.cells[row][column][0] in " ┄":
            canvas.cells[row][column] = (chr(BRAILLE + pattern), style)


def _column(canvas: Canvas, band: Shade, column: int, dots: dict[tuple[int, int], tuple[int, str]]) -> None:
    left, share = _between(band.x, canvas.x_at(column))
    right = min(left + 1, len(band.x) - 1)
    edges = (edge[left] + share * (edge[right] - edge[left]) for edge in (band.low, band.high))
    places = 4 * canvas.rows - 1
    low, high = (canvas.height_of(y) * places for y in edges)
    thick = bool(band.thick) and band.thick[left] and band.thick[right]
    first, last = max(0, round(low)), min(places, round(high))
    for row in range(first // 4, last // 4 + 1):
        pattern = _pattern(max(0, first - 4 * row), min(3, last - 4 * row), thick)
        at = (canvas.rows - 1 - row, column)
        if pattern:
            dots[at] = dots.get(at, NOTHING)[0] | pattern, band.style


@cache
def _pattern(first: int, last: int, thick: bool) -> int:
    """The dots of a cell from one height to another, 0 to 3 from its foot: every fourth place, or every second."""
    every = {(height, half) for height in range(first, last + 1) for half in (0, 1)}
    chosen = [(h, half) for h, half in every if (h % 2 == half if thick else h == 2 * half)]
    return sum(DOTS[half][3 - height] for height, half in chosen)


def _between(x: Sequence[float], at: float) -> tuple[int, float]:
    """The point left of a place, and how far on the way to the next one it is."""
    left = max(0, min(bisect_right(x, at) - 1, len(x) - 1))
    if left == len(x) - 1:
        return left, 0.0
    return left, min(1.0, max(0.0, (at - x[left]) / (x[left + 1] - x[left])))


def across(canvas: Canvas, y: float, style: str) -> None:
    """A line at y from side to side, behind everything else, in the row where a line of dots at y is."""
    row = canvas.rows - 1 - round(canvas.height_of(y) * (4 * canvas.rows - 1)) // 4
    if 0 <= row < canvas.rows:
        for column in range(canvas.margin, len(canvas.cells[0])):
            if canvas.cells[row][column][0] == " ":
                canvas.cells[row][column] = (ACROSS, style)


def upright(canvas: Canvas, x: float, style: str, top: Sequence[Cell] = ()) -> None:
    """A line from the top to the bottom at x, behind everything else, and letters on its top."""
    if not canvas.low <= x <= canvas.high:
        return
    column = canvas.column_of(x)
    for row in range(canvas.rows):
        if canvas.cells[row][column][0] in " ┄":
            canvas.cells[row][column] = (UPRIGHT, style)
    start = max(canvas.margin, min(column, len(canvas.cells[0]) - len(top)))
    canvas.cells[0][start : start + len(top)] = top
