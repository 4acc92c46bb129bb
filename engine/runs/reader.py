"""RunReader: what a run directory says, live or finished, without holding up its writer."""

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from engine.command_line import command_line
from engine.config.schema import RunConfig
from engine.config.toml import read as read_toml
from engine.config.toml import validate
from engine.errors import InputError, nearest
from engine.evaluation.verdict import IMPLAUSIBLE, OK, SUSPICIOUS
from engine.runs.files import read_json, read_lines
from engine.runs.names import LAST
from engine.runs.process import is_alive
from engine.runs.tail import MetricsTail

STILL = 60.0  # seconds without a beat until a run of another host counts as lost
# Of runs of other hosts, for all readers of this process: the last beat, since when by our own clock, has it moved.
_BEATS: dict[Path, tuple[Any, float, bool]] = {}
LIVE_STATES = ("starting", "running", "paused", "handing-over")
Liveness = Literal["alive", "dead", "unknown"]
# What must be of one type wherever it is read: of another one it is damaged, and as good as missing.
TYPES: dict[str, dict[str, type | tuple[type, ...]]] = {
    "status": {
        **dict.fromkeys(("state", "phase", "reason", "host", "device", "launch", "boot"), str),
        **dict.fromkeys(("step", "steps", "attempt", "pid", "control_id", "beat"), int),
        "process_started": (int, float),
        "checkpoint": (str, type(None)),
    },
    "summary": {**dict.fromkeys(("best", "last", "average"), dict), **dict.fromkeys(("step", "tokens"), int)},
}


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

    def facts(self, name: str) -> dict[str, Any]:
        """The content of run.json, model.json, data.json or environment.json; {} where missing or damaged."""
        return self._table(name)

    @property
    def status(self) -> dict[str, Any]:
        """status.json without what is of another type than it should be; {} where missing."""
        return self._table("status")

    @property
    def summary(self) -> dict[str, Any]:
        """summary.json, its records being tables; {} before the first evaluation."""
        return self._table("summary")

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """What the checks said, oldest first."""
        found = self._table("checks").get("verdicts", [])
        found = [v for v in found if isinstance(v, dict)] if isinstance(found, list) else []
        found = [v for v in found if isinstance(v.get("step", 0), int)]
        if any(v.get("verdict") == IMPLAUSIBLE for v in found) and not self._bounded:
            return [v | {"verdict": SUSPICIOUS} if v.get("verdict") == IMPLAUSIBLE else v for v in found]
        return found

    @property
    def _bounded(self) -> bool:
        """Whether a bound on the loss is known for this text.

        Earlier versions called a loss implausible even without one. A run that does not say what it was trained on
        keeps its badge.
        """
        data = self.facts("data")
        return not data or data.get("floor") is not None or data.get("plausible") is not None

    @property
    def leak_free(self) -> bool:
        """Whether the leak probe ran and found nothing."""
        probed = [v.get("verdict") for v in self.verdicts if v.get("check") == "leak"]
        return bool(probed) and all(said == OK for said in probed)

    @property
    def checked(self) -> bool:
        """Whether both the model and a score have been checked."""
        last = self.summary.get("last")
        return bool(self.verdicts) and isinstance(last, dict) and last.get("loss") is not None

    @property
    def badges(self) -> dict[str, str]:
        """What is wrong with this run's scores: badge → why. A leak stays for ever, other alarms until they clear."""
        latest: dict[str, dict[str, Any]] = {}
        for verdict in self.verdicts:
            check = str(verdict.get("check"))
            if latest.get(check, {}).get("verdict") != "LEAK":
                latest[check] = verdict
        wrong = (v for v in latest.values() if v.get("verdict") not in (None, "ok"))
        return {str(v["verdict"]): str(v.get("why", "")) for v in wrong}

    def records(self, stream: str) -> Iterator[dict[str, Any]]:
        """All records of metrics, events or samples so far."""
        return read_lines(self.path / f"{stream}.jsonl")

    def follow(self) -> MetricsTail:
        """The metrics as they grow."""
        return MetricsTail(self.path)

    def liveness(self) -> Liveness:
        """Whether its process runs: on this host by process id and start time, elsewhere by its beat.

        A beat of another host that moves while this process looks is alive, one that stands still for `STILL` seconds
        of its own clock is dead, and unknown until then. No two clocks are compared.
        """
        status = self.status
        if status.get("state") not in LIVE_STATES:
            return "dead"
        if status.get("host") != socket.gethostname():
            return self._by_beat(status.get("beat"))
        return "alive" if is_alive(status) else "dead"

    def _by_beat(self, beat: Any) -> Liveness:
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
        state = str(self.status.get("state", "unknown"))
        if state not in LIVE_STATES or self.liveness() != "dead":
            return state
        return "interrupted" if state == "handing-over" else "lost"

    def _table(self, name: str) -> dict[str, Any]:
        found, types = read_json(self.path / f"{name}.json"), TYPES.get(name, {})
        if not isinstance(found, dict):
            return {}
        return {key: value for key, value in found.items() if key not in types or isinstance(value, types[key])}


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
            found.append((str(facts.get("created", "")), path.stat().st_mtime_ns, path))
    return [RunReader(path) for _, _, path in sorted(found)]
