"""What every kind of corpus has in common. `catalogue.py` has the kinds, `known.py` the named corpora."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from platformdirs import user_data_path

from engine.base.command_line import command_line
from engine.base.errors import InputError, comma_separated
from engine.base.language import Message, tr
from engine.config.sections import DataConfig
from engine.config.tasks import CorpusKindName
from engine.data.text_files import Reading
from engine.runs.verdict import OK

if TYPE_CHECKING:
    from engine.data.overlap import Overlap

END_OF_TEXT = "<|endoftext|>"  # ends each document of a text
# The words that stand for a split in the names of files.
SPLIT_ALIASES: dict[str, tuple[str, ...]] = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "tst"),
}


@dataclass(frozen=True)
class Remote:
    """A file of a corpus, as `data fetch` gets it."""

    url: str  # https; "" if the file has no fixed address
    file: str  # its place under a data folder
    sha256: str | None  # the expected hash; None: trusted on first use
    max_bytes: int  # nothing beyond this is read


@dataclass(frozen=True)
class Description:
    """What `data show` says of a corpus."""

    record: Mapping[str, object]  # as JSON
    lines: Sequence[tuple[str, str]]  # labels and their values
    examples: Sequence[str]  # an excerpt, its line ends cleaned


@dataclass(frozen=True)
class VocabularySizes:
    """The number of distinct characters (or words, if these are the tokens) in a corpus that was read to count them."""

    text: int  # for sentence pairs, those of the targets, or of both sides if they share a vocabulary
    sources: int | None = None  # if they have their own vocabulary


@dataclass(frozen=True)
class CorpusPreview:
    corpus: str  # its name or path
    lines: Sequence[str] = ()  # the first ones; each pair, gap or question with its answer
    characters: VocabularySizes | None = None  # distinct ones; None if only a part was read
    train: str = ""  # the size of the training split, as text
    train_tokens: int | None = None  # of a text; None if only a part was read
    paired: bool = False  # every second line answers the one before
    problem: str = ""  # why it cannot be read; "" if it can


@dataclass(frozen=True)
class Corpus(ABC):
    """A loaded corpus. Each kind is a subclass."""

    kind: ClassVar[CorpusKindName]
    name: str  # the registered name, or the file's
    version: str  # changes when the texts behind the name change
    source: str  # where it came from
    reading: Reading = field(default_factory=Reading, kw_only=True)  # of its files

    @property
    def all_notes(self) -> tuple[str, ...]:
        """Its notes, if its kind has any, and those on how its files were read."""
        own: tuple[str, ...] = getattr(self, "notes", ())
        return (*own, *self.reading.findings.notes)

    @property
    @abstractmethod
    def sha256(self) -> dict[str, str]:
        """The hash of each part."""

    @abstractmethod
    def overlaps(self) -> "Iterable[Overlap | None]":
        """Return how much of each held-out split is also in the training split; None for an empty split."""

    @abstractmethod
    def describe(self, licence: str) -> Description:
        """Return what `data show` prints about it; `InputError` if it is too short."""

    @abstractmethod
    def preview(self, data: DataConfig, row_name: str, rows: int) -> CorpusPreview:
        """Return the first `rows` lines that an objective trains on, and how many characters or words there are."""

    @property
    def title_parts(self) -> list[str]:
        return [self.version, self.source]

    def overlap_report(self) -> tuple[dict[str, object], list[tuple[str, str]]]:
        """Return the overlaps as JSON and as lines of a description."""
        known = [one for one in self.overlaps() if one is not None]
        one_kind = len({one.of for one in known}) == 1
        record: dict[str, object] = {one.split if one_kind else f"{one.of}-{one.split}": one.to_json() for one in known}
        found = [one.verdict for one in known]
        return record, [(tr("overlap") if one.verdict == OK else f"⚠ {one.verdict}", tr(one.why)) for one in found]

    def hash_licence_note_lines(self, licence: str) -> list[tuple[str, str]]:
        """Return the hashes, the licence and the notes as lines of a description."""
        lines = [("SHA-256", f"{part} {value[:16]}…") for part, value in self.sha256.items()]
        return [*lines, *([(tr("licence"), licence)] if licence else []), *self.note_lines()]

    def note_lines(self) -> list[tuple[str, str]]:
        return [(tr("note"), tr(note)) for note in self.all_notes]


def direction(languages: Sequence[str]) -> str:
    """Return `en → de`, or `en → de, nl`."""
    return " → ".join((languages[0], ", ".join(languages[1:]))) if languages else ""


def format_counts(counts: Mapping[str, int]) -> str:
    """Return the counts as text: `train 900, validation 100`."""
    return ", ".join(f"{split} {count:,}" for split, count in counts.items())


@dataclass(frozen=True)
class CorpusEntry:
    """A named corpus; see `corpora.toml`."""

    name: str
    kind: CorpusKindName  # one text, pairs of sentences, documents and questions about them, or texts with a class each
    description: str
    remotes: tuple[Remote, ...] = ()
    instead: Sequence[Sequence[str]] = ()
    origin: str = ""
    licence: str = ""
    preset: str = ""  # the preset that trains on this corpus
    # Of pairs: the source's, then the targets'; `NAME#de,en` asks for the other direction, or one of several
    languages: tuple[str, ...] | None = None
    characters: int | None = None
    plausible: float | None = None
    hub: str = ""  # what it is called on the Hugging Face Hub (`hub.py`), instead of files
    lines: bool = False  # whether the rows there are lines, not documents

    @property
    def needs_download(self) -> bool:
        """Whether it has to be downloaded; else it is generated."""
        return bool(self.remotes or self.hub)

    @property
    def kind_label(self) -> str:
        """`text`, `documents`, `labelled` or `pairs, en → de`."""
        if self.languages is None:
            named = {"text": tr("text"), "documents": tr("documents"), "labelled": tr("labelled texts")}
            return named.get(self.kind, self.kind)
        return tr("pairs, {languages}", languages=direction(self.languages))

    @property
    def max_download_bytes(self) -> int:
        """The most bytes that a download of its files may take."""
        return sum(remote.max_bytes for remote in self.remotes)

    @property
    def needs_manual_download(self) -> bool:
        """Whether a file has no fixed address: `data fetch` then takes it from a mirror folder only."""
        return not all(remote.url for remote in self.remotes)

    def find_files(self, folders: Sequence[Path], enough: Callable[[Iterable[bool]], bool] = all) -> Path | None:
        """Return its file, or the folder of its files, in the first data folder that has all of them, or
        `enough` of those in `instead`. With `any`, the loader reports what is missing of these.
        """
        for folder in folders:
            files = [folder / remote.file for remote in self.remotes]
            place = files[0].parent if files else folder
            if files and all(is_file(file) for file in files):
                return files[0] if self.kind == "text" and len(files) == 1 else place
            if any(enough(is_file(place / name) for name in names) for names in self.instead):
                return place
        return None

    def missing_error(self, folders: Sequence[Path], meanwhile: str) -> InputError:
        """Return the error that says how to get its files; `meanwhile` is what works without them."""
        url, target = self.remotes[0].url, folders[-1] / self.remotes[0].file
        parent = target.parent
        names = comma_separated(Path(remote.file).name for remote in self.remotes)
        if self.needs_manual_download:
            how = tr(
                ", and it has no fixed download address: put {names} ({origin}) in {parent}",
                names=names,
                origin=self.origin,
                parent=parent,
            )
        else:
            what = tr("the file from {url} at {target}", url=url, target=target)
            if self.kind != "text" or len(self.remotes) > 1:
                what = tr("{names} from {url} in {parent}", names=names, url=url.rpartition("/")[0], parent=parent)
            fetch = command_line("data", "fetch", self.name)
            how = tr(": run `{command_line}` to get it, or put {what}", command_line=fetch, what=what)
        looked = comma_separated(str(folder)[:120] for folder in folders)
        problem = Message(
            "corpus '{name}' is not on this machine{how} (looked in {looked}); {meanwhile}",
            name=self.name,
            how=how,
            looked=looked,
            meanwhile=meanwhile,
        )
        return InputError(problem)


C = TypeVar("C", bound=Corpus)


@dataclass(frozen=True)
class CorpusKind(Generic[C]):
    """A kind of corpus: how errors describe it, and what loads one, by name or by path."""

    corpus_class: type[C]
    noun: str
    description: str  # what a corpus of this kind is, in a refusal
    names_heading: str  # what introduces the list of names
    path_hint: str  # what may be given instead of a name
    own_files_hint: str  # the user's own files that may be given
    path_characters: str  # characters that tell a path from a name
    offline_hint: str  # what works before a download
    accepts_path: Callable[[str], bool]  # whether a path is read as this kind; later kinds in the table are asked first
    load_path: Callable[[DataConfig, int], C]  # given the version of `text_files.Reading` too
    # Loaders by registered name, given the file or folder, or None if it is generated; other named corpora are read
    # like a user's own files.
    named_loaders: Mapping[str, Callable[[CorpusEntry, DataConfig, Any], C]]
    # Vocabularies known without loading, by registered name: kind of tokenizer → number of tokens, and whether it is
    # only an upper bound.
    vocabularies: Mapping[str, Callable[[DataConfig], Mapping[str, tuple[int, bool]]]] = field(default_factory=dict)
    # Splits `NAME#de,en` into a name or path and what is chosen from it.
    split_selector: Callable[[str], tuple[str, tuple[str, ...] | None]] = lambda corpus: (corpus, None)
    preset: str = ""  # a preset that can train on any corpus of this kind
    # Makes a path mean the same from any folder.
    make_portable: Callable[[str], str] = lambda path: (
        str(Path(path).expanduser().resolve()) if path_exists(path) else path
    )


def data_folders(data_dir: Path | None) -> list[Path]:
    """Return the folders to search for named corpora, in order: `--data-dir`, TUI_TRANSFORMER_DATA, the user's data."""
    given = (data_dir, os.environ.get("TUI_TRANSFORMER_DATA"))
    return [*(Path(folder) for folder in given if folder), user_data_path("tui-transformer")]


def fetch_destination(data_dir: Path | None) -> Path:
    """Return the folder that a download goes to: `--data-dir`, or the user's data."""
    return data_dir if data_dir is not None else data_folders(None)[-1]


def is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113  (False where a folder's name is too long, or none at all)


def path_exists(name: str) -> bool:
    try:
        return Path(name).expanduser().exists()
    except (OSError, ValueError, RuntimeError):  # too long, a zero byte, ~nobody
        return False
