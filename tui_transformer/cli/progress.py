"""A run's progress while it trains, from its run directory alone: a live line, plain lines, or JSON lines."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from engine.clean import clean_line
from engine.runs.reader import RunReader
from engine.runs.records import Status
from engine.runs.tail import Columns
from tui_transformer.cli.output import emit, is_terminal, say, stderr
from tui_transformer.lab.formatting import count, duration, short
from tui_transformer.lab.records.facts import number, whole
from tui_transformer.lab.records.floors import Floor, floors
from tui_transformer.lab.records.pace import MOVING, Pace
from tui_transformer.lab.records.run_view import begun_at

REFRESH = 0.25  # seconds between two looks at the run directory
PLAIN_INTERVAL = 10.0  # seconds between two plain lines, evaluations aside


@dataclass
class Snapshot:
    """What is known of a run at one moment."""

    name: str
    steps: int
    floor: Floor | None = None
    phase: str = "loading"
    paused: str = ""  # the reason, or "paused" without one
    step: int = 0
    train: dict[str, Any] = field(default_factory=dict)
    validation: dict[str, Any] = field(default_factory=dict)
    eta: float | None = None
    _pace: Pace = field(default_factory=Pace)

    def update(self, status: Status, new: Columns, clock: float, *, reset: bool = False, since: int = 0) -> None:
        """Take in what came since the last look.

        Args:
            status: of the run.
            new: records.
            clock: seconds.
            reset: whether the new records are all there are.
            since: the step that the attempt began at.
        """
        why = status.reason
        self.paused = (f"paused: {why}" if why else "paused") if status.state == "paused" else ""
        self.phase = "paused" if self.paused else status.phase or status.state
        self.step = status.step
        if new.train:
            self.train = new.train[-1]
        if new.validation:
            self.validation = new.validation[-1]
        self._pace.take(new.train, reset=reset)
        self._pace.see(step=self.step, moving=self.phase in MOVING, attempt=status.attempt, clock=clock)
        self.eta = self._pace.left(self.steps, self.step, since=since)

    @property
    def left(self) -> str:
        """Time left, or why it is not known yet."""
        if self.step >= self.steps:
            return "finishing"
        return f"{duration(self.eta)} left" if self.eta is not None else "warming up…"

    def losses(self) -> str:
        """The losses known so far, nats per character or token."""
        parts = []
        if self.train:
            parts.append(f"train {_number(self.train.get('loss'))}")
        if self.validation:
            parts.append(f"validation {_number(self.validation.get('loss'))}")
        if self.floor is not None:
            parts.append(f"{'reachable ' if self.floor.context else ''}floor {self.floor.nats:.3f}")
        if isinstance(share := self.validation.get("exact_match") if self.validation else None, float):
            parts.append(f"exact match {share:.1%}")
        return "loss " + " · ".join(parts) if parts else "no loss yet"

    def speed(self) -> str:
        """Tokens per second."""
        rate = number(self.train.get("tokens_per_second"))
        return f"{short(rate)} tok/s" if rate else ""


def _number(value: Any) -> str:
    return "not a number" if number(value) is None else f"{value:.3f}"


def follow(
    reader: RunReader,
    alive: Callable[[], bool],
    *,
    as_json: bool,
    status: Callable[[], Status] | None = None,
) -> None:
    """Show a run until `alive` returns False.

    Args:
        reader: the run.
        alive: whether it is still training.
        as_json: one JSON object a line.
        status: of a run in this process, which on a full disk is more current than its files; default: status.json.
    """
    floor = next(iter(floors(reader.raw("data"))), None)
    snapshot = Snapshot(reader.name, reader.config.train.steps, floor)
    show = _json if as_json else _live if is_terminal(sys.stderr) else _plain
    origin = reader.run.origin
    if origin is not None and not as_json:
        say(clean_line(f"{reader.name} starts from {origin.shown}"))
    show(reader, snapshot, alive, status or (lambda: reader.status))


Alive = Callable[[], bool]


def _watch(
    reader: RunReader, snapshot: Snapshot, alive: Alive, status: Callable[[], Status], seen: Callable[[Columns], None]
) -> None:
    tail = reader.follow()
    while True:
        running = alive()
        reset, new = tail.poll()
        since = begun_at(reader.path / "events.jsonl")
        snapshot.update(status(), new, time.monotonic(), reset=reset, since=since)
        seen(new)
        if not running:
            return
        time.sleep(REFRESH)


def _live(reader: RunReader, snapshot: Snapshot, alive: Alive, status: Callable[[], Status]) -> None:
    with Live(console=stderr(), auto_refresh=False, transient=False) as live:
        _watch(reader, snapshot, alive, status, lambda _: live.update(_panel(snapshot), refresh=True))


def _panel(snapshot: Snapshot) -> RenderableType:
    share = snapshot.step / snapshot.steps if snapshot.steps else 1.0
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1)
    grid.add_column(no_wrap=True, justify="right")
    grid.add_row(
        Text(snapshot.name, style="bold"),
        ProgressBar(total=max(1, snapshot.steps), completed=snapshot.step),
        Text(f"{share:4.0%} · step {snapshot.step:,} / {snapshot.steps:,} · {snapshot.left}"),
    )
    speed = f" · {snapshot.speed()}" if snapshot.train else ""
    below = Text(f"  {snapshot.losses()}{speed} · {snapshot.phase}", style="dim", no_wrap=True)
    return (
        Group(grid, below, Text(clean_line(snapshot.paused), style="yellow")) if snapshot.paused else Group(grid, below)
    )


def _plain(reader: RunReader, snapshot: Snapshot, alive: Alive, status: Callable[[], Status]) -> None:
    said, told = [time.monotonic()], [""]

    def seen(new: Columns) -> None:
        if snapshot.paused != told[0]:
            if not (snapshot.paused and told[0]):  # the free space changes, which is not news
                say(clean_line(f"{snapshot.name}: {snapshot.paused or 'training continues'}"))
            told[0] = snapshot.paused
        due = time.monotonic() - said[0] >= PLAIN_INTERVAL
        if new.validation or (due and new.train):
            said[0] = time.monotonic()
            say(
                f"{snapshot.name}: step {snapshot.step:,} of {snapshot.steps:,}, {snapshot.losses()}, "
                f"{snapshot.speed()}, {snapshot.left}"
            )

    say(f"{snapshot.name}: {count(snapshot.steps, 'step')} in {reader.path}")
    _watch(reader, snapshot, alive, status, seen)


def _json(reader: RunReader, snapshot: Snapshot, alive: Alive, status: Callable[[], Status]) -> None:
    told = [""]

    def seen(new: Columns) -> None:
        if bool(snapshot.paused) != bool(told[0]):
            state = "paused" if snapshot.paused else "running"
            emit({"kind": "status", "state": state, "step": snapshot.step, "reason": snapshot.paused[8:]})
        told[0] = snapshot.paused
        for record in sorted([*new.train, *new.validation], key=lambda r: (whole(r.get("step")), r["kind"])):
            emit(record)

    born = {"kind": "run", "name": reader.name, "path": str(reader.path), "steps": snapshot.steps}
    origin = reader.raw("run").get("from")
    emit(born if origin is None else born | {"from": origin})
    _watch(reader, snapshot, alive, status, seen)
