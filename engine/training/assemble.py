"""From a config to a trainer that is ready to run: corpus, tokenizer, model, run directory.

Everything that can be wrong with the input is found here, before a run directory exists.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
import torch

from engine import capabilities
from engine.command_line import command_line
from engine.config.schema import RunConfig
from engine.errors import InputError
from engine.evaluation.alarms import overlapping
from engine.lints import Lint, lint
from engine.model import size
from engine.model.attention import AttentionCall, choose
from engine.model.heads import SelfAttention
from engine.model.positions import Positions
from engine.model.size import BatchShape, memory_bytes
from engine.model.transformer import Network, build_model
from engine.runs.lineage import INIT_FROM
from engine.runs.names import check_name, free_name
from engine.runs.reader import RunReader
from engine.runs.writer import RunWriter
from engine.training import checkpoint
from engine.training.beginning import Beginning, begun_from
from engine.training.control import Control
from engine.training.devices import busy_share, default_threads, environment, resolve_device
from engine.training.ends import StopRequested
from engine.training.init_from import find_parent
from engine.training.numerics import chosen_precision, compiles
from engine.training.task import Shower, Task, load_task, load_task_of, reseeded
from engine.training.trainer import Trainer

HANDOVER_WAIT = 60.0  # seconds that a process waits for the one that hands a run over
EXACT_IF_SAME = ("device", "threads", "processor", "versions")  # else sums may be taken in another order


@dataclass(frozen=True)
class Ready:
    """A run that only has to be started."""

    trainer: Trainer
    path: Path
    lints: Sequence[Lint] = field(default_factory=list)


def _crowded(config: RunConfig, device: torch.device) -> list[Lint]:
    """Threads that wait for each other are many times slower where another program takes one of their cores."""
    threads, cores = config.train.threads or 1, psutil.cpu_count() or 1
    if device.type != "cpu" or threads < 2:
        return []
    busy = busy_share()  # takes a fifth of a second
    if threads <= cores * (1.0 - busy) + 0.5:
        return []
    text = (
        f"other programs keep {busy:.0%} of this machine's cores busy, and {threads} threads that wait for each other "
    )
    return [Lint("train.threads", text + "can be many times slower then; --set train.threads=1 is safer meanwhile")]


def model_facts(config: RunConfig, model: Network, shape: BatchShape) -> dict[str, Any]:
    """The content of model.json: what was built, read from the module, not the config.

    Args:
        config: resolved.
        model: as built.
        shape: of the largest batch.
    """
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "components": size.parameters(config.model, model.vocab_size),
        "flops_per_token": size.flops_per_token(config.model, model.vocab_size, BatchShape.of(config).rows),
        "memory_bytes": memory_bytes(config, model.vocab_size, shape),
        "largest_batch": asdict(shape),
        "built": {
            "architecture": type(model).__name__,
            "position": type(_attention(model).scheme).__name__,
            "attention": type(_attention(model)).__name__,
            "backend": training_backend(config, model),
            "precision": chosen_precision(config.train, next(model.parameters()).device),
            "fp32_matmul": config.train.fp32_matmul,
            "compiled": compiles(config, next(model.parameters()).device),
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
    at = Positions.consecutive(config.window_targets)
    device = next(model.parameters()).device
    dtype = torch.bfloat16 if chosen_precision(config.train, device) == "bf16" else torch.float32
    heads = torch.empty(1, config.model.n_heads, at.length, config.model.head_width, dtype=dtype, device=device)
    case = AttentionCall(heads, heads, at, at, attention.see, attention.scheme, attention.dropout)
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
        StopRequested: `control` was asked to stop meanwhile; nothing is left behind.
    """
    if name is not None:
        check_name(name)
    loaded = _loaded(config, runs_dir, data_dir, device, control)
    name = name if name is not None else free_name(runs_dir, config.preset or "run")
    writer = RunWriter.create(runs_dir, name, loaded.config, {"command": command})
    try:
        return _opened(loaded, writer, control)
    except BaseException:  # including a stop request
        writer.discard()
        raise


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
        StopRequested: `control` was asked to stop meanwhile; `resume` starts it.
    """
    writer = RunWriter.adopt(run, launch=launch)
    try:
        loaded = _loaded(RunReader(run).config, run.parent, data_dir, device, control)
        writer.keep_config(loaded.config)
        return _opened(loaded, writer, control)
    except StopRequested:
        writer.close("interrupted", "stopped before it began")
        raise
    except BaseException as error:
        writer.event("failed", str(error))
        writer.close("failed", str(error))
        raise


@dataclass(frozen=True)
class _Loaded:
    """All that a run needs besides its directory."""

    config: RunConfig
    task: Task
    device: torch.device
    model: Network
    shower: Shower
    lints: Sequence[Lint]
    beginning: Beginning | None


def _heed(control: Control | None) -> None:
    """Called between pieces of work that may take long."""
    if control is not None and control.stop_waits():
        raise StopRequested


def _loaded(config: RunConfig, runs_dir: Path, data_dir: Path | None, device: str, control: Control | None) -> _Loaded:
    said = f"preset '{config.preset}'" if config.preset else "config"
    capabilities.require(config, said)
    where = resolve_device(device)
    parent = find_parent(config, runs_dir)
    _heed(control)
    task = load_task(config, data_dir, None if parent is None else parent.tokenizer)
    _heed(control)
    config = task.resolved(config, said, default_threads())
    found = {"data.corpus": task.found_again(config)}  # a file: the run's own config must find it from anywhere
    found |= {} if parent is None else {INIT_FROM: parent.said_as}
    for key, value in found.items():
        config = capabilities.with_value(config, key, value)
    lints = [*lint(config, task.train_tokens, task.validation_tokens), *task.lints(config), *_crowded(config, where)]
    model = built(config, config.needed_tokens(task.vocab_size), where)
    beginning = None if parent is None else begun_from(model, config, parent, task, data_dir)
    lints += [] if beginning is None else beginning.lints
    if task.overlap is not None and task.overlap.worth_saying:
        lints.append(Lint("data.corpus", overlapping(task.overlap).why))
    _heed(control)
    return _Loaded(config, task, where, model, task.shower(config), lints, beginning)


def _begun_again(
    reader: RunReader, writer: RunWriter, data_dir: Path | None, device: str, control: Control | None
) -> Ready:
    loaded = _loaded(reader.config, reader.path.parent, data_dir, device, control)
    writer.begin_again()
    writer.keep_config(loaded.config)
    writer.event("begun again", "it had no checkpoint yet")
    return _opened(loaded, writer, control)


def _opened(loaded: _Loaded, writer: RunWriter, control: Control | None) -> Ready:
    config, task, where, beginning = loaded.config, loaded.task, loaded.device, loaded.beginning
    if beginning is not None:
        writer.born({"from": beginning.origin.model_dump(by_alias=True)})
    batches = task.batches(config, where)
    shape = BatchShape.of_batch(batches.batch(*batches.largest()))
    writer.facts("model", model_facts(config, loaded.model, shape))
    facts = task.facts(config)
    _heed(control)
    writer.facts("data", facts)
    if task.overlap is not None and task.overlap.much:
        writer.verdict(overlapping(task.overlap).to_json())
    first = environment(where, config.train.threads or 1, writer.attempt)
    writer.facts("environment", {"attempts": [{**first, "bit_exact": True, "why_not": None}]})
    writer.text("tokenizer.json", task.tokenizer.to_json())
    writer.status(device=str(where))
    for text in () if beginning is None else beginning.said:
        writer.event("init_from", text)
    for warning in loaded.lints:
        writer.event("lint", f"{warning.key}: {warning.text}")
    trainer = make_trainer(config, loaded.model, task, where, writer, control, loaded.shower, facts)
    return Ready(trainer, writer.path, loaded.lints)


def make_trainer(
    config: RunConfig,
    model: Network,
    task: Task,
    device: torch.device,
    writer: RunWriter,
    control: Control | None,
    shower: Shower,
    facts: Mapping[str, Any],
) -> Trainer:
    """A trainer for a task, at step 0; `facts` is the content of data.json."""
    return Trainer(
        config,
        model,
        task.batches(config, device),
        writer,
        control or Control(),
        time.perf_counter,
        scorer=task.scorer(config, device),
        shower=shower,
        tokenizer=task.tokenizer,
        facts=facts,
        reseeded=reseeded(task, config, device),
    )


def _as_begun(config: RunConfig, reader: RunReader, device: torch.device) -> RunConfig:
    """The config with the precision that "auto" meant when the run began on this kind of device; uncompiled if it was.

    A later version or another GPU may choose differently, and a run must not change its arithmetic.
    """
    attempts = reader.raw("environment").get("attempts") or [{}]
    was = reader.raw("model").get("built") or {}
    if not str(attempts[0].get("device", "")).startswith(device.type):
        return config
    train = config.train
    if train.precision == "auto" and was.get("precision") in ("fp32", "bf16"):
        config = capabilities.with_value(config, "train.precision", was["precision"])
    if train.compile == "auto" and was.get("compiled") is False:
        config = capabilities.with_value(config, "train.compile", "never")
    return config


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

    A run that ended before its first checkpoint is started over from its config: every draw is seeded, so it becomes
    the run it would have been.

    Args:
        run: its directory; its config and data must be what they were.
        data_dir: where named corpora are looked for first.
        device: auto, cpu, cuda, cuda:i or mps; another kind than before is not bit-exact, and is recorded as such.
        control: how the run will be told to stop.
        launch: what trains it, for status.json: thread or process.
        handed_over: wait for the process that is handing it over; only such a run is taken.

    Raises:
        InputError: it is finished, another process owns it, nothing intact is left, or its data has changed.
        StopRequested: `control` was asked to stop meanwhile; the run is unchanged.
    """
    reader = RunReader(run)
    try:
        config = reader.config
    except InputError as error:
        if not checkpoint.never_saved(reader):
            raise
        raise InputError(
            f"{error}; it has no checkpoint, so there is nothing to resume: `{reader.command('delete')}` frees the name"
        ) from None
    capabilities.require(config, str(run / "config.toml"))
    if reader.status.state == "finished":
        again = command_line("run", "--config", run / "config.toml", runs_dir=run.parent, data_dir=data_dir)
        raise InputError(f"run '{reader.name}' is finished; `{again}` trains another like it")
    where = resolve_device(device)
    writer = RunWriter(run, wait=HANDOVER_WAIT if handed_over else 0.0, launch=launch)
    try:
        if handed_over and reader.status.state != "handing-over":
            raise InputError(f"run '{reader.name}' was not handed over: it is {reader.status.state}")
        if checkpoint.never_saved(reader):
            return _begun_again(reader, writer, data_dir, device, control)
        folder, damaged = checkpoint.newest_intact(run)
        _heed(control)
        task = load_task_of(reader, data_dir)
        _heed(control)
        recorded = reader.raw("data")
        if recorded.get("sha256") != task.sha256 or recorded.get("tokenizer_sha256") != task.tokenizer.sha256:
            raise InputError(f"corpus {task.name}: not the text that run '{reader.name}' began with; put it back")
        config = _as_begun(config, reader, where)
        model = built(config, config.needed_tokens(task.vocab_size), where)
        facts = recorded if "unigram" in recorded else task.facts(config)
        trainer = make_trainer(config, model, task, where, writer, control, task.shower(config), facts)
        trainer.restore(folder)
        writer.rewind(trainer.state.offsets, trainer.state.step)
    except BaseException:
        writer.release()
        raise
    for text in damaged:
        writer.event("damaged checkpoint", text, step=trainer.state.step)
    attempts = reader.raw("environment").get("attempts") or [{}]
    now = environment(where, config.train.threads or 1, writer.attempt)
    differs = [key for key in EXACT_IF_SAME if attempts[0].get(key) != now.get(key)]
    why = None if not differs else "; ".join(f"{key} was {attempts[0].get(key)}, is {now.get(key)}" for key in differs)
    writer.facts("environment", {"attempts": [*attempts, {**now, "bit_exact": not differs, "why_not": why}]})
    writer.status(device=str(where))
    return Ready(trainer, run)
