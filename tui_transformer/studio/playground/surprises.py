"""The tokens that surprised the model most, the worst first, each in its text."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual.events import Click
from textual.message import Message
from textual.widget import Widget

from engine.base.clean import clean_line
from engine.base.language import tr
from engine.generation.output import AnswerToken
from tui_transformer.lab.play.written import SIGNS, probability_text, token_label
from tui_transformer.studio.playground.likeliest import level_style
from tui_transformer.studio.shared.palette import Palette

NUMBERS = 23  # columns before the text
AROUND = 40  # most tokens on either side


class Surprises(Widget):
    @dataclass
    class Chosen(Message):
        at: int  # of the token

    def __init__(self) -> None:
        super().__init__(id="surprises")
        self._tokens: Sequence[AnswerToken] = ()
        self._cursor: int | None = None
        self._ranked: list[int] = []

    def show(self, pieces: Sequence[AnswerToken], at: int | None) -> None:
        """Rank these tokens; the one `at` the cursor is marked."""
        self._tokens, self._cursor, self._ranked = tuple(pieces), at, rank_by_surprise(pieces)
        self.refresh()

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and offset.y < len(self._ranked):
            self.post_message(self.Chosen(self._ranked[offset.y]))

    def render(self) -> Text:
        palette, lines = Palette.from_app(self.app), []
        width, height = self.content_size
        for at in self._ranked[:height]:
            piece = self._tokens[at]
            line = Text(no_wrap=True).append("▸ " if at == self._cursor else "  ", palette.accent)
            line.append(tr("{nats:>5.2f} nats", nats=piece.nats or 0.0), "bold")
            line.append(f"  p {probability_text(piece.probability or 0.0):<5}  ")
            lines.append(line.append_text(self._token_in_context(at, width - NUMBERS, palette)))
        return Text("\n").join(lines) if lines else Text(tr("nothing written yet"), palette.dim)

    def _token_in_context(self, at: int, width: int, palette: Palette) -> Text:
        """A token in the middle of what stands around it."""
        name = token_label(self._tokens[at].text)
        before = self._plain_text(self._tokens[max(0, at - AROUND) : at])
        after = self._plain_text(self._tokens[at + 1 :][:AROUND])
        room = max(0, (width - cell_len(name)) // 2)
        while cell_len(before) > room:
            before = before[1:]
        text = Text(" " * (room - cell_len(before)) + before, palette.dim)
        text.append(name, level_style(palette, self._tokens[at].probability or 0.0))
        return text.append(set_cell_size(after, max(0, width - room - cell_len(name))), palette.dim)

    @staticmethod
    def _plain_text(pieces: Sequence[AnswerToken]) -> str:
        return clean_line("".join(piece.text for piece in pieces).replace("\n", SIGNS["\n"]))


def rank_by_surprise(pieces: Sequence[AnswerToken]) -> list[int]:
    """Return the places of the tokens that something predicted, the most surprising first."""
    known = [(-piece.nats, at) for at, piece in enumerate(pieces) if piece.nats is not None]
    return [at for _, at in sorted(known)]
