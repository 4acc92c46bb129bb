"""Every test of the app has settings and presets of its own, never those of whoever runs it."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.tui_transformer.studio.on_screen import patch_waits, until
from tui_transformer import languages
from tui_transformer.studio.app import PaneSwitcher, Studio

NOON = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def own_settings(tmp_path, monkeypatch) -> Path:
    """The settings file: the first start is over. Presets of one's own lie beside it."""
    path = tmp_path / "settings.toml"
    path.write_text("welcomed = true\n")
    monkeypatch.setenv(languages.SETTINGS_VARIABLE, str(path))
    monkeypatch.setattr("tui_transformer.studio.design.own_files.user_config_path", lambda name: tmp_path / name)
    return path


@pytest.fixture(autouse=True)
def patient(monkeypatch) -> None:
    patch_waits(monkeypatch)


@pytest.fixture(autouse=True)
def all_panes_there(patient, monkeypatch) -> None:
    """`run_test` of the studio begins once its panes are there: a test may ask a pane before it types a key."""
    begin = Studio.run_test

    @asynccontextmanager
    async def run_test(app: Studio, **options: Any) -> AsyncIterator[Pilot[Any]]:
        async with begin(app, **options) as pilot:
            await until(pilot, lambda: len(app.query_one(PaneSwitcher).children) == len(app.panes), f"{app.panes}")
            yield pilot

    monkeypatch.setattr(Studio, "run_test", run_test)


@pytest.fixture(autouse=True)
def no_training_left() -> Iterator[None]:
    """A test waits for what it trains: a process trains one run at a time, and the next test may want to."""
    yield
    assert "training" not in {thread.name for thread in threading.enumerate()}, "a training thread was left running"


@pytest.fixture
def plain_surroundings(own_settings, tmp_path, monkeypatch) -> Path:
    """For pictures: colours, noon, two cores, no corpora of this machine, and no path that differs from day to day.

    Returns:
        The settings file.
    """
    monkeypatch.setattr("tui_transformer.studio.train.run_header.local_time", lambda: NOON)
    monkeypatch.setattr("engine.base.threads.usable_cores", lambda: 2)  # estimates of time hang on them
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("TUI_TRANSFORMER_DATA", raising=False)
    monkeypatch.setattr("engine.data.corpus.user_data_path", lambda name: Path("/home/you/.local/share") / name)
    monkeypatch.chdir(tmp_path)
    return own_settings
