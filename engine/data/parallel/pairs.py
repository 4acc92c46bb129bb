"""A parallel corpus, and how to split it so that no sentence is in two splits.

Many corpora repeat a sentence with other translations, so a random split tests on what training has shown. So pairs
that share a source or a target stay together, and groups are ordered by the hash of their text: neither reordering the
file nor appending to it moves the others.
"""

import hashlib
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from engine.data.framing import sha256_of_texts
from engine.errors import InputError


@dataclass(frozen=True)
class Pairs:
    """Sentences with their translations: `targets[i]` translates `sources[i]`."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.sources)

    @cached_property
    def sha256(self) -> str:
        return sha256_of_texts(self.sources, self.targets)

    def at(self, places: Iterable[int]) -> "Pairs":
        places = list(places)
        return Pairs(tuple(self.sources[i] for i in places), tuple(self.targets[i] for i in places))

    def reversed(self) -> "Pairs":
        return Pairs(self.targets, self.sources)


@dataclass(frozen=True)
class ParallelCorpus:
    """A loaded corpus: `train`, `validation` and perhaps `test`."""

    name: str  # the registered name, or the file's
    version: str  # changes when the name means other sentences
    source: str  # where it came from
    languages: tuple[str, str]  # of sources and targets; `("source", "target")` if unknown
    splits: Mapping[str, Pairs]  # their pairs
    notes: tuple[str, ...] = ()  # notes for users of the data, such as how many pairs were dropped and why
    examples: tuple[str, ...] = ()  # sources of training pairs worth trying

    @property
    def sha256(self) -> dict[str, str]:
        return {name: pairs.sha256 for name, pairs in self.splits.items()}

    def reversed(self) -> "ParallelCorpus":
        first, second = self.languages
        splits = {name: pairs.reversed() for name, pairs in self.splits.items()}
        return replace(self, languages=(second, first), splits=splits)


def folded(sentence: str) -> str:
    """Return a sentence for comparison: without case, and with single spaces."""
    return " ".join(sentence.casefold().split())


def grouped_split(pairs: Pairs, validation: int, test: int, where: str) -> dict[str, Pairs]:
    """Return training, validation and perhaps test pairs that share no sentence on either side, in file order.
    `validation` and `test` are numbers of pairs, 0 for none; fewer only if no group is small enough to fit.
    """
    groups = _groups(pairs)
    wanted = {"test": test, "validation": validation}
    taken: dict[str, list[int]] = {name: [] for name, size in wanted.items() if size > 0}
    rest: list[int] = []
    for group in groups:
        for name, places in taken.items():
            if len(places) + len(group) <= wanted[name]:
                places.extend(group)
                break
        else:
            rest.extend(group)
    taken["train"] = rest
    for name, places in taken.items():
        if not places:
            raise InputError(
                f"{where}: its {len(pairs):,} pairs are {len(groups):,} groups that share no sentence, which leaves "
                f"nothing for {name}; use more pairs, or files of their own for each split"
            )
    return {name: pairs.at(sorted(taken[name])) for name in ("train", "validation", "test") if name in taken}


def _groups(pairs: Pairs) -> list[list[int]]:
    """Return the indices of pairs linked by shared sentences, in groups by the smallest hash of their sources."""
    parents: dict[Hashable, Hashable] = {}

    def root(key: Hashable) -> Hashable:
        top = key
        while (above := parents.setdefault(top, top)) != top:
            top = above
        while key != top:  # path compression: the next lookup takes one step
            parents[key], key = top, parents[key]
        return top

    keys = [(0, folded(source)) for source in pairs.sources]
    for key, target in zip(keys, pairs.targets, strict=True):
        parents[root(key)] = root((1, folded(target)))
    members: dict[Hashable, list[int]] = {}
    order: dict[Hashable, bytes] = {}
    for place, key in enumerate(keys):
        top = root(key)
        members.setdefault(top, []).append(place)
        drawn = hashlib.sha256(key[1].encode("utf-8", "surrogatepass")).digest()
        order[top] = min(order.get(top, drawn), drawn)
    return [members[top] for top in sorted(members, key=order.__getitem__)]
