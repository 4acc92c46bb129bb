"""`evaluate`: score any checkpoint of any run, on any split, with any stride; the score says all of it."""

from pathlib import Path

from engine.errors import InputError, one_of
from engine.runs.reader import RunReader
from tui_transformer.clean import clean_line
from tui_transformer.commands.run import loading
from tui_transformer.exit_codes import ExitCode
from tui_transformer.output import emit, stamp
from tui_transformer.words import unit

SPLITS = ("train", "validation", "test")


def evaluate_command(
    run: str,
    *,
    split: str,
    checkpoint: str,
    stride: int | None,
    batch_size: int | None,
    device: str,
    as_json: bool,
    runs_dir: Path,
    data_dir: Path | None,
) -> int:
    """Print loss, perplexity, bits per character, accuracy and probe scores."""
    if split not in SPLITS:
        raise InputError(f"--split {split[:40]!r}: must be {one_of(SPLITS)}")
    reader = RunReader.resolve(run, runs_dir)
    config = reader.config
    context = config.model.context_length
    stride = config.stride if stride is None else stride
    if not 1 <= stride <= config.window_targets:
        raise InputError(f"--stride {stride}: must be from 1 to the context of this run, {config.window_targets}")
    stamp(reader)
    with loading("loading the model and the corpus"):
        import torch

        from engine import capabilities
        from engine.data.corpora import load_corpus
        from engine.evaluation.evaluator import Evaluator
        from engine.training.checkpoint import load_trained
        from engine.training.devices import resolve_device
        from engine.training.numerics import set_fp32_matmul

        where = resolve_device(device)
        set_fp32_matmul("exact")
        model, tokenizer, step = load_trained(reader, checkpoint, where)
        corpus = load_corpus(config.data, data_dir)
        if split not in corpus.splits:
            raise InputError(f"run '{reader.name}' has no {split} split; it has {one_of(corpus.splits)}")
        recorded = (reader.facts("data").get("sha256") or {}).get(split)
        if recorded != corpus.sha256[split]:
            raise InputError(
                f"corpus {corpus.name}: its {split} split is not the one that run '{reader.name}' was made with "
                "(another SHA-256); put the original text back, or train a new run on this one"
            )
        part = corpus.splits[split]
        tokens = torch.from_numpy(tokenizer.encode(part.text)).to(where)
    changed = capabilities.with_value(config, "evaluation.stride", stride)
    if batch_size is not None:
        changed = capabilities.with_value(changed, "evaluation.batch_size", batch_size)
    with loading(f"scoring {len(part.text):,} characters"):
        record = Evaluator(changed, part, tokens, tokenizer.vocab_size).record(model)
    named = {"run": reader.name, "split": split, "checkpoint": checkpoint, "step": step, "badges": list(reader.badges)}
    if as_json:
        emit({"kind": "evaluation", **named, **record})
        return ExitCode.DONE
    print(clean_line(f"{reader.name}, checkpoint {checkpoint} (step {step:,}), {split} split of {corpus.version}"))
    of = unit(config.objective.kind)
    print(f"  loss                {record['loss']:.4f} nats per {of}, context {context}, stride {stride}")
    print(f"  perplexity          {record['perplexity']:.4f}")
    if "bits_per_character" in record:
        print(f"  bits per character  {record['bits_per_character']:.4f}")
    print(f"  accuracy            {record['accuracy']:.2%}")
    if record.get("honest_loss") is not None:
        print(f"  of what it cannot copy  {record['honest_loss']:.4f} nats: all other answers stand in its input")
    if "excess" in record:
        print(f"  above the floor     {record['excess']:+.4f} nats per character")
    if "nanogpt_loss" in record:
        print(f"  nanoGPT's batches   {record['nanogpt_loss']:.4f}")
    for name, score in record["probes"].items():
        print(f"  {clean_line(name):18}  {score:.1%}")
    return ExitCode.DONE
