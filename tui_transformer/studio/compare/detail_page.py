"""All about one run, or one variant, over the screen."""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from engine.clean import clean_line
from tui_transformer.lab.analysis.detail import Block
from tui_transformer.studio.shared.palette import Palette

WIDEST = 34  # columns of the heads


class DetailPage(ModalScreen[None]):
    """A run's badges with what to do, how it stands to the baseline, notes, scores, probes, settings."""

    DEFAULT_CSS = """
    DetailPage { align: center middle; background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "dismiss", "back")]

    def __init__(self, title: str, blocks: Sequence[Block], palette: Palette) -> None:
        super().__init__()
        self._title, self._blocks, self._palette = title, blocks, palette

    def compose(self) -> ComposeResult:
        """Title and blocks."""
        with Vertical(classes="dialog wide"):
            yield Static(Text(clean_line(self._title), style="bold"), classes="dialog-title")
            with VerticalScroll():
                for block in self._blocks:
                    yield Static(Text(block.title, style=f"bold {self._palette.primary}".strip()))
                    yield Static(_written(block, self._palette), classes="dialog-text")

    def on_mount(self) -> None:
        """Arrows scroll."""
        self.query_one(VerticalScroll).focus()


def _written(block: Block, palette: Palette) -> RenderableType:
    """Heads in one column, words that wrap in another."""
    styles = {"plain": "", "bad": f"bold {palette.bad}", "warn": palette.warn, "advice": palette.accent}
    grid = Table.grid(padding=(0, 2))
    heads = max(min(WIDEST, cell_len(line.head)) for line in block.lines)
    grid.add_column(width=heads, overflow="fold")
    grid.add_column(ratio=1, overflow="fold")
    for line in block.lines:
        style = styles[line.kind].strip()
        head = style if line.kind in ("bad", "warn") else palette.dim
        grid.add_row(Text(line.head, style=head), Text(line.text, style=style if line.kind == "advice" else ""))
    return grid
