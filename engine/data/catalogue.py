"""All corpora that have a name, and of which kind a corpus is: a text, sentence pairs or documents. No torch here."""

from pathlib import Path
from typing import Any

from engine.command_line import command_line
from engine.data.corpora import REGISTRY
from engine.data.documents.by_path import is_folder_of_documents
from engine.data.documents.registry import DOCUMENTS
from engine.data.entry import CorpusEntry, Kind
from engine.data.parallel.by_path import split_selector
from engine.data.parallel.registry import PARALLEL
from engine.errors import InputError, nearest, not_a_path

TABLES = (".tsv", ".tsv.gz")  # endings of files that are pairs without being asked for by columns


def catalogue() -> dict[str, CorpusEntry[Any]]:
    """Return every named corpus: texts, then pairs, then documents."""
    return {**REGISTRY, **PARALLEL, **DOCUMENTS}


def kind_by_name(corpus: str) -> Kind | None:
    """Return of which kind a registered name is, also with a direction (`NAME#de,en`); None for anything else."""
    entry = catalogue().get(corpus) or PARALLEL.get(corpus.partition("#")[0])
    return entry.kind if entry is not None else None


def kind_of(corpus: str) -> Kind:
    """Return of which kind a name or a path is, as `load_corpus`, `load_parallel` or `load_documents` would read it.

    A folder with documents.txt is documents. Any other folder, two files with a comma between them, a .tsv and whatever
    has its columns named behind a # are pairs; any other file is a text (whose lines `load_documents` reads too).

    Raises:
        InputError: no corpus has that name; or something else than two columns behind a #.
    """
    named = kind_by_name(corpus)
    if named is not None:
        return named
    base, columns = split_selector(corpus)
    try:
        path = Path(base).expanduser()
        there = path.exists()
        if columns is None and is_folder_of_documents(path):
            return "documents"
        if columns is not None or path.is_dir() or base.lower().endswith(TABLES) or ("," in base and not there):
            return "pairs"
    except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, ~nobody
        raise not_a_path(corpus, error) from None
    if not there and not path.suffix and not any(sign in base for sign in "/\\"):
        hint = nearest(base, catalogue()) or f"; `{command_line('data', 'list')}` lists them"
        raise InputError(f"no corpus is called '{base[:80]}'{hint}")
    return "text"


def names_of(kind: Kind) -> list[str]:
    """Return the names of one kind; those that need no download come first."""
    return [entry.name for entry in sorted(catalogue().values(), key=lambda e: bool(e.remotes)) if entry.kind == kind]
