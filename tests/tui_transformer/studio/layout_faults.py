"""What is wrong with where things are on a screen: cut off, on top of each other, too wide."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from textual.app import App
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

TRUNCATED = {"at-hand", "run-words"}  # ids and classes of texts that are cut: the first lines say most


def seen_widgets(app: App[Any]) -> Iterator[Widget]:
    """The widgets of the screen on top that have room, from the outside in, less those that come and go."""
    for widget in app.screen.walk_children(Widget, method="breadth"):
        shown = all(one.display and one.visible for one in widget.ancestors_with_self if isinstance(one, Widget))
        passing = any(
            type(one).__module__.startswith(("textual.widgets._toast", "textual.widgets._tooltip", "textual.screen"))
            for one in widget.ancestors_with_self
            if isinstance(one, Widget) and one is not app.screen
        )
        if shown and widget.region.area and not passing:
            yield widget


def faults(app: App[Any]) -> list[str]:
    """What is cut off, overlaps, or is wider than the terminal."""
    width, height = app.size
    lines = app.screen._compositor.render_strips()
    found = [f"line {y} has {line.cell_length} cells" for y, line in enumerate(lines) if line.cell_length != width]
    if len(lines) != height:
        found.append(f"there are {len(lines)} lines")
    seen = [*seen_widgets(app)] if not app.has_class("too-small") else []  # there it says only that
    for widget in seen:
        found += _cut(widget)
    for one, other in combinations(seen, 2):
        beside = one.parent is other.parent and one.layer == other.layer
        if beside and one.region.overlaps(other.region):
            found.append(f"{one} at {one.region} is over {other} at {other.region}")
    return found


def _cut(widget: Widget) -> Iterator[str]:
    parent, region = widget.parent, widget.region
    if isinstance(parent, Widget):
        room = parent.region
        ways = (parent.styles.overflow_x, parent.styles.overflow_y)
        scrolls = [way != "hidden" and not isinstance(parent, Screen) for way in ways]
        if not scrolls[0] and not (room.x <= region.x and region.right <= room.right):
            yield f"{widget} at {region} is cut off by {parent} at {room}"
        if not scrolls[1] and not (room.y <= region.y and region.bottom <= room.bottom):
            yield f"{widget} at {region} is cut off by {parent} at {room}"
    if (
        type(widget).render is Static.render
        and widget.content_size.width
        and not TRUNCATED & {widget.id, *widget.classes}
    ):
        lines = widget.visual.get_height(widget.styles, widget.content_size.width)
        if lines > widget.content_size.height:
            yield f"{widget} has room for {widget.content_size.height} of its {lines} lines: {widget.visual}"
