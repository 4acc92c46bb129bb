"""Report languages: what a comparison says, and the phrases of `phrases/CODE.toml`, read on first use."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from tui_transformer.lab.analysis import language as comparison
from tui_transformer.lab.analysis.language import Language
from tui_transformer.languages import LANGUAGES

__all__ = ["LANGUAGES", "language"]


@cache
def language(code: str) -> Language:
    """Return one of `LANGUAGES`."""
    base = comparison.language(code)
    phrases, words = comparison.read(Path(__file__).parent / "phrases" / f"{code}.toml")
    return replace(base, phrases={**base.phrases, **phrases}, words={**base.words, **words})
