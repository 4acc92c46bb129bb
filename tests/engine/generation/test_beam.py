"""Beam search against its definition: the uncached reference, an exhaustive search, each sentence alone."""

import math
from functools import cache, partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.base.errors import InputError
from engine.generation import beam as beam_search
from engine.generation.beam import (
    LENGTH_PENALTIES,
    Hypothesis,
    Specials,
    make_length_penalty,
    top_ids_and_log_probabilities,
)
from engine.model.positions import Positions
from engine.model.transformer import Network, build_model
from tests.engine.generation.reference_beam import all_sequences, next_log_probabilities, reference_beam
from tests.engine.generation.writers import (
    CELLS,
    LENGTHS,
    LIMIT,
    NAMES,
    SOURCES,
    SPECIALS,
    TEXT,
    padded_sources,
    writer,
)
from tests.engine.model.cells import BASE, LENGTH

GNMT = make_length_penalty("gnmt", 0.6)


def translate_batch(model, source, source_at, *, length_penalty="gnmt", alpha=0.6, max_length, **how):
    given = {"penalty": make_length_penalty(length_penalty, alpha), "max_length": [max_length] * len(source)}
    return beam_search.translate_batch(model, source, source_at, **given, **how)


translate = partial(translate_batch, specials=SPECIALS, text_vocab_size=TEXT, max_length=LIMIT)


@cache
def cached_writer(which: int) -> Network:
    """The writer of a cell, which nobody changes."""
    return writer(CELLS[which])


@pytest.fixture(
    params=[pytest.param(i, id=name, marks=pytest.mark.one_in(3)) for i, name in enumerate(NAMES)], scope="module"
)
def model(request):
    return cached_writer(request.param)


def read(hypothesis: Hypothesis) -> tuple[tuple[int, ...], bool]:
    return hypothesis.tokens, hypothesis.finished


def test_the_writers_write_texts_of_many_lengths() -> None:
    """Or the claims below would be about nothing."""
    found = [h for i in range(0, len(CELLS), 2) for (h,) in translate(cached_writer(i), SOURCES, None, beam=2)]
    assert 0.2 < sum(h.finished for h in found) / len(found) < 0.8
    assert len({len(h.tokens) for h in found}) >= 6 and len({h.tokens for h in found}) > 30


def test_cached_search_finds_what_the_uncached_reference_finds(model) -> None:
    """Every position scheme with every attention, padded sources, token for token."""
    source, at = padded_sources("right")
    found = translate(model, source, at, beam=3, n_best=3)
    for row, length in enumerate(LENGTHS):
        expected = reference_beam(model, SOURCES[row, :length], SPECIALS, TEXT, LIMIT, 3, GNMT)
        assert [read(h) for h in found[row]] == [e[:2] for e in expected]
        for hypothesis, (_, _, log_probability, score) in zip(found[row], expected, strict=True):
            assert hypothesis.log_probability == pytest.approx(log_probability, abs=1e-9)
            assert hypothesis.score == pytest.approx(score, abs=1e-9)


def test_a_beam_of_1_is_greedy(model) -> None:
    for row, [hypothesis] in enumerate(translate(model, SOURCES, None)):
        tokens: list[int] = []
        while len(tokens) < LIMIT:
            chances = next_log_probabilities(model, SOURCES[row], [SPECIALS.start, *tokens])
            best = max([*range(TEXT), SPECIALS.end], key=lambda token: chances[token])
            if best == SPECIALS.end:
                break
            tokens.append(best)
        assert read(hypothesis) == (tuple(tokens), len(tokens) < LIMIT)


@cache
def alone(model: Network, row: int, length: int, beam: int) -> list[Hypothesis]:
    [found] = translate(model, SOURCES[row : row + 1, :length], None, beam=beam, n_best=beam)
    return found


@pytest.mark.parametrize("padding", ["left", "right"])
def test_a_sentence_is_translated_alone_as_in_a_padded_batch(model, padding: str) -> None:
    source, at = padded_sources(padding)
    for beam in (1, 4):
        together = translate(model, source, at, beam=beam, n_best=beam)
        for row, length in enumerate(LENGTHS):
            found = alone(model, row, length, beam)
            assert [read(h) for h in together[row]] == [read(h) for h in found]
            for one, other in zip(together[row], found, strict=True):
                assert one.score == pytest.approx(other.score, abs=1e-10)


@pytest.mark.parametrize("dtype, most", [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_padding_never_changes_a_logit(dtype: torch.dtype, most: float) -> None:
    models = [writer(cell).to(dtype) for cell in CELLS]
    target = SOURCES[:1, :6]

    @settings(max_examples=40, deadline=None)
    @given(
        st.sampled_from(range(len(CELLS))),
        st.lists(st.integers(0, TEXT - 1), min_size=1, max_size=8),
        st.integers(0, 5),
        st.integers(0, 12),
        st.booleans(),
    )
    def holds(which: int, sentence: list[int], more: int, filler: int, left: bool) -> None:
        net, pad = models[which], [filler] * more
        row = torch.tensor([pad + sentence if left else sentence + pad])
        keep = torch.tensor([[False] * more + [True] * len(sentence)])
        at = Positions.of_tokens(keep if left else keep.flip(1), one_side=True)
        with torch.no_grad():
            alone = net(torch.tensor([sentence]), target)
            assert (net(row, target, at) - alone).abs().max() <= most * max(1.0, float(alone.abs().max()))

    holds()


def test_the_best_are_sorted_distinct_and_say_what_they_are(model) -> None:
    for best in translate(model, SOURCES, None, beam=6, n_best=6):
        assert len(best) == 6
        assert [h.score for h in best] == sorted((h.score for h in best), reverse=True)
        assert len({read(h) for h in best}) == 6
        for h in best:
            drawn = [*h.chances, h.end_chance] if h.end_chance is not None else list(h.chances)
            assert len(h.tokens) == len(h.chances) and len(drawn) <= LIMIT
            assert sum(map(math.log, drawn)) == pytest.approx(h.log_probability, abs=1e-9)
            assert h.score == pytest.approx(h.log_probability / GNMT(len(drawn)))
            assert all(token < TEXT for token in h.tokens)


@pytest.mark.parametrize("penalty", list(LENGTH_PENALTIES))
@pytest.mark.parametrize("alpha", [0.6, 2.0, 0.0, -0.7])
@pytest.mark.parametrize("which", [0, 9, 20])
def test_a_beam_as_wide_as_everything_finds_the_best_there_is(which: int, penalty, alpha: float) -> None:
    model, allowed, limit = cached_writer(which), 3, 4
    source = SOURCES[1]
    everything = all_sequences(model, source, SPECIALS, allowed, limit)
    over = make_length_penalty(penalty, alpha)
    scores = {key: total / over(len(key[0]) + key[1]) for key, total in everything.items()}
    [found] = translate_batch(
        model,
        source[None],
        None,
        specials=SPECIALS,
        text_vocab_size=allowed,
        max_length=limit,
        beam=len(everything),
        n_best=5,
        length_penalty=penalty,
        alpha=alpha,
    )
    assert [read(h) for h in found] == sorted(scores, key=lambda key: -scores[key])[:5]


@pytest.mark.parametrize("alpha", [2.5, 0.6, 0.0, -1.0])
def test_stopping_early_changes_no_result(alpha: float) -> None:
    """The reference never does, and has more to offer: its first n are the same."""
    steps, longest = 0, 0

    def count() -> None:
        nonlocal steps
        steps += 1

    for which in range(0, len(CELLS), 7):
        model = cached_writer(which)
        for row in range(4):
            expected = reference_beam(
                model, SOURCES[row], SPECIALS, TEXT, LIMIT, 4, make_length_penalty("power", alpha)
            )
            one = SOURCES[row : row + 1]
            [found] = translate(model, one, None, beam=4, n_best=2, length_penalty="power", alpha=alpha, between=count)
            longest += LIMIT
            assert [read(h) for h in found] == [e[:2] for e in expected[:2]]
    assert steps < longest or alpha > 1.0  # there is hope to the end where length is what counts


def test_a_length_penalty_favours_longer_translations() -> None:
    def mean_length(**how) -> float:
        found = [
            h for i in range(0, len(CELLS), 6) for (h,) in translate(cached_writer(i), SOURCES, None, beam=8, **how)
        ]
        return sum(len(h.tokens) for h in found) / len(found)

    for penalty in LENGTH_PENALTIES:
        lengths = [mean_length(length_penalty=penalty, alpha=alpha) for alpha in (-2.0, 0.0, 1.0, 3.0)]
        assert lengths == sorted(lengths) and lengths[0] < lengths[-1], lengths
    assert mean_length(length_penalty="gnmt", alpha=0.0) == mean_length(length_penalty="power", alpha=0.0)


def test_the_penalties_by_hand() -> None:
    assert make_length_penalty("gnmt", 0.6)(7) == pytest.approx((12 / 6) ** 0.6)
    assert make_length_penalty("power", 0.5)(9) == pytest.approx(3.0)


def test_equals_are_taken_in_the_order_of_their_ids() -> None:
    scores = torch.zeros(2, 40)
    scores[1, [30, 7, 22]] = 1.0
    everything = torch.arange(40)
    for k, first, second in ((1, [0], [7]), (3, [0, 1, 2], [7, 22, 30]), (5, [0, 1, 2, 3, 4], [7, 22, 30, 0, 1])):
        assert top_ids_and_log_probabilities(scores, k, everything)[0].tolist() == [first, second]
    assert top_ids_and_log_probabilities(scores, 3, everything[2:])[0].tolist() == [[2, 3, 4], [7, 22, 30]]


def test_a_model_that_knows_nothing_ends_where_ids_say(tiny) -> None:
    """All logits equal: the lowest id wins every time, so 0 0 0 … up to the limit."""
    model = writer()
    with torch.no_grad():
        model.head.weight.zero_()
    [[found]] = translate(model, SOURCES[:1], None, beam=1)
    assert found.tokens == (0,) * LIMIT and not found.finished
    assert found.chances == pytest.approx((1 / 13,) * LIMIT)  # under the model: closed tokens have their share too


def test_no_closed_token_is_ever_written() -> None:
    """Padding, start, and ids no tokenizer has, however likely."""
    model = writer()
    closed = [SPECIALS.pad, SPECIALS.start, 11, 12]
    with torch.no_grad():
        model.head.weight[closed] = model.head.weight[closed] * 100
    for best in translate(model, SOURCES, None, beam=4, n_best=4):
        assert not {token for h in best for token in h.tokens} & set(closed)
    all_of_them = translate_batch(
        model, SOURCES, None, specials=SPECIALS, text_vocab_size=13, max_length=LIMIT, beam=4, n_best=4
    )
    assert not {token for best in all_of_them for h in best for token in h.tokens} & set(closed[:2])
    few = translate_batch(
        model, SOURCES, None, specials=SPECIALS, text_vocab_size=2, max_length=LIMIT, beam=4, n_best=4
    )
    assert {token for best in few for h in best for token in h.tokens} <= {0, 1}


def test_the_models_context_bounds_the_length_even_of_learned_positions() -> None:
    model = writer(CELLS[next(i for i, name in enumerate(NAMES) if name == "learned-global")])
    with torch.no_grad():
        model.head.weight[SPECIALS.end] *= -100
    [[found]] = translate_batch(model, SOURCES[:1], None, specials=SPECIALS, text_vocab_size=TEXT, max_length=10**6)
    assert len(found.tokens) <= LENGTH and (found.finished or len(found.tokens) == LENGTH)


def test_dropout_is_off_meanwhile_and_back_on_afterwards() -> None:
    cell = BASE.model_copy(update={"model": CELLS[0].model.model_copy(update={"dropout": 0.5})})
    model = writer(cell).train()
    first, second = (translate(model, SOURCES, None, beam=2) for _ in range(2))
    assert first == second and model.training


def test_between_may_stop_it() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        translate(writer(), SOURCES, None, between=stop)


def test_a_sentence_of_nothing_but_padding_is_translated_too() -> None:
    source, at = (
        torch.zeros(2, 3, dtype=torch.long),
        Positions.of_tokens(torch.tensor([[True] * 3, [False] * 3]), one_side=True),
    )
    found = translate(writer(), source, at, beam=2)
    assert len(found) == 2 and all(math.isfinite(best[0].score) for best in found)


def test_no_sentences_are_no_translations() -> None:
    assert translate(writer(), SOURCES[:0], None) == []


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"beam": 0}, "at least 1"),
        ({"max_length": 0}, "at least 1"),
        ({"beam": 2, "n_best": 3}, "n_best at most beam"),
        ({"length_penalty": "gnnt"}, "did you mean 'gnmt'?"),
        ({"alpha": math.nan}, "alpha nan"),
        ({"alpha": 1e9}, "between −20 and 20"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(wrong: dict, says: str) -> None:
    with pytest.raises(InputError, match=says):
        translate_batch(
            writer(), SOURCES, None, **{"specials": SPECIALS, "text_vocab_size": TEXT, "max_length": LIMIT, **wrong}
        )


def test_a_model_whose_answers_are_no_numbers_says_so() -> None:
    model = writer()
    with torch.no_grad():
        model.head.weight.fill_(math.nan)
    with pytest.raises(InputError, match="its training diverged"):
        translate(model, SOURCES, None)


def test_an_empty_source_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one token"):
        translate(writer(), SOURCES[:, :0], None)


def test_a_model_without_an_end_token_is_refused() -> None:
    with pytest.raises(ValueError, match="not among the model's 13 tokens"):
        translate_batch(writer(), SOURCES, None, specials=Specials.numbered_from(11), text_vocab_size=11, max_length=4)


def test_a_cache_keeps_its_rows_when_their_number_changes_often() -> None:
    """As they leave and part in a search; held against decoding without a cache."""
    model = build_model(CELLS[0].model, 13, 1).double().eval()
    with torch.no_grad():
        cache, owners = model.new_cache(0, SOURCES), torch.arange(4)
        target = torch.zeros(4, 0, dtype=torch.long)
        for step, rows in enumerate(([0, 1, 2, 3], [3, 3, 0, 1, 1, 2], [5, 0], [1, 0], [1, 1, 0])):
            at = torch.tensor(rows)
            if step:
                cache.select(at)
            target, owners = target[at], owners[at]
            target = torch.cat((target, torch.randint(TEXT, (len(rows), 1))), dim=1)
            found = model.decode(target[:, -1:], cache)
            expected = model(SOURCES[owners], target)[:, -1:]
            assert (found - expected).abs().max() <= 1e-10
