"""Splits of a text too large to be read at once. No torch here.

The text is scanned twice when it is first seen: once to count its characters, and once to hash its splits and note
which characters they have. The results are cached under the sizes and times of its files.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

import numpy as np

from engine.base.language import tr
from engine.base.progress import Progress
from engine.config.sections import DataConfig
from engine.data.cache import cached_record
from engine.data.overlap import MAX_SAMPLE_BYTES
from engine.data.shards import PART, TokenShards, token_shards
from engine.data.sources import Source
from engine.data.splits import AnySplit, empty_error, remaining_split_spans, training_files_key
from engine.data.text_files import Findings, Reading
from engine.data.text_sizes import TextSizes, sizes_of_pieces
from engine.data.tokenizers.protocol import Tokenizer

VERSION, SIZES = 2, 2  # of what is kept
SAMPLED_LENGTH = 4 * MAX_SAMPLE_BYTES  # characters that are looked at for overlap


class LargeSplit(AnySplit):
    """Characters `start` to `stop` of one part of a source."""

    def __init__(self, source: Source, part: str, start: int, stop: int, sha256: str, characters: str) -> None:
        self.source, self.part, self.start, self.stop = source, part, start, stop
        self._sha256, self._characters = sha256, characters

    @cached_property
    def sha256(self) -> str:
        return self._sha256

    @property
    def length(self) -> int:
        return self.stop - self.start

    @property
    def characters(self) -> set[str]:
        return set(self._characters)

    @cached_property
    def text_sizes(self) -> TextSizes:
        def counted() -> dict[str, int]:
            progress, done = Progress(tr("counting the words in {name}", name=self.source.path.name), self.length), 0

            def windows() -> Iterator[str]:
                nonlocal done
                for window in _rechunk(self.pieces()):
                    yield window
                    done += len(window)
                    progress.update(done)

            return sizes_of_pieces(windows())._asdict()

        return TextSizes(**cached_record("sizes", (SIZES, self.sha256), counted))

    def pieces(self, start: int = 0) -> Iterator[str]:
        at, begin = 0, self.start + start
        for piece in self.source.pieces(self.part):
            inside = piece[max(0, begin - at) : max(0, self.stop - at)]
            at += len(piece)
            if inside:
                yield inside
            if at >= self.stop:
                return

    def tokens(self, tokenizer: Tokenizer) -> TokenShards:
        return token_shards(self, tokenizer, self.source.path.name)

    def overlap_sample(self) -> str:
        share = SAMPLED_LENGTH / max(1, self.length)
        return "".join(window[: -int(-len(window) * min(1.0, share))] for window in _rechunk(self.pieces()))


def large_splits(source: Source, data: DataConfig) -> tuple[dict[str, LargeSplit], Reading]:
    """Return the splits of a source, and how it was read."""
    fractions = (data.validation_fraction, data.test_fraction)
    known = cached_record("texts", (VERSION, source.fingerprint, fractions), lambda: _scan(source, data))
    splits = {split: LargeSplit(source, **facts) for split, facts in known["splits"].items()}
    return splits, replace(source.reading, findings=Findings(**known["findings"]))


def distinct_characters(text: str) -> set[str]:
    """Return the distinct characters of a text; faster than `set` if all are ASCII."""
    if not text.isascii():
        return set(text)
    counts = np.bincount(np.frombuffer(text.encode(), dtype=np.uint8), minlength=128)
    return {chr(code) for code in np.flatnonzero(counts).tolist()}


def _scan(source: Source, data: DataConfig) -> dict[str, Any]:
    counted = replace(source, reading=replace(source.reading, findings=Findings()))
    lengths = _count_characters(counted)
    progress, done = Progress(tr("scanning {name}", name=source.path.name), sum(lengths.values())), 0
    rest = training_files_key(source.files)
    found: dict[str, dict[str, Any]] = {}
    for part, length in lengths.items():
        spans = remaining_split_spans(length, data, source.files) if part == rest else {part: (0, length)}
        hashes = {split: hashlib.sha256() for split in spans}
        seen: dict[str, set[str]] = {split: set() for split in spans}
        at = 0
        for window in _rechunk(source.pieces(part)):
            for split, (start, stop) in spans.items():
                inside = window[max(0, start - at) : max(0, stop - at)]
                if inside:
                    hashes[split].update(inside.encode("utf-8", "surrogatepass"))
                    seen[split] |= distinct_characters(inside)
            at += len(window)
            done += len(window)
            progress.update(done)
        for split, (start, stop) in spans.items():
            characters = "".join(sorted(seen[split]))
            spot = {"part": part, "start": start, "stop": stop}
            found[split] = spot | {"sha256": hashes[split].hexdigest(), "characters": characters}
    splits = {split: found[split] for split in ("train", "validation", "test") if split in found}
    return {"splits": splits, "findings": asdict(counted.reading.findings)}


def _count_characters(source: Source) -> dict[str, int]:
    """Return the number of characters of each part."""
    progress = Progress(tr("counting the characters in {name}", name=source.path.name), source.approximate_bytes)
    found, done = dict[str, int](), 0
    for part in source.files:
        length, blank = 0, True
        for window in _rechunk(source.pieces(part)):
            blank = blank and window.isspace()
            length += len(window)
            done += len(window) if window.isascii() else len(window.encode("utf-8", "surrogatepass"))
            progress.update(done)
        if blank:
            raise empty_error(source, part)
        found[part] = length
    return found


def _rechunk(pieces: Iterable[str]) -> Iterator[str]:
    """Yield a text in windows of about a million characters, whatever its pieces."""
    held: list[str] = []
    length = 0
    for piece in pieces:
        held.append(piece)
        length += len(piece)
        if length >= PART:
            yield "".join(held)
            held, length = [], 0
    if held:
        yield "".join(held)
