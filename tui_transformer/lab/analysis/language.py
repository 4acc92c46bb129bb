"""Sentences of a comparison before and after translation: a phrase's key and the values for its gaps.

The modules that know the numbers decide what is said, and when. A language is a table of phrases; the English one is
`english.toml`, others bring their own. Pure.
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
    """Text that is not translated yet."""

    key: str  # of the phrase
    # values for its gaps; a `Message` among them is translated first, a `Word` is looked up
    values: Mapping[str, Any] = field(default_factory=dict)


class Word(str):
    """One of the program's terms, such as a state or a score's name, which a language may translate."""

    __slots__ = ()


@dataclass(frozen=True)
class Language:
    code: str  # as `--language` has it
    phrases: Mapping[str, str]  # key -> text with named gaps
    # the program's English words -> this language's; unchanged if absent
    words: Mapping[str, str] = field(default_factory=dict)
    # badge -> what it means, what to do; English if absent
    badges: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def say(self, key: str, /, **values: Any) -> str:
        return self.phrases[key].format(**{name: self._said(value) for name, value in values.items()})

    def tell(self, message: Message) -> str:
        return self.say(message.key, **message.values)

    def _said(self, value: Any) -> Any:
        if isinstance(value, Message):
            return self.tell(value)
        return self.word(value) if isinstance(value, Word) else value

    def word(self, english: str) -> str:
        """Translate one of the program's words; user-given names are never looked up."""
        return self.words.get(english, english)

    def badge(self, name: str) -> Badge:
        """Return a badge's meaning in this language."""
        known = self.badges.get(name)
        return replace(badge(name), means=known[0], advice=known[1]) if known is not None else badge(name)

    def judgement(self, found: Judgement, form: str = "judged") -> str:
        """Return a verdict in words; `brief` where its numbers are shown beside it."""
        none = found.kind == "same" and not found.amounts
        key = f"{form}.{found.kind}" + (".none" if none else f".{found.reason}" if found.reason else "")
        numbers = {"seeds": found.seeds, "fewest": found.fewest, "most": found.most}
        return self.phrases[key].format(*found.amounts, **{name: f"{n or 0:,}" for name, n in numbers.items()})

    def joined(self, parts: Iterable[str]) -> str:
        *most, last = list(parts) or [""]
        comma, final = self.phrases["list.comma"], self.phrases["list.and"]
        return f"{comma.join(most)}{final}{last}" if most else last

    def counted(self, key: str, n: int, /, **values: Any) -> str:
        """Return a phrase with a number: `KEY.one` for 1, else `KEY`."""
        return self.say(f"{key}.one" if n == 1 else key, n=f"{n:,}", **values)


PHRASES: Mapping[str, str] = tomllib.loads(Path(__file__).with_name("english.toml").read_text(encoding="utf-8"))
ENGLISH = Language("en", PHRASES)
