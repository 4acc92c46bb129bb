"""The type of a named corpus: what it is, where its files belong, and how to load it. It defines none."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_data_path

from engine.command_line import command_line
from engine.config.sections import DataConfig
from engine.data.download import Remote
from engine.errors import InputError

Kind = Literal["text", "pairs", "documents"]


@dataclass(frozen=True)
class CorpusEntry:
    """A named corpus; see `corpora.toml`."""

    name: str
    kind: Kind  # one text, pairs of sentences, or documents and questions about them
    description: str
    # Loads a config's corpus from its file or folder; that is None if it is generated.
    load: Callable[["CorpusEntry", DataConfig, Path | None], Any]
    remotes: tuple[Remote, ...] = ()
    instead: Sequence[Sequence[str]] = ()
    origin: str = ""
    licence: str = ""
    preset: str = ""  # trains on it by itself
    languages: tuple[str, str] | None = None  # of pairs; `NAME#de,en` asks for the other direction
    characters: int | None = None
    plausible: float | None = None
    # Kind of tokenizer → number of tokens, and whether it is only an upper bound; needs no loading.
    vocabulary: Callable[[DataConfig], Mapping[str, tuple[int, bool]]] | None = None

    @property
    def words(self) -> str:
        """`text`, `documents` or `pairs, en → de`."""
        return self.kind if self.languages is None else f"pairs, {' → '.join(self.languages)}"

    @property
    def by_hand(self) -> bool:
        """Some file has no fixed address: `data fetch` takes them from a mirror folder only."""
        return not all(remote.url for remote in self.remotes)

    def found(self, folders: Sequence[Path], enough: Callable[[Iterable[bool]], bool] = all) -> Path | None:
        """Return its file, or the folder of its files, in the first data folder that has all of them. `any` is enough
        for a loader, which then says what is missing of the others that do as well.
        """
        for folder in folders:
            files = [folder / remote.file for remote in self.remotes]
            place = files[0].parent if files else folder
            if files and all(is_file(file) for file in files):
                return files[0] if self.kind == "text" else place
            if any(enough(is_file(place / name) for name in names) for names in self.instead):
                return place
        return None

    def not_here(self, folders: Sequence[Path], meanwhile: str) -> InputError:
        """Return the error that says how to get its files; `meanwhile` is what works without them."""
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
    """Return the folders to search for named corpora, in order: `--data-dir`, TUI_TRANSFORMER_DATA, the user's data."""
    folders = [data_dir] if data_dir else []
    from_environment = os.environ.get("TUI_TRANSFORMER_DATA")
    if from_environment:
        folders.append(Path(from_environment))
    return [*folders, user_data_path("tui-transformer")]


def is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113  (False where a folder's name is too long, or none at all)


def is_there(name: str) -> bool:
    try:
        return Path(name).expanduser().exists()
    except (OSError, ValueError, RuntimeError):  # too long, a zero byte, ~nobody
        return False
