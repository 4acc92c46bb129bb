"""Asks the program: command lines one after the other in one child process, which begins with torch imported.

The child has a home, a configuration and a terminal width of its own. Run as a module, this is that child.
"""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fork_start import forking

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (sys.executable, "-m", "tui_transformer")
PATIENCE = 600.0  # seconds
# Of whoever runs the tests; the child must not see them.
OURS = ("TUI_TRANSFORMER_", "XDG_", "LC_", "PYTEST_", "MLFLOW_", "WANDB_")


@dataclass(frozen=True)
class Answer:
    """What a command line came to."""

    code: int
    out: str
    err: str


def environment(home: Path, cache: Path) -> dict[str, str]:
    """The variables of a child.

    Args:
        home: a folder for `HOME` and the settings; they are under `home/config`.
        cache: a folder for generated corpora, which may be shared.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    for name in ("LINES", "FORCE_COLOR", "CLICOLOR_FORCE"):
        kept.pop(name, None)
    return kept | {
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "PATH": str(home / "bin"),  # no TeX, whatever is installed
        "XDG_CONFIG_HOME": str(home / "config"),
        "TUI_TRANSFORMER_CACHE": str(cache),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "OMP_NUM_THREADS": "1",
    }


def ask(commands: Sequence[Sequence[str]], folder: Path, cache: Path) -> list[Answer]:
    """What the program answers, in a folder that has `runs` and `home`."""
    with forking(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))  # it is no reason to start another Python
        done = subprocess.run(
            [sys.executable, "-m", "tests.earlier.asking"],
            cwd=folder,
            env=environment(folder / "home", cache),
            input=json.dumps([list(words) for words in commands]),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return [Answer(**json.loads(line)) for line in done.stdout.splitlines()]


def main(_: Sequence[str]) -> None:
    _answered(json.loads(sys.stdin.read()))


def _answered(commands: Iterable[Sequence[str]]) -> None:
    from tui_transformer.__main__ import main

    own = dict(os.environ)
    for words in commands:
        os.environ.clear()
        os.environ.update(own)  # a language that is given is left to child processes
        sys.argv = ["tui-transformer", *words]  # which a run records
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with redirect_stdout(out), redirect_stderr(err):
            code = main(list(words))
        said = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
        answer = dict(zip(("code", "out", "err"), (int(code), *said), strict=True))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
