"""The languages of reports: the program's messages, but for the words that a report has otherwise."""

from functools import cache
from gettext import NullTranslations

from engine.base.language import Message
from tui_transformer.catalogues import catalogue
from tui_transformer.languages import LANGUAGES

__all__ = ["LANGUAGES", "load_report_language"]
# Probes, which a report names as their files do, components of a network, a split and kinds of tokens.
WORDS = (
    Message.in_context("report", "recall"),
    Message.in_context("report", "near recall"),
    Message.in_context("report", "far recall"),
    Message.in_context("report", "rhyme"),
    Message.in_context("report", "bracket"),
    Message.in_context("report", "counter"),
    Message.in_context("report", "bind"),
    Message.in_context("report", "source embedding"),
    Message.in_context("report", "positions"),
    Message.in_context("report", "unseen_pairs"),
    Message.in_context("report", "bytes"),
    Message.in_context("report", "loaded"),
)


class ReportCatalogue(NullTranslations):
    """A catalogue in which messages in the context `report` go before those without a context."""

    def __init__(self, messages: NullTranslations) -> None:
        super().__init__()
        self.add_fallback(messages)
        self.pairs = getattr(messages, "pairs", tuple)  # for texts that earlier versions recorded
        self._words = {str(word): word.translated(messages) for word in WORDS}

    def gettext(self, message: str) -> str:
        return self._words.get(message) or super().gettext(message)


@cache
def load_report_language(code: str) -> NullTranslations:
    """Return one of `LANGUAGES`."""
    return ReportCatalogue(catalogue(code))
