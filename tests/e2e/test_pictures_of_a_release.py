"""The pictures of docs/ show today's words and keys. That holds for a release: `make pictures` redraws them and asks.

A change of wording in between leaves them as they are.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from engine.base.language import CONTEXT_END
from tests.catalogue import ROOT, messages
from tests.e2e.drawn_pictures import DOCS, SCREENS, frames, outdated, tree
from tests.tui_transformer.draw_pictures import SESSION
from tests.tui_transformer.moving_picture import SVG
from tui_transformer.studio.app import PANE_NAMES
from tui_transformer.studio.design.switches import SWITCHES
from tui_transformer.studio.shared.keys import PANE_BINDINGS

pytestmark = [pytest.mark.slow, pytest.mark.release]

WORDS: dict[str, dict[str, list[str]]] = {  # a picture's, by the file of tui_transformer that says them
    "design": {
        "studio/design/pane.py": ["Presets", "Settings", "Network and cost"],
        "studio/design/preset_list.py": ["one change each", "course reports"],
        "studio/design/launch_line.py": [" for model and activations", " on disk", "rename"],
    },
    "train": {
        "studio/train/pane.py": ["Charts", "changed from the defaults"],
        "studio/train/run_charts.py": ["floor: the best possible"],
        "studio/train/run_header.py": ["process memory"],
        "studio/shared/run_states.py": ["next: w write with it · 3 compare it · {again}"],
        "lab/records/run_lines.py": [
            "step {step:,} / {steps:,}",
            "best validation loss {loss:.4g} at step {step:,}",
            "{loss:.3f} above the floor",
        ],
    },
    "compare": {
        "studio/compare/pane.py": ["Charts"],
        "lab/analysis/charts/forest.py": ["○ difference with one seed: no interval"],
        "lab/analysis/charts/overlay.py": ["one seed, no interval: {single}"],
        "lab/analysis/sentences.py": [
            "One seed proves nothing: the difference between {names} and {baseline} may be luck. "
            "Train 3 to 5 seeds of each.",
        ],
    },
    "variants": {
        "studio/compare/pane.py": ["Charts"],
        "lab/analysis/charts/forest.py": [
            "●○ mean difference over shared seeds · ━ its 95 % interval",
            " · ● better or worse, ○ neither",
        ],
        "lab/analysis/sentences.py": ["These seeds are enough to tell."],
    },
    "playground": {
        "studio/playground/pane.py": ["Settings", "Alternatives", "Prompt"],
        "studio/playground/column.py": ["{n:,} tokens in {seconds:.1f} s, step {step:,}, seed {settings}"],
        "studio/playground/likeliest.py": ["!: next surprising token", "   sampled at {number}"],
        "studio/playground/lines.py": [
            "↑ recalls them",
            "enter: write · /: commands · ↑: earlier prompts · esc: leave",
        ],
        "../engine/config/tasks.py": ["type some text to continue"],
    },
    "session": {
        "studio/app.py": ["A studio for Transformers"],
        "studio/train/run_charts.py": ["floor: the best possible"],
        "lab/records/run_lines.py": ["{loss:.3f} above the floor"],
        "lab/analysis/sentences.py": ["These seeds are enough to tell."],
        "../engine/config/tasks.py": ["type some text to continue"],
        "studio/playground/likeliest.py": ["!: next surprising token", "   sampled at {number}"],
    },
}


@pytest.mark.parametrize("name", SCREENS)
def test_a_picture_of_a_pane_shows_its_tabs_and_keys(name) -> None:
    (lines,) = frames(name)
    assert lines[0].split() == tabs()
    assert outdated(lines[-1], [SCREENS[name]]) == ""


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        pytest.param(name, file, text, id=f"{name}: {text.strip()[:40]}")
        for name, files in WORDS.items()
        for file, texts in files.items()
        for text in texts
    ],
)
def test_a_picture_shows_words_that_the_code_says(name, file, text) -> None:
    assert text.strip() in said(file), f"{file} says it otherwise: write the new words here, then redraw the pictures"
    shown = " ".join(" ".join(line for lines in frames(name) for line in lines).replace("┈", " ").split())
    words = [" ".join(part.split()) for part in re.split(r"\{[^}]*\}", text)]
    assert re.search(r"\s*\S+?.*?\s*".join(map(re.escape, words)), shown), "redraw it: make pictures"


def test_the_picture_of_design_shows_its_switches() -> None:
    (lines,) = frames("design")
    start = lines[1].index("╭", 1)
    shown = {line[start + 1 : start + 16].strip() for line in lines if line[start : start + 1] == "│"}
    always = {one.label.strip() for one in SWITCHES["model"] if one.when is None}
    assert always <= shown, "a switch was renamed or added: redraw the picture"


def test_the_picture_of_recall_has_the_words_of_a_report() -> None:
    words = (DOCS / "recall.svg").read_text(encoding="utf-8")
    file = "tui_transformer/lab/reports/figures/distances.py"
    said = {str(text).rpartition(CONTEXT_END)[2] for where, text in messages() if where == file}
    for text in ("characters back", "reach of a variant", "chance"):
        assert text in said and f">{text}<" in words, text


def test_the_session_shows_the_keys_and_captions_of_today() -> None:
    for lines in frames("session")[1:]:
        assert lines[0].replace("alt+", "").split() == tabs()  # so while a prompt is typed
        assert outdated(lines[-1], PANE_BINDINGS) == ""
    captions = [text.text for text in tree("session").iter(f"{SVG}text") if text.get("class") == "title"]
    assert captions == [shot.caption for shot in SESSION], "the script has changed: redraw the picture"


def tabs() -> list[str]:
    numbered = (f"{number} {pane.capitalize()}" for number, pane in enumerate(PANE_NAMES, 1))
    return ["tui-transformer", *(word for tab in numbered for word in tab.split())]


@cache
def said(file: str) -> set[str]:
    """All texts of a Python or TOML file of the program."""
    text = (ROOT / "tui_transformer" / file).read_text(encoding="utf-8")
    if file.endswith(".toml"):
        return set(flat(tomllib.loads(text)))
    return {str(node.value).strip() for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}


def flat(table: dict[str, Any]) -> Iterator[str]:
    for value in table.values():
        if isinstance(value, dict):
            yield from flat(value)
        elif isinstance(value, str):
            yield value
