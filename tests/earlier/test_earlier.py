"""Runs, studies and settings of an earlier version: listed, compared, reported, scored and gone on with as they were.

What is printed must be the same but for what `kept.plain` names. What is computed must be the same to the last bit on
the machine where it was recorded, elsewhere but for rounding.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.earlier import commands
from tests.earlier.asking import ask, environment
from tests.earlier.kept import (
    EXPECTED,
    answers,
    differences,
    ended,
    plain,
    resumed,
    same_end,
    same_machine,
    studio,
    study_gone_on_with,
    take_out,
)

SOON = "stopped"  # of those that were ended half-way
END = "\x1b[F"  # the key
ENDS: dict[str, Any] = json.loads((EXPECTED / "resumed.json").read_text(encoding="utf-8"))


@pytest.fixture
def kept(tmp_path) -> Path:
    """A folder with all of it, to work in."""
    return take_out(tmp_path)


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    """Where generated corpora are kept."""
    return tmp_path_factory.mktemp("cache")


def require_same_ends(found: dict[str, Any]) -> None:
    """Of runs that were gone on with: as the version did that wrote them."""
    for run, end in found.items():
        assert same_end(end, ENDS[run], exact=same_machine()), f"{run}: {end}\ninstead of {ENDS[run]}"


def test_what_is_listed_and_compared_is_what_it_was(kept: Path, cache: Path) -> None:
    wrong = differences(answers(commands.LISTS, kept, cache), "lists", exact=True)
    assert not wrong, wrong


@pytest.mark.parametrize("names", [("report-stages",), pytest.param((), marks=pytest.mark.slow)], ids=["one", "others"])
def test_reports_are_what_they_were(names: tuple[str, ...], kept: Path, cache: Path) -> None:
    asked = {name: words for name, words in commands.REPORTS.items() if name in names or not names}
    wrong = differences(answers(asked, kept, cache), "reports", exact=True)
    assert not wrong, wrong


def test_scores_and_exports_are_what_they_were_and_a_run_goes_on_to_the_same_end(kept: Path, cache: Path) -> None:
    """In one process: most of the time goes by until the first command can compute."""
    found = answers(commands.GROUPS["scores"], kept, cache, [SOON])
    wrong = differences(found, "scores", exact=same_machine())
    assert not wrong, wrong
    require_same_ends({SOON: ended(kept / "runs" / SOON)})


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("\nlr = ", "\nlr = 1", "learning rate at step "),
        ("\nsteps = ", "\nsteps = 1", "train.steps was "),
        ("\nd_ff = ", "\nd_ff = 1", "weights of another model: "),
        ("\n", "\n", ""),
    ],
)
def test_a_run_without_recorded_settings_refuses_contradicted_ones_and_warns_of_the_rest(
    was: str, now: str, said: str, kept: Path, cache: Path
) -> None:
    config = kept / "runs" / SOON / "config.toml"
    config.write_text(config.read_text().replace(was, now, 1))
    metrics = (kept / "runs" / SOON / "metrics.jsonl").read_bytes()
    [answer] = ask([("resume", SOON, *commands.CPU)], kept, cache)
    if said:
        assert answer.code == 2 and said in answer.err and len(answer.err.strip().splitlines()) == 1
        assert (kept / "runs" / SOON / "metrics.jsonl").read_bytes() == metrics
        return
    unknown = "config.toml: an earlier version saved no settings: only edits to "
    assert answer.code == 0 and unknown in answer.err
    assert unknown in (kept / "runs" / SOON / "events.jsonl").read_text()
    require_same_ends({SOON: ended(kept / "runs" / SOON)})


@pytest.mark.slow
@pytest.mark.parametrize("group", ["more-scores", "plans"])
def test_what_else_is_computed_again_is_what_it_was(group: str, kept: Path, cache: Path) -> None:
    found = answers(commands.GROUPS[group], kept, cache)
    wrong = differences(found, group, exact=same_machine())
    assert not wrong, wrong


@pytest.mark.slow
def test_every_run_that_was_ended_goes_on_to_the_same_end(kept: Path, cache: Path) -> None:
    found = resumed(commands.HALF_WAY, kept, cache)
    assert found.keys() == set(commands.HALF_WAY)
    require_same_ends(found)


@pytest.mark.slow
def test_a_study_that_was_stopped_goes_on_to_the_same_end(kept: Path, cache: Path) -> None:
    found = study_gone_on_with(kept, cache)
    assert found.keys() == {run for run in ENDS if run.startswith("stages.")} and len(found) == 6
    require_same_ends(found)


def test_a_difference_is_seen(kept: Path, cache: Path) -> None:
    """The tests above see a lost note, a changed score and another weight."""
    (kept / "runs" / "plain" / "summary.json").write_text("{}", encoding="utf-8")
    [answer] = ask([("note", "another-name", "another note")], kept, cache)
    assert answer.code == 0
    listed = {name: commands.LISTS[name] for name in ("runs", "note", "runs-others")}
    wrong = differences(answers(listed, kept, cache), "lists", exact=True)
    assert "--- runs, earlier" in wrong and "--- note, earlier" in wrong and "runs-others" not in wrong
    one, other = ENDS["stopped"], dict(ENDS["stopped"]) | {"weights": "0" * 64}
    assert same_end(one, one, exact=True) and not same_end(other, one, exact=True)
    assert plain(f"{kept}/runs", kept) == "HERE/runs"


@pytest.mark.slow
def test_the_studio_reads_its_settings_and_ones_own_presets_and_studies(kept: Path, cache: Path) -> None:
    """As it wrote them: no welcome, Train on the key 8, and both under one's own."""
    (kept / "none").mkdir()
    screen = studio(kept, environment(kept / "home", cache), "--runs-dir", str(kept / "none"))
    try:
        assert "A studio for Transformers" not in screen.until("1 Design", "demo")
        screen.press("/", *"my-preset")
        screen.until("▸ my-preset", "your own")
        screen.press("enter", "v")
        screen.until("a study of my-preset")
        screen.press("L")
        screen.until("Use the variants of which study?")
        screen.press(END)
        screen.until("my-study", "your own")
        screen.press("escape")
        screen.until_gone("my-study")
        screen.press("escape")
        screen.until_gone("a study of my-preset")
        screen.press("8")
        screen.until_gone("▸ my-preset")
        screen.press("ctrl+q")
        assert screen.end() == 0
    finally:
        screen.close()
    settings = (kept / "home" / "config" / "tui-transformer" / "settings.toml").read_text(encoding="utf-8")
    assert 'theme = "studio-colour-blind"' in settings and 'train = "8"' in settings and 'on_quit = "stop"' in settings


@pytest.mark.slow
def test_the_studio_shows_the_runs_and_the_study(kept: Path, cache: Path) -> None:
    screen = studio(kept, environment(kept / "home", cache), "--runs-dir", str(kept / "runs"))
    try:
        screen.until("1 Design")
        screen.press("8")
        screen.until("another-name", "masked-killed", "lost", "translated")
        screen.press("3")
        screen.until("questions", "plain")
        screen.press("4")
        screen.until("Prompt · translated", "@best")
        screen.press("ctrl+q")
        assert screen.end() == 0
    finally:
        screen.close()
