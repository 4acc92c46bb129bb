"""The answer: a forest plot with a cursor, under the sense of its sides, over its axis and what its signs mean."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.message import Message

from engine.base.language import tr
from tui_transformer.lab.analysis.answer import StudyConclusion
from tui_transformer.lab.analysis.charts.forest import ForestLayout, Part, forest
from tui_transformer.lab.analysis.colours import LETTERS
from tui_transformer.lab.analysis.sentences import FALLING
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.records.badges import explain
from tui_transformer.studio.compare.run_table import CLICK, LETTER, RunTable
from tui_transformer.studio.shared.line_list import LineList
from tui_transformer.studio.shared.words import CachedText

MARKS = 3  # columns: a letter between spaces
AROUND = 3  # lines: head, axis and, where there is room, what the signs mean


class ForestList(LineList):
    COMPONENT_CLASSES: ClassVar[set[str]] = RunTable.COMPONENT_CLASSES
    DEFAULT_CSS = RunTable.DEFAULT_CSS.replace("RunTable", "ForestList")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "measure(-1)", "measure", show=False),
        Binding("right", "measure(1)", "measure", show=False),
    ]

    letter_column = LETTER

    @dataclass
    class MeasureChanged(Message):
        """Show the measure that is this many places further on."""

        by: int

    class LayoutChanged(Message):
        """The plot has another width."""

    def __init__(self) -> None:
        super().__init__(self._parts, id="compare-forest")
        self.answer: StudyConclusion | None = None
        self._slots: Mapping[Path, int | None] = {}
        self._layout: ForestLayout | None = None

    @property
    def result(self) -> VariantResult | None:
        results = self.answer.results if self.answer is not None else ()
        return results[self.cursor] if 0 <= self.cursor < len(results) else None

    def show(self, answer: StudyConclusion, slots: Mapping[Path, int | None], chosen: Path | None) -> None:
        """Show these variants, each with the number of its letter; the cursor stays on its variant."""
        paths = [result.path for result in answer.results]
        at = paths.index(chosen) if chosen in paths else max(0, min(self.cursor, len(paths) - 1))
        if answer == self.answer and slots == self._slots and at == self.cursor:
            return
        self.answer, self._slots, self._layout = answer, slots, None
        self.show_lines(paths, at)
        self.virtual_size = Size(self.size.width, len(paths))

    @property
    def current_layout(self) -> ForestLayout | None:
        """The plot at the width of the list."""
        width = self.scrollable_content_region.width - MARKS - 1
        if self.answer is not None and (self._layout is None or self._layout.width != width) and width > 0:
            self._layout = ForestLayout(forest(self.answer), width)
        return self._layout

    def _parts(self, at: int, width: int) -> list[Part]:
        layout, slot = self.current_layout, self._slots.get(self.paths[at])
        letter = (LETTERS[slot], f"run{slot}") if slot is not None else (" ", "dim")
        colour = letter[1] if slot is not None else "cell"
        return [(" ", "dim"), letter, (" ", "dim"), *(layout.row(at, colour) if layout is not None else [])]

    def tooltip_at(self, at: int, x: int) -> str:
        slot, layout = self._slots.get(self.paths[at]), self.current_layout
        if x == LETTER and slot is not None:
            return tr(CLICK)
        if self.answer is None or layout is None or x < MARKS + layout.badges_at:
            return ""
        return explain(name for name in self.answer.results[at].badges if name != FALLING)

    def action_measure(self, by: int) -> None:
        self.post_message(self.MeasureChanged(by))

    def on_resize(self) -> None:
        super().on_resize()
        self.post_message(self.LayoutChanged())


class ForestPlot(Vertical):
    def __init__(self) -> None:
        super().__init__(id="compare-answer")
        self.forest_list = ForestList()
        self._head, self._axis, self._caption = (CachedText(classes="forest-words") for _ in range(3))

    def compose(self) -> ComposeResult:
        yield self._head
        yield self.forest_list
        yield self._axis
        yield self._caption

    @property
    def needed_lines(self) -> int:
        """As many as it needs to be seen whole."""
        return len(self.forest_list.paths) + AROUND

    def show(self, answer: StudyConclusion, slots: Mapping[Path, int | None], chosen: Path | None) -> None:
        self.forest_list.show(answer, slots, chosen)
        self.on_forest_list_layout_changed()

    def on_forest_list_layout_changed(self) -> None:
        layout = self.forest_list.current_layout
        if layout is not None:
            for words, parts in ((self._head, layout.head()), (self._axis, layout.axis())):
                words.show(Text(" " * MARKS + "".join(text for text, _ in parts), no_wrap=True))
            self._caption.show(Text(" " * MARKS + layout.caption(), no_wrap=True, overflow="ellipsis"))

    def on_resize(self) -> None:
        self._caption.display = self.size.height >= self.needed_lines
