"""Processes of this program that start as forks of the process that starts them, which has torch imported already.

Starting Python and importing torch takes most of the time of a small process test. Under `forking`, `subprocess.Popen`
forks instead, wherever the command line is this program's or a script's; so do the processes that the program itself
starts. All else
is as it would be: the process id, the parent, the session, the streams, the environment, the words that `ps` shows, how
signals act, the exit code. What a test has patched stays patched in them.

A fork has no threads but its own, so it computes with one. While a run trains in a thread of this process, which may
hold any lock just then, processes are started as usual; so are they where there is no /proc.
"""

import ctypes
import gc
import importlib
import inspect
import io
import logging
import os
import pkgutil
import random
import re
import runpy
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from engine.runs.records import Record

# What `python -m` can be asked for, and the function that it calls with the words after it.
PROGRAMS = {
    "tui_transformer": "tui_transformer.__main__:main",
    "engine.training.elastic": "engine.training.elastic:main",
    "pytest": "pytest:main",
    "tests.earlier.asking": "tests.earlier.asking:main",
}
FLAGS = {"-u", "-B"}
UNCAUGHT = 1  # exit code after an exception that nobody has caught
MOST_FILES = 1 << 20  # that a process may have open
LONGEST = 4000  # bytes of a command line that the kernel shows where it does not fit in its old place
_really = subprocess.Popen._execute_child  # type: ignore[attr-defined]
_kept: list[Any] = []  # streams of the parent: closing them would flush their buffers twice


@contextmanager
def forking() -> Iterator[None]:
    """In this context, the program's processes are forks, and are not niced: nobody types here."""
    from tui_transformer.lab.work import processes

    imported()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "_execute_child", _execute_child)
        patch.setattr(processes, "NICENESS", 0)
        yield


def replaces(target: object, name: str) -> bool:
    """Whether an attribute is replaced by `forking`, and by nothing else just now."""
    now: Any = target
    return now is subprocess.Popen and name == "_execute_child" and now._execute_child in (_execute_child, _really)


@pytest.fixture
def fork_start() -> Iterator[None]:
    """The processes of this program that a test starts are forks."""
    with forking():
        yield


@pytest.fixture
def fork_start_scripts(fork_start: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """So are those of scripts that are started without the variables of whoever runs the tests."""
    for name in _of_python(os.environ):
        monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def module_fork_start() -> Iterator[None]:
    """The processes of this program that a module's tests and fixtures start are forks."""
    with forking():
        yield


@pytest.fixture
def real_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a module with `module_fork_start`: this test's processes are started as a person would start them."""
    monkeypatch.setattr(subprocess.Popen, "_execute_child", _really)


@cache
def imported() -> None:
    """Import what commands import when they are asked for, once for all forks."""
    import tui_transformer

    for module in pkgutil.walk_packages(tui_transformer.__path__, "tui_transformer."):
        if not module.name.startswith(("tui_transformer.studio", "tui_transformer.__main__")):
            importlib.import_module(module.name)
    for name in (
        *("engine.training.assemble", "engine.training.elastic", "engine.proofs.verify.claims", "torch._dynamo"),
        *("rich.live", "rich.progress", "rich.spinner", "typer.rich_utils", "matplotlib.pyplot"),
    ):
        importlib.import_module(name)
    for record in _kinds(Record):
        record.model_rebuild()  # else each fork builds what it reads and writes


def _kinds(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for kind in model.__subclasses__():
        yield kind
        yield from _kinds(kind)


def _execute_child(process: "subprocess.Popen[Any]", words: Any, *others: Any) -> None:
    """Stands for the method of `Popen` that starts a process; `others` are as the standard library passes them."""
    given = inspect.signature(_really).bind(process, words, *others).arguments
    work = None if given["shell"] else _asked(words, given["env"])
    if work is None:
        return _really(process, words, *others)
    ready, tell = os.pipe()
    process.pid = os.fork()
    if process.pid == 0:
        try:
            _become(given, tell)
            code = _ended(work)
        except BaseException:
            os.write(2, traceback.format_exc().encode())
            code = 255
        finally:
            os._exit(code)
    process._child_created = True  # type: ignore[attr-defined]
    os.close(tell)
    process._close_pipe_fds(  # type: ignore[attr-defined]
        *(given[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite"))
    )
    os.read(ready, 1)  # as `Popen` waits for exec
    os.close(ready)
    return None


def _asked(words: Any, environment: Any) -> Callable[[], Any] | None:
    """What a fork has to do for a command line, None if it is to be started as usual."""
    if isinstance(words, (str, bytes, os.PathLike)):
        return None
    program, *rest = map(os.fsdecode, words)
    flags = set[str]()
    while rest and rest[0] in FLAGS:
        flags.add(rest.pop(0))
    is_script = bool(rest) and rest[0].endswith(".py")
    if program != sys.executable or not (is_script or (rest[:1] == ["-m"] and set(rest[1:2]) & PROGRAMS.keys())):
        return None
    if environment is not None and _of_python(environment) != _of_python(os.environ):
        return None
    if "training" in {thread.name for thread in threading.enumerate()} or _place() is None:
        return None

    def work() -> Any:
        sys.dont_write_bytecode |= "-B" in flags
        if is_script:
            return _run_script(rest)
        sys.argv = rest[1:]
        module, _, function = PROGRAMS[rest[1]].partition(":")
        return getattr(importlib.import_module(module), function)(rest[2:])

    return work


def _run_script(words: list[str]) -> None:
    """In a fork: run a script with the words after it; it imports what is beside it."""
    sys.argv, folder = words, Path(words[0]).absolute().parent
    sys.path.insert(0, str(folder))
    for beside in folder.glob("*.py"):
        sys.modules.pop(beside.stem, None)
    runpy.run_path(words[0], run_name="__main__")


def _of_python(environment: Any) -> dict[str, str]:
    """The variables that act when Python starts."""
    decoded = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
    return {name: value for name, value in decoded.items() if name.startswith("PYTHON") and name != "PYTHONUNBUFFERED"}


def _become(given: dict[str, Any], tell: int) -> None:
    """Make a fork look like a program that was just executed."""
    gc.freeze()
    _kept.extend((sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__))
    ends = (given["p2cread"], given["c2pwrite"], given["errwrite"])
    for number, end in enumerate([end if end == -1 else _above_streams(end) for end in ends]):
        if end != -1:
            os.dup2(end, number)
    if given["cwd"] is not None:
        os.chdir(given["cwd"])
    _forget_signals()
    if given["start_new_session"]:
        os.setsid()
    if given["env"] is not None:
        environment = {os.fsdecode(name): os.fsdecode(value) for name, value in given["env"].items()}
        os.environ.clear()
        os.environ.update(environment)
    if given["preexec_fn"] is not None:
        given["preexec_fn"]()
    below = 2
    for kept in (*sorted((tell, *given["pass_fds"])), MOST_FILES):
        os.closerange(below + 1, kept)  # as exec does: a lock on an open file ends with the process that holds it
        below = kept
    _show(given["args"])
    _as_started()
    os.write(tell, b"x")
    os.close(tell)


def _above_streams(end: int) -> int:
    """The same open file at a number that no stream has."""
    taken = []
    while end < 3:
        taken.append(end)
        end = os.dup(end)
    return end


def _forget_signals() -> None:
    """What has a handler acts as usual again; what is ignored stays ignored."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _as_started() -> None:
    """Python's own state as it is after a start, where commands would notice a difference."""
    import torch
    from torch.distributed.elastic.rendezvous import dynamic_rendezvous

    from tui_transformer.cli import output

    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = _written(1, "strict", at_once=unbuffered)
    sys.stderr = sys.__stderr__ = _written(2, "backslashreplace", at_once=True)
    for console in (output.stdout, output.stderr):
        console.cache_clear()
    logging.root.handlers.clear()
    warnings.resetwarnings()
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)
    warnings._showwarnmsg_impl = _warn  # type: ignore[attr-defined]
    random.seed()
    # Ranks: torch looks up all callers with their sources, for a record that nobody has asked for; here they are many.
    dynamic_rendezvous.get_method_name = lambda *_: ""
    torch.set_grad_enabled(True)
    one, torch.set_num_threads = torch.set_num_threads, _one_thread
    one(1)


def _written(number: int, errors: str, *, at_once: bool) -> io.TextIOWrapper:
    binary = open(number, "wb", buffering=0 if at_once else -1, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(
        binary, encoding="utf-8", errors=errors, write_through=at_once, line_buffering=os.isatty(number)
    )


def _warn(message: warnings.WarningMessage) -> None:
    sys.stderr.write(warnings.formatwarning(message.message, message.category, message.filename, message.lineno))


def _one_thread(threads: int) -> None:
    if threads != 1:
        raise RuntimeError("a fork computes with one thread: set train.threads=1, or start it with `cold`")


def _ended(work: Callable[[], Any]) -> int:
    """Do it as Python does its main module; return the exit code."""
    try:
        code = work()
    except SystemExit as leaving:
        code = leaving.code
    except KeyboardInterrupt:
        traceback.print_exc()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        code = UNCAUGHT
    threading._shutdown()  # type: ignore[attr-defined]  # waits for the other threads
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    try:
        sys.stdout.flush()
    except OSError:
        code = 120
    with suppress(OSError):
        sys.stderr.flush()
    return int(code or 0) & 0xFF


# What `ps` shows: the words of a process stand at the end of its memory, and its variables after them.


def _place() -> tuple[int, int, int] | None:
    """Where the words begin, where they end, and where the variables end; None where nobody says so."""
    with suppress(OSError, IndexError, ValueError):
        fields = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        begin, end, last = int(fields[45]), int(fields[46]), int(fields[48])
        return (begin, end, last) if begin else None
    return None


def _show(words: Sequence[Any]) -> None:
    """Have the process shown with other words. If the new command line is longer than the old one, spaces inside
    arguments are shown as underscores.
    """
    if (place := _place()) is None:
        return
    begin, end, last = place
    encoded = [os.fsencode(word) for word in words]
    shown = (b"\0".join(encoded) + b"\0").ljust(end - begin, b"\0")
    if len(shown) > end - begin:
        room = min(last - begin, LONGEST) - 1
        shown = b" ".join(re.sub(rb"\s", b"_", word) for word in encoded)[:room] + b"\0"
    for name, value in os.environ.items():  # C keeps copies of them from now on
        os.environ[name] = value
    ctypes.memmove(begin, shown, len(shown))


if __name__ == "__main__":  # `python -m tests.fork_start -m tui_transformer …`: only what that starts is a fork
    from tui_transformer.__main__ import main

    with forking():
        sys.exit(main(sys.argv[3:]))
