"""Report languages: the phrases of `phrases/CODE.toml` and the aims of the tasks, read on first use."""

import tomllib
from functools import cache
from importlib import resources

from engine.config.tasks import TASKS
from tui_transformer.lab.analysis import language as comparison
from tui_transformer.lab.analysis.language import Language

LANGUAGES = ("en", "zh")


@cache
def language(code: str) -> Language:
    """Return one of `LANGUAGES`; English comparison sentences come from that module."""
    file = resources.files(__package__) / "phrases" / f"{code}.toml"
    found = tomllib.loads(file.read_text("utf-8"))
    phrases: dict[str, str] = dict(comparison.PHRASES) if code == "en" else {}
    for key, text in found["phrases"].items():
        name, _, number = key.partition("[")  # of a phrase that counts things: `KEY[one]`, `KEY[other]`
        if number == "one]":
            phrases[f"{name}.one"] = text
        else:
            phrases[name] = text
        if number == "other]":
            phrases.setdefault(f"{name}.one", text)
    badges = {name: (texts["means"], texts["advice"]) for name, texts in found.get("badges", {}).items()}
    aims = {name: task.aim[code] for name, task in TASKS.items() if code in task.aim}
    return Language(code, phrases, aims | found["words"], badges)
