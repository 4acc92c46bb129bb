"""Cutting pairs into training, validation and test so that no sentence is on two sides of a cut.

Many corpora hold a sentence several times, with other translations. Cut at random, the test then asks for what training
has shown. So pairs that share a source or a target stay together, and groups are put in order by the hash of their
text: neither the order of the file nor a new line at its end moves the others.
"""

import hashlib
from collections.abc import Hashable

from engine.data.parallel.pairs import Pairs
from engine.errors import InputError


def folded(sentence: str) -> str:
    """A sentence as it is compared: without case, and with single spaces."""
    return " ".join(sentence.casefold().split())


def grouped_split(pairs: Pairs, validation: int, test: int, where: str) -> dict[str, Pairs]:
    """Training, validation and perhaps test pairs that share no sentence on either side, each in the file's order.

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
    """The places of pairs that hang together through shared sentences, by the smallest hash of their sources."""
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
