"""A study handed to `ablate`, in a process of its own: to be planned, or to be run. No widget, no torch.

What is asked travels as a file that is gone afterwards; a study that is run has its file beside its runs.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.command_line import command_line
from engine.errors import InputError, no_process
from tui_transformer.lab.design.study_estimate import Estimate, read_estimate
from tui_transformer.lab.launch.logs import last_words
from tui_transformer.lab.records.facts import table
from tui_transformer.lab.studies.study import SUFFIX, Study


@dataclass(frozen=True)
class Place:
    """Where and on what a study is run, as on the command line.

    Args:
        runs_dir: where runs are.
        data_dir: where named corpora are looked for first.
        device: `auto`, or devices with commas between.
    """

    runs_dir: Path
    data_dir: Path | None
    device: str

    def words(self, file: Path) -> list[str]:
        """The command that runs the study in a file."""
        words = [sys.executable, "-m", "tui_transformer", "ablate", "--study", str(file), "--device", self.device]
        words += ["--runs-dir", str(self.runs_dir.resolve()), "--json"]
        return [*words, "--data-dir", str(self.data_dir.resolve())] if self.data_dir is not None else words


async def plan(study: Study, place: Place) -> Estimate:
    """Time a step of each variant; cancelling this ends the process.

    Raises:
        InputError: what `ablate` complains about, in one line.
    """
    for record in await _answers(study, place, "--dry-run"):
        estimate = read_estimate(record)
        if estimate is not None:
            return estimate
    raise InputError("nothing could be measured: ablate gave no plan")


async def start(study: Study, place: Place) -> str:
    """Leave a study to a process that outlives this one; what became of it, in one sentence.

    Raises:
        InputError: what `ablate` complains about, in one line.
    """
    records = await _answers(study, place, "--detach", stays=True)
    started = any(record.get("kind") == "study" for record in records)
    if not started:
        listed = command_line("runs", runs_dir=place.runs_dir)
        raise InputError(f"study '{study.name}' did not report that it started; `{listed}` lists the runs")
    runs = len(study.cells())
    return f"{study.name} runs: its {runs} runs come into Train (2) one by one, and Compare (3) holds their table"


async def _answers(study: Study, place: Place, *options: str, stays: bool = False) -> list[dict[str, Any]]:
    """The lines of JSON that `ablate` prints; with `stays` it goes on where this is cancelled."""
    with tempfile.NamedTemporaryFile("w", suffix=SUFFIX, encoding="utf-8", delete=False) as file:
        file.write(study.to_toml())
    path = Path(file.name)
    try:
        out = await _run([*place.words(path), *options], stays=stays)
    except asyncio.CancelledError:
        if not stays:
            path.unlink(missing_ok=True)
        raise
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    path.unlink(missing_ok=True)
    return [table(record) for line in out.splitlines() if (record := _json(line)) is not None]


async def _run(command: Sequence[str], *, stays: bool) -> str:
    pipe = asyncio.subprocess.PIPE
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
        )
    )
    try:
        process = await asyncio.shield(starting)
        out, complaints = await process.communicate()
    except OSError as error:
        raise no_process(error) from None
    except asyncio.CancelledError:
        process = await starting  # it may have come to life by now
        if process.returncode is None and not stays:
            with suppress(ProcessLookupError):  # with what it started to measure
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        raise
    if process.returncode != 0:
        raise InputError(last_words(complaints.decode("utf-8", "replace")) or "ablate ended without a word")
    return out.decode("utf-8", "replace")


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
