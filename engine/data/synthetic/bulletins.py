"""Bulletins: news items of two or three sentences from a grammar, whose class follows from known rules.

Each sentence is drawn by itself: mostly of the item's own kind, sometimes colour that fits any, sometimes of another
class. So how likely each class is, given a text, is known exactly, and with it the accuracy of the best reader. A
result (the favourite won) and an upset (the outsider won) have the same words equally often: only their order tells
them apart, and the accuracy of the best reader of words without their order is known too.

Every sentence has a headline, and the headline of an item is that of its first sentence that is not colour, or of the
first one if all are: so each item has exactly one right headline.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from pathlib import Path

from engine.data.synthetic.draws import Draws, Weighted

VERSION, HEADLINES_VERSION = "bulletins@1", "headlines@1"
TEXTS = 20_000  # if `data.corpus_size` is not set
_TABLES = tomllib.loads(Path(__file__).with_name("bulletins.toml").read_text(encoding="utf-8"))
SENTENCES: Mapping[str, Sequence[str]] = _TABLES["sentences"]
HEADLINES: Mapping[str, Sequence[str]] = _TABLES["headlines"]  # of the sentences, in their order
WORDS: Mapping[str, Sequence[str]] = {name: tuple(words.split("|")) for name, words in _TABLES["words"].items()}

CLASSES: Mapping[str, float] = {"weather": 0.2, "markets": 0.2, "politics": 0.15, "result": 0.25, "upset": 0.2}
ORDER_ONLY_CLASSES = ("result", "upset")  # told apart by the order of words alone
COLOUR = "colour"
KINDS = (*CLASSES, COLOUR)  # of sentences
OWN_SHARE, COLOUR_SHARE = 0.7, 0.2  # shares of an item's sentences that are of its own kind, and colour
LENGTHS = (2, 3)  # sentences, equally often


@dataclass(frozen=True)
class Item:
    text: str
    label: str  # its class
    kinds: tuple[str, ...]  # of its sentences
    headline: str


def kind_probability(kind: str, label: str) -> float:
    """Return the probability that a sentence of an item of this class is of this kind."""
    if kind == COLOUR:
        return COLOUR_SHARE
    return OWN_SHARE if kind == label else (1.0 - OWN_SHARE - COLOUR_SHARE) / (len(CLASSES) - 1)


def joint_probabilities(kinds: Sequence[str], *, ordered: bool = True) -> dict[str, float]:
    """Return the probability of each class together with sentences of these kinds. Unless `ordered`, a sentence on a
    match may be either.
    """

    def seen(kind: str, label: str) -> float:
        if not ordered and kind in ORDER_ONLY_CLASSES:
            return sum(kind_probability(one, label) for one in ORDER_ONLY_CLASSES)
        return kind_probability(kind, label)

    return {label: prior * prod(seen(kind, label) for kind in kinds) for label, prior in CLASSES.items()}


def likeliest_class(kinds: Sequence[str], *, ordered: bool = True) -> str:
    """Return the likeliest class given the kinds of an item's sentences; of equally likely ones, the first."""
    found = joint_probabilities(kinds, ordered=ordered)
    return max(found, key=lambda label: found[label])


@cache
def best_accuracy(*, ordered: bool = True) -> float:
    """Return the accuracy of the best reader over all texts: the largest that any can have. Unless `ordered`, of the
    best one that does not see the order of words.
    """
    return sum(
        joint_probabilities(kinds)[likeliest_class(kinds, ordered=ordered)] / len(LENGTHS)
        for length in LENGTHS
        for kinds in product(KINDS, repeat=length)
    )


def generate(seed: int, texts: int) -> list[Item]:
    draws, items = Draws(seed), []
    labels = Weighted(*CLASSES.items())
    mixtures = {label: Weighted(*((kind, kind_probability(kind, label)) for kind in KINDS)) for label in CLASSES}
    for _ in range(texts):
        label = draws.pick_weighted(labels)
        kinds = tuple(draws.pick_weighted(mixtures[label]) for _ in range(draws.pick(LENGTHS)))
        sentences = [_draw_sentence(draws, kind) for kind in kinds]
        told = next((i for i, kind in enumerate(kinds) if kind != COLOUR), 0)
        items.append(Item(" ".join(text for text, _ in sentences), label, kinds, sentences[told][1]))
    return items


def _draw_sentence(draws: Draws, kind: str) -> tuple[str, str]:
    """Return a sentence and its headline."""
    words = {name: draws.pick(options) for name, options in WORDS.items()}
    sides = [words["favourite"], words["outsider"]]
    words["winner"], words["loser"] = reversed(sides) if kind == "upset" else sides
    words["beat"] = "stun" if kind == "upset" else "beat"
    words |= {name.capitalize(): words[name].capitalize() for name in ("sky", "people", "region", "goods", "office")}
    group = "match" if kind in ORDER_ONLY_CLASSES else kind
    which = draws.pick(range(len(SENTENCES[group])))
    return SENTENCES[group][which].format(**words), HEADLINES[group][which].format(**words)
