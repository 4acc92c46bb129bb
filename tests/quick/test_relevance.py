"""The nearer a test is to a change the sooner `make quick` runs it, and no file is forgotten."""

import shutil
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.lint import ROOT
from tests.quick.changes import Change, changes
from tests.quick.readers import READERS, readers
from tests.quick.references import Code, parse, read
from tests.quick.relevance import relevance

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
CODE = {
    "engine/__init__.py": "",
    "engine/step.py": """
import engine.rates

LIMIT = 3

def advance(x):
    return _scaled(x)

def _scaled(x):
    return x * LIMIT

class Stepper:
    def step(self):
        return 1

    def __len__(self):
        return 2

def untouched():
    return 0
""",
    "engine/rates.py": "def warmup(step):\n    return step\n",
    "engine/words.py": """
def said():
    return "an unheard-of sentence"
""",
    "engine/table.py": 'ROWS = read("table.toml")\n',
    "tui_transformer/__main__.py": "def main():\n    from engine.step import Stepper\n    return Stepper\n",
    "tests/conftest.py": "from engine.step import advance\n\ndef advanced():\n    return advance(1)\n",
    "tests/engine/test_step.py": "from engine import step\n\ndef test_a():\n    pass\n",
    "tests/engine/test_others.py": """
from engine.step import Stepper, advance, untouched

def test_named():
    assert advance(1)

def test_method():
    assert Stepper().step()

def test_class():
    assert Stepper()

def test_by_fixture(advanced):
    pass

def test_something_else():
    assert untouched()
""",
    "tests/engine/test_far.py": "import tests.engine.helper\n\ndef test_far():\n    pass\n",
    "tests/engine/helper.py": "import engine.step\n",
    "tests/engine/test_words.py": "import engine.words\n\ndef test_it():\n    assert 'unheard' in said\n",
    "tests/engine/test_process.py": "def test_p():\n    run(['-m', 'tui_transformer'])\n",
    "tests/test_sources.py": "def files():\n    return ROOT.rglob('*.py')\n\ndef test_all():\n    assert files()\n",
    "tests/test_unrelated.py": "def test_nothing():\n    pass\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for path, text in CODE.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return tmp_path


def distances(tree: Path, path: str, marked: str = "", removed: str = "") -> dict[str, float]:
    """How far each test is from a change of the line that has a text."""
    lines = (tree / path).read_text().splitlines() if (tree / path).is_file() else []
    found = frozenset(number for number, line in enumerate(lines, start=1) if marked and marked in line)
    code = read(tree, tree / ".cache" / "references.json")
    change = Change(path, found, frozenset(removed.split()))
    return {test: distance for (_, test), distance in relevance(code, [change], tree).items()}


def test_who_names_what_changed_is_nearer_than_who_only_imports_it(tree) -> None:
    found = distances(tree, "engine/step.py", "return _scaled(x)")
    assert found["test_named"] < found["test_by_fixture"] < found["test_something_else"] <= found["test_far"]
    assert "test_nothing" not in found


def test_a_function_is_reached_through_those_that_call_it(tree) -> None:
    found = distances(tree, "engine/step.py", "return x * LIMIT")
    assert found["test_named"] < found["test_something_else"]
    assert distances(tree, "engine/step.py", "LIMIT = 3")["test_named"] < found["test_something_else"]


def test_a_method_is_reached_by_its_name_and_one_that_python_calls_by_its_class(tree) -> None:
    found = distances(tree, "engine/step.py", "return 1")
    assert found["test_method"] < found["test_class"]
    found = distances(tree, "engine/step.py", "return 2")
    assert found["test_class"] == found["test_method"] < found["test_something_else"]


def test_the_file_named_after_a_module_is_near(tree) -> None:
    found = distances(tree, "engine/step.py", "return 0")
    assert found["test_a"] < found["test_far"]


def test_imports_in_functions_processes_fixtures_and_readers_of_all_sources_count(tree) -> None:
    found = distances(tree, "engine/step.py", "return 1")
    assert {"test_p", "test_far", "test_by_fixture", "test_all"} <= set(found)


def test_a_test_that_has_a_rare_word_of_the_line_is_near(tree) -> None:
    assert distances(tree, "engine/words.py", "unheard")["test_it"] <= 1.5


def test_what_was_removed_still_has_its_users(tree) -> None:
    found = distances(tree, "engine/step.py", removed="advance")
    assert found["test_named"] < found["test_something_else"]
    (tree / "engine/rates.py").unlink()
    assert "test_a" in distances(tree, "engine/rates.py", removed="warmup")


def test_a_changed_test_comes_first(tree) -> None:
    found = distances(tree, "tests/engine/test_others.py", "assert Stepper()")
    assert found["test_class"] == found["test_method"] == 0 < found["test_named"]


def test_a_data_file_counts_as_its_reader(tree) -> None:
    (tree / "engine/table.toml").write_text("[row]\n")
    (tree / "tests/engine/test_table.py").write_text(
        "from engine.table import ROWS\n\ndef test_rows():\n    assert ROWS\n"
    )
    assert distances(tree, "engine/table.toml", "row") == {"test_rows": pytest.approx(1.5)}


def test_what_cannot_be_parsed_reaches_those_that_import_it(tree) -> None:
    (tree / "engine/step.py").write_text("def advance(:\n")
    assert "test_named" in distances(tree, "engine/step.py", "advance")


def test_the_cache_follows_the_files(tree) -> None:
    before = distances(tree, "engine/step.py", "return 1")
    assert distances(tree, "engine/step.py", "return 1") == before
    (tree / "tests/test_unrelated.py").write_text("import engine.step\n\ndef test_nothing():\n    pass\n")
    assert set(distances(tree, "engine/step.py", "return 1")) == set(before) | {"test_nothing"}
    (tree / ".cache" / "references.json").write_text("[")
    assert "test_nothing" in distances(tree, "engine/step.py", "return 1")


def test_names_in_texts_are_imports() -> None:
    module = parse("tests/test_a.py", b'monkeypatch.setattr("engine.step.advance", f"tui_transformer.cli.{name}")')
    assert set(module.imports) == {"engine.step.advance", "tui_transformer.cli."}
    code = Code([module, parse("tui_transformer/cli/run.py", b""), parse("engine/step.py", b"")])
    assert code.importers["engine.step"] == code.importers["tui_transformer.cli.run"] == {"tests.test_a"}


@pytest.fixture
def repository(tmp_path: Path):
    """A repository with one commit on `main`; returns what runs git there."""
    if shutil.which("git") is None:
        pytest.skip("needs git")

    def git(*words: str) -> None:
        subprocess.run([*GIT, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    (tmp_path / "a.py").write_text("one\ndef two():\n    pass\nthree\n")
    git("add", ".")
    git("commit", "-qm", "a")
    return git


def test_on_a_branch_everything_since_main_counts_committed_or_not(tmp_path, repository) -> None:
    repository("checkout", "-qb", "topic")
    (tmp_path / "a.py").write_text("one\nthree\nfour\n")
    repository("commit", "-qam", "b")
    (tmp_path / "a.py").write_text("one\nthree\nfour\nfive\n")
    (tmp_path / "ünknown file.py").write_text("new\n")
    base, found = changes(tmp_path)
    assert base.startswith("main ")
    assert {change.path: (change.lines, change.removed) for change in found} == {
        "a.py": ({1, 2, 3, 4}, {"two"}),  # what was removed stood between 1 and 2
        "ünknown file.py": ({1, 2}, set()),
    }


def test_what_main_got_meanwhile_does_not_count(tmp_path, repository) -> None:
    repository("checkout", "-qb", "topic")
    (tmp_path / "mine.py").write_text("mine\n")
    repository("add", ".")
    repository("commit", "-qm", "mine")
    repository("checkout", "-q", "main")
    (tmp_path / "theirs.py").write_text("theirs\n")
    repository("add", ".")
    repository("commit", "-qm", "theirs")
    repository("checkout", "-q", "topic")
    assert [change.path for change in changes(tmp_path)[1]] == ["mine.py"]


def test_on_main_the_working_tree_counts_and_else_the_last_commit(tmp_path, repository) -> None:
    assert changes(tmp_path)[1] == []
    (tmp_path / "b.py").write_text("b\n")
    base, found = changes(tmp_path)
    assert base.startswith("main ") and [change.path for change in found] == ["b.py"]
    repository("add", ".")
    repository("commit", "-qm", "b")
    base, found = changes(tmp_path)
    assert base.startswith("the commit before the last") and [change.path for change in found] == ["b.py"]


def test_a_file_that_is_gone_is_a_change(tmp_path, repository) -> None:
    (tmp_path / "a.py").unlink()
    [change] = changes(tmp_path)[1]
    assert change.path == "a.py" and change.removed == {"two"}


def tracked() -> list[str]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    return [path for path in done.stdout.split("\0") if path and (ROOT / path).is_file()]


def test_somebody_reads_every_file_that_is_not_python() -> None:
    others = [path for path in tracked() if not path.endswith(".py")]
    if not others:
        pytest.skip("no repository")
    assert [path for path in others if readers(path, ROOT) is None] == []
    rows = {next((row for row in READERS if fnmatchcase(path, row)), None) for path in others}
    assert set(READERS) <= rows  # none is left of files that are gone


def test_every_reader_is_there() -> None:
    for name in {name for row in READERS.values() for name in row}:
        assert (ROOT / f"{name.replace('.', '/')}.py").is_file(), name
