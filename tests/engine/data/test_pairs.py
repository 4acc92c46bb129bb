"""Batches of sentence pairs: every pair once an epoch, within the budget, the same whenever they are asked for."""

from collections import Counter

import numpy as np
import pytest
import torch

from engine.base.errors import InputError
from engine.config.schema import RunConfig
from engine.data.objectives import IGNORED, make_objective
from engine.data.rows import BothSpecials, EncodedPairs, Specials, pair_batch
from engine.tasks.translation import PairBatches

WORDS = 50
SPECIAL = BothSpecials(Specials.numbered_from(WORDS), Specials.numbered_from(WORDS))


def pairs(n: int = 300, seed: int = 0) -> EncodedPairs:
    draw = np.random.default_rng(seed)
    side = lambda: [draw.integers(0, WORDS, draw.integers(1, 30)).astype(np.int64) for _ in range(n)]
    return EncodedPairs(side(), side())


def batches(found: EncodedPairs, architecture: str = "encoder-decoder", **train: object) -> PairBatches:
    config = RunConfig.model_validate(
        {"model": {"architecture": architecture}, "objective": {"kind": "translation"}, "train": train}
    )
    return PairBatches(found, config, make_objective(config, WORDS), SPECIAL)


def sources(batch) -> list[tuple[int, ...]]:
    return [tuple(int(t) for t in row if t < WORDS) for row in batch.source]


def test_every_pair_comes_once_an_epoch_in_an_order_of_its_own() -> None:
    found = pairs()
    stream = batches(found, batch_tokens=200)
    expected = Counter(tuple(map(int, source)) for source in found.sources)
    epochs, step = [], 1
    for _ in range(3):
        seen: list[tuple[int, ...]] = []
        while len(seen) < len(found):
            seen += sources(stream.batch(step, 0))
            step += 1
        assert Counter(seen) == expected
        epochs.append(seen)
    assert epochs[0] != epochs[1] != epochs[2]


def test_no_batch_is_larger_than_the_budget_and_little_of_it_is_padding() -> None:
    stream = batches(pairs(2_000), batch_tokens=400)
    for step in range(1, stream.steps_per_epoch + 1):
        batch = stream.batch(step, 0)
        assert batch.tokens.shape[0] * max(batch.tokens.shape[1], batch.source.shape[1]) <= 400
    assert stream.padding_share < 0.35  # of two sides of independent lengths: the shorter one is filled up


def test_like_lengths_stand_side_by_side() -> None:
    stream = batches(pairs(2_000), batch_size=16)
    spread = [np.ptp((stream.batch(step, 0).targets != IGNORED).sum(1).numpy()) for step in range(1, 30)]
    shuffled = np.ptp(pairs(2_000).lengths[:16, 1])
    assert np.mean(spread) < shuffled


def test_a_batch_depends_on_seed_step_and_micro_batch_only() -> None:
    found = pairs()
    stream = batches(found, batch_tokens=200, accumulation=2)
    late = stream.batch(40, 1)
    for step in (1, 7, 39):
        stream.batch(step, 0)
    again = batches(found, batch_tokens=200, accumulation=2).batch(40, 1)
    assert torch.equal(late.source, again.source) and torch.equal(late.targets, again.targets)
    assert torch.equal(stream.batch(40, 1).tokens, late.tokens)


def test_targets_are_the_tokens_one_later_then_the_end() -> None:
    found = EncodedPairs([np.array([5, 6])], [np.array([7, 8, 9])])
    batch = pair_batch(found, SPECIAL)
    start, end = SPECIAL.target.start, SPECIAL.target.end
    assert batch.tokens.tolist() == [[start, 7, 8, 9]] and batch.targets.tolist() == [[7, 8, 9, end]]
    assert batch.source.tolist() == [[5, 6, SPECIAL.source.end]] and batch.n_targets == 4


def test_a_decoder_reads_source_start_and_target_as_one_text_and_predicts_the_target_alone() -> None:
    found = EncodedPairs([np.array([5, 6]), np.array([5])], [np.array([7, 8]), np.array([9])])
    batch = pair_batch(found, SPECIAL, joined=True)
    pad, start, end = SPECIAL.target
    assert batch.tokens.tolist() == [[5, 6, start, 7, 8], [5, start, 9, pad, pad]]
    assert batch.targets.tolist() == [[IGNORED, IGNORED, 7, 8, end], [IGNORED, 9, end, IGNORED, IGNORED]]
    assert batch.source is None and batch.n_targets == 5 and found.joined_lengths.tolist() == [[5], [3]]


def test_a_decoders_batches_hold_every_pair_once_an_epoch_within_the_budget() -> None:
    found = pairs()
    stream = batches(found, "decoder", batch_tokens=200)
    epoch = [stream.batch(step, 0) for step in range(1, stream.steps_per_epoch + 1)]
    assert sum(batch.n_targets for batch in epoch) == found.lengths[:, 1].sum()
    assert all(batch.tokens.numel() <= 200 for batch in epoch) and stream.padding_share < 0.1


def test_padding_is_predicted_by_nobody_and_stands_nowhere() -> None:
    found = EncodedPairs([np.array([5]), np.array([5, 6, 7])], [np.array([7]), np.array([8, 9, 1])])
    batch = pair_batch(found, SPECIAL)
    assert batch.targets[0].tolist() == [7, SPECIAL.target.end, IGNORED, IGNORED]
    assert batch.source_positions.index[0].tolist() == [0, 1, -1, -1] and batch.n_targets == 6


def test_pieces_of_a_batch_are_its_rows() -> None:
    batch = pair_batch(pairs(7), SPECIAL)
    pieces = list(batch.chunk(3))
    assert torch.equal(torch.cat([piece.source_positions.index for piece in pieces]), batch.source_positions.index)
    assert torch.equal(torch.cat([piece.targets for piece in pieces]), batch.targets)


def test_a_sentence_longer_than_the_budget_is_refused() -> None:
    with pytest.raises(InputError, match="train.batch_tokens = 8"):
        batches(pairs(), batch_tokens=8)


def test_no_pair_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="no sentence pair"):
        batches(EncodedPairs([], []))
