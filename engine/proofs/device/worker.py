"""A process that runs calls one by one, so that a hang, a crash or a lost device ends only that process.

It imports only what a call needs. Its output goes to a file whose last line explains a crash.
"""

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

import psutil

from engine.base.language import Message

T = TypeVar("T")
PATIENCE = 5.0  # seconds that an idle process may take to exit
START = 180.0  # seconds that a process may take to start, on a cold disk
MAX_MESSAGE = 400  # characters of an explanation


class WorkerDied(Exception):
    """The process hung or died before it answered."""


class TimedOut(WorkerDied):
    """The call took too long and its process was killed."""


class WorkerError(Exception):
    """The call raised: its exception in one line."""


class Worker:
    """One process, started by the first call and replaced after it ends; its output goes to the file `log`."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection[Any, Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end(at_once=kind is not None)

    def call(self, function: Callable[..., T], *arguments: Any, limit: float) -> T:
        """Return the value of a call in the process; function, arguments and value must be picklable. Raise
        `WorkerError` if the call raised (if the device was lost, its process ends), `TimedOut` if it took longer than
        `limit` seconds and was ended, or `WorkerDied` if the process died.
        """
        if self._process is None or not self._process.is_alive():
            self._start()
        assert self._connection is not None
        try:
            self._connection.send((function, arguments))
            answered = self._connection.poll(limit)
            value, error, lost = self._connection.recv() if answered else (None, None, False)
        except (EOFError, OSError):
            raise WorkerDied(self._end_and_explain_exit()) from None
        if not answered:
            self.end(at_once=True)
            raise TimedOut(Message("no answer within {limit:.0f} s", limit=limit))
        if lost:  # nothing more can be computed in that process
            self.end()
        if error is not None:
            raise WorkerError(error)
        return cast(T, value)

    def end(self, *, at_once: bool = False) -> None:
        """End the process and everything it started; `at_once` kills it without waiting for it to exit."""
        process, self._process = self._process, None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if process is None or process.pid is None:
            return
        children: list[psutil.Process] = []
        with suppress(psutil.Error):
            children = psutil.Process(process.pid).children(recursive=True)
        if not at_once:
            process.join(PATIENCE)  # it exits because its connection is closed
        for child in children:
            with suppress(psutil.Error):  # most have exited; psutil spares a process that reuses a pid
                child.kill()
        process.kill()
        process.join()

    def _start(self) -> None:
        self.end()
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, str(self.log)))
        self._process.start()
        theirs.close()
        try:
            if self._connection.poll(START) and self._connection.recv() == "ready":
                return
        except (EOFError, OSError):
            raise WorkerDied(Message("startup failed: {obituary}", obituary=self._end_and_explain_exit())) from None
        self.end()
        raise WorkerDied(Message("the process did not start within {start:.0f} s", start=START))

    def _end_and_explain_exit(self) -> str:
        assert self._process is not None
        self._process.join(timeout=10.0)
        code = self._process.exitcode
        self.end()
        how = Message("exit code {code}", code=code)
        if code is not None and code < 0:
            with suppress(ValueError):
                how = Message("signal {code} ({name})", code=-code, name=signal.Signals(-code).name)
        words = ""
        with suppress(OSError), self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - 8192))
            lines = file.read().decode("utf-8", "replace").splitlines()
            words = shorten_and_anonymize(next((line for line in reversed(lines) if line.strip()), ""))
        return Message("the process ended with {how}", how=how) + (f": {words}" if words else "")


def shorten_and_anonymize(text: str) -> str:
    """Return a message on one line, without the names of this user's folders."""
    line = " ".join(text.split())
    for place, name in ((tempfile.gettempdir(), "TMP"), (str(Path.home()), "~")):
        line = line.replace(place, name) if len(place) > 1 else line
    return line if len(line) <= MAX_MESSAGE else f"{line[: MAX_MESSAGE - 1]}…"


def _serve(connection: "Connection[Any, Any]", log: str) -> None:
    with Path(log).open("ab") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when it ends
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    connection.send("ready")
    while True:
        try:
            function, arguments = connection.recv()
        except (EOFError, OSError):
            return
        try:
            connection.send((function(*arguments), None, False))
        except Exception as error:
            traceback.print_exc()
            text, lost = str(error), False
            if "torch" in sys.modules:
                from engine.model.devices import is_device_failure

                lost = is_device_failure(error)
            text = text.partition("\n")[0] if lost else text  # the rest is advice for developers
            connection.send((None, shorten_and_anonymize(f"{type(error).__name__}: {text}".rstrip(": ")), lost))


def _exit_with_parent() -> None:
    """Exit with the parent: a call that hangs must not outlive it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
