import ast
from pathlib import Path
from pkgutil import resolve_name
from typing import get_args

import pytest

import engine
import tui_transformer
from engine.base.language import translate
from engine.config.keys import all_keys
from engine.config.schema import RunConfig
from engine.config.sections import ObjectiveConfig
from engine.config.tasks import TASKS, TaskKind, task_named
from engine.data.objectives import Objective, make_objective
from engine.data.tokenizers import AnyTokenizer
from engine.model.transformer import Network
from engine.tasks.pipeline import Pipeline
from engine.tasks.task import Task
from tests.legal_cells import legal_cells
from tui_transformer.lab.reports.languages import LANGUAGES, load_report_language

ROOT = Path(engine.__path__[0]).parent
PRODUCT = [file for room in (engine, tui_transformer) for file in Path(room.__path__[0]).rglob("*.py")]


def test_every_objective_of_a_config_says_what_it_is_and_no_other_does() -> None:
    kinds = get_args(ObjectiveConfig.model_fields["kind"].annotation)
    assert tuple(TASKS) == kinds and all(task.name == kind for kind, task in TASKS.items())


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_what_a_task_names_is_there(task: TaskKind) -> None:
    assert issubclass(resolve_name(task.task), Task)
    assert callable(resolve_name(task.examples))
    assert issubclass(resolve_name(task.pipeline), Pipeline)
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
    words = [translate(task.aim, load_report_language(code)) for task in TASKS.values()]
    assert len(set(words)) == len(TASKS)
    assert code == "en" or not set(words) & set(TASKS)


def test_an_unknown_objective_is_taken_for_what_most_have_in_common() -> None:
    for name in ("a later version's", "", None, ["next-token"]):
        task = task_named(name)
        assert (task.unit, task.continues, task.corpus, task.row_name) == ("character", False, "text", "")


def reads_the_kind(tree: ast.AST) -> bool:
    """Whether code reads `objective.kind`: of a config, or of a table by its key, dotted or not."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr="kind", value=ast.Attribute(attr="objective") | ast.Name(id="objective")):
                return True
            case ast.Subscript(slice=key):
                keys = [key]
            case ast.Call(func=ast.Name(id="Message" | "tr")):
                continue  # a text
            case ast.Call(args=keys):
                pass
            case _:
                continue
        if any(isinstance(key, ast.Constant) and key.value in ("objective.kind", "objective") for key in keys):
            return True
    return False


def classes_asked_for(tree: ast.AST) -> set[str]:
    """The names in `isinstance`, `issubclass`, a comparison of types, and a `case` by class."""
    asked: list[ast.AST] = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]):
                asked.append(kinds)
            case ast.Compare(left=ast.Call(func=ast.Name(id="type"))):
                asked.append(node)
            case ast.MatchClass(cls=kind):
                asked.append(kind)
    return {getattr(name, "id", getattr(name, "attr", "")) for part in asked for name in ast.walk(part)}


def family(base: type) -> set[type]:
    return {base}.union(*map(family, base.__subclasses__()))


def test_only_the_config_reads_the_kind_and_nobody_asks_for_the_class_of_a_network_a_tokenizer_or_a_task() -> None:
    trees = {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text("utf-8")) for file in PRODUCT}
    reads = [name for name, tree in trees.items() if reads_the_kind(tree)]
    assert len(reads) <= 4 and any(name.endswith("schema.py") for name in reads), reads
    for task in TASKS.values():
        assert resolve_name(task.task)  # so that all classes are there
    known = {kind for base in (Network, AnyTokenizer, Task, TaskKind, Objective, Pipeline) for kind in family(base)}
    homes = {(f"{kind.__module__.replace('.', '/')}.py", kind.__name__) for kind in known}
    names = {name for _, name in homes}
    assert {"DecoderLM", "BpeTokenizer", "QuestionTask", "Masked", "SentinelSpans", "SpanPipeline"} <= names
    asks = {(file, name) for file, tree in trees.items() for name in classes_asked_for(tree) & names} - homes
    assert not asks


@pytest.mark.parametrize(
    "code",
    [
        'c.objective.kind == "copy"',
        'objective.kind in ("copy",)',
        'config["objective"]["kind"]',
        'flat.get("objective.kind")',
        'setting(flat, "objective.kind")',
    ],
)
def test_a_reader_of_the_kind_would_be_found(code: str) -> None:
    assert reads_the_kind(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(model, transformer.DecoderLM)",
        "isinstance(model, EncoderLM | DecoderLM)",
        "issubclass(kind, (DecoderLM,))",
        "type(model) is DecoderLM",
        "match model:\n    case DecoderLM():\n        pass",
    ],
)
def test_a_question_for_a_class_would_be_found(code: str) -> None:
    assert "DecoderLM" in classes_asked_for(ast.parse(code))
