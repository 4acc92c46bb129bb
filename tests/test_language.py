"""Every message has its translation, with the same gaps; the language is chosen by option, settings or locale."""

import os
import subprocess
import sys
from collections import Counter
from string import Formatter

import pytest

from engine.base import language
from engine.base.language import tr, trn
from tests.catalogue import as_po, messages, updated
from tui_transformer import languages
from tui_transformer.catalogues import FOLDER
from tui_transformer.languages import LANGUAGES, locale_language

OTHERS = LANGUAGES[1:]
SHORTENED = {"zero init: {zero_init}"}  # a label in a diagram, whose translation does not say which kind it is


def gaps(text: str) -> Counter[tuple[str, str, str | None]]:
    return Counter((name, spec or "", how) for _, name, spec, how in Formatter().parse(text) if name is not None)


@pytest.fixture(scope="module", params=OTHERS)
def catalogue(request):
    return updated(request.param)


def test_the_catalogue_has_the_messages_of_the_code(catalogue) -> None:
    folder = FOLDER / str(catalogue.locale) / "LC_MESSAGES"
    assert (folder / "messages.po").read_bytes() == as_po(catalogue), "run: python -m tests.catalogue"
    assert len(catalogue) > 1_900


def test_every_message_is_translated_with_the_same_gaps(catalogue) -> None:
    wrong = []
    for message in catalogue:
        if not message.id:
            continue
        said = message.string if isinstance(message.string, tuple) else (message.string,)
        first = message.id if isinstance(message.id, str) else message.id[-1]
        filled = "python-brace-format" in message.flags
        if not all(said) or (filled and message.id not in SHORTENED and any(gaps(one) != gaps(first) for one in said)):
            wrong.append(message.id)
    assert not wrong


def test_a_message_is_looked_up_before_its_gaps_are_filled() -> None:
    assert tr("{name} is paused: press space to continue", name="{x}") == "{x} is paused: press space to continue"
    assert (trn("{n} run", "{n} runs", 1), trn("{n} run", "{n} runs", 2)) == ("1 run", "2 runs")
    languages.use("zh")
    assert tr("{name} is paused: press space to continue", name="demo").startswith("demo ")
    assert tr("{name} is paused: press space to continue", name="demo") != "demo is paused: press space to continue"
    assert tr("") == "" and tr("not a message of the code") == "not a message of the code"


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_TW.UTF-8"}, "zh"),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "zh:en"}, "zh"),
        ({"LANG": "", "LC_ALL": ""}, "en"),
    ],
)
def test_the_locale_says_which(variables, code) -> None:
    assert locale_language(variables) == code


def test_the_option_wins_over_the_settings_and_these_over_the_locale(tmp_path, monkeypatch) -> None:
    file = tmp_path / "settings.toml"
    monkeypatch.setenv(languages.SETTINGS_VARIABLE, str(file))
    monkeypatch.setenv("LANGUAGE", "en")

    def chosen(*words: str) -> tuple[bool, list[str]]:
        rest = languages.apply_language_option(list(words))
        return language.tr("no run is selected") != "no run is selected", rest

    assert chosen("runs") == (False, ["runs"])
    file.write_text('language = "zh"\n', encoding="utf-8")
    assert chosen("runs") == (True, ["runs"])
    assert chosen("runs", "--language=en", "--json") == (False, ["runs", "--json"])
    file.write_text("language = [damaged", encoding="utf-8")
    assert chosen("sample", "demo", "--", "--language", "zh") == (False, ["sample", "demo", "--", "--language", "zh"])
    assert chosen("--language", "zh", "runs") == (True, ["runs"])
    assert chosen("report", "demo", "--language", "zh") == (True, ["report", "demo"])


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tui_transformer", *words]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env=os.environ | {"COLUMNS": "100"}
    )


def test_help_and_errors_are_in_the_language(tmp_path) -> None:
    said = run("--help", "--language", "zh").stdout
    assert "退出码" in said and "Exit codes" not in said
    wrong = run("--language", "zh", "run", "--preset", "no-such-preset")
    assert wrong.returncode == 2 and len(wrong.stderr.splitlines()) == 1
    assert any("一" <= character <= "鿿" for character in wrong.stderr)
    unknown = run("--language", "de", "runs")
    assert (unknown.returncode, unknown.stderr) == (2, "tui-transformer: --language 'de': must be en or zh\n")


def test_messages_are_found_in_code_docstrings_and_tables() -> None:
    found = {text for _, text in messages()}
    assert {"no run is selected", "train this design", "Named settings to start from."} <= found
