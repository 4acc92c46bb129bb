"""Phrasebook: a parallel corpus, English to German, from a grammar with real agreement."""

from engine.data.synthetic.phrasebook.corpus import (
    DEFAULT_SIZE,
    PHRASE_REPEATS,
    VERSION,
    Pair,
    Phrasebook,
    generate,
)

__all__ = ["DEFAULT_SIZE", "PHRASE_REPEATS", "VERSION", "Pair", "Phrasebook", "generate"]
