"""The registry of documents with questions, and the one door to all of them: a name, or a path (`by_path.py`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.config.sections import DataConfig
from engine.data.corpora import data_folders, is_there
from engine.data.documents import birthplaces
from engine.data.documents.by_path import load_path
from engine.data.documents.corpus import DocumentCorpus
from engine.data.documents.generated import load_biographies, vocabulary
from engine.data.download import Remote
from engine.errors import InputError, nearest


@dataclass(frozen=True)
class DocumentEntry:
    """A corpus of documents that has a name.

    Args:
        load: gives a config's corpus; looks into the data folders if it has files.
        remotes: its files, and where they belong under a data folder; none for generated ones.
        licence: under which it may be used, where that is known.
        vocabulary: kind of tokenizer → how many tokens there are, and whether that is only an upper bound, where it is
            known without loading.
    """

    name: str
    description: str
    load: Callable[["DocumentEntry", DataConfig, Sequence[Path]], DocumentCorpus]
    remotes: tuple[Remote, ...] = ()
    licence: str = ""
    vocabulary: Callable[[DataConfig], Mapping[str, tuple[int, bool]]] | None = None


def _load_biographies(entry: DocumentEntry, data: DataConfig, folders: Sequence[Path]) -> DocumentCorpus:
    return load_biographies(entry.name, data)


def _load_birthplaces(entry: DocumentEntry, data: DataConfig, folders: Sequence[Path]) -> DocumentCorpus:
    found = birthplaces.load_birthplaces(folders)
    if found is None:
        raise _not_here(entry, folders)
    return found


DOCUMENTS: dict[str, DocumentEntry] = {
    entry.name: entry
    for entry in (
        DocumentEntry(
            "biographies",
            "generated lives of invented people, and where they were born",
            _load_biographies,
            vocabulary=lambda data: vocabulary("biographies", data),
        ),
        DocumentEntry(
            "biographies-named",
            "the same, asked with the name first, as the documents have it: what characters need",
            _load_biographies,
            vocabulary=lambda data: vocabulary("biographies-named", data),
        ),
        DocumentEntry(
            birthplaces.NAME,
            "birthplaces of people on Wikipedia: the files of Stanford CS224N's assignment on pretraining",
            _load_birthplaces,
            birthplaces.REMOTES,
        ),
    )
}


def load_documents(data: DataConfig, data_dir: Path | None = None) -> DocumentCorpus:
    """The corpus of documents that a config names: a registered name, or the path of a text file or a folder.

    Args:
        data: `corpus` is what is asked for; `validation_fraction` cuts documents of your own.
        data_dir: where named corpora are looked for first.

    Raises:
        InputError: no such corpus or file, or something wrong with it; names the file and the line.
    """
    entry = DOCUMENTS.get(data.corpus)
    if entry is not None:
        return entry.load(entry, data, data_folders(data_dir))
    if not any(sign in data.corpus for sign in "/\\.~") and not is_there(data.corpus):
        hint = nearest(data.corpus, DOCUMENTS) or (
            f"; known: {', '.join(DOCUMENTS)}; or the path of a text file or a folder"
        )
        raise InputError(f"no corpus of documents is called '{data.corpus[:80]}'{hint}")
    return load_path(data)


def _not_here(entry: DocumentEntry, folders: Sequence[Path]) -> InputError:
    looked = ", ".join(str(folder)[:120] for folder in folders)
    files = ", ".join(remote.file.rpartition("/")[2] for remote in entry.remotes)
    place = (folders[-1] / entry.remotes[0].file).parent
    built_in = next((f"; --corpus {one.name} works now" for one in DOCUMENTS.values() if not one.remotes), "")
    return InputError(
        f"corpus '{entry.name}' is not on this machine, and no fixed address has it: put {files} (they come with "
        f"Stanford CS224N's assignment on pretraining) into {place} (looked in {looked}){built_in}"
    )
