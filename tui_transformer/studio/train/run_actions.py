"""What the Train pane does to runs: pause, stop, resume, hand over, rename, delete. Everything slow, in a thread."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from filelock import Timeout
from textual.containers import Horizontal

from engine.errors import InputError
from engine.runs.commands import Command
from engine.runs.manage import delete, rename
from engine.runs.names import check_name
from engine.runs.reader import RunReader
from tui_transformer.lab.launch.launches import Launches
from tui_transformer.lab.records.feed import RunRow
from tui_transformer.lab.records.run_view import RunView
from tui_transformer.studio.shared.dialog import Answer, Ask, AskText
from tui_transformer.studio.shared.run_words import Pending, why_not

if TYPE_CHECKING:
    from tui_transformer.studio.app import Studio

PATIENCE = 60.0  # seconds that an action is shown as pending
TOLD = {
    Command.PAUSE: "pausing…",
    Command.CONTINUE: "going on…",
    Command.STOP: "stopping…",
    Command.CHECKPOINT: "saving…",
}


class RunActions(Horizontal):
    """The actions of a pane that has a chosen run."""

    runs_dir: Path
    launches: Launches
    chosen: Path | None

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._pending: dict[Path, Pending] = {}

    def current(self) -> tuple[RunRow | None, RunView | None]:
        """The chosen run."""
        raise NotImplementedError

    def look_now(self) -> None:
        """Look at the runs at once."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Show what is known."""
        raise NotImplementedError

    def say(self, words: str, severity: str = "information") -> None:
        """A sentence in the corner."""
        cast("Studio", self.app).say(words, severity)

    def is_here(self, row: RunRow) -> bool:
        """Whether a run trains in this process."""
        return self.launches.busy and self.launches.here == row.path

    # What is allowed, and what is on its way

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """None, which greys it in the footer, where it makes no sense for the chosen run."""
        row, _ = self.current()
        return None if why_not(action, row, row is not None and self.is_here(row)) else True

    def explain(self, action: str) -> None:
        """Say why an action makes no sense."""
        row, _ = self.current()
        self.say(why_not(action.partition("(")[0], row, row is not None and self.is_here(row)), "warning")

    def pending_words(self, row: RunRow) -> str:
        """What was asked of a run and is not done yet."""
        pending = self._pending.get(row.path)
        return pending.words if pending is not None else ""

    def settle(self, rows: tuple[RunRow, ...]) -> None:
        """Forget what was obeyed, and say so."""
        known = {row.path: row for row in rows}
        for run, pending in list(self._pending.items()):
            row, clock = known.get(run), time.monotonic()
            if row is None:
                del self._pending[run]
            elif pending.over(row, clock):
                del self._pending[run]
                if pending.done and clock <= pending.until:
                    self.say(f"{row.name} {pending.done(row)}")

    def _wait_for(self, row: RunRow, words: str, done: "Callable[[RunRow], str] | None", *, live: bool = True) -> None:
        self._pending[row.path] = Pending(words, row.control_id, time.monotonic() + PATIENCE, live, done)
        self.redraw()

    async def _done(self, work: Callable[[], object], run: Path) -> bool:
        """Do it in a thread; what goes wrong is said."""
        try:
            await asyncio.to_thread(work)
        except (InputError, OSError, Timeout) as error:
            self._pending.pop(run, None)
            self.say(str(error), "error")
            self.redraw()
            return False
        finally:
            self.look_now()
        return True

    # Commands

    def action_pause(self) -> None:
        """Pause it, or go on."""
        row, _ = self.current()
        if row is not None:
            self._tell(row, Command.CONTINUE if row.state == "paused" else Command.PAUSE)

    def action_stop(self) -> None:
        """Stop it; a checkpoint is saved."""
        row, _ = self.current()
        if row is not None:
            self._tell(row, Command.STOP)

    def action_checkpoint(self) -> None:
        """Save a checkpoint."""
        row, _ = self.current()
        if row is not None:
            self._tell(row, Command.CHECKPOINT)

    def _tell(self, row: RunRow, command: Command) -> None:
        here = self.is_here(row)  # then the app says itself how it ended
        done: dict[Command, Callable[[RunRow], str]] = {
            Command.PAUSE: lambda now: f"is {now.state} at step {now.step:,}",
            Command.CONTINUE: lambda now: f"goes on from step {now.step:,}",
            Command.CHECKPOINT: lambda now: f"has a checkpoint of step {now.saved or 0:,}",
        }
        if command is Command.STOP and not here:
            done[Command.STOP] = lambda now: f"is {now.state} at step {now.step:,}"
        self._wait_for(row, TOLD[command], done.get(command))
        self._go(lambda: self.launches.tell(row.path, command), row.path)

    def _go(self, work: Callable[[], object], run: Path) -> None:
        self.run_worker(self._done(work, run), group="actions", exit_on_error=False)

    def action_resume(self, how: str) -> None:
        """Go on with a run that ended early."""
        row, _ = self.current()
        if row is not None:
            self._wait_for(row, "resuming…", None, live=False)
            cast("Studio", self.app).resume(row.path, how)

    def action_detach(self) -> None:
        """Hand the run that trains here over."""
        row, _ = self.current()
        if row is not None:
            self._wait_for(row, "handing over…", None)
            self.run_worker(self._hand_over(row), group="actions", exit_on_error=False)

    async def _hand_over(self, row: RunRow) -> None:
        said: list[str] = []
        if await self._done(lambda: said.append(self.launches.hand_over()), row.path):
            self._pending.pop(row.path, None)
            self.say(said[0])

    def action_play(self) -> None:
        """Write with it."""
        row, _ = self.current()
        if row is not None:
            cast("Studio", self.app).play(row.path)

    # Names

    def action_rename(self) -> None:
        """Ask for another name."""
        row, _ = self.current()
        if row is None:
            return

        def wrong(name: str) -> str:
            try:
                taken = name != row.name and (self.runs_dir / check_name(name)).exists()
            except (InputError, OSError) as error:
                return str(error)
            return f"a run called {name} exists already" if taken else ""

        def named(name: str | None) -> None:
            if name and name != row.name:
                self.run_worker(self._rename(row, name), group="actions", exit_on_error=False)

        self.app.push_screen(AskText(f"A new name for {row.name}", row.name, wrong=wrong), named)

    async def _rename(self, row: RunRow, name: str) -> None:
        if await self._done(lambda: rename(RunReader(row.path), name), row.path):
            if self.chosen == row.path:
                self.chosen = row.path.with_name(name)
            self.say(f"{row.name} is now called {name}")

    def action_delete(self) -> None:
        """Ask, then delete."""
        row, _ = self.current()
        if row is None:
            return
        answers = [Answer("keep", "Keep it"), Answer("delete", "Delete it, with its checkpoints")]
        question: Ask[str] = Ask(f"Delete {row.name}?", answers, "What is deleted cannot be brought back.")

        def answered(answer: str | None) -> None:
            if answer == "delete":
                self.run_worker(self._delete(row), group="actions", exit_on_error=False)

        self.app.push_screen(question, answered)

    async def _delete(self, row: RunRow) -> None:
        if await self._done(lambda: delete(RunReader(row.path)), row.path):
            self.say(f"{row.name} is deleted")
