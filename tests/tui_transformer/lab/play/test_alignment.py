"""The alignment's picture is read back: each cell is its weight's shade, and it fits the room there is."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from tui_transformer.lab.play.alignment import alignment_picture, merge_into_words
from tui_transformer.lab.play.pictures import SHADES, grey

SOURCE = ["Can", "you", "see", "the", "old", "railway", "station", "over", "there", "?"]
TARGET = ["Kannst", "du", "den", "alten", "Bahnhof", "dort", "drüben", "sehen", "?"]
LOOKED_AT = [0, 1, 3, 4, 6, 8, 7, 2, 9]
WEIGHTS = [[0.8 if s == at else 0.2 if s == at + 1 else 0.0 for s in range(10)] for at in LOOKED_AT]
ODD = ["我", "看见火车站", "👩‍💻", "❤️", "", " ", "é" * 12, "\x1b[31mred\x1b[0m", "\u202eא", "tab\tnew\nline"]


def draw(width: int, colour: bool = False) -> list[str]:
    return alignment_picture(SOURCE, TARGET, WEIGHTS, width, colour).plain.splitlines()


def test_words_stand_above_their_columns_where_there_is_room() -> None:
    caption, head, *rows = draw(80)
    assert caption == "rows: output, columns: source, 0 ░▒▓█ 0.80"
    assert head.split() == SOURCE and [row.split(" │")[0].strip() for row in rows] == TARGET
    for row, at in zip(rows, LOOKED_AT, strict=True):
        start = head.index(SOURCE[at], 0 if at < 9 else len(head) - 1)
        assert row.index("█") == start and row.count("█") == max(2, len(SOURCE[at]))


def test_words_stand_upright_where_they_do_not_fit_across() -> None:
    lines = draw(44)
    rows = [line.split("│")[1].ljust(20) for line in lines if "│" in line]
    head = [line[len("Bahnhof │") :].ljust(20) for line in lines[1 : len(lines) - len(TARGET)]]
    upright = ["".join(line[2 * s] for line in head).strip() for s in range(10)]
    assert upright == SOURCE and len(rows) == len(TARGET)
    assert all(head[-1][2 * s] != " " for s in range(10))
    for row, at in zip(rows, LOOKED_AT, strict=True):
        assert row[2 * at : 2 * at + 2] == "██"


def test_odd_words_are_cut_shown_and_measured() -> None:
    """A blank has a sign, wide characters two columns; a joined emoji, which terminals measure unalike, is parted."""
    weights = [[1.0, 1.0, 1.0, 1.0]]
    drawn = alignment_picture(["我", " ", "👩‍💻", "e\u0301t\x1b[1m"], ["x" * 40], weights, 80, False).plain
    assert drawn.splitlines()[1:] == [
        " " * 18 + "我 ␣  👩💻 e\u0301t[1m",
        "xxxxxxxxxxxxxxx… │██ ██ ████ █████",
    ]
    upright = alignment_picture(["我看", "ab", "abcdefghijk"] * 4, ["x"], [[1.0] * 12], 30, False).plain.splitlines()
    assert upright[2:5] == [
        "   " + "    a " * 3 + "    a",
        "   " + "    b " * 3 + "    b",
        "   " + "    c " * 3 + "    c",
    ]
    assert upright[-2] == "   " + "看b ⋮ " * 3 + "看b ⋮" and upright[-1] == "x │" + "██" * 12


def test_a_list_says_where_words_came_from_where_no_matrix_fits() -> None:
    first, *rest = draw(28)
    assert first == "output → attends most to" and rest[4].strip() == "Bahnhof → station (0.80)"
    assert [line.split()[0] for line in rest] == TARGET


@pytest.mark.parametrize("value, shade", [(0.0, " "), (0.1, " "), (0.25, "░"), (0.5, "▒"), (0.7, "▓"), (1.0, "█")])
def test_shades_are_shares_of_the_largest_weight(value: float, shade: str) -> None:
    lines = alignment_picture(["ab", "cd"], ["x"], [[value * 0.4, 0.4]], 80, False).plain.splitlines()
    assert lines[-1] == f"x │{shade * 2} ██" and SHADES[-1] == "█"


def test_colour_draws_the_same_in_greys() -> None:
    picture = alignment_picture(["ab", "cd"], ["x"], [[0.1, 0.4]], 80, True)
    *_, first, second = [span for span in picture.spans if picture.plain[span.start : span.end] == "██"]
    assert [Style.parse(str(span.style)) for span in (first, second)] == [Style.parse(grey(s)) for s in (0.25, 1.0)]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(ODD) | st.text(max_size=9), min_size=1, max_size=20),
    st.lists(st.sampled_from(ODD) | st.text(max_size=9), min_size=1, max_size=5),
    st.integers(14, 130),
    st.booleans(),
)
def test_any_words_fit_any_width_and_command_no_terminal(source, target, width: int, colour: bool) -> None:
    weights = [[1.0 / len(source)] * len(source) for _ in target]
    lines = alignment_picture(source, target, weights, width, colour).plain.split("\n")
    assert all(cell_len(line) <= width for line in lines)
    assert not any(ord(sign) < 32 or 0x7F <= ord(sign) < 0xA0 or sign in "\u202e\u2028" for sign in "".join(lines))
    bars = [cell_len(line[: line.index(" │")]) for line in lines if " │" in line]
    assert len(set(bars)) <= 1 or any("│" in word for word in (*source, *target))


def test_numbers_that_are_none_are_drawn_as_nothing() -> None:
    lines = alignment_picture(["ab", "cd"], ["x", "y"], [[math.nan, math.inf], [-1.0, 0.0]], 80, False).plain
    assert "█" not in lines.split("\n", 1)[1]
    assert alignment_picture(["a"], ["b"], [[math.nan]], 5, False).plain


@pytest.mark.parametrize("source, target", [([], ["a"]), (["a"], []), ([], [])])
def test_nothing_written_is_said(source: list[str], target: list[str]) -> None:
    said = alignment_picture(source, target, [[] for _ in target], 80, False).plain
    assert said == "nothing was written, so there is nothing to align"


def test_pieces_of_a_word_are_joined_and_a_sources_weights_summed() -> None:
    source, target, weights = merge_into_words(
        ["I", " s", "ee", " d", "og", ".", "■"],
        ["Hu", "nd", "."],
        [[0.1, 0.1, 0.1, 0.3, 0.4, 0.0, 0.0], [0.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]],
    )
    assert (source, target) == (["I", " see", " dog", ".", "■"], ["Hund", "."])
    assert weights[0] == pytest.approx([0.05, 0.1, 0.85, 0.0, 0.0]) and weights[1] == pytest.approx([0, 0, 0, 1, 0])
