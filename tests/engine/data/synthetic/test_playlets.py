import hashlib
import math
import random
import re
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from grammar_reader import Reader, next_in_playlets, read_playlets

from engine.data.synthetic import playlets
from engine.data.synthetic.grammar import Choice, GeneratedText, TextProbe

GOLDEN = {  # change playlets.VERSION when one of these changes: saved runs name the version they were made with
    2_000: "ec5c604b91f5f1e30b593dd842dc372d72eedcddd41589ad0db54c9705264215",
    100_000: "d96f6598a6060778be6c3a40c4aaaa9bb30d0b1d2fcb0050dac532940e601282",
}
CERTAIN = 1e-12
ALPHABET = "\n !#%&()*+,.123456:;<=>@ABCDFHJLMOPV[]abcdefghiklmnopqrstuvwxy{}"


@cache
def megabyte() -> GeneratedText:
    return playlets.generate(1)


@cache
def some_scenes() -> GeneratedText:
    return megabyte().cut(0, 60)


def probe_named(name: str) -> TextProbe:
    return next(probe for probe in megabyte().probes if probe.name == name)


def scenes_read_by_eye(generated: GeneratedText) -> list[tuple[list[str], list[str]]]:
    """The cast and the speakers of each scene, found without the parser."""
    return [
        (re.findall("[A-Z][a-z]+", scene.split("\n")[1]), re.findall(r"^\d . ([A-Z][a-z]+)", scene, re.MULTILINE))
        for scene in generated.text.split("curtain.\n\n")[:-1]
    ]


def assert_same(a: GeneratedText, b: GeneratedText) -> None:
    assert (a.version, a.text) == (b.version, b.text)
    np.testing.assert_array_equal(a.log_probability, b.log_probability)
    np.testing.assert_array_equal(a.units, b.units)
    for probe, other in zip(a.probes, b.probes, strict=True):
        assert (probe.name, probe.description, probe.chance, probe.shortcut) == (
            other.name,
            other.description,
            other.chance,
            other.shortcut,
        )
        np.testing.assert_array_equal(probe.at, other.at)
        np.testing.assert_array_equal(probe.distance, other.distance)


@pytest.mark.parametrize("size", GOLDEN)
def test_seed_1_always_gives_the_same_text(size):
    text = playlets.generate(1, size).text
    assert hashlib.sha256(text.encode()).hexdigest() == GOLDEN[size], "change the version when this hash changes"
    assert playlets.VERSION == "playlets@1"


def test_other_seeds_give_other_texts():
    assert playlets.generate(1, 2_000).text != playlets.generate(2, 2_000).text


def test_reading_the_text_alone_gives_the_same_probabilities_scenes_and_probes():
    assert_same(read_playlets(megabyte().text), megabyte())


def test_text_is_whole_scenes_just_past_the_size_asked_for():
    for size in (1, 500, 5_000):
        generated = playlets.generate(3, size)
        assert generated.units[-1] < size <= len(generated.text)
        assert generated.text.endswith("curtain.\n\n")
        assert generated.text.count("curtain.") == len(generated.units)


def test_a_longer_text_begins_with_the_shorter_one():
    assert playlets.generate(4, 9_000).text.startswith(playlets.generate(4, 3_000).text)


def test_alphabet_is_exactly_what_occurs():
    assert "".join(sorted(set(megabyte().text))) == ALPHABET
    assert len(ALPHABET) == 64


def test_capitals_stand_only_at_the_start_of_12_names_with_unique_initials():
    capitalised = set(re.findall(r"\w*[A-Z]\w*", megabyte().text))
    assert len(capitalised) == len({name[0] for name in capitalised}) == 12
    assert all(name.istitle() for name in capitalised)


def test_each_scene_has_three_players_who_never_speak_twice_running():
    for cast, speakers in scenes_read_by_eye(some_scenes()):
        assert len(set(cast)) == 3 and set(speakers) <= set(cast)
        assert 3 <= len(speakers) <= 6
        assert all(last != speaker for last, speaker in pairwise(speakers))


def test_speeches_are_numbered_from_1():
    for unit in range(len(some_scenes().units)):
        numbers = re.findall(r"^\d", some_scenes().cut(unit, unit + 1).text, re.MULTILINE)
        assert numbers == [str(n + 1) for n in range(len(numbers))]


# --- probabilities


class ChoiceCounter(Reader):
    """Sums log p over whole draws, from the weights as they stand in the tables."""

    nats = 0.0

    def draw(self, choice: Choice) -> str:
        literal = super().draw(choice)
        self.nats += math.log(choice.weights[literal] / sum(choice.weights.values()))
        return literal


def test_log_probabilities_of_draws_and_of_characters_have_the_same_sum():
    for unit in range(len(some_scenes().units)):
        scene = some_scenes().cut(unit, unit + 1)
        counter = ChoiceCounter(scene.text)
        playlets.write_scene(counter)
        assert counter.position == len(scene.text)
        assert counter.nats == pytest.approx(scene.log_probability.sum(), rel=1e-12)
        assert (scene.log_probability <= 0).all()


def test_every_next_character_distribution_sums_to_one_and_holds_the_probability_given():
    scenes = some_scenes().cut(0, 20)
    positions = random.Random(0).sample(range(len(scenes.text)), 300)
    for at in positions:
        distribution = next_in_playlets(scenes.text[:at])
        assert sum(distribution.values()) == pytest.approx(1, abs=CERTAIN)
        assert np.log(distribution[scenes.text[at]]) == pytest.approx(scenes.log_probability[at], abs=CERTAIN)


def test_no_character_that_can_come_next_leads_out_of_the_language():
    text = some_scenes().cut(0, 3).text
    for at in random.Random(1).sample(range(len(text)), 60):
        for character in next_in_playlets(text[:at]):
            assert next_in_playlets(text[:at] + character)


def test_a_changed_character_is_rejected_where_it_stands_unless_it_could_stand_there():
    generator = random.Random(2)
    rejected = 0
    n = 1_500
    for _ in range(n):
        unit = generator.randrange(len(some_scenes().units))
        text = some_scenes().cut(unit, unit + 1).text
        at = generator.randrange(len(text))
        other = generator.choice(ALPHABET.replace(text[at], ""))
        possible = next_in_playlets(text[:at])
        try:
            read_playlets(text[:at] + other + text[at + 1 :])
        except ValueError as error:
            rejected += 1
            if other not in possible:
                assert f"offset {at}: expected" in str(error) and f"found {other!r}" in str(error)
        else:
            assert other in possible
    assert rejected > 0.98 * n


def test_a_text_cut_within_a_scene_is_rejected_at_its_end():
    text = some_scenes().cut(0, 2).text
    with pytest.raises(ValueError, match=rf"offset {len(text) - 5}: expected .*, found the end of the text"):
        read_playlets(text[:-5])
    with pytest.raises(ValueError, match="offset 0: expected '='"):
        read_playlets(text[5:])


# --- the floor


def test_floor_is_the_mean_surprise_and_its_error_is_clustered_by_scene():
    scenes = megabyte()
    units = range(len(scenes.units) - 120, len(scenes.units))
    split = scenes.cut(units.start, units.stop)
    floor, error = split.floor_mean()
    assert floor == pytest.approx(-split.log_probability.mean())
    bootstrap = np.random.default_rng(0)
    nats = np.array([-scenes.cut(i, i + 1).log_probability.sum() for i in units])
    lengths = np.array([len(scenes.cut(i, i + 1).text) for i in units])
    draws = bootstrap.integers(len(nats), size=(4_000, len(nats)))
    assert error == pytest.approx((nats[draws].sum(1) / lengths[draws].sum(1)).std(), rel=0.1)
    assert 0.35 < floor < 0.365
    assert 0.0012 < error < 0.0022


def test_floors_of_different_seeds_agree_within_their_errors():
    floors = [playlets.generate(seed, 60_000).floor_mean() for seed in range(8)]
    mean = np.mean([floor for floor, _ in floors])
    scores = [(floor - mean) / error for floor, error in floors]
    assert np.abs(scores).max() < 3.5


def test_a_5_gram_model_stays_0_3_nats_above_the_floor():
    codes = {character: i for i, character in enumerate(ALPHABET)}
    text = np.array([codes[character] for character in megabyte().text])
    border = int(0.9 * len(text))
    excess = witten_bell(text[:border], text[border:], order=5) + megabyte().log_probability[border:].mean()
    assert excess > 0.3


def witten_bell(train: np.ndarray, test: np.ndarray, order: int, n_symbols: int = 64) -> float:
    """Mean nats per character of an interpolated n-gram model (Witten and Bell, 1991)."""

    def grams(text, n):  # the n characters up to and with each position, as one number
        windows = np.lib.stride_tricks.sliding_window_view(np.concatenate([np.zeros(order, int), text]), n)
        return windows[order + 1 - n :] @ n_symbols ** np.arange(n)[::-1]

    def look_up(keys, values, wanted):
        index = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
        return np.where(keys[index] == wanted, values[index], 0)

    p = np.full(len(test), 1 / n_symbols)
    for n in range(1, order + 1):
        keys, counts = np.unique(grams(train, n), return_counts=True)
        contexts, first, types = np.unique(keys // n_symbols, return_index=True, return_counts=True)
        totals = np.add.reduceat(counts, first)
        wanted = grams(test, n)
        count = look_up(keys, counts, wanted)
        total = look_up(contexts, totals, wanted // n_symbols)
        distinct = look_up(contexts, types, wanted // n_symbols)
        p = np.where(total > 0, (count + distinct * p) / np.maximum(total + distinct, 1), p)
    return float(-np.log(p).mean())


# --- probes


REACH = {  # characters: shortest, longest, and a range for the median
    "recall": (49, 200, 60, 70),
    "rhyme": (20, 33, 24, 29),
    "bracket": (8, 24, 12, 18),
    "counter": (50, 220, 78, 90),
    "bind": (11, 900, 145, 165),
}


def test_probes_reach_as_far_as_documented():
    assert [probe.name for probe in megabyte().probes] == list(REACH)
    for probe in megabyte().probes:
        shortest, longest, low, high = REACH[probe.name]
        assert shortest <= probe.distance.min() and probe.distance.max() <= longest
        assert low <= np.median(probe.distance) <= high


def test_what_a_probe_asks_for_is_certain_and_stands_at_its_distance():
    text, log_probability = megabyte().text, megabyte().log_probability
    closers = {"(": ")", "{": "}", "<": ">"}
    expected = {
        "recall": lambda source: text[source],
        "rhyme": lambda source: text[source],
        "bracket": lambda source: closers[text[source]],
        "counter": lambda source: str(int(text[source]) + 1),
        "bind": lambda source: text[source],
    }
    for probe in megabyte().probes:
        assert len(probe.at) > 1_000
        assert (log_probability[probe.at] == 0).all()
        for at, distance in zip(probe.at.tolist(), probe.distance.tolist(), strict=True):
            assert text[at] == expected[probe.name](at - distance)


def test_chance_is_the_share_of_the_most_frequent_answer():
    for probe in megabyte().probes:
        answers = Counter(megabyte().text[at] for at in probe.at.tolist())
        share = max(answers.values()) / len(probe.at)
        assert share == pytest.approx(probe.chance, abs=0.02)
        assert probe.chance <= probe.shortcut < 0.6


def test_rhyme_shortcut_is_reached_from_the_letters_before_the_vowel_alone():
    text, probe = megabyte().text, probe_named("rhyme")
    by_onset = defaultdict(Counter)
    for at in probe.at.tolist():
        by_onset[text[text.rindex(" ", 0, at) : at]][text[at]] += 1
    right = sum(max(vowels.values()) for vowels in by_onset.values())
    assert right / len(probe.at) == pytest.approx(probe.shortcut, abs=0.015)


def test_recall_and_bind_shortcut_is_reached_by_naming_anyone_but_the_last_speaker():
    right, total = 0, 0
    for cast, speakers in scenes_read_by_eye(megabyte()):
        for last, speaker in pairwise(["", *speakers]):
            right += speaker == next(name for name in cast if name != last)
            total += 1
    assert right / total == pytest.approx(probe_named("recall").shortcut, abs=0.02)
    assert probe_named("bind").shortcut == probe_named("recall").shortcut


# --- cutting


def test_cutting_at_scenes_equals_reading_the_piece():
    n = len(megabyte().units)
    for start, stop in [(0, 1), (5, 25), (n - 100, n), (3, 3)]:
        piece = megabyte().cut(start, stop)
        assert len(piece.units) == stop - start
        assert_same(read_playlets(piece.text), piece)


def test_cut_pieces_add_up_to_the_whole():
    n = len(megabyte().units)
    pieces = [megabyte().cut(0, 700), megabyte().cut(700, 1_500), megabyte().cut(1_500, n)]
    assert "".join(piece.text for piece in pieces) == megabyte().text
    for i, probe in enumerate(megabyte().probes):
        assert sum(len(piece.probes[i].at) for piece in pieces) == len(probe.at)


def test_cutting_beyond_the_text_is_an_error():
    with pytest.raises(ValueError, match="there are 60"):
        some_scenes().cut(10, 61)
