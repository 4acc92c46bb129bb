"""Trained tokenizers in the user's cache folder: the same texts are learned from once.

A file's name is the hash of everything its content depends on, and it holds its own hash: a damaged one is made again.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import tokenizers as hf

from engine.data.cache_files import cache_folder, store
from engine.data.framing import sha256_of_texts
from engine.data.tokenizers.bpe import BpeTokenizer, Progress

VERSION = 1  # of what is kept, and of how it is trained


def bpe_of(texts: Sequence[str], size: int, progress: Progress | None = None) -> BpeTokenizer:
    """The BPE tokenizer of these texts: from the cache, or trained now and kept for the next time.

    Args:
        texts: what it learns from; for a shared vocabulary the sources followed by the targets.
        size: tokens, the 256 bytes among them.
        progress: as in `BpeTokenizer.trained`; not called where nothing has to be trained.

    Raises:
        InputError: as `BpeTokenizer.trained`.
    """
    made_by = json.dumps([VERSION, hf.__version__, size, sha256_of_texts(texts)])
    path = cache_folder() / "tokenizers" / f"{hashlib.sha256(made_by.encode()).hexdigest()}.json"
    found = _load(path)
    if found is not None:
        return found
    made = BpeTokenizer.trained(texts, size, progress)
    content = json.dumps({"sha256": made.sha256, "tokenizer": json.loads(made.to_json())})
    store(path, lambda file: file.write(content.encode()))
    return made


def _load(path: Path) -> BpeTokenizer | None:
    try:
        data = json.loads(path.read_bytes())
        found = BpeTokenizer.from_json(data["tokenizer"])
        return found if found.sha256 == data["sha256"] else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
