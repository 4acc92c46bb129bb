"""The splits of a text: how one is read, and where it is cut. `large.py` has those too large for memory."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.base.errors import InputError
from engine.base.language import Message
from engine.config.sections import DataConfig
from engine.data import sources
from engine.data.cache import cached_tokens
from engine.data.synthetic.grammar import GeneratedText, TextProbe
from engine.data.text_sizes import TextSizes, sizes_of_pieces

if TYPE_CHECKING:
    from engine.data.tokenizers import Tokenizer

PIECE = 1 << 22  # characters hashed at once
RECALL_NEAR = 110  # characters: learned first by small models, and always within a context of 256


class AnySplit(ABC):
    """A split of a text."""

    generated: GeneratedText | None = None  # the text with its grammar, if generated

    @abstractmethod
    def pieces(self) -> Iterator[str]:
        """Yield its text in pieces that fit into memory."""

    @abstractmethod
    def tokens(self, tokenizer: "Tokenizer") -> Any:
        """Return its (n,) token ids: an array, or a `TokenShards` of a large text, which reads like one."""

    @property
    def text(self) -> str:
        return "".join(self.pieces())

    @cached_property
    def sha256(self) -> str:
        found, whole = hashlib.sha256(), self.text
        for start in range(0, len(whole), PIECE):
            found.update(whole[start : start + PIECE].encode("utf-8", "surrogatepass"))
        return found.hexdigest()

    @property
    def length(self) -> int:
        """Its number of characters."""
        return len(self.text)

    @property
    def characters(self) -> set[str]:
        """Its distinct characters."""
        return set(self.text)

    @cached_property
    def text_sizes(self) -> TextSizes:
        return sizes_of_pieces(self.pieces())

    @cached_property
    def floor(self) -> NDArray[np.float64] | None:
        """If known: nats per character that no model beats except by luck, aligned with the text."""
        return None if self.generated is None else -self.generated.log_probability

    @cached_property
    def floor_mean(self) -> tuple[float, float] | None:
        """The mean floor and its standard error over scenes, nats per character."""
        return None if self.generated is None else self.generated.floor_mean()

    @cached_property
    def probes(self) -> tuple[TextProbe, ...]:
        """Characters whose prediction tests one dependency."""
        return () if self.generated is None else tuple(chain.from_iterable(map(_distance_bands, self.generated.probes)))

    def head(self, most: int) -> str:
        """Return its beginning: at most `most` characters."""
        found = ""
        for piece in self.pieces():
            found += piece[:most]
            if len(found) >= most:
                break
        return found[:most]

    def overlap_sample(self) -> str:
        """Return as much of it as is looked at for overlap: all, or evenly spaced stretches of a large text."""
        return self.text


@dataclass(frozen=True)
class Split(AnySplit):
    whole: str
    generated: GeneratedText | None = None

    def pieces(self) -> Iterator[str]:
        yield self.whole

    def tokens(self, tokenizer: "Tokenizer") -> Any:
        parts = partial(tokenizer.encode_parts, self.whole)
        return cached_tokens(self.length, self.sha256, tokenizer.sha256, parts, per_character=tokenizer.per_character)


def split_borders(length: int, data: DataConfig) -> tuple[int, int]:
    """Return where validation and test begin: train first, then validation, test last (nanoGPT's order)."""
    train_stop = int(length * (1.0 - data.validation_fraction - data.test_fraction))
    test_start = length - int(length * data.test_fraction)
    return train_stop, test_start


def _distance_bands(probe: TextProbe) -> list[TextProbe]:
    if probe.name != "recall":
        return [probe]
    near = probe.distance < RECALL_NEAR  # 110 characters
    return [
        replace(
            probe, name=f"recall{sign}{RECALL_NEAR}", description=what, at=probe.at[keep], distance=probe.distance[keep]
        )
        for sign, what, keep in (
            ("<", Message("who is speaking: the name in the exit line, near (under 110 characters)"), near),
            (">=", Message("who is speaking: the name in the exit line, far (110 characters or more)"), ~near),
        )
    ]


def training_files_key(files: Mapping[str, object]) -> str:
    """Return which of a source's parts has the training text."""
    return "train" if "train" in files else ""


def remaining_split_spans(length: int, data: DataConfig, official_names: Container[str]) -> dict[str, tuple[int, int]]:
    """Return where the splits of a text begin and end, except the `official` ones, which have files of their own."""
    if "validation" in official_names:
        return {"train": (0, length)}
    if "test" in official_names:
        data = data.model_copy(update={"test_fraction": 0.0})
    train_stop, test_start = split_borders(length, data)
    found = {"train": (0, train_stop), "validation": (train_stop, test_start), "test": (test_start, length)}
    return {split: (start, stop) for split, (start, stop) in found.items() if split != "test" or start < stop}


def empty_error(source: sources.Source, split: str) -> InputError:
    files = source.files[split]
    path = files[0] if len(files) == 1 else source.path
    problem = Message("corpus {path}: this file is empty; training needs at least a few thousand characters", path=path)
    return InputError(problem)
