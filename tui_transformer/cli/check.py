"""`check`: what can be known of a model before it is trained."""

from dataclasses import asdict
from pathlib import Path

from rich.text import Text

from engine import capabilities
from engine.clean import clean_line
from engine.config import presets
from engine.errors import InputError
from engine.lints import lint
from tui_transformer.cli.exit_codes import ExitCode
from tui_transformer.cli.output import emit, stdout, warn
from tui_transformer.cli.run import Request, loading
from tui_transformer.lab.formatting import count, duration, memory, short

LONG_RUN = 20 * 60  # seconds; above that, a smaller base is suggested


def check_command(request: Request, *, device: str, as_json: bool, runs_dir: Path, data_dir: Path | None) -> int:
    """Print verdicts and costs; exit code 1 if something does not hold."""
    config = request.resolve()
    source = request.source()
    capabilities.require(config, f"preset '{source.name}'")
    with loading("loading the engine, the corpus and the model"):
        from engine.evaluation.alarms import overlapping
        from engine.evaluation.checks import leak_probe
        from engine.evaluation.scorers import largest_batch
        from engine.model import size
        from engine.model.size import BatchShape, memory_bytes
        from engine.training.assemble import built
        from engine.training.devices import default_threads, device_name, resolve_device
        from engine.training.init_from import InitFrom
        from engine.training.self_check import self_check
        from engine.training.tasks import make_task
        from engine.training.trial import crossover, step_cost, switch_effect

        where = resolve_device(device)
        source_run = InitFrom.find(config, runs_dir)
        task = make_task(config, data_dir, None if source_run is None else source_run.tokenizer)
        characters = task.vocab_size
        vocabulary = config.needed_tokens(characters)
        runnable = task.resolved(config, f"preset '{source.name}'", default_threads())
        model = built(runnable, vocabulary, where)
        inherited = () if source_run is None else source_run.copy_weights(model, runnable).lints
        batches = task.batches(config, where)
    with loading("checking"):
        rows = largest_batch(runnable)
        verdicts = [
            leak_probe(model, batches.objective, batches.probed(), characters, when="before", step=0, rows=rows),
            *self_check(runnable, model, task),
        ]
        verdicts += [overlapping(task.overlap)] if task.overlap is not None else []
        for parent in (presets.parent_config(source, request.on), request.without_changes()):
            if parent is not None:
                verdicts += switch_effect(config, parent, vocabulary)
        verdicts = list(dict.fromkeys(verdicts))
        try:
            cost = step_cost(runnable, model, batches)
        except (MemoryError, RuntimeError) as error:
            key = "batch_size" if config.train.batch_tokens is None else "batch_tokens"
            raise InputError(
                f"one training step does not fit on {where}: {str(error).splitlines()[0]}; "
                f"try --set train.{key}={max(1, getattr(config.train, key) // 2)}"
            ) from None
        crossed = crossover(config, where)
    parameters = size.parameter_count(runnable.model, vocabulary)
    total = cost.seconds * runnable.train.steps
    largest = BatchShape.of_batch(batches.batch(*batches.largest()))
    peak = cost.peak_bytes or memory_bytes(runnable, vocabulary, largest)
    lints = [*lint(config, task.train_tokens, task.validation_tokens), *task.lints(config), *inherited]
    ok = all(verdict.verdict == "ok" for verdict in verdicts)
    if as_json:
        for verdict in verdicts:
            emit({"kind": "verdict", **verdict.to_json()})
        costs = {"parameters": parameters, "seconds_per_step": cost.seconds, "seconds": total, "memory_bytes": peak}
        measured = None if crossed is None else {"saves_from": crossed.saves_from, "ratio": crossed.ratio}
        warnings = [asdict(found) for found in lints]
        emit({"kind": "cost", "device": str(where), **costs, "attention": measured, "lints": warnings})
        return ExitCode.DONE if ok else ExitCode.FAILED
    for found in lints:
        warn(f"{found.key}: {found.text}")
    text = Text()
    for verdict in verdicts:
        good = verdict.verdict == "ok"
        text.append("✓ " if good else "✗ ", style="green" if good else "bold red")
        text.append(clean_line(f"{verdict.check}: {'' if good else verdict.verdict + ': '}{verdict.why}") + "\n")
    windows = runnable.train.batch_size * config.train.accumulation * config.window_targets
    rate = (cost.targets if config.on_rows else windows) / cost.seconds
    about = "peak" if cost.peak_bytes is not None else "about"
    text.append(f"  {parameters:,} parameters, {about} {memory(peak)} of memory\n")
    text.append(
        f"  one step takes {cost.seconds * 1000:.0f} ms on {device_name(where)} ({short(rate)} tok/s): "
        f"{count(runnable.train.steps, 'step')} ≈ {duration(total)}, evaluations aside"
    )
    if crossed is not None:
        least = crossed.saves_from
        saves = "saves no time at any length tried" if least is None else f"saves time from about {least:,} tokens on"
        text.append(f"\n  here, '{crossed.kind}' attention {saves} (forward and backward of one layer, measured)")
    if total > LONG_RUN and request.on is None and source.extends is not None:
        text.append(f"\n  shorter: the same change on the small base, --preset {source.name} --on demo")
    stdout().print(text)
    return ExitCode.DONE if ok else ExitCode.FAILED
