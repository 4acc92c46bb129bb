"""What is drawn between the lines of a chart: the band around a mean, and lines that stand upright. It gives cells.

A band is a texture of dots, eight places to a cell, so that it is seen without colours and where it is thinner than a
row; thick where something can be said there, thin where not. It never covers a line.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from tui_transformer.widgets.canvas import Canvas

DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # of a braille character: [column][row from the top]
BRAILLE = 0x2800
UPRIGHT = "┊"


@dataclass(frozen=True)
class Shade:
    """A band.

    Args:
        x: of its points.
        low: its lower edge there; `high` the upper.
        style: of its dots.
        thick: at which points every place is a dot, not every second one; () nowhere.
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
    for height in range(max(0, round(low)), min(places, round(high)) + 1):
        row, dot = divmod(places - height, 4)
        for half in (0, 1):
            if thick or (height + half) % 2 == 0:
                pattern = dots.get((row, column), (0, ""))[0]
                dots[row, column] = pattern | DOTS[half][dot], band.style


def _between(x: Sequence[float], at: float) -> tuple[int, float]:
    """The point left of a place, and how far on the way to the next one it is."""
    left = max(0, min(bisect_right(x, at) - 1, len(x) - 1))
    if left == len(x) - 1:
        return left, 0.0
    return left, min(1.0, max(0.0, (at - x[left]) / (x[left + 1] - x[left])))


def upright(canvas: Canvas, x: float, style: str, letter: str = "") -> None:
    """A line from the top to the bottom at x, behind everything else, and a letter on its top."""
    if not canvas.low <= x <= canvas.high:
        return
    column = canvas.column_of(x)
    for row in range(canvas.rows):
        if canvas.cells[row][column][0] in " ┄":
            canvas.cells[row][column] = (UPRIGHT, style)
    if letter:
        canvas.cells[0][column] = (letter, style)
