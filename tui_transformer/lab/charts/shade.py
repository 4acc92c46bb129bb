"""What is drawn between the lines of a chart: the band around a mean, and lines across and upright. It gives cells.

A band is a texture of dots, eight places to a cell, so that it is seen without colours and where it is thinner than a
row; thick where something can be said there, thin where not. It never covers a line, and is thinner than one.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tui_transformer.lab.charts.canvas import Canvas, Cell

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
