"""This program's commands as shown to users: complete, and quoted for a shell."""

import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from shutil import which

PROGRAM = "tui-transformer"
DEFAULT_RUNS_DIR = Path("runs")  # the default runs folder
RUNS_VARIABLE = "TUI_TRANSFORMER_RUNS"  # overrides it


def program() -> str:
    """Return what to type to start this program: its name, or its path if it is not on PATH."""
    own = Path(sys.argv[0])
    if which(PROGRAM) is not None or own.name != PROGRAM:
        return PROGRAM
    with suppress(ValueError, OSError):
        return str(own.absolute().relative_to(Path.cwd()))
    return str(own)


def current_command_line() -> str:
    """Return the command line that started this process, quoted for a shell; a run records it."""
    return shlex.join([PROGRAM, *sys.argv[1:]])


def options(*, runs_dir: Path | None = None, data_dir: Path | None = None, device: str = "auto") -> list[str]:
    """Return the options a command needs to find the same files as this one; none where the defaults suffice."""
    words = ["--device", device] if device != "auto" else []
    words += [] if runs_dir is None or _is_default_runs_dir(runs_dir) else ["--runs-dir", str(runs_dir)]
    return [*words, "--data-dir", str(data_dir)] if data_dir is not None else words


def command_line(
    *words: str | Path, runs_dir: Path | None = None, data_dir: Path | None = None, device: str = "auto"
) -> str:
    """Return a command line that can be pasted into a shell; for the options see `options`."""
    return shlex.join([program(), *map(str, words), *options(runs_dir=runs_dir, data_dir=data_dir, device=device)])


def _is_default_runs_dir(runs_dir: Path) -> bool:
    if os.environ.get(RUNS_VARIABLE):  # set in this shell, perhaps not in the next
        return False
    try:
        return runs_dir.absolute() == DEFAULT_RUNS_DIR.absolute()
    except OSError:  # the current folder is gone
        return runs_dir == DEFAULT_RUNS_DIR
