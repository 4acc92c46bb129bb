import re
from pathlib import Path
from pkgutil import resolve_name
from typing import get_args

import pytest

import engine
import tui_transformer
from engine.config.keys import all_keys
from engine.config.schema import RunConfig
from engine.config.sections import ObjectiveConfig
from engine.config.tasks import TASKS, TaskKind, task_named
from engine.data.objectives import make_objective
from engine.training.task import Task
from tests.legal_cells import legal_cells
from tui_transformer.lab.reports.languages import LANGUAGES, language

PRODUCT = [file for room in (engine, tui_transformer) for file in Path(room.__path__[0]).rglob("*.py")]


def test_every_objective_of_a_config_says_what_it_is_and_no_other_does() -> None:
    kinds = get_args(ObjectiveConfig.model_fields["kind"].annotation)
    assert tuple(TASKS) == kinds and all(task.name == kind for kind, task in TASKS.items())


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_what_a_task_names_is_there(task: TaskKind) -> None:
    assert issubclass(resolve_name(task.task), Task)
    assert callable(resolve_name(task.examples))
    assert set(task.settings) <= set(all_keys())
    assert not set(task.architectures) & set(task.why_not)


def test_every_task_has_a_legal_network_whose_examples_are_as_long_as_it_says() -> None:
    axes = {"objective.kind": tuple(TASKS), "model.architecture": ("decoder", "encoder", "encoder-decoder")}
    base = RunConfig.model_validate({"model": {"context_length": 32}, "train": {"allow_leak": True}})
    found = list(legal_cells(base, axes))
    assert {cell.task.name for cell in found} == set(TASKS)
    for cell in found:
        assert make_objective(cell, 50).window == cell.window_tokens


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_report_calls_each_task_by_words_of_its_own(code: str) -> None:
    words = [language(code).word(name) for name in TASKS]
    assert len(set(words)) == len(TASKS)
    assert code == "en" or not set(words) & set(TASKS)


def test_an_unknown_objective_is_taken_for_what_most_have_in_common() -> None:
    for name in ("a later version's", "", None, ["next-token"]):
        task = task_named(name)
        assert (task.unit, task.continues, task.corpus, task.rows) == ("character", False, "text", "")


def test_only_the_config_reads_the_kind_and_nobody_asks_for_the_class_of_a_task() -> None:
    texts = {file.relative_to(file.parents[2]).as_posix(): file.read_text("utf-8") for file in PRODUCT}
    reads = [name for name, text in texts.items() if re.search(r"\bobjective\.kind\b(?! =)(?![\"'`),])", text)]
    asks = [name for name, text in texts.items() if re.search(r"isinstance\([^()]*(Task|Writer)\b", text)]
    assert len(reads) <= 4 and any(name.endswith("schema.py") for name in reads), reads
    assert not asks
