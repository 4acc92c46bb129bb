"""The kinds of corpora, and loading any corpus by name or path. No torch here.

It imports numpy and the readers of every kind, so the studio imports it only when a corpus is read; `known` has the
names.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from engine.base.command_line import command_line
from engine.base.errors import InputError, comma_separated, did_you_mean, invalid_path_error, join_and
from engine.base.language import Message, tr
from engine.base.plain_files import OWNER_VARIABLE, PUBLIC_FOLDERS
from engine.config.sections import DataConfig
from engine.config.tasks import CorpusKindName
from engine.data import hub
from engine.data.corpora import TEXT, TextCorpus, read_source
from engine.data.corpus import Corpus, CorpusEntry, CorpusKind, data_folders, path_exists
from engine.data.documents.named import DOCUMENTS_KIND
from engine.data.known import CORPORA, kind_by_name, local_path
from engine.data.labelled.named import LABELLED
from engine.data.parallel.named import PAIRS
from engine.data.sources import split_field
from engine.data.text_files import LATEST, Reading

C = TypeVar("C", bound=Corpus)
# The last kind that accepts a path reads it; a text is any file that no other kind accepts.
KINDS: dict[CorpusKindName, CorpusKind[Any]] = {
    kind.corpus_class.kind: kind for kind in (TEXT, PAIRS, DOCUMENTS_KIND, LABELLED)
}


def kind_of(corpus: str) -> CorpusKindName:
    """Return the kind of a name or path, as `load_corpus` would read it.

    A folder with documents.txt is documents. A .csv, or a folder with train.csv, is labelled texts, unless its header
    names a text but no class. A folder of texts (`sources.py`) is a text, unless it has pairs. Any other folder, two
    files joined by a comma, a .tsv and any path with columns after a # are pairs; any other file is a text (whose lines
    can be read as documents too). `InputError`: no corpus has that name; or the # is not followed by two columns.
    """
    named = kind_by_name(corpus)
    if named is not None:
        return named
    try:
        kind = next(kind for kind, one in reversed(KINDS.items()) if one.accepts_path(corpus))
        there = Path(split_field(corpus)[0]).expanduser().exists()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, ~nobody
        raise invalid_path_error(corpus, error) from None
    if kind == "text" and not there and not Path(corpus).suffix and not any(sign in corpus for sign in "/\\:"):
        listing = command_line("data", "list")
        hint = did_you_mean(corpus, CORPORA) or tr("; `{command_line}` lists them", command_line=listing)
        raise InputError(Message("no corpus named '{corpus}'{hint}", corpus=corpus[:80], hint=hint))
    return kind


def portable_name(corpus: str, kind: CorpusKindName) -> str:
    """Return a `data.corpus` that means the same from any folder: a registered name, an absolute path, or a commit
    on the Hugging Face Hub.
    """
    if kind_by_name(corpus) is not None:
        return corpus
    if corpus.startswith(hub.PREFIX):
        return hub.pin_commit(corpus, data_folders(None))
    return KINDS[kind].make_portable(corpus)


def _fall_back_to_data_dir(data: DataConfig, kind: CorpusKind[Any], data_dir: Path | None) -> DataConfig:
    """Replace the full path of a text that is no longer there by that of the same name in `data_dir`, if it exists."""
    path = Path(data.corpus)
    if data_dir is None or kind is not TEXT or not path.is_absolute() or path_exists(split_field(data.corpus)[0]):
        return data
    here = str(data_dir / path.name)
    return data.model_copy(update={"corpus": here}) if path_exists(split_field(here)[0]) else data


def _load_fetched_hub_corpus(
    wanted: hub.HubCorpus,
    entry: CorpusEntry | None,
    name: str,
    data: DataConfig,
    folders: Sequence[Path],
    reading_version: int,
) -> TextCorpus:
    fetched = hub.find_fetched(wanted, folders)
    if fetched is None:
        raise hub.missing_error(name, folders, f"--corpus {TEXT.offline_hint}")
    reading = Reading.of(data, reading_version)
    source = hub.make_source(wanted, fetched, reading, by_document=entry is None or not entry.lines)
    version = name if entry is not None else f"{wanted.repository}@{fetched.commit}"
    return read_source(source, data, name if entry is not None else wanted.repository, version, str(fetched.folder))


def load_corpus(corpus_class: type[C], data: DataConfig, data_dir: Path | None = None, version: int = LATEST) -> C:
    """Load the corpus that a config names, by path or by registered name, perhaps with a direction; a named one is
    looked for in `data_dir` first, and a text there if it is not at its full path. `version` is that of
    `text_files.Reading`. `InputError`: no such corpus or file, or a fault in it, with its file and line.
    """
    kind = KINDS[corpus_class.kind]
    name, chosen = kind.split_selector(data.corpus)
    entry = CORPORA.get(name)
    wanted = hub.parse(name if entry is None else entry.hub)
    if entry is not None and OWNER_VARIABLE in os.environ:
        below = entry.name if wanted is None else f"hub/{wanted.repository}"
        PUBLIC_FOLDERS.extend((folder / below).resolve() for folder in data_folders(None))
    if wanted is not None and kind is TEXT:
        return cast(C, _load_fetched_hub_corpus(wanted, entry, name, data, data_folders(data_dir), version))
    if entry is None or entry.kind != corpus_class.kind:
        if not any(sign in name for sign in kind.path_characters) and not path_exists(name):
            names = [known for known, one in CORPORA.items() if one.kind == corpus_class.kind]
            hint = did_you_mean(name, names) or tr(
                "; {known}: {names}; or {path}",
                known=kind.names_heading,
                names=comma_separated(names),
                path=kind.path_hint,
            )
            raise InputError(Message("no {noun} named '{name}'{hint}", noun=kind.noun, name=name[:80], hint=hint))
        return cast(C, kind.load_path(_fall_back_to_data_dir(data, kind, data_dir), version))
    if chosen is not None:
        first, *others = entry.languages or ("",)
        directions = [(first, other) for other in others] if len(others) > 1 else [(first, *others), (*others, first)]
        if entry.languages is None or chosen not in (*directions, entry.languages):
            known = join_and(f"{name}#{','.join(one)}" for one in directions if others)
            problem = Message(
                "corpus '{corpus}': {name} has only the directions {known}",
                corpus=data.corpus[:80],
                name=name,
                known=known,
            )
            raise InputError(problem)
    folders = data_folders(data_dir)
    place = local_path(entry, folders) or entry.find_files(folders, any)
    if entry.needs_download and place is None:
        meanwhile = f"--corpus {kind.offline_hint}"
        raise hub.missing_error(name, folders, meanwhile) if entry.hub else entry.missing_error(folders, meanwhile)
    if name in kind.named_loaders:
        corpus = kind.named_loaders[name](entry, data, place)
    else:
        own = data.model_copy(update={"corpus": str(place)})
        corpus = replace(kind.load_path(own, version), name=name, version=name)
    if chosen in (None, entry.languages):
        return cast(C, corpus)
    return cast(C, corpus.for_language(chosen[1]) if corpus.tagged_languages else corpus.reversed())
