"""A second implementation of every network, from the papers: slow, float64, sharing no code with `engine.model`.

Only the weights and the config are taken from the model. It shares no bugs with the fast code's masks and modules, so
the two are compared before a run starts. It loops over layers; everything else is a dense T × T matrix. Notation: B
batch, T time, S source time, H heads, D model width, Dh head width, V vocabulary.
"""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from engine.config.model import ModelConfig
from engine.config.schemes import POSITIONS

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": lambda x: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))),
    "gelu-tanh": lambda x: 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: x.clamp(min=0.0),
    "relu2": lambda x: x * x * (x > 0),
    "silu": lambda x: x / (1.0 + torch.exp(-x)),
}
GATES = {"swiglu": "silu", "geglu": "gelu", "geglu-tanh": "gelu-tanh"}  # of the first half, which gates the second


class ReferenceNetwork:
    """The logits defined by a config and weights, keyed by the model's parameter names."""

    def __init__(self, model: ModelConfig, weights: Mapping[str, Tensor]) -> None:
        self.model = model
        self.weights = {name: weight.detach().double() for name, weight in weights.items()}
        self.first_values: list[Tensor] = []  # (B, H, T, Dh) of the stack's first layer

    def logits(self, tokens: Tensor, source: Tensor | None = None) -> Tensor:
        """(B, T), and (B, S) where there is a source → (B, T, V)."""
        model = self.model
        if model.architecture == "encoder-decoder":
            assert source is not None
            read_by = "source_embedding" if "source_embedding.weight" in self.weights else "token_embedding"
            memory = self._stack("encoder.", self._embedded(source, read_by), model.encoder_layers, causal=False)
            x = self._stack("decoder.", self._embedded(tokens), model.n_layers, causal=True, memory=memory)
        else:
            x = self._stack("", self._embedded(tokens), model.n_layers, causal=model.causal)
        tied = self.weights["token_embedding.weight"] if model.tie_embeddings else self.weights["head.weight"]
        out = x @ tied.T + (self.weights["head.bias"] if model.head_bias else 0.0)
        return torch.tanh(out / model.logit_softcap) * model.logit_softcap if model.logit_softcap else out

    def _embedded(self, tokens: Tensor, by: str = "token_embedding") -> Tensor:
        return self.weights[f"{by}.weight"][tokens] * (self.model.d_model**0.5 if self.model.embedding_scale else 1.0)

    def _stack(self, name: str, x: Tensor, n_layers: int, *, causal: bool, memory: Tensor | None = None) -> Tensor:
        time = torch.arange(x.shape[1], device=x.device)
        if self.model.position == "sinusoidal":
            x = x + _sinusoids(time, self.model.d_model)
        if self.model.position == "learned":
            x = x + self.weights[f"{name}positions.table.weight"][: x.shape[1]]
        embedded, whole = x, self.model
        for i in range(n_layers):
            self.model = _of_layer(whole, i)
            if self.model.embedding_mix:
                keep, back = self.weights[f"{name}layers.{i}.mix.weight"]
                x = keep * x + back * embedded
            x = self._layer(f"{name}layers.{i}.", x, time, causal=causal, memory=memory)
        self.model = whole
        return self._norm(f"{name}final_norm", x) if self.model.final_norm else x

    def _layer(self, name: str, x: Tensor, time: Tensor, *, causal: bool, memory: Tensor | None) -> Tensor:
        parts: list[tuple[str, Callable[[Tensor], Tensor]]] = [
            ("attention_norm", lambda y: self._self_attention(f"{name}attention.", y, time, causal=causal)),
            ("feed_forward_norm", lambda y: self._feed_forward(f"{name}feed_forward.", y)),
        ]
        if memory is not None:
            given = memory
            parts.insert(1, ("cross_attention_norm", lambda y: self._cross(f"{name}cross_attention.", y, given)))
        start = x
        for norm, part in parts:
            placement = self.model.norm_placement
            read = start if self.model.parallel else x
            y = read if placement == "post" else self._norm(name + norm, read)
            y = part(self._convolved(name + norm.replace("_norm", "_conv.weight"), y))
            if placement == "sandwich":
                y = self._norm(name + norm.replace("_norm", "_after.norm"), y)
            if self.model.layer_scale:
                y = y @ torch.diag(self.weights[name + norm.replace("_norm", "_after.scale.weight")])
            alone = not self.model.residual and not (self.model.parallel and norm == "feed_forward_norm")
            x = y if alone else x + y
            x = self._norm(name + norm, x) if placement == "post" else x
        return x

    def _convolved(self, name: str, x: Tensor) -> Tensor:
        if name not in self.weights:
            return x
        taps = self.weights[name].view(self.model.conv, -1)
        return sum((taps[j] * F.pad(x, (0, 0, j, 0))[:, : x.shape[1]] for j in range(len(taps))), torch.zeros_like(x))

    def _norm(self, name: str, x: Tensor) -> Tensor:
        if self.model.norm == "none":
            return x
        if self.model.norm == "rms":
            return self._divide_by_rms(x) * self.weights[f"{name}.weight"]
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.square().mean(-1, keepdim=True) + self.model.norm_eps).sqrt()
        bias = self.weights.get(f"{name}.bias")
        return scaled * self.weights[f"{name}.weight"] + (0.0 if bias is None else bias)

    def _divide_by_rms(self, x: Tensor) -> Tensor:
        return x / (x.square().mean(-1, keepdim=True) + self.model.norm_eps).sqrt()

    def _linear(self, name: str, x: Tensor) -> Tensor:
        bias = self.weights.get(f"{name}.bias")
        return x @ self.weights[f"{name}.weight"].T + (0.0 if bias is None else bias)

    def _feed_forward(self, name: str, x: Tensor) -> Tensor:
        hidden, activation = self._linear(f"{name}expand", x), self.model.activation
        if activation in GATES:
            gate, value = hidden.tensor_split(2, dim=-1)
            return self._linear(f"{name}output", ACTIVATIONS[GATES[activation]](gate) * value)
        return self._linear(f"{name}output", ACTIVATIONS[activation](hidden))

    def _split_and_repeat_heads(self, x: Tensor) -> Tensor:
        """(B, T, heads · Dh) → (B, H, T, Dh); shared key and value heads serve H / Hkv queries in a row."""
        heads = x.view(*x.shape[:-1], -1, self.model.head_width).transpose(1, 2)
        shared = torch.arange(self.model.n_heads, device=x.device) * heads.shape[1] // self.model.n_heads
        return heads.index_select(1, shared)

    def _cross(self, name: str, x: Tensor, memory: Tensor) -> Tensor:
        q = self._split_and_repeat_heads(self._linear(f"{name}query", x))
        both = self._linear(f"{name}key_value", memory)
        k, v = (self._split_and_repeat_heads(part) for part in torch.split(both, self.model.kv_width, dim=-1))
        weights = (q @ k.transpose(2, 3) / math.sqrt(self.model.head_width)).softmax(-1)
        return self._linear(f"{name}output", (weights @ v).transpose(1, 2).flatten(2))

    def _self_attention(self, name: str, x: Tensor, time: Tensor, *, causal: bool) -> Tensor:
        model = self.model
        all_three = self._linear(f"{name}query_key_value", x)
        widths = [model.d_model, model.kv_width, model.kv_width]
        q, k, v = (self._split_and_repeat_heads(part) for part in torch.split(all_three, widths, dim=-1))
        if model.qk_norm == "before":
            q = self._divide_by_rms(q) * self.weights[f"{name}query_norm.weight"]
            k = self._divide_by_rms(k) * self.weights[f"{name}key_norm.weight"]
        if "layers.0." in name:
            self.first_values[:] = [v]
        elif model.value_mix:
            of_first, own = self.weights[f"{name}value_mix"]
            v = of_first * self.first_values[0] + own * v
        apart = time[:, None] - time[None]  # q − k
        if model.attention == "linear":
            mixed = self._linear_attention(q, k, v, time, (apart >= 0) | (not causal))
        else:
            scores = self._scores(name, q, k, time, apart, causal=causal)
            scores = scores.masked_fill(~self._visible(time, apart, causal=causal), -math.inf)
            if model.sinks:  # one more in the denominator: e^sink
                total = torch.logsumexp(scores, -1, keepdim=True)
                sinks = self.weights[f"{name}softmax.sinks"][:, None, None]
                mixed = torch.exp(scores - torch.logaddexp(total, sinks)) @ v
            else:
                mixed = scores.softmax(-1) @ v
        if model.gate != "none":
            gates = 1.0 / (1.0 + torch.exp(-self._linear(f"{name}gate", x)))
            each = model.head_width if model.gate == "head" else 1
            mixed = mixed * gates.repeat_interleave(each, -1).view(*x.shape[:2], model.n_heads, -1).transpose(1, 2)
        return self._linear(f"{name}output", mixed.transpose(1, 2).flatten(2))

    def _visible(self, time: Tensor, apart: Tensor, *, causal: bool) -> Tensor:
        model, seen = self.model, torch.ones_like(apart, dtype=torch.bool)
        if model.attention in ("window", "sparse"):
            seen = apart <= model.window - 1 if causal else 2 * apart.abs() <= model.window - model.window % 2
        if model.attention == "sparse":
            seen = seen | ((time + 1) % model.link_every == 0)
        return seen & (apart >= 0) if causal else seen

    def _scores(self, name: str, q: Tensor, k: Tensor, time: Tensor, apart: Tensor, *, causal: bool) -> Tensor:
        model, root = self.model, math.sqrt(self.model.head_width)
        if model.position == "rope":
            q, k = (self._rope(part, time) for part in (q, k))
        if model.qk_norm == "after":
            q, k = self._divide_by_rms(q), self._divide_by_rms(k)
        scores = q @ k.transpose(2, 3)  # (B, H, T, T)
        if model.position == "xl":
            # Each distance once: (T, T, D) would not fit in memory for long texts.
            distance = torch.arange(-int(time[-1]), int(time[-1]) + 1, device=time.device)
            r = _sinusoids(distance, model.d_model) @ self.weights[f"{name}scheme.distance.weight"].T
            r = r.view(len(distance), model.n_heads, -1)  # (R, H, Dh)
            u, v = (self.weights[f"{name}scheme.{part}"][None, :, None] for part in "uv")
            placed = torch.einsum("bhqd,rhd->bhqr", q + v, r)
            placed = placed.gather(-1, (apart - distance[0]).expand(*placed.shape[:2], -1, -1))
            return self._capped((scores + placed + u @ k.transpose(2, 3)) / root)
        if model.position == "t5":
            bucket = _t5_bucket(-apart, model.t5_buckets, model.t5_max_distance, causal)
            return self._capped(scores) + self._position_weight(name)[bucket].permute(2, 0, 1)
        scores = self._capped(scores / root)
        if model.position == "relative":
            far = model.relative_max_distance
            scores = scores + self._position_weight(name)[(-apart).clamp(-far, far) + far].permute(2, 0, 1)
        if model.position == "alibi":
            slopes = torch.tensor(_alibi(model.n_heads), dtype=torch.float64, device=q.device)
            scores = scores - slopes[:, None, None] * apart.abs()
        return scores

    def _capped(self, scores: Tensor) -> Tensor:
        cap = self.model.score_cap
        return torch.tanh(scores / cap) * cap if cap else scores

    def _position_weight(self, name: str, part: str = "table.weight") -> Tensor:
        """A weight of a learned bias, such as its table, one for all layers that have it."""
        stack = name.partition("layers.")[0]
        own = self.weights.get(f"{stack}layer_positions.{self.model.position}.{part}")
        return self.weights[f"{stack}positions.{part}"] if own is None else own

    def _linear_attention(self, q: Tensor, k: Tensor, v: Tensor, time: Tensor, seen: Tensor) -> Tensor:
        # Katharopoulos et al. 2020; rotary positions rotate only the numerator (Su et al. 2021, eq. 19).
        plain_q, plain_k = F.elu(q) + 1.0, F.elu(k) + 1.0
        turned_q, turned_k = plain_q, plain_k
        if self.model.position == "rope":
            turned_q, turned_k = self._rope(plain_q, time), self._rope(plain_k, time)
        top, bottom = ((a @ b.transpose(2, 3)) * seen for a, b in ((turned_q, turned_k), (plain_q, plain_k)))
        return top @ v / bottom.sum(-1, keepdim=True)

    def _rope(self, x: Tensor, time: Tensor) -> Tensor:
        """RoPE, of the first `rope_width` features of a head."""
        width = self.model.rope_width
        if width < x.shape[-1]:
            still, x = x[..., width:], x[..., :width]
            return torch.cat((self._rotate_all_features(x, time), still), dim=-1)
        return self._rotate_all_features(x, time)

    def _rotate_all_features(self, x: Tensor, time: Tensor) -> Tensor:
        """RoPE as complex numbers: feature pair i times e^(i · t · base^(−2i / Dh))."""
        width = x.shape[-1]
        rates = self.model.rope_base ** (-2.0 * torch.arange(width // 2, dtype=torch.float64, device=x.device) / width)
        gain = 1.0
        if self.model.rope_scaling != "none":
            scaled = [_scaled_frequency(self.model, i, width) for i in range(width // 2)]
            rates = torch.tensor(scaled, dtype=torch.float64)
            gain = self.model.yarn_gain or 1.0 + math.log(self.model.rope_factor) / 10.0
            gain = gain if self.model.rope_scaling == "yarn" else 1.0
        turn = gain * torch.exp(1j * time[:, None] * rates.to(x.device))  # (T, Dh/2)
        if self.model.rope_pairing == "half":
            z = torch.complex(x[..., : width // 2], x[..., width // 2 :]) * turn
            return torch.cat((z.real, z.imag), dim=-1)
        z = torch.complex(x[..., 0::2], x[..., 1::2]) * turn
        return torch.view_as_real(z).flatten(-2)


def _of_layer(model: ModelConfig, i: int) -> ModelConfig:
    """The network with one layer's own attention and position, where there is a pattern of layers."""
    if not model.layers:
        return model
    words = model.layers[i % len(model.layers)].split()
    own = {"position" if word in POSITIONS else "attention": word for word in words}
    return model.model_copy(update=own)


def _sinusoids(place: Tensor, width: int) -> Tensor:
    """(…) → (…, width): sin and cos of place / 10000^(2i / width), in turn (Vaswani et al. 2017, §3.5)."""
    feature = torch.arange(width, device=place.device)
    angle = place[..., None] / 10_000.0 ** ((feature - feature % 2).double() / width)
    return torch.where(feature % 2 == 0, angle.sin(), angle.cos())


def _scaled_frequency(model: ModelConfig, i: int, width: int) -> float:
    """Rope's frequency of pair i in radians per token, scaled (bloc97 2023; Peng et al. 2023; Llama Team 2024)."""
    base, factor = model.rope_base, model.rope_factor
    trained = model.context_length / factor if model.rope_original is None else float(model.rope_original)
    wave = 2.0 * math.pi * base ** (2.0 * i / width)  # tokens a turn
    slow = 1.0 / factor  # factor of the rate, where it is scaled in full
    if model.rope_scaling == "ntk":
        larger = base * factor ** (width / max(width - 2, 1))
        return float(larger ** (-2.0 * i / width))
    if model.rope_scaling == "yarn":
        first, last = (
            width / 2.0 * (math.log(trained) - math.log(2.0 * math.pi * turns)) / math.log(base)
            for turns in (model.yarn_fast, model.yarn_slow)
        )
        start = max(0, math.floor(first))
        stop = max(start, min(width - 1, math.ceil(last)))
        done = (i - start) / (stop - start or 0.001)
        slow = 1.0 + (slow - 1.0) * min(1.0, max(0.0, done))
    if model.rope_scaling == "llama3":
        if wave <= trained / model.llama3_high:
            slow = 1.0
        elif wave < trained / model.llama3_low:
            smooth = (trained / wave - model.llama3_low) / (model.llama3_high - model.llama3_low)
            slow = smooth + (1.0 - smooth) * slow
    return float(slow * 2.0 * math.pi / wave)


def _alibi(heads: int) -> list[float]:
    """The published slopes (Press et al. 2022); like the authors' code if the number of heads is not a power of two."""
    whole = 2 ** (heads.bit_length() - 1)
    extra = [2.0 ** (-4.0 * (2 * i + 1) / whole) for i in range(heads - whole)]
    return [2.0 ** (-8.0 * (i + 1) / whole) for i in range(whole)] + extra


def _t5_bucket(distance: Tensor, buckets: int, most: int, causal: bool) -> Tensor:
    """The bucket of each k − q, in fp32 like the original: rounding must not move a bucket's edge."""
    later = torch.zeros_like(distance)
    if causal:
        back = (-distance).clamp(min=0)
    else:
        buckets //= 2
        later, back = (distance > 0) * buckets, distance.abs()
    exact = buckets // 2
    logs = torch.log(back.clamp(min=1).float() / exact) / math.log(most / exact) * (buckets - exact)
    far = (exact + logs.long()).clamp(max=buckets - 1)
    return later + torch.where(back < exact, back, far)
