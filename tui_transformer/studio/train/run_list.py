"""The runs as a list: a line each, as many as there are; the cursor stays on its run when the list changes."""

import re
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from engine.clean import clean_line
from tui_transformer.lab.records.badges import badge
from tui_transformer.lab.records.feed import RunRow
from tui_transformer.studio.shared.run_words import look

STYLES = ("live", "paused", "queued", "good", "ended", "bad", "warn", "name", "chosen", "chosen-focus", "dim")
ROOMY, VALUE = 30, 6  # columns from which a line has state and loss; those of the loss
OF_A_STUDY = re.compile(r"\.s\d+\Z")  # STUDY.VARIANT.sSEED
TRAIN_LOSS = "t"  # before a loss that is no validation loss


class RunList(ScrollView, can_focus=True):
    """Only the lines on the screen are drawn, so thousands cost no more than twenty."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"run-list--{name}" for name in STYLES}
    DEFAULT_CSS = """
    RunList { background: $surface; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }
    RunList .run-list--live { color: $accent; text-style: bold; }
    RunList .run-list--paused { color: $warning; }
    RunList .run-list--queued { color: $foreground 65%; }
    RunList .run-list--good { color: $success; }
    RunList .run-list--ended { color: $foreground 65%; }
    RunList .run-list--bad { color: $error; }
    RunList .run-list--warn { color: $warning; }
    RunList .run-list--name { color: $foreground; }
    RunList .run-list--dim { color: $foreground 65%; }
    RunList .run-list--chosen { background: $primary 20%; text-style: bold; }
    RunList .run-list--chosen-focus { background: $primary 40%; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "go(-1)", "up", show=False),
        Binding("down", "go(1)", "down", show=False),
        Binding("pageup", "go(-15)", "up", show=False),
        Binding("pagedown", "go(15)", "down", show=False),
        Binding("home", "go(-99999)", "first", show=False),
        Binding("end", "go(99999)", "last", show=False),
    ]

    class Chosen(Message):
        """The cursor went to another run."""

        def __init__(self, run: Path) -> None:
            super().__init__()
            self.run = run

    def __init__(self) -> None:
        super().__init__(id="runs")
        self.rows: tuple[RunRow, ...] = ()
        self._at = 0

    def show(self, rows: tuple[RunRow, ...], chosen: Path | None) -> None:
        """Show these, the cursor on the chosen one."""
        at = next((i for i, row in enumerate(rows) if row.path == chosen), 0)
        if rows is self.rows and at == self._at:
            return
        moved = at != self._at
        self.rows, self._at = rows, at
        self.virtual_size = Size(self.size.width, len(rows))
        if moved:
            self._reveal()
        self.refresh()

    def action_go(self, by: int) -> None:
        """Move the cursor."""
        self._go(self._at + by)

    def on_click(self, event: Click) -> None:
        """Choose the run under the mouse."""
        offset = event.get_content_offset(self)
        if offset is not None:
            self._go(offset.y + self.scroll_offset.y, only_there=True)

    def _go(self, at: int, *, only_there: bool = False) -> None:
        if not self.rows or (only_there and not 0 <= at < len(self.rows)):
            return
        at = max(0, min(len(self.rows) - 1, at))
        if at != self._at:
            self._at = at
            self._reveal()
            self.refresh()
            self.post_message(self.Chosen(self.rows[at].path))

    def _reveal(self) -> None:
        self.scroll_to_region(Region(0, self._at, 1, 1), animate=False, force=True)

    def on_resize(self) -> None:
        """The cursor stays on the screen."""
        self.virtual_size = Size(self.size.width, len(self.rows))
        self._reveal()

    def on_focus(self) -> None:
        """The cursor is brighter."""
        self.refresh()

    def on_blur(self) -> None:
        """Or darker."""
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One run."""
        width, at = self.scrollable_content_region.width, y + self.scroll_offset.y
        if not 0 <= at < len(self.rows):
            return Strip.blank(width, self.rich_style)
        over = Style()
        if at == self._at:
            name = "chosen-focus" if self.has_focus else "chosen"
            chosen = self.get_component_rich_style(f"run-list--{name}")
            over = Style(bgcolor=chosen.bgcolor, bold=True)
        segments = [Segment(text, self._style(style) + over) for text, style in self._line(self.rows[at], width)]
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    def _line(self, row: RunRow, width: int) -> list[tuple[str, str]]:
        """Texts with the names of their styles, from the left."""
        seen = look(row.state)
        worst = badge(row.badges[0]) if row.badges else None
        score, wrong = _score(row), "" if worst is None else clean_line(worst.word)
        alarm = "" if worst is None else worst.severity
        parts: list[tuple[str, str]] = []  # from the right: text, style
        if width >= ROOMY:
            parts.append((_right(score, VALUE), "name" if row.scored or not score else "dim"))
            parts.append((_right(wrong or _state(row), 9), alarm or seen.style))
        elif wrong:
            parts.append((_right(wrong, min(9, max(len(wrong), 6))), alarm))
        else:
            # One value is what there is room for: how far, or what it came to, or why there is neither.
            live = row.state == "running"
            word = _state(row) if live or seen.word else score
            parts.append((_right(word, min(8, max(len(word), 5))), seen.style if live or seen.word else "name"))
        taken = sum(cell_len(text) + 1 for text, _ in parts)
        name = _named(clean_line(row.name), width - 4 - taken)
        values = [(" " + text, style) for text, style in reversed(parts)]
        return [(f" {seen.sign} ", seen.style), (name, "name"), *values, (" ", "name")]

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"run-list--{name}")


def _score(row: RunRow) -> str:
    """The loss; a letter tells that of a train record, which there is before the first evaluation."""
    if row.loss is None:
        return ""
    size = abs(row.loss)
    loss = f"{row.loss:.3f}" if size < 10 else f"{row.loss:.2f}" if size < 100 else f"{row.loss:.3g}"
    return loss if row.scored else TRAIN_LOSS + loss


def _state(row: RunRow) -> str:
    return f"{row.share:.0%}" if row.state == "running" else look(row.state).word


def _right(text: str, width: int) -> str:
    return _cut(text, width) if cell_len(text) > width else " " * (width - cell_len(text)) + text


def _named(name: str, width: int) -> str:
    """Exactly so wide; of a study's run, which begins as all the others do, what is left is variant and seed."""
    if not OF_A_STUDY.search(name) or cell_len(name) <= width:
        return _cut(name, width)
    while name and cell_len(name) > width - 1:
        name = name[1:]
    return set_cell_size("…" + name, width) if width > 0 else ""


def _cut(text: str, width: int) -> str:
    """Exactly so wide; a name that is longer ends in an ellipsis."""
    if cell_len(text) <= width:
        return set_cell_size(text, max(0, width))
    return set_cell_size(text, max(0, width - 1)) + "…" if width > 0 else ""
