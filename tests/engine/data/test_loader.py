import pytest
import torch

from engine.data.loader import EpochWindows, RandomWindows
from engine.errors import InputError

TOKENS = torch.arange(1000)


def test_a_batch_depends_on_seed_step_and_micro_batch_only() -> None:
    stream = RandomWindows(TOKENS, 8, 4, seed=1)
    first = stream.batch(3, 1).tokens
    for step in range(1, 6):
        stream.batch(step, 0)
    assert torch.equal(stream.batch(3, 1).tokens, first)
    assert torch.equal(RandomWindows(TOKENS, 8, 4, seed=1).batch(3, 1).tokens, first)
    for other in (stream.batch(3, 0), stream.batch(4, 1), RandomWindows(TOKENS, 8, 4, seed=2).batch(3, 1)):
        assert not torch.equal(other.tokens, first)


def test_targets_are_the_inputs_one_later() -> None:
    batch = RandomWindows(TOKENS, 8, 4, seed=1).batch(1, 0)
    assert batch.tokens.shape == (4, 8) and torch.equal(batch.targets, batch.tokens + 1)
    assert batch.n_targets == 32


def test_every_window_can_be_drawn_and_none_passes_the_end() -> None:
    stream = RandomWindows(torch.arange(12), 8, 64, seed=1)
    starts = torch.cat([stream.batch(step, 0).tokens[:, 0] for step in range(1, 20)])
    assert set(starts.tolist()) == {0, 1, 2, 3}


def test_a_text_shorter_than_a_window_is_refused() -> None:
    with pytest.raises(InputError, match="shorter than one context of 8"):
        RandomWindows(torch.arange(8), 8, 4, seed=1)
    assert RandomWindows(torch.arange(9), 8, 2, seed=1).batch(1, 0).targets[0, -1] == 8


def test_an_epoch_takes_every_window_once_in_an_order_of_its_own() -> None:
    stream = EpochWindows(torch.arange(31), 8, 2, batch_size=3, accumulation=2, seed=1)
    assert stream.n_windows == 12 and stream.steps_per_epoch == 2
    epochs = []
    for epoch in range(2):
        steps = [1 + 2 * epoch, 2 + 2 * epoch]
        epochs.append(torch.cat([stream.batch(s, m).tokens[:, 0] for s in steps for m in (0, 1)]).tolist())
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(0, 24, 2))
    assert epochs[0] != epochs[1]


def test_the_last_batch_of_an_epoch_may_be_smaller_or_empty() -> None:
    stream = EpochWindows(torch.arange(15), 8, 1, batch_size=4, accumulation=2, seed=1)
    assert [len(stream.batch(1, m).tokens) for m in (0, 1)] == [4, 3]
    short = EpochWindows(torch.arange(11), 8, 1, batch_size=4, accumulation=2, seed=1)
    assert [len(short.batch(1, m).tokens) for m in (0, 1)] == [3, 0] and short.batch(1, 1).n_targets == 0


def test_epochs_are_a_pure_function_too() -> None:
    a = EpochWindows(TOKENS, 8, 1, 4, 1, seed=1)
    later = a.batch(700, 0).tokens
    a.batch(3, 0)
    assert torch.equal(a.batch(700, 0).tokens, later)
    assert torch.equal(EpochWindows(TOKENS, 8, 1, 4, 1, seed=1).batch(700, 0).tokens, later)
