"""The alternatives at a token: the likeliest ones with bars, to read, or to continue the text from."""

import math
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import set_cell_size
from rich.text import Text
from textual import message
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.widget import Widget

from engine.base.language import Message, tr
from engine.generation.output import Alternative, AnswerToken
from tui_transformer.lab.formatting import bar
from tui_transformer.lab.play.written import probability_level, probability_text, token_label
from tui_transformer.studio.shared.palette import Palette

LIKELIEST = 5
COLUMN = 8  # of a token's name
BAR = 30  # columns of the longest bar


class TokenAlternatives(Widget, can_focus=True):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "go(-1)", "up", show=False),
        Binding("down", "go(1)", "down", show=False),
        Binding("enter", "take", Message("continue from here")),
    ]

    @dataclass
    class AlternativeChosen(message.Message):
        alternative: Alternative

    def __init__(self) -> None:
        super().__init__(id="likeliest")
        self.border_subtitle = tr("!: next surprising token")
        self._piece: AnswerToken | None = None
        self._cursor, self._takes = 0, False
        self._nothing = ""

    def show(self, piece: AnswerToken | None, *, can_continue: bool = False, nothing: str = "") -> None:
        """Show a token's alternatives, or the text `nothing`; with `takes`, the text can continue from one of them."""
        if piece is not self._piece:
            self._cursor = 0
        self._piece, self._takes, self._nothing = piece, can_continue, nothing
        self.set_class(not self._has_alternatives, "-nothing")
        self.refresh(layout=True)

    @property
    def _has_alternatives(self) -> bool:
        return self._piece is not None and self._piece.probability is not None

    def action_go(self, by: int) -> None:
        if self._piece is not None and self._piece.alternatives:
            self._cursor = max(0, min(len(self._piece.alternatives) - 1, self._cursor + by))
            self.refresh(layout=True)

    def action_take(self) -> None:
        if self._piece is not None and self._takes and self._piece.alternatives:
            self.post_message(self.AlternativeChosen(self._piece.alternatives[self._cursor]))

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)
        if self._piece is not None and offset is not None and 1 <= offset.y <= len(self._piece.alternatives):
            self._cursor = offset.y - 1
            self.refresh(layout=True)
            if event.chain > 1:
                self.action_take()

    def render(self) -> Text:
        palette, piece = Palette.from_app(self.app), self._piece
        if piece is None or piece.probability is None:
            return Text(self._nothing, palette.dim)
        nats = piece.nats or 0.0
        drawn = piece.chance is not None
        words = Text.assemble(
            (tr("token "), palette.dim),
            (token_label(piece.text), f"bold {level_style(palette, piece.probability)}"),
            (f"  p {probability_text(piece.probability)}", ""),
            (tr("   {nats:.2f} nats, {nats2:.2f} bits", nats=nats, nats2=nats / math.log(2)), palette.dim),
            (tr("   sampled at {number}", number=probability_text(piece.chance or 0.0)) if drawn else "", palette.dim),
            no_wrap=True,
            overflow="ellipsis",
        )
        room = max(6, min(BAR, self.content_size.width - COLUMN - (28 if drawn else 10)))
        for i, one in enumerate(piece.alternatives):
            chosen = self.has_focus and i == self._cursor
            words.append("\n▸ " if chosen else "\n  ", palette.accent)
            words.append(set_cell_size(token_label(one.text), COLUMN - 2), "bold" if one.text == piece.text else "")
            words.append(bar(one.probability, room).ljust(room), palette.primary)
            words.append(f" {probability_text(one.probability):<5}", "bold" if one.text == piece.text else "")
            if drawn:
                words.append(
                    tr("  sampled at {probability}", probability=probability_text(one.chance))
                    if one.chance > 0
                    else tr("  cut off"),
                    palette.dim,
                )
        if self.has_focus and self._takes:
            words.append(tr("\nenter: continue from this token"), palette.dim)
        return words


def level_style(palette: Palette, probability: float) -> str:
    shades = ("", palette.good, palette.warn, f"{palette.bad} underline", f"{palette.bad} bold underline")
    return shades[probability_level(probability)]
