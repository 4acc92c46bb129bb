"""Linear attention (Katharopoulos et al. 2020): φ(q)·φ(k) instead of a softmax, so keys can be summed in advance.

out_t = Σ_j (φ(q_t)·φ(k_j)) v_j / Σ_j φ(q_t)·φ(k_j), φ(x) = elu(x) + 1 > 0, j over the keys that t may see. There is no
score matrix, so no additive bias. Rotary positions rotate φ(q) and φ(k) in the numerator only (Su et al. 2021, eq. 19).
Sums are fp32 or wider. Notation: B batch, T time, H heads, Dh head width, C chunk.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from engine.config.visibility import CHUNK
from engine.model.cache import LinearState
from engine.model.positions import Positions, PositionScheme


class _FeatureMap(torch.autograd.Function):
    """x + 1 above 0, eˣ below: elu(x) + 1 itself would round small values to 0. φ′ = min(φ, 1)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        features = x.clamp(max=0.0).exp_().add_(x.relu())
        ctx.save_for_backward(features)
        return features

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (features,) = ctx.saved_tensors
        slope: Tensor = features.clamp(max=1.0)
        return slope.mul_(gradient)


def feature_map(x: Tensor) -> Tensor:
    """φ(x) = elu(x) + 1, positive everywhere."""
    features: Tensor = _FeatureMap.apply(x)  # type: ignore[no-untyped-call]
    return features


class _ExclusivePrefixSum(torch.autograd.Function):
    """(R, n, …) → the sum of everything before each of n places. It is shifted in, not computed by subtracting the
    place from its own prefix sum, whose rounding would leave a trace of later tokens.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        out[:, 0] = 0
        if x.device.type == "cpu":
            torch.cumsum(x[:, :-1], 1, out=out[:, 1:])
        else:  # torch's cumsum is not repeatable on CUDA
            for i in range(1, x.shape[1]):
                torch.add(out[:, i - 1], x[:, i - 1], out=out[:, i])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        out = torch.empty_like(gradient)
        out[:, -1] = 0
        for i in range(gradient.shape[1] - 1, 0, -1):
            torch.add(out[:, i], gradient[:, i], out=out[:, i - 1])
        return out


def _features(q: Tensor, k: Tensor, at: Positions, scheme: PositionScheme) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return φ(q), φ(k) and both rotated, fp32 or wider; φ(k) is zero where there is no token."""
    wide = torch.promote_types(q.dtype, torch.float32)
    plain_q, plain_k = feature_map(q.to(wide)), feature_map(k.to(wide))
    if at.start is None:
        plain_k = plain_k * (at.index >= 0)[:, None, :, None]
    return plain_q, plain_k, scheme.rotate(plain_q, at.index), scheme.rotate(plain_k, at.index)


def linear_weights(q: Tensor, k: Tensor, at: Positions, scheme: PositionScheme, *, causal: bool) -> Tensor:
    """The whole T × T matrix (B, H, T, T) of unrotated q and k written out: the readable reference. Rows sum to 1
    (rotated ones do not: only their denominators do), or to 0 where nothing is seen.
    """
    plain_q, plain_k, turned_q, turned_k = _features(q, k, at, scheme)
    seen = (at.index[:, None, :] >= 0) & (at.index[:, :, None] >= 0)
    if causal:
        seen = seen & (at.index[:, None, :] <= at.index[:, :, None])
    products = (turned_q @ turned_k.transpose(-2, -1)) * seen[:, None]
    total = ((plain_q @ plain_k.transpose(-2, -1)) * seen[:, None]).sum(-1, keepdim=True)
    return torch.where(total > 0, products / total.clamp(min=torch.finfo(total.dtype).tiny), 0.0)


def _causal_numerators_and_denominators(
    plain_q: Tensor, plain_k: Tensor, turned_q: Tensor, turned_k: Tensor, v: Tensor, state: LinearState | None
) -> tuple[Tensor, Tensor]:
    """Return numerators (B, H, T, Dh) and denominators (B, H, T, 1) over all keys up to each query, and in `state`."""
    batch, heads, time, _ = v.shape
    chunk = min(CHUNK, time)
    n = -(-time // chunk)

    def split(x: Tensor) -> Tensor:  # (B, H, T, Dh) → (B · H · n, C, Dh)
        x = F.pad(x, (0, 0, 0, n * chunk - time)) if n * chunk > time else x
        return x.reshape(-1, chunk, x.shape[-1])

    def before(x: Tensor, known: Tensor | None) -> tuple[Tensor, Tensor]:
        """(B · H · n, …) → the sums of the state and the chunks before each; and of all."""
        x = x.view(batch * heads, n, *x.shape[1:])
        sums: Tensor = _ExclusivePrefixSum.apply(x)  # type: ignore[no-untyped-call]
        if known is not None:
            sums = sums + known.flatten(0, 1)[:, None]
        return sums.flatten(0, 1), (sums[:, -1] + x[:, -1]).view(batch, heads, *x.shape[2:])

    rotated = turned_q is not plain_q
    plain_q, plain_k, v = split(plain_q), split(plain_k), split(v)
    turned_q, turned_k = (split(turned_q), split(turned_k)) if rotated else (plain_q, plain_k)
    values_before, all_values = before(turned_k.transpose(1, 2) @ v, state.key_values if state else None)
    keys_before, all_keys = before(plain_k.sum(1), state.keys if state else None)
    if state is not None:
        state.key_values, state.keys = all_values, all_keys
    products = (turned_q @ turned_k.transpose(1, 2)).tril()  # (B · H · n, C, C)
    shares = (plain_q @ plain_k.transpose(1, 2)).tril() if rotated else products
    mixed = torch.baddbmm(products @ v, turned_q, values_before)
    total = shares.sum(-1, keepdim=True) + plain_q @ keys_before[..., None]
    mixed, total = (x.view(batch, heads, n * chunk, -1)[:, :, :time] for x in (mixed, total))
    return mixed, total


def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    at: Positions,
    scheme: PositionScheme,
    *,
    causal: bool,
    state: LinearState | None = None,
    backend: str = "auto",
) -> Tensor:
    """Linear attention (B, H, T, Dh) of unrotated q and k, zeros where nothing is seen; no T × T matrix except in the
    backend `reference`.

    Only the rotation of `scheme` is used: a bias or content term is not supported. `state`: the sums over earlier
    tokens, extended in place; causal only.
    """
    with torch.autocast(q.device.type, enabled=False):  # else the prefix sums would be rounded to bf16
        if backend == "reference" and state is None:  # the reference keeps no keys: earlier ones are only in the sums
            weights = linear_weights(q, k, at, scheme, causal=causal)
            return (weights @ v.to(weights.dtype)).to(v.dtype)
        plain_q, plain_k, turned_q, turned_k = _features(q, k, at, scheme)
        values = v.to(plain_q.dtype)
        if causal:
            mixed, total = _causal_numerators_and_denominators(plain_q, plain_k, turned_q, turned_k, values, state)
        else:
            mixed = turned_q @ (turned_k.transpose(-2, -1) @ values)
            total = plain_q @ plain_k.sum(-2, keepdim=True).transpose(-2, -1)
        shares = mixed / total.clamp(min=torch.finfo(total.dtype).tiny)  # both are 0 where nothing is seen
        if at.start is None:
            shares = torch.where((at.index >= 0)[:, None, :, None], shares, 0.0)
        return shares.to(v.dtype)
