"""Processes of the program for scripts, as forks: `python shell.py WORDS` asks whoever has opened the door for one.

Only the standard library is imported before the door is opened: a script's command starts in no time. The process that
trains is another than the script's own, which passes signals on to it and ends as it does.
"""

import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DOOR = "TUTORIAL_DOOR"  # the variable that says where it is
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def opened() -> Iterator[None]:
    """Meanwhile a fork of this process waits at the door, and forks for whoever asks."""
    with tempfile.TemporaryDirectory(prefix="door-") as folder:  # a test's own may have too long a name for a socket
        os.environ[DOOR] = f"{folder}/door"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(os.environ[DOOR])
            listening.listen()
            keeper = os.fork()
            if keeper == 0:
                _keep(listening)
        try:
            yield
        finally:
            os.kill(keeper, signal.SIGTERM)
            os.waitpid(keeper, 0)
            del os.environ[DOOR]


def _keep(listening: socket.socket) -> None:
    """Serve until told to end, and then until all processes have ended; each has a fork to wait for it."""
    signal.signal(signal.SIGTERM, lambda *_: listening.close())
    while listening.fileno() != -1:
        with suppress(OSError):  # it is closed
            asking, _ = listening.accept()
            if os.fork() == 0:
                try:
                    signal.signal(signal.SIGTERM, signal.SIG_DFL)
                    _serve(asking)
                finally:
                    os._exit(0)
            asking.close()
    with suppress(ChildProcessError):
        while True:
            os.wait()
    os._exit(0)


def _serve(asking: socket.socket) -> None:
    import subprocess

    _, streams, _, _ = socket.recv_fds(asking, 1, 3)
    given = json.loads(asking.makefile().readline())
    out = dict(zip(("stdin", "stdout", "stderr"), streams, strict=True))
    words = [sys.executable, "-m", "tui_transformer", *given["words"]]
    process = subprocess.Popen(words, cwd=given["folder"], env=given["variables"], **out)
    asking.sendall(f"{process.pid}\n".encode())
    asking.sendall(f"{process.wait()}\n".encode())


def main(*words: str) -> int:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(os.environ[DOOR])
        given = {"words": words, "folder": str(Path.cwd()), "variables": dict(os.environ)}
        signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # until it is known to whom they go
        socket.send_fds(asking, [b"x"], [0, 1, 2])
        asking.sendall(f"{json.dumps(given)}\n".encode())
        answers = asking.makefile()
        pid = int(answers.readline())
        for number in PASSED_ON:
            signal.signal(number, lambda number, _: os.kill(pid, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        code = int(answers.readline())
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
