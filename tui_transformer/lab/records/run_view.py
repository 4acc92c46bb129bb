"""A run as it is shown: its row in the list, and all there is of it, read anew only where its files changed.

No Textual, no torch.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from engine.errors import InputError
from engine.runs.files import read_json
from engine.runs.reader import LIVE_STATES, RunReader
from engine.runs.records import (
    Checks,
    DataFacts,
    Environment,
    Event,
    ModelFacts,
    Origin,
    Record,
    Run,
    Sample,
    Summary,
    TrainRecord,
    ValidationRecord,
)
from engine.runs.tail import History, Stamp, newest_lines, newest_records, stamp
from tui_transformer.lab.formatting import unit
from tui_transformer.lab.records.findings import Finding, findings
from tui_transformer.lab.records.floors import Floor, floors
from tui_transformer.lab.records.pace import MOVING, Pace

POINTS = 1500  # train records kept for a chart, up to twice as many before they are thinned
LOG = (200, 1 << 16)  # lines, bytes
EVENTS = (100, 1 << 16)
SAMPLES = (8, 1 << 18)
FEW = 100  # places assumed where a run does not say: few enough that noise is not taken for skill
SOUND = ("next-token", "", "character")  # objective, corpus, unit, where there is no config yet

T = TypeVar("T")
R = TypeVar("R", DataFacts, Summary, Checks, ModelFacts, Environment)


@dataclass(frozen=True)
class Probe:
    """A tested skill: how often it was right, in how many places, and how often guessing would be.

    Args:
        right: share of its places.
        chance: the same for guessing; None if unknown.
        what: what must be remembered.
        places: number of places tested; 0 if unknown.
    """

    name: str
    right: float
    chance: float | None
    what: str
    places: int = 0

    @property
    def beats_chance(self) -> bool:
        """Whether it beats chance: the 95 % Wilson interval excludes chance."""
        if self.chance is None:
            return True
        share, n, z = min(1.0, max(0.0, self.right)), self.places or FEW, 1.96
        half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        low = (share + z * z / (2 * n) - half) / (1 + z * z / n)
        return low > self.chance


@dataclass(frozen=True)
class RunRow:
    """What the list says of a run, from its status.json and summary.json.

    Args:
        state: the one to show: `lost` where its process is gone, `damaged` where status.json cannot be read.
        loss: of the newest evaluation, else of the newest train record; None before both.
        scored: whether the loss is of an evaluation, not of a train record.
        created: when, to the second; `made` breaks ties, and means nothing else.
        badges: what is wrong with its scores, worst first.
        waits_for: the device that a queued run waits for; "" where it waits for a process of its own.
    """

    path: Path
    state: str
    phase: str = ""
    reason: str = ""
    step: int = 0
    steps: int = 0
    loss: float | None = None
    scored: bool = False
    badges: tuple[str, ...] = ()
    created: str = ""
    made: int = 0
    device: str = ""
    waits_for: str = ""
    attempt: int = 0
    control_id: int = 0
    checkpoint: str = ""

    @property
    def name(self) -> str:
        """The folder's name, as it is: to be cleaned before it is shown."""
        return self.path.name

    @property
    def live(self) -> bool:
        return self.state in LIVE_STATES

    @property
    def share(self) -> float:
        """How much is done, 0 to 1."""
        return min(1.0, self.step / self.steps) if self.steps > 0 else 0.0

    @property
    def saved(self) -> int | None:
        """The step of its last checkpoint; None where there is none."""
        digits = self.checkpoint.rpartition("-")[2]
        return int(digits) if digits.isdecimal() and len(digits) < 16 else None


@dataclass(frozen=True)
class RunView:
    """The chosen run.

    Args:
        corpus: what it is trained on.
        unit: what a loss is the mean over.
        floors: losses of perfect predictors in nats per unit, with the one that `excess` refers to first.
        train: its records, thinned; `newest` is the last one that was written.
        version: another one whenever `train` or `validation` changed.
        best: the best validation record so far; `last` the newest.
        origin: the checkpoint that it started from; None where from weights of its own.
        eta: seconds left; None while it warms up, or does not run.
        samples: the newest first.
        continues: whether a sample's text goes on where its prompt ends.
        log: not cleaned.
        before: the runs that a queued one waits for.
        problems: files that are damaged.
    """

    path: Path
    version: int
    corpus: str = ""
    unit: str = "character"
    floors: tuple[Floor, ...] = ()
    train: tuple[dict[str, Any], ...] = ()
    validation: tuple[dict[str, Any], ...] = ()
    newest: TrainRecord | None = None
    best: ValidationRecord | None = None
    last: ValidationRecord | None = None
    seconds: float | None = None
    eta: float | None = None
    parameters: int = 0
    origin: Origin | None = None
    memory_total: float | None = None
    findings: tuple[Finding, ...] = ()
    probes: tuple[Probe, ...] = ()
    samples: tuple[Sample, ...] = ()
    continues: bool = True
    events: tuple[Event, ...] = ()
    log: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class Followed:
    """One run as it is watched."""

    def __init__(self, path: Path) -> None:
        self._path, self._reader = path, RunReader(path)
        self._tail, self._history, self._pace = self._reader.follow(), History(POINTS), Pace()
        self._loaded = False
        self._version = 0
        self._train: tuple[dict[str, Any], ...] = ()
        self._validation: tuple[dict[str, Any], ...] = ()
        self._read: dict[str, tuple[Stamp, Any]] = {}

    def view(self, clock: float, row: RunRow, before: tuple[str, ...] = ()) -> RunView:
        """Return everything there is now of the run of a row, which waits for the runs `before` it."""
        self._poll()
        running = row.state == "running"
        self._pace.see(step=row.step, moving=running and row.phase in MOVING, attempt=row.attempt, clock=clock)
        since = self._cached("begun", "events.jsonl", begun_at, 0)
        objective, corpus, counted = self._cached("config", "config.toml", self._config, SOUND)

        data, summary, model = self._record(DataFacts), self._record(Summary), self._record(ModelFacts)
        environment = self._record(Environment)
        files: dict[str, Record | None] = {
            "data": data,
            "summary": summary,
            "checks": self._record(Checks),
            "model": model,
        }
        files["environment"] = environment
        problems = [f"{name}.json" for name, record in files.items() if record is None]
        problems += [] if counted else ["config.toml"]
        data, summary = data or DataFacts(), summary or Summary()

        best, last = summary.best, summary.last
        if last is None and self._validation:
            last = ValidationRecord.read(self._validation[-1])
        if best is None:
            scored = [record for record in map(ValidationRecord.read, self._validation) if record.loss is not None]
            best = min(scored, key=lambda record: record.loss or 0.0, default=None)
        newest = self._history.latest_train
        attempts = environment.attempts if environment is not None else ()
        return RunView(
            path=self._path,
            version=self._version,
            corpus=data.corpus or corpus,
            unit=counted or "character",
            floors=floors(data),
            train=self._train,
            validation=self._validation,
            newest=None if newest is None else TrainRecord.read(newest),
            best=best,
            last=last,
            seconds=summary.seconds,
            eta=self._pace.left(row.steps, row.step, since=since) if running else None,
            parameters=(model.parameters if model is not None else 0) or 0,
            origin=self._cached("origin", "run.json", lambda path: Run.read(read_json(path)).origin, None),
            memory_total=attempts[-1].memory_bytes if attempts else None,
            findings=self._cached("findings", "checks.json", lambda path: findings(self._reader.verdicts), ()),
            probes=_probes(last, data),
            samples=self._cached("samples", "samples.jsonl", _samples, ()),
            continues=objective == "next-token",
            events=self._cached("events", "events.jsonl", _events, ()),
            log=self._cached("log", "log.txt", lambda path: newest_lines(path, *LOG), ()),
            before=before,
            problems=tuple(problems),
        )

    def _poll(self) -> None:
        if self._loaded:
            reset, new = self._tail.poll()
        else:
            reset, new, self._loaded = True, self._tail.load(), True
        if not (reset or new.train or new.validation):
            return
        (self._history.reset if reset else self._history.add)(new)
        self._pace.take(new.train, reset=reset)
        self._version += 1
        self._train = tuple(self._history.columns.train)
        self._validation = tuple(self._history.columns.validation)

    def _cached(self, key: str, file: str, read: Callable[[Path], T], missing: T) -> T:
        """Return what a file says, read again only where it changed."""
        path = self._path / file
        now = stamp(path)
        then, value = self._read.get(key, (None, missing))
        if now is None:
            return missing
        if now != then:
            value = read(path)
            self._read[key] = (now, value)
        return value  # type: ignore[no-any-return]

    def _record(self, kind: type[R]) -> R | None:
        """Return a file as a record; None where it is damaged."""

        def read(path: Path) -> R | None:
            found = read_json(path)
            return None if found is None else kind.read(found)

        missing: R | None = kind()
        return self._cached(kind.file, kind.file, read, missing)

    def _config(self, path: Path) -> tuple[str, str, str]:
        """Return objective, corpus, and what a loss is the mean over, which is "" where the file is damaged."""
        try:
            config = RunReader(self._path).config
        except (InputError, OSError, ValueError, RecursionError):
            return "next-token", "", ""
        return config.objective.kind, config.data.corpus, unit(config.objective.kind)


def _probes(last: ValidationRecord | None, data: DataFacts) -> tuple[Probe, ...]:
    if last is None:
        return ()
    about = {probe.name: probe for probe in data.probes}
    found = []
    for name, right in last.probes.items():
        probe = about.get(name)
        chance, what = (probe.chance, probe.description) if probe is not None else (None, "")
        found.append(Probe(name, right, chance, what, last.probe_places.get(name, 0)))
    return tuple(found)


def _samples(path: Path) -> tuple[Sample, ...]:
    return tuple(map(Sample.read, reversed(newest_records(path, *SAMPLES))))


def _events(path: Path) -> tuple[Event, ...]:
    return tuple(map(Event.read, newest_records(path, *EVENTS)))


def begun_at(events: Path) -> int:
    """Return the step that a run's newest attempt began at, from its events.jsonl; 0 where that is the first one."""
    steps = [event.step for event in _events(events) if event.event == "resumed"]
    return steps[-1] if steps else 0
