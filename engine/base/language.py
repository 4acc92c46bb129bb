"""The language of all text that people read. Texts in the code are English; a gettext catalogue translates them.

`tr("{name} is not here", name=name)` looks a text up and fills its gaps; `trn` chooses between singular and plural.
Module-level texts are translated when their module is imported, so the language is chosen first. What is recorded,
exported or compared stays English: `english(…)` puts it into the catalogue; where it is shown, `tr` translates it, or
`told` of `engine/base/recorded_text.py` if it has filled gaps.
"""

from collections.abc import Iterable
from gettext import NullTranslations
from typing import Any

_catalogue = NullTranslations()


def set_catalogue(catalogue: NullTranslations) -> None:
    """Translate with a catalogue from now on."""
    global _catalogue
    _catalogue = catalogue


def language_code() -> str:
    """Return the language in use, e.g. `en`."""
    return _catalogue.info().get("language", "en")


def translations() -> Iterable[tuple[str, str]]:
    """Return the messages of the language in use with their translations; none in English."""
    return getattr(_catalogue, "pairs", tuple)()


def tr(text: str, /, **values: Any) -> str:
    """Return a text in the language in use; if values are given, they fill its gaps as `str.format` does."""
    said = _catalogue.gettext(text) if text else ""  # gettext keeps its own header under ""
    return said.format(**values) if values else said


def trn(one: str, other: str, n: int, /, **values: Any) -> str:
    """Return `one` if n is 1, else `other`, or as the language in use counts; `{n}` in it is the number."""
    return _catalogue.ngettext(one, other, n).format(n=n, **values)


def english(text: str, /, **values: Any) -> str:
    """Return the text itself, its gaps filled, which is translated where it is shown."""
    return text.format(**values) if values else text
