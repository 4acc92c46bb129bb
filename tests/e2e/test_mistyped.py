"""A command line with a typo gets the right form suggested."""

import pytest

from engine.config.keys import parse_override
from tui_transformer.__main__ import main

CHECK = "check --preset demo --set"
MISTYPED = {
    "run demo": "unexpected argument 'demo'; did you mean --preset demo?",
    "run dmeo": "did you mean --preset demo?",
    "run --preset demo --set train.steps 100": "did you mean --set train.steps=100?",
    "run --preset demo train.steps=100": "did you mean --set train.steps=100?",
    "run --preset demo --steps 100": "did you mean --set train.steps=100?",
    "run --preset demo --stepz=100": "did you mean --set train.steps=100?",
    "run --preest demo": "did you mean '--preset'?",
    "run --preset dmeo": "did you mean 'demo'?",
    "trian": "did you mean 'run'?",
    "train": "did you mean 'run'?",
    "rum": "did you mean 'run'?",
    "generate": "did you mean 'sample'?",
    "translte": "did you mean 'translate'?",
    "ls": "did you mean 'runs'?",
    "version": "did you mean '--version'?",
    "qqqq": "commands: run, ablate",
    f"{CHECK} optimizer.lr=0,001": "did you mean 0.001?",
    f"{CHECK} train.steps=1,000": "did you mean 1000?",
    f"{CHECK} optimizer.betas=[0.9]": "optimizer.betas: must be 2 values, e.g. [0.9, 0.98]",
    f"{CHECK} optimizer.betas=0.9": "optimizer.betas: must be 2 values",
    f"{CHECK} steps=100": "did you mean 'train.steps'?",
}


@pytest.mark.parametrize("line", MISTYPED)
def test_a_typed_mistake_gets_its_nearest_right_form(capsys, line: str) -> None:
    assert main(line.split()) == 2
    said = capsys.readouterr().err
    assert MISTYPED[line] in said and len(said.splitlines()) == 1, said


@pytest.mark.parametrize("line", ["help", "help run", "help data fetch"])
def test_help_is_a_word_as_well(capsys, line: str) -> None:
    assert main(line.split()) == 0
    assert "Usage:" in capsys.readouterr().out


@pytest.mark.parametrize("flag", ["-v", "-V", "--version"])
def test_the_version_has_short_flags(capsys, flag: str) -> None:
    assert main([flag]) == 0
    assert capsys.readouterr().out.startswith("tui-transformer 0.")


def test_a_whole_number_may_be_written_with_an_exponent() -> None:
    assert parse_override("train.steps=1e3") == {"train": {"steps": 1000}}
    assert type(parse_override("train.steps=1e3")["train"]["steps"]) is int
    assert parse_override("optimizer.lr=1e-3") == {"optimizer": {"lr": 1e-3}}
