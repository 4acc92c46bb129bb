"""A corpus preview: its beginning, its characters, or why it is missing. Slow: call it in a thread."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from engine.clean import clean_line
from engine.config.schema import RunConfig
from engine.data.catalogue import CORPORA, kind_by_name, load_corpus, load_documents, load_parallel
from engine.data.entry import data_folders
from engine.data.parallel.by_path import absolute, files_of, split_selector
from engine.data.tokenizers.words import WordTokenizer
from engine.errors import InputError
from tui_transformer.lab.design.draft import Characters

LINES, WIDEST = 10, 160  # of the shown text
LARGEST = 64 * 1024**2  # bytes; larger files are only read in part
PART = 4 * 1024**2
LARGEST_PAIRS = 16 * 1024**2  # bytes; reading more at once would block the screen for over 50 ms
TOO_LARGE = "too large for a preview"
UNPACKED = 4  # ratio of unpacked to compressed bytes
WRONG = (InputError, OSError, ValueError, RuntimeError, MemoryError)


@dataclass(frozen=True)
class CorpusPreview:
    corpus: str  # its name or path
    lines: tuple[str, ...] = ()  # its first ones, cleaned; pairs, gaps and questions each with their answer
    characters: Characters | None = None  # distinct ones; None if only a part was read
    train_tokens: int | None = None  # size of a text's training split; None if only a part was read
    train_pairs: int | None = None  # of sentence pairs
    train_rows: str = ""  # of documents or of questions, in words
    problem: str = ""  # why it cannot be read; "" if it can


def corpus_key(config: RunConfig) -> str:
    return json.dumps([config.task.rows, config.data.model_dump(mode="json")], sort_keys=True)


def preview_corpus(config: RunConfig, data_dir: Path | None) -> CorpusPreview:
    """Preview a config's corpus; problems with it are an answer too."""
    seen = CorpusPreview(config.data.corpus)
    try:
        readers = {"text": _of_text, "pairs": _of_pairs, "documents": _of_documents}
        return readers[config.task.corpus](seen, config, data_dir)
    except WRONG as error:
        return replace(seen, problem=str(error) or type(error).__name__)


def _of_text(seen: CorpusPreview, config: RunConfig, data_dir: Path | None) -> CorpusPreview:
    if kind_by_name(seen.corpus) is None:
        path = Path(seen.corpus).expanduser()
        if path.is_file() and path.stat().st_size > LARGEST:
            with path.open("rb") as file:
                beginning = file.read(PART).decode("utf-8", "replace")
            if not beginning.strip():
                raise InputError(f"corpus {seen.corpus}: its beginning is empty")
            return replace(seen, lines=_first_lines(beginning))
    corpus = load_corpus(config.data, data_dir)
    train = corpus.splits["train"].text
    characters = Characters(_different(split.text for split in corpus.splits.values()))
    return replace(seen, lines=_first_lines(train), characters=characters, train_tokens=len(train))


def _of_pairs(seen: CorpusPreview, config: RunConfig, data_dir: Path | None) -> CorpusPreview:
    base = split_selector(seen.corpus)[0]
    entry = CORPORA.get(base)
    found = entry.found(data_folders(data_dir)) if entry is not None else None
    paths = [found] if found is not None else [Path(file.strip()).expanduser() for file in files_of(base)]
    files = [file for path in paths for file in (path.iterdir() if path.is_dir() else [path]) if file.is_file()]
    # About their unpacked size.
    if sum(f.stat().st_size * (UNPACKED if f.suffix in (".gz", ".zip") else 1) for f in files) > LARGEST_PAIRS:
        return replace(seen, lines=(TOO_LARGE,))
    corpus = load_parallel(config.data, data_dir)
    train = corpus.splits["train"]
    first = list(dict.fromkeys(zip(train.sources, train.targets, strict=True)))[: LINES // 2]
    lines = _cleaned(sentence for pair in first for sentence in pair)
    sources, targets = (
        [text for pairs in corpus.splits.values() for text in getattr(pairs, side)] for side in ("sources", "targets")
    )
    if config.data.shared_vocabulary:
        characters = Characters(_different(sources + targets))
    else:
        characters = Characters(_different(targets), _different(sources))
    return replace(seen, lines=lines, characters=characters, train_pairs=len(train))


def _of_documents(seen: CorpusPreview, config: RunConfig, data_dir: Path | None) -> CorpusPreview:
    """Questions with answers; or documents with their second half masked, and what is missing."""
    corpus = load_documents(config.data, data_dir)
    train, asked = corpus.documents["train"], corpus.questions.get("train", ())
    lines, rows = list[str](), f"{len(train):,} documents"
    if config.task.rows == "questions":
        if not asked:
            return replace(seen, problem=f"corpus {corpus.name} has no questions: it is for span-corruption")
        rows = f"{len(asked):,} questions"
        lines = [part for one in asked[: LINES // 2] for part in (one.text, one.answer or "")]
    else:
        for text in train[: LINES // 2]:
            words = text.split(" ")
            start, end = len(words) // 2, len(words) // 2 + max(1, len(words) // 4)
            lines += [" ".join((*words[:start], "⁇", *words[end:])), " ".join(words[start:end])]
    by_word = config.data.tokenizer == "words"
    tokens = WordTokenizer.of(corpus.texts()).vocab_size if by_word else _different(corpus.texts())
    return replace(seen, lines=_cleaned(lines), train_rows=rows, characters=Characters(tokens))


def _cleaned(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(clean_line(line[:WIDEST]) for line in lines)


def _different(texts: Iterable[str]) -> int:
    return len(set().union(*texts))


def anywhere(path: str, *, pairs: bool) -> str:
    """A path made independent of the current folder."""
    if pairs:
        return absolute(path)
    try:
        return str(Path(path).expanduser().absolute())
    except (OSError, ValueError, RuntimeError) as error:  # ~nobody
        raise InputError(f"corpus '{path[:80]}': not a path: {error}") from None


def _first_lines(text: str) -> tuple[str, ...]:
    return _cleaned(text[: 40 * LINES * WIDEST].lstrip("\n").split("\n")[:LINES])
