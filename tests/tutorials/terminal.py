"""Where the commands of a tutorial are run: on a pseudo-terminal, in a folder, as a person would or shortened.

As written, bash runs each line, and the program is a process of its own. Shortened, training gets the settings that
the test gives, and commands of the program are forks of this process (`tests/fork_start.py`), as are the processes
that they start and, through `shell.py`, those that scripts start. What only a cluster has is stood in for by
`slurm.py`, in both.
"""

import fcntl
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.runs.reader import RunReader
from tests.fork_start import forking
from tests.tutorials import shell
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
PROGRAM = "tui-transformer"
SIZE = (50, 100)  # lines and columns
ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_=>])")
# What may be typed in a tutorial besides the program; all else fails its test.
PLAIN = {"cat", "cp", "diff", "grep", "head", "ls", "mkdir", "python", "tail", "tar"}
CLUSTER = ("sbatch", "squeue", "scontrol", "srun", "rsync")
KNOWN = {PROGRAM, "timeout", "for", "do", "done", "echo", *PLAIN, *CLUSTER}
FOREIGN = re.compile("COLUMNS|LINES|BASH_ENV|PYTEST_|TUI_TRANSFORMER_RUNS")  # variables of whoever runs the tests
FEWER = {"2": "2", "3": "2", "5": "3"}  # seeds, shortened
LOOP = re.compile(r"for (\w+) in (\S+); do (.*); done")


@dataclass(frozen=True)
class Said:
    code: int
    text: str  # without colours and movements of the cursor


@dataclass
class Terminal:
    folder: Path  # where commands are typed
    home: Path  # for settings, the prompt's history, and programs that stand in for others
    source: Path = ROOT  # of the program
    # More words for a command, by its name or by that and an option; None: as written.
    short: Mapping[str, Sequence[str]] | None = None
    longest: float = PATIENCE  # seconds that a command may take
    _path: Path = field(init=False)

    def __post_init__(self) -> None:
        self._path = self.home / "bin"
        self._path.mkdir(parents=True)
        (self.home / "settings.toml").write_text("welcomed = true\n", encoding="utf-8")
        named = {name: words for name, words in (self.short or {}).items() if " " not in name}
        cases = [f'{name}) set -- "$@" {shlex.join(words)};;' for name, words in named.items()]
        chosen = ["case $1 in", *cases, "esac"] if cases else []
        begin = f'exec "{sys.executable}" -m tui_transformer "$@"'
        if self.short is not None and self.source == ROOT:
            begin = f'exec "{sys.executable}" -S "{shell.__file__}" "$@"'
        self._script(PROGRAM, *chosen, begin)
        for name in CLUSTER:
            self._script(name, f'exec "{sys.executable}" -S "{Path(__file__).with_name("slurm.py")}" {name} "$@"')

    def _script(self, name: str, *lines: str) -> None:
        path = self._path / name
        path.write_text("\n".join(("#!/bin/bash", *lines, "")), encoding="utf-8")
        path.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        found = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
        mine = {
            "PATH": f"{self._path}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{found['PATH']}",
            "PYTHONPATH": str(self.source),
            "TERM": "xterm-256color",
            "NO_COLOR": "1",
            "LANGUAGE": "en",
            "CUDA_VISIBLE_DEVICES": "",
            "TUI_TRANSFORMER_SETTINGS": str(self.home / "settings.toml"),
            "XDG_STATE_HOME": str(self.home),
        }
        return found | mine

    def run(self, command: str, typed: Sequence[str] = ()) -> Said:
        """Run a command line and type so many lines at its prompt. AssertionError: it has a command nobody knows."""
        for words in simple_commands(command):
            first = next((word for word in words if not re.fullmatch(r"\w+=\S*", word)), "")
            assert first in KNOWN, f"{command}: nobody knows how to run {first}"
        if self.short is None:
            return self._talk(["bash", "-c", command], typed)
        if loop := LOOP.fullmatch(command):
            name, glob, inner = loop.groups()
            found = sorted(path.relative_to(self.folder) for path in self.folder.glob(glob))
            assert found, f"{command}: there is no {glob}"
            said = [self.run(re.sub(rf'"?\${name}"?', str(path), inner)) for path in found]
            return Said(max(one.code for one in said), "".join(one.text for one in said))
        words = shlex.split(command)
        if is_plain(command) and words[0] == PROGRAM:
            return self._warm("tui_transformer", self.shortened(words[1:]), typed)
        if words[:3] == ["python", "-m", "pytest"]:
            return self._warm("pytest", [*self.shortened(words[2:])[1:], "-n", "0"], typed)
        if words[0] == "timeout":
            return self._cut_short(words)
        with self._forking(), shell.opened():
            return self._talk(["bash", "-c", command], typed)

    def shortened(self, words: Sequence[str]) -> list[str]:
        """The program's words with those that shorten them, and with fewer seeds."""
        pairs = zip(("", *words), words, strict=False)
        fewer = [FEWER[word] if before == "--seeds" else word for before, word in pairs]
        found = [more for name, more in (self.short or {}).items() if set(name.split()) <= set(words)]
        return [*fewer, *(found[-1] if found else ())]

    def _cut_short(self, words: Sequence[str]) -> Said:
        """`timeout -s SIGNAL SECONDS …` of a run: it comes with the first checkpoint after that of step 0."""
        _, option, name, _, program, *rest = words
        assert (option, program) == ("-s", PROGRAM), words
        run = RunReader(self.folder / "runs" / rest[rest.index("--name") + 1])
        number = getattr(signal, f"SIG{name}")

        def look(pid: int) -> bool:
            if (run.status.checkpoint or "step-0").strip("step-0") == "":
                return False
            os.kill(pid, number)
            return True

        return self._warm("tui_transformer", self.shortened(rest), look=look)

    def _warm(
        self, module: str, words: Sequence[str], typed: Sequence[str] = (), look: Callable[[int], bool] | None = None
    ) -> Said:
        """`python -m`, in a fork of this process."""
        with self._forking():
            return self._talk([sys.executable, "-m", module, *words], typed, look)

    @contextmanager
    def _forking(self) -> Iterator[None]:
        with forking(), pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", self.environment["PYTHONPATH"])  # it is no reason to start another Python
            yield

    def _from_source(self) -> None:
        """In a fork: the program anew, from its source; torch stays."""
        for name, module in list(sys.modules.items()):
            ours = name.partition(".")[0] in ("engine", "tui_transformer", "tests")
            if ours or (getattr(module, "__file__", None) or "").startswith(f"{ROOT}/tests/"):
                del sys.modules[name]
        others = (path for path in sys.path if path not in ("", str(ROOT)) and not path.startswith(f"{ROOT}/tests"))
        sys.path[:] = [str(self.source), *others]

    def _talk(self, command: Sequence[str], typed: Sequence[str], look: Callable[[int], bool] | None = None) -> Said:
        """Run a command on a terminal; `look` is asked until it says yes."""
        terminal, inner = pty.openpty()
        termios.tcsetwinsize(terminal, SIZE)

        def begin() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if self.source != ROOT and command[0] == sys.executable:
                self._from_source()

        streams = {"stdin": inner, "stdout": inner, "stderr": inner}
        process = subprocess.Popen(
            command, cwd=self.folder, env=self.environment, start_new_session=True, preexec_fn=begin, **streams
        )
        os.close(inner)
        output, left, deadline = bytearray(), list(typed), time.monotonic() + self.longest
        while True:
            if look is not None and look(process.pid):
                look = None
            if not select.select([terminal], [], [], 0.02 if look is not None else 1.0)[0]:
                if time.monotonic() > deadline:
                    process.kill()
                continue
            try:
                data = os.read(terminal, 1 << 16)
            except OSError:  # the child has gone
                break
            output += data
            if not data:
                break
            if left and plain(output).endswith("> "):
                os.write(terminal, f"{left.pop(0)}\n".encode())
        os.close(terminal)
        return Said(process.wait(), plain(output))


def plain(output: bytes | bytearray) -> str:
    text = output.decode("utf-8", "replace").replace("\r\n", "\n")
    return ESCAPES.sub("", text).replace("\r", "\n")


def simple_commands(line: str) -> Iterator[list[str]]:
    """The commands of a shell line, without what they are redirected to."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if set(word) <= set(";&|()<>") and not set(word) <= set("<>"):
            if words:
                yield words[1:] if words[0] == "do" else words
            words = []
        else:
            words.append(word)


def is_plain(line: str) -> bool:
    """Whether a line is one command, with nothing for a shell to do."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return not any(set(word) <= set("();<>|&") for word in lexer) and not re.search(r"[$`*]", line)
