"""Times a step of each variant of a study: in a process of its own, which holds the engine and leaves with it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.config.schema import RunConfig
from engine.errors import InputError, no_process
from tui_transformer.lab.launch.logs import last_words
from tui_transformer.lab.studies.plan import (
    BEGINNING,
    PROCESS,
    Plan,
    Priced,
    disk_bytes,
    evaluation_steps,
    read_plan,
    shared_out,
    threads_worth,
)
from tui_transformer.lab.studies.record import THREADS
from tui_transformer.lab.studies.study import Study

if TYPE_CHECKING:
    from engine.training.task import Task


def measured(
    study: Study, *, device: str, jobs: int | None, cells: int, took: Mapping[str, float], data_dir: Path | None
) -> Plan:
    """The plan of a study, from a process of its own.

    Args:
        study: what is to be run.
        device: as on the command line.
        jobs: cells at a time, as on the command line.
        cells: that are to be run.
        took: seconds of a finished run, by `Cell.kind`.
        data_dir: where named corpora are looked for first.

    Raises:
        InputError: a device, a corpus or a config that does not work here; or too little memory.
    """
    asked = {"study": study.to_toml(), "device": device, "jobs": jobs, "cells": cells, "took": dict(took)}
    command = [sys.executable, "-m", "tui_transformer", "measure-study"]
    command += ["--data-dir", str(data_dir)] if data_dir is not None else []
    try:
        done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
    except OSError as error:
        raise no_process(error) from None
    if done.returncode != 0:
        raise InputError(last_words(done.stderr) or "nothing could be measured: its process said nothing")
    return read_plan(json.loads(done.stdout.splitlines()[-1]))


def plan_of(
    study: Study,
    *,
    device: str,
    jobs: int | None,
    cells: int,
    took: Mapping[str, float],
    data_dir: Path | None,
) -> Plan:
    """The plan, here: loads torch and times. Arguments as `measured`'s."""
    import psutil
    import torch

    from engine.model import size
    from engine.model.size import memory_bytes
    from engine.training.assemble import built
    from engine.training.devices import default_threads, resolve_device
    from engine.training.tasks import make_task
    from engine.training.trial import step_cost

    devices = tuple(str(resolve_device(name)) for name in several_devices(device))
    fixed = study.changes.get(THREADS)
    cores = default_threads()
    first = [cell for cell in study.cells() if cell.seed == study.seeds[0]]
    kinds = {cell.name: cell.kind for cell in first}
    configs = {cell.kind: cell.config for cell in first}
    where = f"study '{study.name}', variant"
    tasks: dict[str, Task] = {}
    known: dict[str, Task] = {}
    for cell in first:
        name, config = cell.kind, cell.config
        parent = kinds.get(cell.after, "")
        given = tasks[parent].tokenizer if parent else None
        said = json.dumps([config.data.model_dump(mode="json"), config.objective.kind, config.model.context_length])
        said += given.sha256 if given is not None else ""
        if said not in known:
            known[said] = make_task(config, data_dir, given)
        tasks[name] = known[said]
        configs[name] = tasks[name].resolved(config, f"{where} '{name}'", fixed or 1)
        if parent:
            _require_fitting(configs[name], configs[parent], parent, tasks[name])
    sized = [(config, config.needed_tokens(tasks[name].vocab_size)) for name, config in configs.items()]
    needed = PROCESS + max(memory_bytes(config, vocabulary) for config, vocabulary in sized)
    if torch.device(devices[0]).type == "cpu":
        memory = int(psutil.virtual_memory().available)
        jobs, threads = shared_out(
            cells,
            cores=cores,
            memory=memory,
            needed=needed,
            worth=threads_worth(sized),
            jobs=jobs,
            threads=fixed,
        )
    else:
        jobs = jobs or min(len(devices), cells)
        threads = fixed or max(1, min(4, cores // jobs))
    torch.set_num_threads(threads)
    prices = {}
    for (name, config), (_, vocabulary) in zip(configs.items(), sized, strict=True):
        parameters = size.parameter_count(config.model, vocabulary)
        seconds = took.get(name)
        if seconds is None:
            on = torch.device(devices[0])
            repeats = 3 if threads_worth([(config, vocabulary)]) == 1 else 1  # what is slow is steady
            cost = step_cost(config, built(config, vocabulary, on), tasks[name].batches(config, on), repeats)
            windows = config.train.batch_size * config.train.accumulation * config.window_targets
            step_tokens = cost.targets if config.on_rows else windows
            scored = evaluation_steps(config, step_tokens, tasks[name].validation_tokens)
            seconds = BEGINNING + cost.seconds * (config.train.steps + scored)
        prices[name] = Priced(parameters, config.train.steps, seconds, disk_bytes(config, parameters), name not in took)
    return Plan(devices, jobs, threads, prices)


def _require_fitting(config: RunConfig, before: RunConfig, name: str, task: "Task") -> None:
    """Refuse a stage whose model cannot take the weights of the stage before it: now, not after that is trained.

    Args:
        config: of the stage, resolved.
        before: of the stage it starts from, resolved.
        name: of that stage.
        task: of the stage.
    """
    from engine.training.checkpoint import parameter_shapes
    from engine.training.init_from import match_shapes, require_same_reading

    own, saved = (parameter_shapes(c.model, c.needed_tokens(task.vocab_size)) for c in (config, before))
    require_same_reading(config, before, name, task.tokenizer)
    match_shapes(config, own, before, saved, task.tokenizer)


def several_devices(device: str) -> list[str]:
    """`auto` and `cuda` are all GPUs of this machine; others are named, with commas between."""
    import torch

    if device in ("auto", "cuda") and torch.cuda.is_available():
        return [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    names = [name.strip() for name in device.split(",") if name.strip()]
    if not names:
        raise InputError(f"--device {device[:40]!r}: name devices, e.g. --device cuda:0,cuda:1")
    return list(dict.fromkeys(names))
