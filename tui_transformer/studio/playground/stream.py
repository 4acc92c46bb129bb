"""Answers as they come, drawn in the engine's own thread a slice of time at once, so that others get their turn."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

from tui_transformer.lab.play.prompt import Settings
from tui_transformer.lab.play.writer import Writer
from tui_transformer.lab.play.written import AnswerToken
from tui_transformer.studio.playground.likeliest import LIKELIEST
from tui_transformer.studio.shared.engine_thread import in_engine_thread

SLICE = 0.04  # seconds between two looks at what was written
PAUSE = 0.04  # seconds after each: a training in this process wants the interpreter too


async def pieces_of(writer: Writer, text: str, settings: Settings) -> AsyncIterator[list[AnswerToken]]:
    """What a model makes of a text: its first token at once, then what comes in each slice of time."""
    source = writer.pieces(text, settings, 0, LIKELIEST)
    seconds = 0.0
    while True:
        some, more = await in_engine_thread(lambda seconds=seconds: _some(source, seconds))  # type: ignore[misc]
        if some:
            yield some
        if not more:
            return
        if seconds:
            await asyncio.sleep(PAUSE)
        seconds = SLICE


def _some(source: Iterator[AnswerToken], seconds: float) -> tuple[list[AnswerToken], bool]:
    """At least one piece, and what else comes in so many seconds; whether there is more."""
    until, some = time.monotonic() + seconds, []
    for piece in source:
        some.append(piece)
        if time.monotonic() >= until:
            return some, True
    return some, False
