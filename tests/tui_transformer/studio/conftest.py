"""For tests that hold screens against stored ones."""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, TextArea

from tests.tui_transformer.studio.corpora_seen import be_seen_once
from tests.tui_transformer.studio.stored_screens import StoredScreens

TESTS = pytest.StashKey[dict[Path, set[str]]]()  # the names of all tests, slow or not, by file
PASSED = pytest.StashKey[bool]()


@pytest.fixture(autouse=True)
def corpora_seen_once(monkeypatch) -> None:
    be_seen_once(monkeypatch)


@pytest.fixture
def stored(request, plain_surroundings, monkeypatch) -> Iterator[StoredScreens]:
    """The stored screens of a test, in plain surroundings: nothing blinks, and nothing moves by and by."""
    for kind in (Input, TextArea):
        monkeypatch.setattr(kind.cursor_blink, "_default", False)
    monkeypatch.setattr("textual.constants.TEXTUAL_ANIMATIONS", "none")
    screens = StoredScreens(request.node)
    yield screens
    if request.node.stash.get(PASSED, False):
        screens.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    found = config.stash.setdefault(TESTS, {})
    for item in items:
        found.setdefault(item.path, set()).add(item.name)
