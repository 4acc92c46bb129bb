"""Sentences of a comparison before and after translation: a phrase's key and the values for its gaps.

The modules that know the numbers decide what is said, and when. A language has phrases, from `phrases/CODE.toml`, and
the words of its catalogue. People see `CURRENT_LANGUAGE`; what is filtered, exported or compared is `ENGLISH`.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from gettext import NullTranslations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base.language import language_code
from tui_transformer.catalogues import catalogue
from tui_transformer.lab.records.badges import Badge, badge

if TYPE_CHECKING:
    from tui_transformer.lab.analysis.statistics import Judgement  # imports numpy, which Design does without


@dataclass(frozen=True)
class LazyPhrase:
    """Text that is not translated yet."""

    key: str  # of the phrase
    # values for its gaps; a `LazyPhrase` among them is formatted first, a `Term` is looked up
    values: Mapping[str, Any] = field(default_factory=dict)


class Term(str):
    """One of the program's terms, such as a state or a score's name, which a language may translate."""

    __slots__ = ()


@dataclass(frozen=True)
class Language:
    code: str  # as `--language` has it
    phrases: Mapping[str, str]  # key -> text with named gaps
    catalogue: NullTranslations  # of the program's English words
    words: Mapping[str, str] = field(default_factory=dict)  # those that it calls otherwise than the catalogue

    def phrase(self, key: str, /, **values: Any) -> str:
        return self.phrases[key].format(**{name: self._translate_value(value) for name, value in values.items()})

    def message(self, message: LazyPhrase) -> str:
        return self.phrase(message.key, **message.values)

    def _translate_value(self, value: Any) -> Any:
        if isinstance(value, LazyPhrase):
            return self.message(value)
        return self.translate(value) if isinstance(value, Term) else value

    def translate(self, english: str) -> str:
        """Translate one of the program's words; user-given names are never looked up."""
        return self.words.get(english) or self.catalogue.gettext(english) if english else ""

    def badge(self, name: str) -> Badge:
        """Return a badge's meaning in this language."""
        known = badge(name)
        return replace(known, means=self.translate(known.means), advice=self.translate(known.advice))

    def judgement(self, found: "Judgement", form: str = "judged") -> str:
        """Return a verdict in words; `brief` where its numbers are shown beside it."""
        none = found.kind == "same" and not found.amounts
        key = f"{form}.{found.kind}" + (".none" if none else f".{found.reason}" if found.reason else "")
        numbers = {"seeds": found.seeds, "fewest": found.fewest, "most": found.most}
        return self.phrases[key].format(*found.amounts, **{name: f"{n or 0:,}" for name, n in numbers.items()})

    def join_list(self, parts: Iterable[str]) -> str:
        *most, last = list(parts) or [""]
        comma, final = self.phrases["list.comma"], self.phrases["list.and"]
        return f"{comma.join(most)}{final}{last}" if most else last

    def format_count(self, key: str, n: int, /, **values: Any) -> str:
        """Return a phrase with a number: `KEY.one` for 1, else `KEY`."""
        return self.phrase(f"{key}.one" if n == 1 else key, n=f"{n:,}", **values)


def read_phrases(file: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return a file's phrases and words. Of a phrase that counts, `KEY[one]` becomes `KEY.one`, `KEY[other]` `KEY`."""
    found = tomllib.loads(file.read_text(encoding="utf-8"))
    phrases: dict[str, str] = {}
    for key, text in found["phrases"].items():
        name, _, number = key.partition("[")
        phrases[f"{name}.one" if number == "one]" else name] = text
        if number == "other]":
            phrases.setdefault(f"{name}.one", text)
    return phrases, found.get("words", {})


@cache
def load_language(code: str) -> Language:
    """Return one of `LANGUAGES`."""
    phrases, words = read_phrases(Path(__file__).parent / "phrases" / f"{code}.toml")
    return Language(code, phrases, catalogue(code), words)


ENGLISH = load_language("en")
CURRENT_LANGUAGE = load_language(language_code())
