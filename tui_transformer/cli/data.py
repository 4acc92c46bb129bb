"""`data list`, `show`, `fetch`: list the corpora, look inside one, and download it into the data folder."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from engine.clean import clean_line
from engine.command_line import command_line
from engine.data.catalogue import CORPORA, kind_of, load_corpus, load_documents, load_parallel
from engine.data.corpora import TextCorpus
from engine.data.documents.corpus import DocumentCorpus
from engine.data.entry import CorpusEntry, data_folders
from engine.data.parallel.pairs import ParallelCorpus
from engine.errors import InputError, nearest
from tui_transformer.cli.commands import Group, command
from tui_transformer.cli.options import DataDir, Json, corpus_names
from tui_transformer.cli.output import ExitCode, answer, emit, is_terminal, print_columns, say, stderr

if TYPE_CHECKING:
    from engine.data.download import Remote
    from engine.data.overlap import Overlap

LONGEST = 4096  # characters, as of data.corpus
GLIMPSE = 400  # characters of a text
PAIRS, DOCUMENTS = 5, 4  # printed; the same for questions and documents
WIDEST = 300  # printed characters of a sentence or document
LABEL = 12  # columns
# How a file's hash was checked, and what that proves.
CHECKED = {
    "known": "SHA-256 as it should be",
    "recorded": "SHA-256 as it was when it was first fetched",
    "first use": "SHA-256 {short}…, which nothing could be held against: recorded beside it, and checked from now on",
    "unchecked": "SHA-256 {short}…, which nothing could be held against, nor recorded beside it",
}

app = typer.Typer(cls=Group, add_completion=False, rich_markup_mode=None)


@app.callback(invoke_without_command=True)
@command(280)
def data(context: typer.Context, json: Json = False, data_dir: DataDir = None) -> int:
    """The corpora to train on."""
    return list_corpora(json=json, data_dir=data_dir) if context.invoked_subcommand is None else 0


@app.command("list")
def list_corpora(json: Json = False, data_dir: DataDir = None) -> int:
    """All corpora that have a name, and where they are."""
    rows = [("CORPUS", "KIND", "WHERE", "WHAT IT IS")]
    for entry in CORPORA.values():
        where = str(entry.found(data_folders(data_dir)) or "not here") if entry.remotes else "built in"
        rows.append((entry.name, entry.words, where, entry.description))
        if json:
            record = {"name": entry.name, "kind": entry.kind, "languages": entry.languages, "licence": entry.licence}
            emit(record | {"where": where, "description": entry.description})
    if not json:
        print_columns(rows)
        answer(
            "\nand yours, by --corpus: any UTF-8 text file; pairs.tsv, text.en,text.de or a folder of sentence pairs; "
            "a folder with documents.txt"
        )
    return ExitCode.DONE


class Described(NamedTuple):
    record: Mapping[str, object]  # of JSON
    lines: list[tuple[str, str]]  # labels and their values
    examples: list[str]  # an excerpt, with misleading line ends cleaned


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            help="A corpus by name, a text file, or the path of sentence pairs.", autocompletion=corpus_names
        ),
    ],
    json: Json = False,
    data_dir: DataDir = None,
) -> int:
    """One corpus: its sizes, its characters, what to hold a score against, how it begins."""
    from engine.config.sections import DataConfig

    if not 1 <= len(name) <= LONGEST:
        known = command_line("data", "list", data_dir=data_dir)
        raise InputError(f"CORPUS has {len(name):,} characters: must be a name that `{known}` lists, or a path")
    kind, data = kind_of(name), DataConfig(corpus=name)
    corpus: TextCorpus | ParallelCorpus | DocumentCorpus
    if kind == "documents":
        corpus = load_documents(data, data_dir)
        found, title = _documents(corpus), [corpus.version, corpus.source]
    elif kind == "pairs":
        corpus = load_parallel(data, data_dir)
        found, title = _pairs(corpus), [corpus.version, " → ".join(corpus.languages), corpus.source]
    else:
        corpus = load_corpus(data, data_dir)
        found, title = _text(corpus), [corpus.version, corpus.source]
    if json:
        emit({"name": corpus.name, "kind": kind, "version": corpus.version, "source": corpus.source, **found.record})
        return ExitCode.DONE
    answer(clean_line(", ".join(title)))
    for label, line in found.lines:
        answer(clean_line(f"  {label:<{LABEL}}{line}"))
    for line in found.examples:
        answer(line)
    return ExitCode.DONE


def _overlaps(found: "Sequence[Overlap | None]") -> tuple[Mapping[str, object], list[tuple[str, str]]]:
    """Return how much of each held-out split is also in the training split, as JSON and as lines."""
    from engine.evaluation.alarms import overlapping

    known = [one for one in found if one is not None]
    kinds = {one.of for one in known}
    record = {one.split if len(kinds) == 1 else f"{one.of}-{one.split}": one.to_json() for one in known}
    return record, [("⚠ OVERLAP" if one.much else "overlap", overlapping(one).why) for one in known]


def _text(corpus: TextCorpus) -> Described:
    from engine.data.overlap import text_overlap
    from engine.data.tokenizers import CharacterTokenizer
    from engine.evaluation.baselines import bigram_loss, unigram_loss

    splits, validation = corpus.splits, corpus.splits["validation"]
    tokenizer = CharacterTokenizer.of(split.text for split in splits.values())
    train, held_out = (tokenizer.encode(splits[split].text) for split in ("train", "validation"))
    if len(train) < 2 or len(held_out) < 2:
        raise InputError(f"corpus {corpus.name}: too short to be split into training and validation text")
    overlap, overlap_lines = _overlaps(
        [text_overlap([splits["train"].text], part.text, split) for split, part in splits.items() if split != "train"]
    )
    characters = {split: len(part.text) for split, part in splits.items()}
    losses = {
        "unigram": unigram_loss(train, held_out, tokenizer.vocab_size),
        "bigram": bigram_loss(train, held_out, tokenizer.vocab_size),
        "floor": None if validation.floor_mean is None else validation.floor_mean[0],
    }
    record = {"characters": characters, "vocabulary": tokenizer.vocab_size, **losses}
    named = {"unigram": "unigram", "bigram": "bigram", "floor": "floor given the whole past"}
    known = ", ".join(f"{named[key]} {value:.3f}" for key, value in losses.items() if value is not None)
    lines = [
        ("characters", f"{_counts(characters)}; {tokenizer.vocab_size} different ones"),
        ("loss lines", f"{known} nats per character on validation"),
        *overlap_lines,
        *(("probe", f"{one.name}: {one.description} ({one.at.size:,} places)") for one in validation.probes),
    ]
    examples = ["", splits["train"].text[:GLIMPSE]]
    return Described(record | {"overlap": overlap, "sha256": corpus.sha256}, lines, examples)


def _pairs(corpus: ParallelCorpus) -> Described:
    from engine.data.overlap import pair_overlap
    from engine.data.parallel.statistics import corpus_statistics, warnings

    train, splits = corpus.splits["train"], corpus_statistics(corpus)
    warned = [line for split, numbers in splits.items() for line in warnings(split, numbers)]
    sources, targets = (
        len({character for pairs in corpus.splits.values() for text in getattr(pairs, side) for character in text})
        for side in ("sources", "targets")
    )
    examples = list(islice(dict.fromkeys(zip(train.sources, train.targets, strict=True)), PAIRS))
    overlap, overlap_lines = _overlaps(
        [pair_overlap(train, pairs, split) for split, pairs in corpus.splits.items() if split in ("validation", "test")]
    )
    record = {
        "languages": corpus.languages,
        "licence": _licence(corpus),
        "splits": {split: asdict(numbers) for split, numbers in splits.items()},
        "warnings": warned,
        "overlap": overlap,
        "characters": [sources, targets],
        "sha256": corpus.sha256,
        "notes": corpus.notes,
        "examples": examples,
    }

    def lengths(mean: float, longest: int, characters: int) -> str:
        return f"{mean:.1f} words on average, {longest:,} at most; {characters:,} different characters"

    counted = splits["train"]
    lines = [
        ("pairs", _counts({split: numbers.pairs for split, numbers in splits.items()})),
        ("sources", lengths(counted.source_mean, counted.source_longest, sources)),
        ("targets", lengths(counted.target_mean, counted.target_longest, targets)),
        *_origin(corpus),
        *overlap_lines,
        *(("⚠", line) for line in warned),
    ]
    shown = [f"\n{clean_line(source[:WIDEST])}\n  {clean_line(target[:WIDEST])}" for source, target in examples]
    return Described(record, lines, shown)


def _documents(corpus: DocumentCorpus) -> Described:
    from engine.data.overlap import document_overlap, question_overlap
    from engine.data.tokenizers import CharacterTokenizer, WordTokenizer

    train, texts = corpus.documents["train"], list(corpus.texts())
    questions = [question for found in corpus.questions.values() for question in found]
    asked = {split: [question.text for question in found] for split, found in corpus.questions.items()}
    majority = {split: corpus.majority(split) for split in corpus.questions}
    right = {split: {"right": right, "of": of} for split, (_, right, of) in majority.items() if of}
    overlap, overlap_lines = _overlaps(
        [document_overlap(train, found, split) for split, found in corpus.documents.items() if split != "train"]
        + [question_overlap(asked["train"], found, split) for split, found in asked.items() if split != "train"]
    )
    shown = corpus.questions.get("train", ())[:DOCUMENTS]
    documents = {split: len(found) for split, found in corpus.documents.items()}
    counts = {split: len(found) for split, found in asked.items()}
    mean, longest = fmean(map(len, train)), max(map(len, train))
    answers = len({question.answer for question in questions if question.answer is not None})
    different = len({question.text for question in questions})
    words, characters = WordTokenizer.of(texts).vocab_size, CharacterTokenizer.of(texts).vocab_size
    recalls = {probe: len(found) for probe, found in corpus.recalls.items()}
    record = {
        "documents": documents,
        "characters_mean": mean,
        "characters_longest": longest,
        "questions": counts,
        "different_questions": different,
        "different_answers": answers,
        "majority": {"answer": majority["train"][0], "splits": right} if majority else None,
        "vocabulary": {"characters": characters, "words": words},
        "recalls": recalls,
        "sha256": corpus.sha256,
        "notes": corpus.notes,
        "examples": {
            "documents": train[:DOCUMENTS],
            "questions": [(question.text, question.answer) for question in shown],
        },
        "licence": _licence(corpus),
        "overlap": overlap,
    }
    lines = [
        ("documents", _counts(documents)),
        ("length", f"{mean:.1f} characters on average, {longest:,} at most"),
        ("questions", f"{_counts(counts)}; {different:,} different ones, {answers:,} different answers"),
    ]
    if asked:
        shares = (f"{n / of:.1%} of {split} ({n:,} of {of:,})" for split, (_, n, of) in majority.items() if of)
        lines.append(("baseline", f"always answering {majority['train'][0]!r} is right in {', '.join(shares)}"))
    else:
        lines[-1] = ("questions", "none")
    lines += [
        ("vocabulary", f"{characters:,} characters, {words:,} words and marks"),
        *(("probe", f"{probe}: {count:,} facts") for probe, count in recalls.items()),
        *_origin(corpus),
        *overlap_lines,
    ]
    examples = ["", *(clean_line(text[:WIDEST]) for text in train[:DOCUMENTS])]
    if shown:
        examples += ["", *(clean_line(f"{q.text[:WIDEST]}  →  {(q.answer or '')[:WIDEST]}") for q in shown)]
    return Described(record, lines, examples)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{split} {count:,}" for split, count in counts.items())


def _licence(corpus: ParallelCorpus | DocumentCorpus) -> str:
    entry = CORPORA.get(corpus.name)
    return entry.licence if entry else ""


def _origin(corpus: ParallelCorpus | DocumentCorpus) -> list[tuple[str, str]]:
    lines = [("SHA-256", f"{part} {value[:16]}…") for part, value in corpus.sha256.items()]
    licence = _licence(corpus)
    return [*lines, *([("licence", licence)] if licence else []), *(("note", note) for note in corpus.notes)]


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A corpus by name.", autocompletion=corpus_names)],
    json: Json = False,
    data_dir: DataDir = None,
) -> int:
    """Download a corpus, checked by its SHA-256 where that is known."""
    from engine.data import download

    known = CORPORA
    entry = known.get(name)
    if entry is None:
        hint = nearest(name, known) or f"; `{command_line('data', 'list')}` lists them"
        raise InputError(f"no corpus is called '{name[:80]}'{hint}")
    if not entry.remotes:
        say(f"{name} is built in: it is generated when it is needed")
        return ExitCode.DONE
    folder = data_folders(data_dir)[0] if data_dir is not None else data_folders(None)[-1]
    files = []
    with _progress(entry) as watched:
        for remote in entry.remotes:
            before = download.recorded_sha256(folder / remote.file)
            path = download.fetch(remote, folder, progress=watched(remote))
            sha256 = download.sha256_of(path)
            if remote.sha256 is not None:
                checked = "known"
            elif before is not None:
                checked = "recorded"
            else:
                checked = "first use" if download.recorded_sha256(path) == sha256 else "unchecked"
            files.append((path, sha256, checked))
    for path, sha256, checked in files:
        if json:
            emit({"name": name, "path": str(path), "sha256": sha256, "checked": checked})
        else:
            answer(clean_line(f"{name}: {path}, {CHECKED[checked].format(short=sha256[:16])}"))
    if entry.licence and not json:
        say(f"{name} may be used under {entry.licence}")
    return ExitCode.DONE


@contextmanager
def _progress(entry: CorpusEntry) -> "Iterator[Callable[[Remote], Callable[[int, int], None]]]":
    if not is_terminal(sys.stderr):
        yield lambda remote: lambda done, size: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=stderr()) as bar:

        def watched(remote: "Remote") -> Callable[[int, int], None]:
            task = bar.add_task(f"{entry.name}  {Path(remote.file).name}", total=None)
            return lambda done, size: bar.update(task, completed=done)

        yield watched
