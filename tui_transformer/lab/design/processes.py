"""What a design or a study asks of `check` and `ablate`, each in a process of its own. No widget, no torch.

A process that measures is killed when whoever waits for it no longer does; one that was told to train goes on.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from engine.command_line import command_line
from engine.errors import InputError, no_process
from engine.runs.records import Count, Number, Raw, Record
from tui_transformer.lab.design.draft import Benchmark, CheckVerdict, Draft
from tui_transformer.lab.design.study_draft import Estimate
from tui_transformer.lab.launch.logs import last_words
from tui_transformer.lab.studies.study import SUFFIX, Study

LEFT_OUT = (("train", "steps"), ("seed",), ("preset",), ("description",))  # no part of a step's time


class _Price(Record):
    """What a run of a variant costs, in the plan of `ablate`."""

    seconds: Number | None = None
    parameters: Count = 0


class Answer(Record):
    """A line of JSON that `check` or `ablate` printed."""

    kind: Raw = ""
    seconds: Number | None = None
    # verdict, of `check`
    check: Raw = ""
    verdict: Raw = ""
    why: Raw = ""
    # cost, of `check`
    device: Raw = ""
    seconds_per_step: Number | None = None
    memory_bytes: Number | None = None
    # plan, of `ablate`
    prices: dict[str, _Price] = Field(default_factory=dict)
    devices: tuple[Raw, ...] = ()
    disk_bytes: Count = 0
    jobs: Count = 0
    threads: Count = 0


def _answers(lines: Iterable[str]) -> list[Answer]:
    answers = []
    for line in lines:
        with suppress(ValueError):
            answers.append(Answer.read(json.loads(line)))
    return answers


async def _run(command: list[str], *, stays: bool = False) -> tuple[int, list[str], str]:
    """Return a process's exit code, the lines that it printed, and the last words it complained with.

    Cancelling this kills the process and what it started, unless it `stays`.

    Raises:
        OSError: it cannot be started.
    """
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*command, stdin=nothing, stdout=pipe, stderr=pipe, start_new_session=True)
    )
    try:
        process = await asyncio.shield(starting)
        out, complaints = await process.communicate()
    except asyncio.CancelledError:
        process = await starting  # it may have come to life by now
        if process.returncode is None and not stays:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        raise
    said = last_words(complaints.decode("utf-8", "replace"))
    return process.returncode or 0, out.decode("utf-8", "replace").splitlines(), said


# A design: `check`


@dataclass
class Benchmarks:
    """The benchmarks of designs, so that none is made twice."""

    device: str  # to measure on, as on the command line
    data_dir: Path | None  # where named corpora are looked for first
    runs_dir: Path | None = None  # where a run that the design starts from is looked for; None for the usual folder

    def __post_init__(self) -> None:
        self._known: dict[str, Benchmark] = {}

    def known(self, draft: Draft) -> Benchmark | None:
        """Return what was measured of a design; another number of steps only changes the sum."""
        found = self._known.get(_key(draft))
        config = draft.config
        if found is None or config is None or config.train.epochs is not None:
            return found
        return replace(found, seconds=found.seconds_per_step * config.train.steps)

    async def measure(self, draft: Draft) -> Benchmark:
        """Measure a design; cancelling this kills the process.

        Raises:
            InputError: what `check` complains about, in one line.
        """
        found = self.known(draft)
        if found is None:
            found = self._known[_key(draft)] = await measure(self.command(draft))
        return found

    def command(self, draft: Draft) -> list[str]:
        """Return `check` with the draft's own arguments, so that its switches are compared with its preset's."""
        words = [sys.executable, "-m", "tui_transformer", "check", *draft.arguments(), "--json"]
        words += ["--device", self.device]
        words += ["--runs-dir", str(self.runs_dir)] if self.runs_dir is not None else []
        return [*words, "--data-dir", str(self.data_dir)] if self.data_dir is not None else words


async def measure(command: list[str]) -> Benchmark:
    """Run `check … --json` and read its answer; what it finds wrong is an answer too.

    Raises:
        InputError: it could not be started, or gave no answer.
    """
    try:
        _, lines, complaint = await _run(command)
    except OSError as error:
        raise InputError(f"nothing could be measured: {error.strerror or error}") from None
    benchmark = read_benchmark(lines)
    if benchmark is None:
        raise InputError(complaint or "check gave no answer")
    return benchmark


def read_benchmark(lines: Iterable[str]) -> Benchmark | None:
    """Read the lines of `check --json`; None where they say no cost."""
    answers = _answers(lines)
    verdicts = tuple(CheckVerdict(a.check, a.verdict == "ok", a.why) for a in answers if a.kind == "verdict")
    for cost in answers:
        if cost.kind == "cost":
            step, seconds, peak = cost.seconds_per_step or 0.0, cost.seconds or 0.0, cost.memory_bytes or 0.0
            return Benchmark(cost.device, step, seconds, peak, verdicts)
    return None


def _key(draft: Draft) -> str:
    """What the time of a step and the checks depend on."""
    data: dict[str, Any] = draft.config.dump() if draft.config else {"problem": draft.problem}
    for *sections, last in LEFT_OUT:
        table = data
        for section in sections:
            table = table.get(section, {})
        table.pop(last, None)
    return json.dumps([str(draft.path or draft.preset.name), draft.on, data], sort_keys=True)


# A study: `ablate`


@dataclass(frozen=True)
class LaunchTarget:
    """Where and on what a study is run, as on the command line."""

    runs_dir: Path
    data_dir: Path | None
    device: str  # `auto`, or devices with commas between

    def words(self, file: Path) -> list[str]:
        """Return the command that runs the study in a file."""
        words = [sys.executable, "-m", "tui_transformer", "ablate", "--study", str(file), "--device", self.device]
        words += ["--runs-dir", str(self.runs_dir.resolve()), "--json"]
        return [*words, "--data-dir", str(self.data_dir.resolve())] if self.data_dir is not None else words


async def plan(study: Study, target: LaunchTarget) -> Estimate:
    """Time a step of each variant; cancelling this ends the process.

    Raises:
        InputError: what `ablate` complains about, in one line.
    """
    for answer in await _ask_ablate(study, target, "--dry-run"):
        estimate = read_estimate(answer)
        if estimate is not None:
            return estimate
    raise InputError("nothing could be measured: ablate gave no plan")


def read_estimate(answer: Answer) -> Estimate | None:
    """Read the plan that `ablate --dry-run --json` prints; None where it is none."""
    if answer.kind != "plan" or answer.seconds is None:
        return None
    prices = answer.prices.items()
    return Estimate(
        parameters={name: price.parameters for name, price in prices if price.parameters},
        each={name: price.seconds for name, price in prices if price.seconds is not None},
        seconds=answer.seconds,
        disk=answer.disk_bytes or None,
        measured=True,
        at_once=answer.jobs or 1,
        threads=answer.threads,
        devices=answer.devices,
    )


async def start(study: Study, target: LaunchTarget) -> str:
    """Leave a study to a process that outlives this one; return what became of it, in one sentence.

    Raises:
        InputError: what `ablate` complains about, in one line.
    """
    if not any(answer.kind == "study" for answer in await _ask_ablate(study, target, "--detach", stays=True)):
        listed = command_line("runs", runs_dir=target.runs_dir)
        raise InputError(f"study '{study.name}' did not report that it started; `{listed}` lists the runs")
    runs = len(study.cells())
    return f"{study.name} runs: its {runs} runs come into Train (2) one by one, and Compare (3) holds their table"


async def _ask_ablate(study: Study, target: LaunchTarget, option: str, *, stays: bool = False) -> list[Answer]:
    """Return what `ablate` answers; the study travels as a file that is gone afterwards."""
    with tempfile.NamedTemporaryFile("w", suffix=SUFFIX, encoding="utf-8", delete=False) as file:
        file.write(study.to_toml())
    path, left = Path(file.name), False
    try:
        code, lines, complaint = await _run([*target.words(path), option], stays=stays)
    except OSError as error:
        raise no_process(error) from None
    except asyncio.CancelledError:
        left = stays  # the process still has to read it
        raise
    finally:
        if not left:
            path.unlink(missing_ok=True)
    if code != 0:
        raise InputError(complaint or "ablate ended without a word")
    return _answers(lines)
