"""Grammars as random draws: one definition both generates texts and gives their exact probabilities.

A grammar is an ordinary function that repeatedly asks a `GrammarWriter` to `draw` from a `Choice`: the writer draws at
random and spells the result. Two rules make the probability of every character exact:

* the literals of a choice are prefix-free, so the text alone says which one was drawn;
* a draw leaves no trace but its literal (no hidden state), so a text has one derivation only.

While a literal is being spelled, p(next character | whole past) is then the weight of the literals that
survive that character, divided by the weight of those that survived until then.

This module is independent of any particular grammar.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from engine.data.synthetic.draws import Draws, Weighted

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TextProbe:
    """Places in a text where a character follows with certainty from something further back.

    A prediction at `at` is right when its most probable character is `text[at]`.
    """

    name: str  # short name, as in records
    description: str  # one line: what must be remembered
    chance: float  # accuracy of always guessing the most frequent character there
    shortcut: float  # best possible accuracy without the information
    # Borders of the distance ranges that it is also scored by; the same for every text
    edges: tuple[int, ...] = ()
    family: str = ""  # the probe that this one is part of; "" if none
    # Filled in by a text: offsets into it, in characters; for each, characters between it and the information needed
    at: Offsets = field(default_factory=lambda: np.empty(0, np.int64))
    distance: Offsets = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class GeneratedText:
    """A text of independent units, with the exact probability of each of its characters."""

    version: str  # name of the grammar and its version; the same version and seed give the same text
    text: str  # the characters
    # One number per character, nats: log p(character | whole past), never above 0
    log_probability: npt.NDArray[np.float64]
    units: Offsets  # offset of each unit's first character. Units are independent: cut the text only there
    probes: tuple[TextProbe, ...]  # where memory is tested

    def cut(self, start_unit: int, stop_unit: int) -> "GeneratedText":
        """Return units `start_unit` up to, but excluding, `stop_unit` as a text, offsets shifted."""
        if not 0 <= start_unit <= stop_unit <= len(self.units):
            raise ValueError(f"cannot cut units {start_unit} to {stop_unit}: there are {len(self.units)}")
        borders = [*self.units.tolist(), len(self.text)]
        start, stop = borders[start_unit], borders[stop_unit]
        return GeneratedText(
            version=self.version,
            text=self.text[start:stop],
            log_probability=self.log_probability[start:stop],
            units=self.units[start_unit:stop_unit] - start,
            probes=tuple(
                replace(probe, at=probe.at[inside] - start, distance=probe.distance[inside])
                for probe in self.probes
                for inside in ((probe.at >= start) & (probe.at < stop),)
            ),
        )

    def floor_mean(self) -> tuple[float, float]:
        """Return the loss of a perfect model on this text and its standard error, nats per character."""
        return self.clustered_mean(-self.log_probability)

    def clustered_mean(self, nats: npt.NDArray[np.float64]) -> tuple[float, float]:
        """Return the mean of (n,) nats (nan: not counted) and its standard error, clustered by unit: only units are
        independent.
        """
        sums = np.add.reduceat(np.nan_to_num(nats), self.units)
        counted = np.add.reduceat(np.isfinite(nats).astype(np.float64), self.units)
        mean = sums.sum() / counted.sum()
        n = len(sums)
        spread = float(np.square(sums - mean * counted).sum())
        error = math.sqrt(spread * n / (n - 1)) / counted.sum() if n > 1 else math.inf
        return float(mean), float(error)


class Choice(Weighted[str]):
    """Literals to draw one from: non-empty, prefix-free, each with a positive weight."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        if not weights or "" in weights or min(weights.values()) <= 0:
            raise ValueError(f"a choice needs non-empty literals with positive weights, not {dict(weights)}")
        for shorter, longer in pairwise(sorted(weights)):  # a prefix sorts just before the literal it begins
            if longer.startswith(shorter):
                raise ValueError(f"not prefix-free: {shorter!r} begins {longer!r}")
        super().__init__(*weights.items())
        self.weights = dict(weights)
        self.total = self._surviving("")  # rounded once, like every share of it
        # Literal → log p of each of its characters given the ones before it, nats.
        self.log_probabilities: dict[str, tuple[float, ...]] = {}
        for literal in weights:
            surviving = [self._surviving(literal[:n]) for n in range(len(literal) + 1)]
            self.log_probabilities[literal] = tuple(math.log(after / before) for before, after in pairwise(surviving))

    def _surviving(self, prefix: str) -> float:
        return math.fsum(weight for literal, weight in self.weights.items() if literal.startswith(prefix))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """A regular expression that matches the one literal with which a text continues."""
        return re.compile("|".join(map(re.escape, self.options)))

    def next_characters(self, typed: str) -> dict[str, float]:
        """Return the probability of each character that can follow once `typed` has been spelled."""
        surviving = self._surviving(typed)
        next_ones = {literal[len(typed)] for literal in self.options if literal.startswith(typed)}
        return {character: self._surviving(typed + character) / surviving for character in sorted(next_ones)}


class GrammarWriter:
    """Derives a text from random numbers, and records its probabilities, unit borders and probes."""

    def __init__(self, seed: int) -> None:
        self._draws = Draws(seed)
        self.position = 0  # offset of the next character
        self.pieces: list[str] = []
        self.log_probability: list[float] = []
        self.units: list[int] = []
        self.probe_records: dict[str, list[tuple[int, int]]] = {}

    def draw(self, choice: Choice) -> str:
        literal = self._draws.pick_weighted(choice)
        self._advance(literal, choice.log_probabilities[literal])
        return literal

    def write_certain(self, literal: str) -> None:
        """Continue with `literal`, which follows with certainty."""
        self._advance(literal, (0.0,) * len(literal))

    def record_probe(self, name: str, at: int, source: int) -> None:
        """Record that the character at offset `at` follows from the text at offset `source`."""
        self.probe_records.setdefault(name, []).append((at, at - source))

    def _advance(self, literal: str, log_probabilities: Sequence[float]) -> None:
        self.pieces.append(literal)
        self.log_probability += log_probabilities
        self.position += len(literal)

    def finish(self, version: str, probes: Sequence[TextProbe]) -> GeneratedText:
        found = []
        for probe in probes:
            noted = np.array(self.probe_records.get(probe.name, []), dtype=np.int64).reshape(-1, 2)
            at, distance = np.ascontiguousarray(noted.T)
            found.append(replace(probe, at=at, distance=distance, family=probe.name))
        units = np.array(self.units, dtype=np.int64)
        return GeneratedText(version, "".join(self.pieces), np.array(self.log_probability), units, tuple(found))


def generate_text(
    version: str, unit: Callable[[GrammarWriter], None], probes: Sequence[TextProbe], seed: int, n_characters: int
) -> GeneratedText:
    """Write whole units, each derived by `unit`, until there are at least `n_characters` characters."""
    writer = GrammarWriter(seed)
    while writer.position < n_characters:
        writer.units.append(writer.position)
        unit(writer)
    return writer.finish(version, probes)
