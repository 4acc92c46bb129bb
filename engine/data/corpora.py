"""Text corpora: playlets, or files of your own (`sources.py`); `large.py` has those too large for memory."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.base.progress import Progress
from engine.config.sections import DataConfig
from engine.data import sources
from engine.data.cache import cached_record
from engine.data.corpus import (
    SPLIT_ALIASES,
    Corpus,
    CorpusEntry,
    CorpusKind,
    CorpusPreview,
    Description,
    VocabularySizes,
    format_counts,
)
from engine.data.large import large_splits
from engine.data.overlap import Overlap, text_overlap
from engine.data.splits import AnySplit, Split, empty_error, remaining_split_spans, split_borders, training_files_key
from engine.data.synthetic import playlets
from engine.data.text_files import LATEST, Reading

LARGE = 1 << 27  # bytes of files; a larger text is read piece by piece
OVERLAP = 2  # version of the cached overlaps
EXCERPT_LENGTH = 400  # characters of a text that `data show` prints
PREVIEW_LENGTH = 64_000  # characters


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
        return [cached_text_overlap(train, part, split) for split, part in self.splits.items() if split != "train"]

    def describe(self, licence: str) -> Description:
        from engine.data.baselines import bigram_loss, unigram_loss
        from engine.data.tokenizers import CharacterTokenizer

        splits, validation = self.splits, self.splits["validation"]
        tokenizer = CharacterTokenizer(sorted(set[str]().union(*(split.characters for split in splits.values()))))
        train, held_out = (splits[split].tokens(tokenizer) for split in ("train", "validation"))
        if len(train) < 2 or len(held_out) < 2:
            problem = Message("corpus {name}: too short to be split into training and validation text", name=self.name)
            raise InputError(problem)
        overlap, overlap_lines = self.overlap_report()
        characters = {split: part.length for split, part in splits.items()}
        words = {split: part.text_sizes.words for split, part in splits.items()}
        size, floor = tokenizer.vocab_size, None if validation.floor_mean is None else validation.floor_mean[0]
        unigram, bigram = unigram_loss(train, held_out, size), bigram_loss(train, held_out, size)
        record = {"characters": characters, "words": words, "vocabulary": size}
        record |= {"unigram": unigram, "bigram": bigram, "floor": floor}
        losses = tr("unigram {unigram:.3f}, bigram {bigram:.3f}", unigram=unigram, bigram=bigram)
        if floor is not None:
            losses = tr(
                "unigram {unigram:.3f}, bigram {bigram:.3f}, floor given the whole past {floor:.3f}",
                unigram=unigram,
                bigram=bigram,
                floor=floor,
            )
        lines = [
            (tr("characters"), tr("{counted}; {size} distinct", counted=format_counts(characters), size=size)),
            (tr("words"), tr("{counted}, line breaks included", counted=format_counts(words))),
            (tr("losses"), tr("{losses} nats per character on validation", losses=losses)),
            *self.note_lines(),
            *overlap_lines,
        ]
        for one in validation.probes:
            label, what, size = tr("probe"), tr(one.description), one.at.size
            said = tr("{name}: {description} ({size:,} places)", name=one.name, description=what, size=size)
            lines.append((label, said))
        examples = ["", splits["train"].head(EXCERPT_LENGTH)]
        record |= {"overlap": overlap, "sha256": self.sha256, "notes": self.all_notes}
        return Description(record, lines, examples)

    def preview(self, data: DataConfig, row_name: str, rows: int) -> CorpusPreview:
        train = self.splits["train"]
        characters = VocabularySizes(len(set[str]().union(*(split.characters for split in self.splits.values()))))
        lines = train.head(PREVIEW_LENGTH).lstrip("\n").split("\n")[:rows]
        tokens = train.length if data.tokenizer == "characters" else None
        return CorpusPreview(self.name, lines, characters, tr("{n:,} characters", n=train.length), tokens)


def cached_text_overlap(train: AnySplit, held_out: AnySplit, split: str) -> Overlap | None:
    """Return how much of a held-out text is also in a training text; cached if finding out takes long."""

    def pieces() -> Iterator[str]:
        progress, done = Progress(tr("looking for held-out text in the training text"), train.length), 0
        for piece in train.pieces():
            yield piece
            done += len(piece)
            progress.update(done)

    def found() -> dict[str, Any]:
        generated = train.generated is not None
        overlap = text_overlap(pieces(), held_out.overlap_sample(), split, held_out.pieces(), generated=generated)
        return {} if overlap is None else asdict(overlap)

    made_by = (OVERLAP, train.sha256, held_out.sha256, split)
    kept = found() if train.length < LARGE else cached_record("overlap", made_by, found)
    return Overlap(**kept) if kept else None


def load_playlets(entry: CorpusEntry, data: DataConfig, place: None) -> TextCorpus:
    generated = playlets.generate(data.corpus_seed, data.corpus_size or playlets.DEFAULT_SIZE)
    # Cut between scenes, which do not depend on each other.
    borders = [int(np.searchsorted(generated.units, offset)) for offset in split_borders(len(generated.text), data)]
    borders = [0, *borders, len(generated.units)]
    splits = {}
    for name, (start, stop) in zip(("train", "validation", "test"), pairwise(borders), strict=True):
        if start < stop:
            part = generated.cut(start, stop)
            splits[name] = Split(part.text, part)
        elif name != "test":
            problem = Message(
                "data.corpus_size = {corpus_size}: too small to fill the {name} split; 20000 is enough",
                corpus_size=data.corpus_size,
                name=name,
            )
            raise InputError(problem)
    return TextCorpus(entry.name, generated.version, Message("generated"), splits)


def load_path(data: DataConfig, version: int = LATEST) -> TextCorpus:
    """Read a text by path; see `sources.py`."""
    source = sources.find_source(data.corpus, Reading.of(data, version))
    name = source.path.name or str(source.path)
    return read_source(source, data, name, name, str(source.path.resolve()))


def read_source(source: sources.Source, data: DataConfig, name: str, version: str, origin: str) -> TextCorpus:
    """Read a text and split it, unless its files are splits; a large one is only scanned."""
    if source.approximate_bytes > LARGE:
        large, reading = large_splits(source, data)
        return TextCorpus(name, version, origin, large, reading=reading)
    texts = {split: "".join(source.pieces(split)) for split in source.files}
    for split, text in texts.items():
        if not text or text.isspace():
            raise empty_error(source, split)
    rest, found = training_files_key(texts), {}
    for split, (start, stop) in remaining_split_spans(len(texts[rest]), data, texts).items():
        found[split] = Split(texts[rest][start:stop])
    found |= {split: Split(text) for split, text in texts.items() if split != rest}
    splits = {split: found[split] for split in SPLIT_ALIASES if split in found}
    return TextCorpus(name, version, origin, splits, reading=source.reading)


def load_official_splits(entry: CorpusEntry, data: DataConfig, place: Path) -> TextCorpus:
    """Read a corpus whose official splits are files of a folder: training, validation and test, in the entry's order.
    `validation_fraction` and `test_fraction` change nothing.
    """
    known = ([Path(remote.file).name for remote in entry.remotes], *entry.instead)
    names = max(known, key=lambda names: sum((place / name).is_file() for name in names))
    found = (sources.find_source(str(place / name)).files[""] for name in names)
    files = dict(zip(SPLIT_ALIASES, found, strict=True))
    source = sources.Source(place, None, files, by_document=False)
    return read_source(source, data, entry.name, entry.name, str(place.resolve()))


TEXT = CorpusKind(
    TextCorpus,
    noun=tr("corpus"),
    description=tr("plain text"),
    preset="demo",
    names_heading=tr("known corpora"),
    path_hint=tr("the path to a text file"),
    own_files_hint=tr("any UTF-8 text file, .jsonl, .csv or .parquet files, folders of them, or hf:OWNER/NAME"),
    path_characters="/\\.~:",
    offline_hint=tr("playlets needs no download"),
    accepts_path=lambda corpus: True,
    load_path=load_path,
    named_loaders={"playlets": load_playlets, "wikitext-2": load_official_splits, "ptb": load_official_splits},
    make_portable=sources.make_absolute,
)
