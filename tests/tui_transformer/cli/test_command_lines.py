"""Options before a command reach it, and every printed command line can be pasted unchanged."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import engine
import tui_transformer
from engine.base.command_line import RUNS_VARIABLE, command_line
from engine.base.errors import InputError
from engine.runs.reader import RunReader, no_runs
from tests.tui_transformer.loaded import loaded
from tests.tui_transformer.recorded import record
from tui_transformer.__main__ import main
from tui_transformer.lab.design.draft import Draft
from tui_transformer.lab.work.run_actions import RunActions
from tui_transformer.studio.design.pane import DesignPane

PRINTED = re.compile(
    r"tui-transformer (?:[^`\n]*?)(?=`|  | resumes it| starts the run over| shows its progress| runs it|$)",
    re.MULTILINE,
)


def leaves(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that lead to it; a group that does something by itself is one."""
    if before and not hasattr(group, "commands"):
        yield before, group
    for name, one in getattr(group, "commands", {}).items():
        yield from leaves(one, (*before, name))


COMMANDS = dict(leaves(loaded()))


def needed(one: Any) -> list[str]:
    """What a command must be given."""
    words = []
    for parameter in one.params:
        if parameter.required:
            words += ["x"] if parameter.param_type_name == "argument" else [parameter.opts[0], "x"]
    return words


def knows(one: Any, name: str) -> bool:
    return any(parameter.name == name for parameter in one.params)


@pytest.fixture
def called(monkeypatch) -> list[dict[str, Any]]:
    """What the commands were called with: none of them does anything."""
    seen: list[dict[str, Any]] = []

    def listen(**given: Any) -> int:
        seen.append(given)
        return 0

    monkeypatch.setattr("tui_transformer.cli.app.program", loaded)
    for one in COMMANDS.values():
        monkeypatch.setattr(one, "callback", listen)
    return seen


def given(called: list[dict[str, Any]], *words: str) -> dict[str, Any]:
    called.clear()
    assert main(words) == 0, words
    return called[-1]


@pytest.mark.parametrize(("option", "name"), [("--runs-dir", "runs_dir"), ("--data-dir", "data_dir")])
def test_a_folder_before_a_command_reaches_it_and_the_one_after_it_wins(tmp_path, called, option, name) -> None:
    first, second = str(tmp_path / "one folder"), str(tmp_path / "another")
    reached = 0
    for words, one in COMMANDS.items():
        called_with = given(called, option, first, *words, *needed(one))  # accepted by those that have no use for it
        if knows(one, name):
            reached += 1
            assert called_with[name] == Path(first), words
            assert given(called, option, first, *words, *needed(one), option, second)[name] == Path(second), words
    assert reached >= 8


def test_a_folder_before_a_command_wins_over_the_environment(tmp_path, called, monkeypatch) -> None:
    monkeypatch.setenv(RUNS_VARIABLE, str(tmp_path / "environment"))
    assert given(called, "runs")["runs_dir"] == tmp_path / "environment"
    assert given(called, "--runs-dir", str(tmp_path / "typed"), "runs")["runs_dir"] == tmp_path / "typed"


def test_a_device_before_a_command_reaches_it_or_is_refused(called, capsys) -> None:
    for words, one in COMMANDS.items():
        if knows(one, "device"):
            assert given(called, "--device", "cuda:1", *words, *needed(one))["device"] == "cuda:1", words
        else:
            assert main(["--device", "cuda:1", *words, *needed(one)]) == 2
            assert f"'{words[-1]}' takes no --device" in capsys.readouterr().err


def test_no_command_line_is_spelled_out_where_it_could_lack_an_option() -> None:
    verbs = "|".join({words[0] for words in COMMANDS} - {"bench"})  # which reads no run and no corpus
    spelled = re.compile(rf"tui-transformer ({verbs})\b")
    found = []
    for package in (engine, tui_transformer):
        for path in Path(package.__path__[0]).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                    found += [f"{path.name}: {node.value}"] if spelled.search(node.value) else []
    assert not found


@pytest.fixture
def runs(tmp_path) -> Path:
    folder = tmp_path / "studio runs" / "it's"
    folder.mkdir(parents=True)
    return folder


def pasted(called: list[dict[str, Any]], printed: str) -> list[dict[str, Any]]:
    """What the command lines in a text ask for; each must be one that is understood."""
    found = PRINTED.findall(printed)
    assert found, printed
    return [given(called, *shlex.split(line)[1:]) for line in found]


def test_what_is_printed_of_a_folder_with_a_space_can_be_pasted(runs, called, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    assert pasted(called, no_runs(runs))[0]["runs_dir"] == runs
    reader = RunReader(record(runs, "one"))
    for verb in ("watch", "resume", "sample", "evaluate", "doctor", "verify"):
        (asked,) = pasted(called, reader.command(verb))
        assert asked["runs_dir"] == runs and asked["run"] == "one"
    (asked,) = pasted(called, reader.command("note", "what you saw", "--tag", "good"))
    assert asked["text"] == "what you saw" and asked["runs_dir"] == runs
    (asked,) = pasted(called, reader.command("resume", data_dir=tmp_path / "my data"))
    assert asked["data_dir"] == tmp_path / "my data"


def test_commands_about_runs_print_lines_that_can_be_pasted(runs, tmp_path, capsys, called, monkeypatch) -> None:
    from tui_transformer.cli.run.summary import print_summary
    from tui_transformer.cli.show.compare import compare
    from tui_transformer.cli.show.runs import note
    from tui_transformer.cli.show.runs import runs as list_runs

    monkeypatch.chdir(tmp_path)
    list_runs(runs_dir=runs)
    compare(runs_dir=runs)
    reader = RunReader(record(runs, "one"))
    note("one", runs_dir=runs)
    print_summary(reader, as_json=False, data_dir=tmp_path / "d")
    seen = capsys.readouterr()
    asked = pasted(called, seen.out + "\n" + seen.err)
    assert len(asked) >= 6 and all(one["runs_dir"] == runs for one in asked if "runs_dir" in one)


def test_the_studio_says_lines_that_can_be_pasted(runs, tmp_path, called, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)

    class Training:
        alive, run = True, record(runs, "demo-2", state="running")

        def hand_over(self, why: str) -> Any:
            return type("Process", (), {"pid": 776})

        def stop(self, why: str) -> None: ...

        def join(self) -> None: ...

    launches = RunActions(runs, tmp_path / "my data")
    launches.training = Training()  # type: ignore[assignment]
    (asked,) = pasted(called, launches.hand_over())
    assert asked["run"] == "demo-2" and asked["runs_dir"] == runs
    (asked,) = pasted(called, launches.stop_here())
    assert (asked["runs_dir"], asked["data_dir"]) == (runs, tmp_path / "my data")
    pane = DesignPane(runs_dir=runs, data_dir=tmp_path / "my data", device="cpu")
    (asked,) = pasted(called, Draft.from_preset("demo").command(pane._options))
    assert (asked["preset"], asked["device"], asked["runs_dir"]) == ("demo", "cpu", runs)


def test_a_run_is_found_again_by_the_line_that_says_it_is_finished(runs, tmp_path, called) -> None:
    from engine.training.assemble import resume

    run = record(runs, "one")
    with pytest.raises(InputError) as error:
        resume(run, data_dir=None, device="cpu")
    (asked,) = pasted(called, str(error.value))
    assert asked["config"] == run / "config.toml" and asked["runs_dir"] == runs


def test_options_that_change_nothing_are_left_out(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(RUNS_VARIABLE, raising=False)
    assert command_line("runs", runs_dir=Path("runs")) == "tui-transformer runs"
    assert command_line("runs", runs_dir=tmp_path / "runs") == "tui-transformer runs"
    monkeypatch.setenv(RUNS_VARIABLE, "elsewhere")
    assert command_line("runs", runs_dir=Path("runs")) == "tui-transformer runs --runs-dir runs"
