"""The whole network, and `build_model`, which makes it from a config.

Notation: B batch, T time, D model width, V vocabulary.
"""

import math

import torch
from torch import Tensor, nn

from engine.config.schema import ModelConfig
from engine.model.cache import Cache
from engine.model.initialisation import initialise
from engine.model.layers import DecoderLayer, make_norm
from engine.model.positions import make_schemes
from engine.model.span import Span
from engine.model.visibility import self_attention


class DecoderLM(nn.Module):
    """A language model: each token is predicted from those before it (GPT: Radford et al. 2018).

    tokens → embedding (+ positions) → n_layers × [self-attention, feed-forward] → norm → head → logits
    """

    def __init__(self, model: ModelConfig, vocab_size: int) -> None:
        super().__init__()
        self.config, self.vocab_size = model, vocab_size
        schemes = make_schemes(model, model.n_layers)
        see = self_attention(model)
        self.token_embedding = nn.Embedding(vocab_size, model.d_model)
        self.positions = schemes[0]
        self.embedding_dropout = nn.Dropout(model.embedding_dropout)
        self.layers = nn.ModuleList(DecoderLayer(model, see, scheme) for scheme in schemes)
        self.final_norm = make_norm(model) if model.final_norm else nn.Identity()
        self.head = nn.Linear(model.d_model, vocab_size, bias=model.head_bias)
        if model.tie_embeddings:  # Press and Wolf 2017
            self.head.weight = self.token_embedding.weight

    def forward(self, tokens: Tensor, at: Span | None = None, cache: Cache | None = None) -> Tensor:
        """Logits of the next token at every position.

        Args:
            tokens: (B, T) int64.
            at: their absolute positions; by default in a row, after what the cache holds.
            cache: the decoder's memory, extended in place.

        Returns:
            (B, T, V).

        Raises:
            ValueError: a position past the learned table.
        """
        if at is None:
            at = Span.run(tokens.shape[1], cache.length if cache else 0, tokens.device)
        longest = self.positions.longest
        if longest is not None and at.start is not None and at.start + at.length > longest:
            raise ValueError(f"position {at.start + at.length - 1} is past the {longest} learned positions")
        x = self.token_embedding(tokens)  # (B, T, D)
        if self.config.embedding_scale:
            x = x * math.sqrt(self.config.d_model)
        table = self.positions.embed(at.index)
        if table is not None:
            x = x + table.to(x.dtype)
        x = self.embedding_dropout(x)
        for i, layer in enumerate(self.layers):
            x = layer(x, at, cache.layers[i] if cache else None)
        if cache is not None:
            cache.length += tokens.shape[1]
        logits: Tensor = self.head(self.final_norm(x))
        return logits

    def new_cache(self) -> Cache:
        """An empty cache for incremental decoding."""
        return Cache.of(len(self.layers))


def build_model(model: ModelConfig, vocab_size: int, seed: int, device: torch.device | str = "cpu") -> DecoderLM:
    """The network of a config with its initial weights, fp32, in training mode.

    Args:
        model: what to build; `model.vocab_size`, where set, may be larger than the tokenizer's.
        vocab_size: the tokenizer's size in tokens.
        seed: the run's seed; equal seeds give equal weights on every device.
        device: where to put it.

    Raises:
        ValueError: `model.vocab_size` is smaller than the tokenizer's.
    """
    size = model.vocab_size or vocab_size
    if size < vocab_size:
        raise ValueError(f"model.vocab_size {size} is smaller than the tokenizer's {vocab_size}")
    with torch.device("meta"):
        network = DecoderLM(model, size)
    network.to_empty(device=device)
    if model.tie_embeddings:
        network.head.weight = network.token_embedding.weight  # to_empty gives each its own storage
    initialise(network, model, seed)
    return network
