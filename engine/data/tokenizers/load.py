"""Load and compare a run's tokenizer from tokenizer.json: one of three kinds, or a pair.

tokenizer.json is untrusted: it is data, never code, and damage gives a one-line error.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.characters import CharacterTokenizer
from engine.data.tokenizers.protocol import SCHEMA, AnyTokenizer, Tokenizer
from engine.data.tokenizers.words import WordTokenizer
from engine.errors import InputError, damaged, one_of
from engine.language import english, tr
from engine.plain_files import read_plain

MAX_BYTES = 64 * 1024**2
MOST_VALUES = 3_000_000  # a million merges have two million; more would take gigabytes as objects


class PairTokenizer(AnyTokenizer):
    """The encoder's and the decoder's tokenizers; the same, or equal ones, if the vocabulary is shared."""

    kind, is_pair = "pair", True

    def __init__(self, source: Tokenizer, target: Tokenizer) -> None:
        self._sides = source, source if target is source or target.sha256 == source.sha256 else target

    @property
    def sides(self) -> tuple[Tokenizer, Tokenizer]:
        return self._sides

    @property
    def vocab_size(self) -> int:
        return self.target.vocab_size

    def to_json(self) -> str:
        target = None if self.shared else json.loads(self.target.to_json())
        return json.dumps(
            {"schema": SCHEMA, "kind": self.kind, "source": json.loads(self.source.to_json()), "target": target},
            separators=(",", ":"),
        )


# Kind → the field of tokenizer.json that defines it, and its constructor; a pair has two.
KINDS: dict[str, tuple[str, Callable[[Any], Tokenizer]]] = {
    CharacterTokenizer.kind: ("characters", CharacterTokenizer),
    BpeTokenizer.kind: ("merges", BpeTokenizer.from_json),
    WordTokenizer.kind: ("words", WordTokenizer.from_json),
}


def parsed(data: Any) -> AnyTokenizer:
    schema, kind = data["schema"], data["kind"]
    if schema != SCHEMA:
        raise ValueError(
            tr(
                "written by another version (schema {schema!r:.20}; this version reads {schema2})",
                schema=schema,
                schema2=SCHEMA,
            )
        )
    if kind == PairTokenizer.kind:
        source = parsed(data["source"])
        target = source if data["target"] is None else parsed(data["target"])
        if source.is_pair or target.is_pair:
            raise ValueError(tr("a pair must consist of two tokenizers, not of pairs"))
        return PairTokenizer(source.source, target.target)
    if not isinstance(kind, str) or kind not in KINDS:
        known = one_of((*KINDS, PairTokenizer.kind))
        raise ValueError(
            tr(
                "unknown kind of tokenizer {kind!r:.40}: it must be {known}; is the file from a newer version?",
                kind=kind,
                known=known,
            )
        )
    field, make = KINDS[kind]
    return make(data[field])


def read_tokenizer(path: Path) -> AnyTokenizer:
    try:
        raw = read_plain(path, MAX_BYTES)
        if raw.count(b",") > MOST_VALUES:
            raise ValueError(tr("too many tokens for a tokenizer"))
        return parsed(json.loads(raw.decode("utf-8")))
    except (KeyError, TypeError) as error:
        raise InputError(
            tr("{path}: cannot read this tokenizer: {damaged}", path=path, damaged=damaged(error))
        ) from None
    except (OSError, ValueError, RecursionError, InputError) as error:
        raise InputError(tr("{path}: cannot read this tokenizer: {error}", path=path, error=error)) from None


def described(tokenizer: AnyTokenizer) -> str:
    """Return `61 characters`, `8,000 bpe`, `8,000 bpe for both sides`."""
    if tokenizer.is_pair:
        if tokenizer.shared:
            return english("{described} for both sides", described=described(tokenizer.target))
        return english(
            "{described} for sources, {described2} for targets",
            described=described(tokenizer.source),
            described2=described(tokenizer.target),
        )
    return f"{tokenizer.vocab_size:,} {tokenizer.kind}"


def difference(one: AnyTokenizer, other: AnyTokenizer) -> str:
    """Return the first difference: kind, size, or a token; "" if they encode every text alike."""
    if one.sha256 == other.sha256:
        return ""
    if one.kind != other.kind:
        return english("kind '{kind}' vs '{kind2}'", kind=one.kind, kind2=other.kind)
    if one.is_pair:
        sides = (("sources", one.source, other.source), ("targets", one.target, other.target))
        return next(
            english("{side}: {found}", side=side, found=found) for side, a, b in sides if (found := difference(a, b))
        )
    sizes = (
        ""
        if one.vocab_size == other.vocab_size
        else english("{described} vs {described2}; ", described=described(one), described2=described(other))
    )
    both = min(one.vocab_size, other.vocab_size)
    for token in range(both):
        a, b = _shown(one.target, token), _shown(other.target, token)
        if a != b:
            return english("{sizes}token {token} is {a} vs {b}", sizes=sizes, token=token, a=a, b=b)
    return english("{sizes}the first {both:,} tokens are the same", sizes=sizes, both=both)


def _shown(tokenizer: Tokenizer, token: int) -> str:
    text = tokenizer.decode([token])
    return f"{text!r} (U+{ord(text):04X})" if tokenizer.kind == CharacterTokenizer.kind else repr(text)
