"""Choose the language of the app and the command line: `--language`, else the settings, else the locale."""

import os
import struct
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path

from platformdirs import user_config_path

from engine import language
from engine.command_line import PROGRAM
from engine.errors import InputError, nearest, one_of
from engine.language import tr

LANGUAGES = ("en", "zh")
SETTINGS = "TUI_TRANSFORMER_SETTINGS"  # names a settings file other than the platform's
OPTION = "--language"
LOCALE = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")  # the first one that is set decides, as in gettext
FOLDER = Path(__file__).parent / "locale"


def choose(words: list[str]) -> list[str]:
    """Set the language for a command line, and return its words without `--language`.

    With `--json` all texts are English, for they are read by programs. Child processes inherit a language given here.
    `InputError`: an unknown language.
    """
    given, rest = _taken(words)
    own = given if given in LANGUAGES else _of_settings() or of_locale(os.environ)
    use("en" if "--json" in rest else own)
    if given and given not in LANGUAGES:
        raise InputError(
            tr(
                "{option} {value!r}: must be {known}{nearest}",
                option=OPTION,
                value=given[:40],
                known=one_of(LANGUAGES),
                nearest=nearest(given, LANGUAGES),
            )
        )
    if given:
        os.environ["LANGUAGE"] = given
    return rest


def use(code: str) -> None:
    """Speak one of `LANGUAGES` from now on; modules imported before keep the texts they have."""
    language.use(catalogue(code))


class Messages(GNUTranslations):
    """A compiled catalogue, which can also be read through."""

    def __init__(self, compiled: bytes) -> None:
        super().__init__(BytesIO(compiled))
        self._compiled = compiled

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the messages with their translations, singular and plural apart."""
        count, texts, translations = struct.unpack_from("<3I", self._compiled, 8)
        for i in range(count):
            said = self._forms(translations, i)
            for text, translation in zip(self._forms(texts, i), (said[0], said[-1]), strict=False):
                if text:
                    yield text, translation

    def _forms(self, table: int, i: int) -> list[str]:
        size, at = struct.unpack_from("<2I", self._compiled, table + 8 * i)
        return self._compiled[at : at + size].decode().split("\0")


@cache
def catalogue(code: str) -> NullTranslations:
    """Return the messages of one of `LANGUAGES`."""
    if code == "en":
        return NullTranslations()
    return Messages((FOLDER / code / "LC_MESSAGES" / "messages.mo").read_bytes())


def of_locale(variables: Mapping[str, str]) -> str:
    """Return the language of a locale such as `zh_CN.UTF-8`; English if there is no catalogue for it."""
    locale = next((variables[name] for name in LOCALE if variables.get(name)), "")
    known = [code for code in LANGUAGES for part in locale.split(":")[:1] if part.lower().startswith(code)]
    return known[0] if known else "en"


def settings_file() -> Path:
    """Return the file of the user's settings."""
    given = os.environ.get(SETTINGS)
    return Path(given) if given else user_config_path(PROGRAM) / "settings.toml"


def _taken(words: list[str]) -> tuple[str, list[str]]:
    for i, word in enumerate(words):
        if word == "--":
            break
        if word == OPTION and i + 1 < len(words):
            return words[i + 1], [*words[:i], *words[i + 2 :]]
        if word.startswith(f"{OPTION}="):
            return word.partition("=")[2], [*words[:i], *words[i + 1 :]]
    return "", words


def _of_settings() -> str:
    """Return the language in the settings; "" if they name none that is known. The studio reports the file's errors."""
    try:
        text = settings_file().read_text(encoding="utf-8")
        found = tomllib.loads(text).get("language") if "language" in text else ""
    except (OSError, ValueError, RecursionError):
        return ""
    return found if found in LANGUAGES else ""
