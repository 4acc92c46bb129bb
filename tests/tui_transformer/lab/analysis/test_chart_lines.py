"""Curves and their drawing: what a chart shows of the records it is given."""

import itertools
import math

import pytest

from engine.runs.records import TrainRecord, ValidationRecord
from tests.tui_transformer.recorded import train_record, validation_record
from tui_transformer.lab.analysis.chart_lines import CHARTED, THROUGHPUT, Curve, MeasureChart, has_values, measure_chart
from tui_transformer.lab.analysis.charts.canvas import ChartLine, Level, Mark, draw, draw_grid, usual_top

LOSS, PERPLEXITY = CHARTED[:2]
ACCURACY = next(measure for measure in CHARTED if measure.key == "accuracy")


def made(measure=LOSS, count: int = 200, axis: str = "step", smoothing: str = "off", log: bool = False) -> MeasureChart:
    train = [TrainRecord.read(train_record(at, 10 * count)) for at in range(10, 10 * count + 1, 10)]
    validation = [ValidationRecord.read(validation_record(at, 10 * count)) for at in range(200, 10 * count + 1, 200)]
    return measure_chart(measure, train, validation, axis=axis, smoothing=smoothing, log=log, floors=[0.36])


def text(**changes) -> list[str]:
    line = changes.pop("lines", [ChartLine((0.0, 50.0, 100.0), (1.0, 3.0, 2.0), "train")])
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
    assert has_values(LOSS, []) and has_values(ACCURACY, [ValidationRecord(accuracy=0.5)])
    assert not has_values(ACCURACY, []) and not has_values(ACCURACY, [ValidationRecord(accuracy=None)])


def test_smoothing_does_not_depend_on_how_dense_the_points_are() -> None:
    curve = lambda every: [TrainRecord(step=x, loss=1 + math.exp(-x / 500)) for x in range(0, 4001, every)]
    ends = [
        measure_chart(LOSS, curve(n), [], axis="step", smoothing="strong", log=False, floors=[]).train.y[-1]
        for n in (1, 20)
    ]
    assert ends[0] == pytest.approx(ends[1], abs=1e-3)


def test_the_raw_curve_stays_behind_the_smooth_one() -> None:
    assert not made().raw.x and len(made(smoothing="some").raw.x) == 200


def test_a_value_that_is_not_positive_takes_the_logarithm_away() -> None:
    train = [TrainRecord(step=1, loss=0.0), TrainRecord(step=2, loss=1.0)]
    assert not measure_chart(LOSS, train, [], axis="step", smoothing="off", log=True, floors=[]).log
    assert made(log=True).log


def test_the_steep_start_is_cut_off() -> None:
    steep = Curve(range(202), (50.0, 20.0, *(2.0 - i / 1000 for i in range(200))))
    assert 2 < usual_top([steep], 0.5) < 5
    assert usual_top([Curve((0, 1, 2, 3), (2.0, 1.8, 1.7, 1.6))], 0.5) == math.inf
    late = Curve(range(180, 200), tuple(3.0 + i / 3 for i in range(20)))  # no part of the initial fall
    assert usual_top([steep, late], 0.5) > 8
    good, bad = Curve((200, 300), (1.5, 0.7)), Curve((200, 300), (2.2, 1.8))
    assert usual_top([good, good, good, bad], 0.7) > 1.8  # the worst of several runs stays in view


def test_from_the_first_evaluation_on_the_fall_does_not_flatten_what_follows() -> None:
    fall = made(count=40)
    assert usual_top([fall.train, fall.validation], 0.36) < 0.6 * max(fall.train.y)


@pytest.mark.parametrize("height", [7, 10, 14, 40])
@pytest.mark.parametrize("high", [0.37, 1.0, 2.1, 4.3, 7.7, 9.99, 41.3, 552, 1799])
@pytest.mark.parametrize("width", [52, 86, 190])
def test_each_axis_has_four_labels_at_least(width, height, high) -> None:
    line = ChartLine((0.0, 10 * high), (high, 0.36), "train")
    for log in (False, True):
        canvas = draw(
            [line],
            width=width,
            height=height,
            x_text=lambda x: f"{x:,.6g}",
            x_label="steps",
            levels=[Level(0.36, "floor", "floor")],
            log=log,
        )
        rows = ["".join(c for c, _ in row) for row in canvas.cells]
        assert sum("┤" in row for row in rows) >= 4
        assert len(rows[-1].replace("steps", "").split()) >= 4
        assert any(row.lstrip().startswith("0.36┤┄ floor ") for row in rows)


def test_a_mark_stands_on_the_cell_of_its_point() -> None:
    x = list(range(0, 2000, 37))
    y = [1 + math.exp(-at / 300) + 0.1 * math.sin(at) for at in x]
    for at in range(len(x)):
        bare, marked = (
            draw([ChartLine(x, y, "train")], width=83, height=17, x_text=str, marks=marks)
            for marks in ([], [Mark(x[at], y[at], "★", "best")])
        )
        [(row, column)] = [
            (r, c) for r, line in enumerate(marked.cells) for c, cell in enumerate(line) if cell[0] == "★"
        ]
        assert bare.cells[row][column][1] == "train" and (row, column) == (bare.row_of(y[at]), bare.column_of(x[at]))


def test_a_floor_is_seen_behind_the_curve_that_reaches_it() -> None:
    canvas = draw(
        [ChartLine((0.0, 100.0), (0.36, 0.36), "train"), ChartLine((0.0, 100.0), (2.0, 1.0), "validation")],
        width=60,
        height=14,
        x_text=str,
        levels=[Level(0.36, "floor", "floor")],
    )
    row = canvas.cells[canvas.row_of(0.36)]
    assert {style for _, style in row[canvas.margin + 8 :]} == {"train on floor-row"}
    assert "".join(c for c, _ in row[canvas.margin + 1 :]).startswith(" floor ")


def test_train_and_validation_are_told_apart_without_colour() -> None:
    x, y = range(0, 1000, 10), [1.0 + 1 / (at + 1) for at in range(100)]
    canvas = draw([ChartLine(x, y, "train"), ChartLine(x, y, "validation", dots=True)], width=60, height=14, x_text=str)
    signs = "".join(c for row in canvas.cells for c, style in row if style == "validation")
    assert 5 <= signs.count("•") <= len(x) // 4


def test_a_dashed_line_has_holes_and_a_grid_fills_only_what_is_empty() -> None:
    canvas = draw(
        [ChartLine((0, 50), (1.0, 2.0), "run0"), ChartLine((0, 50), (2.0, 1.0), "ghost", dashed=True)],
        width=60,
        height=14,
        x_text=str,
    )
    before = [list(row) for row in canvas.cells]
    columns = {c for row in canvas.cells for c, (_, style) in enumerate(row) if style == "ghost"}
    assert 20 < len(columns) < 32
    draw_grid(canvas)
    changed = [
        (a, b) for was, now in zip(before, canvas.cells, strict=True) for a, b in zip(was, now, strict=True) if a != b
    ]
    assert changed and all(a == (" ", "") and b[1] == "grid" for a, b in changed)


def test_the_gap_lies_between_train_and_validation_and_a_ghost_ends_with_the_run() -> None:
    run = made()
    x, ends = run.train_validation_gap
    assert list(x) == list(run.validation.x) and all(low <= high for low, high in ends)
    train = [TrainRecord.read(train_record(at, 2000)) for at in range(10, 501, 10)]
    longer = [ValidationRecord.read(validation_record(at, 2000)) for at in range(200, 2001, 200)]
    short = measure_chart(LOSS, train, [], axis="step", smoothing="off", log=False, floors=[], ghost=longer)
    assert short.ghost.x == (200, 400)


def test_throughput_is_a_chart_of_train_records() -> None:
    speed = made(THROUGHPUT)
    assert has_values(THROUGHPUT, []) and len(speed.train.y) == 200 and not speed.validation.x and not speed.floors


def test_every_row_is_as_wide_as_asked_and_axes_have_round_numbers() -> None:
    rows = text()
    assert len(rows) == 14 and {len(row) for row in rows} == {60}
    assert rows[0].startswith("3.0┤") and rows[-3].startswith("1.0┤")
    assert rows[-1].split()[0] == "0" and "100" in rows[-1]


def test_a_column_and_its_x_belong_together() -> None:
    canvas = draw([ChartLine(range(1001), range(1001), "train")], width=60, height=14, x_text=str)
    for column in range(canvas.margin, 60):
        assert canvas.column_of(canvas.x_at(column)) == column


@pytest.mark.parametrize("y", [(1.0, 1.0), (0.0, 0.0), (1e-300, 1e-300), (1e15, 1.0), (-5.0, 5.0)])
def test_any_range_can_be_drawn(y) -> None:
    assert text(lines=[ChartLine((1.0, 2.0), y, "train")])


def test_there_is_nothing_to_draw_without_points_or_room() -> None:
    assert text(lines=[]) == [] and text(lines=[ChartLine((), (), "train")]) == []
    assert text(width=10) == [] and text(height=2) == []


def test_a_line_that_comes_later_takes_the_cell() -> None:
    lines = [ChartLine((0.0, 9.0), (1.0, 2.0), "train"), ChartLine((0.0, 9.0), (1.0, 2.0), "validation")]
    canvas = draw(lines, width=40, height=12, x_text=str)
    assert {style for row in canvas.cells for _, style in row} == {"", "axis", "validation"}


def test_lines_that_share_take_turns_where_they_cover_each_other_and_only_there() -> None:
    x = (0.0, 5.0, 9.0)
    lines = [
        ChartLine(x, y, style, takes_turns=True) for y, style in (((1.0, 2.0, 2.0), "run0"), ((1.0, 2.0, 3.0), "run1"))
    ]
    canvas = draw(lines, width=60, height=16, x_text=str)
    alone = draw(lines[1:], width=60, height=16, x_text=str)
    middle = canvas.column_of(5.0)
    of = lambda made, columns: [style for row in made.cells for _, style in row[columns] if style.startswith("run")]
    together = of(canvas, slice(canvas.margin, middle - 1))
    assert abs(together.count("run0") - together.count("run1")) <= 8 and min(map(together.count, set(together))) > 5
    end = slice(canvas.column_of(6.0), None)
    assert of(canvas, end).count("run1") == len(of(alone, end))  # apart, each has all of its own cells


def test_a_part_of_x_is_drawn_up_to_its_ends_and_y_follows_it() -> None:
    line = ChartLine((0.0, 50.0, 100.0), (9.0, 3.0, 2.0), "train", dots=True)
    drawn = {"width": 60, "height": 14, "x_text": lambda x: f"{x:.0f}", "levels": [Level(0.5, "floor", "floor")]}
    part = draw([line], **drawn, marks=[Mark(0.0, 9.0, "★", "best")], span=(60.0, 90.0))
    assert (part.low, part.high, part.whole, part.zoomed) == (60.0, 90.0, (0.0, 100.0), True)
    assert part.bottom == pytest.approx(2.2) and part.top == pytest.approx(2.8)
    said = "".join(c for row in part.cells for c, _ in row)
    assert "★" not in said and "•" not in said and "floor" not in said  # no point, mark or level is there
    assert not draw([line], **drawn, span=(200.0, 300.0)).zoomed  # where nothing is, all is shown


def test_labels_of_y_are_equally_many_rows_apart_where_a_quarter_more_height_allows_it() -> None:
    for low, high, height in ((0.39, 0.52, 27), (0.0, 1.0, 19), (-0.1, 0.32, 19), (0.4, 4.17, 27)):
        canvas = draw([ChartLine((0.0, 9.0), (low, high), "train")], width=60, height=height, x_text=str)
        assert canvas is not None
        rows = canvas.labelled[0]
        assert len({b - a for a, b in itertools.pairwise(rows)}) == 1 and len(rows) >= 4
        assert canvas.bottom == low and high <= canvas.top <= low + 1.25 * (high - low)
