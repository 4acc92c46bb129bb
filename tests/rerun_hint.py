"""After a failure: the command that reruns this test, to be pasted into a shell."""

import os
import shlex
import sys
from pathlib import Path

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print one line for each test that failed, or could not be set up, in whichever process it ran."""
    reports = [report for outcome in ("failed", "error") for report in terminalreporter.stats.get(outcome, [])]
    for nodeid in dict.fromkeys(report.nodeid for report in reports):
        terminalreporter.write_line(f"rerun: {rerun_command(config.cwd_relative_nodeid(nodeid))}")


def rerun_command(nodeid: str) -> str:
    """The command line that runs one test, with this Python as one would type it here."""
    own = Path(sys.executable)
    python = os.path.relpath(own) if own.is_relative_to(Path.cwd()) else str(own)
    return shlex.join([python, "-m", "pytest", nodeid])
