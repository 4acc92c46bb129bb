from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from engine.config.visibility import Visibility
from engine.model.attention import (
    BACKENDS,
    AttentionCall,
    Softmax,
    attention_weights,
    choose_backend,
    softmax_attention,
)
from engine.model.positions import Positions, PositionScheme, Relative


class LinearBias(PositionScheme):
    """A scheme with a bias that needs gradients, as later schemes have."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = torch.nn.Parameter(torch.tensor([0.1, 0.5], dtype=torch.float64))

    def bias(self, q_pos, k_pos):
        distance = (q_pos[:, None, :, None] - k_pos[:, None, None, :]).abs().double()
        return -self.slope[None, :, None, None] * distance


def heads(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)


def padded() -> Positions:
    return Positions.of_tokens(torch.tensor([[True] * 6, [False, False, True, True, True, True]]))


CASES = {
    "causal, square": (Positions.consecutive(6), Positions.consecutive(6), Visibility(True), PositionScheme()),
    "causal, from the middle": (
        Positions.consecutive(6, 40),
        Positions.consecutive(6, 40),
        Visibility(True),
        PositionScheme(),
    ),
    "a chunk against a cache": (
        Positions.consecutive(6, 3),
        Positions.consecutive(9),
        Visibility(True),
        PositionScheme(),
    ),
    "one query against a cache": (
        Positions.consecutive(1, 8),
        Positions.consecutive(9),
        Visibility(True),
        PositionScheme(),
    ),
    "a square that is not on the diagonal": (
        Positions.consecutive(6, 2),
        Positions.consecutive(6, 0),
        Visibility(True),
        PositionScheme(),
    ),
    "both sides": (Positions.consecutive(6), Positions.consecutive(6), Visibility(False), PositionScheme()),
    "window": (Positions.consecutive(6), Positions.consecutive(6), Visibility(True, 3), PositionScheme()),
    "one query, window": (Positions.consecutive(1, 8), Positions.consecutive(9), Visibility(True, 3), PositionScheme()),
    "left padding": (padded(), padded(), Visibility(True), PositionScheme()),
    "bias": (Positions.consecutive(6), Positions.consecutive(6), Visibility(True), LinearBias()),
    "bias and padding": (padded(), padded(), Visibility(True), LinearBias()),
}


@pytest.mark.parametrize("sinks", [None, (0.5, -2.0)], ids=["plain", "sinks"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_sdpa_equals_the_reference_with_gradients(case, sinks) -> None:
    q_at, k_at, see, scheme = case
    q, k, v = heads(2, 2, q_at.length, 4), heads(2, 2, k_at.length, 4), heads(2, 2, k_at.length, 4)
    call, results = AttentionCall(q, k, q_at, k_at, see, scheme), []
    leaves = [q, k, v, *scheme.parameters()]
    if sinks is not None:
        call = replace(call, softmax=Softmax(sinks=torch.tensor(sinks, dtype=torch.float64)))
        leaves.append(call.softmax.sinks)
    for backend in ("reference", "sdpa"):
        out = softmax_attention(call, v, backend)
        gradients = torch.autograd.grad((out * torch.arange(4).double()).sum(), leaves)
        results.append((out, *gradients))
    for reference, fast in zip(*results, strict=True):
        assert torch.isfinite(fast).all()
        assert (reference - fast).abs().max() <= 1e-12


def test_weights_sum_to_one_or_zero_where_nothing_is_seen() -> None:
    at = padded()
    q, k = heads(2, 2, 6, 4), heads(2, 2, 6, 4)
    weights = attention_weights(AttentionCall(q, k, at, at, Visibility(True), PositionScheme()))
    sums = weights.sum(-1)
    assert torch.allclose(sums[0], torch.ones_like(sums[0]))
    assert (sums[1, :, :2] == 0).all() and torch.allclose(sums[1, :, 2:], torch.ones_like(sums[1, :, 2:]))


def test_reference_is_the_formula_written_out() -> None:
    q, k, v = heads(1, 1, 3, 4), heads(1, 1, 3, 4), heads(1, 1, 3, 4)
    at = Positions.consecutive(3)
    out = softmax_attention(AttentionCall(q, k, at, at, Visibility(True), PositionScheme()), v, "reference")
    for t in range(3):
        scores = (k[0, 0, : t + 1] @ q[0, 0, t]) / 2.0
        assert torch.allclose(out[0, 0, t], F.softmax(scores, 0) @ v[0, 0, : t + 1])


def test_weights_are_dropped_at_the_stated_rate() -> None:
    at = Positions.consecutive(64)
    q = k = torch.zeros(4, 8, 64, 4)
    v = torch.eye(64).expand(4, 8, 64, 64)
    call = AttentionCall(q, k, at, at, Visibility(False), PositionScheme(), 0.2)
    for backend in BACKENDS:
        if backend.why_not(call) is not None:
            continue
        torch.manual_seed(0)
        out = softmax_attention(call, v, backend.name)
        assert (out == 0).double().mean().item() == pytest.approx(0.2, abs=0.005)


@pytest.mark.parametrize("part", [{"cap": 0.0}, {"cap": 1.5}, {"sinks": torch.tensor([0.5, -2.0]).double()}], ids=str)
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("start", [0, 7])
@pytest.mark.parametrize("length", [5, 40, 64, 90])
def test_a_band_is_the_reference_in_value_and_every_gradient(length, start, causal, batch, part) -> None:
    at, see = Positions.consecutive(length, start), Visibility(causal, 9)
    found = []
    for backend in ("banded", "reference"):
        torch.manual_seed(0)
        scheme = Relative(2, 6).double()
        torch.nn.init.normal_(scheme.table.weight)
        q, k, v = (torch.randn(batch, 2, length, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
        out = softmax_attention(AttentionCall(q, k, at, at, see, scheme, softmax=Softmax(**part)), v, backend)
        out.square().sum().backward()
        found.append((out.detach(), q.grad, k.grad, v.grad, scheme.table.weight.grad))
    for band, reference in zip(*found, strict=True):
        assert (band - reference).abs().max() <= 1e-12


def test_a_bands_weights_are_dropped_as_its_gradient_says() -> None:
    """With the same mask the output is linear in the values, and that is its gradient."""
    at, see = Positions.consecutive(50), Visibility(True, 9)
    q, k, v = (torch.randn(1, 2, 50, 4, dtype=torch.float64) for _ in range(3))
    call = AttentionCall(q, k, at, at, see, PositionScheme(), 0.4)

    def mixed(values: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return softmax_attention(call, values, "banded")

    v.requires_grad_()
    (mixed(v) * q).sum().backward()
    change = torch.randn_like(v)
    assert torch.allclose(((mixed(v + change) - mixed(v)) * q).sum(), (v.grad * change).sum())
    assert not torch.allclose(mixed(v), softmax_attention(replace(call, dropout=0.0), v, "banded"))


def test_a_backend_that_cannot_serve_says_why() -> None:
    class Content(PositionScheme):
        def content_bias(self, q, k, q_pos, k_pos):
            return q @ k.transpose(-2, -1)

    at, q = Positions.consecutive(3), heads(1, 1, 3, 4)
    case = AttentionCall(q, q, at, at, Visibility(True), Content())
    assert choose_backend(case).name == "reference"
    with pytest.raises(ValueError, match="terms depend on queries and keys"):
        choose_backend(case, "sdpa")
    with pytest.raises(ValueError, match="unknown attention backend"):
        choose_backend(case, "fast")
