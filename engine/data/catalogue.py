"""The kinds of corpora, and loading any corpus by name or path. No torch here.

It imports numpy and the readers of every kind, so what opens the studio imports it only when a corpus is read; `known`
has the names.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from engine.base.command_line import command_line
from engine.base.errors import InputError, all_of, listed, nearest, not_a_path
from engine.base.language import tr
from engine.config.sections import DataConfig
from engine.config.tasks import Kind
from engine.data import hub
from engine.data.corpora import TEXT, TextCorpus, read_source
from engine.data.corpus import Corpus, CorpusEntry, CorpusKind, data_folders, is_there
from engine.data.documents.named import DOCUMENTS
from engine.data.known import CORPORA, kind_by_name, place_of
from engine.data.labelled.named import LABELLED
from engine.data.parallel.named import PAIRS
from engine.data.sources import split_field

C = TypeVar("C", bound=Corpus)
# The last kind that accepts a path reads it; a text is any file that no other kind accepts.
KINDS: dict[Kind, CorpusKind[Any]] = {kind.made.kind: kind for kind in (TEXT, PAIRS, DOCUMENTS, LABELLED)}


def kind_of(corpus: str) -> Kind:
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
        kind = next(kind for kind, one in reversed(KINDS.items()) if one.takes(corpus))
        there = Path(split_field(corpus)[0]).expanduser().exists()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, ~nobody
        raise not_a_path(corpus, error) from None
    if kind == "text" and not there and not Path(corpus).suffix and not any(sign in corpus for sign in "/\\:"):
        hint = nearest(corpus, CORPORA) or tr(
            "; `{command_line}` lists them", command_line=command_line("data", "list")
        )
        raise InputError(tr("no corpus named '{corpus}'{hint}", corpus=corpus[:80], hint=hint))
    return kind


def portable(corpus: str, kind: Kind) -> str:
    """Return a `data.corpus` that means the same from any folder: a registered name, an absolute path, or a commit
    on the Hugging Face Hub.
    """
    if kind_by_name(corpus) is not None:
        return corpus
    if corpus.startswith(hub.PREFIX):
        return hub.pinned(corpus, data_folders(None))
    return KINDS[kind].portable(corpus)


def _found_again(data: DataConfig, kind: CorpusKind[Any], data_dir: Path | None) -> DataConfig:
    """A text that a run read by its full path, and that is not there any more: that of its name in `data_dir`."""
    path = Path(data.corpus)
    if data_dir is None or kind is not TEXT or not path.is_absolute() or is_there(split_field(data.corpus)[0]):
        return data
    here = str(data_dir / path.name)
    return data.model_copy(update={"corpus": here}) if is_there(split_field(here)[0]) else data


def _from_hub(
    wanted: hub.HubCorpus, entry: CorpusEntry | None, name: str, data: DataConfig, folders: Sequence[Path]
) -> TextCorpus:
    fetched = hub.found(wanted, folders)
    if fetched is None:
        raise hub.not_here(name, folders, f"--corpus {TEXT.meanwhile}")
    source = hub.source(wanted, fetched, by_document=entry is None or not entry.lines)
    version = name if entry is not None else f"{wanted.repository}@{fetched.commit}"
    return read_source(source, data, name if entry is not None else wanted.repository, version, str(fetched.folder))


def load_corpus(made: type[C], data: DataConfig, data_dir: Path | None = None) -> C:
    """Load the corpus that a config names, by path or by registered name, perhaps with a direction; a named one is
    looked for in `data_dir` first, and a text there if it is not at its full path. `InputError`: no such corpus or
    file, or a fault in it, with its file and line.
    """
    kind = KINDS[made.kind]
    name, chosen = kind.selected(data.corpus)
    entry = CORPORA.get(name)
    wanted = hub.parsed(name if entry is None else entry.hub)
    if wanted is not None and kind is TEXT:
        return cast(C, _from_hub(wanted, entry, name, data, data_folders(data_dir)))
    if entry is None or entry.kind != made.kind:
        if not any(sign in name for sign in kind.signs) and not is_there(name):
            names = [known for known, one in CORPORA.items() if one.kind == made.kind]
            hint = nearest(name, names) or tr(
                "; {known}: {names}; or {path}", known=kind.known, names=listed(names), path=kind.path
            )
            raise InputError(tr("no {noun} named '{name}'{hint}", noun=kind.noun, name=name[:80], hint=hint))
        return cast(C, kind.load_path(_found_again(data, kind, data_dir)))
    if chosen is not None:
        first, *others = entry.languages or ("",)
        directions = [(first, other) for other in others] if len(others) > 1 else [(first, *others), (*others, first)]
        if entry.languages is None or chosen not in (*directions, entry.languages):
            known = all_of(f"{name}#{','.join(one)}" for one in directions if others)
            raise InputError(
                tr(
                    "corpus '{corpus}': {name} has only the directions {known}",
                    corpus=data.corpus[:80],
                    name=name,
                    known=known,
                )
            )
    folders = data_folders(data_dir)
    place = place_of(entry, folders) or entry.found(folders, any)
    if entry.is_fetched and place is None:
        meanwhile = f"--corpus {kind.meanwhile}"
        raise hub.not_here(name, folders, meanwhile) if entry.hub else entry.not_here(folders, meanwhile)
    if name in kind.named:
        corpus = kind.named[name](entry, data, place)
    else:
        corpus = replace(kind.load_path(data.model_copy(update={"corpus": str(place)})), name=name, version=name)
    if chosen in (None, entry.languages):
        return cast(C, corpus)
    return cast(C, corpus.to(chosen[1]) if corpus.tags else corpus.reversed())
