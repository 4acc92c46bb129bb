"""What a parallel corpus is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from engine.data.framing import sha256_of_texts


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
        """The hash of both sides, in order."""
        return sha256_of_texts(self.sources, self.targets)

    def at(self, places: Iterable[int]) -> "Pairs":
        """The pairs at these places."""
        places = list(places)
        return Pairs(tuple(self.sources[i] for i in places), tuple(self.targets[i] for i in places))

    def reversed(self) -> "Pairs":
        """The other direction."""
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
        """The hash of each split."""
        return {name: pairs.sha256 for name, pairs in self.splits.items()}

    def reversed(self) -> "ParallelCorpus":
        """The other direction, cut into the same splits."""
        first, second = self.languages
        splits = {name: pairs.reversed() for name, pairs in self.splits.items()}
        return replace(self, languages=(second, first), splits=splits)
