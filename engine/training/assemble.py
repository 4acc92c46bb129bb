"""Build a ready-to-run trainer from a config: corpus, tokenizer, model, run directory.

All input errors are found here, before a run directory exists.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import torch

from engine import capabilities
from engine.base.command_line import command_line
from engine.base.errors import InputError, RunTakenOver, comma_separated, error_message
from engine.base.language import Message, tr
from engine.base.progress import listening
from engine.base.threads import usable_cores, usable_cpus
from engine.config.keys import changed_settings
from engine.config.lints import Lint
from engine.config.schema import RunConfig
from engine.config.schemes import learning_rate
from engine.config.toml import short_repr_or_unset
from engine.data.catalogue import portable_name
from engine.data.text_files import LATEST
from engine.model import size
from engine.model.devices import default_threads, environment
from engine.model.heads import SelfAttention
from engine.model.numerics import Numerics, measure_bf16_slowdown
from engine.model.positions import Positions
from engine.model.size import BatchShape, memory_bytes
from engine.model.transformer import Network, build_model
from engine.ranks import END, STEP, ProcessGroup, Ranks, join_ranks
from engine.runs.control import Control, Diverged, StopRequested
from engine.runs.lineage import INIT_FROM
from engine.runs.names import check_name, free_name
from engine.runs.reader import RunReader
from engine.runs.records import Attempt, Environment, LargestBatch, ModelFacts, TrainRecord
from engine.runs.verdict import OK, SUSPICIOUS
from engine.runs.writer import RunWriter
from engine.tasks.task import make_task, task_of_run
from engine.training import checkpoint
from engine.training.init_from import ParentCheckpoint
from engine.training.parts import RunParts
from engine.training.step import Stepper
from engine.training.trainer import Trainer, prepare_process

HANDOVER_WAIT = 60.0  # seconds to wait for the process that hands a run over
MAX_BF16_SLOWDOWN = 1.2  # times as long as in fp32; beyond that, a run warns
EXACT_IF_SAME = ("device", "threads", "processor", "versions")  # else sums may run in another order


@dataclass(frozen=True)
class ReadyRun:
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
) -> ReadyRun:
    """Load and build the parts of an unresolved config, and open its run directory.

    `name` is by default the preset's, with a number if that is taken; named corpora are looked for in `data_dir` first;
    `command` goes into run.json. `InputError`: anything wrong with config, data, name or device. `StopRequested`: a
    stop was requested meanwhile; nothing is left behind.
    """
    control, ranks = control or Control(), join_ranks(device)
    if name is not None:
        check_name(name)
    parts = _build_parts(config, runs_dir, data_dir, ranks, control)
    name = name if name is not None else free_name(runs_dir, config.preset or "run")
    writer = RunWriter.create(runs_dir, name, parts.config, {"command": command})
    try:
        return _write_initial_files(parts, writer, control, ranks)
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
) -> ReadyRun:
    """Claim a queued run and make it ready to train. If anything is wrong with it, its state becomes failed.

    Raises as `assemble`, and if it is not queued; after a stop request `resume` starts it.
    """
    control, ranks = control or Control(), join_ranks(device)
    writer = RunWriter.adopt(run, launch=launch)
    try:
        parts = _build_parts(RunReader(run).config, run.parent, data_dir, ranks, control)
        writer.write_config(parts.config)
        return _write_initial_files(parts, writer, control, ranks)
    except StopRequested:
        writer.close("interrupted", Message("stopped before it began"))
        raise
    except RunTakenOver:
        writer.release_lock()
        raise
    except BaseException as error:
        writer.event("failed", error_message(error))
        writer.close("failed", error_message(error))
        raise


def resume(
    run: Path,
    *,
    data_dir: Path | None = None,
    device: str = "auto",
    control: Control | None = None,
    launch: str = "thread",
    handed_over: bool = False,
) -> ReadyRun:
    """Return a run that has ended early, from its newest intact checkpoint, ready to go on bit for bit.

    A run that ended before its first checkpoint is started over from its config: every draw is seeded, so it becomes
    the run it would have been. Another kind of device is not bit-exact, and is recorded as such. `handed_over`: wait
    for the process that hands it over, and take no other run. `InputError`: it is finished, another process owns it,
    nothing intact is left, or its data has changed. `StopRequested`: `control` was asked to stop meanwhile; the run is
    unchanged.
    """
    reader, control = RunReader(run), control or Control()
    try:
        config = reader.config
    except InputError as error:
        if not checkpoint.never_saved(reader):
            raise
        message = Message(
            "{error}; the run has no checkpoint, so there is nothing to resume: `{command}` frees the name",
            error=error,
            command=reader.command("delete"),
        )
        raise InputError(message) from None
    capabilities.require_valid(config, str(run / "config.toml"))
    if reader.status.state == "finished":
        again = command_line("run", "--config", run / "config.toml", runs_dir=run.parent, data_dir=data_dir)
        message = Message("run '{name}' is finished; `{again}` trains another like it", name=reader.name, again=again)
        raise InputError(message)
    ranks = join_ranks(device)
    where = ranks.device
    writer = RunWriter(run, wait=HANDOVER_WAIT if handed_over else 0.0, launch=launch)
    try:
        if handed_over and reader.status.state != "handing-over":
            message = Message(
                "run '{name}' was not being moved to another process; its state is {state}",
                name=reader.name,
                state=tr(reader.status.state),
            )
            raise InputError(message)
        if checkpoint.never_saved(reader):
            version = reader.data.reading if reader.data.sha256 else LATEST
            parts = _build_parts(config, run.parent, data_dir, ranks, control, version)
            writer.begin_again()
            writer.write_config(parts.config)
            text = Message("the run had no checkpoint yet") + Message("; it starts over with config.toml as it is now")
            writer.event("begun again", text)
            ready = _write_initial_files(parts, writer, control, ranks)
            return replace(ready, lints=[Lint(reader.name, text), *ready.lints])
        folder, damaged = checkpoint.newest_intact(run)
        lints = _require_same_settings(reader, folder)
        control.raise_if_stopped()
        with listening(lambda *far: control.raise_if_stopped()):
            task = task_of_run(reader, data_dir)
        control.raise_if_stopped()
        recorded = reader.data
        if recorded.sha256 != task.corpus.sha256 or recorded.tokenizer_sha256 != task.tokenizer.sha256:
            message = Message(
                "corpus {name}: this is not the text that run '{name2}' started with; restore the original text",
                name=task.corpus.name,
                name2=reader.name,
            )
            raise InputError(message)
        capabilities.require_even_ranks(config, ranks.size)
        model = build_network(config, config.min_vocab_size(task.vocab_size), where)
        facts = task.facts(config) if recorded.unigram is None else recorded
        parts = RunParts(config, task, model, task.sampler(config), lints, recorded=_recorded_choices(reader, where))
        trainer = Trainer(parts, facts, writer, control, ranks)
        trainer.restore(folder)
        writer.begin_attempt_from_checkpoint(trainer.state.offsets, trainer.state.step)
    except BaseException:
        writer.release_lock()
        raise
    for damage in damaged:
        writer.event("damaged checkpoint", damage, step=trainer.state.step)
    for warning in lints:
        writer.event("lint", warning.message, step=trainer.state.step)
    attempts = reader.environment.attempts or (Attempt(),)
    now = environment(where, config, writer.attempt, ranks.size)
    same = EXACT_IF_SAME if config.train.exact_sum == "on" else (*EXACT_IF_SAME, "ranks")
    differs = []
    for key in same:
        if (was := getattr(attempts[0], key)) != (found := getattr(now, key)):
            differs.append(Message("{key} was {was} and is now {found}", key=key, was=was, found=found))
    if config.train.accumulation > 3 and any(attempt.ranks is None for attempt in attempts):
        differs.append(Message("gradients were added up in another order"))
    exact = {"bit_exact": not differs, "why_not": "; ".join(differs) or None}
    writer.write(Environment.create(attempts=(*attempts, now.model_copy(update=exact))))
    writer.update_status(device=str(where), ranks=ranks.size)
    return ReadyRun(trainer, run, lints)


def _require_same_settings(reader: RunReader, folder: Path) -> list[Lint]:
    """Refuse settings that were edited after a checkpoint was saved, going by its manifest. An earlier version saved
    none there: compare what other files say of them, and return a warning.
    """
    recorded = checkpoint.settings_of(folder)
    changed = (
        dict(_settings_contradicting_records(reader, folder))
        if recorded is None
        else changed_settings(recorded, reader.config)
    )
    if not changed:
        text = Message("an earlier version saved no settings: only edits to steps, rates, shapes and data are noticed")
        return [Lint("config.toml", text)] if recorded is None else []
    start = ("run", "--config", reader.path / "config.toml", "--set", f"{INIT_FROM}={reader.name}@last")
    again = command_line(*start, runs_dir=reader.path.parent)
    shown = [(key[:80], *map(short_repr_or_unset, pair)) for key, pair in changed.items()]
    differs = comma_separated(
        tr("{key} was {was} and is now {found}", key=key, was=was, found=found) for key, was, found in shown
    )
    message = Message(
        "run '{name}' was started with different settings: {differs}; restore them in its config.toml to resume "
        "it, or train on from its weights: `{again}`",
        name=reader.name,
        differs=differs,
        again=again,
    )
    raise InputError(message)


def _settings_contradicting_records(reader: RunReader, folder: Path) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield settings in config.toml that contradict status.json, or the last train record before a checkpoint."""
    config, steps, saved = reader.config, reader.config.train.steps, int(folder.name[5:])
    if reader.status.steps not in (0, steps):
        yield "train.steps", (reader.status.steps, steps)
    rates = [(one.step, one.lr) for one in reader.metrics() if isinstance(one, TrainRecord) and one.step <= saved]
    for step, was in rates[-1:]:
        with suppress(ValueError):  # a duration not in steps, which training refuses
            now = learning_rate(config.optimizer, step, steps)
            if was is not None and not math.isclose(was, now, rel_tol=1e-9):
                yield tr("learning rate at step {step}", step=step), (was, now)


def train_follower_rank(ranks: ProcessGroup, data_dir: Path | None = None) -> None:
    """Train as one of the other ranks: build what rank 0 has built, take up its first checkpoint, and do as it orders.
    `RankLost`: another rank ended.
    """
    folder = ranks.receive_checkpoint_path()
    if folder is None:
        return
    reader = RunReader(folder.parents[1])
    config, task = reader.config, task_of_run(reader, data_dir)
    model = build_network(config, config.min_vocab_size(task.vocab_size), ranks.device)
    numerics = Numerics.choose(config, ranks.device, _recorded_choices(reader, ranks.device))
    stepper = Stepper(config, model, task.batches(config, ranks.device), ranks=ranks, numerics=numerics)
    scorer = task.scorer(config, ranks.device)
    scorer.ranks = ranks
    prepare_process(config, ranks.device)
    checkpoint.load_state(folder, model, stepper.optimizer)
    while (order := ranks.receive_instruction())[0] != END:
        with suppress(StopRequested, torch.OutOfMemoryError, Diverged):  # rank 0 has it too, and says what is next
            if order[0] == STEP:
                stepper.step(order[1], pieces=order[2])
            else:
                scorer.token_scores(model)
    ranks.close()


def _build_parts(
    config: RunConfig,
    runs_dir: Path,
    data_dir: Path | None,
    ranks: Ranks,
    control: Control,
    reading_version: int = LATEST,
) -> RunParts:
    named = f"preset '{config.preset}'" if config.preset else "config"
    capabilities.require_valid(config, named)
    capabilities.require_even_ranks(config, ranks.size)
    where = ranks.device
    source = ParentCheckpoint.find(config, runs_dir)
    control.raise_if_stopped()
    with listening(lambda *far: control.raise_if_stopped()):  # a large text takes minutes to encode
        task = make_task(config, data_dir, None if source is None else source.tokenizer, reading_version)
    control.raise_if_stopped()
    # The run's own config must find its files from anywhere.
    found = {"data.corpus": portable_name(config.data.corpus, config.task.corpus)}
    if config.data.tokenizer_from is not None:
        found["data.tokenizer_from"] = str(Path(config.data.tokenizer_from).expanduser().resolve())
    if source is not None:
        found[INIT_FROM] = source.portable
    config = task.resolve_config(capabilities.with_values(config, found), named, default_threads())
    lints = [*task.lints(config), *machine_lints(config, where)]
    model = build_network(config, config.min_vocab_size(task.vocab_size), where)
    said, more = ([], []) if source is None else source.initialize(model, config, task, data_dir)
    lints += more
    with listening(lambda *far: control.raise_if_stopped()):
        overlap = task.overlap
    if overlap is not None and overlap.is_reportable:
        lints.append(Lint("data.corpus", overlap.verdict.why))
    lints += [Lint("data.corpus", one.why) for one in task.data_verdicts() if one.verdict == SUSPICIOUS]
    control.raise_if_stopped()
    origin = None if source is None else source.origin
    return RunParts(config, task, model, task.sampler(config), lints, origin, said)


def machine_lints(config: RunConfig, device: torch.device) -> Iterator[Lint]:
    """Warn of settings that make training slow on this machine, as it is now."""
    if device.type != "cpu":
        return
    threads, cores = config.train.threads or 1, usable_cores()
    loads = psutil.cpu_percent(interval=0.2, percpu=True) if threads > 1 else []
    loads = [loads[cpu] / 100.0 for cpu in usable_cpus() if cpu < len(loads)]
    if threads > cores:
        text = Message(
            "{threads} threads, but only {cores} can run at once here, so some always wait; "
            "--set train.threads={cores} is faster",
            cores=cores,
            threads=threads,
        )
        yield Lint("train.threads", text)
    elif loads and threads > min(cores, sum(1.0 - load for load in loads)) + 0.5:
        text = Message(
            "other programs use {busy:.0%} of the cores that this run may use; {threads} threads that wait for each "
            "other can be slower than one, so try --set train.threads=1",
            busy=sum(loads) / len(loads),
            threads=threads,
        )
        yield Lint("train.threads", text)
    if config.train.precision == "bf16" and (cost := measure_bf16_slowdown(config)) > MAX_BF16_SLOWDOWN:
        text = Message(
            "on this CPU a matrix product takes {cost:.1f} times as long in bf16 as in fp32; "
            "--set train.precision=fp32 is faster",
            cost=cost,
        )
        yield Lint("train.precision", text)


def build_network(config: RunConfig, vocab_size: int, device: torch.device) -> Network:
    """Return the model on its device; raise `InputError` if it does not fit into memory."""
    network, seed = config.model, config.seed
    count = size.parameter_count(network, vocab_size)
    try:
        if device.type == "cpu" and 16 * count > psutil.virtual_memory().available:
            raise MemoryError
        return build_model(network, vocab_size, seed, device)
    except (RuntimeError, MemoryError):
        text = Message(
            "the model does not fit on {device}: {count:,} parameters with gradients and moments "
            "need {count2:,.1f} GB; use fewer layers or a smaller d_model",
            device=device,
            count=count,
            count2=16 * count / 1e9,
        )
        raise InputError(text) from None


def _write_initial_files(parts: RunParts, writer: RunWriter, control: Control, ranks: Ranks) -> ReadyRun:
    config, task, model = parts.config, parts.task, parts.model
    if parts.origin is not None:
        writer.add_facts({"from": parts.origin.model_dump(by_alias=True)})
    shape = BatchShape.from_batch(parts.batches.batch(*parts.batches.locate_largest_batch()))
    writer.write(model_facts(config, model, shape, parts.numerics))
    facts = task.facts(config)
    control.raise_if_stopped()
    writer.write(facts)
    for verdict in task.data_verdicts():
        if verdict.verdict != OK:
            writer.verdict(verdict)
    first = environment(parts.device, config, writer.attempt, ranks.size)
    averaged = ranks.size > 1 and config.train.exact_sum == "off"
    why_not = Message("with train.exact_sum=off, the bits depend on the number of ranks") if averaged else None
    exact = {"bit_exact": not averaged, "why_not": why_not}
    writer.write(Environment.create(attempts=(first.model_copy(update=exact),)))
    writer.text("tokenizer.json", task.tokenizer.to_json())
    writer.update_status(device=str(parts.device), ranks=ranks.size)
    for text in parts.init_messages:
        writer.event("init_from", text)
    for warning in parts.lints:
        writer.event("lint", warning.message)
    return ReadyRun(Trainer(parts, facts, writer, control, ranks), writer.path, parts.lints)


def model_facts(config: RunConfig, model: Network, shape: BatchShape, numerics: Numerics) -> ModelFacts:
    """Return the content of model.json, read from the built module; `shape` is of the largest batch."""
    network, device, precision = config.model, next(model.parameters()).device, numerics.precision
    attention = model.stacks[-1].layers[0].get_submodule("attention")
    assert isinstance(attention, SelfAttention)
    at, dtype = Positions.consecutive(config.window_targets), torch.bfloat16 if precision == "bf16" else torch.float32
    heads = torch.empty(1, network.n_heads, at.length, network.head_width, dtype=dtype, device=device)
    built = {
        "architecture": type(model).__name__,
        "position": type(attention.scheme).__name__,
        "attention": type(attention).__name__,
        "backend": attention.kernel_name(heads, at),
        "precision": precision,
        "fp32_matmul": config.train.fp32_matmul,
        "compiled": numerics.compiles,
    }
    return ModelFacts.create(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        components=size.parameters(network, model.vocab_size),
        flops_per_token=size.training_flops_per_token(network, model.vocab_size, BatchShape.from_config(config).rows),
        memory_bytes=memory_bytes(config, model.vocab_size, shape),
        largest_batch=LargestBatch(**asdict(shape)),
        built=built,
    )


def _recorded_choices(reader: RunReader, device: torch.device) -> Mapping[str, Any]:
    """Return what "auto" meant when the run began on this kind of device; nothing for another kind. A later version or
    another GPU may choose differently, and a run must not change its arithmetic.
    """
    attempts = reader.environment.attempts
    return reader.model.built if attempts and attempts[0].device.startswith(device.type) else {}
