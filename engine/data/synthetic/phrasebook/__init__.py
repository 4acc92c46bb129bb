"""Phrasebook: a parallel corpus, English to German, from a grammar with real agreement."""

from engine.data.synthetic.phrasebook.baseline import nearest_neighbour_baseline
from engine.data.synthetic.phrasebook.corpus import DEFAULT_SIZE, VERSION, Pair, Phrasebook, generate
from engine.data.synthetic.phrasebook.everyday import PHRASE_REPEATS

__all__ = [
    "DEFAULT_SIZE",
    "PHRASE_REPEATS",
    "VERSION",
    "Pair",
    "Phrasebook",
    "generate",
    "nearest_neighbour_baseline",
]
