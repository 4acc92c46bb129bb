"""How a text's floors and a probe's places are shown, in runs of this version and of earlier ones."""

import json
from pathlib import Path

from engine.runs.records import DataFacts, Floor, TrainRecord, ValidationRecord
from tui_transformer.lab.analysis.chart_lines import CHARTED, measure_chart
from tui_transformer.lab.records.run_view import RunFollower, RunRow
from tui_transformer.studio.train.run_charts import RunDrawing
from tui_transformer.studio.train.run_tabs import checks_text

PAST = {"nats_per_char": 0.3573, "se": 0.0013}
WINDOW = {"nats_per_char": 0.3688, "se": 0.0014, "context": 256, "stride": 128, "luck": 0.0014}


def test_the_reachable_floor_comes_first_and_says_what_it_is_of() -> None:
    both = DataFacts.read({"floor": PAST | {"reachable": WINDOW}}).floors
    assert [(floor.description, floor.loss_text) for floor in both] == [
        ("floor reachable at context 256, stride 128", "0.3688 ± 0.0014"),
        ("floor given the whole past", "0.3573 ± 0.0013"),
    ]
    assert DataFacts.read({"floor": PAST}).floors == (Floor(nats_per_char=0.3573, se=0.0013),)


def test_damaged_floors_are_left_out() -> None:
    for damage in (None, [], {"floor": 3}, {"floor": {"nats_per_char": "x", "reachable": [1]}}, {"floor": None}):
        assert DataFacts.read(damage).floors == ()


def legend(levels: list[float], width: int) -> str:
    train, validation = ([kind(step=1, loss=2.0), kind(step=2, loss=1.0)] for kind in (TrainRecord, ValidationRecord))
    made = measure_chart(CHARTED[0], train, validation, axis="step", smoothing="off", log=False, floors=levels)
    return "".join(text for text, _ in RunDrawing(made, "").title(width, "title"))


def test_the_legend_names_both_floors_where_there_is_room() -> None:
    assert "reachable floor 0.3688" in legend([0.3688, 0.3573], 150)
    assert "given the whole past 0.3573" in legend([0.3688, 0.3573], 150)
    assert "reachable floor 0.3688" in legend([0.3688, 0.3573], 85)
    assert "whole past" not in legend([0.3688, 0.3573], 85)
    assert "┄ floor 0.3573" in legend([0.3573], 150)


def test_a_probe_says_of_how_many_places_it_is(tmp_path: Path) -> None:
    last = {"kind": "validation", "step": 1, "loss": 1.0, "probes": {"rhyme": 0.5, "counter": 1.0}}
    for places, said in (
        ({"rhyme": 1208, "counter": 60}, ["50% of 1,208", "100% of    60"]),
        ({}, ["50%  ", "100%  "]),
    ):
        (tmp_path / "summary.json").write_text(json.dumps({"last": last | {"probe_places": places}}))
        row = RunRow(tmp_path, "finished", step=1, steps=1, attempt=1)
        shown = checks_text(RunFollower(tmp_path).view(0.0, row)).plain
        assert all(part in shown for part in said), shown
