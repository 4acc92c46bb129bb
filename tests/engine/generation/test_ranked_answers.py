"""The likeliest answers to one prompt: greedy as all are, exact where nothing is dropped, chances the model's."""

import math

import numpy as np
import pytest
import torch

from engine.base.errors import InputError
from engine.data.objectives import TokenPrompt
from engine.generation.answering import beam_answers, greedy_answers, sample_answer
from engine.generation.sampling import Sampling
from engine.generation.surprise import answer_surprise
from engine.model.transformer import build_model
from engine.tasks.questions import QuestionObjective
from engine.tasks.spans import corruption_objective
from tests.small_documents import config

SIZE = 5  # tokens of the text
QUESTION = np.array([0, 3, 1], dtype=np.int64)


def model_and_prompt(kind: str = "question-answer", *, reads: bool = False, **model: object):
    wanted = config(kind, reads=reads, model={"d_model": 16, "n_layers": 1, "d_ff": 32, **model})
    made = build_model(wanted.model, wanted.min_vocab_size(SIZE), 3).eval()
    with torch.no_grad():
        made.head.weight.mul_(20)  # chances that differ
    prompt = (
        QuestionObjective(wanted, SIZE).make_prompt(QUESTION)
        if kind == "question-answer"
        else corruption_objective(wanted, SIZE).gap_prompt([QUESTION, QUESTION])
    )
    return made, prompt


EVERY = [("question-answer", False), ("question-answer", True), ("span-corruption", False), ("span-corruption", True)]


@pytest.mark.parametrize(("kind", "reads"), EVERY)
def test_followed_alone_the_likeliest_answer_is_the_greedy_one(kind, reads) -> None:
    model, prompt = model_and_prompt(kind, reads=reads)
    greedy = greedy_answers(model, [prompt], text_vocab_size=SIZE, most=6)[0]
    (found,) = beam_answers(model, prompt, text_vocab_size=SIZE, most=6, beam=1)
    assert found.tokens == greedy.tokens and found.finished == greedy.finished
    drawn = list(sample_answer(model, prompt, Sampling(0.0), 1, text_vocab_size=SIZE, most=6))
    assert tuple(one.token for one in drawn)[: len(found.tokens)] == found.tokens[: len(drawn)]
    assert [one.probability for one in drawn] == pytest.approx(found.chances[: len(drawn)], abs=1e-5)


@pytest.mark.parametrize(("kind", "reads"), EVERY)
def test_a_beam_that_drops_nothing_finds_every_answer_in_order(kind, reads) -> None:
    model, prompt = model_and_prompt(kind, reads=reads)
    found = beam_answers(model, prompt, text_vocab_size=SIZE, most=3, beam=200)
    ended = [one for one in found if one.finished]
    assert len(ended) == 1 + SIZE + SIZE**2 and len({one.tokens for one in ended}) == len(ended)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    for one in ended[::7]:
        nats = [token.nats for token in answer_surprise(model, prompt, np.array(one.tokens, dtype=np.int64), SIZE)]
        assert math.fsum(nats) == pytest.approx(-one.log_probability, abs=1e-4)


def test_a_linear_model_follows_several_answers_too() -> None:
    model, prompt = model_and_prompt(attention="linear")
    found = beam_answers(model, prompt, text_vocab_size=SIZE, most=3, beam=200)
    nats = [token.nats for token in answer_surprise(model, prompt, np.array(found[2].tokens, dtype=np.int64), SIZE)]
    assert math.fsum(nats[: len(found[2].tokens)]) == pytest.approx(-sum(map(math.log, found[2].chances)), abs=1e-4)


def test_a_prompt_that_does_not_fit_is_refused() -> None:
    model, prompt = model_and_prompt(context_length=8)
    long = TokenPrompt(np.concatenate((prompt.tokens,) * 3), prompt.end)
    with pytest.raises(InputError, match="12 tokens, special tokens included; this model sees at most 8"):
        beam_answers(model, long, text_vocab_size=SIZE, most=3, beam=1)
    with pytest.raises(InputError, match="sees at most 8 at once"):
        answer_surprise(model, prompt, np.zeros(9, dtype=np.int64), SIZE)


def test_gaps_of_t5_have_sentinels_and_the_last_ends_what_is_written() -> None:
    wanted = config("span-corruption", reads=True)
    objective = corruption_objective(wanted, SIZE)
    first = objective.first_sentinel
    prompt = objective.gap_prompt([QUESTION[:1], QUESTION[1:2], QUESTION[2:]])
    assert prompt.source.tolist() == [0, first, 3, first + 1, 1]
    assert prompt.tokens.tolist() == [objective.start, first]
    assert prompt.extra_allowed == (first + 1,) and prompt.end == first + 2
