"""Text corpora: playlets, or any UTF-8 file."""

import codecs
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.config.sections import DataConfig
from engine.data.entry import CorpusEntry
from engine.data.synthetic import playlets
from engine.data.synthetic.grammar import GeneratedText, Probe
from engine.errors import InputError, not_a_path

MAX_FILE_BYTES = 2 * 1024**3
PIECE = 1 << 22  # characters hashed at once
RECALL_NEAR = 110  # characters: learned first by small models, and always within a context of 256


@dataclass(frozen=True)
class Split:
    text: str  # its characters
    # If known: nats per character that no model beats except by luck, aligned with the text
    floor: NDArray[np.float64] | None = None
    probes: tuple[Probe, ...] = ()  # characters whose prediction tests one dependency
    # The mean floor and its standard error over scenes, nats per character
    floor_mean: tuple[float, float] | None = None
    generated: GeneratedText | None = None  # the text with its grammar, if generated

    @cached_property
    def sha256(self) -> str:
        found = hashlib.sha256()
        for start in range(0, len(self.text), PIECE):
            found.update(self.text[start : start + PIECE].encode("utf-8", "surrogatepass"))
        return found.hexdigest()


@dataclass(frozen=True)
class TextCorpus:
    """A loaded corpus: `train`, `validation` and perhaps `test`."""

    name: str
    version: str
    source: str
    splits: Mapping[str, Split]

    @cached_property
    def sha256(self) -> dict[str, str]:
        return {name: split.sha256 for name, split in self.splits.items()}


def _fractions(length: int, data: DataConfig) -> tuple[int, int]:
    """Return where validation and test begin: train first, then validation, test last (nanoGPT's order)."""
    train_stop = int(length * (1.0 - data.validation_fraction - data.test_fraction))
    test_start = length - int(length * data.test_fraction)
    return train_stop, test_start


def split_text(text: str, data: DataConfig) -> dict[str, Split]:
    train_stop, test_start = _fractions(len(text), data)
    splits = {"train": Split(text[:train_stop]), "validation": Split(text[train_stop:test_start])}
    if test_start < len(text):
        splits["test"] = Split(text[test_start:])
    return splits


def _bands(probe: Probe) -> list[Probe]:
    if probe.name != "recall":
        return [probe]
    near = probe.distance < RECALL_NEAR
    return [
        replace(
            probe,
            name=f"recall{sign}{RECALL_NEAR}",
            description=f"{probe.description}, {reach}",
            at=probe.at[keep],
            distance=probe.distance[keep],
        )
        for sign, reach, keep in (
            ("<", f"near (under {RECALL_NEAR} characters)", near),
            (">=", f"far ({RECALL_NEAR} characters or more)", ~near),
        )
    ]


def load_playlets(entry: CorpusEntry, data: DataConfig, place: None) -> TextCorpus:
    generated = playlets.generate(data.corpus_seed, data.corpus_size or playlets.DEFAULT_SIZE)
    # Cut between scenes, which do not depend on each other.
    cuts = [int(np.searchsorted(generated.units, offset)) for offset in _fractions(len(generated.text), data)]
    borders = [0, *cuts, len(generated.units)]
    splits = {}
    for name, (start, stop) in zip(("train", "validation", "test"), pairwise(borders), strict=True):
        if start < stop:
            part = generated.cut(start, stop)
            probes = tuple(band for probe in part.probes for band in _bands(probe))
            splits[name] = Split(part.text, -part.log_probability, probes, part.floor(), part)
        elif name != "test":
            raise InputError(
                f"data.corpus_size = {data.corpus_size}: too small to fill the {name} split; 20000 is enough"
            )
    return TextCorpus(entry.name, generated.version, "generated", splits)


def load_file(entry: CorpusEntry, data: DataConfig, place: Path) -> TextCorpus:
    return TextCorpus(entry.name, entry.name, str(place.resolve()), split_text(read_text(place), data))


def load_path(data: DataConfig) -> TextCorpus:
    try:
        path = Path(data.corpus).expanduser()
    except RuntimeError as error:  # ~nobody
        raise not_a_path(data.corpus, error) from None
    text = read_text(path)
    return TextCorpus(path.name, path.name, str(path.resolve()), split_text(text, data))


def read_text(path: Path) -> str:
    """Read a text file, line endings as they are, without a byte-order mark."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"corpus {path}: is not a file; name a UTF-8 text file")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"corpus {path}: larger than 2 GiB; cut a part of it")
        raw = path.read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"corpus {str(path)[:200]}: cannot be read: {why}") from None
    content = raw.removeprefix(codecs.BOM_UTF8)
    if not content or content.isspace():
        raise InputError(f"corpus {path}: is empty; a few thousand characters is the least that teaches anything")
    if b"\x00" in raw:
        raise InputError(f"corpus {path}: is not text (it contains zero bytes); UTF-8 text is needed")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"corpus {path}: not UTF-8 at byte {error.start}; convert it, e.g. iconv -f latin1 -t utf-8"
        ) from None
