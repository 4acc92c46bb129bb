from pathlib import Path

import numpy as np
import pytest

from engine.runs.records import ValidationRecord
from tests.tui_transformer.lab.analysis.seeds import WINDOW, attention, seeded
from tests.tui_transformer.lab.analysis.variants import AT, entry
from tui_transformer.lab.analysis.charts.overlay import (
    ChartedRuns,
    Overlay,
    difference_chart,
    distance_chart,
    loss_chart,
    shading_notes,
)
from tui_transformer.lab.analysis.curves import (
    MetricsReader,
    SeedRuns,
    band,
    difference_band,
    group_seeds,
    points_by_step,
)
from tui_transformer.lab.analysis.entry import RunEntry, read_entry
from tui_transformer.lab.analysis.groups import Grouping

T_2 = 4.302652729911275  # Student's t at 97.5 % with 2 degrees of freedom
LOSSES = np.array([[3.0, 2.0, 1.5], [3.2, 2.1, 1.4], [2.9, 1.7, 1.6]])  # (seeds, steps)


def points(losses, steps=(100, 200, 300), tokens: int = 64):
    return {float(step): (float(step * tokens), float(loss)) for step, loss in zip(steps, losses, strict=True)}


def seeds(losses=LOSSES):
    return {seed: points(row) for seed, row in enumerate(losses, 1)}


def test_a_band_is_the_mean_and_t_interval_of_numpy_at_each_step() -> None:
    made = band(seeds())
    assert made.x == (6400.0, 12800.0, 19200.0) and made.n == 3 and not made.why_short
    assert made.y == pytest.approx(LOSSES.mean(0))
    assert made.half == pytest.approx(T_2 * LOSSES.std(0, ddof=1) / np.sqrt(3))


def test_a_step_that_one_seed_misses_is_left_out() -> None:
    of = seeds()
    del of[2][200.0]
    assert band(of).x == (6400.0, 19200.0)


def test_a_diverged_seed_ends_the_band_and_says_so() -> None:
    of = seeds()
    of[3] = {100.0: of[3][100.0]}
    made = band(of)
    assert made.x == (6400.0,) and made.n == 3 and made.why_short == "seed 3 ends at step 100"


def test_a_seed_that_has_no_score_yet_does_not_count() -> None:
    made = band({**seeds(), 4: {}})
    assert made.n == 3 and len(made.x) == 3


def test_one_seed_has_a_curve_and_no_interval() -> None:
    made = band({1: points(LOSSES[0])})
    assert made.y == tuple(LOSSES[0]) and made.half == () and made.n == 1


def test_no_seed_is_no_band() -> None:
    assert band({}).x == () and difference_band({1: points(LOSSES[0])}, {}).n == 0


def test_differences_are_paired_by_seed() -> None:
    shift = np.array([[0.1], [0.12], [0.08]])
    made = difference_band({seed + 1: points(row) for seed, row in enumerate(LOSSES + shift)}, seeds())
    assert made.y == pytest.approx([0.1] * 3)
    assert made.half == pytest.approx([T_2 * 0.02 / np.sqrt(3)] * 3)  # the noise of the losses is gone


def test_a_difference_is_over_the_seeds_and_steps_that_both_have() -> None:
    ours = {2: points(LOSSES[1] + 0.5), 3: points(LOSSES[2][:2] + 0.5, (100, 200)), 9: points(LOSSES[0])}
    made = difference_band(ours, seeds())
    assert made.n == 2 and made.y == pytest.approx([0.5, 0.5]) and made.why_short == "seed 3 ends at step 200"


def test_scores_that_are_no_numbers_are_no_points() -> None:
    records = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": "x"}, {"loss": 1.0}, {"step": 3, "loss": float("nan")}]
    assert points_by_step([*map(ValidationRecord.read, records)], "step") == {1.0: (1.0, 2.0)}


def read(root: Path) -> list[RunEntry]:
    return [read_entry(path) for path in sorted(root.iterdir()) if path.is_dir()]


def test_runs_that_differ_in_the_seed_alone_are_one_variant(tmp_path) -> None:
    attention(tmp_path)
    runs = read(tmp_path)
    groups = group_seeds(runs, runs)
    assert {group.label: [run.seed for run in group.runs] for group in groups} == {
        "global": [1, 2, 3],
        "win16": [1, 2, 3],
        "sparse": [1, 2, 3],
        "linear": [1],
    }
    assert group_seeds([runs[0]], runs) == [groups[0]]


def test_variants_without_a_study_are_named_by_what_their_runs_share(tmp_path) -> None:
    runs = [entry(tmp_path, f"wide-s{seed}", f"seed={seed}", "model.d_model=320") for seed in (1, 2)]
    runs.append(entry(tmp_path, "other", "seed=1"))
    assert [(group.label, len(group.runs)) for group in group_seeds(runs, runs)] == [("wide", 2), ("other", 1)]


def test_two_runs_of_one_seed_count_once(tmp_path) -> None:
    runs = [entry(tmp_path, name, "seed=1") for name in ("a", "b")]
    assert len(SeedRuns("a", tuple(runs)).by_seed) == 1


def test_a_finished_run_keeps_its_curve_while_a_copy_of_it_trains(tmp_path) -> None:
    states = {"a": "stopped", "b": "finished", "c": "running"}
    runs = [
        entry(tmp_path, name, "seed=1", state=state, created=AT(n)) for n, (name, state) in enumerate(states.items())
    ]
    assert SeedRuns("a", tuple(runs)).by_seed == {1: runs[1]}
    assert SeedRuns("a", tuple(runs[::2])).by_seed == {1: runs[2]}
    (group,) = Grouping().group(runs)
    assert group.charted_runs == (runs[1],)


def drawn(root: Path, baseline: str = "global") -> ChartedRuns:
    runs = read(root)
    groups = group_seeds(runs, runs)
    pinned = next(group for group in groups if group.label == baseline)
    return ChartedRuns(tuple(enumerate(groups)), pinned, MetricsReader().read([run.path for run in runs]))


def notes(made: Overlay) -> str:
    return "; ".join(made.notes)


def test_an_overlay_of_means_says_n_and_where_there_is_no_interval(tmp_path) -> None:
    attention(tmp_path)
    made = loss_chart(drawn(tmp_path), "step", train=False, log=False)
    assert {stroke.name: (stroke.seeds, bool(stroke.curve.half)) for stroke in made.strokes} == {
        "global": (3, True),
        "win16": (3, True),
        "sparse": (3, True),
        "linear": (1, False),
    }
    assert "one seed, no interval: linear" in notes(made)
    assert shading_notes(made.drawn_strokes) == ("± and shaded: 95 % interval",)
    shares = distance_chart(drawn(tmp_path), "recall")
    assert shading_notes(shares.drawn_strokes) == ("shaded: 95 % interval",)


def test_a_difference_that_the_interval_tells_from_zero_is_marked(tmp_path) -> None:
    attention(tmp_path)
    made = {stroke.name: stroke for stroke in difference_chart(drawn(tmp_path), "step").strokes}
    assert (
        "global" not in made
        and all(made["win16"].curve.excludes_zero[3:])
        and not any(made["sparse"].curve.excludes_zero)
    )


def test_a_variant_with_a_leak_is_held_against_nothing(tmp_path) -> None:
    for seed in (1, 2):
        seeded(tmp_path, "global", seed)
        leak = [("leak", "LEAK", "the loss at 12 of 256 places sees a later token")] if seed == 2 else []
        seeded(tmp_path, "win16", seed, *WINDOW, verdicts=leak)
    made = drawn(tmp_path)
    assert difference_chart(made, "step").placeholder == "win16: not comparable"
    assert {stroke.name: stroke.sign for stroke in loss_chart(made, "step", train=False, log=False).strokes}[
        "win16"
    ] == "LEAK"


def test_variants_without_a_common_seed_say_so(tmp_path) -> None:
    seeded(tmp_path, "global", 1)
    seeded(tmp_path, "win16", 2, *WINDOW)
    assert difference_chart(drawn(tmp_path), "step").placeholder == "win16: no seed in common with global"
