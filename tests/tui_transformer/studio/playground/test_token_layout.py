import string

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from engine.base.clean import clean
from tests.tui_transformer.fake_writer import POISON, WIDE
from tui_transformer.studio.playground.token_text import TextLayout, token_cells

TEXTS = st.lists(st.text(st.characters() | st.sampled_from(string.printable + WIDE + POISON), max_size=4), max_size=60)


def laid(texts: list[str], width: int) -> TextLayout:
    layout = TextLayout(width)
    layout.extend(texts)
    return layout


@given(TEXTS, st.integers(4, 40))
@settings(max_examples=60, deadline=None)
def test_every_token_has_cells_and_every_line_fits(texts, width) -> None:
    layout = laid(texts, width)
    assert {cell.token for cell in layout.cells} == set(range(len(texts)))
    for start, end in layout.lines:
        assert sum(cell.width for cell in layout.cells[start:end]) <= width
    assert [cell for start, end in layout.lines for cell in layout.cells[start:end]] == layout.cells
    for cell in layout.cells:
        assert cell.text == clean(cell.text).replace("\n", "").replace("\t", "") and cell_len(cell.text) == cell.width


@given(TEXTS, st.integers(4, 40), st.integers(4, 40))
@settings(max_examples=60, deadline=None)
def test_growing_and_another_width_come_to_the_same_lines(texts, width, before) -> None:
    grown = TextLayout(before)
    for text in texts:
        grown.extend([text])
    grown.reflow(width)
    again = laid(texts[:7], width)
    again.extend(texts[7:])
    assert grown.lines == laid(texts, width).lines == again.lines


def test_lines_break_after_spaces_where_there_are_any() -> None:
    layout = laid(list("the gate is barred"), 12)
    shown = ["".join(cell.text for cell in layout.cells[slice(*line)]) for line in layout.lines]
    assert shown == ["the gate is ", "barred"]


def test_a_place_finds_its_token_and_a_token_its_place() -> None:
    layout = laid(list("ab\n门c d"), 20)
    assert [layout.token_at(layout.line_of(i), layout.column_of(i)) for i in range(7)] == list(range(7))
    assert layout.token_at(1, 1) == 3 and layout.token_at(1, 99) == 6 and layout.token_at(9, 0) is None


def test_marks_join_their_token_and_stand_alone_visibly() -> None:
    assert [cell.text for cell in token_cells(0, "e\u0301")] == ["e\u0301"]
    assert [cell.text for cell in token_cells(0, "\u0301")] == ["◌\u0301"]
    assert [cell.text for cell in token_cells(0, "\u200d")] == ["·"]
    assert [cell.text for cell in token_cells(0, "\x1b")] == ["·"]
