"""The named corpora, from corpora.toml: what they are and where they come from; `catalogue` loads them."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from engine.config.tasks import CorpusKindName
from engine.data.corpus import CorpusEntry, Remote


def _read_entries() -> dict[str, CorpusEntry]:
    found = {}
    for name, row in tomllib.loads(Path(__file__).with_name("corpora.toml").read_text(encoding="utf-8")).items():
        url, files, most = (row.pop(key, usual) for key, usual in (("url", ""), ("files", {}), ("max_bytes", 0)))
        remotes = (Remote(url and url + file, f"{name}/{file}", sha256 or None, most) for file, sha256 in files.items())
        if "languages" in row:
            row["languages"] = tuple(row["languages"])
        found[name] = CorpusEntry(name, remotes=tuple(remotes), **row)
    return found


CORPORA = _read_entries()


def kind_by_name(corpus: str) -> CorpusKindName | None:
    """Return the kind of a registered name, with or without a direction (`NAME#de,en`); None for anything else."""
    entry = CORPORA.get(corpus.partition("#")[0])
    return None if entry is None or (entry.languages is None and corpus != entry.name) else entry.kind


def names_of(kind: CorpusKindName) -> list[str]:
    """Return the names of one kind, those that need no download first."""
    return [entry.name for entry in sorted(CORPORA.values(), key=lambda e: e.needs_download) if entry.kind == kind]


def local_path(entry: CorpusEntry, folders: Sequence[Path]) -> Path | None:
    """Return the file or folder of a named corpus in the first data folder that has all of it."""
    if not entry.hub:
        return entry.find_files(folders)
    from engine.data import hub  # it needs numpy, and the names do not

    wanted = hub.parse(entry.hub)
    assert wanted is not None
    kept = hub.find_fetched(wanted, folders)
    return None if kept is None else kept.folder


def is_missing(name: str, folders: Sequence[Path]) -> bool:
    """Whether a named corpus has to be downloaded first; False for any other corpus."""
    entry = CORPORA.get(name.partition("#")[0])
    return entry is not None and entry.needs_download and local_path(entry, folders) is None
