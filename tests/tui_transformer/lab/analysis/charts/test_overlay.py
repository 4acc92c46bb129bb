"""Letters on curves."""

from tui_transformer.lab.analysis.chart_lines import Curve
from tui_transformer.lab.analysis.charts.overlay import Overlay, Stroke, clearest_point, draw_overlay
from tui_transformer.lab.analysis.curves import Band


def test_a_letter_leaves_a_stretch_that_another_curve_covers_and_stays_where_none_does() -> None:
    path = [(float(x), 1.0) for x in range(5)]
    crossing = Curve((0.0, 1.0, 2.0, 3.0, 4.0), (0.9, 1.0, 1.0, 1.1, 2.0))
    assert clearest_point(path, path[1], [crossing]) == (4.0, 1.0)
    assert clearest_point(path, path[1], [Curve((0.0, 4.0), (2.0, 2.5))]) == path[1]
    assert clearest_point(path, path[1], [Curve(), Curve((9.0,), (1.0,))]) == path[1]


def test_only_a_baseline_beside_others_is_dashed() -> None:
    def columns(*strokes: Stroke) -> int:
        canvas = draw_overlay(Overlay(strokes=strokes), 60, 12)
        assert canvas is not None
        return sum(style == "run0" for row in canvas.cells for sign, style in row)

    def run(slot: int, height: float, *, baseline: bool = False) -> Stroke:
        xs = tuple(float(x) for x in range(50))
        return Stroke(slot, "", Band(xs, tuple(height for _ in xs)), on_top=baseline)

    whole, dashed = columns(run(0, 1.0), run(1, 2.0)), columns(run(0, 1.0, baseline=True), run(1, 2.0))
    assert dashed < 0.7 * whole
    assert columns(run(0, 1.0, baseline=True)) == columns(run(0, 1.0))


def test_a_dashed_baseline_hides_nothing_of_a_run_that_lies_on_it() -> None:
    def cells(*strokes: Stroke) -> int:
        canvas = draw_overlay(Overlay(strokes=strokes), 60, 12)
        assert canvas is not None
        return sum(style in ("run0", "run1") for row in canvas.cells for sign, style in row)

    xs, ys = tuple(float(x) for x in range(50)), tuple(1.0 for _ in range(50))
    runs = Stroke(0, "", Band(xs, ys)), Stroke(1, "", Band(xs, ys), on_top=True)
    assert cells(*runs) >= 0.95 * cells(runs[0])
