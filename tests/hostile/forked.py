"""A command line of the program in a forked child, on a pseudo-terminal or a pipe: every byte that it wrote.

A fork of this process has torch and everything else imported already, so a command takes no longer than its work.
"""

import fcntl
import importlib
import os
import pkgutil
import pty
import resource
import select
import signal
import struct
import sys
import termios
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

TRACEBACK = 99  # exit code of a child in which something was raised
MEMORY = 6 << 30  # bytes that a child may map; what a hostile file asks for beyond that is a traceback


@dataclass(frozen=True)
class Said:
    """What a command wrote, standard output and errors together, and how it ended."""

    words: tuple[str, ...]
    code: int
    output: bytes
    seconds: float = 0.0  # of processor time
    peak: int = 0  # bytes of memory, this process's own among them

    @property
    def text(self) -> str:
        return self.output.decode("utf-8", "replace")


@cache
def _imported() -> None:
    """What commands import when they are asked for, once for all children."""
    import tui_transformer

    for module in pkgutil.walk_packages(tui_transformer.__path__, "tui_transformer."):
        if not module.name.startswith(("tui_transformer.studio", "tui_transformer.__main__")):
            importlib.import_module(module.name)
    for name in ("rich.live", "rich.progress", "rich.spinner", "typer.rich_utils"):
        importlib.import_module(name)


def said(
    arguments: Sequence[str],
    *,
    terminal: bool = False,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    seconds: float = 60.0,
) -> Said:
    """Run a command line; it is killed after so many seconds, with exit code -9.

    Args:
        arguments: of tui-transformer.
        terminal: a pseudo-terminal of 160 columns instead of a pipe.
        stdin: what is typed or piped in.
        environment: more variables.
        seconds: how long it may take.
    """
    _imported()
    if terminal:
        pid, out = pty.fork()
    else:
        out, into = os.pipe()
        pid = os.fork()
    if pid == 0:
        if not terminal:
            os.dup2(into, 1)
            os.dup2(into, 2)
            reading, writing = os.pipe()
            os.write(writing, stdin[:60_000])
            os.close(writing)
            os.dup2(reading, 0)
        _child(arguments, environment or {})
    if not terminal:
        os.close(into)
    else:
        fcntl.ioctl(out, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        os.write(out, stdin)
    output, deadline = bytearray(), time.monotonic() + seconds
    while True:
        ready = select.select([out], [], [], max(0.0, deadline - time.monotonic()))[0]
        if not ready:
            os.kill(pid, signal.SIGKILL)
            break
        try:
            data = os.read(out, 1 << 16)
        except OSError:  # a pseudo-terminal whose child has gone
            break
        if not data:
            break
        output += data
    os.close(out)
    _, status, used = os.wait4(pid, 0)
    code, processor = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
    return Said(tuple(arguments), code, bytes(output), processor, used.ru_maxrss * 1024)


def _child(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    code = TRACEBACK
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        os.environ.update(environment)
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            os.environ.pop(name, None)
        os.environ["TERM"] = "xterm-256color"
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        from tui_transformer.__main__ import main
        from tui_transformer.cli import output

        output.stdout.cache_clear()
        output.stderr.cache_clear()
        try:
            code = main(arguments)
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        except BaseException:
            os.write(2, ascii(traceback.format_exc()).encode() + b"\n")
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
