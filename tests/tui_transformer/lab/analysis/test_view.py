"""What is shown: selections that keep their letters, curves and their differences, columns that find room."""

import itertools

import pytest

from tests.tui_transformer.lab.analysis.variants import LEAK, study, variant
from tests.tui_transformer.recorded import grow, record
from tui_transformer.lab.analysis.chart_lines import Curve, curve_of
from tui_transformer.lab.analysis.charts.overlay import ChartedRuns, difference_chart, loss_chart
from tui_transformer.lab.analysis.colours import LETTERS, ON_DARK, ON_LIGHT
from tui_transformer.lab.analysis.curves import MOST_CURVES, Band, MetricsReader, difference
from tui_transformer.lab.analysis.folder import RunsFolder
from tui_transformer.lab.analysis.view import Selection, View, ViewOptions
from tui_transformer.lab.formatting import fit_to_width
from tui_transformer.studio.compare.run_table import MARKS, lay_out
from tui_transformer.studio.themes import THEMES


def test_cells_are_made_once_until_something_changes(tmp_path) -> None:
    study(tmp_path)
    entries, view = RunsFolder(tmp_path).scan().entries, View()
    first = view.arrange(entries, ViewOptions())
    again = view.arrange(entries, ViewOptions(sort="loss"))
    assert {id(row) for row in again.rows} == {id(row) for row in first.rows} and again.rows != first.rows
    pinned = view.arrange(entries, ViewOptions(baseline=entries[-1].path))
    assert "verdict" in [column.key for column in pinned.columns]


def test_what_is_typed_hides_no_run_before_it_is_a_term(tmp_path) -> None:
    study(tmp_path)
    entries, view = RunsFolder(tmp_path).scan().entries, View()
    typed = view.arrange(entries, ViewOptions(query="n_he"))
    assert len(typed.rows) == 8 and "n_heads needs an operator" in typed.mistake
    assert len(view.arrange(entries, ViewOptions(query="n_heads=2")).rows) == 1
    assert len(view.arrange(entries, ViewOptions(query="young n_hed=2")).rows) == 1


def test_runs_stand_from_the_best_where_they_can_be_compared_and_the_sorted_column_is_marked(tmp_path) -> None:
    study(tmp_path)
    shown = View().arrange(RunsFolder(tmp_path).scan().entries, ViewOptions())
    names = [row.entry.name for row in shown.rows]
    alike = [name for name in names if name in ("wide", "baseline", "heads2", "no-pe")]
    assert alike == ["wide", "baseline", "heads2", "no-pe"]  # not by age
    assert names.index("enc-next") > names.index("no-pe")  # it leaks: its low loss is no best one
    assert shown.sorted_by is not None and shown.sorted_by.key == "last"
    measured = [row.entry.protocol.context for row in shown.rows if row.entry.last is not None]
    assert sum(a != b for a, b in itertools.pairwise(measured)) == len(set(measured)) - 1  # those alike are together


def test_no_match_says_which_term(tmp_path) -> None:
    study(tmp_path)
    shown = View().arrange(RunsFolder(tmp_path).scan().entries, ViewOptions(query="loss<9 badge:INERT"))
    assert shown.rows == () and shown.why_empty == "no run matches badge:INERT"


def test_only_the_selected_runs_decide_which_settings_differ(tmp_path) -> None:
    study(tmp_path)
    entries = RunsFolder(tmp_path).scan().entries
    chosen = tuple(e.path for e in entries if e.name in ("baseline", "no-pe"))
    shown = View().arrange(entries, ViewOptions(selected=chosen))
    assert [c.key for c in shown.columns if c.config_key] == ["model.position"] and len(shown.rows) == 8
    assert len(View().arrange(entries, ViewOptions(selected=chosen, only=True)).rows) == 2


def test_letters_stay_with_their_runs_and_are_at_most_eight(tmp_path) -> None:
    runs = [tmp_path / str(i) for i in range(MOST_CURVES + 1)]
    selection = Selection()
    assert all(selection.toggle(run) for run in runs[:MOST_CURVES]) and not selection.toggle(runs[MOST_CURVES])
    selection.toggle(runs[2])
    assert (
        selection.slot(runs[3]) == 3 and selection.toggle(runs[MOST_CURVES]) and selection.slot(runs[MOST_CURVES]) == 2
    )
    selection.toggle_baseline(runs[0])
    selection.drop_missing({runs[1]})
    assert selection.baseline is None and selection.runs == (runs[1],)


def test_a_difference_is_taken_between_the_baselines_points_and_never_beyond() -> None:
    baseline = Curve((10.0, 20.0, 40.0), (4.0, 3.0, 1.0))
    found = difference(Curve((5.0, 10.0, 15.0, 30.0, 40.0, 50.0), (9.0, 4.5, 3.5, 2.5, 1.0, 9.0)), baseline)
    assert found.x == (10.0, 15.0, 30.0, 40.0) and found.y == pytest.approx((0.5, 0.0, 0.5, 0.0))
    assert difference(Curve((9.9,), (1.0,)), baseline) == Band()
    assert difference(baseline, Curve()) == Band()


@pytest.mark.parametrize("axis", ["step", "tokens", "seconds"])
def test_curves_align_over_steps_tokens_or_seconds(tmp_path, axis) -> None:
    one, two = variant(tmp_path, "a"), variant(tmp_path, "b", by=0.25)
    read = MetricsReader().read([one, two])
    found = difference(*(curve_of(read[run].validation, axis, "loss") for run in (two, one)))
    assert len(found.x) == 10 and found.y == pytest.approx([0.25] * 10)


def test_curves_follow_live_runs_and_keep_their_version_otherwise(tmp_path) -> None:
    run, curves = record(tmp_path, "live", state="running", step=500), MetricsReader()
    first = curves.read([run])[run]
    assert curves.read([run])[run] is first
    grow(run, to=800)
    assert curves.read([run])[run].version > first.version


def test_damaged_and_missing_metrics_are_empty_curves(tmp_path) -> None:
    run = record(tmp_path, "a")
    (run / "metrics.jsonl").write_bytes(
        b'{"kind":"validation","step":\xff\n{"kind":"validation","loss":1e999,"step":3}\n'
    )
    read = MetricsReader().read([run, tmp_path / "gone"])
    assert all(curve_of(found.validation, "step", "loss") == Curve() for found in read.values())


def drawn(tmp_path, *names: str, baseline: str | None = "a") -> ChartedRuns:
    entries = {e.name: e for e in RunsFolder(tmp_path).scan().entries}
    metrics = MetricsReader().read([tmp_path / name for name in {*names, *([baseline] if baseline else [])}])
    return ChartedRuns.from_runs(((i, entries[n]) for i, n in enumerate(names)), entries.get(baseline or ""), metrics)


def test_runs_that_cannot_be_compared_have_no_difference_curve(tmp_path) -> None:
    variant(tmp_path, "a")
    variant(tmp_path, "b", by=0.1)
    variant(tmp_path, "leak", verdicts=[LEAK])
    variant(tmp_path, "short", scored={"context": 64})
    made = difference_chart(drawn(tmp_path, "a", "b", "leak", "short"), "step")
    assert [stroke.name for stroke in made.drawn_strokes] == ["b"]
    over = loss_chart(drawn(tmp_path, "a", "b", "leak", "short"), "step", train=False, log=False)
    assert [(s.name, s.sign) for s in over.strokes] == [("a", ""), ("b", ""), ("leak", "LEAK"), ("short", "≠")]
    assert "LEAK" in difference_chart(drawn(tmp_path, "a", "leak"), "step").placeholder


def test_charts_say_what_is_missing(tmp_path) -> None:
    variant(tmp_path, "a")
    record(tmp_path, "q", state="queued", step=0)
    assert difference_chart(drawn(tmp_path, "a", baseline=None), "step").placeholder == "p: set a run as the baseline"
    assert "select runs (space)" in difference_chart(drawn(tmp_path, "a"), "step").placeholder
    assert loss_chart(drawn(tmp_path, "q"), "step", train=False, log=False).placeholder == "no evaluation yet"


def test_a_logarithmic_axis_is_only_for_what_is_positive(tmp_path) -> None:
    variant(tmp_path, "a", by=-2.0)
    assert not loss_chart(drawn(tmp_path, "a"), "step", train=False, log=True).log


@pytest.mark.parametrize("width", [0, 10, 40, 60, 78, 120, 198, 400])
def test_columns_find_room_and_every_one_can_be_reached(tmp_path, width) -> None:
    study(tmp_path)
    shown = View().arrange(RunsFolder(tmp_path).scan().entries, ViewOptions(all_settings=True))
    seen = set()
    for first in range(1, len(shown.columns)):
        layout = lay_out(shown, width, first)
        for place in layout.places:
            assert place.start >= MARKS and place.start + place.width <= max(width, MARKS + 40)
            seen.add(place.index)
    assert width < 40 or seen == set(range(len(shown.columns)))


def test_texts_are_cut_by_what_the_terminal_shows_of_them() -> None:
    assert (
        fit_to_width("模型很长", 5) == "模型…"
        and fit_to_width("ab", 4, right=True) == "  ab"
        and fit_to_width("ab", 0) == ""
    )


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_eight_run_colours_are_apart_and_can_be_read_on_each_ground(theme) -> None:
    colours = [theme.variables[f"run-{letter}"] for letter in LETTERS]
    assert len(set(colours)) == len(LETTERS) == MOST_CURVES
    ground = luminance(theme.background)
    for colour in colours:
        high, low = sorted((luminance(colour), ground), reverse=True)
        assert (high + 0.05) / (low + 0.05) > 3.0


def test_themes_without_run_colours_get_some() -> None:
    assert set(ON_DARK) == set(ON_LIGHT) == {f"run-{letter}" for letter in LETTERS}
