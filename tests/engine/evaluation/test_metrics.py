import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from engine.config.schema import RunConfig
from engine.data.baselines import bigram_loss, unigram_loss
from engine.data.loader import TextBatches
from engine.data.synthetic.grammar import TextProbe
from engine.evaluation.metrics import (
    TargetScores,
    excess_over_floor,
    nanogpt_loss,
    probe_counts,
    score_tokens,
    scoring_windows,
)
from engine.model.transformer import build_model
from engine.tasks.text import NextTokenObjective

VOCAB = 11
TOKENS = torch.randint(VOCAB, (101,), generator=torch.Generator().manual_seed(3))


@pytest.fixture
def model(tiny):
    return build_model(tiny("model.context_length=8", "model.dropout=0.5", "model.init_std=0.3").model, VOCAB, 1)


def one_at_a_time(model, context: int, stride: int) -> float:
    """The definition, without batches: each token from the first window that has it as a target."""
    model.eval()
    total = 0.0
    for target in range(1, len(TOKENS)):
        start = max(0, math.ceil((target - context) / stride)) * stride
        with torch.no_grad():
            logits = model(TOKENS[None, start:target])[0, -1]
        total += F.cross_entropy(logits.double(), TOKENS[target]).item()
    return total / (len(TOKENS) - 1)


@pytest.mark.parametrize(("context", "stride"), [(8, 8), (8, 4), (8, 1), (7, 3), (8, 5)])
def test_exact_loss_equals_a_naive_token_by_token_sum(model, context: int, stride: int) -> None:
    scores = score_tokens(model, TOKENS, context=context, stride=stride, batch_size=4)
    assert scores.loss == pytest.approx(one_at_a_time(model, context, stride), abs=1e-6)
    assert len(scores.nll) == len(TOKENS) - 1


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_the_evaluation_batch_size_does_not_change_the_score(model, batch_size: int) -> None:
    a = score_tokens(model, TOKENS, context=8, stride=4, batch_size=7)
    b = score_tokens(model, TOKENS, context=8, stride=4, batch_size=batch_size)
    assert a.loss == pytest.approx(b.loss, abs=1e-6) and (a.correct == b.correct).all()


def test_evaluation_switches_dropout_off_and_back_on(model) -> None:
    model.train()
    losses = {score_tokens(model, TOKENS, context=8, stride=8, batch_size=4).loss for _ in range(2)}
    assert len(losses) == 1 and model.training


def test_every_target_is_in_one_window_with_the_promised_history() -> None:
    for n in (2, 9, 10, 100, 101):
        for context, stride in ((8, 8), (8, 4), (8, 3), (200, 100)):
            seen = []
            for start, length, scored in scoring_windows(n, context, stride):
                targets = range(start + length - scored + 1, start + length + 1)
                seen += targets
                assert all(t - start >= min(t, context - stride) for t in targets)
            assert seen == list(range(1, n))


def test_loss_is_a_sum_over_tokens_not_a_mean_of_batch_means(model) -> None:
    scores = score_tokens(model, TOKENS[:12], context=8, stride=8, batch_size=1)
    means = [scores.nll[:8].mean(), scores.nll[8:].mean()]
    assert scores.loss == pytest.approx(scores.nll.sum() / 11)
    assert abs(scores.loss - np.mean(means)) > 1e-6


EIGHT = RunConfig.model_validate({"model": {"context_length": 8}})


def scores_of(nll: np.ndarray, correct: np.ndarray, stride: int) -> TargetScores:
    return TargetScores(nll, correct, np.zeros(len(nll), np.int32), 8, stride)


def test_perplexity_and_bits_follow_from_the_loss() -> None:
    scores = scores_of(np.full(10, math.log(2)), np.ones(10, bool), 8)
    assert scores.perplexity == pytest.approx(2) and scores.bits_per_character(10) == pytest.approx(1)
    assert scores_of(np.full(2, 1e4), np.ones(2, bool), 8).perplexity == math.inf


def test_probes_count_only_places_whose_evidence_the_window_shows() -> None:
    correct = np.zeros(20, bool)
    correct[14] = True  # the token at offset 15
    scores = replace(scores_of(np.zeros(20), correct, 8), place=np.arange(20, dtype=np.int32) % 8)
    # Offset 10 is predicted at place 1, which shows two characters; offset 15 at place 6, which shows seven.
    at, distance = np.array([10, 10, 15, 15, 15]), np.array([2, 3, 1, 7, 8])
    assert probe_counts(scores, (TextProbe("recall", "", 0.1, 0.2, at=at, distance=distance),)) == {"recall": (2, 3)}


def test_a_probe_without_a_place_has_no_score() -> None:
    scores = scores_of(np.zeros(20), np.ones(20, bool), 8)  # every window begins at the character before
    probe = TextProbe("recall", "", 0.1, 0.2, at=np.array([10]), distance=np.array([2]))
    assert probe_counts(scores, (probe,)) == {}


def test_excess_is_over_the_same_characters() -> None:
    floor = np.array([100.0, 1.0, 2.0])  # the first character is never scored
    assert excess_over_floor(scores_of(np.array([2.0, 3.0]), np.ones(2, bool), 8), floor) == pytest.approx(1.0)


def test_excess_leaves_out_characters_whose_floor_is_unknown() -> None:
    floor = np.array([np.nan, 1.0, np.nan])
    assert excess_over_floor(scores_of(np.array([2.0, 9.0]), np.ones(2, bool), 8), floor) == pytest.approx(1.0)


def test_nanogpt_protocol_is_the_mean_of_random_batches(model) -> None:
    batches = TextBatches(TOKENS, NextTokenObjective(EIGHT, 10), 4, seed=1)
    loss = nanogpt_loss(model, batches, 3)
    model.eval()
    expected = [
        F.cross_entropy(model(b.tokens).flatten(0, 1), b.targets.flatten()).item()
        for b in map(batches.batch, range(3), [0] * 3)
    ]
    assert loss == pytest.approx(np.mean(expected), abs=1e-6)


def test_count_lines_by_hand() -> None:
    train, held_out = np.array([0, 1] * 500), np.array([0, 1] * 50)
    assert unigram_loss(train, held_out, 2) == pytest.approx(math.log(2), abs=1e-3)
    assert bigram_loss(train, held_out, 2) == pytest.approx(0.0, abs=2e-2)
    assert bigram_loss(train, held_out, 5_000) is None


def test_count_lines_of_tiny_shakespeare(real_data) -> None:
    from engine.config.sections import DataConfig
    from engine.data.catalogue import load_corpus
    from engine.data.corpora import TextCorpus
    from engine.data.tokenizers import CharacterTokenizer

    splits = load_corpus(TextCorpus, DataConfig(corpus="tiny-shakespeare"), real_data).splits
    tokenizer = CharacterTokenizer.from_texts(s.text for s in splits.values())
    train, held_out = (tokenizer.encode(splits[name].text) for name in ("train", "validation"))
    assert unigram_loss(train, held_out, 65) == pytest.approx(3.347, abs=2e-3)
    assert bigram_loss(train, held_out, 65) == pytest.approx(2.484, abs=1e-2)
