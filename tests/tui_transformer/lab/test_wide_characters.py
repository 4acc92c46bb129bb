"""Chinese in Rich: lines end between characters, and an SVG's text is as wide as in a terminal."""

import re
from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tui_transformer.lab.wide_characters import break_between_characters, correct_svg_widths


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("网络由哪些层栈组成", 8, ["网络由哪", "些层栈组", "成"]),
        ("困惑度会接近，什么也没有", 12, ["困惑度会接", "近，什么也没", "有"]),  # not before a comma
        ("权重（学到的）共享", 6, ["权重", "（学到", "的）共", "享"]),  # brackets stay at their words
        ("请用 decoder 或 encoder", 12, ["请用 decoder", "或 encoder"]),
        ("plain words, as before", 12, ["plain words,", "as before"]),
    ],
)
def test_lines_end_between_characters(text, width, lines) -> None:
    break_between_characters()
    found = [line.plain for line in Text(text).wrap(Console(file=StringIO()), width)]
    assert [line.rstrip() for line in found] == [line.rstrip() for line in lines]
    assert all(cell_len(line.rstrip()) <= width for line in found)


def test_the_text_of_an_svg_is_as_wide_as_in_a_terminal() -> None:
    console = Console(record=True, width=40, file=StringIO())
    console.print("ab 中文 cd", "损失", "loss", sep="\n")
    svg = console.export_svg(title="")
    lengths = lambda drawn: [float(length) for length in re.findall(r'textLength="([\d.]+)"[^>]*>\S', drawn)]
    (one, two, three), (mixed, chinese, english) = lengths(svg), lengths(correct_svg_widths(svg))
    character = three / len("loss")
    assert (one, two) == (pytest.approx(8 * character, abs=0.2), pytest.approx(2 * character, abs=0.2))
    assert (mixed, chinese) == (pytest.approx(10 * character, abs=0.2), pytest.approx(4 * character, abs=0.2))
    assert english == three
