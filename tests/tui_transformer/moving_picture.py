"""Screens of the studio as one SVG, from what Textual exports of each: a still one, or one that plays them in turn.

It plays as an `<img>`, where scripts and files from elsewhere are not allowed: CSS moves a strip of all frames past a
window. A line that several frames show is drawn once. Who asks their system for less motion sees one frame, `still`;
so does whoever has nothing that can play it.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from xml.etree import ElementTree

from rich.cells import cell_len

# As Textual exports: a character's width, a line's height, where its letters stand, and its background's place.
CELL, LINE, BASELINE, TOP, HEIGHT = 12.2, 24.4, 20.0, 1.5, 24.65
TITLE, EDGE = 40, 9  # above the screen, with its title; beside and below it
FONTS = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
SVG = "{http://www.w3.org/2000/svg}"
LOOK = re.compile(r"^ *\.[\w-]+-(r\d+) \{ (.*) \}$", re.MULTILINE)
MOVED = re.compile(r'(?<=class="strip" transform="translate\()-?\d+')
# Letters, lines and blocks, braille: each may be of another font with another width, so each is given its own.
PIECE = re.compile(r"[⠀-⣿]+|[─-◿]+|[^─-◿⠀-⣿\s]+(?: [^─-◿⠀-⣿\s]+)*")


@dataclass(frozen=True)
class Frame:
    """What `App.export_screenshot` gave, for how long it is seen, and the words above it."""

    exported: str
    seconds: float
    caption: str


def picture(frames: Sequence[Frame], still: int = 0) -> str:
    """One SVG that plays the frames again and again, or shows the only one.

    Args:
        frames: all of one size.
        still: which of them stands for all where nothing moves, from 0.
    """
    screens = [_Screen(ElementTree.fromstring(frame.exported)) for frame in frames]
    (columns, lines), *others = dict.fromkeys(screen.size for screen in screens)
    assert not others, "the frames differ in size"
    background = sum((screen.backgrounds() for screen in screens), Counter[str]()).most_common(1)[0][0]
    width, height = round(columns * CELL) + 2 * EDGE, round(lines * LINE) + TITLE + EDGE
    drawn, shown = _Drawn(), []
    for number, (frame, screen) in enumerate(zip(frames, screens, strict=True)):
        uses = "".join(
            f'<use href="#{drawn.line(content)}" y="{_short(at * LINE + BASELINE)}"/>'
            for at, content in screen.lines(drawn, background)
        )
        title = f'<text class="title" x="{width // 2 - EDGE}" y="-14">{escape(frame.caption)}</text>'
        shown.append(f'<g transform="translate({number * width + EDGE} {TITLE})">{title}{uses}</g>')
    styles = [
        f"text{{font-family:{FONTS};font-size:20px;font-variant-ligatures:none}}",
        f"path{{stroke-width:{HEIGHT};shape-rendering:crispEdges}}",
        ".title{font-family:sans-serif;font-size:17px;font-weight:bold;fill:#c5c8c6;text-anchor:middle}",
        *(f".{name}{{{css}}}" for css, name in drawn.looks.items()),
        *(_motion([frame.seconds for frame in frames], width) if len(frames) > 1 else ()),
    ]
    buttons = zip((27, 49, 71), ("#ff5f57", "#febc2e", "#28c840"), strict=True)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
        *("<style>", *styles, "</style>"),
        *("<defs>", *(f'<g id="{name}">{content}</g>' for content, name in drawn.contents.items()), "</defs>"),
        f'<rect width="{width}" height="{height}" rx="8" fill="{background}" stroke="#555"/>',
        *(f'<circle cx="{x}" cy="22" r="7" fill="{colour}"/>' for x, colour in buttons),
        f'<svg width="{width}" height="{height}"><g class="strip" transform="translate({-still * width} 0)">',
        *(*shown, "</g></svg>", "</svg>", ""),
    ]
    return "\n".join(parts)


def at_frame(moving: str, number: int) -> str:
    """A moving picture that stands still at one of its frames, from 0."""
    width = int(re.findall(r'viewBox="0 0 (\d+)', moving)[0])
    return MOVED.sub(str(-number * width), moving)


def _motion(seconds: Sequence[float], width: int) -> list[str]:
    """CSS that shows each part of the strip, `width` wide, for its seconds."""
    *starts, total = itertools.accumulate(seconds, initial=0.0)
    moves = (
        f"{_short(100 * start / total)}%{{transform:translateX({-number * width}px)}}"
        for number, start in enumerate(starts)
    )
    return [
        f".strip{{animation:play {_short(total)}s step-end infinite}}",
        f"@keyframes play{{{''.join(moves)}}}",
        "@media (prefers-reduced-motion:reduce){.strip{animation:none}}",
    ]


@dataclass
class _Drawn:
    """What frames share: looks by their CSS, and lines by what is drawn on them."""

    looks: dict[str, str] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)

    def look(self, css: str) -> str:
        return self.looks.setdefault(css.replace(": ", ":").rstrip(";"), f"c{len(self.looks)}")

    def line(self, content: str) -> str:
        return self.contents.setdefault(content, f"l{len(self.contents)}")


class _Screen:
    """An exported screen."""

    def __init__(self, root: ElementTree.Element) -> None:
        terminal = next(root.iter(f"{SVG}clipPath"))[0]
        self.size = tuple(
            round((float(terminal.get(side, 0)) + 1) / unit) for side, unit in (("width", CELL), ("height", LINE))
        )
        self._looks = dict(LOOK.findall("".join(next(root.iter(f"{SVG}style")).itertext())))
        self._rects = [rect for rect in root.iter(f"{SVG}rect") if rect.get("shape-rendering")]
        self._texts = [text for text in root.iter(f"{SVG}text") if text.get("clip-path")]  # all but the title

    def backgrounds(self) -> Counter[str]:
        """How much each colour covers."""
        area = Counter[str]()
        for rect in self._rects:
            area[rect.get("fill", "")] += round(float(rect.get("width", 0)))
        return area

    def lines(self, drawn: _Drawn, background: str) -> Iterator[tuple[int, str]]:
        """The number of each line that is not empty, and SVG of it around its baseline's start."""
        fills: dict[int, dict[str, str]] = {}
        for rect in self._rects:
            x, y, width = (float(rect.get(name, 0)) for name in ("x", "y", "width"))
            colour, colours = rect.get("fill", ""), fills.setdefault(round((y - TOP) / LINE), {})
            if colour != background:
                path = f"M{_short(x)} {_short(TOP + HEIGHT / 2 - BASELINE)}h{_short(width)}"
                colours[colour] = colours.get(colour, "") + path
        texts: dict[int, str] = {}
        for text in self._texts:
            x, y, words = float(text.get("x", 0)), float(text.get("y", 0)), (text.text or "").replace("\xa0", " ")
            at, look = round((y - BASELINE) / LINE), drawn.look(self._looks[text.get("class", "").rpartition("-")[2]])
            for piece in PIECE.finditer(words):
                place = _short(x + CELL * cell_len(words[: piece.start()]))
                length = _short(CELL * cell_len(piece[0]))
                element = f'<text class="{look}" x="{place}" textLength="{length}">{escape(piece[0])}</text>'
                texts[at] = texts.get(at, "") + element
        for at in sorted(fills.keys() | texts.keys()):
            paths = "".join(f'<path stroke="{colour}" d="{path}"/>' for colour, path in fills.get(at, {}).items())
            if content := paths + texts.get(at, ""):
                yield at, content


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
