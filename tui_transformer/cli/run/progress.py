"""`watch`: a run's progress, read from its directory alone: a live line, plain lines, or JSON lines."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from engine.base.clean import clean_line
from engine.base.command_line import DEFAULT_RUNS_DIR
from engine.base.language import tr, trn
from engine.runs.reader import LIVE_STATES, RunReader
from engine.runs.records import Floor, MetricRecord, Status, TrainRecord, ValidationRecord
from engine.runs.tail import Metrics
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import Json, RunArgument, RunsDir
from tui_transformer.cli.output import ExitCode, is_terminal, print_error, print_info, print_json, stderr
from tui_transformer.cli.run.summary import print_summary
from tui_transformer.lab.formatting import DOT
from tui_transformer.lab.records.pace import MOVING, Pace
from tui_transformer.lab.records.run_lines import losses_text, run_time_left_text, speed_text, step_text
from tui_transformer.lab.records.run_states import phase_text, run_state
from tui_transformer.lab.records.run_view import attempt_start_step

REFRESH = 0.25  # seconds between reads of the run directory
PLAIN_INTERVAL = 10.0  # seconds between plain lines, evaluations aside


@command(220)
@examples({"watch": "Follow the newest run."})
def watch(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = DEFAULT_RUNS_DIR) -> int:
    """Follow a run, wherever it was started. Ctrl-c leaves it running."""
    reader = RunReader.resolve(run, runs_dir)
    if reader.state in LIVE_STATES:
        follow(reader, lambda: reader.state in LIVE_STATES, as_json=json)
    if not reader.path.is_dir():
        print_error(tr("run '{name}' is gone: its folder {path} no longer exists", name=reader.name, path=reader.path))
        return ExitCode.FAILED
    state = reader.state
    if state in ("failed", "lost"):
        why = tr(reader.status.reason) or tr(run_state("lost").reason)
        again = "" if reader.status.checkpoint else tr("; {command} starts it over", command=reader.command("resume"))
        print_error(
            tr(
                "run '{name}': {state} at step {step:,}: {why}{again}",
                name=reader.name,
                state=tr(state),
                step=reader.status.step,
                why=why,
                again=again,
            )
        )
        return ExitCode.FAILED
    if state == "unknown":
        print_error(
            tr(
                "run '{name}': status.json is missing or damaged; what follows comes from its other files",
                name=reader.name,
            )
        )
    print_summary(reader, as_json=json)
    return ExitCode.DONE


@dataclass
class RunProgress:
    name: str
    steps: int
    floor: Floor | None = None
    phase: str = "loading"
    paused: str = ""  # the reason, or "paused" without one; shown
    reason: str = ""  # of a pause, as it is recorded
    step: int = 0
    train: TrainRecord | None = None
    validation: ValidationRecord | None = None
    eta: float | None = None
    _pace: Pace = field(default_factory=Pace)

    def update(self, status: Status, new: Metrics, clock: float, *, reset: bool = False, since: int = 0) -> None:
        """Take in new records, or all of them on `reset`. The attempt began at step `since`."""
        self.reason = status.reason if status.state == "paused" else ""
        why = tr("paused: {why}", why=tr(self.reason)) if self.reason else tr("paused")
        self.paused = why if status.state == "paused" else ""
        self.phase = "paused" if self.paused else status.phase or status.state
        self.step = status.step
        if new.train:
            self.train = new.train[-1]
        if new.validation:
            self.validation = new.validation[-1]
        self._pace.add_records(new.train, reset=reset)
        self._pace.observe(step=self.step, moving=self.phase in MOVING, attempt=status.attempt, clock=clock)
        self.eta = self._pace.seconds_left(self.steps, self.step, attempt_start_step=since)

    @property
    def time_left(self) -> str:
        return run_time_left_text(self.step, self.steps, self.eta)


def follow(
    reader: RunReader, alive: Callable[[], bool], *, as_json: bool, status: Callable[[], Status] | None = None
) -> None:
    """Show a run until `alive` returns False.

    `status` is given for a run in this process: on a full disk it is newer than status.json.
    """
    snapshot = RunProgress(reader.name, reader.config.train.steps, next(iter(reader.data.floors), None))
    origin = reader.run.origin
    if origin is not None and not as_json:
        print_info(clean_line(tr("{name} starts from {origin}", name=reader.name, origin=origin.label)))

    def looks() -> Iterator[tuple[Metrics, bool]]:
        """Yield what is new at each poll, and whether the run was paused or continued since the last one."""
        tail = reader.follow()
        running = True
        while running:
            running = alive()
            reset, new = tail.poll()
            since = attempt_start_step(reader.path / "events.jsonl")
            now = status() if status is not None else reader.status
            before = snapshot.paused
            snapshot.update(now, new, time.monotonic(), reset=reset, since=since)
            yield new, bool(snapshot.paused) != bool(before)  # otherwise only the free space changes: not news
            if running:
                time.sleep(REFRESH)

    if as_json:
        born = {"kind": "run", "name": reader.name, "path": str(reader.path), "steps": snapshot.steps}
        print_json(born if origin is None else born | {"from": origin.dump()})
        for new, turned in looks():
            if turned:
                state = "paused" if snapshot.paused else "running"
                print_json({"kind": "status", "state": state, "step": snapshot.step, "reason": snapshot.reason})
            lines: list[MetricRecord] = [*new.train, *new.validation]
            for record in sorted(lines, key=lambda r: (r.step, r.kind)):
                print_json(record.dump())
        return
    if is_terminal(sys.stderr):
        with Live(console=stderr(), auto_refresh=False, transient=False) as live:
            for _ in looks():
                live.update(_panel(snapshot), refresh=True)
        return
    where = {"name": snapshot.name, "path": reader.path}
    print_info(
        trn("{name}: {n:,} step, saved in {path}", "{name}: {n:,} steps, saved in {path}", snapshot.steps, **where)
    )
    said = time.monotonic()
    for new, turned in looks():
        if turned:
            state = snapshot.paused or tr("training continues")
            print_info(clean_line(tr("{name}: {state}", name=snapshot.name, state=state)))
        due = time.monotonic() - said >= PLAIN_INTERVAL
        if new.validation or (due and new.train):
            said = time.monotonic()
            print_info(
                tr(
                    "{name}: step {step:,} of {steps:,}, {losses}, {speed}, {left}",
                    name=snapshot.name,
                    step=snapshot.step,
                    steps=snapshot.steps,
                    losses=losses_text(snapshot.train, snapshot.validation, snapshot.floor),
                    speed=speed_text(snapshot.train),
                    left=snapshot.time_left,
                )
            )


def _panel(snapshot: RunProgress) -> Group:
    share = snapshot.step / snapshot.steps if snapshot.steps else 1.0
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1)
    grid.add_column(no_wrap=True, justify="right")
    grid.add_row(
        Text(snapshot.name, style="bold"),
        ProgressBar(total=max(1, snapshot.steps), completed=snapshot.step),
        Text(DOT.join((f"{share:4.0%}", step_text(snapshot.step, snapshot.steps), snapshot.time_left))),
    )
    losses = losses_text(snapshot.train, snapshot.validation, snapshot.floor)
    facts = filter(None, (losses, speed_text(snapshot.train), phase_text(snapshot.phase)))
    below = Text("  " + DOT.join(facts), style="dim", no_wrap=True)
    return Group(grid, below, *([Text(clean_line(snapshot.paused), style="yellow")] if snapshot.paused else []))
