"""What always the same answer scores, beside runs on questions: a row that is no run, and the difference to it."""

from pathlib import Path

import pytest

from engine.runs.records import ValidationRecord
from tests.tui_transformer.lab.analysis.asking import OF, RIGHT, asking
from tests.tui_transformer.lab.analysis.variants import change
from tests.tui_transformer.recorded import record
from tests.tui_transformer.studio.on_screen import until
from tui_transformer.__main__ import main
from tui_transformer.lab.analysis.chart_lines import CHARTED, has_values, measure_chart
from tui_transformer.lab.analysis.columns import OVER_MAJORITY, columns
from tui_transformer.lab.analysis.detail import results_text
from tui_transformer.lab.analysis.entry import NO_RUN, majority_rows, read_entry
from tui_transformer.lab.analysis.export import FORMATS
from tui_transformer.lab.analysis.group_columns import data_columns
from tui_transformer.lab.analysis.groups import Grouping
from tui_transformer.lab.analysis.verdict import VariantEvaluator, verdict
from tui_transformer.studio.app import Studio
from tui_transformer.studio.compare.pane import ComparePane

EXACT = 0.62


@pytest.fixture
def runs(tmp_path) -> Path:
    asking(tmp_path, "finetuned", EXACT)
    asking(tmp_path, "scratch", 0.1)
    record(tmp_path, "text")
    return tmp_path


def test_the_row_is_marked_as_no_run_and_scores_its_share(runs) -> None:
    entries = [read_entry(runs / name) for name in ("finetuned", "scratch", "text")]
    (row,) = majority_rows(entries)
    assert (row.name, row.state, row.scores) == ("no run: always 'Arlow'", NO_RUN, {"exact_match": RIGHT / OF})
    assert verdict(row, entries[0]) == NO_RUN and row.last is None and not row.path.exists()
    assert majority_rows(entries[2:]) == []


def test_the_difference_to_it_is_a_column_of_runs_on_questions_alone(runs) -> None:
    finetuned, text = read_entry(runs / "finetuned"), read_entry(runs / "text")
    assert finetuned.over_majority == pytest.approx(EXACT - RIGHT / OF) and text.over_majority is None
    assert OVER_MAJORITY.screen_text(finetuned, None) == "+49.6%"
    assert OVER_MAJORITY in columns([finetuned, text], None) and OVER_MAJORITY not in columns([text], None)


@pytest.mark.parametrize("kind", ["", *FORMATS])
def test_compare_has_the_row_in_every_format(runs, kind, capsys) -> None:
    options = [f"--{kind}"] if kind else []
    assert main(["compare", "finetuned", "scratch", *options, "--runs-dir", str(runs)]) == 0
    lines = capsys.readouterr().out.replace("{'}", "'").splitlines()
    (row,) = (line for line in lines if "always 'Arlow'" in line)
    assert NO_RUN in row and ("12.4%" if not kind else "0.124") in row


def test_variants_have_it_as_columns_and_in_a_sentence(runs) -> None:
    standings = VariantEvaluator().evaluate(Grouping().group([read_entry(runs / "finetuned")]), {}, None)
    assert "always 'Arlow', which would be right on 12.4%" in results_text(standings)
    values = {column.key: column.value(standings[0], None) for column in data_columns(standings)}
    assert values["majority"] == RIGHT / OF and values["Δmajority"] == pytest.approx(EXACT - RIGHT / OF)


async def test_the_table_of_the_studio_has_the_row_and_nothing_can_be_done_to_it(runs, plain_surroundings) -> None:
    app = Studio(runs_dir=runs, device="cpu", panes=("compare",))
    async with app.run_test(size=(200, 50)) as pilot:
        pane = app.query_one(ComparePane)
        await until(pilot, lambda: len(pane.shown.rows) == 4)
        names = [row.entry.name for row in pane.shown.rows]
        assert names[-1] == "no run: always 'Arlow'" and set(names[:-1]) == {"finetuned", "scratch", "text"}
        assert pane.shown.count == pane.shown.total == 3
        pane._table.focus()
        drawn = set(pane.selection.runs)
        await pilot.press("end", "space", "b")
        assert pane.current_run() is None and set(pane.selection.runs) == drawn and pane.selection.baseline is None
        assert "Δmajority" in [column.key for column in pane.shown.columns]


def test_recall_is_a_curve_where_evaluations_have_the_probe() -> None:
    records = [ValidationRecord(step=step, probes={"recall": step / 10}) for step in (1, 5)]
    measure = next(one for one in CHARTED if one.key == "recall")
    made = measure_chart(measure, [], records, axis="step", smoothing="off", log=False, floors=[])
    assert has_values(measure, records) and made.validation.y == (0.1, 0.5) and made.best == 1
    assert not has_values(measure, [ValidationRecord(step=1, loss=2.0)])


NO_QUESTIONS, TOO_MANY = {"answer": "a", "right": 3, "of": 0}, {"answer": "a", "right": 5, "of": 2}


@pytest.mark.parametrize("said", [None, {}, NO_QUESTIONS, TOO_MANY, {"answer": "a", "right": "1", "of": 2}])
def test_what_is_damaged_is_no_majority(tmp_path, said) -> None:
    run = record(tmp_path, "a")
    change(run / "data.json", majority=said)
    assert read_entry(run).majority is None
