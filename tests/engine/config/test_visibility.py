import numpy as np
import pytest
import torch

from engine.config.visibility import Visibility

Q, K = np.arange(40)[:, None], np.arange(40)[None, :]


def test_a_causal_window_of_16_shows_16_keys_with_self() -> None:
    seen = Visibility(causal=True, window=16)(Q, K)
    assert list(seen.sum(1)) == [min(i + 1, 16) for i in range(40)]
    assert all(seen[i, i] for i in range(40))


@pytest.mark.parametrize(("window", "keys"), [(16, 17), (33, 33)])
def test_a_two_sided_window_shows_radius_half(window: int, keys: int) -> None:
    assert Visibility(causal=False, window=window)(Q, K)[20].sum() == keys


def test_causal_shows_the_past_and_self_only() -> None:
    assert (Visibility(causal=True)(Q, K) == np.tril(np.ones((40, 40), bool))).all()


def test_links_are_seen_from_everywhere_after_them() -> None:
    seen = Visibility(causal=True, window=4, link_every=8)(Q, K)
    assert seen[39, 7] and seen[39, 15] and not seen[39, 8] and not seen[5, 7]


def test_an_empty_slot_never_sees_and_is_never_seen() -> None:
    see = Visibility(causal=False)
    assert not see(-1, 3) and not see(3, -1) and not see(-1, -1) and see(3, 3)


def test_ints_arrays_and_tensors_agree() -> None:
    see = Visibility(causal=True, window=5, link_every=7)
    array = see(Q, K)
    tensor = see(torch.arange(40)[:, None], torch.arange(40)[None, :])
    assert (tensor.numpy() == array).all()
    assert all(bool(see(q, k)) == array[q, k] for q in range(40) for k in range(40))


def test_reach_is_layers_times_window_minus_one() -> None:
    assert Visibility(causal=True, window=16).reach(2) == 30
    assert Visibility(causal=True).reach(2) is None
