"""Reading tokenizer.json. It may come from anywhere: it is data, never code, and damage is one clear line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.characters import CharacterTokenizer
from engine.data.tokenizers.pair import PairTokenizer
from engine.data.tokenizers.protocol import SCHEMA
from engine.data.tokenizers.words import WordTokenizer
from engine.errors import InputError, damaged, one_of
from engine.plain_files import read_plain

MAX_BYTES = 64 * 1024**2
MOST_VALUES = 3_000_000  # a million merges have two million; more would take gigabytes as objects

AnyTokenizer = CharacterTokenizer | BpeTokenizer | WordTokenizer | PairTokenizer


def _pair(data: dict[str, Any]) -> PairTokenizer:
    source = parsed(data["source"])
    target = source if data["target"] is None else parsed(data["target"])
    if isinstance(source, PairTokenizer) or isinstance(target, PairTokenizer):
        raise ValueError("a pair is made of two tokenizers, not of pairs")
    return PairTokenizer(source, target)


KINDS: dict[str, Callable[[dict[str, Any]], AnyTokenizer]] = {
    CharacterTokenizer.kind: CharacterTokenizer.from_json,
    BpeTokenizer.kind: BpeTokenizer.from_json,
    WordTokenizer.kind: WordTokenizer.from_json,
    PairTokenizer.kind: _pair,
}


def parsed(data: dict[str, Any]) -> AnyTokenizer:
    """The tokenizer of a parsed JSON object.

    Raises:
        ValueError, KeyError, TypeError, InputError: of another version, or damaged.
    """
    schema, kind = data["schema"], data["kind"]
    if schema != SCHEMA:
        raise ValueError(f"written by another version (schema {schema!r:.20}; this one reads {SCHEMA})")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(
            f"unknown kind of tokenizer {kind!r:.40}; {one_of(KINDS)} is known: is it from a newer version?"
        )
    return KINDS[kind](data)


def read_tokenizer(path: Path) -> AnyTokenizer:
    """The tokenizer saved with a run or checkpoint, of whatever kind.

    Raises:
        InputError: missing, damaged, too large, or of another version.
    """
    try:
        raw = read_plain(path, MAX_BYTES)
        if raw.count(b",") > MOST_VALUES:
            raise ValueError("more tokens than any tokenizer has")
        return parsed(json.loads(raw.decode("utf-8")))
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: cannot read this tokenizer: {damaged(error)}") from None
    except (OSError, ValueError, RecursionError, InputError) as error:
        raise InputError(f"{path}: cannot read this tokenizer: {error}") from None
