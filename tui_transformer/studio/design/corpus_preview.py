"""A first look at a corpus: its beginning, its characters, or why it is not there. Slow: called in a thread."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from engine.clean import clean_line
from engine.config.schema import RunConfig
from engine.data.catalogue import catalogue, kind_by_name
from engine.data.corpora import load_corpus, read_text
from engine.data.documents.corpus import DocumentCorpus
from engine.data.documents.registry import load_documents
from engine.data.entry import data_folders
from engine.data.parallel.by_path import absolute, files_of, split_selector
from engine.data.parallel.registry import load_parallel
from engine.data.tokenizers.words import WordTokenizer
from engine.errors import InputError
from tui_transformer.lab.design.draft import Characters

LINES, WIDEST = 10, 160  # of the text that is shown
LARGEST = 64 * 1024**2  # bytes; of a larger file only a part is looked at
PART = 4 * 1024**2
LARGEST_PAIRS = 16 * 1024**2  # bytes; reading more of them at once would stop the screen for more than 50 ms
TOO_LARGE = "too large for a preview"
UNPACKED = 4  # times as many bytes as compressed
WRONG = (InputError, OSError, ValueError, RuntimeError, MemoryError)


@dataclass(frozen=True)
class CorpusPreview:
    """What is known of a corpus."""

    corpus: str  # its name or path
    lines: tuple[str, ...] = ()  # its first ones, cleaned; of pairs, gaps and questions each followed by its answer
    characters: Characters | None = None  # different ones; None where only a part was read
    train_tokens: int | None = None  # size of a text's training split; None where only a part was read
    train_pairs: int | None = None  # of sentence pairs
    train_rows: str = ""  # of documents or of questions, in words
    problem: str = ""  # why it cannot be read; "" if it can


def corpus_key(config: RunConfig) -> str:
    """What a preview depends on."""
    return json.dumps([_kind(config), config.data.model_dump(mode="json")], sort_keys=True)


def _kind(config: RunConfig) -> str:
    """What is read of the corpus."""
    return "pairs" if config.translates else config.objective.kind if config.on_documents else "text"


def preview_corpus(config: RunConfig, data_dir: Path | None) -> CorpusPreview:
    """Look at a config's corpus; whatever is wrong with it is an answer too."""
    seen = CorpusPreview(config.data.corpus)
    try:
        return _READERS.get(_kind(config), _of_text)(seen, config, data_dir)
    except WRONG as error:
        return replace(seen, problem=str(error) or type(error).__name__)


def _of_text(seen: CorpusPreview, config: RunConfig, data_dir: Path | None) -> CorpusPreview:
    if kind_by_name(seen.corpus) is None:
        path = Path(seen.corpus).expanduser()
        if path.is_file() and path.stat().st_size > LARGEST:
            return replace(seen, lines=_first_lines(_beginning(path)))
    corpus = load_corpus(config.data, data_dir)
    train = corpus.splits["train"].text
    characters = Characters(_different(split.text for split in corpus.splits.values()))
    return replace(seen, lines=_first_lines(train), characters=characters, train_tokens=len(train))


def _of_pairs(seen: CorpusPreview, config: RunConfig, data_dir: Path | None) -> CorpusPreview:
    if _bytes_of_pairs(seen.corpus, data_dir) > LARGEST_PAIRS:
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
    """Documents, a half of each masked from its middle on, and what is missing: nothing is drawn, it is a picture."""
    corpus = load_documents(config.data, data_dir)
    train = corpus.documents["train"]
    lines = []
    for text in train[: LINES // 2]:
        words = text.split(" ")
        start, end = len(words) // 2, len(words) // 2 + max(1, len(words) // 4)
        lines += [" ".join((*words[:start], "⁇", *words[end:])), " ".join(words[start:end])]
    rows = f"{len(train):,} documents"
    return replace(seen, lines=_cleaned(lines), train_rows=rows, characters=_tokens(corpus, config))


def _of_questions(seen: CorpusPreview, config: RunConfig, data_dir: Path | None) -> CorpusPreview:
    corpus = load_documents(config.data, data_dir)
    asked = corpus.questions.get("train", ())
    if not asked:
        return replace(seen, problem=f"corpus {corpus.name} has no questions: it is for span-corruption")
    lines = [part for one in asked[: LINES // 2] for part in (one.text, one.answer or "")]
    rows = f"{len(asked):,} questions"
    return replace(seen, lines=_cleaned(lines), train_rows=rows, characters=_tokens(corpus, config))


def _cleaned(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(clean_line(line[:WIDEST]) for line in lines)


def _tokens(corpus: DocumentCorpus, config: RunConfig) -> Characters:
    """Different words where they are tokens, else characters."""
    words = config.data.tokenizer == "words"
    return Characters(WordTokenizer.of(corpus.texts()).vocab_size if words else _different(corpus.texts()))


_READERS = {"pairs": _of_pairs, "span-corruption": _of_documents, "question-answer": _of_questions}


def _different(texts: Iterable[str]) -> int:
    return len(set().union(*texts))


def wrong_corpus(config: RunConfig, data_dir: Path | None) -> str:
    """What is wrong with a config's own files as its corpus, "" if nothing is."""
    corpus = config.data.corpus
    try:
        if config.on_documents:
            load_documents(config.data, data_dir)
            return ""
        if config.translates:
            if _bytes_of_pairs(corpus, data_dir) <= LARGEST_PAIRS:
                load_parallel(config.data, data_dir)
            return ""
        file = Path(corpus).expanduser()
        if file.is_file() and file.stat().st_size > LARGEST:
            return "" if _beginning(file).strip() else f"corpus {corpus}: its beginning is empty"
        read_text(file)
    except WRONG as error:
        return str(error) or type(error).__name__
    return ""


def anywhere(path: str, *, pairs: bool) -> str:
    """A path as it is understood wherever one stands.

    Raises:
        InputError: it is none.
    """
    if pairs:
        return absolute(path)
    try:
        return str(Path(path).expanduser().absolute())
    except (OSError, ValueError, RuntimeError) as error:  # ~nobody
        raise InputError(f"corpus '{path[:80]}': not a path: {error}") from None


def _bytes_of_pairs(corpus: str, data_dir: Path | None) -> int:
    """Of all files that a name or a path of sentence pairs stands for, about as large as they are unpacked."""
    base = split_selector(corpus)[0]
    entry = catalogue().get(base)
    found = entry.found(data_folders(data_dir)) if entry is not None else None
    paths = [found] if found is not None else [Path(file.strip()).expanduser() for file in files_of(base)]
    files = [file for path in paths for file in (path.iterdir() if path.is_dir() else [path]) if file.is_file()]
    return sum(file.stat().st_size * (UNPACKED if file.suffix in (".gz", ".zip") else 1) for file in files)


def _beginning(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(PART).decode("utf-8", "replace")


def _first_lines(text: str) -> tuple[str, ...]:
    return _cleaned(text[: 40 * LINES * WIDEST].lstrip("\n").split("\n")[:LINES])
