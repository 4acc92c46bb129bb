"""The language that people are spoken to in. Texts in the code are English; a gettext catalogue translates them.

`tr("{name} is not here", name=name)` looks a text up and fills its gaps; `trn` chooses between singular and plural.
Module-level texts are translated when their module is imported, so the language is chosen before. `plain` marks a text
that is recorded or compared: it is English in every language, and `engine.retelling.told` translates it to show it.
"""

from collections.abc import Callable, Iterable
from gettext import NullTranslations
from typing import Any

Pairs = Iterable[tuple[str, str]]  # messages with their translations, plurals apart
_catalogue = NullTranslations()
_pairs: Callable[[], Pairs] = tuple


def use(catalogue: NullTranslations, pairs: Callable[[], Pairs] = tuple) -> None:
    """Translate with a catalogue from now on; `pairs` gives its messages."""
    global _catalogue, _pairs
    _catalogue, _pairs = catalogue, pairs


def pairs() -> Pairs:
    """Return the messages of the language in use with their translations; none for English."""
    return _pairs()


def code() -> str:
    """Return the language in use, e.g. `en`."""
    return _catalogue.info().get("language", "en")


def tr(text: str, /, **values: Any) -> str:
    """Return a text in the language in use; if values are given, they fill its gaps as `str.format` does."""
    said = _catalogue.gettext(text) if text else ""  # gettext keeps its own header under ""
    return said.format(**values) if values else said


def trn(one: str, other: str, n: int, /, **values: Any) -> str:
    """Return `one` if n is 1, else `other`, or as the language in use counts; `{n}` in it is the number."""
    return _catalogue.ngettext(one, other, n).format(n=n, **values)


def plain(text: str, /, **values: Any) -> str:
    """Return a text in English, whatever the language in use; the catalogue has it, so that it can be shown in any."""
    return text.format(**values) if values else text
