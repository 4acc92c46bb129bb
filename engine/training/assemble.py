"""From a config to a trainer that is ready to run: corpus, tokenizer, model, run directory.

Everything that can be wrong with the input is found here, before a run directory exists.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import torch

from engine import capabilities
from engine.config.lints import Lint, lint
from engine.config.schema import RunConfig
from engine.config.toml import resolved
from engine.data.cache import tokens_of
from engine.data.corpora import REGISTRY, TextCorpus, load_corpus
from engine.data.loader import training_batches
from engine.data.objectives import make_objective
from engine.data.tokenizers import CharacterTokenizer
from engine.errors import InputError
from engine.evaluation.baselines import bigram_loss, unigram_loss
from engine.evaluation.evaluator import Evaluator
from engine.generation.samples import Sampler
from engine.model import size
from engine.model.attention import Situation, choose
from engine.model.heads import SelfAttention
from engine.model.span import Span
from engine.model.transformer import Network, build_model
from engine.runs.names import check_name, free_name
from engine.runs.reader import RunReader
from engine.runs.writer import RunWriter
from engine.training import checkpoint
from engine.training.control import Control
from engine.training.devices import busy_share, default_threads, environment, resolve_device
from engine.training.numerics import chosen_precision, compiles
from engine.training.trainer import Trainer

HANDOVER_WAIT = 60.0  # seconds that a process waits for the one that hands a run over
EXACT_IF_SAME = ("device", "threads", "processor", "versions")  # else sums may be taken in another order
MAX_PROMPT = 32  # characters of the validation text that samples continue, where no prompt is set


@dataclass(frozen=True)
class Data:
    """A corpus with its tokenizer and encoded splits, (n,) whole numbers each."""

    corpus: TextCorpus
    tokenizer: CharacterTokenizer
    tokens: dict[str, torch.Tensor]


@dataclass(frozen=True)
class Ready:
    """A run that only has to be started."""

    trainer: Trainer
    path: Path
    lints: Sequence[Lint] = field(default_factory=list)


def load_data(config: RunConfig, data_dir: Path | None) -> Data:
    """Corpus and tokens of a config. The vocabulary is every character of every split, as nanoGPT's is.

    Raises:
        InputError: no such corpus, bad text, or splits too short for the context.
    """
    corpus = load_corpus(config.data, data_dir)
    tokenizer = CharacterTokenizer.of(split.text for split in corpus.splits.values())
    tokens = {
        name: tokens_of(len(split.text), corpus.sha256[name], tokenizer.sha256, partial(tokenizer.encode, split.text))
        for name, split in corpus.splits.items()
    }
    context = config.model.context_length
    for name in ("train", "validation"):
        have = tokens[name].numel() if name in tokens else 0
        shorter_will_do = name == "validation" and config.objective.kind == "next-token"
        needed = 2 if shorter_will_do else config.window_tokens
        if have < needed:
            raise InputError(
                f"corpus {corpus.name}: its {name} split has {have:,} tokens, fewer than the {needed:,} that a context "
                f"of {context:,} needs; use a longer text or --set model.context_length={max(1, have // 4)}"
            )
    return Data(corpus, tokenizer, tokens)


def _prompt(config: RunConfig, data: Data) -> str:
    wanted = config.evaluation.sample_prompt
    if wanted:
        data.tokenizer.encode(wanted)  # refused now, not at step 500
        return wanted
    if config.objective.kind != "next-token":  # a source, or a text to hide parts of
        return data.corpus.splits["validation"].text[: min(config.window_tokens, config.model.source_tokens)]
    first = data.corpus.splits["validation"].text.lstrip("\n")[:MAX_PROMPT]
    return first.split("\n", 1)[0] or first[:1] or data.tokenizer.characters[0]


def _crowded(config: RunConfig, device: torch.device) -> list[Lint]:
    """Threads that wait for each other are many times slower where another program takes one of their cores."""
    threads, cores = config.train.threads or 1, psutil.cpu_count() or 1
    busy = busy_share()
    if device.type != "cpu" or threads < 2 or threads <= cores * (1.0 - busy) + 0.5:
        return []
    text = (
        f"other programs keep {busy:.0%} of this machine's cores busy, and {threads} threads that wait for each other "
    )
    return [Lint("train.threads", text + "can be many times slower then; --set train.threads=1 is safer meanwhile")]


def data_facts(config: RunConfig, data: Data) -> dict[str, Any]:
    """The content of data.json: what the run was trained on, and the lines its loss should be held against.

    The floor is that of a text predicted from its past: a given source or both sides of a gap allow for less.
    """
    train, held_out = (data.tokens[name].numpy() for name in ("train", "validation"))
    from_its_past = config.objective.kind in ("next-token", "continuation", "shifted")
    floor = data.corpus.splits["validation"].floor_mean if from_its_past else None
    return {
        "corpus": data.corpus.version,
        "source": data.corpus.source,
        "sha256": data.corpus.sha256,
        "splits": {
            name: {"characters": len(split.text), "tokens": data.tokens[name].numel()}
            for name, split in data.corpus.splits.items()
        },
        "vocabulary": data.tokenizer.vocab_size,
        "tokenizer_sha256": data.tokenizer.sha256,
        "floor": None if floor is None else {"nats_per_char": floor[0], "se": floor[1]},
        "plausible": REGISTRY[data.corpus.name].plausible if data.corpus.name in REGISTRY else None,
        "unigram": unigram_loss(train, held_out, data.tokenizer.vocab_size),
        "bigram": bigram_loss(train, held_out, data.tokenizer.vocab_size),
        "probes": [
            {
                "name": probe.name,
                "description": probe.description,
                "n": int(probe.at.size),
                "chance": probe.chance,
                "shortcut": probe.shortcut,
            }
            for probe in data.corpus.splits["validation"].probes
        ],
    }


def model_facts(config: RunConfig, model: Network) -> dict[str, Any]:
    """The content of model.json: what was built, read off the module and not off the config."""
    built = sum(parameter.numel() for parameter in model.parameters())
    parts = size.parameters(config.model, model.vocab_size)
    if built != sum(parts.values()):
        raise AssertionError(f"built {built} parameters where the config means {sum(parts.values())}")
    return {
        "parameters": built,
        "components": parts,
        "flops_per_token": size.flops_per_token(config.model, model.vocab_size),
        "memory_bytes": size.memory_bytes(config, model.vocab_size),
        "built": {
            "architecture": type(model).__name__,
            "position": type(_attention(model).scheme).__name__,
            "attention": type(_attention(model)).__name__,
            "backend": training_backend(config, model),
            "precision": chosen_precision(config.train, next(model.parameters()).device),
            "fp32_matmul": config.train.fp32_matmul,
            "compiled": compiles(config.train),
        },
    }


def built(config: RunConfig, vocab_size: int, device: torch.device) -> Network:
    """The model on its device.

    Raises:
        InputError: it does not fit into memory; says how large it is.
    """
    weights = 16 * size.parameter_count(config.model, vocab_size)
    try:
        if device.type == "cpu" and weights > psutil.virtual_memory().available:
            raise MemoryError
        return build_model(config.model, vocab_size, config.seed, device)
    except (RuntimeError, MemoryError):
        count = size.parameter_count(config.model, vocab_size)
        raise InputError(
            f"the model does not fit on {device}: {count:,} parameters with gradients and moments need "
            f"{weights / 1e9:,.1f} GB; fewer layers or a smaller d_model fit"
        ) from None


def _attention(model: Network) -> SelfAttention:
    attention = model.layers[0].get_submodule("attention")
    assert isinstance(attention, SelfAttention)
    return attention


def training_backend(config: RunConfig, model: Network) -> str:
    """The attention backend that a training step uses."""
    if config.model.attention == "linear":
        return "chunked" if config.model.backend == "auto" else config.model.backend
    attention = _attention(model)
    at = Span.run(config.window_targets)
    device = next(model.parameters()).device
    dtype = torch.bfloat16 if chosen_precision(config.train, device) == "bf16" else torch.float32
    heads = torch.empty(1, config.model.n_heads, at.length, config.model.head_width, dtype=dtype, device=device)
    case = Situation(heads, heads, at, at, attention.see, attention.scheme, attention.dropout)
    return choose(case, config.model.backend).name


def assemble(
    config: RunConfig,
    *,
    runs_dir: Path,
    name: str | None = None,
    data_dir: Path | None = None,
    device: str = "auto",
    command: str = "",
    control: Control | None = None,
) -> Ready:
    """Load, build, and open the run directory.

    Args:
        config: what to run, not yet resolved.
        runs_dir: the runs folder.
        name: of the run; by default the preset's, with a number if that is taken.
        data_dir: where named corpora are looked for first.
        device: auto, cpu, cuda, cuda:i or mps.
        command: the command line, for run.json.
        control: how the run will be told to stop.

    Raises:
        InputError: anything wrong with config, data, name or device.
    """
    if name is not None:
        check_name(name)
    loaded = _loaded(config, data_dir, device)
    name = name if name is not None else free_name(runs_dir, config.preset or "run")
    return _opened(loaded, RunWriter.create(runs_dir, name, loaded.config, {"command": command}), control)


def begin(
    run: Path,
    *,
    data_dir: Path | None = None,
    device: str = "auto",
    control: Control | None = None,
    launch: str = "process",
) -> Ready:
    """Take a queued run and make it ready. What is wrong with it is also its end: it has failed.

    Args:
        run: its directory, made by `RunWriter.create` with the state `queued`.
        data_dir: where named corpora are looked for first.
        device: auto, cpu, cuda, cuda:i or mps.
        control: how the run will be told to stop.
        launch: "thread" or "process", for its status.

    Raises:
        InputError: anything wrong with its config, data or device, or it is not queued.
    """
    writer = RunWriter.adopt(run, launch=launch)
    try:
        loaded = _loaded(RunReader(run).config, data_dir, device)
        writer.keep_config(loaded.config)
        return _opened(loaded, writer, control)
    except BaseException as error:
        writer.event("failed", str(error))
        writer.close("failed", str(error))
        raise


@dataclass(frozen=True)
class _Loaded:
    """All that a run needs besides its directory."""

    config: RunConfig
    data: Data
    device: torch.device
    model: Network
    prompt: str
    lints: Sequence[Lint]


def _loaded(config: RunConfig, data_dir: Path | None, device: str) -> _Loaded:
    capabilities.require(config, f"preset '{config.preset}'" if config.preset else "config")
    where = resolve_device(device)
    data = load_data(config, data_dir)
    needed = config.needed_tokens(data.tokenizer.vocab_size)
    if config.model.vocab_size is not None and config.model.vocab_size < needed:
        special = "".join(f" and {name}" for name in config.special_tokens)
        raise InputError(
            f"model.vocab_size = {config.model.vocab_size}: the corpus has {data.tokenizer.vocab_size} different "
            f"characters{special}; leave it out, or set at least {needed}"
        )
    config = resolved(
        config,
        f"preset '{config.preset}'" if config.preset else "config",
        vocab_size=needed,
        threads=default_threads(),
        train_tokens=data.tokens["train"].numel(),
    )
    if config.data.corpus not in REGISTRY:  # a file: the run's own config must find it from anywhere
        config = capabilities.with_value(config, "data.corpus", data.corpus.source)
    lints = [*lint(config, data.tokens["train"].numel()), *_crowded(config, where)]
    return _Loaded(config, data, where, built(config, needed, where), _prompt(config, data), lints)


def _opened(loaded: _Loaded, writer: RunWriter, control: Control | None) -> Ready:
    config, data, where = loaded.config, loaded.data, loaded.device
    writer.facts("model", model_facts(config, loaded.model))
    writer.facts("data", data_facts(config, data))
    first = environment(where, config.train.threads or 1, writer.attempt)
    writer.facts("environment", {"attempts": [{**first, "bit_exact": True, "why_not": None}]})
    writer.text("tokenizer.json", data.tokenizer.to_json())
    writer.status(device=str(where))
    for warning in loaded.lints:
        writer.event("lint", f"{warning.key}: {warning.text}")
    trainer = _trainer(config, loaded.model, data, where, writer, control, loaded.prompt)
    return Ready(trainer, writer.path, loaded.lints)


def _trainer(
    config: RunConfig,
    model: Network,
    data: Data,
    device: torch.device,
    writer: RunWriter,
    control: Control | None,
    prompt: str,
) -> Trainer:
    held_out, size = data.tokens["validation"].to(device), data.tokenizer.vocab_size
    return Trainer(
        config,
        model,
        training_batches(data.tokens["train"], config, make_objective(config, size), device),
        writer,
        control or Control(),
        time.perf_counter,
        evaluator=Evaluator(config, data.corpus.splits["validation"], held_out, size),
        sampler=Sampler(config, data.tokenizer, prompt),
    )


def resume(
    run: Path,
    *,
    data_dir: Path | None = None,
    device: str = "auto",
    control: Control | None = None,
    launch: str = "thread",
    handed_over: bool = False,
) -> Ready:
    """A run that has ended early, from its newest intact checkpoint, ready to go on bit for bit.

    Args:
        run: its directory; its config and data must be what they were.
        data_dir: where named corpora are looked for first.
        device: auto, cpu, cuda, cuda:i or mps; another kind than before is not bit-exact, and is recorded as such.
        control: how the run will be told to stop.
        launch: what trains it, for status.json: thread or process.
        handed_over: wait for the process that is handing it over; only such a run is taken.

    Raises:
        InputError: it is finished, another process owns it, nothing intact is left, or its data has changed.
    """
    reader = RunReader(run)
    config = reader.config
    capabilities.require(config, str(run / "config.toml"))
    if reader.status.get("state") == "finished":
        raise InputError(f"run '{reader.name}' is finished; run --config {run}/config.toml makes another like it")
    where = resolve_device(device)
    writer = RunWriter(run, wait=HANDOVER_WAIT if handed_over else 0.0, launch=launch)
    try:
        if handed_over and reader.status.get("state") != "handing-over":
            raise InputError(f"run '{reader.name}' was not handed over: it is {reader.status.get('state')}")
        folder, damaged = checkpoint.newest_intact(run)
        data = load_data(config, data_dir)
        recorded = reader.facts("data")
        if recorded.get("sha256") != data.corpus.sha256 or recorded.get("tokenizer_sha256") != data.tokenizer.sha256:
            raise InputError(
                f"corpus {data.corpus.name}: not the text that run '{reader.name}' began with; put it back"
            )
        model = built(config, config.needed_tokens(data.tokenizer.vocab_size), where)
        trainer = _trainer(config, model, data, where, writer, control, _prompt(config, data))
        trainer.restore(folder)
        writer.rewind(trainer.state.offsets, trainer.state.step)
    except BaseException:
        writer.release()
        raise
    for text in damaged:
        writer.event("damaged checkpoint", text, step=trainer.state.step)
    attempts = reader.facts("environment").get("attempts") or [{}]
    now = environment(where, config.train.threads or 1, writer.attempt)
    differs = [key for key in EXACT_IF_SAME if attempts[0].get(key) != now.get(key)]
    why = None if not differs else "; ".join(f"{key} was {attempts[0].get(key)}, is {now.get(key)}" for key in differs)
    writer.facts("environment", {"attempts": [*attempts, {**now, "bit_exact": not differs, "why_not": why}]})
    writer.status(device=str(where))
    return Ready(trainer, run)
