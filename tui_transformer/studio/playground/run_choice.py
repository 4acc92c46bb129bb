"""Which runs the Playground has: found by itself, asked for, named; one, or a second one beside it."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rich.text import Text
from textual.containers import Vertical
from textual.widgets import Static

from engine.errors import InputError
from engine.runs.reader import RunReader
from tui_transformer.lab.play.writers import Writers
from tui_transformer.lab.records.feed import Feed, RunRow
from tui_transformer.studio.playground.column import RunColumn
from tui_transformer.studio.playground.prompt_line import PromptLine
from tui_transformer.studio.shared.dialog import Answer, Ask

if TYPE_CHECKING:
    from tui_transformer.studio.app import Studio

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
        self._looking = self._looked = False
        self._asked: tuple[RunColumn, Ask[Path | str]] | None = None  # the last question
        self._heard = 0  # key count when the pane was shown, or was found to have no run

    def on_mount(self) -> None:
        """Look out for runs and newer checkpoints."""
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
        self._write_with(run)
        self._beside(vs)

    def _write_with(self, run: Path) -> None:
        self.remove_class("-empty")
        self._first.take(run)

    def focus_first(self) -> None:
        """Where keys go when the pane is shown."""
        self.screen.set_focus(
            self if self.has_class("-empty") else self._line
        )  # now, since the next keys are meant for it
        self._heard = self._keys_heard
        self.run_worker(self._look(), group="look")

    @property
    def _keys_heard(self) -> int:
        return cast("Studio", self.app).keys_heard

    async def _look(self) -> None:
        """Find runs while there is none; else take what training has saved since."""
        if not self.display or self._looking:
            return
        self._looking = True
        try:
            self._rows = (await asyncio.to_thread(self._feed.look, full=False)).rows
        finally:
            self._looking = False
        self._looked = True
        if self._asked is not None:
            column, question = self._asked
            question.show(self._answers(column))
        if self.columns:
            for column in self.columns:
                await column.look_for_newer()
            return
        found = next((row for row in self._rows if row.saved is not None), None)
        if found is None:
            self._say_nothing()
            return
        self._write_with(found.path)
        if self.has_focus and self._heard == self._keys_heard:  # leave the focus alone if keys were pressed meanwhile
            self.screen.set_focus(self._line)

    def _say_nothing(self) -> None:
        if not self.has_class("-empty"):
            self._heard = self._keys_heard
            if self._line.has_focus:
                self.screen.set_focus(self)
            self.add_class("-empty")
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
        """Ask at once; runs found meanwhile are added to the answers."""
        title = "Which run writes?" if column is self._first else "Which run stands beside it?"

        def chosen(run: Path | str | None) -> None:
            self._asked = None
            if isinstance(run, Path) and column is self._first:
                self._write_with(run)
            elif run is not None:
                self._beside(run if isinstance(run, Path) else None)

        question: Ask[Path | str] = Ask(title, self._answers(column), at=column.run_path)
        self._asked = column, question
        self.app.push_screen(question, chosen)
        self.run_worker(self._look(), group="look")

    def _answers(self, column: RunColumn) -> list[Answer[Path | str]]:
        answers: list[Answer[Path | str]] = [
            Answer(row.path, _label(row), "" if row.saved is not None else "it has no checkpoint yet")
            for row in self._rows
        ]
        if not self._looked:
            answers = [Answer("", "reading the runs…", "the list appears in a moment")]
        return [Answer(NOBODY, NOBODY), *answers] if column is self._second else answers

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
            self._write_with(found.path)

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
