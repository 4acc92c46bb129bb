"""A run for display: its list row and its full contents, reread only if its files changed."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import SkipValidation

from engine.base.errors import InputError
from engine.config.keys import diff
from engine.config.schema import RunConfig
from engine.config.schemes import learning_rate
from engine.config.tasks import TASKS, TaskKind
from engine.runs.files import read_json
from engine.runs.reader import LIVE_STATES, RunReader
from engine.runs.records import (
    Checks,
    DataFacts,
    Environment,
    Event,
    Floor,
    ModelFacts,
    Origin,
    ProbeFacts,
    Run,
    RunFile,
    Sample,
    StudyPlace,
    Summary,
    TrainRecord,
    ValidationRecord,
)
from engine.runs.tail import MetricsHistory, Stamp, newest_lines, newest_records, stamp
from tui_transformer.lab.records.badges import CheckFinding, findings
from tui_transformer.lab.records.pace import MOVING, Pace

POINTS = 1500  # train records kept for a chart; thinned at twice as many
LOG = (200, 1 << 16)  # lines, bytes
EVENTS = (100, 1 << 16)
SAMPLES = (8, 1 << 18)
FEW = 100  # assumed number of places if unknown: so few that noise is not taken for skill
NO_STUDY = StudyPlace()
RATES = 200  # learning rates of a schedule that are shown

T = TypeVar("T")


@dataclass(frozen=True)
class RequestedSettings:
    """What a run's config says about how to show it."""

    task: TaskKind | None = TASKS["next-token"]  # None if the file is damaged
    corpus: str = ""
    rates: tuple[float, ...] = ()  # the learning rate over the whole run, evenly spaced
    sample_every: int = 0  # steps; 0: only at the end
    log_every: int = 1  # steps
    settings: tuple[tuple[str, Any], ...] = ()  # by dotted key, those that are not the default
    unit: str = "character"  # that the loss is averaged over


R = TypeVar("R", bound=RunFile)


@dataclass(frozen=True)
class ProbeResult:
    """A tested skill: its accuracy, in how many places, and the accuracy of guessing."""

    name: str
    accuracy: float  # share of its places
    chance: float | None  # the same for guessing; None if unknown
    description: str  # what must be remembered
    places: int = 0  # number of places tested; 0 if unknown
    shortcut: float | None = None  # that of the best rule that never looks back; None if unknown

    @property
    def beats_chance(self) -> bool:
        """Whether its 95 % interval (Wilson 1927) lies above chance; not if chance is unknown."""
        if self.chance is None:
            return False
        share, n, z = min(1.0, max(0.0, self.accuracy)), self.places or FEW, 1.96
        half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        low = (share + z * z / (2 * n) - half) / (1 + z * z / n)
        return low > self.chance


@dataclass(frozen=True)
class RunRow:
    """A run's list row, from its status.json and summary.json."""

    path: SkipValidation[Path]  # set by whoever reads the row from a kept one
    state: str  # the state to show: `lost` if its process is gone, `damaged` if status.json is unreadable
    phase: str = ""
    reason: str = ""
    step: int = 0
    steps: int = 0
    loss: float | None = None  # of the newest evaluation, else the newest train record; None before both
    scored: bool = False  # whether the loss is from an evaluation, not a train record
    badges: tuple[str, ...] = ()  # problems with its scores, worst first
    seen: tuple[str, ...] = ()  # those that its owner has acknowledged
    created: str = ""  # when, to the second; `made` only breaks ties
    made: int = 0
    host: str = ""  # the machine of its process
    device: str = ""
    ranks: int = 1
    slowest: int | None = None  # the rank that the others wait for
    behind: float | None = None  # seconds a step
    waits_for: str = ""  # the device that a queued run waits for; "" if it waits for its own process
    attempt: int = 0
    control_id: int = 0
    checkpoint: str = ""
    study: StudyPlace = NO_STUDY
    recorded_reason: str = ""  # in English
    perplexity: float | None = None  # of the newest evaluation
    preset: str | None = ""  # as in run.json; "" if it has none
    origin: Origin | None = None  # the checkpoint it started from; None for fresh weights
    checked: bool = False  # both the model and a score have been checked
    wall_seconds: float | None = None  # seconds from its making to its end, if it finished in a study

    @property
    def name(self) -> str:
        """The raw folder name: clean it before showing it."""
        return self.path.name

    @property
    def live(self) -> bool:
        return self.state in LIVE_STATES

    @property
    def share(self) -> float:
        return min(1.0, self.step / self.steps) if self.steps > 0 else 0.0

    @property
    def last_checkpoint_step(self) -> int | None:
        """The step of its last checkpoint; None without one."""
        digits = self.checkpoint.rpartition("-")[2]
        return int(digits) if digits.isdecimal() and len(digits) < 16 else None


@dataclass(frozen=True)
class RunView:
    path: Path
    version: int  # changes whenever `train` or `validation` does
    corpus: str = ""  # what it is trained on
    rates: tuple[float, ...] = ()  # the learning rate over the whole run, evenly spaced
    log_every: int = 1  # steps between train records
    sample_at: int = 0  # the step of its next sample; 0: at the end
    sample_in: float | None = None  # seconds until then; None if unknown
    is_finished: bool = False  # whether it has finished
    settings: tuple[tuple[str, Any], ...] = ()  # by dotted key, those that are not the default
    unit: str = "character"  # unit a loss averages over
    # losses of perfect predictors in nats per unit, first the one `excess` refers to
    floors: tuple[Floor, ...] = ()
    train: tuple[TrainRecord, ...] = ()  # its records, thinned; `newest` is the last one written
    validation: tuple[ValidationRecord, ...] = ()
    newest: TrainRecord | None = None
    best: ValidationRecord | None = None  # the best validation record so far; `last` the newest
    last: ValidationRecord | None = None
    averages: tuple[tuple[str, float], ...] = ()  # losses of averaged weights, by what they are
    seconds: float | None = None
    eta: float | None = None  # seconds left; None while warming up or not running
    parameters: int = 0
    origin: Origin | None = None  # the checkpoint it started from; None for fresh weights
    memory_total: float | None = None
    findings: tuple[CheckFinding, ...] = ()
    probes: tuple[ProbeResult, ...] = ()
    samples: tuple[Sample, ...] = ()  # the newest first
    continues: bool = True  # whether a sample's text continues its prompt
    events: tuple[Event, ...] = ()
    log: tuple[str, ...] = ()  # not cleaned
    runs_ahead: tuple[str, ...] = ()  # the runs that a queued one waits for, the nearest to its turn first
    wait: float | None = None  # about how many seconds; None if unknown
    problems: tuple[str, ...] = ()  # files that are damaged


class RunFollower:
    def __init__(self, path: Path) -> None:
        self._path, self._reader = path, RunReader(path)
        self._metrics, self._pace = MetricsHistory(path, POINTS), Pace()
        self._read: dict[str, tuple[Stamp, Any]] = {}

    def view(self, clock: float, row: RunRow, runs_ahead: tuple[str, ...] = (), wait: float | None = None) -> RunView:
        """Return everything about a row's run, which waits for the runs `before` it."""
        reset, new = self._metrics.poll()
        if reset or new:
            self._pace.add_records(new.train, reset=reset)
        metrics = self._metrics.metrics
        running = row.state == "running"
        self._pace.observe(step=row.step, moving=running and row.phase in MOVING, attempt=row.attempt, clock=clock)
        since = self._cached("begun", "events.jsonl", attempt_start_step, 0)
        asked = self._cached("config", "config.toml", self._config, RequestedSettings())
        task = asked.task

        def left(steps: int) -> float | None:
            return self._pace.seconds_left(steps, row.step, attempt_start_step=since) if running else None

        sample_at = (row.step // asked.sample_every + 1) * asked.sample_every if asked.sample_every else row.steps

        files = (DataFacts, Summary, Checks, ModelFacts, Environment)
        problems = [kind.file for kind in files if self._record(kind) is None]
        problems += [] if task else ["config.toml"]
        data, summary = self._record(DataFacts) or DataFacts(), self._record(Summary) or Summary()
        model = self._record(ModelFacts) or ModelFacts()
        attempts = (self._record(Environment) or Environment()).attempts
        scored = (record for record in metrics.validation if record.loss is not None)
        best = summary.best or min(scored, key=lambda record: record.loss or 0.0, default=None)
        last = summary.last or (metrics.validation[-1] if metrics.validation else None)
        return RunView(
            path=self._path,
            version=metrics.version,
            corpus=data.corpus or asked.corpus,
            rates=asked.rates,
            log_every=asked.log_every,
            sample_at=sample_at if sample_at < row.steps else 0,
            sample_in=left(min(sample_at, row.steps)),
            is_finished=row.state == "finished",
            settings=asked.settings,
            unit=asked.unit,
            floors=data.floors,
            train=metrics.train,
            validation=metrics.validation,
            newest=self._metrics.latest_train,
            best=best,
            last=last,
            averages=summary.averages,
            seconds=summary.seconds,
            eta=left(row.steps),
            parameters=model.parameters or 0,
            origin=self._cached("origin", "run.json", lambda path: Run.read(read_json(path)).origin, None),
            memory_total=attempts[-1].memory_bytes if attempts else None,
            findings=self._cached("findings", "checks.json", lambda path: findings(self._reader.verdicts), ()),
            probes=probe_results(last, data) if last is not None else (),
            samples=self._cached(
                "samples", "samples.jsonl", lambda path: tuple(newest_records(path, Sample, *SAMPLES)[::-1]), ()
            ),
            continues=task is None or task.continues,
            events=self._cached("events", "events.jsonl", _events, ()),
            log=self._cached("log", "log.txt", lambda path: newest_lines(path, *LOG), ()),
            runs_ahead=runs_ahead,
            wait=wait,
            problems=tuple(problems),
        )

    def _cached(self, key: str, file: str, read: Callable[[Path], T], missing: T) -> T:
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
        def read(path: Path) -> R | None:
            found = read_json(path)
            return None if found is None else kind.read(found)

        missing: R | None = kind()
        return self._cached(kind.file, kind.file, read, missing)

    def _config(self, path: Path) -> RequestedSettings:
        try:
            config = RunReader(self._path).config
        except (InputError, OSError, ValueError, RecursionError):
            return RequestedSettings(task=None)
        steps = config.train.steps
        try:
            places = [1 + round(i / (RATES - 1) * (steps - 1)) for i in range(RATES)]
            rates = tuple(learning_rate(config.optimizer, step, steps) for step in places)
        except (ValueError, ArithmeticError):  # its durations are not in steps yet
            rates = ()
        every = config.evaluation.sample_every
        settings = tuple((key, value) for key, (_, value) in diff(RunConfig(), config).items())
        rest = (config.log.every, settings, config.english_loss_unit)
        return RequestedSettings(config.task, config.data.corpus, rates, every if every <= steps else 0, *rest)


def probe_results(last: ValidationRecord, data: DataFacts) -> tuple[ProbeResult, ...]:
    known = {probe.name: probe for probe in data.probes}
    about = [(name, rate, known.get(name) or ProbeFacts(name=name)) for name, rate in last.probes.items()]
    return tuple(
        ProbeResult(name, rate, of.chance, of.description, last.probe_places.get(name, 0), of.shortcut)
        for name, rate, of in about
    )


def _events(path: Path) -> tuple[Event, ...]:
    return tuple(newest_records(path, Event, *EVENTS))


def attempt_start_step(events: Path) -> int:
    """Return the step at which a run's newest attempt began, from events.jsonl; 0 for the first."""
    steps = [event.step for event in _events(events) if event.event == "resumed"]
    return steps[-1] if steps else 0
