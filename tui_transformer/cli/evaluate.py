"""`evaluate`: score any checkpoint of any run, on any split, with any stride; the score says all of it.

Runs on documents and questions are scored in `evaluate_documents`.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.clean import clean, clean_line
from engine.errors import InputError, one_of
from engine.runs.reader import RunReader
from tui_transformer.cli.exit_codes import ExitCode
from tui_transformer.cli.output import answer, emit, stamp
from tui_transformer.cli.run import loading
from tui_transformer.lab.formatting import unit
from tui_transformer.lab.records.facts import table
from tui_transformer.lab.records.floors import floors

if TYPE_CHECKING:
    from engine.config.schema import RunConfig

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Asked:
    """What is to be scored, and how."""

    split: str
    checkpoint: str
    stride: int | None
    batch_size: int | None
    beam: int | None
    sentences: int
    device: str
    as_json: bool
    data_dir: Path | None
    predictions: Path | None = None


def evaluate_command(run: str, asked: Asked, *, runs_dir: Path) -> int:
    """Print the scores of a run's checkpoint."""
    reader = RunReader.resolve(run, runs_dir)
    config = reader.config
    if not config.translates and asked.split not in SPLITS:
        raise InputError(f"--split {asked.split[:40]!r}: must be {one_of(SPLITS)}")
    beside = (
        ("--stride", asked.stride, config.on_rows, "is scored row by row and has no windows"),
        ("--beam", asked.beam, not config.translates, "does not translate"),
        ("--predictions", asked.predictions, not config.answers, "answers no questions"),
    )
    for option, value, is_wrong, why in beside:
        if value is not None and is_wrong:
            raise InputError(f"{option} {str(value)[:80]}: run '{reader.name}' {why}; leave it out")
    stamp(reader)
    record, words = _scoring(config)(reader, asked)
    named = {"run": reader.name, "split": asked.split, "checkpoint": asked.checkpoint, "badges": list(reader.badges)}
    if asked.as_json:
        emit({"kind": "evaluation", **named, **record})
    else:
        corpus = reader.raw("data").get("corpus")
        step = f"checkpoint {asked.checkpoint} (step {record['step']:,})"
        answer(clean_line(f"{reader.name}, {step}, {asked.split} split of {corpus}"))
        answer("\n".join(clean(line) for line in words))
    return ExitCode.DONE


def _scoring(config: "RunConfig") -> Callable[[RunReader, Asked], tuple[dict[str, Any], list[str]]]:
    """What scores a run, and says it in words."""
    if config.translates:
        return _score_translation
    if config.on_documents:
        from tui_transformer.cli.evaluate_documents import score_documents, score_questions

        return score_questions if config.answers else score_documents
    return _score_text


def require_same_text(reader: RunReader, corpus: str, splits: Mapping[str, str], split: str, *, part: str = "") -> None:
    """Refuse a split that the corpus has not, or that is not the one the run was made with.

    Args:
        reader: the run.
        corpus: its name.
        splits: hashes by split.
        split: the one that is asked for.
        part: what stands before the split's name in data.json.
    """
    if split not in splits:
        raise InputError(f"run '{reader.name}' has no {split[:40]} split; it has {one_of(splits)}")
    if table(reader.raw("data").get("sha256")).get(part + split) != splits[split]:
        raise InputError(
            f"corpus {corpus}: its {split} split is not the one that run '{reader.name}' was made with "
            "(another SHA-256); put the original text back, or train a new run on this one"
        )


def changed(config: "RunConfig", **values: int | None) -> "RunConfig":
    """A config with other values of `evaluation`, where they are asked for."""
    from engine import capabilities

    for name, value in values.items():
        if value is not None:
            config = capabilities.with_value(config, f"evaluation.{name}", value)
    return config


def _score_text(reader: RunReader, asked: Asked) -> tuple[dict[str, Any], list[str]]:
    config = reader.config
    context = config.model.context_length
    stride = config.stride if asked.stride is None else asked.stride
    if not 1 <= stride <= config.window_targets:
        raise InputError(f"--stride {stride}: must be from 1 to the context of this run, {config.window_targets}")
    with loading("loading the model and the corpus"):
        import torch

        from engine.data.corpora import load_corpus
        from engine.evaluation.scorers import TextScorer
        from engine.training.checkpoint import load_trained
        from engine.training.devices import resolve_device
        from engine.training.numerics import set_fp32_matmul

        where = resolve_device(asked.device)
        set_fp32_matmul("exact")
        model, tokenizer, step = load_trained(reader, asked.checkpoint, where)
        corpus = load_corpus(config.data, asked.data_dir)
        require_same_text(reader, corpus.name, corpus.sha256, asked.split)
        part = corpus.splits[asked.split]
        tokens = torch.from_numpy(tokenizer.encode(part.text)).to(where)
    wanted = changed(config, stride=stride, batch_size=asked.batch_size)
    with loading(f"scoring {len(part.text):,} characters"):
        evaluator = TextScorer(wanted, part, tokens, tokenizer.vocab_size)
        record, reachable = evaluator.record(model), evaluator.reachable
    of = unit(config.objective.kind)
    words = [
        f"  loss                {record['loss']:.4f} nats per {of}, context {context}, stride {stride}",
        f"  perplexity          {record['perplexity']:.4f}",
    ]
    if "bits_per_character" in record:
        words.append(f"  bits per character  {record['bits_per_character']:.4f}")
    words.append(f"  accuracy            {record['accuracy']:.2%}")
    if record.get("honest_loss") is not None:
        words.append(
            f"  of what it cannot copy  {record['honest_loss']:.4f} nats: all other answers stand in its input"
        )
    if "excess" in record:
        facts: dict[str, Any] = {} if reachable is None else {"reachable": reachable.facts()}
        if part.floor_mean is not None:
            facts |= {"nats_per_char": part.floor_mean[0], "se": part.floor_mean[1]}
        record["floor"] = facts
        words.append(f"  above the floor     {record['excess']:+.4f} nats per character")
        words += [f"    {floor.amount}  {floor.words}" for floor in floors(record)]
        if reachable is not None and reachable.read < reachable.windows:
            words.append(f"    of {reachable.read:,} of {reachable.windows:,} windows, evenly spaced")
    if "nanogpt_loss" in record:
        words.append(f"  nanoGPT's batches   {record['nanogpt_loss']:.4f}")
    places = record.get("probe_places", {})
    words += [f"  {name:18}  {share:>6.1%} of {places[name]:,} places" for name, share in record["probes"].items()]
    return {"step": step, **record}, words


def _score_translation(reader: RunReader, asked: Asked) -> tuple[dict[str, Any], list[str]]:
    config = changed(reader.config, beam=asked.beam, batch_size=asked.batch_size, translations=0)
    with loading("loading the model and the corpus"):
        from engine.training.checkpoint import load_translator
        from engine.training.devices import resolve_device
        from engine.training.numerics import set_fp32_matmul
        from engine.training.translation_task import TranslationTask

        where = resolve_device(asked.device)
        set_fp32_matmul("exact")
        model, tokenizer, step = load_translator(reader, asked.checkpoint, where)
        taken_over = tokenizer if config.train.init_from is not None else None
        task = TranslationTask.load(config, asked.data_dir, taken_over)
        require_same_text(reader, task.name, task.sha256, asked.split)
        scorer = task.scorer(config, where, asked.split)
    with loading(f"translating {len(scorer.split.pairs):,} sentences"):
        tokens, written = scorer.token_scores(model), scorer.translations(model, scorer.split)
    rows = [*written.best(asked.sentences), *reversed(written.worst(asked.sentences))]
    record = {
        "step": step,
        "loss": tokens.loss,
        "perplexity": tokens.perplexity,
        "accuracy": tokens.accuracy,
        "beam": config.evaluation.beam,
        "sentences": written.n,
        "bleu": written.bleu,
        "bleu_signature": written.bleu_signature,
        "chrf": written.chrf,
        "chrf_signature": written.chrf_signature,
        "exact_match": written.exact_match,
        "rows": [asdict(row) for row in rows],
    }
    how = "greedily" if config.evaluation.beam == 1 else f"with a beam of {config.evaluation.beam}"
    words = [
        f"  BLEU         {written.bleu:.2f}   {written.n:,} sentences, {how}",
        f"               {written.bleu_signature}",
        f"  chrF         {written.chrf:.2f}   {written.chrf_signature}",
        f"  exact        {written.exact_match:.2%}",
        f"  loss         {tokens.loss:.4f} nats per token, ends included, without smoothing",
        f"  perplexity   {tokens.perplexity:.4f}",
    ]
    for title, some in (("best", written.best(asked.sentences)), ("worst", written.worst(asked.sentences))):
        for row in some:
            words += [
                f"  {title}, chrF {row.score:.1f}",
                f"    {row.source}",
                f"  → {row.output}",
                f"  = {row.reference}",
            ]
    return record, words
