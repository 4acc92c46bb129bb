"""Load and compare a run's tokenizer from tokenizer.json: one of six kinds, or a pair; or read one that others made.

tokenizer.json is untrusted: it is data, never code, and damage gives a one-line error.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.base.errors import InputError, damage_description, join_or
from engine.base.language import Message, tr
from engine.base.plain_files import read_regular_file
from engine.data.corpus import END_OF_TEXT
from engine.data.tokenizers.bpe import SIGNS, BpeTokenizer
from engine.data.tokenizers.characters import CharacterTokenizer
from engine.data.tokenizers.protocol import SCHEMA, AnyTokenizer, Tokenizer
from engine.data.tokenizers.single_bytes import ByteTokenizer
from engine.data.tokenizers.tagged import TaggedTokenizer
from engine.data.tokenizers.text_words import TextWordTokenizer
from engine.data.tokenizers.words import WordTokenizer

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
        made = {"schema": SCHEMA, "kind": self.kind, "source": json.loads(self.source.to_json()), "target": target}
        return json.dumps(made, separators=(",", ":"))


# Kind → the tokenizer that a tokenizer.json of it defines. A pair is not among them: it has two.
PARSERS: dict[str, Callable[[Any], Tokenizer]] = {
    CharacterTokenizer.kind: lambda data: CharacterTokenizer(data["characters"]),
    BpeTokenizer.kind: lambda data: BpeTokenizer.from_json(data["merges"], end_of_text=bool(data.get("end_of_text"))),
    WordTokenizer.kind: lambda data: WordTokenizer.from_json(data["words"]),
    ByteTokenizer.kind: lambda data: ByteTokenizer(),
    TextWordTokenizer.kind: lambda data: TextWordTokenizer.from_json(
        data["vocabulary"]["words"], spaced=data["vocabulary"]["spaced"]
    ),
    TaggedTokenizer.kind: lambda data: TaggedTokenizer(_parse_plain(data["of"]["tokenizer"]), data["of"]["tags"]),
}


def _parse_plain(data: Any) -> Tokenizer:
    found = parse(data)
    if found.is_pair or found.target.tags:
        raise ValueError(tr("only a plain tokenizer can have tags"))
    return found.target


def parse(data: Any) -> AnyTokenizer:
    schema, kind = data["schema"], data["kind"]
    if schema != SCHEMA:
        problem = tr(
            "written by another version (schema {schema!r:.20}; this version reads {schema2})",
            schema=schema,
            schema2=SCHEMA,
        )
        raise ValueError(problem)
    if kind == PairTokenizer.kind:
        source = parse(data["source"])
        target = source if data["target"] is None else parse(data["target"])
        if source.is_pair or target.is_pair:
            raise ValueError(tr("a pair must consist of two tokenizers, not of pairs"))
        return PairTokenizer(source.source, target.target)
    if not isinstance(kind, str) or kind not in PARSERS:
        known = join_or((*PARSERS, PairTokenizer.kind))
        problem = tr(
            "unknown kind of tokenizer {kind!r:.40}: it must be {known}; is the file from a newer version?",
            kind=kind,
            known=known,
        )
        raise ValueError(problem)
    return PARSERS[kind](data)


def read_tokenizer(path: Path) -> AnyTokenizer:
    """Read a run's tokenizer.json. Raises InputError: it cannot be read, or is damaged."""
    return _read(path, parse)


MERGES = ("merges.txt", "vocab.bpe")  # GPT-2's file of merges, by either of its names


def read_any_tokenizer(place: Path) -> Tokenizer:
    """Read the tokenizer of a text from tokenizer.json, a run's or that of Hugging Face `tokenizers` with byte-level
    BPE, from GPT-2's merges, or from a folder that has one of them. Raises InputError: there is none, it is damaged,
    or it is of another kind.
    """
    path = place
    if place.is_dir():
        names = ("tokenizer.json", *MERGES)
        path = next((place / name for name in names if (place / name).is_file()), place / names[0])
    found = _read(path, _parse_merges if path.name in MERGES else _parse_any_json)
    if found.is_pair:
        raise InputError(
            Message("{path}: this file has a tokenizer for each side; plain text needs just one", path=path)
        )
    return found.target


def _parse_any_json(data: Any) -> AnyTokenizer:
    if not isinstance(data, dict) or "schema" in data or "model" not in data:
        return parse(data)
    model, split = data["model"], data.get("pre_tokenizer") or {}
    plain = split.get("type") == "ByteLevel" and not split.get("add_prefix_space") and split.get("use_regex", True)
    if model.get("type") != "BPE" or not plain or data.get("normalizer") is not None:
        raise ValueError(tr("only byte-level BPE with GPT-2's pre-tokenization can be read"))
    merges = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
    ends = any(one.get("content") == END_OF_TEXT for one in data.get("added_tokens") or ())
    return _bpe_from_symbols(merges, end_of_text=ends)


def _parse_merges(text: str) -> AnyTokenizer:
    lines = [line for line in text.split("\n") if line and not line.startswith("#version")]
    return _bpe_from_symbols([line.rstrip("\r").split(" ") for line in lines], end_of_text=True)


def _bpe_from_symbols(merges: list[list[str]], *, end_of_text: bool) -> BpeTokenizer:
    """The BPE of merges whose tokens are named by GPT-2's printable characters, one a byte."""
    ids = {sign: byte for byte, sign in enumerate(SIGNS)}
    pairs = []
    for number, merge in enumerate(merges, start=1):
        if len(merge) != 2 or not all(token in ids for token in merge):
            raise ValueError(tr("merge {number} joins a token that does not exist", number=number))
        left, right = merge
        pairs.append((ids[left], ids[right]))
        ids.setdefault(left + right, len(ids))
    return BpeTokenizer.from_json(pairs, end_of_text=end_of_text)


def _read(path: Path, parser: Callable[[Any], AnyTokenizer]) -> AnyTokenizer:
    try:
        raw = read_regular_file(path, MAX_BYTES)
        if raw.count(b",") > MOST_VALUES:
            raise ValueError(tr("too many tokens for a tokenizer"))
        text = raw.decode("utf-8")
        return parser(text if path.name in MERGES else json.loads(text))
    except (AttributeError, KeyError, TypeError) as error:
        problem = Message("{path}: cannot read this tokenizer: {damaged}", path=path, damaged=damage_description(error))
        raise InputError(problem) from None
    except (OSError, ValueError, RecursionError, InputError) as error:
        raise InputError(Message("{path}: cannot read this tokenizer: {error}", path=path, error=error)) from None


def describe(tokenizer: AnyTokenizer) -> str:
    """Return `61 characters`, `8,000 bpe`, `8,000 bpe for both sides`."""
    if tokenizer.is_pair:
        if tokenizer.shared:
            return Message("{described} for both sides", described=describe(tokenizer.target))
        return Message(
            "{described} for sources, {described2} for targets",
            described=describe(tokenizer.source),
            described2=describe(tokenizer.target),
        )
    tags = len(tokenizer.target.tags)
    if tags:
        plain = tokenizer.target.untagged
        return Message("{described} and {tags} tags", described=describe(plain), tags=tags)
    return f"{tokenizer.vocab_size:,} {tokenizer.kind}"


def difference(one: AnyTokenizer, other: AnyTokenizer) -> str:
    """Return the first difference: kind, size, or a token; "" if they encode every text alike."""
    if one.sha256 == other.sha256:
        return ""
    if one.kind != other.kind:
        return Message("kind '{kind}' vs '{kind2}'", kind=one.kind, kind2=other.kind)
    if one.is_pair:
        sides = (("sources", one.source, other.source), ("targets", one.target, other.target))
        return next(
            Message("{side}: {found}", side=side, found=found) for side, a, b in sides if (found := difference(a, b))
        )
    sizes = ""
    if one.vocab_size != other.vocab_size:
        sizes = Message("{described} vs {described2}; ", described=describe(one), described2=describe(other))
    both = min(one.vocab_size, other.vocab_size)
    for token in range(both):
        a, b = _token_text(one.target, token), _token_text(other.target, token)
        if a != b:
            return Message("{sizes}token {token} is {a} vs {b}", sizes=sizes, token=token, a=a, b=b)
    return Message("{sizes}the first {both:,} tokens are the same", sizes=sizes, both=both)


def _token_text(tokenizer: Tokenizer, token: int) -> str:
    text = tokenizer.decode([token])
    return f"{text!r} (U+{ord(text):04X})" if tokenizer.kind == CharacterTokenizer.kind else repr(text)
