"""Reading the pictures of docs/ back: how large they are, and the text that each of their frames shows."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from textual.app import App

from tests.tui_transformer.moving_picture import CELL, SVG
from tui_transformer.studio.app import PANE_NAMES
from tui_transformer.studio.playground.lines import PromptLine
from tui_transformer.studio.shared.keys import PANE_BINDINGS, SPARE

DOCS = Path(__file__).parents[2] / "docs"
SCREENS = {name: name for name in PANE_NAMES} | {"variants": "compare"}  # the pane that a picture shows


@cache
def tree(name: str) -> ElementTree.Element:
    return ElementTree.fromstring((DOCS / f"{name}.svg").read_text(encoding="utf-8"))


def size(name: str) -> tuple[int, int]:
    _, _, width, height = (tree(name).get("viewBox") or "").split()
    return int(width), int(height)


@cache
def frames(name: str) -> list[list[str]]:
    """Of each frame of docs/NAME.svg the lines of the screen, as text."""
    drawn = {line.get("id"): line for line in tree(name).iter(f"{SVG}g") if line.get("id")}
    strip = next(group for group in tree(name).iter(f"{SVG}g") if group.get("class") == "strip")
    found = []
    for frame in strip:
        uses = {float(use.get("y", 0)): drawn[(use.get("href") or "")[1:]] for use in frame.iter(f"{SVG}use")}
        found.append([as_text(uses[y]) for y in sorted(uses)])
    return found


def as_text(line: ElementTree.Element) -> str:
    """The texts of a line, where they stand."""
    text = ""
    for piece in sorted(line.iter(f"{SVG}text"), key=lambda piece: float(piece.get("x", 0))):
        text = text.ljust(round(float(piece.get("x", 0)) / CELL)) + (piece.text or "")
    return text


def outdated(foot: str, panes: Iterable[str]) -> str:
    """What is left of the line of keys without those that the panes have today; the last one may be cut off."""
    app = App[None]()
    known = [*PromptLine.BINDINGS, *(key for pane in (*panes, "everywhere") for key in PANE_BINDINGS[pane])]
    shown = sorted(
        (f"{app.get_key_display(key)} {key.description}" for key in known if key.show or key.id in SPARE),
        key=len,
        reverse=True,
    )
    rest, _, _ = foot.partition("▏")
    while (rest := rest.strip()) and (key := next((key for key in shown if rest.startswith(key)), "")):
        rest = rest.removeprefix(key)
    return "" if any(key.startswith(rest) for key in shown) else rest
