"""Token ids of a text too large for memory, in files that are mapped into it. No torch here.

A text is encoded once, part by part, into shards of equal stretches of text. A shard appears under its name only when
it is whole, and ends with its hash. So work that was killed picks up after its last shard and ends with the same bytes,
and if a shard is damaged, only it and those after it are made again.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from engine.base.errors import write_error
from engine.base.language import tr
from engine.base.plain_files import open_regular_file
from engine.base.progress import Progress
from engine.data.cache import BLOCK, cache_entry_path
from engine.data.tokenizers.protocol import Tokenizer

VERSION = 1  # of the files
PART = 1 << 20  # characters encoded at once
SHARD = 1 << 25  # characters: the minimum in every shard but the last
MOST_SHARDS = 128  # each keeps a file open
STAGED = ".new"
WAIT = 0.5  # seconds between looks at another process's work
DIGEST = hashlib.sha256().digest_size


class TokenShards:
    """(n,) token ids that stay in files; indexed like an array, by a slice or by an array of places."""

    def __init__(self, shards: list[NDArray[Any]], dtype: np.dtype[Any]) -> None:
        self._shards, self.dtype = shards, dtype
        self._stops = np.cumsum([len(shard) for shard in shards], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._stops[-1]) if len(self._stops) else 0

    @property
    def size(self) -> int:
        return len(self)

    def __getitem__(self, at: slice | NDArray[np.int64]) -> NDArray[Any]:
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            if step != 1:
                return self[np.arange(start, stop, step)]
            starts = self._stops - [len(shard) for shard in self._shards]
            parts = [
                shard[max(0, start - first) : max(0, stop - first)]
                for shard, first in zip(self._shards, starts.tolist(), strict=True)
                if first < stop
            ]
            return np.concatenate([np.empty(0, self.dtype), *parts])
        places = at.reshape(-1)
        which = np.searchsorted(self._stops, places, side="right")
        found = np.empty(len(places), self.dtype)
        for number in np.unique(which).tolist():
            chosen = which == number
            shard = self._shards[number]
            found[chosen] = shard[places[chosen] - (self._stops[number] - len(shard))]
        return found.reshape(at.shape)


class EncodableText(Protocol):
    """What is encoded: a split of a text."""

    @property
    def length(self) -> int: ...

    @property
    def sha256(self) -> str: ...

    def pieces(self, start: int = 0) -> Iterator[str]: ...


def token_shards(text: EncodableText, tokenizer: Tokenizer, name: str) -> TokenShards:
    """Return the token ids of a text: from the cache, or encoded now; `name` is shown with the progress. Raises
    InputError: a character without a token, or a folder that cannot be written.
    """
    dtype = token_dtype(tokenizer.vocab_size)
    folder = cache_entry_path("shards", VERSION, SHARD, PART, text.sha256, tokenizer.sha256).with_suffix("")
    place = tr("{folder}: cannot be written", folder=folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = _intact_shards(folder, text.length, dtype)
        if _encoded_length(found) < text.length:
            with _encoding_lock(folder, name):
                found = _intact_shards(folder, text.length, dtype)  # another process may have made them meanwhile
                for left in folder.glob(f"*{STAGED}"):
                    left.unlink()
                _encode(text, tokenizer, folder, found, dtype, name)
    except OSError as error:
        raise write_error(place, error) from None
    return TokenShards([_map_shard(path, dtype) for path in found], dtype)


def token_dtype(vocab_size: int) -> np.dtype[Any]:
    return np.dtype("u1" if vocab_size <= 1 << 8 else "<u2" if vocab_size <= 1 << 16 else "<i4")


def encodable_parts(pieces: Iterable[str], tokenizer: Tokenizer) -> Iterator[str]:
    """Yield a text in parts that encode as the whole would. They depend on the text alone, not on its pieces."""
    held, at, wanted = "", 0, PART
    for piece in pieces:
        held, at = held[at:] + piece, 0
        while len(held) - at >= wanted:
            cut = tokenizer.last_cut(held[at : at + wanted])
            if cut:
                yield held[at : at + cut]
                at, wanted = at + cut, PART
            else:  # no place to cut: look further
                wanted += PART
    if at < len(held):
        yield held[at:]


def _encode(
    text: EncodableText, tokenizer: Tokenizer, folder: Path, found: list[Path], dtype: np.dtype[Any], name: str
) -> None:
    """Write the shards that are not `found`, and add them to it."""
    done = _encoded_length(found)
    most = max(SHARD, -(-text.length // MOST_SHARDS))
    progress = Progress(tr("encoding {name}", name=name), text.length, done)
    parts = encodable_parts(text.pieces(done), tokenizer)
    while done < text.length:
        begun, digest = done, hashlib.sha256()
        staged = folder / f"{len(found):05}{STAGED}"  # nobody else makes it: the folder is locked
        with staged.open("xb") as file:
            try:
                while done < text.length and done - begun < most:
                    part = next(parts)
                    for ids in tokenizer.encode_parts(part):
                        raw = ids.astype(dtype).tobytes()
                        digest.update(raw)
                        file.write(raw)
                    done += len(part)
                    progress.update(done)
                file.write(digest.digest())
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                with contextlib.suppress(OSError):
                    staged.unlink()
                raise
        path = folder / f"{len(found):05}-{done}"
        staged.replace(path)
        found.append(path)


def _encoded_length(found: list[Path]) -> int:
    """Return how many characters of the text these shards have."""
    return int(found[-1].name.partition("-")[2]) if found else 0


def _intact_shards(folder: Path, length: int, dtype: np.dtype[Any]) -> list[Path]:
    """Return the shards that are there, in order, up to the first that is missing or damaged."""
    by_number: dict[int, list[Path]] = {}
    for path in folder.iterdir():
        number, _, stop = path.name.partition("-")
        if number.isdecimal() and stop.isdecimal():
            by_number.setdefault(int(number), []).append(path)
    found: list[Path] = []
    while (done := _encoded_length(found)) < length:
        named = [path for path in by_number.get(len(found), []) if done < _encoded_length([path]) <= length]
        whole = next((path for path in named if _is_whole(path, dtype)), None)
        if whole is None:
            break
        found.append(whole)
    return found


def _is_whole(path: Path, dtype: np.dtype[Any]) -> bool:
    digest = hashlib.sha256()
    if not path.is_file():
        return False
    with open_regular_file(path) as file:  # not mapped: a disk that fails is an error
        left = os.fstat(file.fileno()).st_size - DIGEST
        if left <= 0 or left % dtype.itemsize:
            return False
        while left > 0 and (block := file.read(min(BLOCK, left))):
            digest.update(block)
            left -= len(block)
        return file.read() == digest.digest()


def _map_shard(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    count = (path.stat().st_size - DIGEST) // dtype.itemsize
    return np.memmap(path, dtype=dtype, mode="r", shape=(count,))


@contextlib.contextmanager
def _encoding_lock(folder: Path, name: str) -> Iterator[None]:
    """Wait until no other process is encoding the same text."""
    lock = FileLock(folder / ".lock")
    waiting = Progress(tr("waiting for another process to encode {name}", name=name), 1)
    while True:
        try:
            with lock.acquire(timeout=WAIT):
                yield
                return
        except Timeout:
            waiting.update(0)
