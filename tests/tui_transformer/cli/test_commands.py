"""A command is one function in one file; a shell completes commands, options and values."""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tui_transformer.cli
from engine.data.known import CORPORA
from engine.runs.reader import RunReader
from tests.tui_transformer.loaded import loaded
from tests.tui_transformer.recorded import record
from tests.waiting import PATIENCE
from tui_transformer.__main__ import main
from tui_transformer.cli.commands import all_commands, examples_of

PLACE = Path(tui_transformer.cli.__file__).parent
ROOT = Path(__file__).parents[3]


def marked() -> dict[str, tuple[int, bool, str]]:
    """Place, whether it is hidden, and docstring of each function marked `@command`, as Python itself reads them."""
    found = {}
    for path in PLACE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "command":
                    (place,) = (one.value for one in mark.args)
                    hidden = any(one.arg == "hidden" for one in mark.keywords)
                    name = node.name.rstrip("_").replace("_", "-")
                    found[name] = (place, hidden, inspect.cleandoc(ast.get_docstring(node)))
    return found


def test_every_marked_function_is_listed_in_the_order_of_its_places() -> None:
    known, shown = marked(), all_commands()
    assert list(shown) == sorted(known, key=lambda name: known[name][0]) and len(shown) >= 28
    assert len({place for place, _, _ in known.values()}) == len(known)
    for name, one in shown.items():
        assert (one.hidden, one.help) == known[name][1:], name


def test_a_command_that_is_used_has_the_name_and_the_help_that_were_listed() -> None:
    used = loaded().commands
    for name, one in all_commands().items():
        assert used[name].name == name and used[name].hidden == one.hidden and used[name].help == one.help


def test_help_imports_no_commands_file() -> None:
    code = (
        "import sys; from tui_transformer.__main__ import main; main(['--help']);"
        "print(*(name for name in sys.modules if name.startswith('tui_transformer.cli.')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert set(done.stderr.split()) == {
        f"tui_transformer.cli.{name}" for name in ("app", "commands", "help", "options", "output", "typer_private")
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["--json", "presets"], ["presets", "list", "--json"]),
        (["--json", "presets", "list"], ["presets", "list", "--json"]),
        (["presets", "--json", "list"], ["presets", "list", "--json"]),
        (["presets", "--json"], ["presets", "list", "--json"]),
        (["--json", "presets", "diff", "demo", "rope"], ["presets", "diff", "demo", "rope", "--json"]),
    ],
    ids=" ".join,
)
def test_json_is_understood_before_a_command(capsys, before, after) -> None:
    assert main(after) == 0
    expected = capsys.readouterr().out
    assert main(before) == 0
    assert capsys.readouterr().out == expected != ""


def test_a_data_folder_before_a_group_reaches_what_the_group_does_by_itself(tmp_path, capsys) -> None:
    file = tmp_path / next(entry for entry in CORPORA.values() if entry.remotes).remotes[0].file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("a\tb\n", encoding="utf-8")
    assert main(["data", "list", "--data-dir", str(tmp_path)]) == 0
    expected = capsys.readouterr().out
    assert str(tmp_path) in expected
    assert main(["--data-dir", str(tmp_path), "data"]) == 0
    assert capsys.readouterr().out == expected


def test_json_before_a_command_that_prints_none_is_refused_in_a_line(capsys) -> None:
    for words in (["--json", "schema"], ["--json", "presets", "schema"], ["--json"]):
        assert main(words) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.fixture(scope="module")
def shell(tmp_path_factory) -> Path:
    """A folder with this program on it, in which completion was installed, and runs to complete with."""
    folder = tmp_path_factory.mktemp("shell")
    record(folder / "runs", "first-run")
    record(folder / "runs", "second-run")
    (folder / "runs/widths.study.toml").write_text("", encoding="utf-8")
    program = folder / "tui-transformer"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tui_transformer "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    assert RunReader(folder / "runs/first-run").name == "first-run"
    installed = bash(folder, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION=1 tui-transformer --install-completion bash")
    assert "completion installed" in installed
    return folder


def bash(folder: Path, script: str) -> str:
    variables = os.environ | {"HOME": str(folder), "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    words = ["bash", "--norc", "-c", script]
    return subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout


def completed(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    line = " ".join(f"'{word}'" for word in ("tui-transformer", *words))
    script = (
        f"source ~/.bash_completions/tui-transformer.sh; COMP_WORDS=({line}); COMP_CWORD={len(words)};"
        '$(complete -p tui-transformer | sed "s/.*-F \\([^ ]*\\).*/\\1/") tui-transformer;'
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return bash(folder, script).split()


@pytest.mark.parametrize(
    ("name", "file"), [("zsh", ".zfunc/_tui-transformer"), ("fish", ".config/fish/completions/tui-transformer.fish")]
)
def test_completion_is_installed_where_the_guide_says(shell, name, file) -> None:
    said = bash(shell, f"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION=1 tui-transformer --install-completion {name}")
    assert str(shell / file) in said
    script = (shell / file).read_text(encoding="utf-8")
    assert f"complete_{name}" in script and "tui-transformer" in script


@pytest.mark.parametrize(
    ("variables", "offered"),
    [
        ("_TUI_TRANSFORMER_COMPLETE=complete_zsh _TYPER_COMPLETE_ARGS='tui-transformer presets sh'", "show"),
        (
            "_TUI_TRANSFORMER_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args "
            "_TYPER_COMPLETE_ARGS='tui-transformer resume fi'",
            "first-run",
        ),
    ],
    ids=["zsh", "fish"],
)
def test_other_shells_are_told_what_to_offer(shell, variables, offered) -> None:
    assert offered in bash(shell, f"{variables} tui-transformer")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["re"], ["resume", "report", "rename"]),
        (["presets", "sh"], ["show"]),
        (["run", "--pre"], ["--preset"]),
        (["run", "--preset", "rope"], ["rope"]),
        (["presets", "show", "rel"], ["relative", "relu"]),
        (["resume", ""], ["first-run", "last", "second-run"]),
        (["--runs-dir", "runs", "watch", "fi"], ["first-run"]),
        (["resume", "--runs-dir", "nowhere", ""], []),
        (["compare", "first-run", "wi"], ["widths"]),
        (["ablate", "--study", "wi"], ["widths"]),
        (["data", "show", "play"], ["playlets"]),
    ],
    ids=lambda words: " ".join(words),
)
def test_bash_completes(shell, words, offered) -> None:
    assert sorted(completed(shell, *words)) == sorted(offered)


def test_every_command_shows_one_to_three_examples_of_itself(capsys) -> None:
    """That they can be typed is tested with the commands of the guides."""
    groups = {name: one for name, one in loaded().commands.items() if not one.hidden}
    below = {
        f"{name} {other}": two for name, one in groups.items() for other, two in getattr(one, "commands", {}).items()
    }
    for command, one in (groups | below).items():
        lines = examples_of(one)
        assert 1 <= len(lines) <= 3 and all(what.endswith(".") for what in lines.values()), command
        assert all(line == command or line.startswith(f"{command} ") for line in lines), command
        assert main([*command.split(), "--help"]) == 0
        shown = capsys.readouterr().out
        assert all(f"    # {what}\n    tui-transformer {line}" in shown for line, what in lines.items()), command
