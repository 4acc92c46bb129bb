"""A command line of the program in this process: what it says, its exit code, and nothing left of it behind.

For what is claimed of processes, streams or terminals there is `tests/fork_start.py`.
"""

import contextlib
import gc
import io
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.base import language
from tui_transformer.__main__ import main

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


@dataclass(frozen=True)
class CommandResult:
    """How a command line ended, and what it wrote to its streams."""

    code: int
    out: str
    err: str


def command(
    *words: str, folder: Path | None = None, variables: Mapping[str, str] | None = None, typed: str = ""
) -> CommandResult:
    """Run a command line.

    Args:
        words: after `tui-transformer`.
        folder: working directory; the current one if None.
        variables: added to the environment.
        typed: text on standard input.
    """
    streams = [io.TextIOWrapper(io.BytesIO(typed.encode()), encoding="utf-8")]
    streams += [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    with restored_process(), contextlib.redirect_stdout(streams[1]), contextlib.redirect_stderr(streams[2]):
        sys.stdin = streams[0]
        os.environ.update(variables or {})
        if folder is not None:
            os.chdir(folder)
        code = main(words)
    for stream in streams:
        stream.flush()
    out, err = (stream.buffer.getvalue().decode() for stream in streams[1:])  # type: ignore[attr-defined]
    return CommandResult(code, out, err)


@contextlib.contextmanager
def restored_process() -> Iterator[None]:
    """Restore the process-wide state that a command may change."""
    folder, variables, stdin, said = Path.cwd(), dict(os.environ), sys.stdin, language._catalogue
    threads, collected, handlers = torch.get_num_threads(), gc.get_threshold(), list(logging.root.handlers)
    signals = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(variables)
        sys.stdin = stdin
        language.set_catalogue(said)
        torch.set_num_threads(threads)
        gc.set_threshold(*collected)
        logging.root.handlers[:] = handlers
        for number, handler in signals.items():
            signal.signal(number, handler)
