"""Sentences of a comparison before and after they are put into a language: a phrase's key with what stands in it.

What is said, and when, is decided once, in the modules that know the numbers. A language is a table of phrases; the
English one is `english.toml`, others bring their own. Pure.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tui_transformer.lab.analysis.statistics import Judgement
from tui_transformer.lab.records.badges import Badge, badge


@dataclass(frozen=True)
class Message:
    """A few words in no language yet.

    Args:
        key: of the phrase.
        values: what stands in it; a `Message` among them is put into the language first, a `Word` is looked up.
    """

    key: str
    values: Mapping[str, Any] = field(default_factory=dict)


class Word(str):
    """A word that this program uses for something, such as a state or a score's name: a language may have its own."""

    __slots__ = ()


@dataclass(frozen=True)
class Language:
    """How a comparison speaks.

    Args:
        code: as `--language` has it.
        phrases: key -> text with named gaps.
        words: the program's English words -> this language's; the same word where it has none.
        badges: badge -> what it means, what to do; English where it has none.
    """

    code: str
    phrases: Mapping[str, str]
    words: Mapping[str, str] = field(default_factory=dict)
    badges: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def say(self, key: str, /, **values: Any) -> str:
        """Return the phrase of that key with its gaps filled."""
        return self.phrases[key].format(**{name: self._said(value) for name, value in values.items()})

    def tell(self, message: Message) -> str:
        """Return a message in this language."""
        return self.say(message.key, **message.values)

    def _said(self, value: Any) -> Any:
        if isinstance(value, Message):
            return self.tell(value)
        return self.word(value) if isinstance(value, Word) else value

    def word(self, english: str) -> str:
        """Return a word of the program's; names that people gave are never looked up."""
        return self.words.get(english, english)

    def badge(self, name: str) -> Badge:
        """Return what a badge means, in this language."""
        known = self.badges.get(name)
        return replace(badge(name), means=known[0], advice=known[1]) if known is not None else badge(name)

    def judgement(self, found: Judgement, form: str = "judged") -> str:
        """Return a verdict in words; in form `brief`, where its numbers stand beside it."""
        none = found.kind == "same" and not found.amounts
        key = f"{form}.{found.kind}" + (".none" if none else f".{found.reason}" if found.reason else "")
        numbers = {"seeds": found.seeds, "fewest": found.fewest, "most": found.most}
        return self.phrases[key].format(*found.amounts, **{name: f"{n or 0:,}" for name, n in numbers.items()})

    def joined(self, parts: Iterable[str]) -> str:
        """Return `a, b and c`."""
        *most, last = list(parts) or [""]
        comma, final = self.phrases["list.comma"], self.phrases["list.and"]
        return f"{comma.join(most)}{final}{last}" if most else last

    def counted(self, key: str, n: int, /, **values: Any) -> str:
        """Return a phrase with a number: that of `KEY.one` for 1, else of `KEY`."""
        return self.say(f"{key}.one" if n == 1 else key, n=f"{n:,}", **values)


REASONS = ("", ".open", ".never", ".identical", ".questions")  # why a verdict is inconclusive, as endings of keys
PHRASES: Mapping[str, str] = tomllib.loads(Path(__file__).with_name("english.toml").read_text(encoding="utf-8"))
ENGLISH = Language("en", PHRASES)
