"""Curves and their drawing: what a chart shows of the records it is given."""

import math

import pytest

from engine.runs.records import TrainRecord, ValidationRecord
from tests.tui_transformer.recorded import train_record, validation_record
from tui_transformer.lab.charts.canvas import Line, draw, usual_top
from tui_transformer.lab.charts.curves import CHARTED, Picture, known, picture

LOSS, PERPLEXITY, ACCURACY = CHARTED[0], CHARTED[1], CHARTED[3]


def made(measure=LOSS, count: int = 200, axis: str = "step", smoothing: str = "off", log: bool = False) -> Picture:
    train = [TrainRecord.read(train_record(at, 10 * count)) for at in range(10, 10 * count + 1, 10)]
    validation = [ValidationRecord.read(validation_record(at, 10 * count)) for at in range(200, 10 * count + 1, 200)]
    return picture(measure, train, validation, axis=axis, smoothing=smoothing, log=log, floors=[0.36])


def text(**changes) -> list[str]:
    line = changes.pop("lines", [Line((0.0, 50.0, 100.0), (1.0, 3.0, 2.0), "train")])
    options = {"width": 60, "height": 14, "x_text": lambda x: f"{x:.0f}"} | changes
    canvas = draw(line, **options)
    return [] if canvas is None else ["".join(c for c, _ in row) for row in canvas.cells]


def test_perplexity_is_e_to_the_loss_for_train_floor_and_validation() -> None:
    loss, perplexity = made(), made(PERPLEXITY)
    assert perplexity.train.y[-1] == pytest.approx(math.exp(loss.train.y[-1]))
    assert perplexity.validation.y[-1] == pytest.approx(math.exp(loss.validation.y[-1]))
    assert perplexity.floors == (pytest.approx(math.exp(0.36)),)


def test_the_best_is_the_lowest_loss_and_the_highest_accuracy() -> None:
    loss, accuracy = made(), made(ACCURACY)
    assert loss.validation.y[loss.best] == min(loss.validation.y)
    assert accuracy.validation.y[accuracy.best] == max(accuracy.validation.y) and not accuracy.train.x


def test_a_measure_is_offered_where_evaluations_have_it() -> None:
    assert known(LOSS, []) and known(ACCURACY, [ValidationRecord(accuracy=0.5)])
    assert not known(ACCURACY, []) and not known(ACCURACY, [ValidationRecord(accuracy=None)])


def test_smoothing_does_not_depend_on_how_dense_the_points_are() -> None:
    curve = lambda every: [TrainRecord(step=x, loss=1 + math.exp(-x / 500)) for x in range(0, 4001, every)]
    ends = [
        picture(LOSS, curve(n), [], axis="step", smoothing="strong", log=False, floors=[]).train.y[-1] for n in (1, 20)
    ]
    assert ends[0] == pytest.approx(ends[1], abs=1e-3)


def test_the_raw_curve_stays_behind_the_smooth_one() -> None:
    assert not made().raw.x and len(made(smoothing="some").raw.x) == 200


def test_a_value_that_is_not_positive_takes_the_logarithm_away() -> None:
    train = [TrainRecord(step=1, loss=0.0), TrainRecord(step=2, loss=1.0)]
    assert not picture(LOSS, train, [], axis="step", smoothing="off", log=True, floors=[]).log
    assert made(log=True).log


def test_the_steep_start_is_cut_off() -> None:
    values = [50.0, 20.0, *(2.0 - i / 1000 for i in range(200))]
    assert usual_top(values, 0.5) < 5
    assert usual_top(values[:10], 0.5) == math.inf


def test_every_row_is_as_wide_as_asked_and_axes_have_round_numbers() -> None:
    rows = text()
    assert len(rows) == 14 and {len(row) for row in rows} == {60}
    assert rows[0].startswith("3.0┤") and rows[-3].startswith("1.0┤")
    assert rows[-1].split()[0] == "0" and "100" in rows[-1]


def test_a_column_and_its_x_belong_together() -> None:
    canvas = draw([Line(range(1001), range(1001), "train")], width=60, height=14, x_text=str)
    for column in range(canvas.margin, 60):
        assert canvas.column_of(canvas.x_at(column)) == column


@pytest.mark.parametrize("y", [(1.0, 1.0), (0.0, 0.0), (1e-300, 1e-300), (1e15, 1.0), (-5.0, 5.0)])
def test_any_range_can_be_drawn(y) -> None:
    assert text(lines=[Line((1.0, 2.0), y, "train")])


def test_there_is_nothing_to_draw_without_points_or_room() -> None:
    assert text(lines=[]) == [] and text(lines=[Line((), (), "train")]) == []
    assert text(width=10) == [] and text(height=2) == []


def test_a_line_that_comes_later_takes_the_cell() -> None:
    lines = [Line((0.0, 9.0), (1.0, 2.0), "train"), Line((0.0, 9.0), (1.0, 2.0), "validation")]
    canvas = draw(lines, width=40, height=12, x_text=str)
    assert {style for row in canvas.cells for _, style in row} == {"", "axis", "validation"}
