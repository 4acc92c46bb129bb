"""Which runs the Playground has: found by itself, asked for, named; one, or a second one beside it."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rich.text import Text
from textual.containers import Vertical
from textual.widgets import Static

from engine.errors import InputError
from engine.runs.reader import RunReader
from tui_transformer.feed import Feed, RunRow
from tui_transformer.widgets.dialog import Answer, Ask
from tui_transformer.widgets.playground.column import RunColumn
from tui_transformer.widgets.playground.prompt_line import PromptLine
from tui_transformer.writer import Writers

if TYPE_CHECKING:
    from tui_transformer.app import Studio

NEWER = 2.0  # seconds between two looks for runs and newer checkpoints
NOBODY = "no second run"


class RunChoice(Vertical):
    """A pane with one or two runs.

    Args:
        runs_dir: where runs are.
        writers: loads models.
        id: of the pane.
    """

    def __init__(self, runs_dir: Path, writers: Writers, *, id: str) -> None:
        super().__init__(id=id)
        self.runs_dir = runs_dir
        self._feed = Feed(runs_dir)
        self._rows: tuple[RunRow, ...] = ()
        self._first, self._second = RunColumn(writers, id="first"), RunColumn(writers, id="second")
        self._active = self._first
        self._line, self._nothing = PromptLine(), Static("", id="nothing")
        self._untouched = False  # no key was pressed since the pane was shown without a run

    def on_mount(self) -> None:
        """Look out for runs and newer checkpoints."""
        self.add_class("-empty")
        self.set_interval(NEWER, self._look)

    @property
    def columns(self) -> list[RunColumn]:
        """The runs that are here."""
        return [column for column in (self._first, self._second) if column.run_path is not None]

    def say(self, words: str, severity: str = "information") -> None:
        """A sentence in the corner."""
        cast("Studio", self.app).say(words, severity)

    def choose(self, run: Path, vs: Path | None = None) -> None:
        """Take a run, and perhaps a second one beside it."""
        self.remove_class("-empty")
        self._first.take(run)
        self._beside(vs)

    def focus_first(self) -> None:
        """Where keys go when the pane is shown."""
        if self.columns:
            self._line.focus()
        else:
            self.focus()
            self._untouched = True
            self.run_worker(self._look(), group="look", exclusive=True)

    def on_key(self) -> None:
        """Who presses keys already is not sent to the line by a run that comes now."""
        self._untouched = False

    async def _look(self) -> None:
        """Find runs while there is none; else take what training has saved since."""
        if not self.display or self.size.width == 0:
            return
        if self.columns:
            for column in self.columns:
                await column.look_for_newer()
            return
        self._rows = (await asyncio.to_thread(self._feed.look, full=False)).rows
        found = next((row for row in self._rows if row.saved is not None), None)
        if found is not None and not self.columns:
            self.choose(found.path)
            if self.has_focus and self._untouched:
                self._line.focus()
        elif not self.columns:
            self._say_nothing()

    def _say_nothing(self) -> None:
        words, waits = Text(justify="center"), bool(self._rows)
        words.append("No run has a checkpoint yet\n\n" if waits else "Nothing has trained yet\n\n", "bold")
        if waits:
            words.append("A training saves its first one as it begins; then it can be played with here.\n\n")
        else:
            words.append("1", "bold").append("  choose a design      ").append("f5", "bold").append("  train it\n\n")
        words.append(f"Runs in {self.runs_dir} appear here by themselves.", "dim")
        self._nothing.update(words)

    def _beside(self, run: Path | None) -> None:
        self.set_class(run is not None, "-two")
        if run is not None:
            self._second.take(run)
        else:
            self._second.run_path, self._second.writer = None, None
            self._second.forget()
            self._activate(self._first)

    def action_choose_run(self) -> None:
        """Ask which run writes."""
        self._ask(self._first)

    def action_choose_vs(self) -> None:
        """Ask which run stands beside it."""
        self._ask(self._second)

    def on_run_column_pressed(self, event: RunColumn.Pressed) -> None:
        """A run's name was clicked."""
        self._ask(event.column)

    def _ask(self, column: RunColumn) -> None:
        self.run_worker(self._ask_which(column), group="ask", exclusive=True)

    async def _ask_which(self, column: RunColumn) -> None:
        self._rows = (await asyncio.to_thread(self._feed.look, full=False)).rows
        answers: list[Answer[Path | str]] = [
            Answer(row.path, _label(row), "" if row.saved is not None else "it has no checkpoint yet")
            for row in self._rows
        ]
        if column is self._second:
            answers.insert(0, Answer(NOBODY, NOBODY))
        title = "Which run writes?" if column is self._first else "Which run stands beside it?"

        def chosen(run: Path | str | None) -> None:
            if isinstance(run, Path) and column is self._first:
                column.take(run)
            elif run is not None:
                self._beside(run if isinstance(run, Path) else None)

        self.app.push_screen(Ask(title, answers, at=column.run_path), chosen)

    def _take_named(self, column: RunColumn, name: str) -> None:
        self.run_worker(self._find(column, name.strip()), group="ask", exclusive=True)

    async def _find(self, column: RunColumn, name: str) -> None:

        try:
            found = await asyncio.to_thread(RunReader.resolve, name, self.runs_dir)
        except InputError as error:
            self.say(str(error), "warning")
            return
        if column is self._second:
            self._beside(found.path)
        else:
            column.take(found.path)

    def _vs(self, name: str) -> None:
        if name.strip():
            self._take_named(self._second, name)
        else:
            self._beside(None)

    def _checkpoint(self, which: str) -> None:
        if not which.strip():
            raise InputError("/checkpoint: best, last or a step must follow")
        for column in self.columns:
            assert column.run_path is not None
            column.take(column.run_path, which.strip())

    def action_turn_checkpoint(self) -> None:
        """Best or last."""
        self._checkpoint("best" if self._first.which == "last" else "last")

    def _activate(self, column: RunColumn) -> None:
        self._active = column
        for one in (self._first, self._second):
            one.set_class(one is column and self.has_class("-two"), "-active")


def _label(row: RunRow) -> str:
    loss = "" if row.loss is None else f" · {'' if row.scored else 'train '}loss {row.loss:.3f}"
    return f"{row.name} · {row.state} · step {row.step:,}{loss}"
