"""The pictures of the front page and of docs/ are described and show today's screens; the moving one plays."""

import ast
import io
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import resvg_py
from matplotlib import get_data_path, image
from textual.app import App

from tests.tui_transformer.draw_pictures import SESSION, SESSION_SIZE, SIZE, STILL
from tests.tui_transformer.moving_picture import CELL, EDGE, LINE, SVG, TITLE, at_frame
from tui_transformer.lab.reports.languages import language
from tui_transformer.studio.app import PANE_NAMES
from tui_transformer.studio.design.switches import SWITCHES
from tui_transformer.studio.keys import PANES, SPARE
from tui_transformer.studio.playground.lines import PromptLine

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FRONT_PAGES = [ROOT / "README.md", ROOT / "README.zh-CN.md"]
PAGES = [*FRONT_PAGES, *sorted(DOCS.rglob("*.md"))]
PICTURE = re.compile(r"!\[([^]]*)\]\(([^)\s]+)\)")
KEYFRAME = re.compile(r"([\d.]+)%\{transform:translateX\((-?\d+)px\)\}")
SCREENS = {name: name for name in PANE_NAMES} | {"variants": "compare"}  # the pane that a picture shows
WORDS: dict[str, dict[str, list[str]]] = {  # a picture's, by the file of tui_transformer that says them
    "design": {
        "studio/design/pane.py": ["Presets", "Settings", "Network and cost"],
        "studio/design/preset_list.py": ["one change each", "course reports"],
        "studio/design/launch_line.py": [" for model and activations", " on disk", "rename"],
    },
    "train": {
        "studio/train/pane.py": ["Charts", "changed from the defaults"],
        "studio/train/run_charts.py": ["floor: the best possible"],
        "studio/train/run_header.py": ["process memory", "step {step:,} / {steps:,}"],
        "studio/shared/run_states.py": [
            "next: w write with it · 3 compare it · {again}",
            "best validation loss {loss:.4g} at step {step:,}",
            "{loss:.3f} above the floor",
        ],
    },
    "compare": {
        "studio/compare/pane.py": ["Charts"],
        "lab/charts/forest.py": ["○ difference with one seed: no interval"],
        "lab/charts/overlay.py": ["one seed, no interval: {single}"],
        "lab/analysis/phrases/en.toml": [
            "One seed proves nothing: the difference between {names} and {baseline} may be luck. "
            "Train 3 to 5 seeds of each.",
        ],
    },
    "variants": {
        "studio/compare/pane.py": ["Charts"],
        "lab/charts/forest.py": [
            "●○ mean difference over shared seeds · ━ its 95 % interval",
            " · ● better or worse, ○ neither",
        ],
        "lab/analysis/phrases/en.toml": ["These seeds are enough to tell."],
    },
    "playground": {
        "studio/playground/pane.py": ["Settings", "Alternatives", "Prompt"],
        "studio/playground/column.py": ["{n:,} tokens in {seconds:.1f} s, step {step:,}, seed {settings}"],
        "studio/playground/likeliest.py": ["!: next surprising token", "   sampled at {number}"],
        "studio/playground/lines.py": [
            "↑ recalls them",
            "enter: write · /: commands · ↑: earlier prompts · esc: leave",
        ],
        "lab/play/writers.py": ["type some text to continue"],
    },
    "session": {
        "studio/app.py": ["A studio for Transformers"],
        "studio/train/run_charts.py": ["floor: the best possible"],
        "studio/shared/run_states.py": ["{loss:.3f} above the floor"],
        "lab/analysis/phrases/en.toml": ["These seeds are enough to tell."],
        "lab/play/writers.py": ["type some text to continue"],
        "studio/playground/likeliest.py": ["!: next surprising token", "   sampled at {number}"],
    },
}


# Pages and pictures


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_picture_is_there_and_is_described(page) -> None:
    for words, target in PICTURE.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).is_file(), target
        assert len(words.encode()) >= 40, f"{target}: {words!r} does not say what it shows"


@pytest.mark.parametrize("page", FRONT_PAGES, ids=lambda page: page.name)
def test_the_front_page_shows_a_session_and_one_picture_of_each_thing_to_do(page) -> None:
    before, *things = re.split(r"^\*\*\d\. ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [target for _, target in PICTURE.findall(before)] == ["docs/session.svg"]
    assert [len(PICTURE.findall(thing)) for thing in things] == [1] * 5


# Today's words


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
    said = language("en").phrases
    for key in ("figure.distance", "figure.reach", "figure.chance"):
        assert f">{said[key]}<" in words, key


# The moving picture


def test_the_session_goes_through_all_panes_and_its_training_goes_on() -> None:
    screens = ["\n".join(lines) for lines in frames("session")]
    assert "A studio for Transformers" in screens[0]
    order = [pane for pane in map(pane_of, frames("session")) if pane]
    assert list(dict.fromkeys(order)) == ["design", "train", "compare", "playground"]
    shares = [int(share) for screen in screens for share in re.findall(r"[━╸─]  (\d+)%", screen)]
    assert len(shares) > 5 and shares == sorted(shares) and shares[-1] == 100
    assert any("worse" in screen and "±" in screen for screen in screens)


def test_the_session_shows_the_keys_and_captions_of_today() -> None:
    for lines in frames("session")[1:]:
        assert lines[0].replace("alt+", "").split() == tabs()  # so while a prompt is typed
        assert outdated(lines[-1], PANES) == ""
    captions = [text.text for text in tree("session").iter(f"{SVG}text") if text.get("class") == "title"]
    assert captions == [shot.caption for shot in SESSION], "the script has changed: redraw the picture"


def test_the_session_is_small_and_needs_nothing_from_elsewhere() -> None:
    drawn = (DOCS / "session.svg").read_text(encoding="utf-8")
    assert len(drawn.encode()) < 1_500_000
    assert drawn.count("http") == 1 and 'xmlns="http://www.w3.org/2000/svg"' in drawn
    assert not re.search(r"<script|@import|@font-face|url\(|<image|<foreignObject|\son\w+=", drawn)
    assert all((use.get("href") or "").startswith("#") for use in tree("session").iter(f"{SVG}use"))


def test_every_frame_of_the_session_has_its_share_of_the_time() -> None:
    drawn = (DOCS / "session.svg").read_text(encoding="utf-8")
    width, height = size("session")
    assert 10 <= len(frames("session")) == len(SESSION) <= 24
    assert (width, height) == (round(SESSION_SIZE[0] * CELL) + 2 * EDGE, round(SESSION_SIZE[1] * LINE) + TITLE + EDGE)
    starts, moves = zip(*((float(at), int(by)) for at, by in KEYFRAME.findall(drawn)), strict=True)
    assert list(moves) == [-number * width for number in range(len(SESSION))]
    seconds = float(re.findall(r"animation:play ([\d.]+)s step-end infinite", drawn)[0])
    assert seconds == pytest.approx(sum(shot.seconds for shot in SESSION))
    shares = [after - before for before, after in zip(starts, [*starts[1:], 100.0], strict=True)]
    assert sum(shares) == pytest.approx(100.0) and starts[0] == 0.0
    for shot, share in zip(SESSION, shares, strict=True):
        assert share * seconds / 100 == pytest.approx(shot.seconds, abs=0.01), shot.caption


def test_the_session_stands_still_at_its_answer_for_who_wants_less_motion() -> None:
    drawn = (DOCS / "session.svg").read_text(encoding="utf-8")
    still = next(number for number, shot in enumerate(SESSION) if shot.caption.startswith(STILL))
    assert "@media (prefers-reduced-motion:reduce){.strip{animation:none}}" in drawn
    assert drawn == at_frame(drawn, still) != at_frame(drawn, 0)
    assert "worse" in "\n".join(frames("session")[still])


@pytest.mark.parametrize("number", [0, len(SESSION) - 1])
def test_a_frame_of_the_session_is_not_blank(number) -> None:
    """Drawn with a font that comes with matplotlib, as a machine may have none."""
    drawn = at_frame((DOCS / "session.svg").read_text(encoding="utf-8"), number)
    drawn = re.sub(r"font-family:[^;}]*", "font-family:DejaVu Sans Mono", drawn)
    fonts = [f"{get_data_path()}/fonts/ttf/DejaVuSansMono{weight}.ttf" for weight in ("", "-Bold")]
    png = resvg_py.svg_to_bytes(svg_string=drawn, font_files=fonts, skip_system_fonts=True)
    pixels = image.imread(io.BytesIO(bytes(png)))[..., :3]
    assert pixels.shape[:2] == size("session")[::-1]
    background = (abs(pixels - pixels[TITLE // 2, 200]) < 0.02).all(axis=2)
    rows, columns = (~background).any(axis=1), (~background).any(axis=0)
    assert 0.03 < 1 - background.mean() < 0.97
    assert rows.mean() > 0.8 and columns.mean() > 0.8  # something stands nearly everywhere


def test_pictures_of_panes_have_the_size_they_are_drawn_at() -> None:
    for name in SCREENS:
        assert size(name) == (round(SIZE[0] * CELL) + 2 * EDGE, round(SIZE[1] * LINE) + TITLE + EDGE), name


# Reading them


@cache
def tree(name: str) -> ElementTree.Element:
    return ElementTree.fromstring((DOCS / f"{name}.svg").read_text(encoding="utf-8"))


def size(name: str) -> tuple[int, int]:
    _, _, width, height = (tree(name).get("viewBox") or "").split()
    return int(width), int(height)


@cache
def frames(name: str) -> list[list[str]]:
    """Of each frame of docs/NAME.svg the lines of the screen, as text."""
    drawn = {line.get("id"): line for line in tree(name).iter(f"{SVG}g") if line.get("id")}
    strip = next(group for group in tree(name).iter(f"{SVG}g") if group.get("class") == "strip")
    found = []
    for frame in strip:
        uses = {float(use.get("y", 0)): drawn[(use.get("href") or "")[1:]] for use in frame.iter(f"{SVG}use")}
        found.append([as_text(uses[y]) for y in sorted(uses)])
    return found


def as_text(line: ElementTree.Element) -> str:
    """The texts of a line, where they stand."""
    text = ""
    for piece in sorted(line.iter(f"{SVG}text"), key=lambda piece: float(piece.get("x", 0))):
        text = text.ljust(round(float(piece.get("x", 0)) / CELL)) + (piece.text or "")
    return text


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


def outdated(foot: str, panes: Iterable[str]) -> str:
    """What is left of the line of keys without those that the panes have today; the last one may be cut off."""
    app = App[None]()
    known = [*PromptLine.BINDINGS, *(key for pane in (*panes, "everywhere") for key in PANES[pane])]
    shown = sorted(
        (f"{app.get_key_display(key)} {key.description}" for key in known if key.show or key.id in SPARE),
        key=len,
        reverse=True,
    )
    rest, _, _ = foot.partition("▏")
    while (rest := rest.strip()) and (key := next((key for key in shown if rest.startswith(key)), "")):
        rest = rest.removeprefix(key)
    return "" if any(key.startswith(rest) for key in shown) else rest


def pane_of(lines: list[str]) -> str:
    """The pane of a screen, by a title that only it has; "" behind a dialog."""
    text = "\n".join(lines)
    marks = {"design": "Network and cost", "train": "─ Runs ", "compare": "verdict", "playground": "─ Prompt "}
    return next((pane for pane, mark in marks.items() if mark in text), "")
