"""What a studio shows, as text with styles, held against a file that a person can read.

A module of tests has one file, `screens/NAME.txt` beside it, with a section for each picture: lines of text, each after
a `|`, and under a line, where its style is not the usual one, a line of letters. The top of the file says which style a
letter stands for. A style keeps its letter, so that a change of one word changes one line.

`pytest --update-screens TESTS` writes the pictures of the tests that it runs.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from filelock import FileLock
from rich.cells import cell_len
from rich.color import Color
from rich.style import Style
from textual.app import App
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widget import Widget

from tests.rerun_hint import rerun_command
from tests.tui_transformer.studio.at_rest import Step, rest, take
from tests.tui_transformer.studio.layout_faults import faults, seen_widgets
from tui_transformer.studio.app import PANE_NAMES, Studio
from tui_transformer.studio.themes import THEMES

SMALL, MEDIUM, LARGE = (80, 24), (120, 36), (200, 50)
Size = tuple[int, int]
SIZES = [
    pytest.param(SMALL, id="80x24"),
    pytest.param(MEDIUM, id="120x36", marks=pytest.mark.slow),
    pytest.param(LARGE, id="200x50", marks=pytest.mark.slow),
]
LETTERS = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ"
    "абвгдежзийклмнопрстуфхцчшщъыьэюяБГДЖЗИЙЛПФЦЧШЩЪЫЬЭЮЯ"
)
# How lines begin: a section, its usual style, its text, its other styles, another theme's.
HEAD, USUAL, TEXT, STYLES, OTHER = "== ", "without a letter: ", "|", " ", ">"


class Span(NamedTuple):
    """Cells beside each other that look alike: all blank, or none."""

    text: str
    style: str


Picture = list[list[Span]]  # the lines of a region


def pictured(app: App[Any], region: Region) -> Picture:
    strips = app.screen._compositor.render_strips()[region.y : region.bottom]
    return [
        [
            Span(part, look(segment.style, blank=part.isspace()))
            for segment in strip.crop(region.x, region.right)
            if not segment.control
            for part in re.findall(" +|[^ ]+", segment.text)
        ]
        for strip in strips
    ]


def look(style: Style | None, *, blank: bool) -> str:
    """A style in words. Of a blank cell only the ground is seen, and lines."""
    style = style or Style()
    front, ground = _hex(style.color), _hex(style.bgcolor)
    if style.reverse:
        front, ground = ground, front
    seen = ("underline", "strike") if blank else ("bold", "dim", "italic", "underline", "strike", "blink")
    return " ".join([*([] if blank else [front]), "on", ground, *(mark for mark in seen if getattr(style, mark))])


def _hex(colour: Color | None) -> str:
    return "default" if colour is None or colour.is_default else colour.get_truecolor().hex


@dataclass
class ScreenFile:
    """A file of pictures.

    Attributes:
        letters: of styles, as words.
        sections: the lines of each picture by its name.
    """

    path: Path
    letters: dict[str, str] = field(default_factory=dict)
    sections: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "ScreenFile":
        found = cls(path)
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        section: list[str] = []
        for line in lines:
            if line.startswith(HEAD):
                section = found.sections[line.removeprefix(HEAD)] = []
            elif found.sections:
                section += [line] if line else []
            elif "on " in line[3:]:
                found.letters[line[3:]] = line[0]
        return found

    def write(self) -> None:
        used = {letter for lines in self.sections.values() for line in lines for letter in _letters_of(line)}
        self.letters = {style: letter for style, letter in self.letters.items() if letter in used}
        legend = sorted((LETTERS.find(letter), f"{letter}  {style}") for style, letter in self.letters.items())
        parts = ["\n".join(line for _, line in legend)]
        parts += ["\n".join([HEAD + name, *lines]) for name, lines in sorted(self.sections.items())]
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")

    def drawn(self, picture: Picture, before: Sequence[str] = ()) -> list[str]:
        """The lines of a section with the styles under them; where there is no letter, cells have its usual style.

        That is the one that it had `before`, if it is still there, so that the lines are the same.
        """
        known = {letter: style for style, letter in self.letters.items()}
        usual = next((known.get(line[len(USUAL) :]) for line in before if line.startswith(USUAL)), None)
        if usual is None or all(run.style != usual for line in picture for run in line):
            usual = most_common(picture)
        blank = f"on {usual.split()[2]}"
        found = [USUAL + self.letter(usual)]
        for line in picture:
            found.append(TEXT + "".join(run.text for run in line).rstrip())
            letters = (" " if run.style in (usual, blank) else self.letter(run.style) for run in line)
            under = "".join(one * cell_len(run.text) for one, run in zip(letters, line, strict=True)).rstrip()
            found += [STYLES + under] if under else []
        return found

    def letter(self, style: str) -> str:
        """Its letter, or the first that is free."""
        taken = {*self.letters.values()}
        return self.letters.setdefault(style, next(letter for letter in LETTERS if letter not in taken))


def most_common(picture: Picture) -> str:
    """The style that most characters have of those on the most common ground."""
    grounds, styles = Counter[str](), Counter[str]()
    for run in (run for line in picture for run in line):
        grounds[run.style.partition("on ")[2].split()[0]] += cell_len(run.text)
        styles[run.style] += 0 if run.text.isspace() else cell_len(run.text)
    (ground, _), *_ = grounds.most_common()
    return next((style for style, n in styles.most_common() if n and f"on {ground}" in style), f"default on {ground}")


def _letters_of(line: str) -> str:
    """The letters of styles in a line of a section."""
    if line.startswith((OTHER, USUAL)):
        return line.removeprefix(OTHER).removeprefix(USUAL)[:1]
    return line[1:] if line.startswith(STYLES) else ""


def text_of(picture: Picture) -> list[str]:
    return [TEXT + "".join(run.text for run in line).rstrip() for line in picture]


def other_theme(file: ScreenFile, usual: Picture, other: Picture) -> list[str]:
    """What each style is in another theme, which shows the same text."""
    assert text_of(usual) == text_of(other)
    found = set()
    for before, after in zip(usual, other, strict=True):
        letters = [file.letter(run.style) for run in before for _ in run.text]
        styles = [run.style for run in after for _ in run.text]
        found |= {*zip(letters, styles, strict=True)}
    return [f"{OTHER}{letter}  {style}" for letter, style in sorted(found)]


class StoredScreens:
    """The stored pictures of one test."""

    def __init__(self, item: pytest.Item) -> None:
        self._item, self._taken = item, set[str]()
        self._update: bool = item.config.getoption("--update-screens")
        self._path = stored_in(item.path)

    async def of(
        self, studio: App[Any], size: Size, *steps: Step, of: Sequence[Any], stored: bool | None = None
    ) -> None:
        """Open a studio, take steps, and hold what it shows against the stored picture; see `shot`."""
        async with studio.run_test(size=size) as pilot:
            await rest(pilot)
            await take(pilot, *steps)
            self.shot(studio, *of, stored=stored)

    def shot(self, app: App[Any], *of: Any, label: str = "", stored: bool | None = None, styles: bool = True) -> None:
        """Hold what is shown now against the stored picture, and look for faults of the layout.

        Args:
            app: an app at rest.
            of: the widgets, or selectors of the widgets, that the picture is of; without any, all.
            label: of a picture, where a test has several.
            stored: by default text and styles are stored at the smallest size, and the places of the widgets at others;
                whether text is at those as well, or nothing.
            styles: whether these are.
        """
        wrong = faults(app)
        assert not wrong, "\n".join(wrong)
        small, region = app.size == SMALL, region_of(app, *of)
        if small or stored:
            picture = pictured(app, region)
            styles = styles and small
            self._hold(label, lambda file, before: file.drawn(picture, before) if styles else text_of(picture))
        elif stored is None:
            self._hold(label, lambda file, before: [TEXT + line for line in places(app, region)])

    async def theme(self, pilot: Pilot[Any], *of: Any) -> None:
        """Hold the theme in use against the stored one: what each style of the usual theme is in it."""
        other = pictured(pilot.app, region_of(pilot.app, *of))
        pilot.app.theme = THEMES[0].name
        await rest(pilot)
        usual = pictured(pilot.app, region_of(pilot.app, *of))
        self._hold("", lambda file, before: other_theme(file, usual, other))

    def _hold(self, label: str, draw: Callable[[ScreenFile, list[str]], list[str]]) -> None:
        name = f"{self._item.name} {label}".rstrip()
        assert name not in self._taken, f"duplicate screen {name}"
        self._taken.add(name)
        if self._update:
            with self._lock:
                file = ScreenFile.read(self._path)
                file.sections[name] = draw(file, file.sections.get(name, []))
                file.write()
            return
        file = ScreenFile.read(self._path)
        before = file.sections.get(name, [])
        known, now = {*file.letters}, draw(file, before)
        if before != now:
            new = [f"{letter}  {style}" for style, letter in file.letters.items() if style not in known]
            lines = unified_diff(before, now, "stored", "shown", n=2, lineterm="")
            told = ["new styles:", *new] if new else []
            pytest.fail("\n".join([f"{name} has changed", *lines, *told, *self._how()]), pytrace=False)

    def _how(self) -> list[str]:
        command = f"{rerun_command(self._item.nodeid)} --update-screens"
        return ["", f"if intended, run `{command}` and review the diff"]

    @property
    def _lock(self) -> FileLock:
        return FileLock(Path(tempfile.gettempdir()) / ("+".join(self._path.parts[1:]) + ".lock"))

    def close(self) -> None:
        """No picture of this test is stored that it does not take."""
        own = re.compile(re.escape(self._item.name) + "( .+)?")
        file = ScreenFile.read(self._path)
        unused = [name for name in file.sections if own.fullmatch(name) and name not in self._taken]
        if unused and self._update:
            with self._lock:
                file = ScreenFile.read(self._path)
                file.sections = {name: lines for name, lines in file.sections.items() if name not in unused}
                file.write()
            return
        assert not unused, f"unused screens in {self._path}: {unused}"


def stored_in(test: Path) -> Path:
    return test.parent / "screens" / f"{test.stem.removeprefix('test_')}.txt"


def module_of(stored: Path) -> Path:
    return stored.parent.parent / f"test_{stored.stem}.py"


def stored_files() -> list[Path]:
    return sorted(Path(__file__).parent.rglob("screens/*.txt"))


def region_of(app: App[Any], *of: Any) -> Region:
    """The least region with all of some widgets; without any, the screen."""
    widgets = [one if isinstance(one, Widget) else app.screen.query_one(one) for one in of]
    return Region.from_union([widget.region for widget in widgets]) if widgets else app.screen.region


def places(app: App[Any], region: Region) -> Iterator[str]:
    """Where the widgets in a region are that have a name."""
    for widget in seen_widgets(app):
        if widget.id and region.contains_region(widget.region):
            x, y, width, height = widget.region
            yield f"#{widget.id:<17} {x:>3},{y:<3} {width:>3} × {height}"


def unused_sections(file: Path, tests: Iterable[str]) -> list[str]:
    """The pictures of a file that no test has."""
    tests = {*tests}
    return [
        name for name in ScreenFile.read(file).sections if not any(name == t or name.startswith(f"{t} ") for t in tests)
    ]


def studio(*panes: str) -> Studio:
    """A studio with some panes, the first of which is shown."""
    return Studio(runs_dir=Path("runs"), device="cpu", panes=panes or PANE_NAMES)
