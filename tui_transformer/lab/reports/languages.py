"""The languages of a report."""

from tui_transformer.lab.reports.language_en import ENGLISH
from tui_transformer.lab.reports.language_zh import CHINESE

LANGUAGES = {language.code: language for language in (ENGLISH, CHINESE)}
