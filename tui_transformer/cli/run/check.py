"""`check`: what can be known about a model before training."""

import sys
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Annotated

import typer

from engine import capabilities
from engine.base.command_line import DEFAULT_RUNS_DIR
from engine.base.errors import InputError
from engine.base.language import Message, tr, trn
from engine.config import presets
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import ConfigFile, Corpus, DataDir, Device, Json, On, PresetName, RunsDir, Set
from tui_transformer.cli.output import ExitCode, print_answer, print_check_result, print_json, show_progress, warn
from tui_transformer.cli.run.run import Request
from tui_transformer.lab.formatting import duration, memory, si_number


@command(130)
@examples(
    {
        "check --preset demo": "Look for leaks and estimate time and memory.",
        "check --preset rope --on demo --set model.n_heads=8": "Check a change before you train it.",
    }
)
def check(
    preset: PresetName = None,
    config: ConfigFile = None,
    on: On = None,
    set_: Set = None,
    corpus: Corpus = None,
    device: Device = "auto",
    json: Json = False,
    progress: Annotated[bool, typer.Option("--progress", hidden=True, help="Report progress on stderr.")] = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
    data_dir: DataDir = None,
) -> int:
    """Check a model without training it: leaks, cache parity, settings with no effect, time and memory."""

    def doing(what: str) -> AbstractContextManager[object]:
        if progress:
            sys.stderr.write(f"{what}\n")
            sys.stderr.flush()
        return show_progress(what)

    request = Request(preset, config, on, tuple(set_ or ()), corpus, None)
    asked, source = request.resolve(), request.source()
    capabilities.require_valid(asked, tr("preset '{name}'", name=source.name))
    with doing(tr("loading the engine, the corpus and the model")):
        from engine.model import size
        from engine.model.devices import default_threads, device_name, resolve_device
        from engine.model.size import BatchShape, memory_bytes
        from engine.tasks.task import make_task
        from engine.training.assemble import build_network, machine_lints
        from engine.training.init_from import ParentCheckpoint
        from engine.training.inspector import run_leak_probe
        from engine.training.self_check import self_check
        from engine.training.trial import (
            crossover_length,
            crossover_ratios,
            possibly_faster_layer_kind,
            step_cost,
            switch_effect,
        )

        where = resolve_device(device)
        source_run = ParentCheckpoint.find(asked, runs_dir)
        task = make_task(asked, data_dir, None if source_run is None else source_run.tokenizer)
        vocabulary = asked.min_vocab_size(task.vocab_size)
        runnable = task.resolve_config(asked, tr("preset '{name}'", name=source.name), default_threads())
        model = build_network(runnable, vocabulary, where)
        inherited = [] if source_run is None else source_run.copy_weights(model, runnable)[1]
        batches = task.batches(asked, where)
    with doing(tr("checking for leaks and for settings that have no effect")):
        leak = run_leak_probe(runnable, model, batches, when="before", step=0)
        verdicts = [leak, *self_check(runnable, model, task)]
        verdicts += task.data_verdicts()
        unset = presets.resolve(source, on=on) if set_ else None
        for parent in (presets.parent_config(source, on), unset):
            if parent is not None:
                verdicts += switch_effect(asked, parent, vocabulary)
        verdicts = list(dict.fromkeys(verdicts))
    with doing(tr("timing a few steps")):
        try:
            cost = step_cost(runnable, model, batches)
        except (MemoryError, RuntimeError) as error:
            key = "batch_size" if asked.train.batch_tokens is None else "batch_tokens"
            raise InputError(
                Message(
                    "one training step does not fit on {where}: {error}; try --set train.{key}={max}",
                    where=where,
                    error=str(error).splitlines()[0],
                    key=key,
                    max=max(1, getattr(asked.train, key) // 2),
                )
            ) from None
        crossed = crossover_ratios(asked, where)
    parameters = size.parameter_count(runnable.model, vocabulary)
    total = cost.seconds * runnable.train.steps
    largest = BatchShape.from_batch(batches.batch(*batches.locate_largest_batch()))
    peak = cost.peak_bytes or memory_bytes(runnable, vocabulary, largest)
    lints = [*task.lints(asked), *machine_lints(runnable, where), *inherited]
    ok = all(verdict.verdict == "ok" for verdict in verdicts)
    if json:
        for verdict in verdicts:
            print_json({"kind": "verdict", **asdict(verdict)})
        costs = {"parameters": parameters, "seconds_per_step": cost.seconds, "seconds": total, "memory_bytes": peak}
        measured = None if not crossed else {"saves_from": crossover_length(crossed), "ratio": crossed}
        warnings = [asdict(found) for found in lints]
        print_json({"kind": "cost", "device": str(where), **costs, "attention": measured, "lints": warnings})
        return ExitCode.DONE if ok else ExitCode.FAILED
    for found in lints:
        warn(tr(found.message))
    for verdict in verdicts:
        good = verdict.verdict == "ok"
        words = tr(verdict.check) if good else f"{tr(verdict.check)} {verdict.verdict}"
        print_check_result("passed" if good else "failed", tr("{words}: {why}", words=words, why=tr(verdict.why)))
    windows = runnable.train.batch_size * asked.train.accumulation * asked.window_targets
    rate = (cost.targets if asked.trains_on_rows else windows) / cost.seconds
    said = (
        tr("  {parameters:,} parameters, {memory} of memory at peak", parameters=parameters, memory=memory(peak))
        if cost.peak_bytes is not None
        else tr("  {parameters:,} parameters, about {memory} of memory", parameters=parameters, memory=memory(peak))
    )
    print_answer(said)
    print_answer(
        tr(
            "  one step takes {seconds:.0f} ms on {device_name} ({rate} tok/s): {steps} ≈ {duration}, excluding "
            "evaluations",
            seconds=cost.seconds * 1000,
            device_name=device_name(where),
            rate=si_number(rate),
            steps=trn("{n:,} step", "{n:,} steps", runnable.train.steps),
            duration=duration(total),
        )
    )
    kind = possibly_faster_layer_kind(asked.model)
    if crossed and kind is not None:
        least = crossover_length(crossed)
        saves = (
            tr(
                "  here, '{attention}' attention saves no time at any length tried (measured: forward and "
                "backward pass of one layer)",
                attention=kind.attention,
            )
            if least is None
            else tr(
                "  here, '{attention}' attention saves time above about {least:,} tokens (measured: forward and "
                "backward pass of one layer)",
                attention=kind.attention,
                least=least,
            )
        )
        print_answer(saves)
    if total > 20 * 60 and on is None and source.extends is not None:
        shorter = tr(
            "  for a shorter run, make the same change at demo size: --preset {name} --on demo", name=source.name
        )
        print_answer(shorter)
    return ExitCode.DONE if ok else ExitCode.FAILED
