"""After a failure: the command that runs this test alone, to be pasted into a shell."""

import os
import shlex
import sys
from pathlib import Path

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print one line for each test that failed, or could not be set up, in whichever process it ran."""
    reports = [report for outcome in ("failed", "error") for report in terminalreporter.stats.get(outcome, [])]
    for nodeid in dict.fromkeys(report.nodeid for report in reports):
        command = shlex.join([python(), "-m", "pytest", config.cwd_relative_nodeid(nodeid)])
        terminalreporter.write_line(f"to run it alone: {command}")


def python() -> str:
    """This Python, as one would type it here."""
    own = Path(sys.executable)
    return os.path.relpath(own) if own.is_relative_to(Path.cwd()) else str(own)
