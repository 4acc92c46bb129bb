"""Text to token ids and back. A tokenizer is part of a checkpoint: without it, weights mean nothing.

None has special tokens: a start, end or mask token is numbered after `vocab_size` by its user.
"""

from engine.data.tokenizers.bpe import BpeTokenizer, cached_bpe
from engine.data.tokenizers.characters import CharacterTokenizer
from engine.data.tokenizers.load import PairTokenizer, describe, difference, read_any_tokenizer, read_tokenizer
from engine.data.tokenizers.protocol import AnyTokenizer, Tokenizer
from engine.data.tokenizers.single_bytes import ByteTokenizer
from engine.data.tokenizers.tagged import TaggedTokenizer
from engine.data.tokenizers.text_words import TextWordTokenizer
from engine.data.tokenizers.words import WordTokenizer

__all__ = [
    "AnyTokenizer",
    "BpeTokenizer",
    "ByteTokenizer",
    "CharacterTokenizer",
    "PairTokenizer",
    "TaggedTokenizer",
    "TextWordTokenizer",
    "Tokenizer",
    "WordTokenizer",
    "cached_bpe",
    "describe",
    "difference",
    "read_any_tokenizer",
    "read_tokenizer",
]
