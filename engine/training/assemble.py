"""From a config to a trainer that is ready to run: corpus, tokenizer, model, run directory.

Everything that can be wrong with the input is found here, before a run directory exists.
"""

from collections.abc import Sequence
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
from engine.training.control import Control, StopRequested
from engine.training.devices import busy_share, default_threads, environment, resolve_device
from engine.training.init_from import InitFrom, InitReport
from engine.training.numerics import chosen_precision, compiles
from engine.training.task import RunParts
from engine.training.tasks import make_task, task_of_run
from engine.training.trainer import Trainer

HANDOVER_WAIT = 60.0  # seconds that a process waits for the one that hands a run over
EXACT_IF_SAME = ("device", "threads", "processor", "versions")  # else sums may be taken in another order


@dataclass(frozen=True)
class Ready:
    """A run that only has to be started."""

    trainer: Trainer
    path: Path
    lints: Sequence[Lint] = field(default_factory=list)


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
    loaded = _load(config, runs_dir, data_dir, device, control)
    name = name if name is not None else free_name(runs_dir, config.preset or "run")
    writer = RunWriter.create(runs_dir, name, loaded.parts.config, {"command": command})
    try:
        return _open(loaded, writer, control)
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

    Arguments as for `assemble`; `launch` is "thread" or "process", for its status.

    Raises:
        InputError: anything wrong with its config, data or device, or it is not queued.
        StopRequested: `control` was asked to stop meanwhile; `resume` starts it.
    """
    writer = RunWriter.adopt(run, launch=launch)
    try:
        loaded = _load(RunReader(run).config, run.parent, data_dir, device, control)
        writer.keep_config(loaded.parts.config)
        return _open(loaded, writer, control)
    except StopRequested:
        writer.close("interrupted", "stopped before it began")
        raise
    except BaseException as error:
        writer.event("failed", str(error))
        writer.close("failed", str(error))
        raise


def resume(
    run: Path,
    *,
    data_dir: Path | None = None,
    device: str = "auto",
    control: Control | None = None,
    launch: str = "thread",
    handed_over: bool = False,
) -> Ready:
    """Return a run that has ended early, from its newest intact checkpoint, ready to go on bit for bit.

    A run that ended before its first checkpoint is started over from its config: every draw is seeded, so it becomes
    the run it would have been. Another kind of device than before is not bit-exact, and is recorded as such.

    Args:
        run: its directory; its config and data must be what they were.
        data_dir: where named corpora are looked for first.
        device: auto, cpu, cuda, cuda:i or mps.
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
            loaded = _load(config, run.parent, data_dir, device, control)
            writer.begin_again()
            writer.keep_config(loaded.parts.config)
            writer.event("begun again", "it had no checkpoint yet")
            return _open(loaded, writer, control)
        folder, damaged = checkpoint.newest_intact(run)
        _heed(control)
        task = task_of_run(reader, data_dir)
        _heed(control)
        recorded = reader.raw("data")
        if recorded.get("sha256") != task.sha256 or recorded.get("tokenizer_sha256") != task.tokenizer.sha256:
            raise InputError(f"corpus {task.name}: not the text that run '{reader.name}' began with; put it back")
        config = _as_begun(config, reader, where)
        model = built(config, config.needed_tokens(task.vocab_size), where)
        facts = recorded if "unigram" in recorded else task.facts(config)
        trainer = Trainer(RunParts(config, task, model, task.sampler(config)), facts, writer, control or Control())
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


def _heed(control: Control | None) -> None:
    """Raise if a stop is waiting. Called between pieces of work that may take long."""
    if control is not None and control.stop_is_next():
        raise StopRequested


@dataclass(frozen=True)
class _Loaded:
    parts: RunParts
    lints: Sequence[Lint]
    source: InitFrom | None
    report: InitReport


def _load(config: RunConfig, runs_dir: Path, data_dir: Path | None, device: str, control: Control | None) -> _Loaded:
    """Everything a new run needs besides its directory."""
    said = f"preset '{config.preset}'" if config.preset else "config"
    capabilities.require(config, said)
    where = resolve_device(device)
    source = InitFrom.find(config, runs_dir)
    _heed(control)
    task = make_task(config, data_dir, None if source is None else source.tokenizer)
    _heed(control)
    config = task.resolved(config, said, default_threads())
    # The run's own config must find its files from anywhere.
    config = capabilities.with_value(config, "data.corpus", task.portable_corpus(config))
    if source is not None:
        config = capabilities.with_value(config, INIT_FROM, source.portable)
    lints = [*lint(config, task.train_tokens, task.validation_tokens), *task.lints(config), *_crowded(config, where)]
    model = built(config, config.needed_tokens(task.vocab_size), where)
    report = InitReport() if source is None else source.begin(model, config, task, data_dir)
    lints += report.lints
    if task.overlap is not None and task.overlap.worth_saying:
        lints.append(Lint("data.corpus", overlapping(task.overlap).why))
    _heed(control)
    return _Loaded(RunParts(config, task, model, task.sampler(config)), lints, source, report)


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
        "can be many times slower then; --set train.threads=1 is safer meanwhile"
    )
    return [Lint("train.threads", text)]


def built(config: RunConfig, vocab_size: int, device: torch.device) -> Network:
    """Return the model on its device; raise `InputError` if it does not fit into memory."""
    count = size.parameter_count(config.model, vocab_size)
    try:
        if device.type == "cpu" and 16 * count > psutil.virtual_memory().available:
            raise MemoryError
        return build_model(config.model, vocab_size, config.seed, device)
    except (RuntimeError, MemoryError):
        raise InputError(
            f"the model does not fit on {device}: {count:,} parameters with gradients and moments need "
            f"{16 * count / 1e9:,.1f} GB; fewer layers or a smaller d_model fit"
        ) from None


def _open(loaded: _Loaded, writer: RunWriter, control: Control | None) -> Ready:
    """Write what is known before the first step into the run directory."""
    parts, report = loaded.parts, loaded.report
    config, task, model = parts.config, parts.task, parts.model
    if loaded.source is not None:
        writer.born({"from": loaded.source.origin.model_dump(by_alias=True)})
    shape = BatchShape.of_batch(parts.batches.batch(*parts.batches.largest()))
    writer.facts("model", model_facts(config, model, shape))
    facts = task.facts(config)
    _heed(control)
    writer.facts("data", facts)
    if task.overlap is not None and task.overlap.much:
        writer.verdict(overlapping(task.overlap).to_json())
    first = environment(parts.device, config.train.threads or 1, writer.attempt)
    writer.facts("environment", {"attempts": [{**first, "bit_exact": True, "why_not": None}]})
    writer.text("tokenizer.json", task.tokenizer.to_json())
    writer.status(device=str(parts.device))
    for text in report.said:
        writer.event("init_from", text)
    for warning in loaded.lints:
        writer.event("lint", f"{warning.key}: {warning.text}")
    return Ready(Trainer(parts, facts, writer, control or Control()), writer.path, loaded.lints)


def model_facts(config: RunConfig, model: Network, shape: BatchShape) -> dict[str, Any]:
    """Return the content of model.json: what was built, read from the module; `shape` is of the largest batch."""
    device = next(model.parameters()).device
    precision = chosen_precision(config.train, device)
    attention = model.layers[0].get_submodule("attention")
    assert isinstance(attention, SelfAttention)
    backend: str = config.model.backend
    if config.model.attention == "linear":
        backend = "chunked" if backend == "auto" else backend
    else:  # the one that a training step uses
        at = Positions.consecutive(config.window_targets)
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        heads = torch.empty(1, config.model.n_heads, at.length, config.model.head_width, dtype=dtype, device=device)
        case = AttentionCall(heads, heads, at, at, attention.see, attention.scheme, attention.dropout)
        backend = choose(case, config.model.backend).name
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "components": size.parameters(config.model, model.vocab_size),
        "flops_per_token": size.flops_per_token(config.model, model.vocab_size, BatchShape.of(config).rows),
        "memory_bytes": memory_bytes(config, model.vocab_size, shape),
        "largest_batch": asdict(shape),
        "built": {
            "architecture": type(model).__name__,
            "position": type(attention.scheme).__name__,
            "attention": type(attention).__name__,
            "backend": backend,
            "precision": precision,
            "fp32_matmul": config.train.fp32_matmul,
            "compiled": compiles(config, device),
        },
    }


def _as_begun(config: RunConfig, reader: RunReader, device: torch.device) -> RunConfig:
    """Return the config with what "auto" meant for precision and compiling when the run began on this kind of device.

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
