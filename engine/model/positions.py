"""Token positions and position schemes: how a Transformer knows the order of its tokens.

A scheme implements some of `embed`, `rotate`, `bias` and `content`, all on ABSOLUTE positions, so cached decoding is
correct by construction. Notation: B batch, N ∈ {1, B}, T time, H heads, D model width, Dh head width.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from engine.config.model import ModelConfig

TensorFunction = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Positions:
    """Absolute positions of T tokens, shared by all rows or one row per batch item."""

    index: Tensor  # (N, T) int64 with N ∈ {1, B}; −1 where there is no token
    # known on the host: every row is start, start + 1, … without −1. Allows fast kernels without a device
    # synchronisation. None: not known to be so.
    start: int | None = None
    one_sided_padding: bool = False  # known on the host: rows are padded on one side only, so tokens are contiguous

    @classmethod
    def consecutive(cls, length: int, start: int = 0, device: torch.device | str | None = None) -> "Positions":
        """Return `length` consecutive positions from `start`, the same in each row of the batch."""
        return cls(torch.arange(start, start + length, device=device)[None], start)

    @classmethod
    def of_tokens(cls, keep: Tensor, *, one_side: bool = False) -> "Positions":
        """Count positions over real tokens only, so that padding changes nothing; `keep` (B, T) is False at padding."""
        return cls(torch.where(keep, keep.long().cumsum(-1) - 1, -1), one_sided_padding=one_side)

    @property
    def length(self) -> int:
        return self.index.shape[-1]


def widest_float(device: torch.device) -> torch.dtype:
    """Return float64, or float32 on MPS, which has no wider one. The angles of far positions need it."""
    return torch.float32 if device.type == "mps" else torch.float64


class PositionScheme(nn.Module):
    """No positions: causal decoders still infer order (Kazemnejad et al. 2023). The base of the others."""

    scale: float | None = None
    """Factor of the attention score; None means 1 / √Dh."""
    longest: int | None = None
    """Positions that exist, for schemes with a table; None means no limit."""
    shared = True
    """Whether all layers of a stack share one."""
    bias_by_distance = True
    """Whether `bias` depends on the distance alone, so that blocks of a text and steps of decoding may share it."""

    @property
    def distance_embedding(self) -> "PositionScheme | None":
        """The table over distances that `content` multiplies queries by; None if it has none that can be drawn."""
        return None

    def set_initial_values(self) -> None:
        """Set the initial values that are not random, if any: a network is built without values."""

    def embed(self, pos: Tensor) -> Tensor | None:
        """Return the term added to the token embeddings before the first layer: (N, T) → (N, T, D)."""
        return None

    def rotate(self, x: Tensor, pos: Tensor) -> Tensor:
        """Return queries or keys (B, H, T, Dh) rotated by their positions (N, T); keys before they are cached."""
        return x

    def bias(self, q_pos: Tensor, k_pos: Tensor) -> Tensor | None:
        """Return the term added to the scaled scores: (N, Tq), (N, Tk) → (N, H, Tq, Tk)."""
        return None

    def content_bias(self, q: Tensor, k: Tensor, q_pos: Tensor, k_pos: Tensor) -> Tensor | None:
        """Return the term added to the scores before scaling, from queries and keys: → (B, H, Tq, Tk)."""
        return None


class Sinusoidal(PositionScheme):
    """Fixed sinusoids (Vaswani et al. 2017, §3.5): PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(…)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model

    def embed(self, pos: Tensor) -> Tensor:
        dtype = widest_float(pos.device)
        even = torch.arange(0, self.d_model, 2, device=pos.device, dtype=dtype)
        angle = pos[..., None].to(dtype) * 10_000.0 ** (-even / self.d_model)  # (N, T, D/2)
        return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


def make_zero_embedding(rows: int, columns: int) -> nn.Embedding:
    """Return a table (rows, columns) that `initialise` will fill.

    For a network on the meta device, torch's own initialisation imports its compiler, which takes over a second.
    """
    return nn.Embedding(rows, columns, _weight=torch.zeros(rows, columns))


class Learned(PositionScheme):
    """One learned vector per position (Gehring et al. 2017; GPT). None exist past `longest`."""

    def __init__(self, longest: int, d_model: int) -> None:
        super().__init__()
        self.longest = longest
        self.table = make_zero_embedding(longest, d_model)

    def embed(self, pos: Tensor) -> Tensor:
        """An empty slot (−1) takes row 0, which is never seen."""
        found: Tensor = self.table(pos.clamp(min=0))
        return found


class Rope(PositionScheme):
    """Rotary embedding: feature pairs of q and k are rotated by pos · θ_i (Su et al. 2021, RoFormer, eq. 15).

    θ_i = base^(−2i / Dh). The pairing is a convention that weights depend on: `half` pairs feature i with i + Dh/2
    (GPT-NeoX, LLaMA in transformers), `adjacent` pairs 2i with 2i + 1 (the paper). Of a wider head only the first
    `width` features are rotated (Black et al. 2022, GPT-NeoX, §2.1.1). For longer contexts than those trained on,
    `rescale` changes the frequencies θ (width / 2) in radians per token, and `gain` scales the rotated features.
    """

    def __init__(
        self, width: int, base: float, pairing: str, rescale: TensorFunction | None = None, gain: float = 1.0
    ) -> None:
        super().__init__()
        self.width, self.base, self.pairing, self.rescale, self.gain = width, base, pairing, rescale, gain
        self._turn: tuple[Tensor, torch.dtype, Tensor, Tensor] | None = None

    def rotate(self, x: Tensor, pos: Tensor) -> Tensor:
        dtype = torch.promote_types(x.dtype, torch.float32)
        # All layers of a forward pass share the same positions object: compute the angles once. Tensors from
        # inference mode may not enter a training step, but each step has its own positions.
        if self._turn is None or self._turn[0] is not pos or self._turn[1] != dtype:
            exact = widest_float(pos.device)
            even = torch.arange(0, self.width, 2, device=pos.device, dtype=exact)
            rates = self.base ** (-even / self.width)
            angle = pos[:, None, :, None].to(exact) * (rates if self.rescale is None else self.rescale(rates))
            cos, sin = angle.cos(), angle.sin()
            if self.gain != 1.0:
                cos, sin = cos * self.gain, sin * self.gain
            self._turn = (pos, dtype, cos.to(dtype), sin.to(dtype))
        if self.width < x.shape[-1]:
            return torch.cat((self._rotate_pairs(x[..., : self.width]), x[..., self.width :]), dim=-1)
        return self._rotate_pairs(x)

    def _rotate_pairs(self, x: Tensor) -> Tensor:
        assert self._turn is not None
        _, _, cos, sin = self._turn  # (N, 1, T, width / 2)
        if self.pairing == "half":
            a, b = x.chunk(2, dim=-1)
            turned = torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
        else:
            a, b = x[..., 0::2], x[..., 1::2]
            turned = torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)
        return turned.to(x.dtype)


def scaled_frequencies(model: ModelConfig, rates: Tensor) -> Tensor:
    """Return rope's frequencies θ (width / 2) as `model.rope_scaling` changes them for contexts s times longer.

    Linear: Chen et al. 2023, §2.3. NTK: base · s^(d / (d − 2)) (bloc97 2023). YaRN: Peng et al. 2023, §3.2, with the
    authors' ramp over features. Llama 3: Llama Team 2024, their code. The last two interpolate between their limits.
    """
    width, factor, length = 2 * rates.numel(), model.rope_factor, model.rope_trained
    if model.rope_scaling == "linear":
        return rates / factor
    feature = torch.arange(rates.numel(), device=rates.device, dtype=rates.dtype)
    if model.rope_scaling == "ntk":
        return rates * factor ** (-2.0 * feature / max(1, width - 2))
    if model.rope_scaling == "yarn":

        def turning(turns: float) -> float:  # the feature pair that makes so many turns in the trained context
            return width * math.log(length / (turns * 2.0 * math.pi)) / (2.0 * math.log(model.rope_base))

        low = max(math.floor(turning(model.yarn_fast)), 0)
        high = max(min(math.ceil(turning(model.yarn_slow)), width - 1), low)
        stays = 1.0 - ((feature - low) / (high - low if high != low else 0.001)).clamp(0.0, 1.0)
    else:
        waves = length * rates / (2.0 * math.pi)
        stays = ((waves - model.llama3_low) / (model.llama3_high - model.llama3_low)).clamp(0.0, 1.0)
    return (1.0 - stays) * rates / factor + stays * rates


class Relative(PositionScheme):
    """One learned number per head and clipped signed distance, added to the score (Shaw et al. 2018's clipping):
    table[clip(k − q, −m, m) + m, h], shared by all layers.
    """

    def __init__(self, n_heads: int, max_distance: int) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.table = make_zero_embedding(2 * max_distance + 1, n_heads)

    def bias(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        far = self.max_distance
        values: Tensor = self.table(key_minus_query(q_pos, k_pos).clamp(-far, far) + far)
        return values.permute(0, 3, 1, 2)


class Alibi(PositionScheme):
    """A penalty that grows with the distance, −m_h · |q − k| (Press et al. 2022); in encoders, on both sides."""

    slopes: Tensor  # (H,)

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        # A buffer, so it lives on the model's device: a copy per call would make the host wait.
        self.register_buffer("slopes", torch.empty(n_heads, dtype=torch.float32), persistent=False)
        self.set_initial_values()

    def set_initial_values(self) -> None:
        self.slopes.copy_(torch.tensor(alibi_slopes(self.slopes.numel()), dtype=torch.float32))

    def bias(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return -self.slopes[:, None, None] * key_minus_query(q_pos, k_pos)[:, None].abs()


def alibi_slopes(n_heads: int) -> list[float]:
    """ALiBi's slopes, steepest first: 2^(−8/H), 2^(−16/H) … for a power of two; for other H, those of the next lower
    one, then every second one of the next higher (the authors' code).
    """
    below = 2 ** math.floor(math.log2(n_heads))
    slopes = [2.0 ** (-8.0 * (i + 1) / below) for i in range(below)]
    between = [2.0 ** (-8.0 * (i + 1) / (2 * below)) for i in range(0, 2 * below, 2)]
    return slopes + between[: n_heads - below]


class T5(PositionScheme):
    """One learned number per head and bucket of distances, added to the score (Raffel et al. 2020, T5).

    Near distances have a bucket each; farther ones share logarithmically wider buckets up to `max_distance`. Without a
    causal mask half of the buckets are for keys after the query. The table is shared by all layers, and the score is
    not divided by √Dh, as in the original (there cross-attention's is not either; ours is).
    """

    scale = 1.0

    def __init__(self, n_heads: int, n_buckets: int, max_distance: int, *, causal: bool) -> None:
        super().__init__()
        self.n_buckets, self.max_distance, self.causal = n_buckets, max_distance, causal
        self.table = make_zero_embedding(n_buckets, n_heads)

    def bucket(self, distance: Tensor) -> Tensor:
        n_buckets, back = self.n_buckets, -distance
        first = torch.zeros_like(distance)
        if not self.causal:
            n_buckets //= 2
            first = (distance > 0).long() * n_buckets
            back = distance.abs()
        back = back.clamp(min=0)
        exact = n_buckets // 2
        # fp32, in the original's order of operations: rounding must not move a bucket's edge.
        ratio = torch.log(back.clamp(min=1).float() / exact) / math.log(self.max_distance / exact)
        far = exact + (ratio * (n_buckets - exact)).long()
        return first + torch.where(back < exact, back, far.clamp(max=n_buckets - 1))

    def bias(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        values: Tensor = self.table(self.bucket(key_minus_query(q_pos, k_pos)))
        return values.permute(0, 3, 1, 2)


class TransformerXL(PositionScheme):
    """Relative positions inside the score (Dai et al. 2019, Transformer-XL, §3.3).

    score = qᵀk + qᵀ W_R r(q − k) + uᵀk + vᵀ W_R r(q − k), r the sinusoid of the distance; W_R, u and v are each
    layer's own. The first term is attention's; `content` gives the other three.
    """

    shared = False

    def __init__(self, d_model: int, n_heads: int, *, causal: bool) -> None:
        super().__init__()
        self.n_heads, self.causal, self.sinusoid = n_heads, causal, Sinusoidal(d_model)
        self.distance = nn.Linear(d_model, d_model, bias=False)
        self.u = nn.Parameter(torch.empty(n_heads, d_model // n_heads))
        self.v = nn.Parameter(torch.empty(n_heads, d_model // n_heads))

    @property
    def distance_embedding(self) -> PositionScheme:
        return self.sinusoid

    def content_bias(self, q: Tensor, k: Tensor, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        # All distances that occur are projected once, then looked up: the paper's relative shift, for any positions.
        somewhere = (q_pos[:, :, None] >= 0) & (k_pos[:, None, :] >= 0)  # an empty slot has no distance
        apart = torch.where(somewhere, -key_minus_query(q_pos, k_pos), 0)  # (N, Tq, Tk), q − k
        # The shapes alone give the distances, so the host need not wait for the device: the queries are the
        # last keys or, if they see both ways, the middle ones.
        ahead = 0 if self.causal else (k_pos.shape[1] - q_pos.shape[1]) // 2
        least, most = -(q_pos.shape[1] - 1 + ahead), k_pos.shape[1] - 1 - ahead
        r = self.sinusoid.embed(torch.arange(least, most + 1, device=q.device)[None]).to(self.distance.weight)
        r = self.distance(r)[0].view(most - least + 1, self.n_heads, -1).to(q)  # (R, H, Dh)
        by_distance = torch.einsum("bhqd,rhd->bhqr", q + self.v.to(q)[:, None], r)  # (B, H, Tq, R)
        index = (apart - least)[:, None].expand(q.shape[0], self.n_heads, -1, -1)
        about_key = torch.einsum("hd,bhkd->bhk", self.u.to(q), k)[:, :, None]  # (B, H, 1, Tk)
        return by_distance.gather(-1, index) + about_key


def key_minus_query(q_pos: Tensor, k_pos: Tensor) -> Tensor:
    """k − q: (N, Tq), (N, Tk) → (N, Tq, Tk); positive where the key comes after the query."""
    return k_pos[:, None, :] - q_pos[:, :, None]


# How each row of `POSITIONS` is built, from a config, the longest input and whether the stack is causal.
BUILDERS: dict[str, Callable[[ModelConfig, int, bool], PositionScheme]] = {
    "none": lambda model, longest, causal: PositionScheme(),
    "sinusoidal": lambda model, longest, causal: Sinusoidal(model.d_model),
    "learned": lambda model, longest, causal: Learned(longest, model.d_model),
    "rope": lambda model, longest, causal: Rope(
        model.rope_width,
        model.rope_base,
        model.rope_pairing,
        None if model.rope_scaling == "none" else partial(scaled_frequencies, model),
        model.rope_gain,
    ),
    "relative": lambda model, longest, causal: Relative(model.n_heads, model.relative_max_distance),
    "alibi": lambda model, longest, causal: Alibi(model.n_heads),
    "t5": lambda model, longest, causal: T5(model.n_heads, model.t5_buckets, model.t5_max_distance, causal=causal),
    "xl": lambda model, longest, causal: TransformerXL(model.d_model, model.n_heads, causal=causal),
}


def make_schemes(model: ModelConfig, n_layers: int, longest: int, *, causal: bool) -> list[PositionScheme]:
    """Return a scheme per layer, or one for all layers of its position if the paper shares it. `longest` is the size of
    a learned table.
    """
    shared: dict[str, PositionScheme] = {}
    found = []
    for i in range(n_layers):
        layer = model.layer_config(i)
        scheme = shared.get(layer.position) or BUILDERS[layer.position](layer, longest, causal)
        if scheme.shared:
            shared[layer.position] = scheme
        found.append(scheme)
    return found
