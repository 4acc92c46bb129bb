"""The language of all text that people read. Texts in the code are English; a gettext catalogue translates them.

`tr("{name} is not here", name=name)` looks a text up and fills its gaps; `trn` chooses between singular and plural.
What is recorded, exported or compared is English: a `Message` is that English, and remembers its template and values,
so that `tr` can translate it where it is shown. A record has both: see `with_messages` and `recorded_message`.
"""

from collections.abc import Iterator, Mapping
from gettext import NullTranslations
from typing import Any

from engine.base.clean import clean

MESSAGES = "messages"  # the part of a record that has the messages of its texts
LONGEST_VALUE = 1000  # characters of a message's value that are recorded and read; the rest is cut
DEEPEST = 8  # messages within each other
JOINED = "{first}{rest}"  # the template of messages joined by `+`
CONTEXT_END = "\x04"  # after a message's context in its template, as in an MO file
_catalogue = NullTranslations()


class Message(str):
    """A text of the program: a string in English that can be translated. Its values may be messages, `+` joins them."""

    __slots__ = ("plural", "template", "values")
    template: str
    plural: str  # its form unless `values["n"]` is 1; "" if it has one form
    values: Mapping[str, Any]

    def __new__(cls, template: str, /, **values: Any) -> "Message":
        if isinstance(template, Message):
            if not values:
                return template
            values = {**template.values, **values}
            if template.plural:
                return cls.counted(template.template, template.plural, values.pop("n"), **values)
            template = template.template
        text = template.rpartition(CONTEXT_END)[2]
        made = super().__new__(cls, text.format(**values) if values else text)
        made.template, made.plural, made.values = template, "", values
        return made

    @classmethod
    def in_context(cls, context: str, text: str, /, **values: Any) -> "Message":
        """Return a text that has another translation than the same English elsewhere; `context` says where it is."""
        return cls(context + CONTEXT_END + text, **values)

    @classmethod
    def counted(cls, one: str, other: str, n: int, /, **values: Any) -> "Message":
        """Return `one` if n is 1, else `other`; `{n}` in it is the number."""
        made = cls(one if n == 1 else other, n=n, **values)
        made.template, made.plural = one, other
        return made

    def format(self, *_: object, **values: Any) -> "Message":
        """Return it with values for its remaining gaps."""
        return Message(self, **values)

    def __add__(self, rest: str, /) -> "Message":
        return Message(JOINED, first=self, rest=rest)

    def __radd__(self, first: str, /) -> "Message":
        return Message(JOINED, first=first, rest=self)

    def translated(self, catalogue: NullTranslations, /, **more: Any) -> str:
        """Return it in a language; `more` fills gaps that have no value yet."""
        values = {**self.values, **more}
        if self.plural:
            return _fill(catalogue.ngettext(self.template, self.plural, values["n"]), values, catalogue)
        said = catalogue.gettext(self.template).rpartition(CONTEXT_END)[2] if self.template else ""
        return _fill(said, values, catalogue)


class RecordedMessage(Message):
    """A message from a file. Nothing in it is trusted: where the program lacks its template, its text is shown."""

    __slots__ = ()

    def translated(self, catalogue: NullTranslations, /, **more: Any) -> str:
        known = self.template == JOINED or catalogue.gettext(self.template) != self.template
        if not known or ("{" in self.template and not self.values):
            return str(self)
        try:
            return super().translated(catalogue, **more)
        except (ValueError, LookupError, TypeError):  # a value is missing or has the wrong type
            return str(self)


def set_catalogue(catalogue: NullTranslations) -> None:
    """Translate with a catalogue from now on."""
    global _catalogue
    _catalogue = catalogue


def language_code() -> str:
    """Return the language in use, e.g. `en`."""
    return _catalogue.info().get("language", "en")


def tr(text: str, /, **values: Any) -> str:
    """Return a text in the language in use; if values are given, they fill its gaps as `str.format` does.

    Values that are messages are translated too.
    """
    return translate(text, _catalogue, **values)


def trn(one: str, other: str, n: int, /, **values: Any) -> str:
    """Return `one` if n is 1, else `other`, or as the language in use counts; `{n}` in it is the number."""
    return Message.counted(one, other, n, **values).translated(_catalogue)


def translate(text: str, catalogue: NullTranslations, /, **values: Any) -> str:
    """Return a text in the language of a catalogue, as `tr` does in the language in use."""
    if isinstance(text, Message):
        return text.translated(catalogue, **values)
    return _fill(catalogue.gettext(text), values, catalogue) if text else ""  # gettext keeps its own header under ""


def _fill(said: str, values: Mapping[str, Any], catalogue: NullTranslations) -> str:
    if not values:
        return said
    return said.format(**{k: translate(v, catalogue) if isinstance(v, Message) else v for k, v in values.items()})


def with_messages(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record to be written, with the template and values of each message in it that has values."""
    found = {str(message): _template_and_values(message) for message in _messages_in(record) if message.values}
    return {**record, MESSAGES: found} if found else dict(record)


def recorded_message(text: str, messages: object) -> str:
    """Return a recorded text, cleaned, as its message if there is one among the messages of its record."""
    found = messages.get(text) if isinstance(messages, Mapping) else None
    return _read_message(text, found, DEEPEST) or clean(text)


def _messages_in(value: object) -> Iterator[Message]:
    if isinstance(value, Message):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _messages_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _messages_in(part)


def _template_and_values(message: Message) -> dict[str, Any]:
    plural = {"plural": message.plural} if message.plural else {}
    values = {name: _recorded_value(value) for name, value in message.values.items()}
    return {"template": message.template, **plural, "values": values}


def _recorded_value(value: object) -> object:
    if isinstance(value, Message):
        return {"text": str(value), **_template_and_values(value)}
    return value if value is None or isinstance(value, int | float) else str(value)[:LONGEST_VALUE]


def _read_message(text: str, found: object, deepest: int) -> RecordedMessage | None:
    if not (deepest and isinstance(found, Mapping)):
        return None
    template, plural, values = found.get("template"), found.get("plural", ""), found.get("values")
    if not (isinstance(template, str) and isinstance(plural, str) and isinstance(values, Mapping)):
        return None
    message = RecordedMessage(clean(text))
    message.template, message.plural = template, plural
    message.values = {str(name): _read_value(value, deepest - 1) for name, value in values.items()}
    return message


def _read_value(value: object, deepest: int) -> object:
    if isinstance(value, Mapping):
        text = clean(str(value.get("text", ""))[:LONGEST_VALUE])
        return _read_message(text, value, deepest) or text
    return value if value is None or isinstance(value, int | float) else clean(str(value)[:LONGEST_VALUE])
