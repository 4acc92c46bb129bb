"""Encoded corpora and slow-to-compute numbers in the user's cache folder: computed once, then mapped into memory.

A file's name is the hash of everything its content depends on (text, settings, version): a stale one is never
found. It ends with its own hash: a damaged one is made again.
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
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.data.cache_files import cache_folder, store

CACHE_VERSION = 2
BLOCK = 1 << 20  # bytes read at once
SMALLEST = 1_000_000  # characters; less is encoded faster than it is looked up


def key_of(text_sha256: str, tokenizer_sha256: str) -> str:
    """The name under which the tokens of a text are kept."""
    parts = json.dumps([CACHE_VERSION, text_sha256, tokenizer_sha256])
    return hashlib.sha256(parts.encode()).hexdigest()


def tokens_of(
    length: int, text_sha256: str, tokenizer_sha256: str, pieces: Callable[[], Iterator[NDArray[np.int32]]]
) -> Tensor:
    """(n,) token ids: from the cache, or encoded now and kept for the next time.

    Args:
        length: of the text, in tokens; small texts are not kept.
        text_sha256: what the tokens are of.
        tokenizer_sha256: how they were made.
        pieces: makes them, some at a time: the tokens of a large text go into a file before they are all there.
    """
    if length < SMALLEST:
        return torch.from_numpy(np.concatenate([np.empty(0, np.int64), *pieces()], dtype=np.int64))
    path = cache_folder() / "tokens" / f"{key_of(text_sha256, tokenizer_sha256)}.npy"
    found = _load(path, np.int32)
    if found is None:
        store(path, lambda file: _write(file, length, np.int32, pieces()))
        found = _load(path, np.int32)
    if found is None:  # no room for a file
        found = np.concatenate(list(pieces()))
    return torch.from_numpy(found)


def numbers_of(folder: str, parts: Sequence[str | int], make: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]:
    """(n,) numbers that take seconds to compute: from the cache, or computed now and cached.

    Args:
        folder: in the cache folder.
        parts: everything the numbers depend on, starting with the version of the code that computes them.
        make: computes them.
    """
    name = hashlib.sha256(json.dumps([CACHE_VERSION, *parts]).encode()).hexdigest()
    path = cache_folder() / folder / f"{name}.npy"
    found = _load(path, np.float64)
    if found is None:
        found = make()
        store(path, lambda file: _write(file, len(found), np.float64, iter((found,))))
    return found


def _write(file: IO[bytes], length: int, kind: type[np.generic], pieces: Iterator[NDArray[Any]]) -> None:
    """An npy file, without the whole of it in memory, and its hash."""
    descr, header, found = np.lib.format.dtype_to_descr(np.dtype(kind)), io.BytesIO(), hashlib.sha256()
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": (length,)})
    for part in chain([header.getvalue()], (piece.tobytes() for piece in pieces)):
        found.update(part)
        file.write(part)
    file.write(found.digest())


def _digest(file: IO[bytes], length: int) -> bytes:
    """The SHA-256 of a file's first bytes; leaves it at their end. Read, not mapped: a disk that fails is an error."""
    found = hashlib.sha256()
    while length > 0 and (block := file.read(min(BLOCK, length))):
        found.update(block)
        length -= len(block)
    return found.digest()


def _load(path: Path, kind: type[np.generic]) -> NDArray[Any] | None:
    try:
        with path.open("rb") as file:
            digest = _digest(file, os.fstat(file.fileno()).st_size - hashlib.sha256().digest_size)
            if file.read() != digest:
                return None
        # Copy-on-write: torch wants writable memory, and nothing may be written back.
        found = np.load(path, mmap_mode="c", allow_pickle=False)
    except Exception:  # missing, or damaged in any way there is: it is made again
        return None
    whole = isinstance(found, np.ndarray) and found.dtype == kind and found.ndim == 1  # an archive is not
    return found if whole else None
