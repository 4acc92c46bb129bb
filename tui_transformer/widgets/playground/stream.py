"""Answers as they come, drawn in the engine's own thread a slice of time at once, so that others get their turn."""

import time
from collections.abc import AsyncIterator, Iterator

from tui_transformer.prompt import Settings
from tui_transformer.widgets.design.engine_thread import in_engine_thread
from tui_transformer.widgets.playground.likeliest import LIKELIEST
from tui_transformer.writer import Writes
from tui_transformer.written import Piece

SLICE = 0.04  # seconds between two looks at what was written


async def pieces_of(writer: Writes, text: str, settings: Settings) -> AsyncIterator[list[Piece]]:
    """What a model makes of a text: its first token at once, then what comes in each slice of time."""
    source = writer.pieces(text, settings, 0, LIKELIEST)
    seconds = 0.0
    while True:
        some, more = await in_engine_thread(lambda seconds=seconds: _some(source, seconds))  # type: ignore[misc]
        if some:
            yield some
        if not more:
            return
        seconds = SLICE


def _some(source: Iterator[Piece], seconds: float) -> tuple[list[Piece], bool]:
    """At least one piece, and what else comes in so many seconds; whether there is more."""
    until, some = time.monotonic() + seconds, []
    for piece in source:
        some.append(piece)
        if time.monotonic() >= until:
            return some, True
    return some, False
