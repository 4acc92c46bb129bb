"""Choose the task of a config or a run: text, sentence pairs, documents, or questions about documents."""

from dataclasses import replace
from pathlib import Path

from engine.config.schema import RunConfig
from engine.data.tokenizers import AnyTokenizer, read_tokenizer
from engine.runs.reader import RunReader
from engine.training.document_tasks import QuestionTask, SpanTask
from engine.training.task import Task
from engine.training.text_task import TextTask
from engine.training.translation_task import TranslationTask


def make_task(config: RunConfig, data_dir: Path | None, tokenizer: AnyTokenizer | None = None) -> Task:
    kind: type[Task] = TextTask
    if config.translates:
        kind = TranslationTask
    elif config.on_documents:
        kind = QuestionTask if config.answers else SpanTask
    return kind.load(config, data_dir, tokenizer)


def task_of_run(reader: RunReader, data_dir: Path | None) -> Task:
    """Load the task of a run: with its scoring rules, and its tokenizer if it started from another's weights."""
    config = reader.config
    kept = None if config.train.init_from is None else read_tokenizer(reader.path / "tokenizer.json")
    task = make_task(config, data_dir, kept)
    return replace(task, records=reader.run.records) if isinstance(task, TextTask) else task
