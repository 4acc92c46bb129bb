"""Every command over poisoned runs, on a pipe and on a pseudo-terminal: no byte commands it, nothing breaks."""

import ast
import json
import os
import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest

from engine.runs.files import parse_line, read_json
from tests.hostile.forked import Said, said
from tests.hostile.poison import INJECTION, LIVE, POISON, commands_in
from tests.hostile.poisoned_runs import BAD, KINDS, LEAVES, completed, copies, endless, files, leaves, put, read, write
from tests.hostile.test_no_pickle import ON_CPU, quickly
from tests.hostile.test_screens import NAMES, named

QUICK = (
    *(("watch",), ("watch", "--json"), ("compare",), ("compare", "--json"), ("compare", "--all-settings")),
    *(("compare", "--csv"), ("compare", "--markdown"), ("compare", "--latex"), ("compare", "--by", "variant")),
    *(("doctor",), ("doctor", "--json"), ("note",), ("note", "--json"), ("export", "--to", "csv"), ("stop",)),
    *(("export", "--to", "json"), ("runs",), ("runs", "--json"), ("pause", "--json"), ("rename", "last")),
)
WRITTEN = (
    *(("report", "--format", kind) for kind in ("markdown", "html", "latex")),
    *(("report", "--format", kind, "--language", "zh") for kind in ("markdown", "html", "latex")),
    *(("export", "--to", "tensorboard"), ("export", "--to", "huggingface"), ("compare", "--latex-document")),
)
BY_MODEL = (
    *(("evaluate",), ("evaluate", "--json"), ("verify", "--steps", "1"), ("verify", "--json", "--steps", "1")),
    *(("resume",), ("resume", "--json")),
)
PROMPT = POISON.replace("\x00", "").replace("\ud800", "")
ASKED = {
    "text": (("sample", "--prompt", "the", "--length", "5"), ("sample", "--json", "--prompt", PROMPT, "--length", "5")),
    "pairs": (("translate", "--text", PROMPT), ("translate", "--json", "--text", "I see" + PROMPT)),
    "questions": (("evaluate", "--sentences", "5"),),
}
CODE_SPAN = re.compile(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)")  # of Markdown: what stands in it is no HTML
SLOW = pytest.mark.slow
PLACES = [pytest.param(False, id="pipe", marks=SLOW), pytest.param(True, id="terminal")]
OF_FOLDER = {"runs"}  # commands that name no run


def told(root: Path, name: str, words: Sequence[str], out: Path, *, terminal: bool) -> Said:
    """One command about one run."""
    run = [] if words[0] in OF_FOLDER else [name]
    device = ["--device", "cpu"] if words[0] in (*ON_CPU, "translate") else []
    into = ["--out", str(out)] if words in WRITTEN and words[0] != "compare" else []
    return said([words[0], *run, *words[1:], "--runs-dir", str(root), *device, *into], terminal=terminal)


def wrong_with(found: Said) -> Iterator[str]:
    """What a command did that it must not do."""
    if found.code not in (0, 1, 2):
        yield f"exit code {found.code}: {found.text[-1200:]}"
    yield from commands_in(found.output)
    lines = LIVE.sub(b"", found.output).replace(b"\r\n", b"\n").strip().splitlines()
    if found.code == 2 and b"tui-transformer: " not in lines[-1]:  # what is wrong with its scores may come before it
        yield f"no clear line: {found.text[:800]}"


def check(found: Said) -> None:
    assert (found.words[:4], list(wrong_with(found))) == (found.words[:4], [])


@pytest.fixture(scope="module")
def bases(tmp_path_factory) -> dict[str, Path]:
    """One finished run of each kind, made when it is asked for."""
    return Made(tmp_path_factory.mktemp("bases"))


class Made(dict[str, Path]):
    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root = root

    def __missing__(self, kind: str) -> Path:
        self[kind] = completed(KINDS[kind](self._root / kind))
        return self[kind]


# ── every file, every way ──


@pytest.mark.parametrize("terminal", PLACES)
def test_poison_in_every_file_of_a_run_commands_no_terminal(bases, tmp_path, terminal: bool) -> None:
    made = copies(bases["text"], tmp_path / "runs", {"appended": LEAVES["appended"]})
    for words in (("runs",), ("compare",)):
        check(said([*words, "--runs-dir", str(tmp_path / "runs")], terminal=terminal))
    for number, copy in enumerate(made[::2] if terminal else made):
        words = QUICK[number % len(QUICK)]
        check(told(tmp_path / "runs", copy.name, words, tmp_path / "out" / str(number), terminal=terminal))


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
@pytest.mark.parametrize("way", [*LEAVES, "endless"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_command_about_every_poisoned_file(bases, tmp_path, monkeypatch, kind, way, terminal: bool) -> None:
    quickly(monkeypatch)
    made = copies(bases[kind], tmp_path / "runs", {way: LEAVES.get(way, endless)})
    for copy in made:
        for number, words in enumerate((*QUICK, *WRITTEN, *ASKED[kind], *BY_MODEL)):
            check(told(tmp_path / "runs", copy.name, words, tmp_path / copy.name / str(number), terminal=terminal))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_place_of_every_file_with_every_kind_of_value(bases, tmp_path, monkeypatch, kind: str) -> None:
    quickly(monkeypatch)
    monkeypatch.chdir(tmp_path)  # reports go there
    values = (BAD, None, -1, 1.5, 10**400, True, [], {}, [BAD], {BAD: BAD}, float("nan"))
    commands = (*QUICK[:8], ("report",), ("export", "--to", "csv"), *BY_MODEL[:3], ("resume",))
    run = bases[kind]
    count = 0
    for file in files(run):
        whole = (run / file).read_bytes()
        data = read(run / file)
        for place in leaves(data):
            value = values[count % len(values)]
            words = commands[count % len(commands)]
            count += 1
            if file.suffix == ".toml" and not isinstance(value, str | bool | float):
                value = BAD
            write(run / file, put(data, place, value))
            check(told(run.parent, run.name, words, tmp_path / str(count), terminal=count % 2 == 0))
        (run / file).write_bytes(whole)
    assert count > 300


@pytest.mark.parametrize(("written", "is_read"), [("7", 7), (str(-(2**63)), -(2**63)), ("1" + "0" * 400, float("inf"))])
def test_a_whole_number_beyond_all_counting_is_a_float(tmp_path, written: str, is_read: float) -> None:
    (tmp_path / "a.json").write_text(f'{{"step": {written}}}')
    record = parse_line(f'{{"step": {written}}}\n'.encode())
    assert read_json(tmp_path / "a.json") == record == {"step": is_read} and type(record["step"]) is type(is_read)


# ── names of folders, studies, doors ──


@pytest.mark.parametrize("terminal", PLACES)
def test_hostile_names_of_folders_and_studies_command_no_terminal(tmp_path, monkeypatch, terminal: bool) -> None:
    quickly(monkeypatch)
    root = tmp_path / "runs"
    root.mkdir()
    named(root)
    for words in (("runs",), ("compare",), ("compare", "--csv"), ("compare", "--by", "variant"), ("compare", "st")):
        check(said([*words, "--runs-dir", str(root)], terminal=terminal))
    for number, name in enumerate(NAMES):
        every = (("watch",), ("note", "a note"), ("doctor",), ("export", "--to", "csv"))
        for words in every[number % 2 :: 2] if terminal else every:
            check(told(root, os.fsdecode(name), words, tmp_path / str(number), terminal=terminal))
    check(said(["rename", os.fsdecode(NAMES[0]), "good", "--runs-dir", str(root)], terminal=terminal))
    check(said(["delete", os.fsdecode(NAMES[1]), "--yes", "--runs-dir", str(root)], terminal=terminal))


DOORS: dict[str, tuple[str, ...]] = {
    "a run's name": ("watch", PROMPT),
    "a command": (PROMPT,),
    "an option": ("runs", f"--{PROMPT}"),
    "a key": ("run", "--set", f"{PROMPT}=1"),
    "a value": ("run", "--set", f"model.position={PROMPT}"),
    "a number": ("run", "--set", f"model.d_model={PROMPT}"),
    "a name": ("run", "--preset", "demo", "--name", PROMPT),
    "a preset": ("run", "--preset", PROMPT),
    "a config": ("run", "--config", PROMPT),
    "a corpus": ("run", "--preset", "demo", "--corpus", PROMPT),
    "a study": ("ablate", "--study", PROMPT),
    "an axis": ("ablate", "--preset", "demo", "--vary", f"{PROMPT}=1,2"),
    "a device": ("run", "--preset", "demo", "--device", PROMPT),
    "a filter": ("compare", "--filter", PROMPT),
    "a column": ("compare", "--sort", PROMPT),
    "a corpus to show": ("data", "show", PROMPT),
    "a corpus to fetch": ("data", "fetch", PROMPT),
    "a preset to show": ("presets", "show", PROMPT),
    "two presets": ("presets", "diff", PROMPT, PROMPT),
    "a runs folder": ("runs", "--runs-dir", PROMPT.replace("/", "")),
    "a format": ("export", "last", "--to", PROMPT),
}
VARIABLES = ("RUNS", "DATA", "CACHE", "SETTINGS")


@pytest.mark.parametrize("terminal", PLACES)
def test_what_is_asked_for_is_repeated_without_its_poison(tmp_path, monkeypatch, terminal: bool) -> None:
    monkeypatch.chdir(tmp_path)
    for words in DOORS.values():
        check(said(words, terminal=terminal))


@pytest.mark.parametrize("name", ["MIRROR", *(pytest.param(name, marks=SLOW) for name in VARIABLES)])
def test_poison_in_the_environment_is_no_command(tmp_path, monkeypatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TUI_TRANSFORMER_DATA", raising=False)
    environment = {f"TUI_TRANSFORMER_{name}": PROMPT.replace("/", "")}
    for words in (("runs",), ("data", "list"), ("data", "fetch", "tiny-shakespeare"), ("doctor",), ("presets", "list")):
        if words != ("data", "fetch", "tiny-shakespeare") or name == "MIRROR":
            check(said(words, terminal=True, environment=environment))


def test_a_prompt_that_is_piped_in_is_answered_without_its_poison(bases) -> None:
    typed = f"the {PROMPT}\n/surprise {PROMPT}\n/vs {PROMPT}\n/{PROMPT}\n/alternatives\n{PROMPT}\n".encode()
    root = str(bases["text"].parent)
    check(said(["sample", "run", "--length", "5", "--device", "cpu", "--runs-dir", root], stdin=typed))


@pytest.mark.parametrize("name", ["folder/documents.txt", *(pytest.param(n, marks=SLOW) for n in ("a.txt", "a.tsv"))])
def test_a_poisoned_corpus_is_shown_and_trained_on_without_its_poison(tmp_path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    line = PROMPT.replace("\r", "").replace("\n", "")
    path.write_text("".join(f"{line} {i}\t{line} {i % 7}\n" for i in range(200)))
    where = str(path.parent if name.endswith("documents.txt") else path)
    for terminal in (False, True):
        check(said(["data", "show", where], terminal=terminal))
    changes = ("train.steps=2", "model.d_model=16", "model.context_length=32")
    settings = [part for change in changes for part in ("--set", change)]
    if name == "a.txt":
        words = ["run", "--preset", "demo", "--corpus", where, "--name", "run", *settings, "--device", "cpu"]
        check(said([*words, "--runs-dir", str(tmp_path / "runs")], terminal=False))


# ── what is written down ──


class Page(HTMLParser):
    """What of a page could run, or fetch something."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "iframe", "object", "embed", "form", "base", "link"):
            self.wrong.append(tag)
        for name, value in attrs:
            if name.startswith("on") or (name in ("href", "src") and not re.match(r"#|data:image/|$", value or "")):
                self.wrong.append(f"{tag} {name}={value}")


def looked_at(path: Path) -> list[str]:
    """What a file that we wrote holds that it must not hold."""
    raw = path.read_bytes()
    if path.suffix in (".png", ".safetensors", ".v2") or "tfevents" in path.name:
        return []
    found = commands_in(raw, re.compile(rb"(?!)"))
    text = raw.decode("utf-8", "replace")
    if path.suffix == ".html":
        page = Page()
        page.feed(text)
        found += page.wrong
    if path.suffix == ".tex":
        read = "\n".join(line for line in text.splitlines() if not line.startswith("%"))  # the others are comments
        found += re.findall(r"\\(?:input|write18|include|openin|openout|immediate|read)\b[^\n]{0,40}", read)
    if path.suffix == ".md":
        prose = [CODE_SPAN.sub("", line) for line in text.splitlines() if not line.startswith("    ")]
        found += [line[:200] for line in prose if re.search(r"(?<!\\)<(?:script|img)", line)]
    if path.suffix == ".csv":
        found += re.findall(r"(?m)(?:^|,)\"?[=+@][^,\n]{0,40}", text)
    return found


@pytest.mark.parametrize("kind", ["html", "latex", pytest.param("markdown", marks=SLOW)])
def test_a_report_on_a_poisoned_run_is_a_report(bases, tmp_path, monkeypatch, kind: str) -> None:
    quickly(monkeypatch)
    made = copies(bases["text"], tmp_path / "runs", {"replaced": LEAVES["replaced"]})
    chosen = [copy for copy in made if copy.name in ("data-replaced", "samples-replaced", "notes-replaced")]
    for copy in chosen:
        out = tmp_path / copy.name
        check(said(["report", copy.name, "--format", kind, "--out", str(out), "--runs-dir", str(tmp_path / "runs")]))
        assert out.is_dir()
        for path in (path for path in out.rglob("*") if path.is_file()):
            assert (path.name, looked_at(path)) == (path.name, [])


@pytest.mark.slow
@pytest.mark.parametrize("way", [*LEAVES, "keys"])
@pytest.mark.parametrize("kind", KINDS)
def test_everything_that_is_written_of_poisoned_runs_is_harmless(bases, tmp_path, monkeypatch, kind, way: str) -> None:
    quickly(monkeypatch)
    made = copies(bases[kind], tmp_path / "runs", {way: LEAVES[way]} if way in LEAVES else {})
    tables = (*(("compare", f"--{kind}") for kind in ("csv", "latex-document", "markdown")), ("export", "--to", "csv"))
    endings = {"--csv": "csv", "--latex-document": "tex", "--markdown": "md", "--to": "csv"}
    count = 0
    for copy in made:
        for number, words in enumerate((*WRITTEN[:8], *tables)):
            out = tmp_path / copy.name / str(number)
            if words in tables:
                out.parent.mkdir(exist_ok=True)
                out = out.with_suffix(f".{endings[words[1]]}")
            found = said([words[0], copy.name, *words[1:], "--out", str(out), "--runs-dir", str(tmp_path / "runs")])
            check(found)
            written = [out] if out.is_file() else [path for path in out.rglob("*") if path.is_file()]
            count += len(written)
            for path in written:
                assert (words, path.name, looked_at(path)) == (words, path.name, [])
    assert count > len(made)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", INJECTION),
        ("a.html", "<a href='javascript:x'>"),
        ("a.tex", INJECTION),
        ("a.md", INJECTION),
        ("a.md", f"``{INJECTION}`"),
        ("a.md", f"`x` {INJECTION} `x`"),
        ("a.csv", "a,=1+1\n"),
        ("a.md", "\x1b[31m"),
        ("a.html", "\u202e"),
    ],
)
def test_the_search_finds_what_it_is_for(tmp_path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert looked_at(tmp_path / name)
    assert commands_in(json.dumps(POISON).encode()) == [] and commands_in(POISON[:-1].encode())


def test_every_command_prints_through_one_door() -> None:
    """`print` cleans nothing; `answer` and `print_columns` do."""
    raw = {
        "cli/app.py": 1,  # the version
        "cli/output.py": 4,  # the doors themselves
        "cli/run/repl.py": 3,  # ends of lines
        "cli/show/compare.py": 1,  # a forest plot with its colours; the names in it are clean
    }
    root = Path(__file__).parents[2] / "tui_transformer"
    found: dict[str, int] = {}
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                found[str(path.relative_to(root))] = found.get(str(path.relative_to(root)), 0) + 1
    assert found == raw
