"""A fit: `check` in a process of its own tells how long a step takes and whether a design holds. No widget, no torch.

It is killed when whoever waits for it no longer does, and a design that was measured once is not measured again.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import InputError
from tui_transformer.lab.design.draft import Draft
from tui_transformer.lab.formatting import memory
from tui_transformer.lab.launch.logs import last_words

LEFT_OUT = (("train", "steps"), ("seed",), ("preset",), ("description",))  # nothing of a step's time


@dataclass(frozen=True)
class Verdict:
    """What one check found."""

    check: str
    good: bool
    why: str


@dataclass(frozen=True)
class Fit:
    """What was measured.

    Args:
        device: on which.
        seconds_per_step: of training.
        seconds: of all steps, evaluations aside.
        memory: bytes at the peak.
        verdicts: of the checks before training.
    """

    device: str
    seconds_per_step: float
    seconds: float
    memory: float
    verdicts: tuple[Verdict, ...] = ()

    @property
    def words(self) -> str:
        """`≈ 4 min on cpu (68 ms a step)`."""
        return f"≈ {about(self.seconds)} on {self.device} ({_step(self.seconds_per_step)} a step)"

    @property
    def peak(self) -> str:
        """The memory it took."""
        return memory(self.memory)


@dataclass
class Fits:
    """Fits by design, so that none is made twice.

    Args:
        device: to measure on, as on the command line.
        data_dir: where named corpora are looked for first.
        runs_dir: where a run that the design starts from is looked for; None for the usual folder.
    """

    device: str
    data_dir: Path | None
    runs_dir: Path | None = None

    def __post_init__(self) -> None:
        self._known: dict[str, Fit] = {}

    def known(self, draft: Draft) -> Fit | None:
        """What was measured of this design; another number of steps only changes the sum."""
        fit = self._known.get(_key(draft))
        config = draft.config
        if fit is None or config is None or config.train.epochs is not None:
            return fit
        seconds = fit.seconds_per_step * config.train.steps
        return Fit(fit.device, fit.seconds_per_step, seconds, fit.memory, fit.verdicts)

    async def measure(self, draft: Draft) -> Fit:
        """Measure a design; cancelling this kills the process.

        Raises:
            InputError: what `check` complains about, in one line.
        """
        fit = self.known(draft)
        if fit is None:
            fit = await measure(self.command(draft))
            self._known[_key(draft)] = fit
        return fit

    def command(self, draft: Draft) -> list[str]:
        """What is run: `check` with the draft's own arguments, so that its switches are held against its preset."""
        words = [sys.executable, "-m", "tui_transformer", "check", *draft.arguments(), "--json"]
        words += ["--device", self.device]
        words += ["--runs-dir", str(self.runs_dir)] if self.runs_dir is not None else []
        return [*words, "--data-dir", str(self.data_dir)] if self.data_dir is not None else words


async def measure(command: list[str]) -> Fit:
    """Run `check … --json` and read its answer.

    Raises:
        InputError: it could not be started, or gave no answer.
    """
    starting = asyncio.ensure_future(_started(command))
    try:
        process = await asyncio.shield(starting)
        out, complaints = await process.communicate()
    except OSError as error:
        raise InputError(f"nothing could be measured: {error.strerror or error}") from None
    except asyncio.CancelledError:
        process = await starting  # it may have come to life by now
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise
    fit = read_answer(out.decode("utf-8", "replace").splitlines())
    if fit is None:
        raise InputError(last_words(complaints.decode("utf-8", "replace")) or "check gave no answer")
    return fit


async def _started(command: list[str]) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=os.environ | {"PYTHONUNBUFFERED": "1"}
    )


def read_answer(lines: Iterable[str]) -> Fit | None:
    """A fit from the lines of `check --json`; None where it says no cost."""
    verdicts, cost = [], None
    for line in lines:
        record = _record(line)
        if record.get("kind") == "verdict":
            good = record.get("verdict") == "ok"
            verdicts.append(Verdict(str(record.get("check")), good, str(record.get("why"))))
        elif record.get("kind") == "cost":
            cost = record
    if cost is None:
        return None
    step, seconds, peak = (float(cost.get(name) or 0.0) for name in ("seconds_per_step", "seconds", "memory_bytes"))
    return Fit(str(cost.get("device")), step, seconds, peak, tuple(verdicts))


def about(seconds: float) -> str:
    """`50 s`, `4 min`, `3 h 20 min`, `5 days`: as exact as an estimate is."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(round(minutes, -1), 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{round(hours / 24)} days"


def _step(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def _record(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _key(draft: Draft) -> str:
    """What a step's time and the checks depend on."""
    data: dict[str, Any] = draft.config.dump() if draft.config else {"problem": draft.problem}
    for *sections, last in LEFT_OUT:
        table = data
        for section in sections:
            table = table.get(section, {})
        table.pop(last, None)
    return json.dumps([str(draft.path or draft.preset.name), draft.on, data], sort_keys=True)
