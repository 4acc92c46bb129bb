"""A command line of the program in a forked child, on a pseudo-terminal or a pipe: every byte that it wrote."""

import fcntl
import os
import pty
import resource
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from tests import fork_start
from tests.waiting import PATIENCE

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


def said(
    arguments: Sequence[str],
    *,
    terminal: bool = False,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
) -> Said:
    """Run a command line. One that hangs is killed in the end, with exit code -9.

    Args:
        arguments: of tui-transformer.
        terminal: a pseudo-terminal of 160 columns instead of a pipe.
        stdin: what is typed or piped in.
        environment: more variables.
    """
    variables = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    variables |= {**(environment or {}), "TERM": "xterm-256color"}
    if terminal:
        out, inner = pty.openpty()
        fcntl.ioctl(out, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        typing, reading = out, inner
    else:
        (out, inner), (reading, typing) = os.pipe(), os.pipe()
    with fork_start.forking(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(fork_start, "UNCAUGHT", TRACEBACK)
        process = subprocess.Popen(
            [sys.executable, "-m", "tui_transformer", *arguments],
            stdin=reading,
            stdout=inner,
            stderr=inner,
            env=variables,
            start_new_session=terminal,
            preexec_fn=lambda: _begin(terminal=terminal),
        )
    os.write(typing, stdin[:60_000])
    for end in (inner,) if terminal else (inner, reading, typing):
        os.close(end)
    output = _read(out, process)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    processor = used.ru_utime + used.ru_stime
    return Said(tuple(arguments), process.returncode, output, processor, used.ru_maxrss * 1024)


def _begin(*, terminal: bool) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _read(out: int, process: "subprocess.Popen[bytes]") -> bytes:
    """All that comes until the end."""
    output = bytearray()
    while True:
        if not select.select([out], [], [], PATIENCE)[0]:
            process.kill()
            break
        try:
            data = os.read(out, 1 << 16)
        except OSError:  # a pseudo-terminal whose child has gone
            break
        if not data:
            break
        output += data
    os.close(out)
    return bytes(output)
