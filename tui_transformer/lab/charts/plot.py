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
    """A chart as lines of text.

    Args:
        series: lines to draw; those without a finite point are left out.
        title: what y is, with its unit.
        x_label: what x is, with its unit.
        width: columns.
        height: rows.
        levels: horizontal lines: label, y, colour.
        top: points above it are not drawn, so that a steep start does not flatten the rest.
        colour: with escape codes for colour, or plain.

    Returns:
        The chart, or the empty string if nothing is finite.
    """
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(width, height)
    drawn: list[tuple[list[float], list[float]]] = []
    shown = [(line, *thin(line.x, [b if b <= top else math.nan for b in line.y], width)) for line in series]
    every_x = [a for line, x, _ in shown for a in (line.x if x else ())]
    if not every_x:
        return ""
    left, right = min(every_x), max(every_x)
    for label, level, paint in levels:
        if math.isfinite(level):
            ends = [left, right] if right > left else [left]
            plotext.plot(ends, [level] * len(ends), label=label, color=paint, marker="·")
            drawn.append((ends, [level] * len(ends)))
    for line, x, y in shown:
        if x:
            plotext.plot(x, y, label=line.label, color=line.colour, marker=line.marker)
            drawn.append((x, y))
    for set_ticks, low, high in (
        (plotext.xticks, left, right),
        (plotext.yticks, min(min(y) for _, y in drawn), max(max(y) for _, y in drawn)),
    ):
        at = ticks(low, high)
        set_ticks(at, [f"{value:,.10g}" for value in at])
    plotext.title(title)
    plotext.xlabel(x_label)
    text: str = plotext.build()
    plotext.clear_figure()
    return text.rstrip() if colour else plotext.uncolorize(text).rstrip()
