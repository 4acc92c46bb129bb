"""All there is to show of one run, read anew only where its files changed. No Textual, no torch."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from engine.errors import InputError
from engine.runs.files import read_json
from engine.runs.reader import RunReader
from engine.runs.records import Origin, Run
from engine.runs.tail import History
from tui_transformer.lab.formatting import unit
from tui_transformer.lab.records.facts import (
    MOST_PROBES,
    Record,
    Stamp,
    first_probes,
    newest_lines,
    newest_records,
    number,
    rows,
    stamp,
    table,
    text,
    whole,
)
from tui_transformer.lab.records.findings import Finding, findings
from tui_transformer.lab.records.floors import Floor, floors
from tui_transformer.lab.records.pace import MOVING, Pace

POINTS = 1500  # train records kept for a chart, up to twice as many before they are thinned
LOG = (200, 1 << 16)  # lines, bytes
EVENTS = (100, 1 << 16)
SAMPLES = (8, 1 << 18)
FACTS = ("data.json", "summary.json", "checks.json", "model.json", "environment.json")
FEW = 100  # places assumed where a run does not say: few enough that noise is not taken for skill
SOUND = ("next-token", "", "character")  # objective, corpus, unit, where there is no config yet

T = TypeVar("T")


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
class Sample:
    """What it wrote.

    Args:
        continues: whether the text goes on where the prompt ends.
        translations: of several sentences: source, reference ("" where there is none), and what it wrote.
    """

    step: int
    temperature: float | None
    prompt: str
    text: str
    continues: bool
    translations: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Event:
    """What happened."""

    time: str
    step: int
    event: str
    text: str


@dataclass(frozen=True)
class RunView:
    """The chosen run. Texts are as they were read: whoever shows them cleans them.

    Args:
        corpus: what it is trained on.
        unit: what a loss is the mean over.
        floors: losses of perfect predictors in nats per unit, with the one that `excess` refers to first.
        train: its records, thinned; `newest` is the last one that was written.
        version: another one whenever `train` or `validation` changed.
        best: the best validation record so far; `last` the newest.
        origin: the checkpoint that it started from; None where from weights of its own.
        eta: seconds left; None while it warms up, or does not run.
        before: the runs that a queued one waits for.
        problems: files that are damaged.
    """

    path: Path
    version: int
    corpus: str = ""
    unit: str = "character"
    floors: tuple[Floor, ...] = ()
    train: tuple[Record, ...] = ()
    validation: tuple[Record, ...] = ()
    newest: Record | None = None
    best: Record | None = None
    last: Record | None = None
    seconds: float | None = None
    eta: float | None = None
    parameters: int = 0
    origin: Origin | None = None
    memory_total: float | None = None
    findings: tuple[Finding, ...] = ()
    probes: tuple[Probe, ...] = ()
    samples: tuple[Sample, ...] = ()
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
        self._train: tuple[Record, ...] = ()
        self._validation: tuple[Record, ...] = ()
        self._read: dict[str, tuple[Stamp, Any]] = {}

    def view(
        self,
        clock: float,
        *,
        state: str,
        phase: str,
        step: int,
        steps: int,
        attempt: int,
        before: tuple[str, ...],
    ) -> RunView:
        """Everything now; the arguments are of its row."""
        self._poll()
        running = state == "running"
        self._pace.see(step=step, moving=running and phase in MOVING, attempt=attempt, clock=clock)
        since = self._of("events.jsonl", begun_at, 0, "begun")
        kind, corpus, counted = self._of("config.toml", self._config, SOUND)
        data, summary = self._json("data.json"), self._json("summary.json")
        environment = rows(self._json("environment.json").get("attempts"))
        last = table(summary.get("last")) or (self._validation[-1] if self._validation else {})
        scored = [record for record in self._validation if number(record.get("loss")) is not None]
        best = table(summary.get("best")) or (min(scored, key=lambda r: float(r["loss"])) if scored else {})
        return RunView(
            path=self._path,
            version=self._version,
            corpus=text(data.get("corpus")) or corpus,
            unit=counted or "character",
            floors=floors(data),
            train=self._train,
            validation=self._validation,
            newest=self._history.latest_train,
            best=best or None,
            last=last or None,
            seconds=number(summary.get("seconds")),
            eta=self._pace.left(steps, step, since=since) if running else None,
            origin=self._of("run.json", lambda path: Run.read(read_json(path)).origin, None),
            parameters=whole(self._json("model.json").get("parameters")),
            memory_total=number(environment[-1].get("memory_bytes")) if environment else None,
            findings=self._of("checks.json", lambda path: findings(RunReader(path.parent).verdicts), (), "findings"),
            probes=_probes(last, rows(data.get("probes"))),
            samples=self._of("samples.jsonl", lambda path: _samples(path, kind), ()),
            events=self._of("events.jsonl", _events, ()),
            log=self._of("log.txt", lambda path: newest_lines(path, *LOG), ()),
            before=before,
            problems=self._problems(),
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

    def _of(self, file: str, read: Callable[[Path], T], missing: T, key: str = "") -> T:
        """What a file says, read again only where it changed; `key` keeps two readings of one file apart."""
        path = self._path / file
        now = stamp(path)
        then, value = self._read.get(key or file, (None, missing))
        if now is None:
            return missing
        if now != then:
            value = read(path)
            self._read[key or file] = (now, value)
        return value  # type: ignore[no-any-return]

    def _json(self, file: str) -> Record:
        return table(self._of(file, read_json, {}))

    def _config(self, path: Path) -> tuple[str, str, str]:
        """Objective, corpus, and what a loss is the mean over."""
        try:
            config = RunReader(self._path).config
        except (InputError, OSError, ValueError, RecursionError):
            return "next-token", "", ""  # the empty unit says that it is damaged
        counted = unit(config.objective.kind)
        return config.objective.kind, config.data.corpus, counted

    def _problems(self) -> tuple[str, ...]:
        broken = [name for name in FACTS if self._of(name, read_json, {}) is None]
        if not self._of("config.toml", self._config, SOUND)[2]:
            broken.append("config.toml")
        return tuple(broken)


def _probes(last: Record, described: list[Record]) -> tuple[Probe, ...]:
    about = {text(probe.get("name")): probe for probe in described[:MOST_PROBES]}
    places = table(last.get("probe_places"))
    found = []
    for name, score in first_probes(last.get("probes")).items():
        right, probe = number(score), about.get(name, {})
        if right is not None:
            chance, what = number(probe.get("chance")), text(probe.get("description"))
            found.append(Probe(name, right, chance, what, whole(places.get(name))))
    return tuple(found)


def _samples(path: Path, kind: str) -> tuple[Sample, ...]:
    """The newest first."""
    return tuple(
        Sample(
            whole(record.get("step")),
            number(record.get("temperature")),
            text(record.get("prompt")),
            text(record.get("text")),
            kind == "next-token",
            tuple(
                (text(row.get("source")), text(row.get("reference")), text(row.get("text")))
                for row in rows(record.get("translations"))
            ),
        )
        for record in reversed(newest_records(path, *SAMPLES))
    )


def _events(path: Path) -> tuple[Event, ...]:
    return tuple(
        Event(text(r.get("time")), whole(r.get("step")), text(r.get("event")), text(r.get("text")))
        for r in newest_records(path, *EVENTS)
    )


def begun_at(events: Path) -> int:
    """The step that a run's newest attempt began at, from its events.jsonl; 0 where that is the first one."""
    steps = [whole(r.get("step")) for r in newest_records(events, *EVENTS) if r.get("event") == "resumed"]
    return steps[-1] if steps else 0
