"""Where the commands of a tutorial are run: on a pseudo-terminal, in a folder, as a person would or shortened.

As written, bash runs each line, and the program is a process of its own. Shortened, training gets the settings that the
test gives, and commands of the program run in forks of this process, which has torch imported already; so do the
processes that they start. What only a cluster has is stood in for by `slurm.py`, in both.
"""

import importlib
import os
import pkgutil
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import termios
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from engine.runs.reader import RunReader

ROOT = Path(__file__).parents[2]
PROGRAM = "tui-transformer"
SIZE = (50, 100)  # lines and columns
TRACEBACK = 99  # exit code of a child in which something was raised
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
    longest: float = 120.0  # seconds that a command may take
    _path: Path = field(init=False)

    def __post_init__(self) -> None:
        self._path = self.home / "bin"
        self._path.mkdir(parents=True)
        (self.home / "settings.toml").write_text("welcomed = true\n", encoding="utf-8")
        named = {name: words for name, words in (self.short or {}).items() if " " not in name}
        cases = [f'{name}) set -- "$@" {shlex.join(words)};;' for name, words in named.items()]
        chosen = ["case $1 in", *cases, "esac"] if cases else []
        self._script(PROGRAM, *chosen, f'exec "{sys.executable}" -m tui_transformer "$@"')
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
            return self._talk(lambda: self._bash(command), typed)
        if loop := LOOP.fullmatch(command):
            name, glob, inner = loop.groups()
            found = sorted(path.relative_to(self.folder) for path in self.folder.glob(glob))
            assert found, f"{command}: there is no {glob}"
            said = [self.run(re.sub(rf'"?\${name}"?', str(path), inner)) for path in found]
            return Said(max(one.code for one in said), "".join(one.text for one in said))
        imported()
        words = shlex.split(command)
        if is_plain(command) and words[0] == PROGRAM:
            return self._talk(lambda: self._begun(lambda: as_program(self.shortened(words[1:]))), typed)
        if words[:3] == ["python", "-m", "pytest"]:
            return self._talk(lambda: self._begun(lambda: as_pytest(self.shortened(words[2:])[1:])), typed)
        if words[0] == "timeout":
            return self._cut_short(words)
        return self._talk(lambda: self._bash(command), typed)

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

        return self._talk(lambda: self._begun(lambda: as_program(self.shortened(rest))), (), look)

    def _bash(self, command: str) -> None:
        os.chdir(self.folder)
        os.execvpe("bash", ["bash", "-c", command], self.environment)

    def _begun(self, work: Callable[[], None]) -> None:
        """Do `work` in a child of this process, as one of its own."""
        os.chdir(self.folder)
        environment = self.environment
        os.environ.clear()
        os.environ.update(environment)
        if self.source != ROOT:  # the program anew, from there; torch stays
            for name, module in list(sys.modules.items()):
                ours = name.partition(".")[0] in ("engine", "tui_transformer", "tests")
                if ours or (getattr(module, "__file__", None) or "").startswith(f"{ROOT}/tests/"):
                    del sys.modules[name]
            others = (path for path in sys.path if path not in ("", str(ROOT)) and not path.startswith(f"{ROOT}/tests"))
            sys.path[:] = [str(self.source), *others]
        work()

    def _talk(self, work: Callable[[], None], typed: Sequence[str], look: Callable[[int], bool] | None = None) -> Said:
        """Do `work`, which ends the process, in a child on a terminal; `look` is asked until it says yes."""
        pid, terminal = pty.fork()
        if pid == 0:
            in_child(lambda: termios.tcsetwinsize(0, SIZE), work)
        output, left, deadline = bytearray(), list(typed), time.monotonic() + self.longest
        while True:
            if look is not None and look(pid):
                look = None
            if not select.select([terminal], [], [], 0.02 if look is not None else 1.0)[0]:
                if time.monotonic() > deadline:
                    os.kill(pid, signal.SIGKILL)
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
        return Said(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), plain(output))


@cache
def imported() -> None:
    """Import what commands do, once for all children."""
    import tui_transformer

    for module in pkgutil.walk_packages(tui_transformer.__path__, "tui_transformer."):
        if not module.name.startswith(("tui_transformer.studio", "tui_transformer.__main__")):
            importlib.import_module(module.name)
    for name in ("engine.training.assemble", "engine.verification.claims", "torch._dynamo", "matplotlib.pyplot"):
        importlib.import_module(name)


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


def in_child(*work: Callable[[], Any]) -> None:
    """In a child of a fork: do it and end. What is raised is written out."""
    code = TRACEBACK
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        for one in work:
            one()
        code = 0
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def own_streams() -> None:
    """Python's streams on descriptors 0 to 2, which a test runner has put elsewhere."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def as_program(words: Sequence[str]) -> None:
    """Be the program with these words; its own processes are forks of this one."""
    own_streams()
    sys.argv = [PROGRAM, *words]
    from tui_transformer.__main__ import main
    from tui_transformer.cli import ablate, output
    from tui_transformer.lab.studies.plan import plan_of

    output.stdout.cache_clear()
    output.stderr.cache_clear()
    subprocess.Popen = forked_or_not(subprocess.Popen)  # type: ignore[assignment, misc]
    ablate.measured = plan_of
    try:
        code = main(words)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def as_pytest(words: Sequence[str]) -> None:
    own_streams()
    import pytest

    code = pytest.main([*words, "-n", "0"])
    sys.stdout.flush()
    os._exit(code)


def forked_or_not(real: type["subprocess.Popen[bytes]"]) -> Callable[..., Any]:
    """`Popen` that makes the program's own processes by a fork."""

    def begun(command: Any, **options: Any) -> Any:
        if list(command[:3]) != [sys.executable, "-m", "tui_transformer"]:
            return real(command, **options)
        return Forked(command[3:], options["stdout"].fileno())

    return begun


class Forked:
    """As much of a `Popen` as studies and queues need, of a process in the background."""

    def __init__(self, words: Sequence[str], out: int) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            nothing = os.open(os.devnull, os.O_RDONLY)
            descriptors = (nothing, out, out)
            in_child(
                os.setsid, lambda: [os.dup2(one, at) for at, one in enumerate(descriptors)], lambda: as_program(words)
            )

    def poll(self) -> int | None:
        if self.returncode is None and (found := os.waitpid(self.pid, os.WNOHANG))[0]:
            self.returncode = os.waitstatus_to_exitcode(found[1])
        return self.returncode

    def wait(self) -> int:
        while self.poll() is None:
            time.sleep(0.02)
        return int(self.returncode or 0)

    def terminate(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
