"""A first look at a corpus: its beginning, its characters, or why it is not there. Slow: called in a thread."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from engine.config.schema import DataConfig
from engine.data.corpora import REGISTRY, load_corpus, read_text
from engine.errors import InputError
from tui_transformer.clean import clean_line

LINES, WIDEST = 10, 160  # of the text that is shown
LARGEST = 64 * 1024**2  # bytes; of a larger file only a part is looked at
PART = 4 * 1024**2


@dataclass(frozen=True)
class Glimpse:
    """What is known of a corpus.

    Args:
        corpus: its name or path.
        lines: its first ones, cleaned.
        characters: different ones; None where only a part was read.
        train_tokens: size of the training split; None where only a part was read.
        problem: why it cannot be read; "" if it can.
    """

    corpus: str
    lines: tuple[str, ...] = ()
    characters: int | None = None
    train_tokens: int | None = None
    problem: str = ""


def key(data: DataConfig) -> str:
    """What a glimpse depends on."""
    return json.dumps(data.model_dump(mode="json"), sort_keys=True)


def glimpse(data: DataConfig, data_dir: Path | None) -> Glimpse:
    """Look at a config's corpus; whatever is wrong with it is an answer too."""
    seen = Glimpse(data.corpus)
    try:
        if data.corpus not in REGISTRY:
            path = Path(data.corpus).expanduser()
            if path.is_file() and path.stat().st_size > LARGEST:
                return replace(seen, lines=_first_lines(_part(path)))
        corpus = load_corpus(data, data_dir)
    except (InputError, OSError, ValueError, RuntimeError, MemoryError) as error:
        return replace(seen, problem=str(error) or type(error).__name__)
    characters: set[str] = set()
    for split in corpus.splits.values():
        characters.update(split.text)
    train = corpus.splits["train"].text
    return replace(seen, lines=_first_lines(train), characters=len(characters), train_tokens=len(train))


def wrong_file(path: str) -> str:
    """What is wrong with a text file as a corpus, "" if nothing is."""
    try:
        file = Path(path).expanduser()
        if file.is_file() and file.stat().st_size > LARGEST:
            return "" if _part(file).strip() else f"corpus {path}: its beginning is empty"
        read_text(file)
    except (InputError, OSError, ValueError, RuntimeError) as error:
        return str(error)
    return ""


def _part(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(PART).decode("utf-8", "replace")


def _first_lines(text: str) -> tuple[str, ...]:
    lines = text[: 40 * LINES * WIDEST].lstrip("\n").split("\n")[:LINES]
    return tuple(clean_line(line[:WIDEST]) for line in lines)
