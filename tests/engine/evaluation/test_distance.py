import sys
from dataclasses import replace

import numpy as np
import pytest

from engine.config.sections import DataConfig
from engine.data.catalogue import load_corpus
from engine.data.corpora import TextCorpus
from engine.data.synthetic import playlets
from engine.data.synthetic.grammar import TextProbe
from engine.evaluation.metrics import TargetScores, probe_counts, scores_by_distance


def scores_of(correct: np.ndarray, context: int = 256, stride: int = 128, place: int = 10_000) -> TargetScores:
    n = len(correct)
    return TargetScores(np.zeros(n), correct, np.full(n, place, np.int32), context, stride)


@pytest.fixture(scope="module")
def split():
    return load_corpus(TextCorpus, DataConfig(corpus_size=200_000)).splits["validation"]


def test_places_are_counted_by_hand() -> None:
    correct = np.zeros(20, bool)
    correct[[11, 14]] = True  # the tokens at offsets 12 and 15
    at, distance = np.array([2, 12, 13, 15, 19]), np.array([5, 5, 9, 10, 99])
    probe = TextProbe("recall", "", 0.1, 0.2, (4, 10, 20, 30), at=at, distance=distance)
    found = scores_by_distance(scores_of(correct, 8, 4), (probe,))
    assert found == {"recall": [[4, 10, 1, 3], [10, 20, 1, 1], [20, 30, 0, 1]]}  # 99 is the last stretch's


def test_a_place_counts_only_where_the_window_showed_what_was_needed() -> None:
    at, distance = np.array([10, 11, 12]), np.array([5, 6, 7])
    probe = TextProbe("recall", "", 0.1, 0.2, (4, 10), at=at, distance=distance)
    scores = scores_of(np.ones(20, bool), 8, 4, place=5)  # six tokens shown: at most six back
    assert scores_by_distance(scores, (probe,)) == {"recall": [[4, 10, 2, 2]]}


def test_near_and_far_recall_are_one_family_and_sum_to_their_places(split) -> None:
    draw = np.random.default_rng(1)
    scores = scores_of(draw.random(len(split.text) - 1) < 0.7)
    found, counts = scores_by_distance(scores, split.probes), probe_counts(scores, split.probes)
    assert list(found) == ["recall", "rhyme", "bracket", "counter", "bind"]
    for family, stretches in found.items():
        parts = [probe for probe in split.probes if probe.family == family]
        right, places = (sum(counts[probe.name][i] for probe in parts) for i in (0, 1))
        assert sum(of for *_, of in stretches) == places
        assert sum(right for _, _, right, _ in stretches) == right
        assert len(stretches) <= 10 and len(parts) == (2 if family == "recall" else 1)


def test_near_and_far_recall_do_not_share_a_stretch(split) -> None:
    near = next(probe for probe in split.probes if probe.name == "recall<110")
    stretches = scores_by_distance(scores_of(np.ones(len(split.text) - 1, bool)), (near,))["recall"]
    assert all(stop <= 110 for _, stop, _, _ in stretches)


def test_the_borders_hold_every_probe_of_the_grammar() -> None:
    for probe in playlets.generate(3, 300_000).probes:
        assert probe.edges[0] <= probe.distance.min() and probe.distance.max() < probe.edges[-1], probe.name
        assert list(probe.edges) == sorted(set(probe.edges)) and len(probe.edges) <= 11


def test_counting_by_distance_costs_no_time_that_anyone_sees(split) -> None:
    """A few calls of numpy for each probe, and no more of them for more places."""
    scores = scores_of(np.ones(len(split.text) - 1, bool))
    more = [replace(p, at=np.repeat(p.at, 100), distance=np.repeat(p.distance, 100)) for p in split.probes]
    counts = []
    for probes in (split.probes, split.probes, tuple(more)):  # what is done only once, is done before
        calls: list[str] = []
        sys.setprofile(lambda frame, event, value, calls=calls: calls.append(event))
        try:
            scores_by_distance(scores, probes)
        finally:
            sys.setprofile(None)
        counts.append(len(calls))
    assert counts[2] <= counts[1] < 200 * len(split.probes), counts


def test_a_probe_without_borders_is_left_out() -> None:
    at = np.array([10])
    odd = TextProbe("odd", "", 0.1, 0.2, at=at, distance=at)
    assert scores_by_distance(scores_of(np.ones(20, bool), 8, 4), (odd,)) == {}
