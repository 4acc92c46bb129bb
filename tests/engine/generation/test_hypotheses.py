"""One sentence's beam over invented languages: no model, so thousands of them."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.generation.beam import LENGTH_PENALTIES, Hypothesis, SentenceBeam, make_length_penalty

END = 9


class Patient(SentenceBeam):
    """Never stops early."""

    def _is_settled(self) -> bool:
        return False


def search(kind: type[SentenceBeam], options: tuple, seed: int, likes_to_end: float) -> tuple[list[Hypothesis], int]:
    """The translations under a language whose chances are drawn anew for each prefix, and the steps it took."""
    sentence, texts, steps = kind(*options), [()], 0
    while sentence.live:
        assert [live.tokens for live in sentence.live] == texts
        steps += 1
        extensions = []
        for text in texts:
            drawn = random.Random(f"{seed} {text}")
            weights = {token: drawn.random() ** 3 + 1e-6 for token in range(4)} | {END: likes_to_end * drawn.random()}
            ranked = sorted(weights, key=lambda token: -weights[token])
            extensions.append([(token, math.log(weights[token] / sum(weights.values()) + 1e-9)) for token in ranked])
        texts = [(*texts[parent], token) for parent, token in sentence.advance(extensions)]
    return sentence.done[: sentence.n_best], steps


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(1, 8),
    st.sampled_from(sorted(LENGTH_PENALTIES)),
    st.floats(-3, 3),
    st.sampled_from([0.1, 0.5, 2.0]),
)
def test_stopping_early_never_changes_the_best(
    seed: int, beam: int, wanted: int, limit: int, penalty, alpha: float, likes_to_end: float
) -> None:
    options = (beam, min(wanted, beam), limit, END, make_length_penalty(penalty, alpha))
    found, steps = search(SentenceBeam, options, seed, likes_to_end)
    expected, most = search(Patient, options, seed, likes_to_end)
    assert found == expected and steps <= most <= limit


@pytest.mark.parametrize("alpha, ends_at_once, best", [(1.0, 0.8, 10), (-1.0, 0.2, 2)])
def test_the_hope_is_that_of_the_length_which_flatters_most(alpha: float, ends_at_once: float, best: int) -> None:
    """A text ends at once, or goes on for sure: to the limit of 10 or, where length is a fault, to one token more.

    At the first end the other text seems to have lost already, if its hope is reckoned at the wrong length.
    """
    sentence = SentenceBeam(2, 1, 10, END, make_length_penalty("power", alpha))
    sentence.advance([[(END, math.log(ends_at_once)), (0, math.log(1 - ends_at_once))]])
    while sentence.live:
        sentence.advance(
            [[(END, 0.0), (0, -9.0)] if len(live.tokens) == best - 1 else [(0, 0.0)] for live in sentence.live]
        )
    assert len(sentence.done[0].tokens) == best - 1


def test_no_search_goes_on_without_hope() -> None:
    """These could take 30 steps; the figures are what the tightest bound without a look ahead needs."""
    for alpha, most in ((-1.0, 3.0), (0.0, 3.5), (0.6, 5.5)):
        options = (4, 1, 30, END, make_length_penalty("gnmt", alpha))
        steps = [search(SentenceBeam, options, seed, 0.5)[1] for seed in range(40)]
        assert sum(steps) / len(steps) < most, (alpha, sum(steps) / len(steps))
