"""RunReader: what a run directory says, live or finished, without holding up its writer."""

import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from engine.command_line import command_line
from engine.config.schema import RunConfig
from engine.config.toml import read as read_toml
from engine.config.toml import validate
from engine.errors import InputError, nearest
from engine.evaluation.verdict import IMPLAUSIBLE, LEAK, OK, SUSPICIOUS
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
    Sample,
    Status,
    Summary,
    VerdictRecord,
    metric_record,
    read_file,
)
from engine.runs.tail import MetricsTail

STILL = 60.0  # seconds without a beat until a run of another host counts as lost
# Of runs of other hosts, for all readers of this process: the last beat, since when by our own clock, has it moved.
_BEATS: dict[Path, tuple[int, float, bool]] = {}
LIVE_STATES = ("starting", "running", "paused", "handing-over")
Liveness = Literal["alive", "dead", "unknown"]


def no_runs(root: Path) -> str:
    """The message for an empty runs folder."""
    return f"there are no runs in {root} yet; `{command_line('run', '--preset', 'demo', runs_dir=root)}` trains one"


class RunReader:
    """Reads one run directory. Every property but the config is read anew each time it is asked."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def resolve(cls, run: str, root: Path) -> "RunReader":
        """The run that a person means: a name under the runs folder, a path, or `last`.

        Raises:
            InputError: no such run; names the nearest one.
        """
        names = [reader.path.name for reader in list_runs(root)]
        if run == LAST:
            if not names:
                raise InputError(no_runs(root))
            return cls(root / names[-1])
        for path in (root / run, Path(run)):
            with suppress(OSError, ValueError):  # too long, or with a zero byte
                if run and (path / "run.json").is_file():
                    return cls(path if path.name not in ("", "..") else path.resolve())
        hint = nearest(run, names) or (f"; runs there: {', '.join(names[-5:])}" if names else "; it has no runs")
        raise InputError(f"no run is called '{run[:80]}' in {root}{hint}")

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.name

    def command(self, verb: str, *words: str, data_dir: Path | None = None) -> str:
        """A command line about this run that can be pasted into a shell; `words` come after its name."""
        return command_line(verb, self.name, *words, runs_dir=self.path.parent, data_dir=data_dir)

    @cached_property
    def config(self) -> RunConfig:
        """What was asked; immutable."""
        path = self.path / "config.toml"
        tables = read_toml(path)
        scored = tables.get("evaluation")
        if isinstance(scored, dict) and "seed" not in scored and "seed" in tables:
            tables["evaluation"] = scored | {"seed": tables["seed"]}  # an older run continues as it began
        return validate(tables, str(path))

    def raw(self, name: str) -> dict[str, Any]:
        """The content of a JSON file as it was written; {} where missing or damaged."""
        found = read_json(self.path / f"{name}.json")
        return found if isinstance(found, dict) else {}

    def raw_lines(self, stream: str) -> Iterator[dict[str, Any]]:
        """All lines of metrics, events or samples as they were written."""
        return read_lines(self.path / f"{stream}.jsonl")

    @property
    def run(self) -> Run:
        """run.json."""
        return read_file(self.path, Run)

    @property
    def status(self) -> Status:
        """status.json."""
        return read_file(self.path, Status)

    @property
    def summary(self) -> Summary:
        """summary.json; empty before the first evaluation."""
        return read_file(self.path, Summary)

    @property
    def model(self) -> ModelFacts:
        """model.json."""
        return read_file(self.path, ModelFacts)

    @property
    def data(self) -> DataFacts:
        """data.json."""
        return read_file(self.path, DataFacts)

    @property
    def environment(self) -> Environment:
        """environment.json."""
        return read_file(self.path, Environment)

    @property
    def notes(self) -> Notes:
        """notes.json."""
        return read_file(self.path, Notes)

    @property
    def verdicts(self) -> tuple[VerdictRecord, ...]:
        """What the checks found, oldest first."""
        found = read_file(self.path, Checks).verdicts
        return softened(found, self.data) if any(one.verdict == IMPLAUSIBLE for one in found) else found

    @property
    def leak_free(self) -> bool:
        """Whether the leak probe ran and found nothing."""
        probed = [one.verdict for one in self.verdicts if one.check == "leak"]
        return bool(probed) and all(verdict == OK for verdict in probed)

    @property
    def checked(self) -> bool:
        """Whether both the model and a score have been checked."""
        last = self.summary.last
        return bool(self.verdicts) and last is not None and last.loss is not None

    @property
    def badges(self) -> dict[str, str]:
        """What is wrong with this run's scores: badge → why. A leak stays for ever, other alarms until they clear."""
        return badges_of(self.verdicts)

    def metrics(self) -> Iterator[MetricRecord]:
        """Every line of metrics.jsonl so far."""
        return (record for line in read_lines(self.path / "metrics.jsonl") if (record := metric_record(line)))

    def events(self) -> Iterator[Event]:
        """Every line of events.jsonl so far."""
        return map(Event.read, read_lines(self.path / "events.jsonl"))

    def samples(self) -> Iterator[Sample]:
        """Every line of samples.jsonl so far."""
        return map(Sample.read, read_lines(self.path / "samples.jsonl"))

    def follow(self) -> MetricsTail:
        """The metrics as they grow."""
        return MetricsTail(self.path)

    def liveness(self) -> Liveness:
        """Whether its process runs: on this host by process id and start time, elsewhere by its beat.

        A beat of another host that moves while this process looks is alive, one that stands still for `STILL` seconds
        of its own clock is dead, and unknown until then. No two clocks are compared.
        """
        status = self.status
        if status.state not in LIVE_STATES:
            return "dead"
        if status.host != socket.gethostname():
            return self._by_beat(status.beat)
        return "alive" if is_alive(status) else "dead"

    def _by_beat(self, beat: int) -> Liveness:
        clock = time.monotonic()
        before = _BEATS.get(self.path)
        if before is None or before[0] != beat:
            _BEATS[self.path] = (beat, clock, before is not None)
        _, since, moved = _BEATS[self.path]
        if clock - since >= STILL:
            return "dead"
        return "alive" if moved else "unknown"

    @property
    def state(self) -> str:
        """The state to show: `lost` for a run that says it lives and whose process is gone.

        A run that was handed over to a process that never took it is as good as interrupted.
        """
        state = self.status.state or "unknown"
        if state not in LIVE_STATES or self.liveness() != "dead":
            return state
        return "interrupted" if state == "handing-over" else "lost"


def softened(verdicts: tuple[VerdictRecord, ...], data: DataFacts) -> tuple[VerdictRecord, ...]:
    """Return verdicts with a loss that no known bound forbids as suspicious; earlier versions called it implausible.

    A run that does not say what it was trained on keeps its badge.
    """
    if not data.model_fields_set or data.floor is not None or data.plausible is not None:
        return verdicts
    softer = {"verdict": SUSPICIOUS}
    return tuple(one.model_copy(update=softer) if one.verdict == IMPLAUSIBLE else one for one in verdicts)


def badges_of(verdicts: Iterable[VerdictRecord]) -> dict[str, str]:
    """Return what is wrong with a run's scores by what the checks found, oldest first: badge → why."""
    latest: dict[str, VerdictRecord] = {}
    for verdict in verdicts:
        before = latest.get(verdict.check)
        if before is None or before.verdict != LEAK:
            latest[verdict.check] = verdict
    return {one.verdict: one.why for one in latest.values() if one.verdict not in ("", OK)}


def list_runs(root: Path) -> list[RunReader]:
    """The runs of a folder, oldest first. Opens run.json only."""
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
