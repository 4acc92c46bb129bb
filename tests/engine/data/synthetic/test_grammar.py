import math

import numpy as np
import pytest
from grammar_reader import Reader, UnexpectedCharacterError, next_character_distribution, read

from engine.data.synthetic import grammar
from engine.data.synthetic.grammar import Choice, GrammarWriter, TextProbe

COIN = Choice({"heads ": 3.0, "hearts ": 1.0, "tails ": 4.0})
KINDS = (TextProbe("again", "the coin of the line before", 0.5, 0.5),)


def line(d):
    """A tiny language: a coin, and the same again."""
    start = d.position
    coin = d.draw(COIN)
    d.record_probe("again", d.position, start)
    d.write_certain(coin.strip() + "\n")


def test_a_literal_is_spelled_by_surviving_weight():
    spelled = [math.exp(nats) for nats in COIN.log_probabilities["hearts "]]
    assert spelled == pytest.approx([4 / 8, 1, 1, 1 / 4, 1, 1, 1])
    assert math.exp(sum(COIN.log_probabilities["heads "])) == pytest.approx(3 / 8)


def test_next_characters_are_shared_out_by_weight():
    assert COIN.next_characters("") == {"h": 0.5, "t": 0.5}
    assert COIN.next_characters("hea") == {"d": 0.75, "r": 0.25}


@pytest.mark.parametrize("literals", [("a", "ab"), ("ab", "a", "aa"), ("x", "b", "by the", "bye"), ("", "a"), ()])
def test_ambiguous_choices_are_refused(literals):
    with pytest.raises(ValueError, match=r"prefix|non-empty"):
        Choice(dict.fromkeys(literals, 1.0))


def test_impossible_literals_are_refused():
    with pytest.raises(ValueError, match="positive"):
        Choice({"a": 1.0, "b": 0.0})


def test_leaving_out_a_literal_keeps_the_odds_of_the_others():
    left = Choice({literal: weight for literal, weight in COIN.weights.items() if literal != "tails "})
    assert left.next_characters("hea") == {"d": 0.75, "r": 0.25} and left.next_characters("") == {"h": 1.0}


def test_drawing_follows_the_weights():
    writer = GrammarWriter(seed=0)
    drawn = [writer.draw(COIN) for _ in range(20_000)]
    for literal, weight in COIN.weights.items():
        assert drawn.count(literal) / len(drawn) == pytest.approx(weight / 8, abs=0.012)


def test_reading_gives_back_what_writing_noted():
    written = grammar.generate_text("tiny@1", line, KINDS, seed=5, n_characters=200)
    again = read("tiny@1", line, KINDS, written.text)
    np.testing.assert_array_equal(again.log_probability, written.log_probability)
    np.testing.assert_array_equal(again.units, written.units)
    np.testing.assert_array_equal(again.probes[0].at, written.probes[0].at)
    assert [written.text[at] for at in again.probes[0].at] == [written.text[at] for at in again.units]


def test_a_text_outside_the_language_is_refused_where_it_leaves_it():
    with pytest.raises(UnexpectedCharacterError, match="offset 3: expected 'd' or 'r', found 'x'") as caught:
        read("tiny@1", line, KINDS, "heaxds heads\n")
    assert (caught.value.offset, caught.value.expected) == (3, {"d": 0.75, "r": 0.25})
    with pytest.raises(UnexpectedCharacterError, match="offset 7: expected 'a', found 'o'"):
        read("tiny@1", line, KINDS, "tails toils\n")
    with pytest.raises(UnexpectedCharacterError, match="offset 9: expected 'l', found the end of the text"):
        read("tiny@1", line, KINDS, "tails tai")


def test_distribution_after_a_prefix_is_exact_between_and_within_units():
    assert next_character_distribution(line, "") == {"h": 0.5, "t": 0.5}
    assert next_character_distribution(line, "tails tails\nhea") == {"d": 0.75, "r": 0.25}
    assert next_character_distribution(line, "tails tails\n") == {"h": 0.5, "t": 0.5}
    with pytest.raises(UnexpectedCharacterError):
        next_character_distribution(line, "tails heads\nhea")


def test_a_reader_stands_where_its_text_was_read():
    reader = Reader("tails tails\n")
    line(reader)
    assert reader.position == 12 and reader.probe_records == {"again": [(6, 6)]}
