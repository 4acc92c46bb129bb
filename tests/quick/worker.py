"""A worker process of `make quick`, of which there is one per core: `python -m pytest -p tests.quick.worker`.

It takes the next free portion: the tests of one file that have the same rank. It imports a file
only when it comes to it, and stops in time. What happens goes to a file, a line of JSON each: `running` and `done`
tests, and how many are in a file.
"""

import json
import math
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PLAN = "TESTS_QUICK"  # the environment variable with the folder of the plan


@dataclass(frozen=True)
class Plan:
    """What to run. Times are in seconds."""

    portions: list[tuple[int, str]]  # in their order: a rank, and the file whose tests of that rank it is
    distances: dict[str, dict[str, float]]  # file -> test -> how far it is from what changed
    durations: dict[str, float]  # of cases, as they were measured
    usual: dict[str, float]  # file -> duration of a test that was never measured
    end: float  # on the monotonic clock


def rank(distance: float, seconds: float, case: int = 0) -> int:
    """Return the place in the order; lower runs first. Taking ten times as long counts as one step farther away, and so
    does being the 46th case.
    """
    return int(2 * (distance + math.log10(max(seconds, 0.1) / 0.1) + math.log10(1 + case / 5)))


def pytest_configure(config: pytest.Config) -> None:
    folder = Path(os.environ[PLAN])
    plan = Plan(**json.loads((folder / "plan.json").read_text(encoding="utf-8")))
    config.pluginmanager.register(Worker(plan, folder))


class Worker:
    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self.out = (folder / f"{os.getpid()}.jsonl").open("a", encoding="utf-8")
        self.files: dict[str, dict[int, list[pytest.Item]]] = {}  # those that were imported: rank -> tests
        self.said: list[str] = []  # of the running test: how it failed
        self.seconds = 0.0

    def tell(self, **row: Any) -> None:
        self.out.write(json.dumps(row) + "\n")
        self.out.flush()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        session.items = []
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        tests = self.tests(session)
        item = next(tests, None)
        while item is not None:
            following = next(tests, None)  # what is torn down after a test depends on the next one
            self.tell(running=item.nodeid)
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item = following
        return True

    def tests(self, session: pytest.Session) -> Iterator[pytest.Item]:
        for number, (wanted, path) in enumerate(self.plan.portions):
            if time.monotonic() > self.plan.end:
                return
            try:
                (self.folder / f"taken-{number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            if path not in self.files:
                self.files[path] = self.collected(session, path)
            for item in self.files[path].get(wanted, ()):
                if time.monotonic() + self.duration(path, item) < self.plan.end:
                    yield item

    def collected(self, session: pytest.Session, path: str) -> dict[int, list[pytest.Item]]:
        items: list[pytest.Item] = []
        with suppress(pytest.UsageError):  # a file without a test, or one that cannot be imported: told below
            items = [item for item in session.perform_collect([path]) if isinstance(item, pytest.Item)]
        self.tell(file=path, tests=[item.nodeid for item in items])
        found: dict[int, list[pytest.Item]] = {}
        cases: Counter[str] = Counter()
        own = [rank for rank, where in self.plan.portions if where == path]
        for item in items:
            test = getattr(item, "originalname", item.name)
            distance = self.plan.distances[path].get(test, max(self.plan.distances[path].values()))
            place = rank(distance, self.duration(path, item), cases[test])
            found.setdefault(min(max(place, own[0]), own[-1]), []).append(item)
            cases[test] += 1
        return found

    def duration(self, path: str, item: pytest.Item) -> float:
        return self.plan.durations.get(item.nodeid, self.plan.usual[path])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.tell(done=report.nodeid, failed=report.longreprtext, seconds=0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds += report.duration
        if report.failed:
            self.said += [report.longreprtext, *(f"--- {title}\n{text}" for title, text in report.sections)]
        if report.when == "teardown":
            self.tell(done=report.nodeid, failed="\n".join(self.said), seconds=round(self.seconds, 2))
            self.said, self.seconds = [], 0.0
