"""Charts as character cells: curves by plotext in braille dots (eight per cell), bands, levels, marks, grid, axes.

A cell has a style by name, which the screen's theme defines. `ChartCanvas` places everything, so a point, its mark and
a level at its height share a cell. Points are decimated: a million cost no more than a few.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, Protocol

import plotext
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.style import Style

from engine.base.language import tr
from tui_transformer.lab.formatting import si_number

Cell = tuple[str, str]  # a character, the name of its style; "" right of a character that is two columns wide
Span = tuple[float, float]  # of x, from the lower end to the higher
BLANK: Cell = (" ", "")
FROM_ZERO = 0.2  # share of the largest x: if the first point is nearer to 0, the axis begins at 0
LOWEST = 1e-12  # on a log axis; smaller values are drawn there
ROOM_FOR_AXIS = 10  # least rows for the x axis to get its own line
LABELS = 4  # least on an axis
REACH = 0.7  # share of the x axis that its labels reach at least, if the axis has its own line
SPARE = 0.25  # most of a chart's height that is left empty at its top, so that labels are evenly spaced
APART = 4  # least columns between two dots on a line
PAINTED = re.compile(r"\x1b\[(?:38;5;)?(\d+)m|([^\x1b])")  # in what plotext draws: a change of colour, or a character
TURN = 2  # columns that each of several lines has in turn, where they cover each other
AXIS = "axis"
ROUND = (0.5, 1, 2, 2.5, 5, 10)
EARLY = 0.15  # share of the steps that are the initial fall
CUT_RATIO = 2.5  # the initial fall is cut off if it is this many times higher than the rest


def cells_of(text: str, style: str) -> list[Cell]:
    """Return a text in cells, as many as it is wide."""
    cells: list[Cell] = []
    for character in text:
        cells += [(character, style), *[("", style)] * (cell_len(character) - 1)]
    return cells


class Points(Protocol):
    """A curve: x in order, and y."""

    @property
    def x(self) -> Sequence[float]: ...

    @property
    def y(self) -> Sequence[float]: ...


@dataclass(frozen=True)
class ChartLine:
    """Points to join. `dots`: mark points too, so that the line is told from others without colours.

    Lines that share take turns, column by column, in cells that several of them cross; of others, the last is on top.
    """

    x: Sequence[float]
    y: Sequence[float]
    style: str
    dots: bool = False
    dashed: bool = False
    dash: int = 1  # columns of a dash
    label: str = ""
    takes_turns: bool = False


@dataclass(frozen=True)
class Mark:
    """A single character, on its point exactly."""

    x: float
    y: float
    sign: str
    style: str


class Level(NamedTuple):
    """A horizontal line; with a label, its value stands on the y axis and its row has a background, under any line."""

    y: float
    style: str
    label: str = ""


@dataclass(frozen=True)
class ChartCanvas:
    cells: list[list[Cell]]  # rows from the top, each as wide as the chart
    margin: int  # columns left of the lines
    rows: int  # of the lines
    low: float  # x at the first column of the lines; `high` at the last
    high: float
    bottom: float = 0.0  # y at the lowest row, by its logarithm where `log`; `top` at the highest
    top: float = 1.0
    log: bool = False
    labelled: tuple[Sequence[int], Sequence[int]] = field(default=((), ()))  # rows and columns with a label
    whole: Span = (0.0, 1.0)  # of x, of which `low` to `high` is seen

    @property
    def _dot_column_count(self) -> int:
        """The number of dot columns."""
        return 2 * max(1, len(self.cells[0]) - self.margin)

    @property
    def zoomed(self) -> bool:
        return self.low > self.whole[0] or self.high < self.whole[1]

    def x_at(self, column: int) -> float:
        share = min(1.0, max(0.0, (2 * (column - self.margin) + 0.5) / (self._dot_column_count - 1)))
        return self.low + share * (self.high - self.low)

    def dot_column(self, x: float) -> int:
        span = self.high - self.low
        share = (x - self.low) / span if span > 0 else 0.0
        return round(min(1.0, max(0.0, share)) * (self._dot_column_count - 1))

    def column_of(self, x: float) -> int:
        return self.margin + self.dot_column(x) // 2

    def row_of(self, y: float) -> int:
        """The row of a dot at y; negative or too large beyond the chart."""
        return self.rows - 1 - round(self.height_fraction(y) * (4 * self.rows - 1)) // 4

    def height_fraction(self, y: float) -> float:
        """Return y's place between the lowest row (0) and the highest (1), or beyond them."""
        return (_to_axis(y, self.log) - self.bottom) / (self.top - self.bottom)


def draw(
    lines: Sequence[ChartLine],
    *,
    width: int,
    height: int,
    x_text: Callable[[float], str],
    x_label: str = "",
    levels: Sequence[Level] = (),  # the first is on top
    marks: Sequence[Mark] = (),
    top: float = math.inf,  # higher values are cut off
    log: bool = False,  # y by its logarithm; every y must be positive
    also_x: Sequence[float] = (),  # y values that must also be visible, as far as `top` allows
    also_y: Sequence[float] = (),
    span: Span | None = None,  # draw only this part of x, and as much of y as the lines need there
) -> ChartCanvas | None:
    """Draw lines, the last on top; None if there is nothing to draw, or no room."""
    of_y = partial(_to_axis, log=log)
    own_line = height >= ROOM_FOR_AXIS
    rows = height - (2 if own_line else 1)
    shown = [line for line in lines if len(line.x)]
    if not shown or rows < 2 or width < 16:
        return None
    levels = [level for level in levels if math.isfinite(level.y) and (level.y > 0 or not log)]
    low_x = min(*also_x, math.inf, *(line.x[0] for line in shown))
    high_x = max(*also_x, -math.inf, *(line.x[-1] for line in shown))
    if 0 < low_x < FROM_ZERO * high_x:
        low_x = 0.0
    whole = low_x, high_x if high_x > low_x else low_x + 1.0
    seen = shown
    if span is not None and (part := [cut for line in shown if (cut := clip_line(line, span)).x]):
        seen, top, (low_x, high_x) = part, math.inf, span
        marks = [mark for mark in marks if low_x <= mark.x <= high_x]
    within = [min(y, top) for line in seen for y in (min(line.y), max(line.y))]
    within += [level.y for level in levels] if seen is shown else []
    within += [min(y, top) for y in also_y]
    low_y, high_y = of_y(min(within)), of_y(max(within))
    if high_y - low_y < 1e-12:
        pad = abs(high_y) * 0.05 or 0.5
        low_y, high_y = low_y - pad, high_y + pad

    if log:
        labelled = _log_labels(low_y, high_y, rows)
    else:
        labelled, high_y = _even_labels_and_top(low_y, high_y, rows)
    canvas = ChartCanvas([], 0, rows, low_x, high_x if high_x > low_x else low_x + 1.0, low_y, high_y, log, whole=whole)
    levels = [level for level in levels if seen is shown or 0 <= canvas.row_of(level.y) < rows]
    labels: dict[int, Cell] = {}  # by row
    for y, text in zip(labelled, _numbers(labelled), strict=True):
        labels.setdefault(canvas.row_of(y), (text, AXIS))
    named = {canvas.row_of(level.y): level for level in reversed(levels) if level.label}
    labels |= {row: (_numbers([round(level.y, 3)])[0], level.style) for row, level in named.items()}
    margin = max((len(text) for text, _ in labels.values()), default=0) + 1
    across = _x_labels(low_x, high_x, width - margin, x_text, x_label, reach=REACH if own_line else 0.0)
    canvas = replace(canvas, cells=[[BLANK] * width for _ in range(height)], margin=margin)
    columns = [canvas.column_of(x) for x, _ in across]
    canvas = replace(canvas, labelled=(sorted(labels), columns))

    cells = canvas.cells
    for row in range(rows):
        text, style = labels.get(row, ("", AXIS))
        cells[row][:margin] = [*((c, style) for c in text.rjust(margin - 1)), ("┤" if text else "│", AXIS)]
    if own_line:
        cells[rows][margin - 1 :] = [("└", AXIS), *(("┬" if x in columns else "─", AXIS) for x in range(margin, width))]
    for column, (_, text) in zip(columns, across, strict=True):
        start = max(margin, min(column - len(text) // 2, width - len(text)))
        cells[-1][start : start + len(text)] = [(c, AXIS) for c in text]
    named_x = cells_of(x_label, AXIS)
    if x_label and all(cell == BLANK for cell in cells[-1][-len(named_x) - 1 :]):
        cells[-1][-len(named_x) :] = named_x
    elif x_label and own_line and (start := max(columns) - len(named_x) - 1) > margin:
        cells[rows][start : start + len(named_x)] = named_x  # on the axis itself: the labels take all the room
    for level in reversed(levels):
        row = canvas.row_of(level.y)
        if 0 <= row < rows:
            cells[row][margin:] = [(HORIZONTAL_SIGN, level.style)] * (width - margin)
    _trace(canvas, seen)
    for line in shown:
        if line.dots:
            inside = [(x, y) for x, y in zip(line.x, line.y, strict=True) if low_x <= x <= high_x]
            points = list(zip(*decimate(*unzip_points(inside), width), strict=True))[
                ::-1
            ]  # the newest is always marked
            every = max(1, -(-len(points) * APART // (width - margin)))
            marks = [*(Mark(*at, "•", line.style) for at in points[::every]), *marks]
    for mark in marks:
        if 0 <= (row := canvas.row_of(mark.y)) < rows:
            cells[row][canvas.column_of(mark.x)] = (mark.sign, mark.style)
    for row, level in named.items():
        label = cells_of(f" {level.label} ", level.style)
        cells[row][margin + 1 : margin + 1 + len(label)] = label
        cells[row][margin:] = [(sign, f"{style}{ON}{level.style}-row") for sign, style in cells[row][margin:]]
    return canvas


def unzip_points(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    x, y = zip(*points, strict=True) if points else ((), ())
    return x, y


def clip_line(line: ChartLine, span: Span) -> ChartLine:
    """The part of a line within a span, up to its very ends: it is interpolated there."""
    points = [(x, y) for x, y in zip(line.x, line.y, strict=True) if math.isfinite(x) and math.isfinite(y)]
    inside = [point for point in points if span[0] <= point[0] <= span[1]]
    for i, end in ((0, span[0]), (len(inside) + 1, span[1])):
        at = bisect_right(points, (end, math.inf))
        if 0 < at < len(points) and points[at - 1][0] < end:
            (x, y), (right, above) = points[at - 1], points[at]
            inside.insert(i, (end, y + (above - y) * (end - x) / (right - x)))
    x_part, y_part = unzip_points(inside)
    return replace(line, x=x_part, y=y_part)


def _to_axis(y: float, log: bool) -> float:
    return math.log10(max(y, LOWEST)) if log else float(y)


def _trace(canvas: ChartCanvas, lines: Sequence[ChartLine]) -> None:
    """Have plotext join each line's points in braille, the last line on top.

    It gets whole dots, so that it cannot round them differently from marks, and a colour for each line.
    """
    columns, highest = len(canvas.cells[0]) - canvas.margin, 4 * canvas.rows - 1
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.limit_size(False, False)  # it would ask stdout for a terminal size; a screen has none
    plotext.plot_size(columns, canvas.rows)
    plotext.xaxes(False, False)
    plotext.yaxes(False, False)
    plotext.xticks([])
    plotext.yticks([])
    plotext.xlim(0, 2 * columns - 1)
    plotext.ylim(0, highest)
    drawn = dict(enumerate(lines, 1))  # by colour
    crossing: dict[tuple[int, int], list[ChartLine]] = {}  # row, column -> the lines that share it
    for number, line in drawn.items():
        x, y = decimate(line.x, line.y, 2 * columns)
        dots = [canvas.dot_column(at) for at in x]
        heights = [round(canvas.height_fraction(at) * highest) for at in y]
        plotext.plot(dots, heights, marker="braille", color=number)
        for cell in _crossed_cells(dots, heights, canvas.rows) if line.takes_turns else ():
            crossing.setdefault(cell, []).append(line)
    for row, text in enumerate(plotext.build().split("\n")[: canvas.rows]):
        paint, column = 0, -1
        for changed, sign in PAINTED.findall(text):
            paint, column = (int(changed), column) if changed else (paint, column + 1)
            found = drawn.get(paint)
            if found is None or sign in ("", " "):
                continue
            there = crossing.get((row, column), []) if found.takes_turns else []
            if found not in there or len(there) == 1:  # crossings are approximate
                there = [found]
            if there := [line for line in there if not (line.dashed and column % (line.dash + 1) == line.dash)]:
                canvas.cells[row][canvas.margin + column] = (sign, there[column // TURN % len(there)].style)
    plotext.clear_figure()


def _crossed_cells(dots: Sequence[int], heights: Sequence[int], rows: int) -> set[tuple[int, int]]:
    """The cells, as row and column, that a line between these dots crosses."""
    cells: set[tuple[int, int]] = set()
    for at, x in enumerate(dots):
        left, below = (dots[at - 1], heights[at - 1]) if at else (x, heights[0])
        low = float(below)
        for dot in range(left, x + 1):
            high = below + (heights[at] - below) * (dot - left) / (x - left) if x > left else heights[at]
            first, last = sorted((rows - 1 - round(low) // 4, rows - 1 - round(high) // 4))
            cells.update((row, dot // 2) for row in range(max(0, first), min(rows - 1, last) + 1))
            low = high
    return cells


def _even_labels_and_top(low: float, high: float, rows: int) -> tuple[list[float], float]:
    """Round numbers that are equally many rows apart, for which the higher end may have to rise, and that end."""
    most, dots = max(LABELS, min(8, rows // 3)), 4 * rows - 1
    values, end, room = ticks(low, high, most, least=LABELS), high, low + (1.0 + SPARE) * (high - low)
    for wanted in range(most, LABELS - 1, -1):
        found = ticks(low, high, wanted, least=LABELS)
        step = found[1] - found[0]
        apart = int(dots * step / (high - low)) // 4  # in rows
        risen = low + dots * step / (4 * apart) if apart else math.inf
        if risen < room:
            more = range(1, int((risen - found[-1]) / step) + 1)
            values, end, room = [*found, *(round(found[-1] + i * step, 12) for i in more)], risen, risen
    return values, end


def _log_labels(low: float, high: float, rows: int) -> list[float]:
    """1, 2 and 5 times powers of ten, unless these are too few."""
    powers = range(math.floor(low), math.ceil(high) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        values = [f * 10.0**p for p in powers for f in factors if low - 1e-9 <= math.log10(f * 10.0**p) <= high + 1e-9]
        if len(values) >= LABELS:
            break
    else:
        wanted = max(LABELS, min(8, rows // 3))
        values = [value for value in ticks(10.0**low, 10.0**high, wanted, least=LABELS) if value > 0]
    return values


def _numbers(values: Sequence[float]) -> list[str]:
    """All with the decimals that the finest needs."""
    if not values:
        return []
    if max(abs(value) for value in values) >= 100_000:
        return [si_number(value).replace(" ", "") for value in values]
    for decimals in range(7):
        if all(abs(value - round(value, decimals)) < 1e-9 * max(1.0, abs(value)) for value in values):
            return [f"{value:,.{decimals}f}" for value in values]
    return [f"{value:.3g}" for value in values]


def _x_labels(
    low: float, high: float, columns: int, x_text: Callable[[float], str], x_label: str, *, reach: float
) -> list[tuple[float, str]]:
    """Round numbers with gaps between them, and room for the x name at the end unless that leaves too few, or none
    beyond `reach`, a share of the axis.
    """
    found: list[tuple[float, str]] = []
    usual, short = max(LABELS, columns // 14), columns - cell_len(x_label) - 1
    for end, least in ((short, usual), (short, 2 * usual), (columns, usual)) if x_label else ((columns, usual),):
        found, free, span = [], 0, high - low
        for value in ticks(low, high, least, least=LABELS):
            label, middle = x_text(value), round((value - low) / span * (columns - 1)) if span > 0 else 0
            start = max(0, min(middle - len(label) // 2, columns - len(label)))
            if start >= free and start + len(label) <= end and label not in (said for _, said in found):
                found.append((value, label))
                free = start + len(label) + 2
        if len(found) >= LABELS and found[-1][0] >= low + reach * (high - low):
            break
    return found


def line_chart(
    series: Sequence[ChartLine],
    *,
    title: str,  # what y is, with its unit
    width: int,
    height: int,
    levels: Sequence[tuple[str, float, str]] = (),  # horizontal lines: label, y, colour
    top: float = math.inf,  # higher values are cut off, so that a steep start does not flatten the rest
    colour: bool = True,
) -> str:
    """Return a chart over the steps as lines of text; "" if nothing is finite."""
    known = [(one, points) for one in series if (points := decimate(one.x, one.y, width))[0]]
    seen = [(label, y, paint) for label, y, paint in levels if math.isfinite(y)]
    canvas = draw(
        [ChartLine(*points, one.style, one.dots) for one, points in known],
        width=width,
        height=height - 1,
        x_text=lambda x: f"{x:,.10g}",
        x_label=tr("step"),
        levels=[Level(y, paint) for _, y, paint in seen],
        top=top,
    )
    if canvas is None:
        return ""
    head = cells_of(title, "bold")
    legend = [("━", one.label, one.style) for one, _ in known] + [("┄", label, paint) for label, _, paint in seen]
    for sign, label, paint in legend:
        if len(head) + cell_len(label) + 5 <= width:
            head += [*[BLANK] * 3, (sign, paint), BLANK, *cells_of(label, paint)]
    rows = [head[:width], *canvas.cells]
    return "\n".join(_ansi_text(row, colour=colour).rstrip() for row in rows)


def _ansi_text(row: Sequence[Cell], *, colour: bool) -> str:
    if not colour:
        return "".join(c for c, _ in row)
    styles = [style if style not in ("", AXIS) else "none" for _, style in row]
    ends = [i for i in range(1, len(row) + 1) if i == len(row) or styles[i] != styles[i - 1]]
    parts = zip([0, *ends], ends, strict=False)
    runs = ((styles[a], "".join(c for c, _ in row[a:b])) for a, b in parts)
    return "".join(Style.parse(style).render(text, color_system=ColorSystem.EIGHT_BIT) for style, text in runs)


def decimate(x: Sequence[float], y: Sequence[float], columns: int) -> tuple[list[float], list[float]]:
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


def usual_top(curves: Iterable[Points], low: float) -> float:
    """The top of a chart: cuts off the initial fall if it dwarfs the rest of every curve; infinity if it does not."""
    found = [[at for at in zip(curve.x, curve.y, strict=True) if math.isfinite(at[1])] for curve in curves]
    found = [points for points in found if points]
    if not found:
        return math.inf
    first, last = min(points[0][0] for points in found), max(points[-1][0] for points in found)
    late = [sorted(y for x, y in points if x >= first + EARLY * (last - first)) for points in found]
    usual = max(values[int(0.97 * (len(values) - 1))] for values in late if values) - low  # without spikes
    highest = max(y for points in found for _, y in points)
    return low + 1.15 * usual if highest > low + CUT_RATIO * usual > low else math.inf


def ticks(low: float, high: float, wanted: int = 6, *, least: int = 1) -> list[float]:
    """Round numbers within [low, high], about as many as wanted, and at least so many."""
    if not high > low:
        return [low]
    raw = (high - low) / wanted
    size = 10.0 ** math.floor(math.log10(raw))
    at_most = next(i for i, m in enumerate(ROUND) if size * m >= raw)
    for step in (size * m for m in ROUND[at_most::-1]):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first + 1 >= least:
            break
    return [round(k * step, 12) for k in range(first, last + 1)]


# What is drawn behind the lines. A band is the background of cells, so it covers no line.

HORIZONTAL_SIGN, VERTICAL_SIGN, ON = "┄", "┊", " on "  # `run0 on band1`: the style of a cell and of its background
EMPTY = " ┈╎┼"  # and the grid
BEHIND = EMPTY + HORIZONTAL_SIGN


def may_cover(cell: Cell, signs: str = BEHIND) -> bool:
    """Whether a sign may be drawn over a cell: nothing but background is in it."""
    return cell[0] != "" and cell[0] in signs


@dataclass(frozen=True)
class ShadedBand:
    x: Sequence[float]  # of its points
    ends: Sequence[tuple[float, float]]  # its lower and upper edge there
    style: str  # of its background, by the number of its run
    faint: Sequence[bool] = ()  # points where nothing can be concluded; () for none


def shade_bands(canvas: ChartCanvas, bands: Sequence[ShadedBand]) -> None:
    """Fill the cells whose middle a band covers, and at least one in each column; the last band is on top."""
    for band in bands:
        x = band.x
        if not x or x[-1] < canvas.low or x[0] > canvas.high:
            continue
        for column in range(canvas.column_of(x[0]), canvas.column_of(x[-1]) + 1):
            at = canvas.x_at(column)
            left = max(0, min(bisect_right(x, at) - 1, len(x) - 1))
            right = min(left + 1, len(x) - 1)
            share = min(1.0, max(0.0, (at - x[left]) / (x[right] - x[left]))) if right > left else 0.0
            edges = (a + share * (b - a) for a, b in zip(band.ends[left], band.ends[right], strict=True))
            low, high = ((1.0 - canvas.height_fraction(y)) * canvas.rows for y in edges)
            first, last = math.ceil(high - 0.5), math.floor(low - 0.5)
            if first > last:  # thinner than a row
                first = last = math.floor((low + high) / 2)
            faint = bool(band.faint) and (band.faint[left] or band.faint[right])
            for row in range(max(0, first), min(canvas.rows - 1, last) + 1):
                sign, style = canvas.cells[row][column]
                style = style.partition(ON)[0]
                canvas.cells[row][column] = (sign, f"{style}{ON}{'faint' if faint else 'band'}{band.style}")


def draw_horizontal(canvas: ChartCanvas, y: float, style: str) -> None:
    """Draw a horizontal line at y, behind everything else, in the row where dots at y would be."""
    if 0 <= (row := canvas.row_of(y)) < canvas.rows:
        for column in range(canvas.margin, len(canvas.cells[0])):
            if may_cover(canvas.cells[row][column], EMPTY):
                _replace_sign_keeping_background(canvas, row, column, HORIZONTAL_SIGN, style)


def draw_vertical(canvas: ChartCanvas, x: float, style: str, top: Sequence[Cell] = ()) -> None:
    """Draw a vertical line at x, behind everything else, with letters at its top."""
    if not canvas.low <= x <= canvas.high:
        return
    column = canvas.column_of(x)
    for row in range(canvas.rows):
        if may_cover(canvas.cells[row][column]):
            _replace_sign_keeping_background(canvas, row, column, VERTICAL_SIGN, style)
    start = max(canvas.margin, min(column, len(canvas.cells[0]) - len(top)))
    canvas.cells[0][start : start + len(top)] = top


def draw_grid(canvas: ChartCanvas, style: str = "grid") -> None:
    """Draw faint lines at the labels of both axes, behind everything else."""
    rows, columns = canvas.labelled
    for row in range(canvas.rows):
        for column in range(canvas.margin, len(canvas.cells[0])) if row in rows else columns:
            if canvas.cells[row][column][0] == " ":
                sign = "┈" if row in rows and column not in columns else "┼" if row in rows else "╎"
                _replace_sign_keeping_background(canvas, row, column, sign, style)


def _replace_sign_keeping_background(canvas: ChartCanvas, row: int, column: int, sign: str, style: str) -> None:
    """Draw a sign and keep the cell's background."""
    _, on, band = canvas.cells[row][column][1].partition(ON)
    canvas.cells[row][column] = (sign, f"{style}{on}{band}")
