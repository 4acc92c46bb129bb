"""Charts in characters, through plotext: finite points only, thinned to what the columns can show."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotext


@dataclass(frozen=True)
class Series:
    """One line of a chart: x and y of equal length."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    marker: str = "braille"


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


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    width: int,
    height: int,
    levels: Sequence[tuple[str, float, str]] = (),
    colour: bool = True,
) -> str:
    """A chart as lines of text.

    Args:
        series: lines to draw; those without a finite point are left out.
        title: what y is, with its unit.
        x_label: what x is, with its unit.
        width: columns.
        height: rows.
        levels: horizontal lines: label, y, colour.
        colour: with escape codes for colour, or plain.

    Returns:
        The chart, or the empty string if nothing is finite.
    """
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(width, height)
    drawn = []
    for line in series:
        x, y = thin(line.x, line.y, width)
        if x:
            plotext.plot(x, y, label=line.label, color=line.colour, marker=line.marker)
            drawn.append((x, y))
    if not drawn:
        return ""
    left, right = min(min(x) for x, _ in drawn), max(max(x) for x, _ in drawn)
    for label, level, paint in levels:
        if math.isfinite(level):
            ends = [left, right] if right > left else [left]
            plotext.plot(ends, [level] * len(ends), label=label, color=paint, marker="·")
    plotext.title(title)
    plotext.xlabel(x_label)
    text: str = plotext.build()
    plotext.clear_figure()
    return text.rstrip() if colour else plotext.uncolorize(text).rstrip()
