"""Screens become one picture: what several frames show is drawn once, and nothing moves but frames."""

import io
from xml.etree import ElementTree

import pytest
from rich.console import Console
from rich.text import Text

from tests.tui_transformer.moving_picture import CELL, SVG, Frame, at_frame, picture


def exported(*lines: str, width: int = 24) -> str:
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(Text.from_markup(line, style="#c0c0c0 on #101010"), end="\n", soft_wrap=True)
    return console.export_svg(title="elsewhere")


TWO = [
    Frame(exported("[bold]Train[/]  & more", "loss 2.0  ⠉⠒⠤", "foot"), 1.0, "one"),
    Frame(exported("[bold]Train[/]  & more", "loss 1.0  ⠤⠤⠤", "foot"), 3.0, "two"),
]


def texts(element: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in element.iter(f"{SVG}text")]


def test_a_line_that_two_frames_show_is_drawn_once() -> None:
    root = ElementTree.fromstring(picture(TWO))
    lines = {line.get("id"): texts(line) for line in root.iter(f"{SVG}g") if line.get("id")}
    assert sorted(map(tuple, lines.values())) == [
        ("Train", "& more"),
        ("foot",),
        ("loss 1.0", "⠤⠤⠤"),
        ("loss 2.0", "⠉⠒⠤"),
    ]
    uses = [use.get("href", "")[1:] for use in root.iter(f"{SVG}use")]
    assert len(uses) == 6 and set(uses) == set(lines)


def test_a_frame_is_shown_for_its_share_of_the_time() -> None:
    width = int(picture(TWO).partition('viewBox="0 0 ')[2].split()[0])
    assert f"@keyframes play{{0%{{transform:translateX(0px)}}25%{{transform:translateX({-width}px)}}}}" in picture(TWO)
    assert ".strip{animation:play 4s step-end infinite}" in picture(TWO)


def test_it_can_stand_still_at_any_frame() -> None:
    assert picture(TWO, 1) == at_frame(picture(TWO), 1) != picture(TWO) == at_frame(picture(TWO, 1), 0)


def test_a_single_frame_does_not_move() -> None:
    assert "animation" not in picture(TWO[:1]) and "keyframes" not in picture(TWO[:1])


def test_braille_and_letters_are_as_wide_as_their_cells() -> None:
    """They may come from fonts of different widths: each piece is told where it starts and how wide it is."""
    root = ElementTree.fromstring(picture([Frame(exported("loss 语料 ⠉⠒", "", ""), 1.0, "")]))
    pieces = [text for text in root.iter(f"{SVG}text") if text.get("textLength")]
    places = {piece.text: tuple(float(piece.get(name, 0)) for name in ("x", "textLength")) for piece in pieces}
    assert places == {"loss 语料": (0.0, 9 * CELL), "⠉⠒": (10 * CELL, 2 * CELL)}


def test_frames_of_different_sizes_are_refused() -> None:
    with pytest.raises(AssertionError, match="differ in size"):
        picture([*TWO, Frame(exported("a", "b", "c", width=30), 1.0, "")])
