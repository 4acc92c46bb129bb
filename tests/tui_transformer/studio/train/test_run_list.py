"""A line of the list: names keep what tells them apart, and the loss is never replaced."""

from dataclasses import replace
from pathlib import Path

import pytest

from tui_transformer.lab.records.run_view import RunRow, StudyPlace
from tui_transformer.lab.records.study_row import StudyRow, visible_rows
from tui_transformer.studio.train.run_list import elide_middle, run_line, study_line


def text(parts: list[tuple[str, str]]) -> str:
    return "".join(text for text, _ in parts)


def run(name: str, state: str = "finished", study: str = "", **more) -> RunRow:
    place = StudyPlace(name=study, variant=name.split(".")[-2], seed=int(name[-1])) if study else StudyPlace()
    return RunRow(Path("runs") / name, state, steps=100, step=more.pop("step", 100), study=place, **more)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("attention.win16.s1", "att…win16.s1"),
        ("a.b.s1", "a.b.s1      "),
        ("a-long-name-of-a-run", "a-l…-of-a-run"[:3] + "…" + "of-a-run"),
        ("漢字漢字.漢字.s10", "漢…字.漢字.s10"[:1] + "…" + ".漢字.s10"),
    ],
)
def test_a_long_name_loses_its_middle(name: str, shown: str) -> None:
    assert elide_middle(name, 12).rstrip() == shown.rstrip() and len(elide_middle("x" * 30, 12)) == 12


def test_no_room_is_no_name() -> None:
    assert elide_middle("attention.win16.s1", 0) == ""


@pytest.mark.parametrize("width", [26, 34, 44])
@pytest.mark.parametrize("badges", [(), ("STILL-FALLING",), ("LEAK",)])
@pytest.mark.parametrize("state", ["running", "finished", "stopped", "failed"])
def test_a_badge_or_a_state_never_replaces_the_loss(width, badges, state) -> None:
    line = text(run_line(run("a-name-of-a-run", state, loss=1.2345, scored=True, badges=badges), width, inside=False))
    assert line.endswith(" 1.234 ") and len(line) == width
    assert not badges or any(sign in line for sign in ("UNDERTRAINED", " ! ", "LEAK", " ✗ "))


def test_a_warning_that_was_seen_is_dimmed_and_gives_way_to_one_that_was_not() -> None:
    both, seen = ("STILL-FALLING", "SUSPICIOUS"), ("STILL-FALLING",)
    parts = run_line(replace(run("a"), badges=both, seen=seen), 44, inside=False)
    assert (" SUSPECT", "warn") in parts
    parts = run_line(replace(run("a"), badges=both, seen=both), 44, inside=False)
    assert (" UNDERTRAINED (seen)", "dim") in parts
    assert (" !", "dim") in run_line(replace(run("a"), badges=both, seen=both), 20, inside=False)


def test_a_study_stands_in_the_list_with_its_progress_and_its_runs_under_it() -> None:
    runs = [run(f"demo-study.{name}.s{seed}", study="demo-study") for name in ("rope", "no-pe") for seed in (1, 2)]
    runs[0] = run("demo-study.rope.s1", "running", "demo-study", step=50)
    study = StudyRow(Path("runs/demo-study.study.toml"), tuple(runs), 8, eta=130.0)
    alone = run("demo")
    rows = [runs[0], alone, *runs[1:]]
    assert visible_rows(rows, [study], ()) == [study, alone]
    assert visible_rows(rows, [study], {study.path}) == [study, *runs, alone]
    assert text(study_line(study, 34, opened=True)) == " ▾ demo-study       3/8 ▰▰▱▱ 2:10 "
    assert text(study_line(study, 26, opened=False)).startswith(" ▸ demo-study")
    away = replace(study, runs=(replace(runs[0], host="node2", device="cpu"), *runs[1:]))
    assert text(study_line(away, 34, opened=True)) == " ▾ demo-study   3/8 1 worker 2:10 "
    assert text(run_line(runs[1], 34, inside=True)).startswith("   ✓ rope.s2 ")
