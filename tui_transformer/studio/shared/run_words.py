"""What the Train pane says of a run in each of its states, and which actions make sense there. Pure; one table each."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.runs.reader import LIVE_STATES
from engine.runs.room import WAITING_FOR_SPACE
from tui_transformer.lab.formatting import count, duration
from tui_transformer.lab.records.facts import number, whole
from tui_transformer.lab.records.feed import RunRow
from tui_transformer.lab.records.run_view import RunView

ENDED = ("stopped", "interrupted", "failed", "lost")  # resumable


@dataclass(frozen=True)
class Look:
    """How a state looks: a sign, a style, a word for the list."""

    sign: str
    style: str
    word: str = ""


LOOKS = {
    "running": Look("●", "live"),
    "starting": Look("◌", "live", "starts"),
    "handing-over": Look("»", "live", "moves"),
    "paused": Look("‖", "paused", "paused"),
    "queued": Look("◌", "queued", "queued"),
    "finished": Look("✓", "good"),
    "stopped": Look("■", "ended", "stopped"),
    "interrupted": Look("■", "ended", "cut off"),
    "failed": Look("✗", "bad", "failed"),
    "lost": Look("!", "bad", "lost"),
    "damaged": Look("!", "bad", "damaged"),
    "no run": Look("=", "ended", "no run"),
}
UNKNOWN = Look("?", "ended", "?")


def look(state: str) -> Look:
    """How a state looks; one of a later version is shown with a question mark."""
    return LOOKS.get(state, UNKNOWN)


@dataclass(frozen=True)
class Notice:
    """A sentence under a run's name, and its style."""

    text: str
    style: str = "dim"


def _with(reason: str, rest: str) -> str:
    return f"{reason.rstrip('.')}. {rest}" if reason and rest else reason or rest


def _goes_on(row: RunRow) -> str:
    if row.saved is None:
        return "r starts it over: it had no checkpoint yet"
    return f"r resumes from step {row.saved:,}"


def _queued(row: RunRow, view: RunView | None) -> Notice:
    if not row.waits_for:
        return Notice("nobody has begun it yet; r begins it")
    before = view.before if view is not None else ()
    if not before:
        return Notice(f"next on {row.waits_for}")
    names = ", ".join(before[:3]) + (f" and {len(before) - 3} more" if len(before) > 3 else "")
    return Notice(f"waits for {row.waits_for}, behind {len(before)}: {names}")


def _paused(row: RunRow, view: RunView | None) -> Notice:
    full = row.phase == WAITING_FOR_SPACE  # it continues by itself
    return Notice(row.reason if full else _with(row.reason, "space continues"), "warning")


def _running(row: RunRow, view: RunView | None) -> Notice:
    return Notice(row.reason, "warning") if row.reason else Notice("")


def _finished(row: RunRow, view: RunView | None) -> Notice:
    best = (view.best if view is not None else None) or {}
    loss = number(best.get("loss"))
    if view is None or loss is None:
        return Notice(row.reason)
    where = f"best validation loss {loss:.4g} at step {whole(best.get('step')):,}"
    took = f" · {duration(view.seconds)} of training" if view.seconds is not None else ""
    return Notice(f"{where}{took}" + (f" · {row.reason}" if row.reason else ""))


NOTICES: dict[str, Callable[[RunRow, RunView | None], Notice]] = {
    "queued": _queued,
    "starting": lambda row, view: Notice("loading the engine, the corpus and the model…"),
    "running": _running,
    "handing-over": lambda row, view: Notice("another process takes it up…"),
    "paused": _paused,
    "finished": _finished,
    "stopped": lambda row, view: Notice(_with(row.reason, _goes_on(row))),
    "interrupted": lambda row, view: Notice(_with(row.reason or "it was cut off", _goes_on(row)), "warning"),
    "failed": lambda row, view: Notice(_with(row.reason or "it failed", _goes_on(row)), "error"),
    "lost": lambda row, view: Notice(_with("its process is gone", _goes_on(row)), "error"),
    "damaged": lambda row, view: Notice("status.json is missing or damaged: what it did is below, if that can be read"),
}


def notice(row: RunRow, view: RunView | None) -> Notice:
    """What to say of a run now."""
    said = NOTICES.get(row.state)
    return said(row, view) if said is not None else Notice(row.reason)


def nothing_yet(row: RunRow, view: RunView | None) -> str:
    """Why there is no curve."""
    if view is None:
        return "reading…"
    if row.state == "queued":
        return "not begun yet"
    if row.state == "starting":
        return "starting…"
    if row.live:
        return "compiling…" if row.phase == "compiling" else "warming up…"
    return "it wrote no metrics"


def _pause(row: RunRow, here: bool) -> str:
    return "" if row.state in ("running", "paused") else _at_rest(row, "pause")


def _stop(row: RunRow, here: bool) -> str:
    return "" if row.state in ("starting", "running", "paused") else _at_rest(row, "stop")


def _checkpoint(row: RunRow, here: bool) -> str:
    return "" if row.state in ("running", "paused") else _at_rest(row, "save")


def _resume(row: RunRow, here: bool) -> str:
    if row.state == "finished":
        return f"{row.name} has done all its {count(row.steps, 'step')}"
    if row.state == "queued":
        return f"{row.name} is queued: it begins by itself" if row.waits_for else ""
    if row.state == "paused":
        return f"{row.name} is paused: space continues"
    if row.state not in ENDED:
        return f"{row.name} is {row.state}: there is nothing to resume"
    return ""  # without a checkpoint it is started over


def _detach(row: RunRow, here: bool) -> str:
    if not row.live:
        return f"{row.name} is {row.state}: there is nothing to hand over"
    return "" if here else f"{row.name} does not train in this window: it outlives it already"


def _still(row: RunRow, here: bool) -> str:
    return f"{row.name} is {row.state}: stop it first (s)" if row.live else ""


def _at_rest(row: RunRow, what: str) -> str:
    return f"{row.name} is {row.state}: there is nothing to {what}"


def _play(row: RunRow, here: bool) -> str:
    return "" if row.saved is not None else f"{row.name} has no checkpoint to write with yet"


WHY_NOT: dict[str, Callable[[RunRow, bool], str]] = {
    "pause": _pause,
    "stop": _stop,
    "checkpoint": _checkpoint,
    "resume": _resume,
    "detach": _detach,
    "play": _play,
    "rename": _still,
    "delete": _still,
}


def why_not(action: str, row: RunRow | None, here: bool) -> str:
    """Why an action makes no sense now; "" if it does.

    Args:
        action: its name, without arguments.
        row: the chosen run.
        here: whether it trains in this process.
    """
    rule = WHY_NOT.get(action)
    if rule is None:
        return ""
    return "no run is chosen" if row is None else rule(row, here)


@dataclass(frozen=True)
class Pending:
    """What was asked of a run and is not obeyed yet.

    Args:
        words: shown meanwhile.
        control_id: the last command it had obeyed before.
        until: clock time after which nobody waits for it any more.
        live: whether it is over when the run is no longer live, or when it is.
        done: what to say then.
    """

    words: str
    control_id: int
    until: float
    live: bool = True
    done: Callable[[RunRow], str] | None = None

    def over(self, row: RunRow, clock: float) -> bool:
        """Whether it was obeyed, or never will be."""
        if clock > self.until or (row.state in LIVE_STATES) != self.live:
            return True
        return self.live and row.control_id > self.control_id and row.phase != "checkpointing"
