"""What a parallel corpus is, and how it is cut so that no sentence is on two sides of a cut.

Many corpora hold a sentence several times, with other translations. Cut at random, the test then asks for what training
has shown. So pairs that share a source or a target stay together, and groups are put in order by the hash of their
text: neither the order of the file nor a new line at its end moves the others.
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

    def __post_init__(self) -> None:
        if len(self.sources) != len(self.targets):
            raise ValueError(f"{len(self.sources)} sources and {len(self.targets)} targets are no pairs")

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
    """A loaded corpus: `train`, `validation` and perhaps `test`.

    Args:
        name: as it is asked for, or the file's name.
        version: changes where the same name means other sentences.
        source: where it came from.
        languages: of the sources and of the targets; `("source", "target")` where nothing says.
        splits: their pairs.
        examples: sources of training pairs that are worth trying.
        notes: what a reader of the data should know, such as how many pairs were left out and why.
    """

    name: str
    version: str
    source: str
    languages: tuple[str, str]
    splits: Mapping[str, Pairs]
    notes: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    @property
    def sha256(self) -> dict[str, str]:
        return {name: pairs.sha256 for name, pairs in self.splits.items()}

    def reversed(self) -> "ParallelCorpus":
        first, second = self.languages
        splits = {name: pairs.reversed() for name, pairs in self.splits.items()}
        return replace(self, languages=(second, first), splits=splits)


def folded(sentence: str) -> str:
    """Return a sentence as it is compared: without case, and with single spaces."""
    return " ".join(sentence.casefold().split())


def grouped_split(pairs: Pairs, validation: int, test: int, where: str) -> dict[str, Pairs]:
    """Return training, validation and perhaps test pairs that share no sentence on any side, each in the file's order.

    Args:
        pairs: all of them.
        validation: pairs of validation, 0 for none; fewer only if no group is small enough to fill it.
        test: pairs of test, likewise.
        where: what an error calls the corpus.

    Raises:
        InputError: too few pairs, or too many that hang together, to fill every split.
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
    """Return the places of pairs that hang together through shared sentences, by the smallest hash of their sources."""
    parents: dict[Hashable, Hashable] = {}

    def root(key: Hashable) -> Hashable:
        top = key
        while (above := parents.setdefault(top, top)) != top:
            top = above
        while key != top:  # so that the next one is found in a step
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
