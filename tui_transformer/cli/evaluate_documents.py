"""`evaluate` for runs on documents and on questions: loss, facts recalled, answers, and a file of predictions."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import InputError, refused
from engine.runs.files import write_named
from engine.runs.reader import RunReader
from tui_transformer.cli.evaluate import Asked, changed, require_same_text
from tui_transformer.cli.run import loading
from tui_transformer.lab.formatting import count

if TYPE_CHECKING:
    import torch

    from engine.config.schema import RunConfig
    from engine.data.tokenizers import AnyTokenizer
    from engine.model.transformer import Network
    from engine.training.document_tasks import QuestionTask, SpanTask

SHOWN = 3  # questions beside their answers


def score_documents(reader: RunReader, asked: Asked) -> tuple[dict[str, Any], list[str]]:
    """The loss of a split of documents, corrupted as in training, and the facts that are recalled."""
    with loading("loading the model and the corpus"):
        from engine.training.document_tasks import SpanTask

        config, where, model, tokenizer, step = _loaded(reader, asked)
        task = SpanTask.load(config, asked.data_dir, tokenizer)
        _require_same(reader, task, "documents-", asked.split)
        scorer = task.scorer(config, where, asked.split)
    with loading(f"scoring {count(len(scorer.documents), 'document')}"):
        record = scorer.record(model)
    words = [
        f"  loss                {record['loss']:.4f} nats per token, masks and all",
        f"  perplexity          {record['perplexity']:.4f}",
        f"  accuracy            {record['accuracy']:.2%}",
        *(
            f"  {name:18}  {share:.1%} of {len(task_facts):,} facts, exactly"
            for name, share, task_facts in (
                (name, share, scorer.facts[name]) for name, share in record["probes"].items()
            )
        ),
    ]
    return {"step": step, **record}, words


def score_questions(reader: RunReader, asked: Asked) -> tuple[dict[str, Any], list[str]]:
    """How many questions of a split are answered exactly; of a blind split, the answers alone."""
    with loading("loading the model and the corpus"):
        from engine.training.document_tasks import QuestionTask

        config, where, model, tokenizer, step = _loaded(reader, asked)
        task = QuestionTask.load(config, asked.data_dir, tokenizer)
        _require_same(reader, task, "questions-", asked.split)
        scorer = task.scorer(config, where, asked.split)
    with loading(f"answering {count(len(scorer.questions), 'question')}"):
        record = scorer.record(model)
    if asked.predictions is not None:
        _write(asked.predictions, scorer.predictions())
    words = _words(record, task, asked.split)
    answers = scorer.predictions().splitlines()
    for question, answer in list(zip(scorer.questions, answers, strict=True))[:SHOWN]:
        words += [f"  {question.text}", f"  → {answer}"]
        if question.answer is not None and question.answer != answer:
            words.append(f"  = {question.answer}")
    if asked.predictions is not None:
        words.append(f"  {count(len(answers), 'answer')} in {asked.predictions}, a line each")
    return {"step": step, **record}, words


def _loaded(reader: RunReader, asked: Asked) -> "tuple[RunConfig, torch.device, Network, AnyTokenizer, int]":
    """What either kind is scored with: config, device, network, the run's own tokenizer, the checkpoint's step."""
    from engine.training.checkpoint import load_network
    from engine.training.devices import resolve_device
    from engine.training.numerics import set_fp32_matmul

    where = resolve_device(asked.device)
    set_fp32_matmul("exact")
    return changed(reader.config, batch_size=asked.batch_size), where, *load_network(reader, asked.checkpoint, where)


def _words(record: dict[str, Any], task: "QuestionTask", split: str) -> list[str]:
    if "exact_match" not in record:
        answered = count(record["questions"], "question")
        return [f"  {answered} answered; what is right is not told, so there is no score"]
    answer, right, of = task.corpus.majority(split)
    return [
        f"  exact match  {record['exact_match']:.2%}   "
        f"{record['right']:,} of {record['questions']:,} questions, greedily",
        f"  always “{answer}” would be right in {right / of:.2%} ({right:,} of {of:,})",
        f"  loss         {record['loss']:.4f} nats per token of an answer, the marks around it included",
        f"  perplexity   {record['perplexity']:.4f}",
        f"  accuracy     {record['accuracy']:.2%} of these tokens",
    ]


def _require_same(reader: RunReader, task: "SpanTask | QuestionTask", part: str, split: str) -> None:
    hashes = {name.removeprefix(part): value for name, value in task.sha256.items() if name.startswith(part)}
    require_same_text(reader, task.name, hashes, split, part=part)


def _write(path: Path, text: str) -> None:
    try:
        write_named(path, text)
    except OSError as error:
        raise refused(f"--predictions {str(path)[:200]}: cannot be written", error) from None
    except ValueError as error:  # a zero byte in its name
        raise InputError(f"--predictions {str(path)[:200]}: cannot be written: {error}") from None
