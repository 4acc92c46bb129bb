import pytest
import torch

from engine.base.errors import InputError
from engine.config.schema import RunConfig
from engine.data.loader import TextBatches
from engine.tasks.text import NextTokenObjective

TOKENS = torch.arange(1000)
EIGHT = RunConfig.model_validate({"model": {"context_length": 8}})


def batches(tokens: torch.Tensor, batch_size: int, seed: int, **epochs: int) -> TextBatches:
    return TextBatches(tokens, NextTokenObjective(EIGHT, 10), batch_size, seed, **epochs)


def test_a_batch_depends_on_seed_step_and_micro_batch_only() -> None:
    stream = batches(TOKENS, 4, seed=1)
    first = stream.windows(3, 1)
    for step in range(1, 6):
        stream.windows(step, 0)
    assert torch.equal(stream.windows(3, 1), first)
    assert torch.equal(batches(TOKENS, 4, seed=1).windows(3, 1), first)
    for other in (stream.windows(3, 0), stream.windows(4, 1), batches(TOKENS, 4, seed=2).windows(3, 1)):
        assert not torch.equal(other, first)


def test_targets_are_the_inputs_one_later() -> None:
    batch = batches(TOKENS, 4, seed=1).batch(1, 0)
    assert batch.tokens.shape == (4, 8) and torch.equal(batch.targets, batch.tokens + 1)
    assert batch.n_targets == 32


def test_every_window_can_be_drawn_and_none_passes_the_end() -> None:
    stream = batches(torch.arange(12), 64, seed=1)
    starts = torch.cat([stream.windows(step, 0)[:, 0] for step in range(1, 20)])
    assert set(starts.tolist()) == {0, 1, 2, 3}


def test_a_text_shorter_than_a_window_is_refused() -> None:
    with pytest.raises(InputError, match="fewer than the 9 that one example needs"):
        batches(torch.arange(8), 4, seed=1)
    assert batches(torch.arange(9), 2, seed=1).windows(1, 0)[0, -1] == 8


def test_an_epoch_takes_every_window_once_in_an_order_of_its_own() -> None:
    stream = batches(torch.arange(31), 3, stride=2, accumulation=2, seed=1)
    assert stream.n_windows == 12 and stream.steps_per_epoch == 2
    epochs = []
    for epoch in range(2):
        steps = [1 + 2 * epoch, 2 + 2 * epoch]
        epochs.append(torch.cat([stream.windows(s, m)[:, 0] for s in steps for m in (0, 1)]).tolist())
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(0, 24, 2))
    assert epochs[0] != epochs[1]


def test_the_last_batch_of_an_epoch_may_be_smaller_or_empty() -> None:
    stream = batches(torch.arange(15), 4, stride=1, accumulation=2, seed=1)
    assert [len(stream.windows(1, m)) for m in (0, 1)] == [4, 3]
    short = batches(torch.arange(11), 4, stride=1, accumulation=2, seed=1)
    assert [len(short.windows(1, m)) for m in (0, 1)] == [3, 0]
    assert short.batch(1, 1).n_targets == 0


def test_epochs_are_a_pure_function_too() -> None:
    a = batches(TOKENS, 4, stride=1, seed=1)
    later = a.windows(700, 0)
    a.windows(3, 0)
    assert torch.equal(a.windows(700, 0), later)
    assert torch.equal(batches(TOKENS, 4, stride=1, seed=1).windows(700, 0), later)
