"""Encoded corpora in the user's cache folder, so that a large text is tokenised once and then mapped into memory.

A file's name is the hash of everything its content depends on (text, tokenizer settings, version): a stale one is never
found. It is written whole under another name first: a reader sees all of it or nothing. Losing it costs time only.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from platformdirs import user_cache_path
from torch import Tensor

CACHE_VERSION = 1
SMALLEST = 1_000_000  # characters; less is encoded faster than it is looked up


def cache_folder() -> Path:
    """TUI_TRANSFORMER_CACHE, or the platform's cache folder."""
    own = os.environ.get("TUI_TRANSFORMER_CACHE")
    return Path(own) if own else user_cache_path("tui-transformer")


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
        _store(path, ids)
        return torch.from_numpy(ids)
    return torch.from_numpy(found)


def _load(path: Path) -> np.ndarray | None:
    try:
        # Copy-on-write: torch wants writable memory, and nothing may be written back.
        found = np.load(path, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return found if found.dtype == np.int32 and found.ndim == 1 else None


def _store(path: Path, ids: np.ndarray) -> None:
    staged: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".new", delete=False) as file:
            staged = Path(file.name)
            np.save(file, ids, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        staged.replace(path)
    except OSError:  # no room or no permission: a cache is never worth a failure
        if staged is not None:
            with contextlib.suppress(OSError):
                staged.unlink()
