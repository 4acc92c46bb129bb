"""`data show` of sentence pairs: how many, how long, what to be warned of, where from, and some of them."""

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from engine.clean import clean_line
from engine.config.sections import DataConfig
from engine.data.catalogue import catalogue
from engine.data.entry import CorpusEntry
from engine.data.overlap import pair_overlap
from engine.data.parallel.pairs import ParallelCorpus
from engine.data.parallel.registry import load_parallel
from engine.data.parallel.statistics import PairStatistics, corpus_statistics, warnings
from tui_transformer.cli.exit_codes import ExitCode
from tui_transformer.cli.output import answer, emit
from tui_transformer.cli.overlap_shown import overlap_facts, overlap_lines

EXAMPLES = 5  # pairs
WIDEST = 300  # characters of a sentence that are printed
LABEL = 12  # columns
HELD_OUT = ("validation", "test")


def show_pairs(name: str, *, as_json: bool, data_dir: Path | None) -> int:
    """Pairs, lengths and warnings by split, characters, hashes, licence, notes, and the first pairs."""
    corpus = load_parallel(DataConfig(corpus=name), data_dir)
    entry = catalogue().get(corpus.name)
    splits = corpus_statistics(corpus)
    warned = [line for split, numbers in splits.items() for line in warnings(split, numbers)]
    alphabets = [_alphabet(corpus, side) for side in ("sources", "targets")]
    examples = list(islice(_different(corpus), EXAMPLES))
    train = corpus.splits["train"]
    overlaps = [
        found
        for split, pairs in corpus.splits.items()
        if split in HELD_OUT and (found := pair_overlap(train, pairs, split)) is not None
    ]
    if as_json:
        record: dict[str, Any] = {"name": corpus.name, "kind": "pairs", "version": corpus.version}
        record |= {"source": corpus.source, "languages": corpus.languages, "licence": entry.licence if entry else ""}
        record |= {"splits": {split: asdict(numbers) for split, numbers in splits.items()}, "warnings": warned}
        record |= {"overlap": overlap_facts(overlaps)}
        record |= {"characters": alphabets, "sha256": corpus.sha256, "notes": corpus.notes, "examples": examples}
        emit(record)
        return ExitCode.DONE
    answer(clean_line(f"{corpus.version}, {' → '.join(corpus.languages)}, {corpus.source}"))
    warned_of = [("⚠", line) for line in warned]
    for label, line in (*_facts(corpus, splits, alphabets, entry), *overlap_lines(overlaps), *warned_of):
        answer(clean_line(f"  {label:<{LABEL}}{line}"))
    for source, target in examples:
        answer(f"\n{clean_line(source[:WIDEST])}\n  {clean_line(target[:WIDEST])}")
    return ExitCode.DONE


def _facts(
    corpus: ParallelCorpus, splits: dict[str, PairStatistics], alphabets: list[int], entry: CorpusEntry[Any] | None
) -> list[tuple[str, str]]:
    """Labels and what stands beside them."""
    train = splits["train"]
    lines = [
        ("pairs", ", ".join(f"{split} {numbers.pairs:,}" for split, numbers in splits.items())),
        ("sources", _lengths(train.source_mean, train.source_longest, alphabets[0])),
        ("targets", _lengths(train.target_mean, train.target_longest, alphabets[1])),
    ]
    lines += [("SHA-256", f"{split} {sha256[:16]}…") for split, sha256 in corpus.sha256.items()]
    lines += [("licence", entry.licence)] if entry is not None and entry.licence else []
    return lines + [("note", note) for note in corpus.notes]


def _lengths(mean: float, longest: int, characters: int) -> str:
    return f"{mean:.1f} words on average, {longest:,} at most; {characters:,} different characters"


def _alphabet(corpus: ParallelCorpus, side: str) -> int:
    """Different characters of one side."""
    found: set[str] = set()
    for pairs in corpus.splits.values():
        found.update(*getattr(pairs, side))
    return len(found)


def _different(corpus: ParallelCorpus) -> "dict[tuple[str, str], None]":
    """The first training pairs, each once."""
    train = corpus.splits["train"]
    return dict.fromkeys(zip(train.sources, train.targets, strict=True))
