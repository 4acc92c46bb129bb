"""Run `check` and `ablate` for a design or a study, each in its own process. No widgets, no torch.

A measuring process is killed when nobody waits for it any more; a training one continues.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.command_line import command_line
from engine.config.keys import flatten
from engine.errors import InputError, no_process
from engine.runs.records import Number, Raw
from tui_transformer.lab.design.draft import Benchmark, CheckVerdict, Draft
from tui_transformer.lab.design.study_draft import Estimate
from tui_transformer.lab.launch.logs import last_words
from tui_transformer.lab.studies.study import SUFFIX, Study

LEFT_OUT = ("train.steps", "seed", "preset", "description")  # not part of a step's time


class Answer(Estimate):
    """A JSON line printed by `check` or `ablate`."""

    kind: Raw = ""
    measured: bool = True
    # verdict, of `check`
    check: Raw = ""
    verdict: Raw = ""
    why: Raw = ""
    # cost, of `check`
    device: Raw = ""
    seconds_per_step: Number | None = None
    memory_bytes: Number | None = None


def _answers(lines: Iterable[str]) -> list[Answer]:
    answers = []
    for line in lines:
        with suppress(ValueError):
            answers.append(Answer.read(json.loads(line)))
    return answers


async def _run(command: list[str], *, stays: bool = False) -> tuple[int, list[str], str]:
    """Return a process's exit code, its stdout lines, and the last line of its complaint.

    Cancelling this kills the process and its children, unless it `stays`.
    """
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*command, stdin=nothing, stdout=pipe, stderr=pipe, start_new_session=True)
    )
    try:
        process = await asyncio.shield(starting)
        out, complaints = await process.communicate()
    except asyncio.CancelledError:
        process = await starting  # it may have started by now
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
    """Benchmarks of designs, so that none runs twice."""

    device: str  # to measure on, as on the command line
    data_dir: Path | None  # searched first for named corpora
    runs_dir: Path | None = None  # searched for a run that the design starts from; None for the usual folder
    _known: dict[str, Benchmark] = field(default_factory=dict)

    def known(self, draft: Draft) -> Benchmark | None:
        """Return a design's measurement; a different number of steps only changes the total."""
        found = self._known.get(self._key(draft))
        config = draft.config
        if found is None or config is None or config.train.epochs is not None:
            return found
        return replace(found, seconds=found.seconds_per_step * config.train.steps)

    async def measure(self, draft: Draft) -> Benchmark:
        """Measure a design; cancelling this kills the process. Raises as `measure` below."""
        found = self.known(draft)
        if found is None:
            found = self._known[self._key(draft)] = await measure(self.command(draft))
        return found

    @staticmethod
    def _key(draft: Draft) -> str:
        data = flatten(draft.config.dump()) if draft.config else {"problem": draft.problem}
        data = {key: value for key, value in data.items() if key not in LEFT_OUT}
        return json.dumps([str(draft.path or draft.preset.name), draft.on, data], sort_keys=True)

    def command(self, draft: Draft) -> list[str]:
        """Return `check` with the draft's arguments, which compares its switches with its preset's."""
        words = [sys.executable, "-m", "tui_transformer", "check", *draft.arguments(), "--json"]
        words += ["--device", self.device]
        words += ["--runs-dir", str(self.runs_dir)] if self.runs_dir is not None else []
        return [*words, "--data-dir", str(self.data_dir)] if self.data_dir is not None else words


async def measure(command: list[str]) -> Benchmark:
    """Run `check … --json`; problems it finds are an answer. Raises InputError only if there is none."""
    try:
        _, lines, complaint = await _run(command)
    except OSError as error:
        raise InputError(f"nothing could be measured: {error.strerror or error}") from None
    benchmark = read_benchmark(lines)
    if benchmark is None:
        raise InputError(complaint or "check gave no answer")
    return benchmark


def read_benchmark(lines: Iterable[str]) -> Benchmark | None:
    answers = _answers(lines)
    verdicts = tuple(CheckVerdict(a.check, a.verdict == "ok", a.why) for a in answers if a.kind == "verdict")
    for cost in answers:
        if cost.kind == "cost":
            step, seconds, peak = cost.seconds_per_step or 0.0, cost.seconds or 0.0, cost.memory_bytes or 0.0
            return Benchmark(cost.device, step, seconds, peak, verdicts)
    return None


# A study: `ablate`


@dataclass(frozen=True)
class LaunchTarget:
    runs_dir: Path
    data_dir: Path | None
    device: str  # `auto`, or comma-separated devices

    def words(self, file: Path) -> list[str]:
        words = [sys.executable, "-m", "tui_transformer", "ablate", "--study", str(file), "--device", self.device]
        words += ["--runs-dir", str(self.runs_dir.resolve()), "--json"]
        return [*words, "--data-dir", str(self.data_dir.resolve())] if self.data_dir is not None else words


async def plan(study: Study, target: LaunchTarget) -> Estimate:
    """Time a step of each variant; cancelling this ends the process. Raises as `start`."""
    for answer in await _ask_ablate(study, target, "--dry-run"):
        if answer.kind == "plan" and answer.seconds is not None:
            return answer
    raise InputError("nothing could be measured: ablate gave no plan")


async def start(study: Study, target: LaunchTarget) -> str:
    """Hand a study to a process that outlives this one; return the outcome in one sentence."""
    if not any(answer.kind == "study" for answer in await _ask_ablate(study, target, "--detach", stays=True)):
        listed = command_line("runs", runs_dir=target.runs_dir)
        raise InputError(f"study '{study.name}' did not report that it started; `{listed}` lists the runs")
    runs = len(study.cells())
    return f"{study.name} runs: its {runs} runs come into Train (2) one by one, and Compare (3) holds their table"


async def _ask_ablate(study: Study, target: LaunchTarget, option: str, *, stays: bool = False) -> list[Answer]:
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
