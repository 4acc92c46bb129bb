"""Modal pages: all about one run or variant, and a note of any length on a run."""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from engine.base.clean import clean, clean_line
from engine.base.language import Message, tr
from engine.runs.manage import LONGEST_NOTE
from tui_transformer.lab.analysis.detail import Blocks, DetailLine
from tui_transformer.studio.shared.dialog import TextScreen
from tui_transformer.studio.shared.palette import Palette

WIDEST_HEAD = 34  # columns of the heads


class DetailPage(TextScreen):
    """A run's badges with advice, comparison with the baseline, notes, scores, probes, settings."""

    def __init__(self, title: str, blocks: Blocks, palette: Palette) -> None:
        texts = []
        for heading, lines in blocks.items():
            texts.append(Static(Text(heading, style=f"bold {palette.primary}".strip())))
            texts.append(Static(_lines_grid(lines, palette), classes="dialog-text"))
        super().__init__(title, *texts)


def _lines_grid(lines: Sequence[DetailLine], palette: Palette) -> RenderableType:
    """Heads in one column, wrapped text in another."""
    styles = {"plain": "", "bad": f"bold {palette.bad}", "warn": palette.warn, "advice": palette.accent}
    grid = Table.grid(padding=(0, 2))
    heads = max(min(WIDEST_HEAD, cell_len(line.head)) for line in lines)
    grid.add_column(width=heads, overflow="fold")
    grid.add_column(ratio=1, overflow="fold")
    for line in lines:
        style = styles[line.kind].strip()
        head = style if line.kind in ("bad", "warn") else palette.dim
        grid.add_row(Text(line.head, style=head), Text(line.text, style=style if line.kind == "advice" else ""))
    return grid


class NotePage(ModalScreen[str | None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "keep", Message("keep"), priority=True),
        Binding("escape", "dismiss", Message("back"), priority=True),
    ]

    def __init__(self, name: str, text: str) -> None:
        super().__init__()
        self._run_name, self._text = name, text

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            title = clean_line(tr("A note on {name}", name=self._run_name))
            yield Static(Text(title, style="bold"), classes="dialog-title")
            yield TextArea(clean(self._text), soft_wrap=True)
            yield Static("", classes="dialog-wrong")
            yield Static(Text(tr("ctrl+s: save · esc: discard")), classes="dialog-text")

    def on_mount(self) -> None:
        area = self.query_one(TextArea)
        area.move_cursor(area.document.end)
        area.focus()

    def action_keep(self) -> None:
        text = self.query_one(TextArea).text.rstrip()
        if len(text) > LONGEST_NOTE:
            words = tr(
                "a note can have at most {longest_note:,} characters; this one has {n:,}",
                longest_note=LONGEST_NOTE,
                n=len(text),
            )
            self.query_one(".dialog-wrong", Static).update(Text(words))
        else:
            self.dismiss(text)
