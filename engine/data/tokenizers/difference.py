"""How two tokenizers differ, in a few words: weights that were trained with one mean nothing to the other."""

from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.characters import CharacterTokenizer
from engine.data.tokenizers.load import AnyTokenizer
from engine.data.tokenizers.pair import PairTokenizer
from engine.data.tokenizers.protocol import Tokenizer
from engine.data.tokenizers.words import WordTokenizer


def described(tokenizer: AnyTokenizer | Tokenizer) -> str:
    """`61 characters`, `8,000 bpe`, `8,000 bpe for both sides`."""
    if isinstance(tokenizer, PairTokenizer):
        if tokenizer.shared:
            return f"{described(tokenizer.target)} for both sides"
        return f"{described(tokenizer.source)} for sources, {described(tokenizer.target)} for targets"
    return f"{tokenizer.vocab_size:,} {tokenizer.kind}"


def difference(one: AnyTokenizer | Tokenizer, other: AnyTokenizer | Tokenizer) -> str:
    """What is the first thing that differs: kind, size, or a token; "" where they encode every text alike.

    Args:
        one: named first.
        other: what it is held against.
    """
    if one.sha256 == other.sha256:
        return ""
    if one.kind != other.kind:
        return f"kind '{one.kind}' against '{other.kind}'"
    if isinstance(one, PairTokenizer) and isinstance(other, PairTokenizer):
        sides = (("sources", one.source, other.source), ("targets", one.target, other.target))
        return next(f"of the {side}: {found}" for side, a, b in sides if (found := difference(a, b)))
    sizes = "" if one.vocab_size == other.vocab_size else f"{described(one)} against {described(other)}; "
    ours, theirs = _tokens(one), _tokens(other)
    for place, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        if a != b:
            return f"{sizes}token {place} is {a} against {b}"
    return f"{sizes}the first {min(len(ours), len(theirs)):,} are the same"


def _tokens(tokenizer: AnyTokenizer | Tokenizer) -> list[str]:
    """Every token as it can be printed, in the order of their ids."""
    if isinstance(tokenizer, CharacterTokenizer):
        return [f"{c!a} (U+{ord(c):04X})" for c in tokenizer.characters]
    if isinstance(tokenizer, BpeTokenizer):
        return [ascii(piece.decode(errors="replace")) for piece in tokenizer.pieces]
    if isinstance(tokenizer, WordTokenizer):
        return [ascii(word) for word in tokenizer.words]
    return []
