"""What a run's state means to its reader: what to do about it, and which actions it allows. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len

from engine.base.errors import comma_separated
from engine.base.language import Message, tr, trn
from engine.runs.reader import LIVE_STATES, WAITING_FOR_SPACE
from tui_transformer.lab.formatting import DOT, rough_duration
from tui_transformer.lab.records.run_lines import result_text, validation_text
from tui_transformer.lab.records.run_states import run_state
from tui_transformer.lab.records.run_view import RunRow, RunView
from tui_transformer.lab.records.seen import why_cannot_be_acknowledged
from tui_transformer.lab.records.study_row import TIMING, StudyRow

ACTIONS = ("pause", "stop", "checkpoint", "resume", "detach", "play", "rename", "delete", "seen")
VIEWS = ("tab", "smooth", "ghost")  # what is shown of a run, but not of a study
LONGER = Message(
    "To train longer, press 1 and raise train.steps. Most schedules span all steps, so this starts a new run."
)
ENDED = {"stopped": "dim", "interrupted": "warning", "failed": "error", "lost": "error"}  # resumable; style of a notice


class Notice(NamedTuple):
    text: str
    style: str = "dim"


def notice(row: RunRow, view: RunView | None) -> Notice:
    resumes = (
        tr("press r to start over: there is no checkpoint yet")
        if row.last_checkpoint_step is None
        else tr("press r to resume from step {saved:,}", saved=row.last_checkpoint_step)
    )

    def then(reason: str, rest: str) -> str:
        return f"{reason.rstrip('.')}\n{rest}" if reason else rest

    match row.state:
        case "queued":
            before = view.runs_ahead if view is not None else ()
            names = comma_separated(before[:3]) + (tr(" and {n} more", n=len(before) - 3) if len(before) > 3 else "")
            if not row.waits_for:
                return Notice(tr("not started; press r to start"))
            if not before:
                return Notice(tr("next in line for {waits_for}", waits_for=row.waits_for))
            ahead = trn("{n} run is ahead", "{n} runs are ahead", len(before))
            said = tr("waiting for {waits_for}; {ahead}: {names}", waits_for=row.waits_for, ahead=ahead, names=names)
            wait = view.wait if view is not None else None
            return Notice(said if wait is None else tr("{said} · about {wait}", said=said, wait=rough_duration(wait)))
        case "starting":
            return Notice(tr("loading the engine, the corpus and the model…"))
        case "running":
            return (
                Notice(row.reason, "warning")
                if row.reason
                else Notice(validation_text(view) if view is not None else "")
            )
        case "handing-over":
            return Notice(tr("moving to the background…"))
        case "paused":  # on a full disk it continues by itself
            full = row.phase == WAITING_FOR_SPACE
            return Notice(row.reason if full else then(row.reason, tr("press space to continue")), "warning")
        case "finished":
            return Notice(DOT.join(filter(None, (result_text(view) if view is not None else "", row.reason))))
        case "stopped" | "interrupted" | "failed" | "lost":
            why = row.reason if row.state != "lost" else ""
            return Notice(then(why or tr(run_state(row.state).reason), resumes), ENDED[row.state])
        case "damaged":
            return Notice(tr("status.json is missing or damaged; showing what could be recovered"))
    return Notice(row.reason)


def next_steps_text(row: RunRow, width: int) -> str:
    """What to do with a finished run, with the keys; "" for any other."""
    if row.state != "finished":
        return ""
    again, brief = tr("1 change one thing and train again"), tr("1 change one thing")
    if "STILL-FALLING" in row.badges:
        again, brief = tr("1 train longer (train.steps)"), tr("1 train longer")
    forms = (
        tr("next: w write with it · 3 compare it · R (in 3) report on it · {again}", again=again),
        tr("next: w write with it · 3 compare it · {again}", again=again),
        tr("next: w write · 3 compare · {brief}", brief=brief),
    )
    return next((form for form in forms if cell_len(form) <= width), "")


def why_no_curves(row: RunRow, view: RunView | None) -> str:
    if view is None:
        return tr("reading…")
    if row.state in ("queued", "starting"):
        return tr("not started yet") if row.state == "queued" else tr("starting…")
    if row.live:
        every = view.log_every
        often = tr(" the curve gets a point every {log_every:,} steps", log_every=every) if every > 1 else ""
        return tr("compiling…") if row.phase == "compiling" else tr("waiting for the first steps…{often}", often=often)
    return tr("no metrics were written")


def action_problem(action: str, row: RunRow | None, here: bool) -> str:
    """Return why an action makes no sense now; "" if it does. `here`: the run trains in this process."""
    if action not in ACTIONS:
        return ""
    if row is None:
        return tr("no run is selected")
    state, name = row.state, row.name
    if state == "handing-over" and action in ("pause", "checkpoint", "stop", "resume"):
        return tr("{name} is moving to the background; try again in a moment", name=name)
    said = {"name": name, "state": tr(state)}
    match action:
        case "pause" if state not in ("running", "paused"):
            return tr("{name}: {state}; there is nothing to pause", **said)
        case "checkpoint" if state not in ("running", "paused"):
            return tr("{name}: {state}; there is nothing to save", **said)
        case "stop" if state not in ("starting", "running", "paused"):
            return tr("{name}: {state}; there is nothing to stop", **said)
        case "detach" if not row.live:
            return tr("{name}: {state}; there is nothing to move to the background", **said)
        case "detach" if not here:
            return tr("{name} is already running in the background", name=name)
        case "seen":
            return why_cannot_be_acknowledged(name, row.badges)
        case "play" if row.last_checkpoint_step is None:
            return tr("{name} has no checkpoint to write with yet", name=name)
        case "rename" | "delete" if row.live:
            if action == "rename":
                return tr("Stop {name} first (s), then rename it", name=name)
            return tr("Stop {name} first (s), then delete it", name=name)
        case "resume" if state == "finished":
            done = trn(
                "{name} has finished its {n} step.", "{name} has finished all its {n:,} steps.", row.steps, name=name
            )
            return tr("{said} {more}", said=done, more=LONGER)
        case "resume" if state == "paused":
            return tr("{name} is paused: press space to continue", name=name)
        case "resume" if state == "queued":
            return tr("{name} is queued: it will start automatically", name=name) if row.waits_for else ""
        case "resume" if state not in ENDED:
            return tr("{name}: {state}; there is nothing to resume", **said)
    return ""


def study_action_problem(action: str, study: StudyRow) -> str:
    """Return why an action on all runs of a study makes no sense now; "" if it does."""
    if action == "stop" and study.waits_for:
        return ""
    if action in ("pause", "stop") and not study.live:
        return tr("none of {name}'s runs is training", name=study.name)
    if action == "resume" and (study.live or study.state == TIMING):
        return tr("{name}: {state}; there is nothing to resume", name=study.name, state=tr(study.state))
    if action == "resume" and study.state == "finished":
        return tr("all runs of {name} have finished", name=study.name)
    if action in (*ACTIONS, *VIEWS) and action not in ("pause", "stop", "resume"):
        return tr("{name} is a study: open it (enter) and choose one of its runs", name=study.name)
    return ""


@dataclass(frozen=True)
class PendingCommand:
    """A command that a run has not obeyed yet."""

    words: str  # shown meanwhile
    control_id: int  # the last command obeyed before
    deadline: float  # clock time at which waiting ends
    until_dead: bool = True  # whether it is over when the run is no longer live, or when it is
    success_text: Callable[[RunRow], str] | None = None  # what to show then

    def is_over(self, row: RunRow, clock: float) -> bool:
        if clock > self.deadline or (row.state in LIVE_STATES) != self.until_dead:
            return True
        return self.until_dead and row.control_id > self.control_id and row.phase != "checkpointing"
