"""The states of runs and of a study's cells, as they are shown."""

from pathlib import Path

from engine.config.schema import RunConfig
from engine.runs.reader import LIVE_STATES, STATES, WAITING_FOR_SPACE
from tui_transformer.lab.records import run_states
from tui_transformer.lab.records.run_states import phase_text, run_state, status_text
from tui_transformer.lab.work.cells import SKIPPED, TORN, CellStatus
from tui_transformer.lab.work.study import StudyCell

CELL = StudyCell("base", 1, RunConfig(), "study.base.s1")


def cell(state: str, reason: str = "", loss: float | None = None) -> str:
    return status_text(CellStatus(CELL, Path("study.base.s1"), state, reason, step=1200, steps=2000, loss=loss))


def test_every_state_that_a_run_records_has_a_row_and_any_other_is_shown_too() -> None:
    assert {*LIVE_STATES, *STATES} <= run_states.STATES.keys()
    assert run_state("of a later version").sign == "?"


def test_a_cell_says_how_far_it_came_and_why_it_did_not_finish() -> None:
    assert cell("finished", loss=1.25) == "finished, validation loss 1.2500"
    assert cell("stopped", "told to stop") == "stopped at step 1,200 of 2,000"
    assert cell("running") == "running at step 1,200 of 2,000" and cell(TORN) == "torn at step 1,200 of 2,000"
    assert cell("failed", "no memory") == "failed at step 1,200: no memory"
    assert cell(SKIPPED, "its stage failed") == "skipped: its stage failed"


def test_the_phase_of_a_run_without_disk_space_says_so() -> None:
    assert phase_text(WAITING_FOR_SPACE) == "waiting for disk space" and phase_text("compiling") == "compiling"
