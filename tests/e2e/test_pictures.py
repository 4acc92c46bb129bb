"""The pictures of the front page and of docs/ are there, described and not blank; the moving one plays.

Whether they show today's words is asked for a release, by `test_pictures_of_a_release.py`.
"""

import hashlib
import io
import re
from collections import Counter

import pytest
import resvg_py
from matplotlib import get_data_path, image
from textual.app import App

from tests.catalogue import ROOT
from tests.e2e.drawn_pictures import DOCS, SCREENS, frames, outdated, size, tree
from tests.tui_transformer.draw_pictures import SESSION, SESSION_SIZE, SIZE, STILL
from tests.tui_transformer.moving_picture import CELL, EDGE, LINE, SVG, TITLE, at_frame
from tui_transformer.studio.shared.keys import PANE_BINDINGS

FRONT_PAGES = [ROOT / "README.md", ROOT / "README.zh-CN.md"]
PAGES = [*FRONT_PAGES, *sorted(DOCS.rglob("*.md"))]
PICTURE = re.compile(r"!\[([^]]*)\]\(([^)\s]+)\)")
KEYFRAME = re.compile(r"([\d.]+)%\{transform:translateX\((-?\d+)px\)\}")
SOMEBODYS = re.compile(r"/(?:home|root|tmp|var|mnt|Users)/|\b[A-Z]:\\")  # a path on the machine that drew it


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


def test_no_picture_is_kept_twice() -> None:
    pictures = [path for kind in ("svg", "png") for path in DOCS.rglob(f"*.{kind}")]
    times = Counter(hashlib.sha256(path.read_bytes()).hexdigest() for path in pictures)
    assert len(pictures) > 10 and set(times.values()) == {1}


def test_no_picture_or_report_shows_a_path_of_the_machine_that_made_it() -> None:
    for path in [*DOCS.rglob("*.svg"), *DOCS.glob("report-*/*/report.md")]:
        assert not SOMEBODYS.search(path.read_text(encoding="utf-8")), path


def test_a_key_that_no_pane_has_today_is_found_in_the_bottom_row() -> None:
    """Which a release asks of every picture."""
    app = App[None]()
    foot = "  ".join(f"{app.get_key_display(key)} {key.description}" for key in PANE_BINDINGS["design"] if key.show)
    assert outdated(f"{foot} ▏^p palette", ["design"]) == ""
    assert outdated(f"{foot}  z no such thing ▏^p palette", ["design"]) == "z no such thing"


# The moving picture


def test_the_session_goes_through_all_panes_and_its_training_goes_on() -> None:
    screens = ["\n".join(lines) for lines in frames("session")]
    assert "A studio for Transformers" in screens[0]
    order = [pane for pane in map(pane_of, frames("session")) if pane]
    assert list(dict.fromkeys(order)) == ["design", "train", "compare", "playground"]
    shares = [int(share) for screen in screens for share in re.findall(r"[━╸─]  (\d+)%", screen)]
    assert len(shares) > 5 and shares == sorted(shares) and shares[-1] == 100
    assert any("worse" in screen and "±" in screen for screen in screens)


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


def pane_of(lines: list[str]) -> str:
    """The pane of a screen, by a title that only it has; "" behind a dialog."""
    text = "\n".join(lines)
    marks = {"design": "Network and cost", "train": "─ Runs ", "compare": "verdict", "playground": "─ Prompt "}
    return next((pane for pane, mark in marks.items() if mark in text), "")
