"""RunReader: read a run directory, live or finished, without blocking its writer."""

import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from engine.base.command_line import command_line
from engine.base.errors import InputError, comma_separated, did_you_mean
from engine.base.language import Message, tr
from engine.config.schema import RunConfig
from engine.config.toml import read_toml, validate
from engine.runs.files import read_json, read_lines
from engine.runs.names import LAST
from engine.runs.process import is_alive
from engine.runs.records import (
    Checks,
    DataFacts,
    Environment,
    Event,
    MetricRecord,
    ModelFacts,
    Notes,
    Run,
    RunFile,
    Sample,
    Status,
    Summary,
    VerdictRecord,
    metric_record,
    read_file,
)
from engine.runs.tail import MetricsTail
from engine.runs.verdict import IMPLAUSIBLE, LEAK, OK, SUSPICIOUS

LOST_AFTER = 60.0  # seconds without a heartbeat until another host's run counts as lost
# For other hosts' runs and claims, shared by all readers here: the last beat, since when by our clock, and whether it
# has moved.
_LAST_BEATS: dict[Path, tuple[int, float, bool]] = {}
LIVE_STATES = (Message("starting"), Message("running"), Message("paused"), Message("handing-over"))
# Recorded words that are translated when they are shown: the other states, and phases.
STATES = (
    *(Message("queued"), Message("finished"), Message("stopped")),
    *(Message("interrupted"), Message("failed"), Message("lost")),
)
PHASES = (
    *(Message("loading"), Message("training"), Message("compiling")),
    *(Message("evaluating"), Message("checkpointing")),
)
UNKNOWN = Message("unknown")
WAITING_FOR_SPACE = Message("waiting-for-space")  # the phase of a run paused because the disk is full
Liveness = Literal["alive", "dead", "unknown"]
F = TypeVar("F", bound=RunFile)


def heartbeat_liveness(path: Path, beat: int, patience: float) -> Liveness:
    """Tell by its heartbeat whether a run or claim of another host is alive.

    It is alive if its beat changes while this process watches, dead if it does not for `patience` seconds of this
    process's clock, and unknown until then. No two clocks are compared.
    """
    clock, before = time.monotonic(), _LAST_BEATS.get(path)
    if before is None or before[0] != beat:
        _LAST_BEATS[path] = (beat, clock, before is not None)
    _, since, moved = _LAST_BEATS[path]
    return "dead" if clock - since >= patience else "alive" if moved else "unknown"


def no_runs(root: Path) -> str:
    training = command_line("run", "--preset", "demo", runs_dir=root)
    return tr("there are no runs in {root} yet; `{command_line}` trains one", root=root, command_line=training)


class _File(Generic[F]):
    """A property that reads a file in the run directory."""

    def __init__(self, kind: type[F]) -> None:
        self.kind = kind

    def __get__(self, reader: "RunReader", owner: object) -> F:
        return read_file(reader.path, self.kind)


class RunReader:
    """Reads one run directory. Every property but the config is reread on each access."""

    run, status, summary, notes = _File(Run), _File(Status), _File(Summary), _File(Notes)
    model, data, environment = _File(ModelFacts), _File(DataFacts), _File(Environment)

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def resolve(cls, run: str, root: Path) -> "RunReader":
        """Return the run that the user means: a name, a path, or `last`; `InputError` suggests the nearest one."""
        names = [reader.path.name for reader in list_runs(root)]
        if run == LAST:
            if not names:
                raise InputError(no_runs(root))
            return cls(root / names[-1])
        for path in (root / run, Path(run)):
            with suppress(OSError, ValueError):  # too long, or with a zero byte
                if run and (path / "run.json").is_file():
                    return cls(path if path.name not in ("", "..") else path.resolve())
        hint = did_you_mean(run, names) or (
            tr("; runs there: {names}", names=comma_separated(names[-5:])) if names else tr("; that folder has no runs")
        )
        raise InputError(Message("no run named '{run}' in {root}{hint}", run=run[:80], root=root, hint=hint))

    @property
    def name(self) -> str:
        return self.path.name

    def command(self, verb: str, *words: str, data_dir: Path | None = None) -> str:
        """Return a command line about this run, ready to paste into a shell; `words` follow its name."""
        return command_line(verb, self.name, *words, runs_dir=self.path.parent, data_dir=data_dir)

    @cached_property
    def config(self) -> RunConfig:
        """What was asked; immutable."""
        path = self.path / "config.toml"
        tables = read_toml(path)
        scored = tables.get("evaluation")
        if isinstance(scored, dict) and "seed" not in scored and "seed" in tables:
            tables["evaluation"] = scored | {"seed": tables["seed"]}  # an older run continues under its own rules
        return validate(tables, str(path))

    def raw(self, name: str) -> dict[str, Any]:
        """Return the content of a JSON file as written; {} if missing or damaged."""
        found = read_json(self.path / f"{name}.json")
        return found if isinstance(found, dict) else {}

    def raw_lines(self, stream: str) -> Iterator[dict[str, Any]]:
        return read_lines(self.path / f"{stream}.jsonl")

    @property
    def verdicts(self) -> tuple[VerdictRecord, ...]:
        found = read_file(self.path, Checks).verdicts
        return downgrade_unproven(found, self.data) if any(one.verdict == IMPLAUSIBLE for one in found) else found

    @property
    def leak_free(self) -> bool:
        probed = [one.verdict for one in self.verdicts if one.check == "leak"]
        return bool(probed) and all(verdict == OK for verdict in probed)

    @property
    def badges(self) -> dict[str, str]:
        """What is wrong with this run's scores: badge → why. A leak stays for good, other alarms until they clear."""
        return badges_of(self.verdicts)

    def metrics(self) -> Iterator[MetricRecord]:
        return (record for line in read_lines(self.path / "metrics.jsonl") if (record := metric_record(line)))

    def events(self) -> Iterator[Event]:
        return map(Event.read, read_lines(self.path / "events.jsonl"))

    def samples(self) -> Iterator[Sample]:
        return map(Sample.read, read_lines(self.path / "samples.jsonl"))

    def follow(self) -> MetricsTail:
        return MetricsTail(self.path)

    def liveness(self) -> Liveness:
        """Tell whether its process runs: on this host by process id and start time, elsewhere by its heartbeat."""
        status = self.status
        if status.state not in LIVE_STATES:
            return "dead"
        if status.host != socket.gethostname():
            return heartbeat_liveness(self.path, status.beat, LOST_AFTER)
        return "alive" if is_alive(status) else "dead"

    @property
    def state(self) -> str:
        """The state to show: `lost` for a run recorded as live whose process is gone."""
        state = self.status.state or UNKNOWN
        if state not in LIVE_STATES or self.liveness() != "dead":
            return state
        return "interrupted" if state == "handing-over" else "lost"


def downgrade_unproven(verdicts: tuple[VerdictRecord, ...], data: DataFacts) -> tuple[VerdictRecord, ...]:
    """Downgrade losses that no known bound forbids to suspicious; earlier versions called them implausible. A run
    without a record of its data keeps its badge.
    """
    if not data.model_fields_set or any(one is not None for one in (data.floor, data.plausible, data.best_reader)):
        return verdicts
    softer = {"verdict": SUSPICIOUS}
    return tuple(one.model_copy(update=softer) if one.verdict == IMPLAUSIBLE else one for one in verdicts)


def badges_of(verdicts: Iterable[VerdictRecord]) -> dict[str, str]:
    """Return what is wrong with a run's scores, from its verdicts, oldest first: badge → why."""
    latest: dict[str, VerdictRecord] = {}
    for verdict in verdicts:
        before = latest.get(verdict.check)
        if before is None or before.verdict != LEAK:
            latest[verdict.check] = verdict
    return {one.verdict: tr(one.why) for one in latest.values() if one.verdict not in ("", OK)}


def list_runs(root: Path) -> list[RunReader]:
    """List a folder's runs, oldest first. Opens only run.json."""
    found = []
    try:
        folders = sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError:
        return []
    for path in folders:
        facts = read_json(path / "run.json")
        if isinstance(facts, dict):
            found.append((Run.read(facts).created, path.stat().st_mtime_ns, path))
    return [RunReader(path) for _, _, path in sorted(found)]
