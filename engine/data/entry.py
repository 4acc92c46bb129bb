"""A corpus that has a name: what it is, where its files belong, and how it is loaded. It knows none of them."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from platformdirs import user_data_path

from engine.command_line import command_line
from engine.config.sections import DataConfig
from engine.data.download import Remote
from engine.errors import InputError

C = TypeVar("C")
Kind = Literal["text", "pairs", "documents"]


@dataclass(frozen=True)
class CorpusEntry(Generic[C]):
    """A corpus that has a name.

    Args:
        kind: one text, pairs of sentences, or documents and questions about them.
        load: gives a config's corpus; looks into the data folders if it has files.
        remotes: its files, and where they belong under a data folder; none for generated ones.
        instead: names of other files in the same folder that do as well.
        origin: where its files come from, where no fixed address has them.
        licence: under which it may be used, where that is known.
        languages: of sources and targets, where it is pairs; `NAME#de,en` asks for the other direction.
        characters: different ones, where that is known without loading it.
        vocabulary: kind of tokenizer → how many tokens there are, and whether that is only an upper bound, likewise.
        plausible: nats per character that nothing trained on its own training split has ever reached.
    """

    name: str
    kind: Kind
    description: str
    load: Callable[["CorpusEntry[C]", DataConfig, Sequence[Path]], C]
    remotes: tuple[Remote, ...] = ()
    instead: tuple[tuple[str, ...], ...] = ()
    origin: str = ""
    licence: str = ""
    languages: tuple[str, str] | None = None
    characters: int | None = None
    vocabulary: Callable[[DataConfig], Mapping[str, tuple[int, bool]]] | None = None
    plausible: float | None = None

    @property
    def words(self) -> str:
        """`text`, `documents` or `pairs, en → de`."""
        return self.kind if self.languages is None else f"pairs, {' → '.join(self.languages)}"

    @property
    def by_hand(self) -> bool:
        """No fixed address has all of its files: `data fetch` takes them from a mirror folder only."""
        return not all(remote.url for remote in self.remotes)

    def found(self, folders: Sequence[Path]) -> Path | None:
        """Return its file, or the folder of its files, in the first data folder that has all of them."""
        for folder in folders:
            files = [folder / remote.file for remote in self.remotes]
            place = files[0].parent if files else folder
            if files and all(is_file(file) for file in files):
                return files[0] if self.kind == "text" else place
            if any(all(is_file(place / name) for name in names) for names in self.instead):
                return place
        return None

    def not_here(self, folders: Sequence[Path], meanwhile: str) -> InputError:
        """Return the error that says how to get its files; `meanwhile` is what works without any."""
        target = folders[-1] / self.remotes[0].file
        names = ", ".join(Path(remote.file).name for remote in self.remotes)
        if self.by_hand:
            how = f", and no fixed address has it: put {names} ({self.origin}) into {target.parent}"
        else:
            what = f"{self.remotes[0].url} at {target}"
            if self.kind != "text":
                what = f"{names} from {self.remotes[0].url.rpartition('/')[0]} into {target.parent}"
            how = f": `{command_line('data', 'fetch', self.name)}` gets it, or put {what}"
        looked = ", ".join(str(folder)[:120] for folder in folders)
        return InputError(f"corpus '{self.name}' is not on this machine{how} (looked in {looked}); {meanwhile}")


def data_folders(data_dir: Path | None) -> list[Path]:
    """Return where named corpora are looked for, in order: `--data-dir`, TUI_TRANSFORMER_DATA, the user's data."""
    folders = [data_dir] if data_dir else []
    from_environment = os.environ.get("TUI_TRANSFORMER_DATA")
    if from_environment:
        folders.append(Path(from_environment))
    return [*folders, user_data_path("tui-transformer")]


def is_file(path: Path) -> bool:
    """Return whether a file is there; a path that cannot be one is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # a folder's name may be too long, or none at all
        return False


def is_there(name: str) -> bool:
    """Return whether a corpus's name is a path of something; one that cannot be a path is not."""
    try:
        return Path(name).expanduser().exists()
    except (OSError, ValueError, RuntimeError):  # too long, a zero byte, ~nobody
        return False
