"""Report languages: what a comparison says, the phrases of `phrases/CODE.toml` and the aims of the tasks."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from engine.config.tasks import TASKS
from tui_transformer.lab.analysis import language as comparison
from tui_transformer.lab.analysis.language import Language
from tui_transformer.languages import LANGUAGES

__all__ = ["LANGUAGES", "load_report_language"]


@cache
def load_report_language(code: str) -> Language:
    """Return one of `LANGUAGES`."""
    base = comparison.load_language(code)
    phrases, words = comparison.read_phrases(Path(__file__).parent / "phrases" / f"{code}.toml")
    aims = {name: base.translate(task.aim) for name, task in TASKS.items()}
    return replace(base, phrases={**base.phrases, **phrases}, words={**base.words, **aims, **words})
