"""Text corpora: playlets, or files of your own (`sources.py`); `large.py` has those too large for memory."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.config.sections import DataConfig
from engine.data import sources
from engine.data.cache import record_of, tokens_of
from engine.data.corpus import (
    STEMS,
    Characters,
    Corpus,
    CorpusEntry,
    CorpusKind,
    CorpusPreview,
    Description,
    counted,
)
from engine.data.overlap import Overlap, text_overlap
from engine.data.synthetic import playlets
from engine.data.synthetic.grammar import GeneratedText, Probe
from engine.data.text_sizes import TextSizes, sizes_of_pieces
from engine.errors import InputError
from engine.language import english, tr
from engine.progress import Progress
from engine.retelling import told

if TYPE_CHECKING:
    from engine.data.tokenizers import Tokenizer

LARGE = 1 << 27  # bytes of files; a larger text is read piece by piece
OVERLAP = 2  # version of the cached overlaps
PIECE = 1 << 22  # characters hashed at once
GLIMPSE = 400  # characters of a text that `data show` prints
PREVIEWED = 64_000  # characters
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
    def sizes(self) -> TextSizes:
        return sizes_of_pieces(self.pieces())

    @cached_property
    def floor(self) -> NDArray[np.float64] | None:
        """If known: nats per character that no model beats except by luck, aligned with the text."""
        return None if self.generated is None else -self.generated.log_probability

    @cached_property
    def floor_mean(self) -> tuple[float, float] | None:
        """The mean floor and its standard error over scenes, nats per character."""
        return None if self.generated is None else self.generated.floor()

    @cached_property
    def probes(self) -> tuple[Probe, ...]:
        """Characters whose prediction tests one dependency."""
        return () if self.generated is None else tuple(chain.from_iterable(map(_bands, self.generated.probes)))

    def head(self, most: int) -> str:
        """Return its beginning: at most `most` characters."""
        found = ""
        for piece in self.pieces():
            found += piece[:most]
            if len(found) >= most:
                break
        return found[:most]

    def stretches(self) -> str:
        """Return as much of it as is looked at for overlap: all, or evenly spaced stretches of a large text."""
        return self.text


@dataclass(frozen=True)
class Split(AnySplit):
    whole: str
    generated: GeneratedText | None = None

    def pieces(self) -> Iterator[str]:
        yield self.whole

    def tokens(self, tokenizer: "Tokenizer") -> Any:
        parts = partial(tokenizer.parts, self.whole)
        return tokens_of(self.length, self.sha256, tokenizer.sha256, parts, counted=tokenizer.per_character)


@dataclass(frozen=True)
class TextCorpus(Corpus):
    """A loaded text: `train`, `validation` and perhaps `test`."""

    kind = "text"
    splits: Mapping[str, AnySplit]

    @cached_property
    def sha256(self) -> dict[str, str]:
        return {name: split.sha256 for name, split in self.splits.items()}

    def overlaps(self) -> list[Overlap | None]:
        train = self.splits["train"]
        return [overlap_of(train, part, split) for split, part in self.splits.items() if split != "train"]

    def described(self, licence: str) -> Description:
        from engine.data.tokenizers import CharacterTokenizer
        from engine.evaluation.baselines import bigram_loss, unigram_loss

        splits, validation = self.splits, self.splits["validation"]
        tokenizer = CharacterTokenizer(sorted(set[str]().union(*(split.characters for split in splits.values()))))
        train, held_out = (splits[split].tokens(tokenizer) for split in ("train", "validation"))
        if len(train) < 2 or len(held_out) < 2:
            raise InputError(
                tr("corpus {name}: too short to be split into training and validation text", name=self.name)
            )
        overlap, overlap_lines = self.overlap_lines()
        characters = {split: part.length for split, part in splits.items()}
        words = {split: part.sizes.words for split, part in splits.items()}
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
            (tr("words"), tr("{counted}, line breaks included", counted=counted(words))),
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
        examples = ["", splits["train"].head(GLIMPSE)]
        return Description(record | {"overlap": overlap, "sha256": self.sha256}, lines, examples)

    def preview(self, data: DataConfig, objective: str, rows: int) -> CorpusPreview:
        train = self.splits["train"]
        characters = Characters(len(set[str]().union(*(split.characters for split in self.splits.values()))))
        lines = train.head(PREVIEWED).lstrip("\n").split("\n")[:rows]
        tokens = train.length if data.tokenizer == "characters" else None
        return CorpusPreview(self.name, lines, characters, tr("{n:,} characters", n=train.length), tokens)


def overlap_of(train: AnySplit, held_out: AnySplit, split: str) -> Overlap | None:
    """Return how much of a held-out text is also in a training text; cached if finding out takes long."""

    def pieces() -> Iterator[str]:
        progress, done = Progress(tr("looking for held-out text in the training text"), train.length), 0
        for piece in train.pieces():
            yield piece
            done += len(piece)
            progress.at(done)

    def found() -> dict[str, Any]:
        generated = train.generated is not None
        overlap = text_overlap(pieces(), held_out.stretches(), split, held_out.pieces(), generated=generated)
        return {} if overlap is None else asdict(overlap)

    made_by = (OVERLAP, train.sha256, held_out.sha256, split)
    kept = found() if train.length < LARGE else record_of("overlap", made_by, found)
    return Overlap(**kept) if kept else None


def _fractions(length: int, data: DataConfig) -> tuple[int, int]:
    """Return where validation and test begin: train first, then validation, test last (nanoGPT's order)."""
    train_stop = int(length * (1.0 - data.validation_fraction - data.test_fraction))
    test_start = length - int(length * data.test_fraction)
    return train_stop, test_start


def split_text(text: str, data: DataConfig) -> dict[str, Split]:
    return {split: Split(text[start:stop]) for split, (start, stop) in cuts(len(text), data, ()).items()}


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
            splits[name] = Split(part.text, part)
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
    """Read a text by path; see `sources.py`."""
    source = sources.find(data.corpus)
    name = source.path.name or str(source.path)
    return read_source(source, data, name, name, str(source.path.resolve()))


def read_source(source: sources.Source, data: DataConfig, name: str, version: str, origin: str) -> TextCorpus:
    """Read a text and split it, unless its files are splits; a large one is only scanned."""
    if source.bytes > LARGE:
        from engine.data.large import large_splits

        return TextCorpus(name, version, origin, large_splits(source, data))
    texts = {split: "".join(source.pieces(split)) for split in source.files}
    for split, text in texts.items():
        if not text or text.isspace():
            raise empty(source, split)
    rest, found = first_of(texts), {}
    for split, (start, stop) in cuts(len(texts[rest]), data, texts).items():
        found[split] = Split(texts[rest][start:stop])
    found |= {split: Split(text) for split, text in texts.items() if split != rest}
    return TextCorpus(name, version, origin, {split: found[split] for split in STEMS if split in found})


def first_of(files: Mapping[str, object]) -> str:
    """Return which of a source's parts has the training text."""
    return "train" if "train" in files else ""


def cuts(length: int, data: DataConfig, official: Container[str]) -> dict[str, tuple[int, int]]:
    """Return where the splits of a text begin and end, except the `official` ones, which have files of their own."""
    if "validation" in official:
        return {"train": (0, length)}
    if "test" in official:
        data = data.model_copy(update={"test_fraction": 0.0})
    train_stop, test_start = _fractions(length, data)
    found = {"train": (0, train_stop), "validation": (train_stop, test_start), "test": (test_start, length)}
    return {split: (start, stop) for split, (start, stop) in found.items() if split != "test" or start < stop}


def empty(source: sources.Source, split: str) -> InputError:
    files = source.files[split]
    path = files[0] if len(files) == 1 else source.path
    return InputError(
        tr("corpus {path}: this file is empty; training needs at least a few thousand characters", path=path)
    )


def load_splits(entry: CorpusEntry, data: DataConfig, place: Path) -> TextCorpus:
    """Read a corpus whose official splits are files of a folder: training, validation and test, in the entry's order.
    `validation_fraction` and `test_fraction` change nothing.
    """
    known = ([Path(remote.file).name for remote in entry.remotes], *entry.instead)
    names = max(known, key=lambda names: sum((place / name).is_file() for name in names))
    files = {split: sources.find(str(place / name)).files[""] for split, name in zip(STEMS, names, strict=True)}
    source = sources.Source(place, None, files, by_document=False)
    return read_source(source, data, entry.name, entry.name, str(place.resolve()))


TEXT = CorpusKind(
    TextCorpus,
    noun=tr("corpus"),
    is_a=tr("plain text"),
    preset="demo",
    known=tr("known corpora"),
    path=tr("the path to a text file"),
    yours=tr("any UTF-8 text file, .jsonl, .csv or .parquet files, folders of them, or hf:OWNER/NAME"),
    signs="/\\.~:",
    meanwhile=tr("playlets needs no download"),
    takes=lambda corpus: True,
    load_path=load_path,
    named={"playlets": load_playlets, "wikitext-2": load_splits, "ptb": load_splits},
    portable=sources.absolute,
)
