"""Linear attention (Katharopoulos et al. 2020): φ(q)·φ(k) in place of a softmax, so keys can be summed up in advance.

out_t = Σ_j (φ(q_t)·φ(k_j)) v_j / Σ_j φ(q_t)·φ(k_j), φ(x) = elu(x) + 1 > 0, j over the keys that t may see. There is no
score matrix, hence no place for an additive bias. Rotary positions turn φ(q) and φ(k) in the numerator only (Su et
al. 2021, eq. 19). Sums are fp32 or wider. Notation: B batch, T time, H heads, Dh head width, C chunk.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from engine.model.cache import LinearState
from engine.model.positions import PositionScheme
from engine.model.span import Span

CHUNK = 64  # tokens whose products are taken as a small matrix; between chunks only sums are carried


def feature_map(x: Tensor) -> Tensor:
    """φ(x) = elu(x) + 1, positive everywhere."""
    return torch.where(x > 0, x + 1.0, x.clamp(max=0.0).exp())  # elu(x) + 1 would round small values to 0


def _features(q: Tensor, k: Tensor, at: Span, scheme: PositionScheme) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """φ(q), φ(k) and the two of them rotated, fp32 or wider; φ(k) is zero where there is no token."""
    wide = torch.promote_types(q.dtype, torch.float32)
    real = (at.index >= 0)[:, None, :, None]  # (N, 1, T, 1)
    plain_q, plain_k = feature_map(q.to(wide)), feature_map(k.to(wide)) * real
    return plain_q, plain_k, scheme.rotate(plain_q, at.index), scheme.rotate(plain_k, at.index)


def linear_weights(q: Tensor, k: Tensor, at: Span, scheme: PositionScheme, *, causal: bool) -> Tensor:
    """The whole T × T matrix written out: the readable reference.

    Args:
        q: (B, H, T, Dh), not rotated.
        k: (B, H, T, Dh), not rotated.
        at: positions.
        scheme: for its rotation.
        causal: whether a query sees only keys at or before it.

    Returns:
        (B, H, T, T); rows sum to 1 (rotated ones do not: only their denominators do), or to 0 where nothing is seen.
    """
    plain_q, plain_k, turned_q, turned_k = _features(q, k, at, scheme)
    seen = (at.index[:, None, :] >= 0) & (at.index[:, :, None] >= 0)
    if causal:
        seen = seen & (at.index[:, None, :] <= at.index[:, :, None])
    products = (turned_q @ turned_k.transpose(-2, -1)) * seen[:, None]
    total = ((plain_q @ plain_k.transpose(-2, -1)) * seen[:, None]).sum(-1, keepdim=True)
    return torch.where(total > 0, products / total.clamp(min=torch.finfo(total.dtype).tiny), 0.0)


def _reference(
    q: Tensor, k: Tensor, v: Tensor, at: Span, scheme: PositionScheme, causal: bool, state: LinearState | None
) -> Tensor:
    if state is not None:  # the reference keeps nothing: what was seen before is in the sums only
        return _chunked(q, k, v, at, scheme, causal, state)
    weights = linear_weights(q, k, at, scheme, causal=causal)
    return weights @ v.to(weights.dtype)


def _chunked(
    q: Tensor, k: Tensor, v: Tensor, at: Span, scheme: PositionScheme, causal: bool, state: LinearState | None
) -> Tensor:
    plain_q, plain_k, turned_q, turned_k = _features(q, k, at, scheme)
    v = v.to(plain_q.dtype)
    if not causal:
        mixed = turned_q @ (turned_k.transpose(-2, -1) @ v)
        total = plain_q @ plain_k.sum(-2, keepdim=True).transpose(-2, -1)
    else:
        mixed, total = _prefix(plain_q, plain_k, turned_q, turned_k, v, state)
    real = (at.index >= 0)[:, None, :, None]
    return torch.where(real & (total > 0), mixed / total.clamp(min=torch.finfo(total.dtype).tiny), 0.0)


def _prefix(
    plain_q: Tensor, plain_k: Tensor, turned_q: Tensor, turned_k: Tensor, v: Tensor, state: LinearState | None
) -> tuple[Tensor, Tensor]:
    """Numerators (B, H, T, Dh) and denominators (B, H, T, 1) over all keys up to each query, and what `state` holds."""
    time = v.shape[2]
    chunk = min(CHUNK, time)
    n = -(-time // chunk)

    def split(x: Tensor) -> Tensor:  # (B, H, T, Dh) → (B, H, n, C, Dh)
        x = F.pad(x, (0, 0, 0, n * chunk - time))
        return x.view(*x.shape[:2], n, chunk, x.shape[-1])

    rotated = turned_q is not plain_q
    plain_q, plain_k, v = split(plain_q), split(plain_k), split(v)
    turned_q, turned_k = (split(turned_q), split(turned_k)) if rotated else (plain_q, plain_k)
    key_values = turned_k.transpose(-2, -1) @ v  # (B, H, n, Dh, Dh)
    keys = plain_k.sum(-2)  # (B, H, n, Dh)
    # What came before a chunk is shifted in, not got by taking the chunk out of its sum again: that would leave its
    # rounding behind, and with it a trace of later tokens.
    up_to, keys_up_to = key_values.cumsum(2), keys.cumsum(2)
    before = F.pad(up_to, (0, 0, 0, 0, 1, 0))[:, :, :-1]
    keys_before = F.pad(keys_up_to, (0, 0, 1, 0))[:, :, :-1]
    if state is not None:
        all_values, all_keys = up_to[:, :, -1], keys_up_to[:, :, -1]
        if state.key_values is not None and state.keys is not None:
            before, keys_before = before + state.key_values[:, :, None], keys_before + state.keys[:, :, None]
            all_values, all_keys = all_values + state.key_values, all_keys + state.keys
        state.key_values, state.keys = all_values, all_keys
    products = (turned_q @ turned_k.transpose(-2, -1)).tril()  # (B, H, n, C, C)
    shares = (plain_q @ plain_k.transpose(-2, -1)).tril() if rotated else products
    mixed = products @ v + turned_q @ before
    total = shares.sum(-1, keepdim=True) + plain_q @ keys_before[..., None]
    return mixed.flatten(2, 3)[:, :, :time], total.flatten(2, 3)[:, :, :time]


Kernel = Callable[[Tensor, Tensor, Tensor, Span, PositionScheme, bool, LinearState | None], Tensor]
LINEAR_BACKENDS: dict[str, Kernel] = {"auto": _chunked, "chunked": _chunked, "reference": _reference}


def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    at: Span,
    scheme: PositionScheme,
    *,
    causal: bool,
    state: LinearState | None = None,
    backend: str = "auto",
) -> Tensor:
    """Linear attention; no T × T matrix but in the reference.

    Args:
        q: (B, H, T, Dh), not rotated.
        k: (B, H, T, Dh), not rotated.
        v: (B, H, T, Dh).
        at: positions, in the order of the slots.
        scheme: for its rotation; one with a bias or content term has no place here.
        causal: whether a query sees only keys at or before it.
        state: the sums over what was seen before, extended in place; causal only.
        backend: a name from `LINEAR_BACKENDS`.

    Returns:
        (B, H, T, Dh); zeros where nothing is seen.
    """
    with torch.autocast(q.device.type, enabled=False):  # else the prefix sums would be rounded to bf16
        return LINEAR_BACKENDS[backend](q, k, v, at, scheme, causal, state).to(v.dtype)
