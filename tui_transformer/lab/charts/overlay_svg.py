"""An `Overlay` as a picture for a page: plain SVG, the same to the last byte for the same runs. Needs no screen."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from engine.clean import clean_line
from tui_transformer.lab.charts.canvas import ticks
from tui_transformer.lab.charts.colours import LETTERS, ON_LIGHT
from tui_transformer.lab.charts.curves import AXIS_LABELS, axis_text
from tui_transformer.lab.charts.overlay import Overlay, Stroke

WIDTH, HEIGHT = 760, 400  # pixels
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 64, 48  # around the lines
INK, FAINT, PAPER = "#22262e", "#8a8f99", "#ffffff"
LEGEND_ROW, LEGEND_GAP, CHARACTER = 18, 28, 7.3  # pixels; of a legend's row, between its parts, of a letter
FONT = 'font-family="system-ui, sans-serif" font-size="13"'


@dataclass(frozen=True)
class _Frame:
    """Where values stand: x and y in pixels from the upper left."""

    low_x: float
    high_x: float
    low_y: float
    high_y: float

    def x(self, value: float) -> float:
        return LEFT + (value - self.low_x) / (self.high_x - self.low_x) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = (value - self.low_y) / (self.high_y - self.low_y)
        return HEIGHT - BOTTOM - min(1.0, max(0.0, share)) * (HEIGHT - TOP - BOTTOM)

    def path(self, x: Sequence[float], y: Sequence[float]) -> str:
        return " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in zip(x, y, strict=True))


def svg(made: Overlay) -> str:
    """The picture; of an overlay with nothing to draw, what it is waiting for."""
    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>', _text(16, 24, made.title, weight="bold")]
    if made.drawn:
        frame = _frame(made)
        parts += [*_axes(made, frame), *_levels(made, frame), *_reaches(made, frame)]
        for stroke in made.drawn:
            parts += _stroke(stroke, frame)
        parts += _legend(made)
    else:
        parts.append(_text(WIDTH / 2, HEIGHT / 2, made.waiting, anchor="middle"))
    body = "\n".join(f"  {part}" for part in parts)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>'
    return f"{head}\n{body}\n</svg>\n"


def _frame(made: Overlay) -> _Frame:
    x = [value for stroke in made.drawn for value in stroke.curve.x] + [place for place, _ in made.reaches]
    y = [value for stroke in made.drawn for value in (*stroke.curve.y, *stroke.low, *stroke.high)]
    y += [*made.levels, *([0.0] if made.zero else [])]
    low_y, high_y = (0.0, 1.0) if made.share else (min(y), max(y))
    pad = 0.5 if low_y == high_y else 0.0
    return _Frame(min(0.0, *x), max(*x, min(x) + 1.0), low_y - pad, high_y + pad)


def _axes(made: Overlay, frame: _Frame) -> Iterator[str]:
    across: Callable[[float], str] = lambda value: axis_text(made.axis, value)
    up: Callable[[float], str] = (lambda value: f"{value:.0%}") if made.share else (lambda value: f"{value:.10g}")
    for value in ticks(frame.low_y, frame.high_y, 5):
        y = frame.y(value)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{FAINT}" opacity="0.25"/>'
        yield _text(LEFT - 8, y + 4, up(value), anchor="end")
    for value in ticks(frame.low_x, frame.high_x, 6):
        yield _text(frame.x(value), HEIGHT - BOTTOM + 18, across(value), anchor="middle")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, AXIS_LABELS[made.axis], anchor="middle")


def _levels(made: Overlay, frame: _Frame) -> Iterator[str]:
    for value in made.levels:
        y = frame.y(value)
        yield _line(LEFT, y, WIDTH - RIGHT, y, INK, "2 4")
        yield _text(LEFT + 6, y - 5, f"chance {value:.0%}" if made.share else f"{value:.4g}")
    if made.zero:
        yield _line(LEFT, frame.y(0.0), WIDTH - RIGHT, frame.y(0.0), INK, "")


def _reaches(made: Overlay, frame: _Frame) -> Iterator[str]:
    for value, slots in made.reaches:
        x, colour = frame.x(value), _colour(slots[0]) if len(slots) == 1 else INK
        yield _line(x, TOP, x, HEIGHT - BOTTOM, colour, "6 4")
        said = f"{' '.join(LETTERS[slot] for slot in slots)} can look {value:,.0f} back"
        near_the_end = x > (LEFT + WIDTH) / 2
        yield _text(x + (-6 if near_the_end else 6), TOP - 6, said, anchor="end" if near_the_end else "start")


def _stroke(stroke: Stroke, frame: _Frame) -> Iterator[str]:
    """The band, the line, its letter at the end."""
    colour, x, y = _colour(stroke.slot), stroke.curve.x, stroke.curve.y
    if stroke.banded:
        edge = f"{frame.path(x, stroke.high)} {frame.path(x[::-1], stroke.low[::-1])}"
        yield f'<polygon points="{edge}" fill="{colour}" opacity="0.18"/>'
    yield f'<polyline points="{frame.path(x, y)}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for a, b in zip(x, y, strict=True):
        if len(x) <= 24:
            yield f'<circle cx="{frame.x(a):.1f}" cy="{frame.y(b):.1f}" r="3" fill="{colour}"/>'
    if x:
        yield _text(frame.x(x[-1]) - 4, frame.y(y[-1]) - 8, LETTERS[stroke.slot], colour=colour, anchor="end")


def _legend(made: Overlay) -> Iterator[str]:
    """Letter, sign, name and seeds of each, in one row under the title as far as it goes."""
    x = float(LEFT)
    for stroke in made.drawn:
        seeds = f"n = {stroke.seeds}" if stroke.seeds is not None else ""
        words = clean_line(" ".join(word for word in (LETTERS[stroke.slot], stroke.sign, stroke.name, seeds) if word))
        yield _text(x, 24 + LEGEND_ROW, words, colour=_colour(stroke.slot))
        x += len(words) * CHARACTER + LEGEND_GAP


def _colour(slot: int) -> str:
    return ON_LIGHT[f"run-{LETTERS[slot]}"]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, dashes: str) -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dashed}/>'


def _text(x: float, y: float, text: str, *, colour: str = INK, anchor: str = "start", weight: str = "normal") -> str:
    assert math.isfinite(x) and math.isfinite(y)
    where = f'x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}"'
    return f"<text {where}>{escape(clean_line(text))}</text>"
