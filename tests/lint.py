"""Lint, types and import contracts, in parallel. `python -m tests.lint ARGUMENTS` also runs `python ARGUMENTS`:

    python -m tests.lint -m pytest -n auto

What a check prints stands in one piece, and all are done whatever fails. The exit code is 0 if nothing did.
"""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parent.parent
BESIDE = Path(sys.executable).parent  # where an environment has its programs
CHECKS = {  # the longest one first
    "types": ("mypy",),
    "contracts": ("lint-imports",),
    "lint": ("ruff", "check", "."),
    "format": ("ruff", "format", "--check", "."),
}


class Checks:
    """All checks at once, each in a process of its own."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.running: list[tuple[str, subprocess.Popen[bytes], IO[bytes]]] = []
        for name, (program, *words) in CHECKS.items():
            said = tempfile.TemporaryFile()  # noqa: SIM115 - read when the check is over
            command = [str(BESIDE / program), *words]
            process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=subprocess.STDOUT)
            self.running.append((name, process, said))

    def ended(self) -> Iterator[tuple[str, str]]:
        """Yield the checks that are over since it was last asked: the name, and what it says if it failed."""
        for row in [row for row in self.running if row[1].poll() is not None]:
            self.running.remove(row)
            name, process, said = row
            said.seek(0)
            text = said.read().decode(errors="replace").strip()
            yield name, (text or f"exit code {process.returncode}") if process.returncode else ""

    def rest(self) -> Iterator[tuple[str, str]]:
        """Wait for all, and yield them as they end."""
        while self.running:
            yield from self.ended()
            time.sleep(0.05)

    def stop(self) -> None:
        for _, process, _ in self.running:
            process.kill()


def report(name: str, failed: str) -> None:
    print(f"{name}: {'FAILED' if failed else 'ok'}" + (f"\n{failed}\n" if failed else ""), flush=True)


def main(words: Sequence[str]) -> int:
    checks = Checks()
    beside = subprocess.Popen([sys.executable, *words]) if words else None
    code = 0
    try:
        code = beside.wait() if beside else 0
        for name, failed in checks.rest():
            report(name, failed)
            code = code or int(bool(failed))
    except KeyboardInterrupt:
        checks.stop()
        code = 128 + signal.SIGINT
        if beside:
            beside.wait()  # it was interrupted too, and says what it did
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
