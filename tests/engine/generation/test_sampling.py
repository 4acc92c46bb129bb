from dataclasses import replace
from typing import get_args

import pytest
import torch

from engine.config.model import ModelConfig
from engine.generation.sampling import Sampling, distribution, fill_gaps, sample_step, stream_tokens
from engine.model.decoding import Predictor
from engine.model.transformer import build_model
from tests.fake_card import data_of, fake_card

VOCAB = 11
GREEDY = Sampling(temperature=0.0)
PROMPT = torch.tensor([1, 2, 3])


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def model(tiny):
    return build_model(tiny("model.init_std=0.3").model, VOCAB, 1).eval()


def ids(model, length: int, how: Sampling = Sampling(1.0, 0), seed: int = 1, prompt=PROMPT) -> list[int]:
    return [d.token for d in stream_tokens(Predictor(model), prompt, length, how, seed, context=16)]


def test_greedy_takes_the_likeliest_of_a_full_pass_each_time(model) -> None:
    text = PROMPT.tolist()
    for _ in range(13):  # until the context is full
        with torch.no_grad():
            text.append(int(model(torch.tensor([text]))[0, -1].argmax()))
    assert ids(model, 13, GREEDY) == text[3:]


def test_a_full_context_restarts_from_its_newest_half(model) -> None:
    """The overflow rule, written out: read the newest 8 of 16 again from position 0."""
    text = PROMPT.tolist()
    window = list(text)
    expected_restarts = []
    for i in range(40):
        if len(window) > 16:
            window = window[-8:]
            expected_restarts.append(i)
        with torch.no_grad():
            text.append(int(model(torch.tensor([window]))[0, -1].argmax()))
        window.append(text[-1])
    drawn = list(stream_tokens(Predictor(model), PROMPT, 40, GREEDY, 1, context=16))
    assert [d.token for d in drawn] == text[3:]
    assert [i for i, d in enumerate(drawn) if d.restarted] == expected_restarts == [14, 23, 32]


def test_stop_ends_at_a_full_context(model) -> None:
    assert len(ids(model, 40, Sampling(0.0, overflow="stop"))) == 14


def test_learned_positions_survive_the_overflow(tiny) -> None:
    learned = build_model(tiny("model.position=learned").model, VOCAB, 1).eval()
    assert len(ids(learned, 60)) == 60


def test_a_long_prompt_counts_by_its_newest_context(model) -> None:
    prompt = torch.randint(VOCAB, (50,), generator=generator())
    assert ids(model, 1, GREEDY, prompt=prompt) == ids(model, 1, GREEDY, prompt=prompt[-16:])


def test_equal_seeds_draw_equal_texts_and_leave_torchs_own_alone(model) -> None:
    torch.manual_seed(9)
    expected = torch.rand(1)
    torch.manual_seed(9)
    assert ids(model, 20) == ids(model, 20) != ids(model, 20, seed=2)
    assert torch.equal(torch.rand(1), expected)


def test_draws_follow_the_distribution(model) -> None:
    with torch.no_grad():
        expected = model(PROMPT[None])[0, -1].softmax(-1)
    drawn = torch.tensor([ids(model, 1, seed=s)[0] for s in range(2000)])
    found = torch.bincount(drawn, minlength=VOCAB) / 2000
    assert (found - expected).abs().max() < 0.04


def test_reported_probabilities_are_the_models_own(model) -> None:
    text = PROMPT.tolist()
    for drawn in stream_tokens(Predictor(model), PROMPT, 10, Sampling(0.5, 3, 0.9), 1, context=16):
        with torch.no_grad():
            probability = model(torch.tensor([text]))[0, -1].softmax(-1)[drawn.token].item()
        assert drawn.probability == pytest.approx(probability, abs=1e-6)
        text.append(drawn.token)


LOGITS = torch.tensor([[2.0, 1.0, 0.0, -1.0]])


def test_cuts_keep_what_they_say() -> None:
    p = LOGITS.softmax(-1)[0]
    assert torch.allclose(distribution(LOGITS, Sampling(1.0, 0))[0], p)
    assert torch.allclose(distribution(LOGITS, Sampling(1.0, 2))[0], torch.tensor([p[0], p[1], 0, 0]) / p[:2].sum())
    assert distribution(LOGITS, Sampling(1.0, 0, 0.5)).tolist() == [[1, 0, 0, 0]]
    assert (distribution(LOGITS, Sampling(1.0, 0, 0.7)) > 0).tolist() == [[True, True, False, False]]
    assert torch.allclose(distribution(LOGITS, Sampling(2.0, 0)), (LOGITS / 2).softmax(-1))


@pytest.mark.parametrize("how", [Sampling(1e-30, 0), Sampling(100.0, 0), Sampling(0.0), Sampling(1.0, 10**6, 1e-6)])
def test_extreme_settings_stay_distributions(how: Sampling) -> None:
    p = distribution(LOGITS * 1000, how)
    assert torch.isfinite(p).all() and p.sum().item() == pytest.approx(1.0)


def test_tokens_the_tokenizer_lacks_are_never_drawn() -> None:
    chances = torch.rand(500, 1, generator=generator())
    drawn = sample_step(LOGITS.flip(1).expand(500, -1), Sampling(1.0, 0), 1 - chances, torch.arange(2))
    assert set(drawn.tokens[:, 0].tolist()) == {0, 1}


def test_an_empty_prompt_is_an_error(model) -> None:
    with pytest.raises(ValueError, match="at least one token"):
        ids(model, 1, prompt=torch.tensor([], dtype=torch.long))


HOWS = [Sampling(1.0, 0), Sampling(0.5, 3, 0.9), Sampling(0.7, 0, 0.6), Sampling(0.0)]


@pytest.mark.parametrize("how", HOWS)
def test_telling_alternatives_changes_nothing_that_is_drawn(model, how) -> None:
    plain = list(stream_tokens(Predictor(model), PROMPT, 40, how, 1, context=16))
    told = list(stream_tokens(Predictor(model), PROMPT, 40, how, 1, context=16, alternatives=5))
    assert [replace(drawn, alternatives=()) for drawn in told] == plain
    assert all(len(drawn.alternatives) == 5 for drawn in told) and not plain[0].alternatives


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("position", get_args(ModelConfig.model_fields["position"].annotation))
@pytest.mark.parametrize("allowed", [None, VOCAB - 2])
def test_alternatives_from_the_cache_are_the_best_of_a_direct_pass(tiny, position, how, allowed) -> None:
    model = build_model(tiny("model.init_std=0.3", f"model.position={position}").model, VOCAB, 1).eval()
    text, ids = PROMPT.tolist(), None if allowed is None else torch.arange(allowed)
    for drawn in stream_tokens(Predictor(model), PROMPT, 12, how, 1, context=16, alternatives=5, allowed=ids):
        with torch.no_grad():
            logits = model(torch.tensor([text]))[:, -1]
        belief, chances = logits.softmax(-1)[0], distribution(logits[:, :allowed], how)[0]
        best = belief[:allowed].topk(5)
        assert [one.token for one in drawn.alternatives] == best.indices.tolist()
        assert [one.probability for one in drawn.alternatives] == pytest.approx(best.values.tolist(), abs=1e-5)
        assert [one.chance for one in drawn.alternatives] == pytest.approx(chances[best.indices].tolist(), abs=1e-5)
        text.append(drawn.token)


def test_the_gaps_of_a_text_are_filled_with_their_alternatives(tiny) -> None:
    config = tiny("model.architecture=encoder", "objective.kind=masked", "model.init_std=0.3")
    model, ids = build_model(config.model, VOCAB + 1, 1).eval(), torch.tensor([1, 2, 3, 4, 5])
    gaps = torch.tensor([False, True, False, True, False])
    filled, drawn = fill_gaps(model, VOCAB, ids, gaps, Sampling(1.0, 0), 1, alternatives=3)
    with torch.no_grad():
        belief = model(torch.where(gaps, VOCAB, ids)[None])[0].softmax(-1)[gaps]
    assert filled[gaps].tolist() == [one.token for one in drawn] and filled[~gaps].tolist() == [1, 3, 5]
    for row, one in zip(belief, drawn, strict=True):
        assert one.probability == pytest.approx(row[one.token].item(), abs=1e-6)
        assert [other.token for other in one.alternatives] == row[:VOCAB].topk(3).indices.tolist()


@pytest.mark.parametrize("how", [Sampling(1.0, 0, 0.9), Sampling(0.8, 0, 1.0)], ids=str)
def test_a_card_sums_probabilities_in_fixed_point_and_draws_the_same(how: Sampling) -> None:
    logits, chances = torch.randn(64, 50, generator=generator()), torch.rand(64, 1, generator=generator()) * 0.98 + 0.01
    here = sample_step(logits, how, chances).tokens
    with fake_card() as card:
        there = sample_step(logits.to(card.device), how, chances.to(card.device)).tokens
        assert torch.equal(data_of(there).inner, here)
