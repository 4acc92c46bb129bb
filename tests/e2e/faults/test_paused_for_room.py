"""A run paused on a full disk says so wherever it is shown: one word, and why."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from engine.runs import control, writer
from engine.runs.reader import RunReader
from engine.training import checkpoint
from tests.e2e.faults.slices import SETTINGS, run_words
from tui_transformer.__main__ import main
from tui_transformer.cli.run import progress
from tui_transformer.lab.records.feed import Feed
from tui_transformer.studio.shared.run_states import notice


class Full:
    """A disk without room for the second checkpoint, until it has been looked at."""

    def __init__(self, patch: pytest.MonkeyPatch, run: Path, *, lines_fit: bool) -> None:
        self.run, self.tries, self.shown = run, 0, {}
        save, append = checkpoint.save, writer.append_whole

        def saved(*given: Any) -> str:
            if given[3].step and self.tries < 8:
                self.tries += 1
                if self.tries == 6:
                    self.look()
                raise OSError(errno.ENOSPC, "No space left on device", "x")
            return save(*given)

        def appended(file: Any, data: bytes) -> None:
            if not lines_fit and 0 < self.tries < 8:
                raise OSError(errno.ENOSPC, "No space left on device")
            append(file, data)

        patch.setattr(checkpoint, "save", saved)
        patch.setattr(writer, "append_whole", appended)
        patch.setattr(control, "PAUSE_SLEEP", 0.1)
        patch.setattr(progress, "REFRESH", 0.02)

    def look(self) -> None:
        """What is shown of it meanwhile."""
        reader = RunReader(self.run)
        row = Feed(self.run.parent).poll().rows[0]
        self.shown = {"status": reader.status, "row": row, "notice": notice(row, None).text}
        self.shown["events"] = list(reader.raw_lines("events"))


@pytest.mark.parametrize("lines_fit", [True, False])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_pause_on_a_full_disk_is_reported(tmp_path, capsys, monkeypatch, lines_fit: bool, form) -> None:
    run = tmp_path / "runs" / "a"
    full = Full(monkeypatch, run, lines_fit=lines_fit)
    assert main([*run_words(tmp_path / "runs", SETTINGS), *form]) == 0
    why = f"the disk holding {run} is full"
    assert full.shown["status"].state == full.shown["row"].state == "paused"
    assert why in full.shown["status"].reason and why in full.shown["notice"]
    assert "space continues" not in full.shown["notice"]
    events = {event["event"]: event for event in RunReader(run).raw_lines("events")}
    assert why in events["paused"]["text"] and events["paused"]["step"] == 2 and "continued" in events
    assert lines_fit == any(event["event"] == "paused" for event in full.shown["events"])
    said = capsys.readouterr()
    if form:
        told = [json.loads(line) for line in said.out.splitlines()]
        states = [(one["state"], why in one["reason"]) for one in told if one["kind"] == "status"]
        assert states == [("paused", True), ("running", False)]
    else:
        lines = [line for line in said.err.splitlines() if line.startswith("a: paused")]
        assert len(lines) == 1 and why in lines[0] and "a: training continues" in said.err


@pytest.mark.parametrize("command", ["runs", "doctor", "runs --json"])
def test_what_shows_a_run_says_that_it_is_paused_and_why(tmp_path, capsys, monkeypatch, command: str) -> None:
    runs = tmp_path / "runs"
    full = Full(monkeypatch, runs / "a", lines_fit=True)

    def look() -> None:
        main([*command.split(), *(["a"] if command == "doctor" else []), "--runs-dir", str(runs)])

    full.look = look  # type: ignore[method-assign]
    assert main(run_words(runs, SETTINGS)) == 0
    said = capsys.readouterr()
    shown = "\n".join(line for line in (said.out + said.err).splitlines() if "a: paused" not in line)
    assert "paused" in shown and f"the disk holding {runs / 'a'} is full" in shown and "waiting-for-space" not in shown
