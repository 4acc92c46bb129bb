"""`bench`: how fast training and attention are here, beside other libraries and the machine's own limit."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine.config import presets
from engine.errors import InputError, one_of
from tui_transformer.columns import print_columns
from tui_transformer.output import emit, say

if TYPE_CHECKING:
    from engine.benchmark.cases import Measured

CASES = ("training", "attention")
LENGTHS = (512, 1024, 2048, 4096)
MARK = "<!-- written by `tui-transformer bench --write`; do not edit above the notes -->"
NOTES = "## Notes"


def bench_command(
    cases: tuple[str, ...],
    *,
    size: str,
    precisions: tuple[str, ...],
    against: tuple[str, ...],
    rounds: int,
    seconds: float,
    device: str,
    as_json: bool,
    write: Path | None,
) -> int:
    """Print one line a contender; with `write`, put the tables into a Markdown file too."""
    for case in cases:
        if case not in CASES:
            raise InputError(f"--case '{case[:40]}': must be {one_of(CASES)}")
    config = presets.resolve(presets.find(size))
    from engine.benchmark.cases import PRECISIONS, Effort, attention, training
    from engine.training.devices import default_threads, device_name, resolve_device

    for precision in precisions:
        if precision not in PRECISIONS:
            raise InputError(f"--precision '{precision[:40]}': must be {one_of(PRECISIONS)}")
    where, threads = resolve_device(device), default_threads()
    effort = Effort(rounds, seconds, lambda text: say(f"bench: {text}"))

    def run() -> "Iterator[Measured]":
        if "training" in cases:
            for precision in precisions:
                yield training(config, precision, against, where, threads, effort)
        if "attention" in cases:
            for length in LENGTHS:
                yield attention(length, where, threads, effort)

    measured = []
    for result in run():
        measured.append(result)
        if as_json:
            emit({"kind": "bench", "size": size, "device": str(where), "threads": threads, **asdict(result)})
        else:
            print(f"{result.case}, {result.setting}, {result.unit}")
            print_columns(_rows(result))
            print()
    if write is not None:
        machine = f"{device_name(where)}, {threads} threads"
        _write(write, measured, size, machine)
        say(f"bench: wrote {write}")
    return 0


def _rows(result: "Measured") -> list[tuple[str, ...]]:
    first = result.speeds[0]
    rows: list[tuple[str, ...]] = [("contender", "median", "lowest", "highest", f"{first.name} is")]
    for speed in result.speeds:
        ratio = f"{first.median / speed.median:.2f} × it" if speed is not first else ""
        rows.append((speed.name, *(f"{v:,.0f}" for v in (speed.median, speed.low, speed.high)), ratio))
    if result.limit is not None:
        rows.append(
            ("matrix products alone", f"{result.limit:,.0f}", "", "", f"{first.median / result.limit:.0%} of it")
        )
    return rows


def _write(path: Path, measured: "list[Measured]", size: str, machine: str) -> None:
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    notes = old[old.index(NOTES) :] if NOTES in old else f"{NOTES}\n"
    import torch

    lines = ["# Benchmarks", "", MARK, ""]
    lines.append(f"{datetime.now(UTC):%Y-%m-%d}, {machine}, torch {torch.__version__}, size `{size}`.")
    lines += ["Command: `tui-transformer " + " ".join(sys.argv[1:]) + "`", ""]
    for result in measured:
        lines += [f"## {result.case}, {result.setting} ({result.unit})", ""]
        head, *rows = _rows(result)
        lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
        lines.append("")
    path.write_text("\n".join(lines) + "\n" + notes, encoding="utf-8")
