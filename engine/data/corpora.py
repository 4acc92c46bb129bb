"""The registry of corpora: built-in, known by name, or any UTF-8 text file of yours."""

import codecs
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_data_path

from engine.command_line import command_line
from engine.config.sections import DataConfig
from engine.data.download import Remote
from engine.data.synthetic import playlets
from engine.data.synthetic.grammar import GeneratedText, Probe
from engine.errors import InputError, nearest, not_a_path

MAX_FILE_BYTES = 2 * 1024**3
PIECE = 1 << 22  # characters that are hashed at once
RECALL_NEAR = 110  # characters: what a small model learns first, and a context of 256 always shows


@dataclass(frozen=True)
class Split:
    """One part of a corpus.

    Args:
        text: its characters.
        floor: nats per character that no model beats but by luck, aligned with the text, where it is known.
        probes: characters whose prediction tests one dependency.
        floor_mean: the mean floor and its standard error over scenes, nats per character.
        generated: the text with its grammar, if it was generated.
    """

    text: str
    floor: NDArray[np.float64] | None = None
    probes: tuple[Probe, ...] = ()
    floor_mean: tuple[float, float] | None = None
    generated: GeneratedText | None = None

    @cached_property
    def sha256(self) -> str:
        """The hash of the text."""
        return _sha256_of(self.text)


@dataclass(frozen=True)
class TextCorpus:
    """A loaded corpus: `train`, `validation` and perhaps `test`."""

    name: str
    version: str
    source: str
    splits: Mapping[str, Split]

    @cached_property
    def sha256(self) -> dict[str, str]:
        """The hash of each split's text."""
        return {name: split.sha256 for name, split in self.splits.items()}


def _sha256_of(text: str) -> str:
    found = hashlib.sha256()
    for start in range(0, len(text), PIECE):
        found.update(text[start : start + PIECE].encode("utf-8", "surrogatepass"))
    return found.hexdigest()


@dataclass(frozen=True)
class CorpusEntry:
    """A corpus that has a name.

    Args:
        remote: where it comes from and where it belongs under a data folder; None for generated ones.
        vocabulary: different characters, where that is known without loading it.
        plausible: nats per character that nothing trained on its own training split has ever reached.
    """

    name: str
    description: str
    load: Callable[["CorpusEntry", DataConfig, Sequence[Path]], TextCorpus]
    remote: Remote | None = None
    vocabulary: int | None = None
    plausible: float | None = None


def data_folders(data_dir: Path | None) -> list[Path]:
    """Where named corpora are looked for, first one first: `--data-dir`, TUI_TRANSFORMER_DATA, the user's data."""
    folders = [data_dir] if data_dir else []
    from_environment = os.environ.get("TUI_TRANSFORMER_DATA")
    if from_environment:
        folders.append(Path(from_environment))
    return [*folders, user_data_path("tui-transformer")]


def _fractions(length: int, data: DataConfig) -> tuple[int, int]:
    """Where validation and test begin: train first, then validation, test last (nanoGPT's order)."""
    train_stop = int(length * (1.0 - data.validation_fraction - data.test_fraction))
    test_start = length - int(length * data.test_fraction)
    return train_stop, test_start


def split_text(text: str, data: DataConfig) -> dict[str, Split]:
    """A text cut by the fractions of its length."""
    train_stop, test_start = _fractions(len(text), data)
    splits = {"train": Split(text[:train_stop]), "validation": Split(text[train_stop:test_start])}
    if test_start < len(text):
        splits["test"] = Split(text[test_start:])
    return splits


def _generated_splits(generated: GeneratedText, data: DataConfig) -> dict[str, Split]:
    train_stop, test_start = _fractions(len(generated.text), data)
    units = len(generated.units)
    cuts = [int(np.searchsorted(generated.units, offset)) for offset in (train_stop, test_start)]
    borders = {"train": (0, cuts[0]), "validation": (cuts[0], cuts[1]), "test": (cuts[1], units)}
    splits = {}
    for name, (start, stop) in borders.items():
        if start < stop:
            part = generated.cut(start, stop)
            probes = tuple(band for probe in part.probes for band in _bands(probe))
            splits[name] = Split(part.text, -part.log_probability, probes, part.floor(), part)
    for name in ("train", "validation"):
        if name not in splits:
            raise InputError(
                f"data.corpus_size = {data.corpus_size}: too small to fill the {name} split; 20000 is enough"
            )
    return splits


def _bands(probe: Probe) -> list[Probe]:
    """Recall is reported by reach, near and far; the other probes as they are."""
    if probe.name != "recall":
        return [probe]
    near = probe.distance < RECALL_NEAR
    return [
        _restricted(probe, f"recall<{RECALL_NEAR}", f"near (under {RECALL_NEAR} characters)", near),
        _restricted(probe, f"recall>={RECALL_NEAR}", f"far ({RECALL_NEAR} characters or more)", ~near),
    ]


def _restricted(probe: Probe, name: str, reach: str, keep: NDArray[np.bool_]) -> Probe:
    description = f"{probe.description}, {reach}"
    return replace(probe, name=name, description=description, at=probe.at[keep], distance=probe.distance[keep])


def _load_playlets(entry: CorpusEntry, data: DataConfig, folders: Sequence[Path]) -> TextCorpus:
    generated = playlets.generate(data.corpus_seed, data.corpus_size or playlets.DEFAULT_SIZE)
    return TextCorpus(entry.name, generated.version, "generated", _generated_splits(generated, data))


def _load_named_file(entry: CorpusEntry, data: DataConfig, folders: Sequence[Path]) -> TextCorpus:
    assert entry.remote is not None
    path = find_file(entry.remote, folders)
    if path is not None:
        return TextCorpus(entry.name, entry.name, str(path.resolve()), split_text(read_text(path), data))
    looked = ", ".join(str(folder)[:120] for folder in folders)
    raise InputError(
        f"corpus '{entry.name}' is not on this machine: `{command_line('data', 'fetch', entry.name)}` gets it, or put "
        f"{entry.remote.url} at {folders[-1] / entry.remote.file} (looked in {looked}); "
        "--corpus playlets works now, without any download"
    )


def find_file(remote: Remote, folders: Sequence[Path]) -> Path | None:
    """The file in the first folder that has it."""
    for folder in folders:
        with suppress(OSError, ValueError):  # a folder's name may be too long, or none at all
            if (folder / remote.file).is_file():
                return folder / remote.file
    return None


def is_there(name: str) -> bool:
    """Whether a corpus's name is a path of something; one that cannot be a path is not."""
    try:
        return Path(name).expanduser().exists()
    except (OSError, ValueError, RuntimeError):  # too long, a zero byte, ~nobody
        return False


REGISTRY: dict[str, CorpusEntry] = {
    entry.name: entry
    for entry in (
        CorpusEntry(
            "playlets",
            "generated stage dialogue with a known entropy floor and probes of known reach",
            _load_playlets,
            vocabulary=len(playlets.ALPHABET),
        ),
        CorpusEntry(
            "tiny-shakespeare",
            "1.1 M characters of Shakespeare, the usual first corpus (karpathy/char-rnn)",
            _load_named_file,
            Remote(
                "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
                "tiny-shakespeare/input.txt",
                "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
                2_000_000,
            ),
            vocabulary=65,
            plausible=1.2,  # the best from-scratch models of 5 to 11 million parameters score 1.46 to 1.48
        ),
    )
}


def read_text(path: Path) -> str:
    """A text file, line ends as they are, without a byte-order mark.

    Raises:
        InputError: missing, a folder, unreadable, larger than 2 GiB, empty, binary, or not UTF-8.
    """
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"corpus {path}: is not a file; name a UTF-8 text file")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"corpus {path}: larger than 2 GiB; cut a part of it")
        raw = path.read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"corpus {str(path)[:200]}: cannot be read: {why}") from None
    content = raw.removeprefix(codecs.BOM_UTF8)
    if not content or content.isspace():
        raise InputError(f"corpus {path}: is empty; a few thousand characters is the least that teaches anything")
    if b"\x00" in raw:
        raise InputError(f"corpus {path}: is not text (it contains zero bytes); UTF-8 text is needed")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"corpus {path}: not UTF-8 at byte {error.start}; convert it, e.g. iconv -f latin1 -t utf-8"
        ) from None


def load_corpus(data: DataConfig, data_dir: Path | None = None) -> TextCorpus:
    """The corpus a config names: a registered name, or the path of a text file.

    Raises:
        InputError: no such corpus or file, or something wrong with its text.
    """
    entry = REGISTRY.get(data.corpus)
    if entry is not None:
        return entry.load(entry, data, data_folders(data_dir))
    try:
        path = Path(data.corpus).expanduser()
        looks_like_path = path.suffix or os.sep in data.corpus or path.exists()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, ~nobody
        raise not_a_path(data.corpus, error) from None
    if not looks_like_path:
        hint = nearest(data.corpus, REGISTRY) or f"; built in and known: {', '.join(REGISTRY)}; or the path of a text"
        raise InputError(f"no corpus is called '{data.corpus[:80]}'{hint}")
    text = read_text(path)
    return TextCorpus(path.name, path.name, str(path.resolve()), split_text(text, data))
