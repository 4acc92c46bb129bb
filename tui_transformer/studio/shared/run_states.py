"""The states of a run: each one's look, wording and allowed actions. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from engine.runs.reader import LIVE_STATES, WAITING_FOR_SPACE
from tui_transformer.lab.formatting import count, duration
from tui_transformer.lab.records.run_view import RunRow, RunView

ENDED = ("stopped", "interrupted", "failed", "lost")  # resumable


class StateStyle(NamedTuple):
    sign: str
    style: str
    word: str = ""


STATES = {
    "running": StateStyle("●", "live"),
    "starting": StateStyle("◌", "live", "starts"),
    "handing-over": StateStyle("»", "live", "moves"),
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
        "r starts it over: it had no checkpoint yet" if row.saved is None else f"r resumes from step {row.saved:,}"
    )

    def then(reason: str, rest: str) -> str:
        return f"{reason.rstrip('.')}. {rest}" if reason else rest

    match row.state:
        case "queued":
            before = view.before if view is not None else ()
            names = ", ".join(before[:3]) + (f" and {len(before) - 3} more" if len(before) > 3 else "")
            if not row.waits_for:
                return Notice("nobody has begun it yet; r begins it")
            if not before:
                return Notice(f"next on {row.waits_for}")
            return Notice(f"waits for {row.waits_for}, behind {len(before)}: {names}")
        case "starting":
            return Notice("loading the engine, the corpus and the model…")
        case "running":
            return Notice(row.reason, "warning")
        case "handing-over":
            return Notice("another process takes it up…")
        case "paused":  # on a full disk it continues by itself
            full = row.phase == WAITING_FOR_SPACE
            return Notice(row.reason if full else then(row.reason, "space continues"), "warning")
        case "finished":
            best = view.best if view is not None else None
            if view is None or best is None or best.loss is None:
                return Notice(row.reason)
            parts = [f"best validation loss {best.loss:.4g} at step {best.step:,}"]
            if view.seconds is not None:
                parts.append(f"{duration(view.seconds)} of training")
            return Notice(" · ".join([*parts, row.reason] if row.reason else parts))
        case "stopped":
            return Notice(then(row.reason, resumes))
        case "interrupted":
            return Notice(then(row.reason or "it was cut off", resumes), "warning")
        case "failed":
            return Notice(then(row.reason or "it failed", resumes), "error")
        case "lost":
            return Notice(then("its process is gone", resumes), "error")
        case "damaged":
            return Notice("status.json is missing or damaged: what it did is below, if that can be read")
    return Notice(row.reason)


def nothing_yet(row: RunRow, view: RunView | None) -> str:
    if view is None:
        return "reading…"
    if row.state in ("queued", "starting"):
        return "not begun yet" if row.state == "queued" else "starting…"
    if row.live:
        return "compiling…" if row.phase == "compiling" else "warming up…"
    return "it wrote no metrics"


def why_not(action: str, row: RunRow | None, here: bool) -> str:
    """Return why an action makes no sense now; "" if it does. `here`: the run trains in this process."""
    if action not in ("pause", "stop", "checkpoint", "resume", "detach", "play", "rename", "delete"):
        return ""
    if row is None:
        return "no run is chosen"
    state, name = row.state, row.name
    nothing = f"{name} is {state}: there is nothing to"
    match action:
        case "pause" if state not in ("running", "paused"):
            return f"{nothing} pause"
        case "checkpoint" if state not in ("running", "paused"):
            return f"{nothing} save"
        case "stop" if state not in ("starting", "running", "paused"):
            return f"{nothing} stop"
        case "detach" if not row.live:
            return f"{nothing} hand over"
        case "detach" if not here:
            return f"{name} does not train in this window: it outlives it already"
        case "play" if row.saved is None:
            return f"{name} has no checkpoint to write with yet"
        case "rename" | "delete" if row.live:
            return f"{name} is {state}: stop it first (s)"
        case "resume" if state == "finished":
            return f"{name} has done all its {count(row.steps, 'step')}"
        case "resume" if state == "paused":
            return f"{name} is paused: space continues"
        case "resume" if state == "queued":
            return f"{name} is queued: it begins by itself" if row.waits_for else ""
        case "resume" if state not in ENDED:
            return f"{nothing} resume"
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
