"""How long tests took when they were last run on this machine: `-p tests.quick.durations` records it."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

NAME = "durations.json"


def known(folder: Path) -> dict[str, float]:
    """Return seconds by test; nothing if it was never measured."""
    try:
        found = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def remember(folder: Path, measured: Mapping[str, float]) -> None:
    """Keep what was measured, beside what is known of other tests."""
    folder.mkdir(exist_ok=True)
    (folder / NAME).write_text(json.dumps(known(folder) | dict(measured), indent=0), encoding="utf-8")


class Recorder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = round(self.seconds.get(report.nodeid, 0.0) + report.duration, 2)

    def pytest_sessionfinish(self) -> None:
        remember(self.folder, self.seconds)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # what distributes the tests knows them all
        config.pluginmanager.register(Recorder(config.rootpath / ".quick_cache"))
