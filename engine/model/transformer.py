"""The complete networks, and `build_model`, which builds one from a config.

Notation: B batch, T time, S source time, D model width, V vocabulary.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

from engine.base.language import tr
from engine.config.model import ModelConfig
from engine.config.visibility import self_attention
from engine.model.attention import soft_cap
from engine.model.cache import Cache
from engine.model.dropout import Dropout
from engine.model.heads import ForwardContext, SelfAttention
from engine.model.initialisation import initialise
from engine.model.layers import Layer, make_norm
from engine.model.positions import Positions, PositionScheme, make_schemes, make_zero_embedding


class Stack(nn.Module):
    """Embedded tokens → (+ positions) → n_layers × layer → norm."""

    def __init__(
        self, model: ModelConfig, n_layers: int, longest: int, *, causal: bool, over_source: bool = False
    ) -> None:
        super().__init__()
        self.config = model
        schemes = make_schemes(model, n_layers, longest, causal=causal)
        kinds = [model.layer_config(i) for i in range(n_layers)]
        shared = {kind.position: scheme for kind, scheme in zip(kinds, schemes, strict=True) if scheme.shared}
        self.positions = shared.pop(model.position) if model.position in shared else PositionScheme()
        if shared:  # of layers whose position is not the model's
            self.layer_positions = nn.ModuleDict(shared)
        self.embedding_dropout = Dropout(model.embedding_dropout)
        self.layers = nn.ModuleList(
            Layer(kind, self_attention(kind, causal=causal), schemes[i], i, n_layers, over_source=over_source)
            for i, kind in enumerate(kinds)
        )
        self.checkpointing = False
        """Keep only each layer's input, and recompute the rest in the backward pass (Chen et al. 2016)."""
        self.final_norm = make_norm(model) if model.final_norm else nn.Identity()

    def run_layers(
        self,
        x: Tensor,
        at: Positions,
        cache: Cache | None = None,
        source: list[tuple[Tensor, Tensor]] | None = None,
        source_at: Positions | None = None,
    ) -> Tensor:
        """(B, T, D) token embeddings → (B, T, D); extends the `cache` in place. `source`: each layer's keys and values
        of it, in a decoder over one. `ValueError` for a position past the learned table.
        """
        if at.start is not None:
            self.check_positions(at.start + at.length)
        if self.config.embedding_scale:
            x = x * math.sqrt(self.config.d_model)
        table = self.positions.embed(at.index)
        if table is not None:
            x = x + table.to(x.dtype)
        x = self.embedding_dropout(x)
        reading = ForwardContext(at, source_at, x)
        for i, layer in enumerate(self.layers):
            state, own = cache.layers[i] if cache else None, source[i] if source else None
            given = (x, reading, state, own)
            again = self.checkpointing and self.training and cache is None and torch.is_grad_enabled()
            x = checkpoint(layer, *given, use_reentrant=False) if again else layer(*given)
        if cache is not None:
            cache.length += at.length
        out: Tensor = self.final_norm(x)
        return out

    def check_positions(self, length: int) -> None:
        """Raise ValueError where the positions 0 … length − 1 reach past a learned table."""
        longest = self.positions.longest
        if longest is not None and length > longest:
            raise ValueError(
                tr("position {length} is past the {longest} learned positions", length=length - 1, longest=longest)
            )

    def keys_and_values(self, hidden: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return each layer's keys and values (B, H, S, Dh) of an encoded source (B, S, D); [] if it reads none."""
        parts = [layer.cross_attention for layer in self.layers if isinstance(layer, Layer)]
        return [part.keys_and_values(hidden) for part in parts if part is not None]


class Network(nn.Module, ABC):
    """The interface of every network: nothing outside needs to know its class."""

    reads_source = False  # `forward` takes a source (B, S) before the text
    has_cache = True  # otherwise the whole text is reprocessed for each new token
    config: ModelConfig
    vocab_size: int
    token_embedding: nn.Embedding
    head: nn.Linear

    @property
    @abstractmethod
    def stacks(self) -> tuple[Stack, ...]:
        """The stacks in the order they run; the last one reads the text."""

    def logits(self, tokens: Tensor, source: Tensor | None = None) -> Tensor:
        """Return logits (B, T, V) of a whole text (B, T), after a source (B, S) if the network reads one."""
        logits: Tensor = self(source, tokens) if self.reads_source else self(tokens)
        return logits

    def new_cache(self, capacity: int = 0, source: Tensor | None = None, source_at: Positions | None = None) -> Cache:
        """Return an empty cache, with initial room for `capacity` tokens. A network that reads a source
        (B, S) reads it here; its positions are −1 at padding, by default consecutive.
        """
        attentions = [layer.get_submodule("attention") for layer in self.stacks[-1].layers]
        return Cache([part.new_state(capacity) for part in attentions if isinstance(part, SelfAttention)])

    def to_logits(self, x: Tensor) -> Tensor:
        """(…, D) → (…, V), with a soft cap if there is one."""
        return soft_cap(self.head(x), self.config.logit_softcap)

    @abstractmethod
    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        """Return logits (B, T, V) of tokens (B, T) that follow those in the cache, which is extended in place."""

    def next_logits(self, tokens: Tensor, cache: Cache) -> Tensor:
        """Return only the logits (B, V) after the last of tokens (B, T); otherwise like `decode`."""
        return self.decode(tokens, cache)[:, -1]


class LanguageModel(Stack, Network):
    """One stack between a token embedding and a head."""

    def __init__(self, model: ModelConfig, vocab_size: int) -> None:
        super().__init__(model, model.n_layers, model.context_length, causal=model.causal)
        self.vocab_size = vocab_size
        self.token_embedding = make_zero_embedding(vocab_size, model.d_model)
        self.head = make_head(model, self.token_embedding)

    @property
    def stacks(self) -> tuple[Stack, ...]:
        return (self,)

    def hidden(self, tokens: Tensor, at: Positions | None = None, cache: Cache | None = None) -> Tensor:
        """`forward` without the head: (B, T) → (B, T, D)."""
        at = at or Positions.consecutive(tokens.shape[1], cache.length if cache else 0, tokens.device)
        return self.run_layers(self.token_embedding(tokens), at, cache)

    def forward(self, tokens: Tensor, at: Positions | None = None, cache: Cache | None = None) -> Tensor:
        """Return logits (B, T, V) at every position. `at` are the tokens' absolute positions, by default consecutive
        after the `cache`, which is extended in place; `ValueError` past the learned table.
        """
        return self.to_logits(self.hidden(tokens, at, cache))


class DecoderLM(LanguageModel):
    """A language model: each token is predicted from those before it (GPT: Radford et al. 2018)."""

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        return self.forward(tokens, cache=cache)

    def next_logits(self, tokens: Tensor, cache: Cache) -> Tensor:
        return self.to_logits(self.hidden(tokens, cache=cache)[:, -1])


class EncoderLM(LanguageModel):
    """A masked language model: it fills gaps from the text on both sides (BERT: Devlin et al. 2019)."""

    has_cache = False  # a new token may change the predictions of all others

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        cache.tokens = tokens if cache.tokens is None else torch.cat((cache.tokens, tokens), dim=1)
        cache.length = cache.tokens.shape[1]
        return self.forward(cache.tokens)[:, -tokens.shape[1] :]


class EncoderDecoder(Network):
    """The target is generated token by token, attending to the whole source (Vaswani et al. 2017). They share an
    embedding unless `model.source_vocab_size` is set.
    """

    reads_source = True

    def __init__(self, model: ModelConfig, vocab_size: int) -> None:
        super().__init__()
        self.config, self.vocab_size = model, vocab_size
        self.token_embedding = make_zero_embedding(vocab_size, model.d_model)
        size = model.source_vocab_size
        self.source_embedding = None if size is None else make_zero_embedding(size, model.d_model)
        self.encoder = Stack(model, model.encoder_layers, model.source_tokens, causal=False)
        self.decoder = Stack(model, model.n_layers, model.context_length, causal=True, over_source=True)
        self.head = make_head(model, self.token_embedding)

    @property
    def stacks(self) -> tuple[Stack, ...]:
        return self.encoder, self.decoder

    def forward(
        self, source: Tensor, target: Tensor, source_at: Positions | None = None, at: Positions | None = None
    ) -> Tensor:
        """(B, S), (B, T) → (B, T, V); positions as in `new_cache`."""
        read, read_at = self._encode_source(source, source_at)
        at = at or Positions.consecutive(target.shape[1], 0, target.device)
        x = self.decoder.run_layers(self.token_embedding(target), at, None, read, read_at)
        return self.to_logits(x)

    def new_cache(self, capacity: int = 0, source: Tensor | None = None, source_at: Positions | None = None) -> Cache:
        if source is None:
            raise ValueError(tr("an encoder-decoder needs a source"))
        cache = super().new_cache(capacity)
        cache.source, cache.source_at = self._encode_source(source, source_at)
        return cache

    def decode(self, tokens: Tensor, cache: Cache) -> Tensor:
        at = Positions.consecutive(tokens.shape[1], cache.length, tokens.device)
        x = self.decoder.run_layers(self.token_embedding(tokens), at, cache, cache.source, cache.source_at)
        return self.to_logits(x)

    def _encode_source(self, source: Tensor, at: Positions | None) -> tuple[list[tuple[Tensor, Tensor]], Positions]:
        """Return each decoder layer's keys and values of a source, and its positions."""
        at = at or Positions.consecutive(source.shape[1], 0, source.device)
        embedding = self.token_embedding if self.source_embedding is None else self.source_embedding
        return self.decoder.keys_and_values(self.encoder.run_layers(embedding(source), at)), at


def make_head(model: ModelConfig, embedding: nn.Embedding) -> nn.Linear:
    """Return the projection to vocabulary or classes, with the embedding's weights if tied (Press and Wolf 2017)."""
    head = nn.Linear(model.d_model, model.classes or embedding.num_embeddings, bias=model.head_bias)
    if model.tie_embeddings:
        head.weight = embedding.weight
    return head


NETWORKS: dict[str, type[Network]] = {"decoder": DecoderLM, "encoder": EncoderLM, "encoder-decoder": EncoderDecoder}


class SkipInit(TorchFunctionMode):
    """In this mode, modules leave their parameters as allocated: `initialise` overwrites all of them."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__module__", None) == nn.init.__name__:
            return (kwargs or {}).get("tensor", args[0] if args else None)
        return func(*args, **(kwargs or {}))


def build_model(model: ModelConfig, vocab_size: int, seed: int, device: torch.device | str = "cpu") -> Network:
    """Return the network of a config with its initial weights, fp32, in training mode; equal seeds give equal weights
    on every device. `ValueError` if `model.vocab_size` is set below the tokens needed.
    """
    size = model.vocab_size or vocab_size
    if size < vocab_size:
        message = tr(
            "model.vocab_size {size} is smaller than the {vocab_size} tokens needed", size=size, vocab_size=vocab_size
        )
        raise ValueError(message)
    with torch.device(device), SkipInit():
        network = NETWORKS[model.architecture](model, size)
    initialise(network, model, seed)
    return network


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(was_training)
