"""README.md and docs/ are correct: every command exists, every link leads somewhere, the front page stays short."""

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.config import presets
from engine.data import hub
from engine.data.known import kind_by_name
from reference.examples import FENCE, PROGRAM, fenced_text, program_commands
from reference.links import OUTSIDE
from reference.pages import PAGES as GENERATED
from tests.tui_transformer.loaded import loaded
from tui_transformer import languages
from tui_transformer.cli.app import program
from tui_transformer.cli.commands import all_examples
from tui_transformer.cli.run.run import Request
from tui_transformer.lab.work.arguments import StudyArgs
from tui_transformer.lab.work.study import shipped_studies

ROOT = Path(__file__).parents[2]
README, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"
FOR_CONTRIBUTORS = [ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CONTRIBUTING", "CHANGELOG", "DECISIONS")]
DOCS = ROOT / "docs"
REPORTS = DOCS / "report-attention"  # written by the program
WRITTEN = sorted(path for path in DOCS.rglob("*.md") if REPORTS not in path.parents)
TRANSLATED = sorted(ROOT.glob("README.*.md"))
PAGES = [README, *TRANSLATED, ROOT / "SECURITY.md", *FOR_CONTRIBUTORS, *WRITTEN]
HOW_TO = [path for path in WRITTEN if path.parent == DOCS / "how-to"]
IN_CHINESE = sorted((DOCS / "zh" / "tutorials").glob("*.md"))
INLINE = re.compile(rf"`{PROGRAM}( [^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
WRITES = re.compile(r"`presets/(?:studies/)?([\w-]+)\.toml`.*\n+```toml$", re.MULTILINE)  # what the reader is told to


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def parsed(line: str) -> tuple[str, dict[str, Any]]:
    """The command's name and its parameters; raises what the command line would."""
    if "-completion" in line:  # it would be installed; `test_bash_completes` has it
        return "", {}
    level, context, words, names = (
        loaded(),
        None,
        languages.apply_language_option(shlex.split(line.partition(" > ")[0])),
        [],
    )
    while True:
        context = level.make_context(level.name or PROGRAM, words, parent=context)
        below = getattr(level, "commands", None)
        words = [*getattr(context, "_protected_args", []), *context.args]
        if below is None or not words:
            return " ".join(names), context.params
        names.append(words[0])
        level, words = below[words[0]], words[1:]


TUTORIALS = [path for path in WRITTEN if path.parent == DOCS / "tutorials"]  # tests/tutorials runs their commands
COMMANDS = [
    pytest.param(page, line, id=f"{name_of(page)}: {line}")
    for page in PAGES
    if page not in TUTORIALS
    for line in program_commands(page)
]
COMMANDS += [pytest.param(README, line, id=f"--help: {line}") for line in all_examples()]


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_every_command_that_is_shown_can_be_typed(page, line) -> None:
    name, given = parsed(line)
    if {given.get("preset"), given.get("study")} & set(WRITES.findall(page.read_text(encoding="utf-8"))):
        return  # the tests of the tutorials write it and run the command
    if name in ("run", "check") and given["preset"] is not None:
        on, overrides, corpus = given["on"], tuple(given["set_"] or ()), given["corpus"]
        Request(given["preset"], None, on, overrides, corpus, given.get("seed")).resolve()
    elif name == "ablate" and not given["list_"] and not str(given["study"]).endswith(".toml"):
        asked = StudyArgs(given["study"], given["preset"], tuple(given["vary"] or ()), given["on"], given["seeds"])
        asked.resolve(Path())
    elif name.startswith("presets") and name != "presets list":
        for preset in (given.get("name"), given.get("first"), given.get("second")):
            assert preset is None or presets.find(preset)
    elif name in ("data show", "data fetch"):
        own = given["name"].endswith(".txt") or hub.parse(given["name"])  # a text of one's own, or from the Hub
        assert kind_by_name(given["name"]) or own


def test_the_pages_show_the_commands_that_people_need() -> None:
    shown = {parsed(line)[0].partition(" ")[0] for page in (README, *HOW_TO) for line in program_commands(page)}
    public = {name for name, one in loaded().commands.items() if not one.hidden}
    assert public <= shown


@pytest.mark.parametrize("page", [README, CHINESE, *HOW_TO], ids=name_of)
def test_a_run_that_is_named_was_trained_before(page) -> None:
    """`compare demo no-pe-demo` comes after the command that trains no-pe-demo, under that name."""
    made = {"last", "demo", "demo-2", *shipped_studies()}  # `make demo` trains the demo
    for line in program_commands(page):
        name, given = parsed(line)
        if name == "run":
            made.add(given["name"] or "-".join(filter(None, (given["preset"], given["on"]))))
        else:
            values = [given.get(key) or [] for key in ("run", "runs", "vs")]
            named = {run for value in values for run in ([value] if isinstance(value, str) else value)}
            assert named <= made, line


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_a_sentence_can_be_typed(page) -> None:
    for line in INLINE.findall(page.read_text(encoding="utf-8")):
        if not re.search(r"[|…\[]|COMMAND|--write$", line):  # a form to fill in
            parsed(line.strip())


def fences(page: Path) -> list[str]:
    return [fence.group() for fence in FENCE.finditer(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", IN_CHINESE, ids=name_of)
def test_a_chinese_tutorial_has_the_code_blocks_of_the_english_one(page) -> None:
    assert fences(page) == fences(DOCS / "tutorials" / page.name)


@cache
def generated() -> dict[Path, str]:
    """The pages that the site makes from the code, where they are on it."""
    return {DOCS / name: make() for name, make in GENERATED.items()}


def text_of(page: Path) -> str:
    return generated()[page] if page in generated() else page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [*PAGES, *(DOCS / name for name in GENERATED)], ids=name_of)
def test_every_link_leads_somewhere(page) -> None:
    for target in LINK.findall(text_of(page)):
        if target.startswith("https://"):
            continue
        path, _, heading = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        assert other.is_file() or (other in generated() and page != README), f"{name_of(page)}: {target}"
        assert not heading or heading in headings(other), f"{name_of(page)}: {target}"


@cache
def headings(page: Path) -> set[str]:
    """As GitHub makes anchors of them; a generated page names its own."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", text_of(page)), re.MULTILINE)
    own = {found[1] for title in titles if (found := re.search(r"\{ #(\S+) \}$", title))}
    return own | {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_can_be_reached_from_the_readme() -> None:
    """In a few clicks."""
    reached, new = set(), {README}
    while new:
        reached |= new
        targets = {
            (page.parent / one.partition("#")[0]).resolve() for page in new for one in LINK.findall(text_of(page))
        }
        new = {page for page in targets if page in {*PAGES, *generated()}} - reached
    assert {*PAGES, *generated()} <= reached


class _Config(yaml.SafeLoader):
    """Tags that name functions are not followed."""


_Config.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


def test_the_navigation_of_the_site_has_every_page_once() -> None:
    def paths(items: Any) -> list[str]:
        if isinstance(items, str):
            return [items]
        return [path for item in (items.values() if isinstance(items, dict) else items) for path in paths(item)]

    listed = paths(yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), _Config)["nav"])
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(listed) == sorted(pages | set(GENERATED) | set(OUTSIDE))


@pytest.mark.parametrize(
    "page", [*FOR_CONTRIBUTORS, *sorted((DOCS / "contributing").glob("*.md"))], ids=lambda page: page.name
)
def test_every_file_that_is_named_exists(page) -> None:
    """`engine/runs/records.py`; a bare `records.py` exists in one of the folders that its line names, or anywhere."""
    rooms = ("engine", "tui_transformer", "reference", "tests", "presets", "docs")
    files = [path for room in rooms for path in (ROOT / room).rglob("*")]
    names = {path.relative_to(ROOT).as_posix() for path in files}
    for named in re.findall(r"`([\w./-]+(?:\.py|\.md|\.toml|/))`", page.read_text(encoding="utf-8")):
        if "NAME" in named or "CODE" in named or named == "config.toml":  # of a language; of a run
            continue
        found = (ROOT / named).exists() or any(f"/{name}".endswith(f"/{named.rstrip('/')}") for name in names)
        assert found, f"{page.name}: {named}"


def test_every_room_is_on_the_map() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = [
        path for parent in ("engine", "tui_transformer/lab") for path in (ROOT / parent).iterdir() if path.is_dir()
    ]
    for room in rooms:
        if room.name != "__pycache__":
            assert f"`{room.relative_to(ROOT).as_posix()}/`" in text, room


def test_every_picture_is_shown_somewhere() -> None:
    shown = {
        (page.parent / target).resolve() for page in PAGES for target in LINK.findall(page.read_text(encoding="utf-8"))
    }
    assert set((ROOT / "docs").glob("*.svg")) <= shown


def test_what_is_made_is_in_the_makefile() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"^make ([\w-]+)", fenced_text(page), re.MULTILINE) + re.findall(r"`make ([\w-]+)`", text)
        assert set(named) <= targets, page.name


@pytest.mark.parametrize("page", [README, CHINESE], ids=lambda page: page.name)
def test_the_front_page_is_short_enough_to_be_read(page) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    assert {"make studio", "make demo", "source .venv/bin/activate"} <= {line.partition("  ")[0] for line in lines}


def test_the_front_page_says_the_same_in_chinese() -> None:
    """The same sections, things to do, commands, links, pictures and figures, in the same order, but for the words."""
    english, chinese = (page.read_text(encoding="utf-8") for page in (README, CHINESE))
    assert outline(english) == outline(chinese)
    assert [bare(line) for line in fenced_text(README).splitlines()] == [
        bare(line) for line in fenced_text(CHINESE).splitlines()
    ]
    assert sorted(INLINE.findall(english)) == sorted(INLINE.findall(chinese))
    _, *links = LINK.findall(chinese)  # all but the one to the other
    assert sorted(LINK.findall(english)[1:]) == sorted(link.replace("docs/zh/", "docs/") for link in links)
    assert re.findall(r"\d+\.\d+|[A-Z]{4,}", english) == re.findall(r"\d+\.\d+|[A-Z]{4,}", chinese)


def test_each_front_page_leads_to_the_other_at_its_top() -> None:
    assert f"[简体中文]({CHINESE.name})" in README.read_text(encoding="utf-8").splitlines()[1]
    assert f"[English]({README.name})" in CHINESE.read_text(encoding="utf-8").splitlines()[1]


def outline(text: str) -> list[str]:
    """Its shape: headings by their level, numbered things, bullets, rows of tables, and pictures by their file."""
    shape = r"^(#+) |^\*\*(\d\.) |^(\*) |^(\|) |^!\[[^]]+\]\(([^)]+)\)$|^(```)"
    return ["".join(part) for part in re.findall(shape, text, re.MULTILINE)]


def bare(line: str) -> str:
    """A line of code without its comment."""
    return line.partition("  #")[0].rstrip()


def test_one_sentence_says_what_it_is() -> None:
    """README, the package, and `--help`."""
    import tomllib

    sentence = README.read_text(encoding="utf-8").split("\n\n")[1]
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert package["project"]["description"] == sentence == program().help
