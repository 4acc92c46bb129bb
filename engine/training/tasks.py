"""Make the task of a config or a run; `engine.config.tasks` names each objective's class."""

from pathlib import Path
from pkgutil import resolve_name

from engine.config.schema import RunConfig
from engine.data.tokenizers import AnyTokenizer, read_tokenizer
from engine.runs.reader import RunReader
from engine.training.task import Task


def task_class(config: RunConfig) -> type[Task]:
    found: type[Task] = resolve_name(config.task.task)
    return found


def make_task(config: RunConfig, data_dir: Path | None, tokenizer: AnyTokenizer | None = None) -> Task:
    return task_class(config).load(config, data_dir, tokenizer)


def task_of_run(reader: RunReader, data_dir: Path | None) -> Task:
    """Load the task of a run: with its scoring rules, and its tokenizer if it started from another's weights."""
    config = reader.config
    kept = None if config.train.init_from is None else read_tokenizer(reader.path / "tokenizer.json")
    return make_task(config, data_dir, kept).scored_by(reader.run.records)
