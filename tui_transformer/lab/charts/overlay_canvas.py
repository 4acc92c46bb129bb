"""An `Overlay` as characters: the lines, their bands, letters that tell them apart. Needs no screen."""

import math

from tui_transformer.lab.charts.canvas import Canvas, Line, Mark, Shade, across, draw, shade, upright, usual_top
from tui_transformer.lab.charts.colours import LETTERS
from tui_transformer.lab.charts.curves import AXIS_LABELS, axis_text
from tui_transformer.lab.charts.overlay import Overlay, Stroke

MARK_EVERY = 6  # columns, at least, between two marks on a line


def paint(made: Overlay, width: int, height: int) -> Canvas | None:
    """Train below, validation above, a letter on each line, each at another place along it; None with nothing to draw.

    Args:
        made: what to draw.
        width: columns in all.
        height: rows in all.
    """
    strokes = made.drawn
    if not strokes:
        return None
    lines = [Line(s.train.x, s.train.y, f"raw{s.slot}") for s in strokes]
    lines += [Line(s.curve.x, s.curve.y, f"run{s.slot}") for s in strokes]
    values = [y for s in strokes for y in (*s.curve.y, *s.train.y)]
    told = [mark for stroke in strokes for mark in _told_apart(stroke, width)] if made.zero else []
    letters = [_letter(stroke, i, len(strokes)) for i, stroke in enumerate(strokes) if stroke.curve.x]
    bands = [
        Shade(s.curve.x, s.low, s.high, f"band{s.slot}", s.apart if made.zero else ()) for s in strokes if s.banded
    ]
    edges = [y for band in bands for y in (*band.low, *band.high) if y > 0 or not made.log]
    canvas = draw(
        lines,
        width=width,
        height=height,
        x_text=lambda x: axis_text(made.axis, x),
        x_label=AXIS_LABELS[made.axis],
        levels=[(0.0, "zero")] if made.zero else [],
        marks=[*told, *letters],
        top=_top(made, values),
        log=made.log,
        also_x=[x for x, _ in made.reaches],
        also_y=(0.0, 1.0) if made.share else [*edges, *made.levels],
    )
    if canvas is not None:
        shade(canvas, bands)
        for y in made.levels:
            across(canvas, y, "zero")
        for x, slots in made.reaches:
            style = f"run{slots[0]}" if len(slots) == 1 else "zero"
            upright(canvas, x, style, [(LETTERS[slot], f"run{slot}") for slot in slots])
    return canvas


def _letter(stroke: Stroke, index: int, count: int) -> Mark:
    """A letter on a line, further along for each of several lines so that they do not meet."""
    curve = stroke.curve
    at = min(len(curve.x) - 1, round((index + 1) / (count + 1) * (len(curve.x) - 1) + 0.25 * len(curve.x)))
    style = f"run{stroke.slot}"
    return Mark(curve.x[at], curve.y[at], LETTERS[stroke.slot], style, on=style)


def _told_apart(stroke: Stroke, width: int) -> list[Mark]:
    """A mark on the mean where its interval leaves zero out, another one where it does not; not too many."""
    every = max(1, -(-len(stroke.apart) * MARK_EVERY // max(1, width)))
    points, style = list(zip(stroke.curve.x, stroke.curve.y, stroke.apart, strict=False)), f"run{stroke.slot}"
    return [Mark(x, y, "●" if apart else "○", style, on=style) for x, y, apart in points[::every]]


def _top(made: Overlay, values: list[float]) -> float:
    """Where the chart ends; the steep fall of the first steps is cut off."""
    if made.zero or made.log or made.share:
        return math.inf
    return usual_top(values, min(values))
