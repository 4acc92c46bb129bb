"""The states of a run: each one's look, wording and allowed actions. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from engine.runs.reader import LIVE_STATES, WAITING_FOR_SPACE
from tui_transformer.lab.formatting import count, duration
from tui_transformer.lab.records.run_view import RunRow, RunView
from tui_transformer.lab.records.study_row import StudyRow

ACTIONS = ("pause", "stop", "checkpoint", "resume", "detach", "play", "rename", "delete")
LONGER = "To train longer, press 1 and raise train.steps. Most schedules span all steps, so a longer run is a new one."
ENDED = ("stopped", "interrupted", "failed", "lost")  # resumable


class StateStyle(NamedTuple):
    sign: str
    style: str
    word: str = ""


STATES = {
    "running": StateStyle("●", "live"),
    "starting": StateStyle("◌", "live", "starts"),
    "handing-over": StateStyle("»", "live", "moving"),
    "paused": StateStyle("‖", "paused", "paused"),
    "queued": StateStyle("◌", "queued", "queued"),
    "finished": StateStyle("✓", "good"),
    "stopped": StateStyle("■", "ended", "stopped"),
    "interrupted": StateStyle("■", "ended", "cut off"),
    "failed": StateStyle("✗", "bad", "failed"),
    "lost": StateStyle("!", "bad", "lost"),
    "damaged": StateStyle("!", "bad", "damaged"),
    "no run": StateStyle("=", "ended", "no run"),
}
UNKNOWN = StateStyle("?", "ended", "?")  # a later version's state


class Notice(NamedTuple):
    text: str
    style: str = "dim"


def notice(row: RunRow, view: RunView | None) -> Notice:
    resumes = (
        "press r to start over: there is no checkpoint yet"
        if row.saved is None
        else f"press r to resume from step {row.saved:,}"
    )

    def then(reason: str, rest: str) -> str:
        return f"{reason.rstrip('.')}\n{rest}" if reason else rest

    match row.state:
        case "queued":
            before = view.before if view is not None else ()
            names = ", ".join(before[:3]) + (f" and {len(before) - 3} more" if len(before) > 3 else "")
            if not row.waits_for:
                return Notice("not started; press r to start")
            if not before:
                return Notice(f"next on {row.waits_for}")
            return Notice(f"waiting for {row.waits_for}, behind {len(before)}: {names}")
        case "starting":
            return Notice("loading the engine, the corpus and the model…")
        case "running":
            return Notice(row.reason, "warning") if row.reason else Notice(_so_far(view))
        case "handing-over":
            return Notice("moving to the background…")
        case "paused":  # on a full disk it continues by itself
            full = row.phase == WAITING_FOR_SPACE
            return Notice(row.reason if full else then(row.reason, "press space to continue"), "warning")
        case "finished":
            best = view.best if view is not None else None
            if view is None or best is None or best.loss is None:
                return Notice(row.reason)
            parts = [f"best validation loss {best.loss:.4g} at step {best.step:,}"]
            parts += [_above(view, best.loss)] if view.floors else []
            if view.seconds is not None:
                parts.append(f"{duration(view.seconds)} of training")
            return Notice(" · ".join([*parts, row.reason] if row.reason else parts))
        case "stopped":
            return Notice(then(row.reason, resumes))
        case "interrupted":
            return Notice(then(row.reason or "it was interrupted", resumes), "warning")
        case "failed":
            return Notice(then(row.reason or "it failed", resumes), "error")
        case "lost":
            return Notice(then("its process is gone", resumes), "error")
        case "damaged":
            return Notice("status.json is missing or damaged; showing what could be recovered")
    return Notice(row.reason)


def _above(view: RunView, loss: float) -> str:
    return f"{loss - view.floors[0].nats:.3f} above the floor" if view.floors else ""


def _so_far(view: RunView | None) -> str:
    """Whether it still improves, and how far it is from the best possible loss."""
    best, last = (view.best, view.last) if view is not None else (None, None)
    if view is None or best is None or last is None or best.loss is None or last.loss is None:
        return ""
    better = "best so far" if best.step == last.step else f"best {best.loss:.4g} at step {best.step:,}"
    return " · ".join(filter(None, (f"validation {last.loss:.4g}", _above(view, last.loss), better)))


def next_steps(row: RunRow, width: int) -> str:
    """What to do with a finished run, with the keys; "" for any other."""
    if row.state != "finished":
        return ""
    again, brief = "1 change one thing and train again", "1 change one thing"
    if "STILL-FALLING" in row.badges:
        again, brief = "1 train longer (train.steps)", "1 train longer"
    forms = (f"next: w write with it · 3 compare it · {again}", f"next: w write · 3 compare · {brief}")
    return next((form for form in forms if len(form) <= width), "")


def nothing_yet(row: RunRow, view: RunView | None) -> str:
    if view is None:
        return "reading…"
    if row.state in ("queued", "starting"):
        return "not started yet" if row.state == "queued" else "starting…"
    if row.live:
        often = f" the curve gets a point every {view.log_every:,}" if view.log_every > 1 else ""
        return "compiling…" if row.phase == "compiling" else f"waiting for the first steps…{often}"
    return "it wrote no metrics"


def why_not(action: str, row: RunRow | None, here: bool) -> str:
    """Return why an action makes no sense now; "" if it does. `here`: the run trains in this process."""
    if action not in ACTIONS:
        return ""
    if row is None:
        return "no run is chosen"
    state, name = row.state, row.name
    nothing = f"{name} is {state}: there is nothing to"
    match action:
        case "pause" if state not in ("running", "paused"):
            return f"{nothing} pause"
        case "checkpoint" if state not in ("running", "paused"):
            if state == "handing-over":
                return f"{name} is moving to the background; try again in a moment"
            return f"{nothing} save"
        case "stop" if state not in ("starting", "running", "paused"):
            return f"{nothing} stop"
        case "detach" if not row.live:
            return f"{nothing} move to the background"
        case "detach" if not here:
            return f"{name} already runs in the background"
        case "play" if row.saved is None:
            return f"{name} has no checkpoint to write with yet"
        case "rename" | "delete" if row.live:
            return f"Stop {name} first (s), then {action} it"
        case "resume" if state == "finished":
            return f"{name} has finished all its {count(row.steps, 'step')}. {LONGER}"
        case "resume" if state == "paused":
            return f"{name} is paused: press space to continue"
        case "resume" if state == "queued":
            return f"{name} is queued: it starts by itself" if row.waits_for else ""
        case "resume" if state not in ENDED:
            return f"{nothing} resume"
    return ""


def why_not_study(action: str, study: StudyRow) -> str:
    """Return why an action on all runs of a study makes no sense now; "" if it does."""
    if action in ("pause", "stop") and not study.live:
        return f"no run of {study.name} is training"
    if action == "resume" and study.live:
        return f"{study.name} is {study.state}: there is nothing to resume"
    if action == "resume" and study.state == "finished":
        return f"all runs of {study.name} have finished"
    if action in ACTIONS and action not in ("pause", "stop", "resume"):
        return f"{study.name} is a study: open it (enter) and choose one of its runs"
    return ""


@dataclass(frozen=True)
class Pending:
    """A command that a run has not obeyed yet."""

    words: str  # shown meanwhile
    control_id: int  # the last command obeyed before
    until: float  # clock time at which waiting ends
    live: bool = True  # whether it is over when the run is no longer live, or when it is
    done: Callable[[RunRow], str] | None = None  # what to show then

    def over(self, row: RunRow, clock: float) -> bool:
        if clock > self.until or (row.state in LIVE_STATES) != self.live:
            return True
        return self.live and row.control_id > self.control_id and row.phase != "checkpointing"
