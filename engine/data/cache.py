"""Encoded corpora in the user's cache folder, so that a large text is tokenised once and then mapped into memory.

A file's name is the hash of everything its content depends on (text, tokenizer settings, version): a stale one is never
found.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.data.cache_files import cache_folder, store

CACHE_VERSION = 1
SMALLEST = 1_000_000  # characters; less is encoded faster than it is looked up


def key_of(text_sha256: str, tokenizer_sha256: str) -> str:
    """The name under which the tokens of a text are kept."""
    parts = json.dumps([CACHE_VERSION, text_sha256, tokenizer_sha256])
    return hashlib.sha256(parts.encode()).hexdigest()


def tokens_of(length: int, text_sha256: str, tokenizer_sha256: str, encode: Callable[[], np.ndarray]) -> Tensor:
    """(n,) token ids: from the cache, or encoded now and kept for the next time.

    Args:
        length: characters of the text; small texts are not kept.
        text_sha256: what the tokens are of.
        tokenizer_sha256: how they were made.
        encode: makes them, int64.
    """
    if length < SMALLEST:
        return torch.from_numpy(encode())
    path = cache_folder() / "tokens" / f"{key_of(text_sha256, tokenizer_sha256)}.npy"
    found = _load(path)
    if found is None:
        ids = encode().astype(np.int32)
        store(path, lambda file: np.save(file, ids, allow_pickle=False))
        return torch.from_numpy(ids)
    return torch.from_numpy(found)


def _load(path: Path) -> np.ndarray | None:
    try:
        # Copy-on-write: torch wants writable memory, and nothing may be written back.
        found = np.load(path, mmap_mode="c", allow_pickle=False)
    except Exception:  # missing, or damaged in any way there is: it is made again
        return None
    whole = isinstance(found, np.ndarray) and found.dtype == np.int32 and found.ndim == 1  # an archive is none
    return found if whole else None
