"""Choose the language of the app and the command line: `--language`, else the settings, else the locale."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_config_path

from engine.base import language
from engine.base.command_line import PROGRAM
from engine.base.errors import InputError, did_you_mean, join_or
from engine.base.language import Message
from tui_transformer.catalogues import catalogue

LANGUAGES = ("en", "zh")
SETTINGS_VARIABLE = "TUI_TRANSFORMER_SETTINGS"  # names a settings file other than the platform's
OPTION = "--language"
LOCALE_VARIABLES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")  # the first one that is set decides, as in gettext


def apply_language_option(words: list[str]) -> list[str]:
    """Set the language for a command line, and return its words without `--language`.

    With `--json` all texts are English, because programs read them. Child processes inherit a language given here.
    `InputError`: an unknown language.
    """
    given, rest = _split_language_option(words)
    own = given if given in LANGUAGES else _settings_language() or locale_language(os.environ)
    use("en" if "--json" in rest else own)
    if given and given not in LANGUAGES:
        raise InputError(
            Message(
                "{option} {value!r}: must be {known}{nearest}",
                option=OPTION,
                value=given[:40],
                known=join_or(LANGUAGES),
                nearest=did_you_mean(given, LANGUAGES),
            )
        )
    if given:
        os.environ["LANGUAGE"] = given
    return rest


def use(code: str) -> None:
    """Use one of `LANGUAGES` from now on; texts that `engine` and `lab` translated at their import do not change."""
    language.set_catalogue(catalogue(code))


def locale_language(variables: Mapping[str, str]) -> str:
    """Return the language of a locale such as `zh_CN.UTF-8`; English if there is no catalogue for it."""
    locale = next((variables[name] for name in LOCALE_VARIABLES if variables.get(name)), "")
    known = [code for code in LANGUAGES for part in locale.split(":")[:1] if part.lower().startswith(code)]
    return known[0] if known else "en"


def settings_file() -> Path:
    """Return the file of the user's settings."""
    given = os.environ.get(SETTINGS_VARIABLE)
    return Path(given) if given else user_config_path(PROGRAM) / "settings.toml"


def _split_language_option(words: list[str]) -> tuple[str, list[str]]:
    for i, word in enumerate(words):
        if word == "--":
            break
        if word == OPTION and i + 1 < len(words):
            return words[i + 1], [*words[:i], *words[i + 2 :]]
        if word.startswith(f"{OPTION}="):
            return word.partition("=")[2], [*words[:i], *words[i + 1 :]]
    return "", words


def _settings_language() -> str:
    """Return the language in the settings; "" if they name none that is known. The studio reports the file's errors."""
    try:
        text = settings_file().read_text(encoding="utf-8")
        found = tomllib.loads(text).get("language") if "language" in text else ""
    except (OSError, ValueError, RecursionError):
        return ""
    return found if found in LANGUAGES else ""
