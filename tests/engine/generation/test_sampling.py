import pytest
import torch

from engine.generation.sampling import FromDecoder, Sampling, distribution, stream
from engine.model.transformer import build_model

VOCAB = 11
GREEDY = Sampling(temperature=0.0)
PROMPT = torch.tensor([1, 2, 3])


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def model(tiny):
    return build_model(tiny("model.init_std=0.3").model, VOCAB, 1).eval()


def ids(model, length: int, how: Sampling = Sampling(1.0, 0), seed: int = 1, prompt=PROMPT) -> list[int]:
    return [d.token for d in stream(FromDecoder(model), prompt, length, how, seed, context=16)]


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
    drawn = list(stream(FromDecoder(model), PROMPT, 40, GREEDY, 1, context=16))
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
    for drawn in stream(FromDecoder(model), PROMPT, 10, Sampling(0.5, 3, 0.9), 1, context=16):
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
    assert distribution(LOGITS.flip(1), Sampling(1.0, 0), allowed=2)[:, 2:].sum() == 0


def test_an_empty_prompt_is_an_error(model) -> None:
    with pytest.raises(ValueError, match="at least one token"):
        ids(model, 1, prompt=torch.tensor([], dtype=torch.long))
