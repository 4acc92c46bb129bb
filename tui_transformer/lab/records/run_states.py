"""The states of runs, of studies and of a study's cells, as every view shows them: a table with a row for each."""

from typing import NamedTuple

from engine.base.language import Message, tr
from engine.runs.reader import WAITING_FOR_SPACE
from tui_transformer.lab.records.study_row import TIMING
from tui_transformer.lab.work.cells import ABSENT, SKIPPED, CellStatus


class RunState(NamedTuple):
    sign: str
    style: str  # `good` or `bad`, or what is not over yet: `live`, `paused`, `queued`; else `ended`
    word: str = ""  # for little room; "" if views have something better to show there, such as a score
    sentence: str = Message("{state} at {where}")  # how a study's cell stands
    reason: str = ""  # of a run that does not give one


STATES = {
    "running": RunState("●", "live"),
    "starting": RunState("◌", "live", Message("starting")),
    TIMING: RunState("◌", "live", TIMING),
    "handing-over": RunState("»", "live", Message("moving")),
    "paused": RunState("‖", "paused", Message("paused")),
    "queued": RunState("◌", "queued", Message("queued"), Message("waiting to start")),
    "finished": RunState("✓", "good", "", Message("finished{loss}")),
    "stopped": RunState("■", "ended", Message("stopped"), Message("stopped at {where}")),
    "interrupted": RunState(
        "■", "ended", Message("interrupted"), Message("interrupted at {where}"), Message("the run was interrupted")
    ),
    "failed": RunState("✗", "bad", Message("failed"), Message("failed at step {step:,}"), Message("the run failed")),
    "lost": RunState(
        "!", "bad", Message("lost"), Message("process disappeared at {where}"), Message("its process is gone")
    ),
    "damaged": RunState("!", "bad", Message("damaged")),
    "no run": RunState("=", "ended", Message("no run")),
    SKIPPED: RunState("■", "ended", Message("skipped"), Message("skipped")),
    ABSENT: RunState("◌", "queued", Message("not started"), Message("not started")),
}


def run_state(state: str) -> RunState:
    """Return the row of a state; question marks for one of a later version."""
    return STATES.get(state, RunState("?", "ended", "?"))


def phase_text(phase: str) -> str:
    return tr("waiting for disk space") if phase == WAITING_FOR_SPACE else tr(phase)


def status_text(cell: CellStatus) -> str:
    """How a study's cell stands: `finished, validation loss 1.2345`, `stopped at step 100 of 200`."""
    said = tr(
        run_state(cell.state).sentence,
        state=tr(cell.state),
        where=tr("step {step:,} of {steps:,}", step=cell.step, steps=cell.steps),
        step=cell.step,
        loss=tr(", validation loss {loss:.4f}", loss=cell.loss) if cell.loss is not None else "",
    )
    if cell.reason and cell.state in ("failed", SKIPPED, ABSENT):
        return tr("{state}: {why}", state=said, why=tr(cell.reason))
    return said
