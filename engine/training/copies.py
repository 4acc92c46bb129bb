"""A small copy of a run's network, on which the self-checks are cheap and exact.

The same code builds it from the same config: at most `LAYERS` layers per stack and `WIDTH` features, the whole context,
in float64 on the CPU with the checks' own weights. The result therefore does not depend on the device, on rounding or
on training progress, and a network of any size costs the same.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from engine.config.schema import RunConfig
from engine.config.sections import ModelConfig
from engine.evaluation.checks import redraw
from engine.model.transformer import EncoderDecoder, Network, build_model

LAYERS, WIDTH, HEADS = 2, 64, 4
TOKENS = 1024  # the longest text tried
WORDS = 64  # the largest vocabulary, unless the run's own batches are read
ROWS = 2
CACHED_BACKENDS = ("auto", "reference", "sdpa", "chunked")  # the others only handle whole texts
DROPOUTS = ("dropout", "attention_dropout", "attention_output_dropout", "embedding_dropout", "ff_dropout")
NO_DROPOUT = dict.fromkeys(DROPOUTS, 0.0)


@dataclass(frozen=True)
class SmallCopy:
    """A network as configured, but small.

    Args:
        model: the config it is built from.
        network: float64, CPU, evaluation mode.
        said: how it is smaller than the run's own network, as part of a sentence; "" if it is not.
    """

    model: ModelConfig
    network: Network
    said: str

    def another(self) -> "SmallCopy":
        """A copy with the same weights and no gradients; cheaper than building one."""
        return replace(self, network=deepcopy(self.network).eval())

    @property
    def length(self) -> int:
        """T: the whole context, or as much of it as is tried."""
        return min(self.model.context_length, TOKENS)

    def inputs(self, length: int | None = None, source_seed: int = 0) -> tuple[Tensor, ...]:
        """Random tokens (B, T), preceded by a random source (B, S) if the network reads one."""
        rows = ROWS if self.length <= TOKENS // 4 else 1
        wanted = self.length if length is None else min(length, self.length)
        tokens = _random(rows, wanted, self.network.vocab_size, 1)
        if not isinstance(self.network, EncoderDecoder):
            return (tokens,)
        words = self.model.source_vocab_size or self.network.vocab_size
        return _random(rows, min(self.model.source_tokens, TOKENS), words, 2 + source_seed), tokens


def small_copy(config: RunConfig, vocab_size: int, *, seed: int = 0, **changes: Any) -> SmallCopy:
    """A small copy of a run's network.

    Args:
        config: of the run.
        vocab_size: of the copy.
        seed: passed to `build_model`; the weights are then redrawn independently of it.
        changes: overrides of the copy's model settings.
    """
    small = small_model(config.model, {"vocab_size": vocab_size, **changes})
    network = build_model(small, vocab_size, seed).double().eval()
    redraw(network)
    return SmallCopy(small, network, _said(config.model, small))


def small_model(model: ModelConfig, changes: Mapping[str, Any]) -> ModelConfig:
    """The settings of a network of the same kind, limited in size."""
    heads = min(model.n_heads, HEADS)
    width = min(model.head_width, max(2, WIDTH // heads))
    width -= width % 2 if model.head_width % 2 == 0 else 0  # rotary positions rotate pairs of features
    shared = max(1, model.kv_heads * heads // model.n_heads)
    smaller: dict[str, Any] = {
        "n_layers": min(model.n_layers, LAYERS),
        "n_encoder_layers": min(model.encoder_layers, LAYERS),
        "n_heads": heads,
        "n_kv_heads": shared if heads % shared == 0 else 1,
        "d_model": heads * width,
        "d_ff": min(model.d_ff, 4 * heads * width),
    }
    if model.source_vocab_size is not None:
        smaller["source_vocab_size"] = min(model.source_vocab_size, WORDS)
    if model.backend not in CACHED_BACKENDS:
        smaller["backend"] = "auto"
    return model.model_copy(update=smaller | NO_DROPOUT | dict(changes))


def _said(model: ModelConfig, small: ModelConfig) -> str:
    told = (
        ("layers", model.n_layers, small.n_layers),
        ("features", model.d_model, small.d_model),
        ("tokens", model.context_length, min(small.context_length, TOKENS)),
    )
    parts = [f"{few:,} of {all_:,} {what}" for what, all_, few in told if few != all_]
    return f", tried with {', '.join(parts)}" if parts else ""


def _random(rows: int, length: int, words: int, seed: int) -> Tensor:
    return torch.randint(words, (rows, length), generator=torch.Generator().manual_seed(seed))
