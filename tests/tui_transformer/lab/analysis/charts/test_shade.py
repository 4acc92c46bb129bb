import time

from tui_transformer.lab.analysis.charts.canvas import (
    ON,
    ChartCanvas,
    ChartLine,
    ShadedBand,
    draw,
    draw_horizontal,
    draw_vertical,
    shade_bands,
)

X = list(range(0, 101, 10))


def canvas(**more) -> ChartCanvas:
    made = draw(
        [ChartLine(X, [0.5] * len(X), "run0")],
        width=60,
        height=14,
        x_text=lambda x: f"{x:.0f}",
        also_y=(0.0, 1.0),
        **more,
    )
    assert made is not None
    return made


def band(low: float, high: float, faint: bool = False) -> ShadedBand:
    return ShadedBand(X, [(low, high)] * len(X), "0", [faint] * len(X))


def rows(made: ChartCanvas) -> list[int]:
    return [i for i, row in enumerate(made.cells) if any(style.endswith(f"{ON}band0") for _, style in row)]


def line(made: ChartCanvas) -> list[tuple[int, int, str]]:
    cells = ((y, x, *cell) for y, row in enumerate(made.cells) for x, cell in enumerate(row))
    return [(y, x, sign) for y, x, sign, style in cells if style.partition(ON)[0] == "run0"]


def test_a_band_lies_between_its_edges_and_covers_no_line() -> None:
    made = canvas()
    before = line(made)
    shade_bands(made, [band(0.4, 0.9)])
    assert before == line(made) and len(before) > 10
    height = made.rows - 1
    assert min(rows(made)) == round(0.1 * height) and max(rows(made)) <= round(0.6 * height) + 1


def test_a_band_thinner_than_a_row_is_still_seen() -> None:
    made = canvas()
    shade_bands(made, [band(0.61, 0.611)])
    assert len(rows(made)) == 1


def test_where_nothing_can_be_said_a_band_is_fainter() -> None:
    made = canvas()
    shade_bands(made, [band(0.1, 0.9, faint=True)])
    styles = {style.partition(ON)[2] for row in made.cells for _, style in row}
    assert styles == {"", "faint0"}


def test_a_band_beyond_the_chart_is_cut_off_there() -> None:
    made = canvas()
    shade_bands(made, [band(-5.0, 7.0)])
    assert set(rows(made)) <= set(range(made.rows))


def test_a_line_stands_upright_at_its_place_behind_the_others() -> None:
    made = canvas()
    draw_vertical(made, 30, "run1", [("b", "run1")])
    column = [row[made.column_of(30)] for row in made.cells[: made.rows]]
    assert column[0] == ("b", "run1") and sum(cell == ("┊", "run1") for cell in column) >= made.rows - 3
    assert any(style == "run0" for _, style in column)


def test_a_level_stands_in_the_row_of_a_line_of_that_height() -> None:
    for height in range(6, 30):
        made = draw(
            [ChartLine(X, [0.083] * 11, "run0")], width=60, height=height, x_text=str, also_y=(0.0, 1.0), also_x=[-50]
        )
        assert made is not None
        draw_horizontal(made, 0.083, "level")
        assert {style for row in made.cells for _, style in row if style in ("run0", "level")} == {"run0", "level"}
        assert [any(s == "run0" for _, s in row) for row in made.cells] == [
            any(s == "level" for _, s in row) for row in made.cells
        ]


def test_what_must_be_seen_widens_the_axes() -> None:
    made = canvas(also_x=[-50, 400])
    assert (made.low, made.high) == (-50, 400)


def test_eight_bands_of_a_wide_chart_take_no_time_that_anyone_feels() -> None:
    made = draw([ChartLine(X, X, "run0")], width=200, height=40, x_text=str)
    assert made is not None
    took = []
    for _ in range(5):
        started = time.process_time()
        shade_bands(made, [band(10 * i, 10 * i + 20) for i in range(8)])
        took.append(time.process_time() - started)
    assert min(took) < 0.05
