"""The Playground's writer of a run that translates: greedy is the translator's, surprise the references' nll."""

import math

import pytest

from engine.base.errors import InputError
from engine.config import presets
from engine.runs.reader import RunReader
from tests.trained_runs import cached_run
from tui_transformer.lab.play.writers import ModelWriter, WriterCache

SENTENCE = "I see the dog."
GREEDY = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "seed": 1, "length": 200}


@pytest.fixture(scope="module")
def writer(tmp_path_factory) -> ModelWriter:
    config = presets.resolve(presets.find("phrasebook")).miniature()
    run = cached_run(config, tmp_path_factory.mktemp("runs"), "run")
    found = WriterCache("cpu").get(run, "last")
    assert RunReader(run).config.task.name == "translation"
    return found


def test_greedy_pieces_are_the_translation(writer) -> None:
    pieces = list(writer.stream(SENTENCE, GREEDY, alternatives=5))
    best = writer.translator.translate(writer.translator.encode([SENTENCE]))[0][0]
    assert len(pieces) == len(best.hypothesis.tokens)
    assert [piece.probability for piece in pieces] == pytest.approx(list(best.hypothesis.chances), abs=1e-5)
    for piece in pieces:
        assert len(piece.alternatives) == 5 and piece.alternatives[0].probability == pytest.approx(piece.probability)


def test_other_seeds_draw_other_translations_and_equal_ones_the_same(writer) -> None:
    warm = GREEDY | {"temperature": 1.0}
    written = ["".join(p.text for p in writer.stream(SENTENCE, warm | {"seed": seed})) for seed in (1, 1, 2)]
    assert written[0] == written[1] != written[2]


def test_surprise_of_the_greedy_translation_is_its_own_chances(writer) -> None:
    best = writer.translator.translate(writer.translator.encode([SENTENCE]))[0][0].hypothesis
    text = writer.tokenizer.target.decode(best.tokens)
    found = writer.surprise(f"{SENTENCE} → {text}")
    if list(writer.tokenizer.target.encode(text.strip())) == list(best.tokens):
        assert found.nats[: len(best.tokens)] == pytest.approx([-math.log(c) for c in best.chances], abs=1e-4)
    assert found.tokens[-1].text == "■" and found.source == SENTENCE


def test_a_surprise_needs_both_sides(writer) -> None:
    with pytest.raises(InputError, match="a sentence and its translation"):
        writer.surprise("only one")


@pytest.mark.parametrize("which", ["self", "cross", "encoder"])
def test_attention_of_every_kind_is_shown_over_its_texts(writer, which) -> None:
    found = writer.attention(SENTENCE, "Ich sehe", 1, 1, which)
    assert found.weights.shape == (len(found.queries), len(found.keys))
    assert found.weights.sum(1) == pytest.approx([1.0] * len(found.queries), abs=1e-5)
    ends = {"self": ("▷", None), "cross": ("▷", "■"), "encoder": (None, "■")}[which]
    assert (ends[0] is None or found.queries[0] == ends[0]) and (ends[1] is None or found.keys[-1] == ends[1])


def test_nothing_is_not_translated(writer) -> None:
    with pytest.raises(InputError, match="enter a sentence to translate"):
        list(writer.stream(" ", GREEDY))


def test_a_beam_finds_what_the_translator_does(writer) -> None:
    how = GREEDY | {"beam": 4, "nbest": 3, "alpha": 1.0}
    found = writer.search(SENTENCE, how)
    best = writer.translator.translate(writer.translator.encode([SENTENCE]), beam=4, n_best=3, alpha=1.0)[0]
    assert [one.score for one in found] == pytest.approx([one.hypothesis.score for one in best])
    assert [len(one.tokens) for one in found] == [len(one.hypothesis.tokens) for one in best]
    assert [one.text.strip() for one in found] == [one.text.strip() for one in best]
    greedy = "".join(piece.text for piece in writer.stream(SENTENCE, GREEDY))
    assert [one.text for one in writer.search(SENTENCE, GREEDY)] == [greedy]


def test_a_beam_obeys_the_length(writer) -> None:
    for beam in (1, 4):
        (found,) = writer.search(SENTENCE, GREEDY | {"beam": beam, "length": 2})
        assert len(found.tokens) <= 2


def test_a_beam_that_cannot_give_as_many_is_refused_and_a_search_can_be_stopped(writer) -> None:
    with pytest.raises(InputError, match="/nbest 3: more than a beam of 2 can give; enter /beam 3"):
        writer.search(SENTENCE, GREEDY | {"beam": 2, "nbest": 3})
    with pytest.raises(InputError, match="enter a sentence to translate"):
        writer.search("", GREEDY | {"beam": 2})

    def between() -> None:
        raise InputError("stopped")

    with pytest.raises(InputError, match="stopped"):
        writer.search(SENTENCE, GREEDY | {"beam": 2}, between)
