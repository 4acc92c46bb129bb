"""A study's cost before it starts: runs, threads, time and disk. Torch is loaded only to time a step."""

import heapq
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from pydantic import Field

from engine.base.errors import InputError, process_start_error
from engine.base.language import Message, language_code, tr
from engine.config.schema import RunConfig
from engine.config.toml import parse
from engine.model import size
from engine.model.size import BYTES, memory_bytes
from engine.runs.records import Count, Flag, Number, Raw, Record
from tui_transformer.lab.work.cells import CellStatus
from tui_transformer.lab.work.logs import last_line
from tui_transformer.lab.work.study import THREADS, Study, parse_study

if TYPE_CHECKING:
    from engine.tasks.task import Task
    from engine.training.trial import StepCost

MOMENTS = 2  # AdamW's, beside the weights in a checkpoint
RECORD = 300  # bytes of a line of metrics.jsonl
OTHER_BYTES = 200_000  # bytes of a run's other files
PROCESS = 600_000_000  # bytes of memory a process takes besides its model
WORTH_A_THREAD = 1e10  # operations per step below which a second thread mostly waits
SCORING = 1 / 3  # share of a training token's cost: forward only
BEGINNING = 4.0  # seconds until a process trains: it loads the engine and the corpus, and probes for leaks


class RunCost(Record):
    """The cost of one run of a variant, or of one stage of it."""

    parameters: Count = 0  # of its model; 0 while the vocabulary is unknown
    steps: Count = 0  # of training
    seconds: Number = 0.0  # of a whole run, evaluations included; 0 while nothing was measured
    disk: Count = 0  # bytes left on disk
    measured: bool = True  # False if `seconds` is from a finished run of this study


class Plan(Record):
    """How a study is run: one line of JSON between processes."""

    devices: tuple[Raw, ...] = ()  # cells are spread over them
    jobs: Count = 1  # cells at a time
    threads: Count = 0  # CPU threads of each, the same for all, as sums depend on the count; 0 if unknown
    prices: dict[str, RunCost] = Field({})  # by `StudyCell.name_without_seed`
    timed: Flag = True  # if not, `seconds` are still missing where steps have to be timed

    def seconds_for(self, statuses: Iterable[CellStatus]) -> float:
        """Return the seconds until all these cells are done, `jobs` at a time; later if they wait for a stage."""
        free = [0.0] * self.jobs
        waiting = [status for status in statuses if status.state != "finished"]
        ends = {status.cell.name: math.inf for status in waiting}

        def ready(status: CellStatus) -> float:
            return ends.get(status.cell.parent_cell, 0.0)

        while waiting:
            at = next((i for i, status in enumerate(waiting) if ready(status) <= free[0]), None)
            status = waiting.pop(at if at is not None else waiting.index(min(waiting, key=ready)))
            left = self.prices[status.cell.name_without_seed].seconds * (1.0 - status.share)
            ends[status.cell.name] = max(free[0], ready(status)) + left
            heapq.heapreplace(free, ends[status.cell.name])
        return max(free)

    def disk_for(self, statuses: Iterable[CellStatus]) -> int:
        return sum(self.prices[status.cell.name_without_seed].disk for status in statuses if status.state != "finished")


@dataclass(frozen=True)
class PlanRequest:
    """What is to be planned; as JSON, the input of `measure-study`."""

    study: Study
    device: str  # `auto`, or comma-separated devices
    jobs: int | None  # cells at a time; None: as many as the machine can take
    cells: int  # that are left to run
    took: Mapping[str, float]  # seconds of a finished run, by `StudyCell.name_without_seed`
    known: Plan  # an earlier plan of these configs: what it timed is not timed again

    def to_json(self) -> str:
        return json.dumps(vars(self) | {"study": self.study.to_toml(), "known": self.known.dump()})

    @classmethod
    def from_json(cls, text: str) -> "PlanRequest":
        try:
            asked = json.loads(text)
        except (ValueError, RecursionError):
            asked = None
        keys = {one.name for one in fields(cls)}
        if not isinstance(asked, dict) or asked.keys() != keys or not isinstance(asked["study"], str):
            raise InputError(
                Message("measure-study: reserved for the studio, which sends it a study on standard input")
            )
        study = parse_study(parse(asked.pop("study").encode(), "study"), Path("study"))
        return cls(study, known=Plan.read(asked.pop("known")), **asked)


def disk_bytes(config: RunConfig, parameters: int) -> int:
    """Bytes a finished run leaves: its newest, best and final checkpoints, and its records."""
    saved = config.checkpoint
    numbers = 1 + MOMENTS + (1 if config.train.ema else 0)  # of a parameter in a checkpoint
    averages = (1 if saved.average_last else 0) + (1 if config.train.ema else 0)
    kept = (max(saved.keep_last, saved.average_last) + 1) * numbers + averages
    lines = config.train.steps / config.log.every
    return int(kept * BYTES * parameters + lines * RECORD + OTHER_BYTES)


def evaluation_cost_in_steps(config: RunConfig, step_tokens: float, validation_tokens: int) -> float:
    """Return the cost of a resolved config's evaluations, in training steps of so many tokens."""
    every = config.evaluation.every
    times = config.train.steps // every + (1 if config.train.steps % every else 0) if every else 1
    read = validation_tokens * (1.0 if config.trains_on_rows else config.window_targets / config.evaluation_stride)
    return times * read * SCORING / step_tokens


def useful_threads(configs: Sequence[tuple[RunConfig, int]]) -> int:
    """Return the CPU threads that the smallest of these models can use; each comes with its vocabulary."""
    operations = []
    for config, vocabulary in configs:
        tokens = config.train.batch_tokens or config.train.batch_size * config.window_targets
        operations.append(tokens * size.training_flops_per_token(config.model, vocabulary, config.train.batch_size))
    return max(1, int(min(operations) / WORTH_A_THREAD))


def jobs_and_threads(
    cells: int,
    *,
    cores: int,
    free_memory: int,
    memory_per_cell: int,
    threads_worth_using: int,
    jobs: int | None = None,
    threads: int | None = None,
) -> tuple[int, int]:
    """How many cells at a time on a CPU, and threads for each: another run gains more than another thread.

    `memory` is free bytes, `needed` those of one cell, `worth` the threads that its model can use; `jobs`
    and `threads` are as asked for. Raises InputError for more cells at a time than memory has room for.
    """
    room, jobs = max(1, free_memory // memory_per_cell), jobs and min(jobs, cells)
    if jobs is not None and jobs > room:
        text = Message(
            "--jobs {jobs}: {jobs} runs at a time need {needed:.1f} GB of memory, but only {free:.1f} GB is "
            "free; --jobs {room} fits",
            jobs=jobs,
            needed=jobs * memory_per_cell / 1e9,
            free=free_memory / 1e9,
            room=room,
        )
        raise InputError(text)
    jobs = jobs or max(1, min(cores // (threads or 1), cells, room))
    return jobs, threads or max(1, min(cores // jobs, threads_worth_using))


def make_plan_in_subprocess(request: PlanRequest, data_dir: Path | None, checked: Callable[[Plan], None]) -> Plan:
    """Plan a study in a separate process.

    `checked` is given the plan once everything works, before steps are timed. Raises InputError for a device, a corpus
    or a config that does not work here, or too little memory.
    """
    command = [sys.executable, "-m", "tui_transformer", "--language", language_code(), "measure-study"]
    command += ["--data-dir", str(data_dir)] if data_dir is not None else []
    line = ""
    with TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        try:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
        except OSError as error:
            raise process_start_error(error) from None
        with process:
            assert process.stdin is not None and process.stdout is not None
            try:
                with suppress(BrokenPipeError):  # it says why on stderr
                    process.stdin.write(request.to_json())
                    process.stdin.close()
                for line in process.stdout:
                    if line.endswith("\n") and not (plan := Plan.read(json.loads(line))).timed:
                        checked(plan)
            except BaseException:  # not needed any more
                process.kill()
                raise
        if process.returncode != 0:
            errors.seek(0)
            raise InputError(last_line(errors.read()) or tr("measurement failed without an error message"))
    return Plan.read(json.loads(line))


def time_steps_and_plan(request: PlanRequest, data_dir: Path | None, checked: Callable[[Plan], None]) -> Plan:
    """Plan in this process, which loads torch and times steps; arguments as for `make_plan_in_subprocess`."""
    import psutil
    import torch

    from engine.model.devices import default_threads, resolve_device
    from engine.tasks.task import make_task
    from engine.training.assemble import build_network
    from engine.training.checkpoint import parameter_shapes
    from engine.training.init_from import match_shapes, require_same_tokenizer
    from engine.training.trial import step_cost

    study, device, jobs, took, known = request.study, request.device, request.jobs, request.took, request.known
    if device in ("auto", "cuda") and torch.cuda.is_available():
        names = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    else:  # named, comma-separated
        names = list(dict.fromkeys(name.strip() for name in device.split(",") if name.strip()))
    if not names:
        text = Message("--device {device!r}: name at least one device, e.g. --device cuda:0,cuda:1", device=device[:40])
        raise InputError(text)
    devices = tuple(str(resolve_device(name)) for name in names)
    fixed = study.changes.get(THREADS)
    first = [cell for cell in study.cells() if cell.seed == study.seeds[0]]
    kinds = {cell.name: cell.name_without_seed for cell in first}
    configs = {cell.name_without_seed: cell.config for cell in first}
    where = tr("study '{name}', variant", name=study.name)
    tasks: dict[str, Task] = {}
    made: dict[str, Task] = {}
    for cell in first:
        name, config = cell.name_without_seed, cell.config
        parent = kinds.get(cell.parent_cell, "")
        given = tasks[parent].tokenizer if parent else None
        said = json.dumps([config.data.model_dump(mode="json"), config.task.name, config.model.context_length])
        said += given.sha256 if given is not None else ""
        if said not in made:
            made[said] = make_task(config, data_dir, given)
        tasks[name] = made[said]
        configs[name] = tasks[name].resolve_config(config, f"{where} '{name}'", fixed or 1)
        if parent:
            # Find a stage whose model cannot take the previous one's weights now, not after training that.
            pair = configs[name], configs[parent]
            own, saved = (parameter_shapes(c.model, c.min_vocab_size(tasks[name].vocab_size)) for c in pair)
            require_same_tokenizer(*pair, parent, tasks[name].tokenizer)
            match_shapes(pair[0], own, pair[1], saved, tasks[name].tokenizer)
    sized = [(config, config.min_vocab_size(tasks[name].vocab_size)) for name, config in configs.items()]
    needed = PROCESS + max(memory_bytes(config, vocabulary) for config, vocabulary in sized)
    if torch.device(devices[0]).type == "cpu":
        memory = int(psutil.virtual_memory().available)
        worth, cores = useful_threads(sized), default_threads()
        jobs, threads = jobs_and_threads(
            request.cells,
            cores=cores,
            free_memory=memory,
            memory_per_cell=needed,
            threads_worth_using=worth,
            jobs=jobs,
            threads=fixed,
        )
    else:
        jobs = jobs or min(len(devices), request.cells)
        threads = fixed or max(1, min(4, default_threads() // jobs))
    torch.set_num_threads(threads)
    alike = known.devices == devices and known.threads == threads
    timed = {name: price.seconds for name, price in known.prices.items() if alike and price.seconds}
    prices = {}
    for name, (config, vocabulary) in zip(configs, sized, strict=True):
        prices[name] = RunCost(
            parameters=(parameters := size.parameter_count(config.model, vocabulary)),
            steps=config.train.steps,
            seconds=took.get(name, timed.get(name, 0.0)),
            disk=disk_bytes(config, parameters),
            measured=name not in took,
        )
    plan = Plan(devices=devices, jobs=jobs, threads=threads, prices=prices, timed=False)
    checked(plan)
    costs: dict[str, StepCost] = {}
    for name, (config, vocabulary) in zip(configs, sized, strict=True):
        if prices[name].seconds:
            continue
        cost = costs.get(shape := timed_settings(config, tasks[name].tokenizer.sha256))
        if cost is None:
            on = torch.device(devices[0])
            repeats = 3 if useful_threads([(config, vocabulary)]) == 1 else 1  # slow steps are steady
            cost = step_cost(config, build_network(config, vocabulary, on), tasks[name].batches(config, on), repeats)
            costs[shape] = cost
        windows = config.train.batch_size * config.train.accumulation * config.window_targets
        step_tokens = cost.targets if config.trains_on_rows else windows
        scored = evaluation_cost_in_steps(config, step_tokens, tasks[name].n_predicted("validation"))
        seconds = BEGINNING + cost.seconds * (config.train.steps + scored)
        prices[name] = prices[name].model_copy(update={"seconds": seconds})
    return Plan(devices=devices, jobs=jobs, threads=threads, prices=prices)


def timed_settings(config: RunConfig, tokenizer: str) -> str:
    """Return the settings that a training step's time may depend on, as text: not the seed or the learning rate."""
    said = config.model_dump(
        mode="json",
        include={"data": True, "objective": True, "model": True, "train": True, "optimizer": {"kind", "decay"}},
        exclude={"model": {"init", "init_std"}, "train": {"epochs", "init_from"}},
    )
    return json.dumps([said, tokenizer])
