"""The studio on a pseudo-terminal of its own, and what a person sees on it."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

import pyte

from tests.waiting import PATIENCE, wait_for

KEYS = {
    "enter": b"\r",
    "escape": b"\x1b",
    "tab": b"\t",
    "up": b"\x1b[A",
    "down": b"\x1b[B",
    "right": b"\x1b[C",
    "left": b"\x1b[D",
    "f5": b"\x1b[15~",
    "f6": b"\x1b[17~",
    "ctrl+q": b"\x11",
    "space": b" ",
}


class Screen:
    """A child on a terminal.

    Args:
        arguments: of tui-transformer.
        size: columns and lines.
        settings: the user's settings file.
        environment: more of it.
        errors: a file for what it writes to stderr.
        nohup: it hears no hang-up.
    """

    def __init__(
        self,
        *arguments: str,
        settings: Path,
        size: tuple[int, int] = (120, 36),
        environment: dict[str, str] | None = None,
        errors: Path | None = None,
        nohup: bool = False,
    ) -> None:
        self._master, self._slave = pty.openpty()
        columns, lines = size
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.modes = termios.tcgetattr(self._slave)
        self._seen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._seen)
        self._guard, self._deaf = threading.Lock(), threading.Event()
        self.output = bytearray()
        variables = os.environ | {"TERM": "xterm-256color", "TUI_TRANSFORMER_SETTINGS": str(settings)}
        variables["ESCDELAY"] = "1"  # milliseconds, for whoever is slow: escape is not the beginning of the next key
        for name in ("NO_COLOR", "COLUMNS", "LINES"):  # of whoever runs the tests
            variables.pop(name, None)

        def begin() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if nohup:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)

        stderr = self._slave if errors is None else os.open(errors, os.O_WRONLY | os.O_CREAT)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tui_transformer", *arguments],
            stdin=self._slave,
            stdout=self._slave,
            stderr=stderr,
            env=variables | (environment or {}),
            start_new_session=True,
            preexec_fn=begin,
        )
        if errors is not None:
            os.close(stderr)
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def _listen(self) -> None:
        while not self._deaf.is_set():
            if not select.select([self._master], [], [], 0.1)[0]:
                continue
            with self._guard:
                try:
                    data = os.read(self._master, 65536)
                except OSError:
                    return
                self.output += data
                self._stream.feed(data)

    @property
    def text(self) -> str:
        """What is on the screen."""
        with self._guard:
            return "\n".join(self._seen.display)

    def press(self, *keys: str) -> None:
        """Type keys, by name or as they are, each once the child has read the one before."""
        for key in keys:
            self.write(KEYS.get(key, key.encode()))

    def write(self, data: bytes) -> None:
        """Write to the child, and wait until it has read that."""
        os.write(self._master, data)
        wait_for(lambda: self._unread() == 0 or self._ended, f"the child to read {data!r}", lambda: self.text)

    def rest(self) -> None:
        """Wait until the child has read all that was written, and none of its threads computes or waits to compute."""
        wait_for(lambda: self._ended or self._rests(), "the child to have nothing to do", lambda: self.text)

    def _rests(self) -> bool:
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/stat")  # none where there is no such folder
        try:
            return self._unread() == 0 and all(one.read_text().rpartition(")")[2].split()[0] == "S" for one in threads)
        except OSError:  # one has just ended
            return False

    def _unread(self) -> int:
        """The bytes that were written and not read yet."""
        return int.from_bytes(fcntl.ioctl(self._slave, termios.FIONREAD, bytes(4)), sys.byteorder)

    @property
    def _ended(self) -> bool:
        return self.process.poll() is not None

    def until(self, *words: str) -> str:
        """Wait for words to stand on the screen, all of them."""
        wait_for(lambda: self._ended or self._shows(*words), f"{words} on the screen", lambda: self.text)
        if self._ended:
            self._read_the_rest()
        assert self._shows(*words), f"the child ended with {self.process.returncode} without {words} on\n{self.text}"
        return self.text

    def _shows(self, *words: str) -> bool:
        text = self.text
        return all(word in text for word in words)

    def until_gone(self, words: str) -> None:
        """Wait for words to be no longer on the screen."""
        wait_for(lambda: not self._shows(words), f"{words!r} to go", lambda: self.text)

    def end(self) -> int:
        """Wait for the child, and for all of its output; gives back its exit code.

        The terminal's modes must be those of the start.
        """
        code = self.process.wait(timeout=PATIENCE)
        assert termios.tcgetattr(self._slave) == self.modes
        self._read_the_rest()
        return code

    def _read_the_rest(self) -> None:
        wait_for(lambda: not select.select([self._master], [], [], 0)[0], "the rest of its output", lambda: self.text)
        with self._guard:  # no longer, once that is fed
            pass

    def hang_up(self) -> None:
        """The terminal is gone, once nobody reads from it."""
        self._deaf.set()
        self._listening.join()
        for descriptor in (self._slave, self._master):
            os.close(descriptor)

    def close(self) -> None:
        """Let go of the terminal."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if not self._deaf.is_set():
            self.hang_up()
