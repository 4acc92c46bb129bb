"""Lists in a text, and sentences one after the other, as messages: each language joins them with signs of its own."""

from collections.abc import Iterable

from engine.base.language import Message

SENTENCES = Message("{first} {rest}")
CLAUSES = Message("{first}; {rest}")
PHRASES = Message("{first}, {rest}")
NAMES = Message.in_context("names", "{first}, {rest}")
AS_IT_IS = "{text}"  # of a text that no language translates, such as the name of a run


def join(pair: Message, parts: Iterable[str]) -> Message:
    """Return parts joined as `pair` joins two; in halves, so that those of a long list do not nest deeply."""
    found = list(parts)
    if len(found) < 2:
        return _message(found[0] if found else "")
    middle = len(found) // 2
    return Message(pair, first=join(pair, found[:middle]), rest=join(pair, found[middle:]))


def join_names(names: Iterable[str]) -> Message:
    """Return `a, b and c`."""
    *most, last = list(names) or [""]
    return Message("{items} and {last}", items=join(NAMES, most), last=last) if most else _message(last)


def join_choices(names: Iterable[str]) -> Message:
    """Return `a, b or c`."""
    *most, last = names
    return Message("{items} or {last}", items=join(NAMES, most), last=last)


def in_brackets(text: str, facts: str) -> Message:
    """Return `text (facts)`; the text alone without facts."""
    return Message("{text} ({facts})", text=text, facts=facts) if facts else _message(text)


def _message(text: str) -> Message:
    return text if isinstance(text, Message) else Message(AS_IT_IS, text=text)
