"""Results that take seconds to compute, kept in the user's cache folder. No torch here.

A file is named by the hash of everything it depends on (text, settings, version), so a stale one is never found.
Encoded corpora and slow-to-compute numbers end with their own hash: a damaged file is rebuilt.
"""

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from engine.base.cache_folder import cache_folder, try_write_atomically

CACHE_VERSION = 2
BLOCK = 1 << 20  # bytes per read
RECORD_DIGEST = 64  # bytes after a record: its hash
MIN_CACHED_LENGTH = 1_000_000  # characters; encoding less is faster than a lookup


def cached_tokens(
    length: int,
    text_sha256: str,
    tokenizer_sha256: str,
    pieces: Callable[[], Iterator[NDArray[np.int32]]],
    *,
    per_character: bool = True,
) -> NDArray[Any]:
    """Return (n,) token ids of a text of `length` characters: from the cache, or encoded now and cached. `pieces`
    yields them in parts: those of a large text are written as they come, if there is one per character (`counted`).
    """
    if length < MIN_CACHED_LENGTH:
        return np.concatenate([np.empty(0, np.int64), *pieces()], dtype=np.int64)
    path = cache_entry_path("tokens", text_sha256, tokenizer_sha256)
    found = _load(path, np.int32)
    if found is None:
        if not per_character:  # the file's header needs their number
            made = np.concatenate([np.empty(0, np.int32), *pieces()])
            try_write_atomically(path, lambda file: _write(file, len(made), np.int32, iter((made,))))
            return made
        try_write_atomically(path, lambda file: _write(file, length, np.int32, pieces()))
        found = _load(path, np.int32)
    return np.concatenate(list(pieces())) if found is None else found  # if there is no room for a file


def cached_numbers(
    folder: str, parts: Sequence[str | int], make: Callable[[], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return (n,) numbers that take seconds to compute: from the cache, or computed now and cached. `parts` is
    everything they depend on, starting with the version of the code that computes them.
    """
    path = cache_entry_path(folder, *parts)
    found = _load(path, np.float64)
    if found is None:
        found = make()
        try_write_atomically(path, lambda file: _write(file, len(found), np.float64, iter((found,))))
    return found


def cached_record(folder: str, parts: Sequence[Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return a record of facts that take seconds to find: from the cache, or found now and cached. `parts` as above."""
    path = cache_entry_path(folder, *parts).with_suffix(".json")
    try:
        raw = path.read_bytes()
        body, digest = raw[:-RECORD_DIGEST], raw[-RECORD_DIGEST:]
        if hashlib.sha256(body).hexdigest().encode() == digest:
            kept = json.loads(body)
            if isinstance(kept, dict):
                return kept
    except (OSError, ValueError):  # missing or damaged: it is made again
        pass
    made = make()
    body = json.dumps(made).encode()
    try_write_atomically(path, lambda file: file.write(body + hashlib.sha256(body).hexdigest().encode()))
    return made


def cache_entry_path(folder: str, *parts: Any) -> Path:
    """Return the place of a file that depends on `parts`."""
    name = hashlib.sha256(json.dumps([CACHE_VERSION, *parts]).encode()).hexdigest()
    return cache_folder() / folder / f"{name}.npy"


def _write(file: IO[bytes], length: int, kind: type[np.generic], pieces: Iterator[NDArray[Any]]) -> None:
    """Stream an npy file and its hash to disk."""
    descr, header, found = np.lib.format.dtype_to_descr(np.dtype(kind)), io.BytesIO(), hashlib.sha256()
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": (length,)})
    for part in chain([header.getvalue()], (piece.tobytes() for piece in pieces)):
        found.update(part)
        file.write(part)
    file.write(found.digest())


def _load(path: Path, kind: type[np.generic]) -> NDArray[Any] | None:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            left = os.fstat(file.fileno()).st_size - digest.digest_size
            while left > 0 and (block := file.read(min(BLOCK, left))):  # not mapped: a disk that fails is an error
                digest.update(block)
                left -= len(block)
            if file.read() != digest.digest():
                return None
        # Copy-on-write: torch wants writable memory, and nothing may be written back.
        found = np.load(path, mmap_mode="c", allow_pickle=False)
    except Exception:  # missing or damaged in any way: it is rebuilt
        return None
    whole = isinstance(found, np.ndarray) and found.dtype == kind and found.ndim == 1  # an archive is not
    return found if whole else None
