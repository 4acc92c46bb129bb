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
from engine.data.corpus import Characters, Corpus, CorpusEntry, CorpusKind, CorpusPreview, Description, counted
from engine.data.overlap import Overlap, text_overlap
from engine.data.synthetic import playlets
from engine.data.synthetic.grammar import GeneratedText, Probe
from engine.data.text_sizes import sizes_of
from engine.errors import InputError, not_a_path, reason
from engine.language import english, tr
from engine.retelling import told

MAX_FILE_BYTES = 2 * 1024**3
PIECE = 1 << 22  # characters hashed at once
GLIMPSE = 400  # characters of a text that `data show` prints
PREVIEWED = 64_000  # characters
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
class TextCorpus(Corpus):
    """A loaded text: `train`, `validation` and perhaps `test`."""

    kind = "text"
    splits: Mapping[str, Split]

    @cached_property
    def sha256(self) -> dict[str, str]:
        return {name: split.sha256 for name, split in self.splits.items()}

    def overlaps(self) -> list[Overlap | None]:
        train = [self.splits["train"].text]
        return [text_overlap(train, part.text, split) for split, part in self.splits.items() if split != "train"]

    def described(self, licence: str) -> Description:
        from engine.data.tokenizers import CharacterTokenizer
        from engine.evaluation.baselines import bigram_loss, unigram_loss

        splits, validation = self.splits, self.splits["validation"]
        tokenizer = CharacterTokenizer.of(split.text for split in splits.values())
        train, held_out = (tokenizer.encode(splits[split].text) for split in ("train", "validation"))
        if len(train) < 2 or len(held_out) < 2:
            raise InputError(
                tr("corpus {name}: too short to be split into training and validation text", name=self.name)
            )
        overlap, overlap_lines = self.overlap_lines()
        characters = {split: len(part.text) for split, part in splits.items()}
        words = {split: sizes_of(part.text.encode(errors="surrogatepass")).words for split, part in splits.items()}
        size, floor = tokenizer.vocab_size, None if validation.floor_mean is None else validation.floor_mean[0]
        unigram, bigram = unigram_loss(train, held_out, size), bigram_loss(train, held_out, size)
        record = {"characters": characters, "words": words, "vocabulary": size}
        record |= {"unigram": unigram, "bigram": bigram, "floor": floor}
        losses = (
            tr("unigram {unigram:.3f}, bigram {bigram:.3f}", unigram=unigram, bigram=bigram)
            if floor is None
            else tr(
                "unigram {unigram:.3f}, bigram {bigram:.3f}, floor given the whole past {floor:.3f}",
                unigram=unigram,
                bigram=bigram,
                floor=floor,
            )
        )
        lines = [
            (tr("characters"), tr("{counted}; {size} distinct", counted=counted(characters), size=size)),
            (tr("words"), tr("{counted}, line ends included", counted=counted(words))),
            (tr("losses"), tr("{losses} nats per character on validation", losses=losses)),
            *overlap_lines,
            *(
                (
                    tr("probe"),
                    tr(
                        "{name}: {description} ({size:,} places)",
                        name=one.name,
                        description=told(one.description),
                        size=one.at.size,
                    ),
                )
                for one in validation.probes
            ),
        ]
        examples = ["", splits["train"].text[:GLIMPSE]]
        return Description(record | {"overlap": overlap, "sha256": self.sha256}, lines, examples)

    def preview(self, data: DataConfig, objective: str, rows: int) -> CorpusPreview:
        train, by_character = self.splits["train"].text, data.tokenizer == "characters"
        characters = Characters(len(set().union(*(split.text for split in self.splits.values()))))
        lines = train[:PREVIEWED].lstrip("\n").split("\n")[:rows]
        tokens = len(train) if by_character else None
        return CorpusPreview(self.name, lines, characters, tr("{n:,} characters", n=len(train)), tokens)


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
    near = probe.distance < RECALL_NEAR  # 110 characters
    return [
        replace(
            probe,
            name=f"recall{sign}{RECALL_NEAR}",
            description=what,
            at=probe.at[keep],
            distance=probe.distance[keep],
        )
        for sign, what, keep in (
            ("<", english("who is speaking: the name in the exit line, near (under 110 characters)"), near),
            (">=", english("who is speaking: the name in the exit line, far (110 characters or more)"), ~near),
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
                tr(
                    "data.corpus_size = {corpus_size}: too small to fill the {name} split; 20000 is enough",
                    corpus_size=data.corpus_size,
                    name=name,
                )
            )
    return TextCorpus(entry.name, generated.version, english("generated"), splits)


def load_path(data: DataConfig) -> TextCorpus:
    """Read a text file and split it."""
    try:
        path = Path(data.corpus).expanduser()
    except RuntimeError as error:  # ~nobody
        raise not_a_path(data.corpus, error) from None
    text = read_text(path)
    return TextCorpus(path.name, path.name, str(path.resolve()), split_text(text, data))


def load_splits(entry: CorpusEntry, data: DataConfig, place: Path) -> TextCorpus:
    """Read a corpus whose official splits are files of a folder: training, validation and test, in the entry's order.
    `validation_fraction` and `test_fraction` change nothing.
    """
    known = ([Path(remote.file).name for remote in entry.remotes], *entry.instead)
    names = max(known, key=lambda names: sum((place / name).is_file() for name in names))
    files = dict(zip(("train", "validation", "test"), names, strict=True))
    splits = {split: Split(read_text(place / name)) for split, name in files.items()}
    return TextCorpus(entry.name, entry.name, str(place.resolve()), splits)


def read_text(path: Path) -> str:
    """Return a text file's content, line endings as they are, without a byte-order mark."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(tr("corpus {path}: not a file; give a UTF-8 text file", path=path))
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputError(tr("corpus {path}: larger than 2 GiB; use part of it", path=path))
        raw = path.read_bytes()
    except (OSError, ValueError) as error:
        why = reason(error)
        raise InputError(tr("corpus {path}: cannot be read: {why}", path=str(path)[:200], why=why)) from None
    content = raw.removeprefix(codecs.BOM_UTF8)
    if not content or content.isspace():
        raise InputError(
            tr("corpus {path}: this file is empty; training needs at least a few thousand characters", path=path)
        )
    if b"\x00" in raw:
        raise InputError(tr("corpus {path}: not text (it contains NUL bytes); use UTF-8 text", path=path))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            tr(
                "corpus {path}: not UTF-8 at byte {start}; convert it, e.g. iconv -f latin1 -t utf-8",
                path=path,
                start=error.start,
            )
        ) from None


TEXT = CorpusKind(
    TextCorpus,
    noun=tr("corpus"),
    is_a=tr("plain text"),
    preset="demo",
    known=tr("known corpora"),
    path=tr("the path to a text file"),
    yours=tr("any UTF-8 text file"),
    signs="/\\.~",
    meanwhile=tr("playlets needs no download"),
    takes=lambda corpus: True,
    load_path=load_path,
    named={"playlets": load_playlets, "wikitext-2": load_splits, "ptb": load_splits},
)
