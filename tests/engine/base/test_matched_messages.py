"""What was recorded in English is shown in the language in use; what no message fits stays as it is."""

import ast

import pytest

from engine.base.language import Message, tr
from engine.base.matched_messages import MatchedMessage
from engine.config import presets
from engine.config.keys import parse_overrides
from engine.config.lints import lint
from tests.catalogue import ROOT
from tui_transformer import languages

RECORDED = [  # as runs have them: plain, with gaps, with parts that are messages, a message and its tails
    Message("none is set, and training mode adds none"),
    "an independent implementation gives the same predictions over 256 tokens",
    "108,352, as configured, and each gets a gradient",
    "the model sees no later token (256 of 256 positions tried), in training, evaluation and scoring, 8 rows at a time",
    "the loss is NaN or infinite at step 310; the last good state is step 309",
    "LEAK before the first step: some predictions are not numbers, so what they depend on cannot be checked",
    "the disk holding /runs is full: 1.2 MB free, but the next checkpoint needs 3.0 MB; "
    "training continues once there is room",
    "finished",
]


def translated(text: str) -> str:
    return tr(MatchedMessage(text))


@pytest.fixture
def chinese() -> None:
    languages.use("zh")


def test_english_is_told_as_it_is() -> None:
    assert [translated(text) for text in RECORDED] == RECORDED


@pytest.mark.parametrize("text", RECORDED)
def test_a_recorded_text_is_told_in_the_language_in_use(chinese, text) -> None:
    said = translated(text)
    letters = [character for character in said if character.isascii() and character.isalpha()]
    assert any("一" <= character <= "鿿" for character in said)
    assert len(letters) <= len("LEAK runs MB MB")


def test_numbers_names_and_command_lines_are_those_of_the_text(chinese) -> None:
    said = translated("run 'baseline' is not a translation model; use `tui-transformer sample baseline`")
    assert "'baseline'" in said and "`tui-transformer sample baseline`" in said
    assert "310" in translated("the loss is NaN or infinite at step 310; the last good state is step 309")
    assert translated("an own reason, with `code` and 3 words") == "an own reason, with `code` and 3 words"


def test_a_single_word_that_is_no_name_is_told_too(chinese) -> None:
    said = translated("'failed' has not finished (failed): starting from its step 20")
    assert "失败" in said
    assert "'failed'" in said and "failed" not in said.replace("'failed'", "")


def test_a_warning_is_recorded_in_english_and_told_in_the_language(chinese) -> None:
    config = presets.resolve(presets.find("demo"), overrides=parse_overrides(["train.steps=20"]))
    found = list(lint(config))
    assert found and all(one.message.isascii() and not tr(one.message).isascii() for one in found)


def test_a_text_is_filled_as_it_was() -> None:
    languages.use("zh")
    filled = Message("{n:,} of {total} and {name}", n=1234, total=5, name="x")
    assert filled == "1,234 of 5 and x" and tr("finished") == translated("finished") != "finished"


def test_what_training_records_is_not_translated() -> None:
    """Verdicts, warnings and the reasons of a run's end are messages."""
    files = ("training/self_check", "training/step", "training/inspector", "evaluation/alarms")
    for file in (*files, "evaluation/checks", "training/trainer", "training/trial", "data/overlap"):
        tree = ast.parse((ROOT / "engine" / f"{file}.py").read_text(encoding="utf-8"))
        called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert "Message" in called and not called & {"tr", "trn"}, file
