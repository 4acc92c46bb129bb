"""The named corpora, how to tell a corpus's kind, and loading any corpus by name or path. No torch here."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from engine.command_line import command_line
from engine.config.sections import DataConfig
from engine.data import corpora
from engine.data.corpora import TextCorpus
from engine.data.documents import by_path as documents
from engine.data.documents import named as named_documents
from engine.data.documents.corpus import DocumentCorpus
from engine.data.download import Remote
from engine.data.entry import CorpusEntry, Kind, data_folders, is_there
from engine.data.parallel import by_path as parallel
from engine.data.parallel import named as named_pairs
from engine.data.parallel.pairs import ParallelCorpus
from engine.errors import InputError, nearest, not_a_path

TABLES = (".tsv", ".tsv.gz")  # suffixes of files that are pairs even without named columns
# Loaders of everything but plain text files:
LOADERS: dict[str, Callable[[CorpusEntry, DataConfig, Any], object]] = {
    "playlets": corpora.load_playlets,
    "phrasebook": named_pairs.load_phrasebook,
    "multi30k": named_pairs.load_multi30k,
    "tatoeba-en-de": named_pairs.load_tatoeba,
    "iwslt2017-en-de": named_pairs.load_iwslt2017,
    **dict.fromkeys(named_documents.FORMS, named_documents.load_biographies),
    "cs224n-birthplaces": named_documents.load_birthplaces,
}


def _entries() -> dict[str, CorpusEntry]:
    found = {}
    for name, row in tomllib.loads(Path(__file__).with_name("corpora.toml").read_text(encoding="utf-8")).items():
        url, files, most = (row.pop(key, usual) for key, usual in (("url", ""), ("files", {}), ("max_bytes", 0)))
        remotes = (Remote(url and url + file, f"{name}/{file}", sha256 or None, most) for file, sha256 in files.items())
        if "languages" in row:
            row["languages"] = tuple(row["languages"])
        if name in named_documents.FORMS:
            row["vocabulary"] = partial(named_documents.vocabulary, name)
        found[name] = CorpusEntry(name, load=LOADERS.get(name, corpora.load_file), remotes=tuple(remotes), **row)
    return found


CORPORA = _entries()


def kind_by_name(corpus: str) -> Kind | None:
    """Return the kind of a registered name, with or without a direction (`NAME#de,en`); None for anything else."""
    entry = CORPORA.get(corpus)
    if entry is None and (pairs := CORPORA.get(corpus.partition("#")[0])) and pairs.kind == "pairs":
        entry = pairs
    return entry.kind if entry is not None else None


def kind_of(corpus: str) -> Kind:
    """Return the kind of a name or path, as `load_corpus`, `load_parallel` or `load_documents` would read it.

    A folder with documents.txt is documents. Any other folder, two files joined by a comma, a .tsv and any path with
    columns after a # are pairs; any other file is a text (whose lines `load_documents` reads too). `InputError`: no
    corpus has that name; or anything but two columns after a #.
    """
    named = kind_by_name(corpus)
    if named is not None:
        return named
    base, columns = parallel.split_selector(corpus)
    try:
        path = Path(base).expanduser()
        there = path.exists()
        if columns is None and documents.is_folder_of_documents(path):
            return "documents"
        if columns is not None or path.is_dir() or base.lower().endswith(TABLES) or ("," in base and not there):
            return "pairs"
    except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, ~nobody
        raise not_a_path(corpus, error) from None
    if not there and not path.suffix and not any(sign in base for sign in "/\\"):
        hint = nearest(base, CORPORA) or f"; `{command_line('data', 'list')}` lists them"
        raise InputError(f"no corpus is called '{base[:80]}'{hint}")
    return "text"


def names_of(kind: Kind) -> list[str]:
    """Return the names of one kind, those that need no download first."""
    return [entry.name for entry in sorted(CORPORA.values(), key=lambda e: bool(e.remotes)) if entry.kind == kind]


@dataclass(frozen=True)
class _Family:
    """A kind of corpus: how errors describe it, and what loads one by path."""

    noun: str
    known: str  # what introduces the list of names
    path: str  # what may be given instead of a name
    signs: str  # characters that tell a path from a name
    meanwhile: str  # what works before a download
    load_path: Callable[[DataConfig], Any]


FAMILIES: dict[Kind, _Family] = {
    "text": _Family(
        noun="corpus",
        known="built in and known",
        path="the path of a text",
        signs="/\\.~",
        meanwhile="playlets works now, without any download",
        load_path=corpora.load_path,
    ),
    "pairs": _Family(
        noun="parallel corpus",
        known="known",
        path="the path of a TSV file or a.en,b.de",
        signs="/\\.,~",
        meanwhile="phrasebook works now",
        load_path=parallel.load_path,
    ),
    "documents": _Family(
        noun="corpus of documents",
        known="known",
        path="the path of a text file or a folder",
        signs="/\\.~",
        meanwhile="biographies works now",
        load_path=documents.load_path,
    ),
}


def _load(kind: Kind, name: str, data: DataConfig, data_dir: Path | None) -> Any:
    family, entry = FAMILIES[kind], CORPORA.get(name)
    if entry is None or entry.kind != kind:
        if not any(sign in name for sign in family.signs) and not is_there(name):
            names = [known for known, one in CORPORA.items() if one.kind == kind]
            hint = nearest(name, names) or f"; {family.known}: {', '.join(names)}; or {family.path}"
            raise InputError(f"no {family.noun} is called '{name[:80]}'{hint}")
        return family.load_path(data)
    folders = data_folders(data_dir)
    place = entry.found(folders) or entry.found(folders, any)
    if entry.remotes and place is None:
        raise entry.not_here(folders, f"--corpus {family.meanwhile}")
    return entry.load(entry, data, place)


def load_corpus(data: DataConfig, data_dir: Path | None = None) -> TextCorpus:
    """Return the text that a config names, by registered name, looked for in `data_dir` first, or by file path. Raises
    InputError: no such corpus or file, or a fault in it; names the file and the line.
    """
    corpus: TextCorpus = _load("text", data.corpus, data, data_dir)
    return corpus


def load_documents(data: DataConfig, data_dir: Path | None = None) -> DocumentCorpus:
    """Return the document corpus that a config names; otherwise as `load_corpus`."""
    corpus: DocumentCorpus = _load("documents", data.corpus, data, data_dir)
    return corpus


def load_parallel(data: DataConfig, data_dir: Path | None = None) -> ParallelCorpus:
    """Return the pairs that a config names, perhaps with a direction; otherwise as `load_corpus`."""
    name, chosen = parallel.split_selector(data.corpus)
    entry = CORPORA.get(name)
    languages = entry.languages if entry is not None else None
    if languages is not None and chosen not in (None, languages, languages[::-1]):
        known = " and ".join(f"{name}#{one},{other}" for one, other in (languages, languages[::-1]))
        raise InputError(f"corpus '{data.corpus[:80]}': {name} has the directions {known}")
    corpus: ParallelCorpus = _load("pairs", name, data, data_dir)
    return corpus.reversed() if languages is not None and chosen == languages[::-1] else corpus
