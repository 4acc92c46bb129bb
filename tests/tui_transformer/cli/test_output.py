import io
import math
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from engine.base.clean import clean, clean_line
from tui_transformer.cli import output
from tui_transformer.cli.output import LONGEST, has_colour, print_columns, print_error
from tui_transformer.cli.run import repl
from tui_transformer.cli.run.repl import run_prompt
from tui_transformer.cli.run.translate import TranslationSession
from tui_transformer.lab.analysis.charts.canvas import ChartLine, decimate, line_chart
from tui_transformer.lab.formatting import count, duration, memory, si_number, sparkline
from tui_transformer.lab.play.prompt import ASKING, TRANSLATING, WRITING


@given(st.text())
def test_no_control_character_passes_the_door(text: str) -> None:
    for c in clean(text):
        assert c in "\t\n" or not (ord(c) < 32 or 0x7F <= ord(c) < 0xA0)
    assert "\n" not in clean_line(text)


def test_readable_text_passes_unchanged() -> None:
    text = "Grüße, 世界 🎭 [bold]not markup[/bold]\n\tnext"
    assert clean(text) == text


@pytest.mark.parametrize(
    "poison", ["\x1b[2J", "\x9b2J", "\x1b]0;x\x07", "\u202e", "\u2066", "\ud800", "\r", "\x08", "\x7f"]
)
def test_poison_is_taken_out(poison: str) -> None:
    assert clean(f"a{poison}b") == "a" + clean(poison) + "b"
    assert not any(ord(c) < 32 or ord(c) in (0x7F, 0x9B, 0x202E, 0x2066, 0xD800) for c in clean(poison))


def test_a_name_that_is_no_utf8_is_seen() -> None:
    assert clean_line(os.fsdecode(b"\xff\xfe")) == "\ufffd\ufffd"


@pytest.mark.parametrize(
    ("system", "refused", "colour"), [("truecolor", False, True), ("truecolor", True, False), (None, False, False)]
)
def test_pictures_are_in_colour_where_the_terminal_has_it_and_nobody_refused_it(
    system, refused, colour, monkeypatch
) -> None:
    """Else they are drawn in shades: with NO_COLOR a matrix of greys would be all one."""
    console = Console(force_terminal=system is not None, color_system=system, no_color=refused)
    monkeypatch.setattr(output, "stdout", lambda: console)
    assert has_colour() == colour


def test_what_is_repeated_in_a_complaint_is_cut(capsys) -> None:
    print_error("x" * 100_000)
    said = capsys.readouterr().err
    assert len(said) == LONGEST + 1 and said.endswith("x…\n")


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats()), max_size=500))
def test_thinning_keeps_finite_points_in_order_and_few(points: list[tuple[int, float]]) -> None:
    points = sorted(points, key=lambda p: p[0])
    x, y = decimate([p[0] for p in points], [p[1] for p in points], 20)
    assert len(x) == len(y) <= 42 and all(map(math.isfinite, y)) and x == sorted(x)


def test_thinning_keeps_the_extremes() -> None:
    y = [0.0] * 10_000
    y[5000], y[7000] = 9.0, -9.0
    kept = decimate(range(10_000), y, 50)[1]
    assert max(kept) == 9.0 and min(kept) == -9.0


@pytest.mark.parametrize(
    "y",
    [
        [],
        [math.nan],
        [math.inf, -math.inf],
        [1.0],
        [1.0, 1.0],
        [1e300, -1e300],
        [0.0, math.nan, 2.0],
        list(range(99999)),
    ],
    ids=["none", "nan", "infinite", "one", "flat", "huge", "a hole", "many"],
)
def test_no_series_breaks_the_chart(y: list[float]) -> None:
    chart = line_chart(
        [ChartLine(range(len(y)), y, "cyan", label="a")],
        title="t",
        width=60,
        height=10,
        levels=[("floor", 0.5, "green"), ("nothing", math.nan, "red")],
        colour=False,
    )
    assert "\x1b" not in chart
    assert all(len(line) <= 60 for line in chart.splitlines())


def test_numbers_are_written_for_people() -> None:
    assert (duration(48), duration(725), duration(12000)) == ("0:48", "12:05", "3:20:00")
    assert (si_number(41234, "tok/s"), si_number(3_192_897), si_number(5)) == ("41.2 ktok/s", "3.19 M", "5")
    assert (memory(61e6), memory(2.1e9)) == ("61 MB", "2.1 GB")
    assert (count(0, "step"), count(1, "step"), count(2000, "step")) == ("0 steps", "1 step", "2,000 steps")


ROWS = [("NAME", "WHAT"), ("a", "one two three four five six seven eight nine ten"), ("longer", "\x1b[2Jx")]


def test_columns_stay_whole_lines_in_a_pipe(capsys) -> None:
    print_columns(ROWS)
    out = capsys.readouterr().out
    assert out == "NAME    WHAT\na       one two three four five six seven eight nine ten\nlonger  [2Jx\n"


def test_columns_wrap_between_words_on_a_terminal(capsys, monkeypatch) -> None:
    monkeypatch.setattr("tui_transformer.cli.output.is_terminal", lambda _: True)
    monkeypatch.setenv("COLUMNS", "30")
    print_columns(ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:4] == ["a       one two three four", "        five six seven eight", "        nine ten"]
    assert max(map(len, lines)) <= 30


@pytest.mark.parametrize("table", [WRITING, TRANSLATING, ASKING])
def test_the_help_of_a_prompt_breaks_no_word_on_a_terminal(table, capsys, monkeypatch) -> None:
    monkeypatch.setattr("tui_transformer.cli.output.is_terminal", lambda _: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdin", io.StringIO("/help\n"))
    run_prompt(dict.fromkeys(table.settings, 1), print, {}, table)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(cell_len, lines)) <= 80 and lines[0] == table.other_lines
    assert any(line.startswith(" " * 12) for line in lines) and any(line.startswith("/quit") for line in lines)


@pytest.mark.parametrize(
    ("system", "refused", "colour"), [("truecolor", False, True), ("truecolor", True, False), (None, False, False)]
)
def test_a_translation_is_coloured_by_probability_where_there_is_colour(
    system, refused, colour, capsys, monkeypatch
) -> None:
    console = Console(force_terminal=system is not None, color_system=system, no_color=refused)
    for module in (output, repl):
        monkeypatch.setattr(module, "stdout", lambda: console)
    tokens = [("gut", SimpleNamespace(probability=0.95), ()), ("!", SimpleNamespace(probability=0.001), ())]
    writer = SimpleNamespace(translator=SimpleNamespace(stream=lambda sentence: iter(tokens)))
    TranslationSession(Path(), "cpu", "best", False, writers=[writer], settings={"beam": 1, "nbest": 1}).answer("good!")
    written = capsys.readouterr().out
    assert written == ("gut\x1b[1;4;31m!\x1b[0m\n" if colour else "gut!\n")


def test_a_sparkline_runs_from_the_lowest_bar_to_the_highest() -> None:
    assert sparkline([3.0, 2.0, 1.0]) == "█▅▁" and sparkline([1.0, 1.0]) == "▁▁"


def test_a_wrong_command_is_one_clean_line_that_names_no_hidden_one(capsys) -> None:
    from tui_transformer.__main__ import main

    for wrong, hint in (
        ("pauze", "; did you mean 'pause'?"),
        ("beginn", "; commands: run, ablate, work, resume, queue, pause"),
    ):
        assert main([wrong]) == 2
        assert f"no such command '{wrong}'{hint}" in capsys.readouterr().err
