"""The optimal predictor for a window, checked against oracles that do not share its code."""

import itertools
from collections import Counter, defaultdict
from functools import cache

import numpy as np
import pytest
from grammar_reader import next_in_playlets

from engine.data.synthetic import playlets
from engine.data.synthetic.belief import WindowFilter
from engine.data.synthetic.grammar import Choice, GeneratedText
from engine.data.synthetic.playlets import SCENE, window_filter
from tests.window_predictions import next_characters

CERTAIN = 1e-12


@cache
def text() -> GeneratedText:
    return playlets.generate(7, 60_000)


@cache
def long_text() -> str:
    return playlets.generate(11, 500_000).text


def first_characters(reads: WindowFilter) -> dict[str, float]:
    return {character: p for character, (p, _) in reads.initial_beliefs.items()}


# --- a grammar that is small enough to list


class TwoWords:
    """A unit is `x-y x.`: x is "a" or "bc", y is "a", "d" or "dd" with an end; x comes back. State: (place, x)."""

    X, Y = Choice({"a": 0.7, "bc": 0.3}), Choice({"a ": 0.5, "d ": 0.2, "dd ": 0.3})

    def choice(self, state: tuple[str, str]) -> Choice:
        place, x = state
        again = Choice({x + ".": 1.0}) if x else Choice({"a.": 0.7, "bc.": 0.3})
        return {"x": self.X, "-": Choice({"-": 1.0}), "y": self.Y, "again": again}[place]

    def after(self, state: tuple[str, str], literal: str) -> tuple[tuple[float, tuple[str, str]], ...]:
        place, x = state
        return ((1.0, {"x": ("-", literal), "-": ("y", x), "y": ("again", x), "again": ("x", "")}[place]),)

    def stationary(self) -> dict[tuple[str, str], float]:
        return {(place, ""): 1.0 for place in ("x", "-", "y", "again")}

    def knows_all(self, state: tuple[str, str]) -> bool:
        return state == ("x", "")


def units_of_two_words() -> dict[str, float]:
    x, y = TwoWords.X.weights, TwoWords.Y.weights
    return {f"{a}-{b}{a}.": x[a] * y[b] for a in x for b in y}


def test_the_filter_of_a_small_grammar_equals_listing_all_its_texts() -> None:
    words, units, length = TwoWords(), units_of_two_words(), 7
    windows: dict[str, float] = defaultdict(float)  # how often each window occurs, per unit: it begins in the first one
    for sequence in itertools.product(units, repeat=3):
        weight = np.prod([units[unit] for unit in sequence])
        whole = "".join(sequence)
        for offset in range(len(sequence[0])):
            for n in range(1, length + 1):
                windows[whole[offset : offset + n]] += weight
    reads = WindowFilter(words.choice, words.after, words.stationary(), words.knows_all)
    total = sum(p for window, p in windows.items() if len(window) == 1)
    for window, weight in windows.items():
        if len(window) == 1:
            assert first_characters(reads)[window] == pytest.approx(weight / total, abs=CERTAIN)
        if len(window) == length:
            continue
        belief = reads.initial_beliefs[window[0]][1]
        for character in window[1:]:
            _, belief = reads.advance(belief, character)
        expected = {c: windows[window + c] / weight for c in "abcd-. " if window + c in windows}
        found = next_characters(reads, belief)
        assert found == pytest.approx(expected, abs=CERTAIN), window


# --- playlets


def test_the_filter_and_the_writer_agree_on_every_character() -> None:
    reads, belief, found = window_filter(), {(SCENE, ""): 1.0}, []
    for character in text().text:
        p, belief = reads.advance(belief, character)
        found.append(np.log(p))
    np.testing.assert_allclose(found, text().log_probability, atol=CERTAIN)


def test_a_window_that_begins_with_a_scene_predicts_as_the_grammar_does() -> None:
    scenes, reads = text().cut(0, 3), window_filter()
    for unit, stop in itertools.pairwise([*scenes.units.tolist(), len(scenes.text)]):
        belief = reads.initial_beliefs["="][1]
        for at in range(unit + 1, stop):
            if at > unit + 4:  # "== t" begins a scene and nothing else
                expected = next_in_playlets(scenes.text[unit:at])
                assert next_characters(reads, belief) == pytest.approx(expected, abs=CERTAIN)
            _, belief = reads.advance(belief, scenes.text[at])


def test_distributions_sum_to_one_wherever_a_window_begins() -> None:
    reads = window_filter()
    assert sum(first_characters(reads).values()) == pytest.approx(1, abs=CERTAIN)
    for start in range(0, 20_000, 307):
        belief = reads.initial_beliefs[text().text[start]][1]
        for character in text().text[start + 1 : start + 120]:
            assert sum(next_characters(reads, belief).values()) == pytest.approx(1, abs=1e-9)
            _, belief = reads.advance(belief, character)


def test_reading_whole_literals_equals_reading_characters() -> None:
    reads, whole_past = window_filter(), -text().log_probability
    for start in range(3, 30_000, 501):
        belief, expected = reads.initial_beliefs[text().text[start]][1], []
        for character in text().text[start + 1 : start + 300]:
            p, belief = reads.advance(belief, character)
            expected.append(-np.log(p))
        found = reads.nats(text().text, start, start + 300, whole_past)
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_text_outside_the_grammar_is_refused() -> None:
    reads = window_filter()
    with pytest.raises(ValueError, match="continues with"):
        reads.advance(reads.initial_beliefs["q"][1], "z")


def test_the_first_characters_are_as_frequent_as_in_a_text() -> None:
    counts, n = Counter(long_text()), len(long_text())
    for character, p in first_characters(window_filter()).items():
        # A name that is drawn comes back several times within its scene.
        assert abs(counts[character] - n * p) < 5 * np.sqrt(6 * n * p), character


@pytest.mark.parametrize("length", [1, 2, 4])
def test_short_windows_predict_what_follows_them_in_a_long_text(length: int) -> None:
    """Relative frequencies are an oracle without any model."""
    reads, source = window_filter(), long_text()
    following: dict[str, Counter[str]] = defaultdict(Counter)
    for at in range(len(source) - length):
        following[source[at : at + length]][source[at + length]] += 1
    worst, compared = 0.0, 0
    for window, counts in following.items():
        n = sum(counts.values())
        if n < 800:
            continue
        belief = reads.initial_beliefs[window[0]][1]
        for character in window[1:]:
            _, belief = reads.advance(belief, character)
        expected = next_characters(reads, belief)
        assert set(counts) <= set(expected)
        for character, p in expected.items():
            compared += 1
            if p < 1:
                worst = max(worst, abs(counts[character] - n * p) / np.sqrt(n * p * (1 - p) + 1))
    assert compared > 100 and worst < 5.5  # of hundreds of comparisons


@pytest.mark.parametrize(("context", "stride"), [(64, 64), (128, 128)])
def test_surprise_is_what_the_predictor_expects_of_itself(context: int, stride: int) -> None:
    """Calibration: −log p − entropy has mean 0, over all characters and where what is asked for was not shown."""
    reads, source = window_filter(), text().text[:25_000]
    gaps, shown = np.full(len(source), np.nan), np.zeros(len(source), np.int64)
    for start in range(0, len(source) - context, stride):
        belief = reads.initial_beliefs[source[start]][1]
        for at in range(start + 1, start + context):
            expected = next_characters(reads, belief)
            p = np.array(list(expected.values()))
            if at >= start + context - stride:
                gaps[at] = -np.log(expected[source[at]]) + (p * np.log(p)).sum()
                shown[at] = at - start
            _, belief = reads.advance(belief, source[at])
    places = {"all": np.arange(len(source))}
    for probe in text().probes:
        at, distance = (values[probe.at < len(source)] for values in (probe.at, probe.distance))
        places[probe.name] = at[distance > shown[at]]
    for name in ("all", "recall", "counter", "bind"):
        found = gaps[places[name]]
        found = found[np.isfinite(found)]
        assert len(found) > 30, name
        assert abs(found.mean()) < 3.5 * found.std() / np.sqrt(len(found)) + 1e-9, name


def after(window: str) -> dict[str, float]:
    reads = window_filter()
    belief = reads.initial_beliefs[window[0]][1]
    for character in window[1:]:
        _, belief = reads.advance(belief, character)
    return next_characters(reads, belief)


def test_what_the_window_implies_is_known_and_nothing_more() -> None:
    couplet = "my fox guards the hill,\nso guard, fox, our mill.\n"
    # The speaker's name is outside: any of twelve, and no more can be said.
    assert after("the hill,\nso guard, fox, our mill.\n[") == pytest.approx(dict.fromkeys("ABCDFHJLMOPV", 1 / 12))
    # A name that another player has is not the speaker's, and the number tells the next one.
    said = after(f"o guard, fox, our mill.\n[Viola bows.]\n\n4 * Juno:\n{couplet}[")
    assert said == {"J": pytest.approx(1.0)}
    assert after(f"2 * Juno:\n{couplet}\n") == {"3": pytest.approx(1.0)}
    # Viola's sign was not shown: + is hers, or that of the third player, who has one of ten names.
    signs = after(f"l.\n[Viola bows.]\n\n4 * Juno:\n{couplet}\n5 + ")
    assert signs.pop("V") == pytest.approx(0.5) and len(signs) == 10
    assert signs == pytest.approx(dict.fromkeys(signs, 0.05))
    # The sign was shown in an earlier speech.
    assert after(f"2 + Viola:\n{couplet}\n3 * Juno:\n{couplet}\n4 + ") == {"V": pytest.approx(1.0)}
    # A verb that was cut off is any that ends so.
    assert set(after("s the hill,\nso ")) == {verb[0] for verb in playlets.VERBS.options}
    assert after("uards the hill,\nso ") == {"g": pytest.approx(1.0)}
    # A rhyme that was cut off: its end is enough for the class.
    assert after("x guards the hill,\nso guard, fox, our m") == {"i": pytest.approx(1.0)}


def test_the_prior_of_numbers_and_couplets_is_that_of_a_text() -> None:
    scenes, speeches = len(text().units), text().text.count("\n\n")
    visits = sum(p for state, p in playlets.expected_visits().items() if state.place == "number")
    assert visits == pytest.approx(playlets.MEAN_SPEECHES)
    assert speeches / scenes == pytest.approx(playlets.MEAN_SPEECHES + 1, rel=0.1)  # and the curtain
