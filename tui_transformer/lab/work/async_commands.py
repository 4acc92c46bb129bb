"""Run `ablate` for a study and `data fetch` for a corpus, each in its own process.

A measuring process is killed when nobody waits for it any more, and ends with this one; a training one continues.
"""

import asyncio
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.base.command_line import command_line
from engine.base.errors import InputError, process_start_error
from engine.base.language import Message, tr
from engine.base.matched_messages import MatchedMessage
from engine.base.starter import STARTER_VARIABLE
from tui_transformer.lab.work.logs import last_line
from tui_transformer.lab.work.plan import Plan
from tui_transformer.lab.work.study import Study
from tui_transformer.lab.work.study_files import SUFFIX

MOST = 2**26  # bytes of a line


def objects_of_kind(kind: str, lines: Sequence[str]) -> list[dict[str, Any]]:
    """The JSON objects of a kind among the lines that `check` or `ablate` printed."""
    found = []
    for line in lines:
        with suppress(ValueError):
            found.append(json.loads(line))
    return [one for one in found if isinstance(one, dict) and one.get("kind") == kind]


async def run_process(
    command: list[str], *, survives_cancellation: bool = False, on_error_line: Callable[[str], None] = lambda line: None
) -> tuple[int, list[str], str]:
    """Return a process's exit code, its stdout lines, and the last line of its complaint.

    Cancelling this kills the process and its children, unless it `stays`. `hears` gets each line of its error stream.
    """
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    environment = os.environ | ({} if survives_cancellation else {STARTER_VARIABLE: "1"})
    stdin = nothing if survives_cancellation else pipe  # held open until this process ends
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command, stdin=stdin, stdout=pipe, stderr=pipe, start_new_session=True, limit=MOST, env=environment
        )
    )
    try:
        process = await asyncio.shield(starting)
        hear = lambda line: on_error_line(tr(MatchedMessage(line)))
        out, complaints = await asyncio.gather(_read_lines(process.stdout), _read_lines(process.stderr, hear))
        await process.wait()
    except asyncio.CancelledError:
        process = await starting  # it may have started by now
        if process.returncode is None and not survives_cancellation:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        raise
    return process.returncode or 0, out, tr(MatchedMessage(last_line("\n".join(complaints))))


async def _read_lines(
    stream: asyncio.StreamReader | None, on_line: Callable[[str], None] = lambda line: None
) -> list[str]:
    found = []
    while stream is not None and (line := await stream.readline()):
        found.append(line.decode("utf-8", "replace").rstrip("\r\n"))
        on_line(found[-1])
    return found


async def fetch_corpus(corpus: str, data_dir: Path | None) -> None:
    """Download a corpus; cancelling this kills the process. Raises InputError, in one short line."""
    words = [sys.executable, "-m", "tui_transformer", "data", "fetch", corpus]
    words += ["--data-dir", str(data_dir)] if data_dir is not None else []
    try:
        code, _, complaint = await run_process(words)
    except OSError as error:
        raise process_start_error(error) from None
    if code != 0:
        raise InputError(re.split("; |；", complaint)[0] or tr("data fetch failed without an error message"))


@dataclass(frozen=True)
class LaunchTarget:
    runs_dir: Path
    data_dir: Path | None
    device: str  # `auto`, or comma-separated devices

    def ablate_command(self, file: Path) -> list[str]:
        words = [sys.executable, "-m", "tui_transformer", "ablate", "--study", str(file), "--device", self.device]
        words += ["--runs-dir", str(self.runs_dir.resolve()), "--json"]
        return [*words, "--data-dir", str(self.data_dir.resolve())] if self.data_dir is not None else words


async def start_study(study: Study, target: LaunchTarget, plan: Plan | None = None) -> str:
    """Hand a study, and its plan if it was measured, to a process that outlives this one; return the outcome in one
    sentence.
    """
    if not objects_of_kind("study", await run_ablate(study, target, "--detach", plan, survives_cancellation=True)):
        listed = command_line("runs", runs_dir=target.runs_dir)
        raise InputError(
            Message(
                "study '{name}' did not report that it started; `{listed}` lists the runs",
                name=study.name,
                listed=listed,
            )
        )
    runs = len(study.cells())
    return tr(
        "{name} started: its {runs} runs appear one by one in Train (2) and as a table in Compare (3)",
        name=study.name,
        runs=runs,
    )


async def run_ablate(
    study: Study, target: LaunchTarget, option: str, plan: Plan | None = None, *, survives_cancellation: bool = False
) -> list[str]:
    path, left = _temporary_file(study.to_toml(), SUFFIX), False
    planned = [_temporary_file(json.dumps(plan.dump()), ".json")] if plan is not None else []
    words = [*target.ablate_command(path), option, *(word for file in planned for word in ("--plan", str(file)))]
    try:
        code, lines, complaint = await run_process(words, survives_cancellation=survives_cancellation)
    except OSError as error:
        raise process_start_error(error) from None
    except asyncio.CancelledError:
        left = survives_cancellation  # the process still has to read it
        raise
    finally:
        for file in () if left else (path, *planned):
            file.unlink(missing_ok=True)
    if code != 0:
        raise InputError(complaint or tr("ablate failed without an error message"))
    return lines


def _temporary_file(text: str, suffix: str) -> Path:
    """A file of this text, for another process to read."""
    with tempfile.NamedTemporaryFile("w", suffix=suffix, encoding="utf-8", delete=False) as file:
        file.write(text)
    return Path(file.name)
