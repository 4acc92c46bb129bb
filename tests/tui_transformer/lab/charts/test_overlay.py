"""Letters on curves."""

from tui_transformer.lab.charts.curves import Curve
from tui_transformer.lab.charts.overlay import clearest


def test_a_letter_leaves_a_stretch_that_another_curve_covers_and_stays_where_none_does() -> None:
    path = [(float(x), 1.0) for x in range(5)]
    crossing = Curve((0.0, 1.0, 2.0, 3.0, 4.0), (0.9, 1.0, 1.0, 1.1, 2.0))
    assert clearest(path, path[1], [crossing]) == (4.0, 1.0)
    assert clearest(path, path[1], [Curve((0.0, 4.0), (2.0, 2.5))]) == path[1]
    assert clearest(path, path[1], [Curve(), Curve((9.0,), (1.0,))]) == path[1]
