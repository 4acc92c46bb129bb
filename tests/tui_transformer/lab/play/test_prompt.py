import pytest

from engine.base.errors import InputError
from tui_transformer.cli.output import print_error, print_info
from tui_transformer.lab.play.prompt import SETTINGS, CommandPrompt, parse_setting


@pytest.fixture
def session():
    answers: list[str] = []
    settings = {"temperature": 0.8, "top_k": 40, "top_p": 1.0, "seed": 1, "length": 200}
    prompt = CommandPrompt(settings, answers.append, remark=print_info, show_error=print_error)
    prompt.answers = answers
    return prompt


def test_text_is_answered_and_commands_are_not(session) -> None:
    for line in ("ROMEO:", "/temperature 0.5", "", "  indented"):
        session.handle_line(line)
    assert session.answers == ["ROMEO:", "  indented"]
    assert session.settings["temperature"] == 0.5


def test_again_says_the_seed_that_it_takes(session, capsys) -> None:
    session.handle_line("ROMEO:")
    session.handle_line("/again")
    assert session.answers == ["ROMEO:", "ROMEO:"] and session.settings["seed"] == 2
    said = capsys.readouterr()
    assert "the same prompt with seed 2" in said.err and not said.out


@pytest.mark.parametrize("line", ["/quit", "/exit", "quit", "exit", " quit "])
def test_leaving(session, line: str) -> None:
    session.handle_line(line)
    assert session.done and session.answers == []


def test_help_names_every_command_with_its_value(session, capsys) -> None:
    session.handle_line("/help")
    out = capsys.readouterr().out
    assert all(f"/{name} {session.settings[name]}" in out for name in SETTINGS) and "/quit" in out


@pytest.mark.parametrize(
    "line", ["/temperature hot", "/top_p 0", "/top_p 2", "/top_k -1", "/length 0", "/seed nan", "/temprature 1", "/"]
)
def test_a_mistake_is_one_line_and_changes_nothing(session, capsys, line: str) -> None:
    before = dict(session.settings)
    session.handle_line(line)
    assert session.settings == before and not session.done
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_misspelt_command_gets_the_nearest(session, capsys) -> None:
    session.handle_line("/temprature 1")
    assert "did you mean '/temperature'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("begun", "complete"),
    [("/te", ["/temperature "]), ("/top-", ["/top_k ", "/top_p "]), ("/q", ["/quit"]), ("/top_k 5", []), ("a", [])],
)
def test_a_command_is_completed_from_its_beginning(session, begun: str, complete: list[str]) -> None:
    assert session.completions(begun) == complete


def test_asking_for_a_value_shows_it(session, capsys) -> None:
    session.handle_line("/top_k")
    assert capsys.readouterr().out == "top_k 40\n"


@pytest.mark.parametrize("value", ["1e999", "inf", "nan", "1.5", "9" * 40, None])
def test_settings_are_bounded(value) -> None:
    with pytest.raises(InputError, match="top_k"):
        parse_setting("top_k", value)
