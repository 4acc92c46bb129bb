"""Holds the pace of one checkout against another's: `python -m tests.earlier.pace OLD NEW [--only NAME,NAME]`.

Each round measures both, and each begins every other round, so that a machine that slows down slows both. What is
printed of each measurement: both medians, NEW / OLD of the medians, of the best rounds, and of the processor time,
which tells least about what else the machine does. Both checkouts run with this Python and its packages, by their
command lines alone. 7 rounds of everything take three quarters of an hour on an idle machine, most of it for `bench`,
which tells of keys and of training beside the studio.
"""

import argparse
import json
import os
import pty
import re
import select
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

from tests.earlier.kept import take_out

RUNS, LINES = 10_000, 1_000_000
COMPARED = 1_000  # runs that are compared
STEPS = 400  # of a run
FIRST_WORDS = b"Playground"  # the last of the studio's four tabs
PATIENCE = 600.0  # seconds
SIZE = (120, 36)  # columns and lines
_CONTROL = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")
SMALL = ("model.n_layers=1", "model.d_model=16", "model.n_heads=2", "model.context_length=32", "data.corpus_size=20000")
TRAINED = (*SMALL, f"train.steps={STEPS}", "train.batch_size=4", "train.threads=1", "evaluation.every=0")
TRAINED += ("checkpoint.every=0", "evaluation.sample_every=0", "log.every=1")


@dataclass
class Checkout:
    """One of the two, and what was measured of it: seconds (or steps a second) and processor seconds by name."""

    root: Path
    wall: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    processor: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def environment(self, home: Path) -> dict[str, str]:
        """The variables of its processes."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TUI_TRANSFORMER_")}
        own = {"PYTHONPATH": str(self.root), "OMP_NUM_THREADS": "1", "TUI_TRANSFORMER_CACHE": str(home / "cache")}
        return kept | own | {"XDG_CONFIG_HOME": str(home / "config"), "NO_COLOR": "1", "COLUMNS": "100"}


@dataclass(frozen=True)
class Place:
    """Where it is measured: a folder with `home`, `many`, `some` and `long`, made once for both."""

    folder: Path

    @property
    def home(self) -> Path:
        """Settings, and generated corpora."""
        return self.folder / "home"


def python(checkout: Checkout, place: Place, *words: str) -> tuple[float, float, bytes]:
    """Wall and processor seconds of a command, and what it printed."""
    command = [sys.executable, "-m", "tui_transformer", *words]
    with tempfile.TemporaryFile() as out:
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=place.folder,
            env=checkout.environment(place.home),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - started
        out.seek(0)
        if process.returncode != 0:
            raise SystemExit(f"{checkout.root}: exit code {process.returncode} of {' '.join(words)}")
        return wall, used.ru_utime + used.ru_stime, out.read()


def command(name: str, *words: str) -> Callable[[Checkout, Place], None]:
    """Measures a whole command."""

    def measure(checkout: Checkout, place: Place) -> None:
        wall, used, _ = python(checkout, place, *words)
        checkout.wall[f"{name}, s"].append(wall)
        checkout.processor[f"{name}, s"].append(used)

    return measure


def first_paint(checkout: Checkout, place: Place) -> None:
    """Seconds until the studio stands."""
    with studio(checkout, place) as (terminal, started):
        seen = b""
        while FIRST_WORDS not in _CONTROL.sub(b"", seen):
            if time.perf_counter() - started > PATIENCE or not select.select([terminal], [], [], PATIENCE)[0]:
                raise SystemExit(f"{checkout.root}: the studio did not stand")
            seen += os.read(terminal, 65536)
        checkout.wall["studio: first paint, s"].append(time.perf_counter() - started)


@contextmanager
def studio(checkout: Checkout, place: Place) -> Iterator[tuple[int, float]]:
    """The studio over an empty runs folder: its terminal, and when it was started."""
    master, slave = pty.openpty()
    ioctl(slave, TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))
    settings = place.home / "settings.toml"
    settings.write_text("welcomed = true\n", encoding="utf-8")
    variables = checkout.environment(place.home) | {"TERM": "xterm-256color"}
    variables |= {"TUI_TRANSFORMER_SETTINGS": str(settings)}
    for name in ("NO_COLOR", "COLUMNS"):
        del variables[name]
    command = [sys.executable, "-m", "tui_transformer", "--runs-dir", str(place.folder / "none"), "--device", "cpu"]
    started = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=place.folder, stdin=slave, stdout=slave, stderr=slave, env=variables, start_new_session=True
    )
    os.close(slave)
    try:
        yield master, started
    finally:
        process.kill()
        process.wait()
        os.close(master)


def trained(checkout: Checkout, place: Place) -> None:
    """`run`: the whole command, and the steps a second that its own clock says."""
    runs = place.folder / "trained"
    shutil.rmtree(runs, ignore_errors=True)
    words = ["run", "--preset", "demo", "--name", "run", "--runs-dir", str(runs), "--device", "cpu"]
    words += [word for setting in TRAINED for word in ("--set", setting)]
    wall, used, _ = python(checkout, place, *words)
    checkout.wall[f"run of {STEPS} steps, s"].append(wall)
    checkout.processor[f"run of {STEPS} steps, s"].append(used)
    rows = [json.loads(line) for line in (runs / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    seconds = [row["seconds"] for row in rows if row["kind"] == "train"]
    checkout.wall["run: steps/s"].append((len(seconds) - 1) / (seconds[-1] - seconds[0]))


def bench(checkout: Checkout, place: Place) -> None:
    """`bench --case studio`: steps a second with the studio beside it and in its thread, and keys meanwhile."""
    words = ("bench", "--case", "studio", "--size", "demo", "--rounds", "1", "--seconds", "6", "--device", "cpu")
    _, _, said = python(checkout, place, *words, "--json")
    for line in said.decode().splitlines():
        record = json.loads(line)
        for speed in record["speeds"]:
            checkout.wall[f"bench: {record['setting']}: {speed['name']}, {record['unit']}"].append(speed["median"])


MEASURED: Mapping[str, Callable[[Checkout, Place], None]] = {
    "help": command("--help", "--help"),
    "presets": command("presets list", "presets", "list"),
    "paint": first_paint,
    "runs": command(f"runs, {RUNS:,} runs", "runs", "--runs-dir", "many"),
    "compare": command(f"compare, {COMPARED:,} runs", "compare", "--runs-dir", "some"),
    "watch": command(f"watch, {LINES:,} lines", "watch", "long", "--runs-dir", "long"),
    "report": command(f"report, {LINES:,} lines", "report", "long", "--runs-dir", "long", "--out", "report"),
    "export": command(f"export csv, {LINES:,} lines", "export", "long", "--to", "csv", "--runs-dir", "long"),
    "run": trained,
    "bench": bench,
}


def prepare(folder: Path) -> Place:
    """Make the folders that are measured; the files of runs that are alike are one file."""
    kept = take_out(folder / "kept")
    place = Place(folder)
    place.home.mkdir()
    for name, count in (("many", RUNS), ("some", COMPARED)):
        for i in range(count):
            copied(kept / "runs" / "plain", folder / name / f"run-{i:05d}", i)
    long = copied(kept / "runs" / "plain", folder / "long" / "long", 0)
    rows = [json.loads(line) for line in (long / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    row = next(row for row in rows if row["kind"] == "train")
    (long / "metrics.jsonl").unlink()
    with (long / "metrics.jsonl").open("w", encoding="utf-8") as file:
        for step in range(1, LINES + 1):
            own = {"step": step, "tokens": 128 * step, "seconds": step / 500, "loss": 2.0 + 1.0 / step}
            file.write(json.dumps(row | own, separators=(",", ":")) + "\n")
    status = json.loads((long / "status.json").read_text(encoding="utf-8")) | {"step": LINES, "steps": LINES}
    (long / "status.json").unlink()
    (long / "status.json").write_text(json.dumps(status), encoding="utf-8")
    return place


def copied(run: Path, to: Path, number: int) -> Path:
    """A run like another, with an id and a time of its own; without its checkpoints."""
    to.mkdir(parents=True)
    for path in run.iterdir():
        if path.is_file() and path.name != "run.json":
            os.link(path, to / path.name)
    born = json.loads((run / "run.json").read_text(encoding="utf-8"))
    minute, second = divmod(number, 60)
    born |= {
        "id": str(uuid.UUID(int=number)),
        "created": f"2026-01-01T{minute // 60:02d}:{minute % 60:02d}:{second:02d}+00:00",
    }
    (to / "run.json").write_text(json.dumps(born), encoding="utf-8")
    return to


def table(old: Checkout, new: Checkout) -> str:
    """One line a measurement. More is worse of seconds, better of steps a second."""
    rows = [("measured", "OLD", "NEW", "NEW/OLD", "of the best", "of processor time", "rounds")]
    for name, before in old.wall.items():
        after = new.wall.get(name)
        if not after:
            rows.append((name, f"{statistics.median(before):.3f}", "–", "", "", "", str(len(before))))
            continue
        best = max if name.endswith("steps/s") else min
        used = [statistics.median(one.processor[name]) for one in (old, new) if one.processor[name]]
        medians = statistics.median(before), statistics.median(after)
        rows.append(
            (
                name,
                *(f"{median:.3f}" for median in medians),
                f"{medians[1] / medians[0]:.3f}",
                f"{best(after) / best(before):.3f}",
                f"{used[1] / used[0]:.3f}" if len(used) == 2 else "",
                str(min(len(before), len(after))),
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    first, *others = widths
    lines = [
        [row[0].ljust(first), *(cell.rjust(width) for cell, width in zip(row[1:], others, strict=True))] for row in rows
    ]
    return "\n".join("  ".join(line).rstrip() for line in lines)


def main(arguments: Sequence[str]) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.earlier.pace", description=__doc__)
    parser.add_argument("old", type=Path, metavar="OLD")
    parser.add_argument("new", type=Path, metavar="NEW")
    parser.add_argument("--only", default="", help=f"Any of {', '.join(MEASURED)}, separated by commas.")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args(arguments)
    names = [name for name in asked.only.split(",") if name] or list(MEASURED)
    if unknown := set(names) - MEASURED.keys():
        parser.error(f"--only {', '.join(sorted(unknown))}: must be of {', '.join(MEASURED)}")
    old, new = Checkout(asked.old.resolve()), Checkout(asked.new.resolve())
    for checkout in (old, new):
        if not (checkout.root / "tui_transformer" / "__main__.py").is_file():
            parser.error(f"{checkout.root} is no checkout")
    with tempfile.TemporaryDirectory(prefix="pace-") as folder:
        place = prepare(Path(folder))
        for name in names:
            for checkout in (old, new):  # compiled, and read from the disk
                if name != "bench":
                    MEASURED[name](Checkout(checkout.root), place)
            for turn in range(asked.rounds):
                print(f"{name}: round {turn + 1} of {asked.rounds}", file=sys.stderr, flush=True)
                for checkout in (old, new) if turn % 2 == 0 else (new, old):
                    MEASURED[name](checkout, place)
    print(table(old, new))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
