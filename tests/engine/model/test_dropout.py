"""Dropout stays what it says: its rate, its mean, and no element, row, layer or step knows of another."""

import numpy as np
import pytest
import torch

from engine.model.dropout import Dropout, dropout, keep_mask
from engine.model.transformer import build_model

RATES = [0.001, 0.01, 0.05, 0.1, 0.19, 0.2, 0.3, 0.5, 0.9, 0.99]


@pytest.mark.parametrize("p", RATES)
def test_the_rate_is_p_to_two_thousandths_and_the_mean_stays(p: float) -> None:
    torch.manual_seed(0)
    x = torch.ones(2000, 1000)
    out = dropout(x, p)
    assert (out == 0).double().mean().item() == pytest.approx(p, abs=0.0024 if p > 0.005 else 0.0002)
    kept = out[out != 0]
    assert kept.min() == kept.max()
    assert out.double().mean().item() == pytest.approx(1.0, abs=5e-3 * max(1.0, (p / (1 - p)) ** 0.5))


def masks(n: int, p: float = 0.1, length: int = 4096) -> np.ndarray:
    """(n, length) of 0 and 1, centred."""
    return np.stack([(keep_mask((length,), p) > 0).numpy().astype(np.float64) for _ in range(n)]) - (1 - 26 / 256)


def test_elements_rows_and_calls_are_independent() -> None:
    """Every correlation that a bad stream would show is within what chance allows (5 standard errors)."""
    torch.manual_seed(1)
    drawn = masks(400)
    variance = (26 / 256) * (1 - 26 / 256)
    for lag in (1, 2, 3, 4, 7, 8, 16, 64, 128, 256, 1024):  # along the bytes: neighbours, words, rows
        n = drawn[:, lag:].size
        correlation = (drawn[:, lag:] * drawn[:, :-lag]).mean() / variance
        assert abs(correlation) < 5 / np.sqrt(n), lag
    between = (drawn[:-1] * drawn[1:]).mean() / variance  # one call and the next
    assert abs(between) < 5 / np.sqrt(drawn[1:].size)
    places = drawn.mean(0)  # no place is dropped more often than others
    assert np.abs(places).max() < 5.5 * np.sqrt(variance / 400)


def test_bits_of_a_byte_do_not_tell_of_the_next_call() -> None:
    """Consecutive seeds give unrelated streams."""
    streams = []
    for seed in range(200):
        torch.manual_seed(seed)
        streams.append((keep_mask((4096,), 0.5) > 0).numpy().astype(np.float64) - 0.5)
    matrix = np.corrcoef(np.stack(streams))
    off = matrix[~np.eye(200, dtype=bool)]
    assert np.abs(off).max() < 5.5 / np.sqrt(4096)


def test_layers_and_steps_draw_masks_of_their_own(tiny) -> None:
    model = build_model(tiny("model.dropout=0.5").model, 11, 1).train()
    seen: list[torch.Tensor] = []
    for module in model.modules():
        if isinstance(module, Dropout):
            module.register_forward_hook(lambda _, inputs, out: seen.append((out == 0)[inputs[0] != 0]))
    tokens = torch.randint(11, (4, 16))
    for seed in (1, 2):
        torch.manual_seed(seed)
        model(tokens)
    for i, a in enumerate(seen):
        for b in seen[i + 1 :]:
            n = min(len(a), len(b))
            assert abs((a[:n] == b[:n]).double().mean().item() - 0.5) < 5 * 0.5 / n**0.5


def test_equal_seeds_give_equal_masks_and_the_gradient_has_the_outputs(tiny) -> None:
    x = torch.randn(64, 64, requires_grad=True)
    torch.manual_seed(3)
    out = dropout(x, 0.3)
    torch.manual_seed(3)
    assert torch.equal(dropout(x, 0.3), out)
    out.sum().backward()
    assert torch.equal(x.grad == 0, out == 0)
    assert torch.allclose(x.grad[out != 0] * x[out != 0], out[out != 0])


def test_nothing_is_dropped_in_evaluation_or_at_rate_zero() -> None:
    x = torch.randn(8, 8)
    assert Dropout(0.5).eval()(x) is x and dropout(x, 0.0) is x


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_the_dtype_stays(dtype: torch.dtype) -> None:
    assert dropout(torch.ones(9, 7, dtype=dtype), 0.1).dtype is dtype
