"""Which keys a query may see: a predicate on absolute positions, used by every mask, kernel, cache and picture.

No torch here: only operators shared by Python ints, numpy arrays and tensors.
"""

from dataclasses import dataclass
from typing import Any

from engine.config.model import ModelConfig
from engine.config.schemes import ATTENTIONS, WINDOW_BREAK_EVEN

MIN_BAND_LENGTH = 1024  # tokens at which a band replaces a T × T mask, where it can
MIN_BAND_RATIO = 3  # a band is smaller than a mask if the text is this many times longer than a query's reach
SMALLEST_BLOCK = 32  # queries of a band; smaller blocks lose more to calls than they save in products (measured on CPU)
CHUNK = 64  # tokens that linear attention multiplies as a small matrix; only sums are carried between chunks


@dataclass(frozen=True)
class Visibility:
    causal: bool  # only keys at or before the query
    window: int | None = None  # causal: the newest `window` keys, self included; else |q − k| ≤ window // 2
    # besides the window, every key k with k % link_every == link_every − 1 (the summary positions of the fixed pattern
    # of Child et al. 2019, Sparse Transformers, one per block).
    link_every: int | None = None

    def __call__(self, q: Any, k: Any) -> Any:
        """Return whether query position `q` sees key position `k`: absolute, broadcastable; −1 marks padding, which
        never sees and is never seen.
        """
        seen = (q >= 0) & (k >= 0)
        if self.causal:
            seen = seen & (k <= q)
        if self.window is not None:
            near = (q - k < self.window) if self.causal else (abs(q - k) <= self.window // 2)
            if self.link_every is not None:
                near = near | (k % self.link_every == self.link_every - 1)
            seen = seen & near
        return seen

    @property
    def has_gaps(self) -> bool:
        """Whether a query may see a key but not every key between the two."""
        return self.link_every is not None

    def reach(self, n_layers: int) -> int | None:
        """Return how many tokens back information can travel through `n_layers` layers; None if unlimited."""
        if self.window is None or self.has_gaps:
            return None
        return n_layers * (self.window - 1 if self.causal else self.window // 2)

    def is_band_faster(self, length: int, *, cpu: bool) -> bool:
        """Return whether a band is faster than a T × T mask over `time` tokens."""
        reach = self.reach(1)
        if reach is None or MIN_BAND_RATIO * reach > length:
            return False
        return length >= MIN_BAND_LENGTH or (cpu and WINDOW_BREAK_EVEN * reach <= length)


def sees_ahead(model: ModelConfig) -> bool:
    """Return whether any position's self-attention may look at a later one, in any layer."""
    return any(_looks_ahead(self_attention(layer), model.context_length) for layer, _ in model.layer_kinds())


def _looks_ahead(see: Visibility, length: int) -> bool:
    if see.causal or length < 2:
        return False
    return see.window is None or see.window // 2 > 0 or (see.link_every is not None and see.link_every <= length)


def reach_of(model: ModelConfig) -> int | None:
    """Return how many tokens back information can travel through all layers; None if unlimited."""
    steps = [self_attention(layer).reach(len(places)) for layer, places in model.layer_kinds(model.n_layers)]
    return None if None in steps else sum(step for step in steps if step is not None)


def self_attention(model: ModelConfig, *, causal: bool | None = None) -> Visibility:
    """The visibility of a model's self-attention; `causal` is that of one stack, by default the model's own."""
    causal = model.causal if causal is None else causal
    given = ATTENTIONS[model.attention].settings
    window = model.window if "window" in given else None
    return Visibility(causal, window, model.link_every if "link_every" in given else None)
