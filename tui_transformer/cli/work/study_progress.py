"""A study's progress on stderr while it runs: a live board on a terminal, plain lines elsewhere, JSON on stdout."""

import sys
import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from engine.base.clean import clean_line
from engine.base.errors import comma_separated
from engine.base.language import tr
from tui_transformer.cli.output import is_terminal, print_info, print_json, stderr
from tui_transformer.lab.formatting import DOT, duration
from tui_transformer.lab.records.run_lines import step_text, time_left_text
from tui_transformer.lab.records.run_states import status_text
from tui_transformer.lab.work.cells import SKIPPED, CellStatus, Verb
from tui_transformer.lab.work.plan import Plan
from tui_transformer.lab.work.runner import RunnerListener

PLAIN_INTERVAL = 30.0  # seconds between plain lines about running cells
WARM_UP = 10.0  # seconds observed before the measured pace counts


class StudyProgress:
    """What is known about all cells, and the time left according to that."""

    def __init__(self, plan: Plan, statuses: Sequence[CellStatus], clock: Callable[[], float] = time.monotonic) -> None:
        self.plan, self._clock = plan, clock
        self._cells = {status.cell.name: status for status in statuses}
        self._left_out = {name for name, status in self._cells.items() if status.verb in ("done", "failed")}
        self._began, self._before = clock(), self._seconds_of_work_done(self._left_out)

    def update(self, statuses: Sequence[CellStatus]) -> None:
        self._cells |= {status.cell.name: status for status in statuses}

    @property
    def finished(self) -> int:
        return sum(status.state == "finished" for status in self._cells.values())

    @property
    def total(self) -> int:
        return len(self._cells)

    def _seconds_of_work_done(self, left_out: Container[str]) -> float:
        """The estimated seconds of work the other cells have done."""
        todo = (status for name, status in self._cells.items() if name not in left_out)
        return sum(self.plan.prices[status.cell.name_without_seed].seconds * status.share for status in todo)

    @property
    def share(self) -> float:
        """The share of all cells' work done, 0 to 1."""
        whole = sum(self.plan.prices[status.cell.name_without_seed].seconds for status in self._cells.values())
        return self._seconds_of_work_done(()) / whole if whole else 1.0

    @property
    def seconds_left(self) -> float:
        """Seconds until all is done: as planned, then at the measured pace."""
        open_ = [
            status
            for name, status in self._cells.items()
            if name not in self._left_out and status.state not in ("finished", "failed", "stopped", SKIPPED)
        ]
        planned = self.plan.seconds_for(open_)
        passed, went = self._clock() - self._began, self._seconds_of_work_done(self._left_out) - self._before
        if passed < WARM_UP or went <= 0:
            return planned
        return planned * passed * self.plan.jobs / went


def start_text(status: CellStatus, verb: Verb) -> str:
    texts = {
        "resume": tr("resumes at step {step:,}", step=status.step),
        "wait": tr("is already running"),
        "anew": tr("starts over"),
    }
    return texts.get(verb, tr("begins"))


class CellLines(RunnerListener):
    """Reports when a cell begins or ends: as lines, or as a JSON object per cell."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    def on_begin(self, cell: CellStatus, verb: Verb) -> None:
        self.tell(cell, verb, start_text(cell, verb))

    def on_end(self, cell: CellStatus) -> None:
        self.tell(cell, "ended", status_text(cell))

    def tell(self, cell: CellStatus, event: str, text: str) -> None:
        if self.as_json:
            print_json({**cell_record(cell), "event": event})
        else:
            self.print(tr("{name}: {state}", name=cell.cell.name, state=text))

    def print(self, line: str) -> None:
        print_info(line)


class ProgressLines(CellLines):
    """Also reports, every half minute, how far the running cells are."""

    def __init__(self, board: StudyProgress, *, as_json: bool) -> None:
        super().__init__(as_json=as_json)
        self._board, self._said = board, time.monotonic()

    def on_end(self, cell: CellStatus) -> None:
        self._board.update([cell])
        done = {"finished": self._board.finished, "total": self._board.total}
        self.tell(cell, "ended", tr("{state} ({finished} of {total} done)", state=status_text(cell), **done))

    def on_poll(self, running: Sequence[CellStatus]) -> None:
        self._board.update(running)
        if not running or time.monotonic() - self._said < PLAIN_INTERVAL:
            return
        self._said, left = time.monotonic(), self._board.seconds_left
        if self.as_json:
            for cell in running:
                print_json({**cell_record(cell), "event": "progress", "study_seconds_left": left})
            return
        at_work = comma_separated(f"{cell.cell.name} {cell.share:.0%}" for cell in running)
        print_info(
            tr(
                "{finished} of {total} done; {running}; {duration} left",
                finished=self._board.finished,
                total=self._board.total,
                running=at_work,
                duration=duration(left),
            )
        )


def cell_record(status: CellStatus) -> dict[str, object]:
    cell = status.cell
    return {
        "kind": "cell",
        "name": cell.name,
        "variant": cell.variant,
        "seed": cell.seed,
        "path": str(status.path),
        **({"stage": cell.stage, "after": cell.parent_cell} if cell.stage or cell.parent_cell else {}),
        "state": status.state,
        "step": status.step,
        "steps": status.steps,
        "loss": status.loss,
        "reason": status.reason,
        "device": status.device,
    }


class ProgressBars(CellLines):
    """A bar for the study and one per running cell; finished cells become lines above."""

    def __init__(self, board: StudyProgress, live: Live) -> None:
        super().__init__()
        self._board, self._live = board, live

    def on_begin(self, cell: CellStatus, verb: Verb) -> None:
        if verb != "create":  # its bar shows that; a resumed or found cell gets a line
            super().on_begin(cell, verb)

    def on_end(self, cell: CellStatus) -> None:
        self._board.update([cell])
        super().on_end(cell)

    def print(self, line: str) -> None:
        self._live.console.print(Text(clean_line(line)))

    def on_poll(self, running: Sequence[CellStatus]) -> None:
        self._board.update(running)
        self._live.update(progress_table(self._board, running) if running else Text(""), refresh=True)


def progress_table(board: StudyProgress, running: Sequence[CellStatus]) -> RenderableType:
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1)
    grid.add_column(no_wrap=True, justify="right")
    whole = tr(
        "{share:4.0%} · {finished} of {total} runs done · {left}",
        share=board.share,
        finished=board.finished,
        total=board.total,
        left=time_left_text(board.seconds_left),
    )
    grid.add_row(Text(tr("study"), style="bold"), ProgressBar(total=1.0, completed=board.share), Text(whole))
    for status in running:
        where = DOT.join((f"{status.share:4.0%}", step_text(status.step, status.steps)))
        now = tr("loading") if status.state in ("queued", "starting") else tr(status.state)
        grid.add_row(
            Text(clean_line(status.cell.name)),
            ProgressBar(total=max(1, status.steps), completed=status.step),
            Text(where if status.step else now, style="dim"),
        )
    # The last line is short: a terminal that echoes ctrl-c at the end of a full one draws all bars again.
    return Group(grid, Text(tr("ctrl-c saves checkpoints and stops; run the same command to resume"), style="dim"))


@contextmanager
def progress_listener(board: StudyProgress, *, as_json: bool) -> Iterator[RunnerListener]:
    if is_terminal(sys.stderr) and not as_json:
        with Live(console=stderr(), auto_refresh=False, transient=True) as live:
            yield ProgressBars(board, live)
    else:
        yield ProgressLines(board, as_json=as_json)
