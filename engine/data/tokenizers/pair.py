"""The two sides of a translation: a tokenizer each, or one for both."""

import json

from engine.data.tokenizers.protocol import SCHEMA, Tokenizer, sha256_of_json


class PairTokenizer:
    """What the encoder reads and what the decoder writes.

    Args:
        source: of the encoder's text.
        target: of the decoder's text; the same object, or an equal one, where the vocabulary is shared.
    """

    kind = "pair"

    def __init__(self, source: Tokenizer, target: Tokenizer) -> None:
        self.source = source
        self.target = source if target is source or target.sha256 == source.sha256 else target

    @property
    def shared(self) -> bool:
        """One vocabulary for both sides: embeddings may be tied across them."""
        return self.target is self.source

    @property
    def vocab_size(self) -> int:
        """How many tokens the decoder writes with."""
        return self.target.vocab_size

    @property
    def source_vocab_size(self) -> int:
        """How many tokens the encoder reads."""
        return self.source.vocab_size

    def to_json(self) -> str:
        """Both as JSON text; a shared one stands there once."""
        target = None if self.shared else json.loads(self.target.to_json())
        return json.dumps(
            {"schema": SCHEMA, "kind": self.kind, "source": json.loads(self.source.to_json()), "target": target},
            ensure_ascii=True,
            separators=(",", ":"),
        )

    @property
    def sha256(self) -> str:
        """The hash of its JSON: two runs with the same hash encode text alike."""
        return sha256_of_json(self.to_json())
