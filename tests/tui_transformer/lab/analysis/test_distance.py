from pathlib import Path

import pytest

from engine.config.measures import name_without_band
from engine.runs.records import ValidationRecord
from engine.runs.tail import Metrics
from tests.tui_transformer.lab.analysis.seeds import EDGES, attention
from tests.tui_transformer.lab.analysis.test_bands import drawn
from tui_transformer.lab.analysis.charts.overlay import (
    NOT_COUNTED,
    ChartedRuns,
    distance_chart,
    draw_overlay,
    probes_scored_by_distance,
)
from tui_transformer.lab.analysis.curves import DistanceBin, Reach, newest_distance_bins, reach, share_band
from tui_transformer.lab.analysis.entry import RunEntry
from tui_transformer.lab.reports.figures.distances import probe_distance_svg

WIN16 = {"model.attention": "window", "model.window": 16, "model.n_layers": 2, "model.context_length": 256}


def test_a_window_of_16_through_2_layers_reaches_30() -> None:
    assert reach(WIN16) == Reach(30, "2 × 15")


@pytest.mark.parametrize("kind", ["global", "sparse", "linear"])
def test_without_a_band_alone_a_model_reaches_as_far_as_its_context(kind) -> None:
    assert reach(WIN16 | {"model.attention": kind, "model.link_every": 16}) == Reach(256, "context")


def test_a_window_reaches_no_further_than_the_context() -> None:
    assert reach(WIN16 | {"model.context_length": 20}) == Reach(20, "context")


@pytest.mark.parametrize("value", [None, "16", -3, True, 1.5])
def test_a_damaged_config_has_no_reach(value) -> None:
    assert reach({"model.attention": "window", "model.window": value, "model.n_layers": value}) is None


DAMAGED = [[], [1], [10, 5, 1, 2], [5, 10, 3, 2], [5, 10, 0, 0], ["5", 10, 1, 2], [5, 10, True, 2], 7, None]


@pytest.mark.parametrize("row", DAMAGED)
def test_damaged_stretches_are_left_out(row) -> None:
    assert newest_distance_bins([ValidationRecord.read({"by_distance": {"recall": [row, [20, 30, 1, 2]]}})]) == {
        "recall": (DistanceBin(20, 30, 1, 2),)
    }
    assert newest_distance_bins([ValidationRecord.read({"by_distance": {"recall": row}})]) == {}


def test_runs_of_before_have_none_and_that_is_said(tmp_path) -> None:
    attention(tmp_path)
    for run in [path for path in tmp_path.iterdir() if path.is_dir()]:
        metrics = run / "metrics.jsonl"
        metrics.write_text(metrics.read_text().replace('"by_distance"', '"other"'))
    assert (
        newest_distance_bins([ValidationRecord(loss=1.0)]) == {}
        and distance_chart(drawn(tmp_path), "recall").placeholder == NOT_COUNTED
    )


def test_near_and_far_recall_are_one_family() -> None:
    assert [name_without_band(name) for name in ("recall<110", "recall>=110", "rhyme")] == ["recall", "recall", "rhyme"]
    runs = [RunEntry(Path(name)) for name in "ab"]
    row = ((20, 30, 1, 2),)
    counted = ({"recall": row, "rhyme": row}, {"bind": row, "recall": row})
    metrics = {
        run.path: Metrics((), (ValidationRecord(by_distance=one),), 1) for run, one in zip(runs, counted, strict=True)
    }
    assert probes_scored_by_distance(ChartedRuns.from_runs(enumerate(runs), None, metrics)) == (
        "recall",
        "rhyme",
        "bind",
    )


def test_shares_are_averaged_over_seeds_by_stretch() -> None:
    made = share_band([(DistanceBin(0, 10, 1, 4), DistanceBin(10, 20, 3, 4)), (DistanceBin(0, 10, 3, 4),), ()])
    assert made.n == 2 and made.x == (5.0,) and made.y == (0.5,)
    ((low, high),) = made.ends
    assert 0 <= low < 0.02 and 0.98 < high <= 1  # ± 318 points by t, and no more than there is


def test_the_chart_has_chance_reach_and_a_line_a_variant(tmp_path) -> None:
    attention(tmp_path)
    made = distance_chart(drawn(tmp_path), "recall")
    assert made.levels == (0.083,) and made.share
    assert len(made.strokes) == 4 and all(len(stroke.curve.x) == len(EDGES) - 1 for stroke in made.strokes)
    slot = next(stroke.slot for stroke in made.strokes if stroke.name == "win16")
    assert made.reaches == ((30.0, (slot,)),) and any("can look 30 tokens back" in note for note in made.notes)


def test_the_reach_stands_where_the_axis_says(tmp_path) -> None:
    attention(tmp_path)
    canvas = draw_overlay(distance_chart(drawn(tmp_path), "recall"), 80, 16)
    assert canvas is not None and canvas.cells[5][canvas.column_of(30)][0] == "┊" and canvas.low == 0.0


def test_a_probe_that_no_run_has_shows_the_first(tmp_path) -> None:
    attention(tmp_path)
    assert distance_chart(drawn(tmp_path), "nothing").brief == "recall"
    assert distance_chart(drawn(tmp_path), "rhyme").levels == (0.2,)


def test_the_picture_is_the_same_each_time_and_names_are_harmless(tmp_path) -> None:
    from xml.etree import ElementTree

    from tests.tui_transformer.lab.analysis.seeds import seeded

    attention(tmp_path)
    seeded(tmp_path, "<b>&x", 1, "model.n_heads=2")
    one, two = (probe_distance_svg(distance_chart(drawn(tmp_path), "recall")) for _ in range(2))
    assert one == two and "chance 8%" in one and "can look 30 tokens back" in one
    words = "".join(ElementTree.fromstring(one).itertext())
    assert "<b>&x" in words


def test_reach_is_that_of_every_layer_of_a_pattern() -> None:
    pattern = WIN16 | {"model.attention": "global", "model.n_layers": 4}
    assert reach(pattern | {"model.layers": ["window", "global none"]}) == Reach(256, "context")
    assert reach(pattern | {"model.layers": ["window", "window none"]}) == Reach(60, "4 × 15")
    assert reach(WIN16 | {"model.layers": ["none", "rope"]}) == Reach(30, "2 × 15")
    assert reach(WIN16 | {"model.layers": ["global"]}) == Reach(256, "context")
