"""All corpora that have a name, and of which kind a corpus is: a text, sentence pairs or documents. No torch here."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.command_line import command_line
from engine.data.corpora import REGISTRY, find_file
from engine.data.documents.by_path import is_folder_of_documents
from engine.data.documents.registry import DOCUMENTS
from engine.data.download import Remote
from engine.data.parallel.by_path import split_selector
from engine.data.parallel.registry import PARALLEL
from engine.errors import InputError, nearest, not_a_path

Kind = Literal["text", "pairs", "documents"]
TABLES = (".tsv", ".tsv.gz")  # endings of files that are pairs without being asked for by columns


@dataclass(frozen=True)
class Listed:
    """A corpus that has a name.

    Args:
        kind: one text, pairs of sentences, or documents and questions about them.
        remotes: its files; none for generated ones.
        languages: of sources and targets, where it is pairs.
        licence: under which it may be used, where that is known.
        instead: names of other files in the same folder that do as well.
    """

    name: str
    description: str
    kind: Kind
    remotes: tuple[Remote, ...] = ()
    languages: tuple[str, str] | None = None
    licence: str = ""
    instead: tuple[tuple[str, ...], ...] = ()

    @property
    def words(self) -> str:
        """`text`, `documents` or `pairs, en → de`."""
        return self.kind if self.languages is None else f"pairs, {' → '.join(self.languages)}"

    def found(self, folders: Sequence[Path]) -> Path | None:
        """Its file, or the folder of its files, in the first data folder that has all of them."""
        for folder in folders:
            files = [find_file(remote, [folder]) for remote in self.remotes]
            if files and all(files):
                return files[0] if self.kind == "text" else (folder / self.remotes[0].file).parent
            place = (folder / self.remotes[0].file).parent if self.remotes else folder
            if any(all(_is_file(place / name) for name in names) for names in self.instead):
                return place
        return None

    @property
    def by_hand(self) -> bool:
        """No fixed address has all of its files: `data fetch` takes them from a mirror folder only."""
        return not all(remote.url for remote in self.remotes)


def catalogue() -> dict[str, Listed]:
    """Every named corpus: texts, then pairs, then documents."""
    texts = [Listed(e.name, e.description, "text", (e.remote,) if e.remote else ()) for e in REGISTRY.values()]
    pairs = [
        Listed(e.name, e.description, "pairs", e.remotes, e.languages, e.licence, e.instead) for e in PARALLEL.values()
    ]
    documents = [Listed(e.name, e.description, "documents", e.remotes, None, e.licence) for e in DOCUMENTS.values()]
    return {entry.name: entry for entry in (*texts, *pairs, *documents)}


def kind_by_name(corpus: str) -> Kind | None:
    """Of which kind a registered name is, also with a direction (`NAME#de,en`); None for anything else."""
    if corpus in REGISTRY:
        return "text"
    if corpus in DOCUMENTS:
        return "documents"
    return "pairs" if corpus.partition("#")[0] in PARALLEL else None


def kind_of(corpus: str) -> Kind:
    """Of which kind a name or a path is, as `load_corpus`, `load_parallel` or `load_documents` would read it.

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
    """The names of one kind; those that need no download come first."""
    return [entry.name for entry in sorted(catalogue().values(), key=lambda e: bool(e.remotes)) if entry.kind == kind]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a folder's name may be too long, or none at all
        return False
