"""`bench`: how fast the engine is here, beside other libraries and the machine's own limit."""

import re
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine.command_line import as_typed
from engine.config import presets
from engine.errors import InputError, one_of
from tui_transformer.columns import print_columns
from tui_transformer.output import answer, emit, say

if TYPE_CHECKING:
    from engine.benchmark.cases import Measured

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
    config = presets.resolve(presets.find(size))
    from engine.benchmark.cases import CASES, PRECISIONS, Effort, Wanted
    from engine.benchmark.peers import require_peer
    from engine.training.devices import default_threads, device_name, resolve_device
    from tui_transformer.responsiveness import studio_cases

    every = CASES | {"studio": studio_cases}
    cases = cases or tuple(CASES)
    for option, given, known in (("case", cases, every), ("precision", precisions, PRECISIONS)):
        for name in given:
            if name not in known:
                raise InputError(f"--{option} '{name[:40]}': must be {one_of(known)}")
    for name in against:
        require_peer(name)
    where, threads = resolve_device(device), default_threads()
    effort = Effort(rounds, seconds, lambda text: say(f"bench: {text}"))
    if where.type == "cpu":
        say("bench: on the CPU; --device cuda measures the same cases on a GPU, its products' limit, and its memory")
    wanted = Wanted(config, precisions, against, where, threads, effort)

    measured = []
    for result in (result for case in cases for result in every[case](wanted)):
        measured.append(result)
        if as_json:
            emit({"kind": "bench", "size": size, "device": str(where), "threads": threads, **asdict(result)})
        else:
            answer(f"{result.case}, {result.setting}, {result.unit}")
            print_columns(_rows(result))
            answer()
    if write is not None:
        machine = f"size {size}, {device_name(where)}, {threads} threads"
        _write(write, measured, machine)
        say(f"bench: wrote {write}")
    return 0


def _rows(result: "Measured") -> list[tuple[str, ...]]:
    first = result.speeds[0]
    rows: list[tuple[str, ...]] = [("contender", "median", "lowest", "highest", f"{first.name} is", "memory it adds")]
    digits = 2 if first.median < 100 else 0
    for speed in result.speeds:
        ratio = f"{first.median / speed.median:.2f} × it" if speed is not first else ""
        memory = "" if speed.peak_bytes is None else f"{speed.peak_bytes / 2**20:,.0f} MiB"
        values = (f"{v:,.{digits}f}" for v in (speed.median, speed.low, speed.high))
        rows.append((speed.name, *values, ratio, memory))
    if result.limit is not None:
        share = f"{first.median / result.limit:.0%} of it"
        rows.append(("matrix products alone", f"{result.limit:,.0f}", "", "", share, ""))
    return rows


def _write(path: Path, measured: "list[Measured]", machine: str) -> None:
    """Put the tables into a page; what else was measured there before, and the notes, stay."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    notes = old[old.index(NOTES) :] if NOTES in old else f"{NOTES}\n"
    sections = {}
    for section in re.split(r"^(?=## )", old.removesuffix(notes), flags=re.MULTILINE)[1:]:
        sections[section.splitlines()[0]] = section.rstrip() + "\n"
    import torch

    when = f"{datetime.now(UTC):%Y-%m-%d}, {machine}, torch {torch.__version__}"
    command = as_typed()
    for result in measured:
        title = f"## {result.case}, {result.setting} ({result.unit})"
        head, *rows = _rows(result)
        table = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        table += ["| " + " | ".join(row) + " |" for row in rows]
        sections[title] = "\n".join([title, "", f"{when}: `{command}`", "", *table]) + "\n"
    path.write_text("\n".join(["# Benchmarks", "", MARK, "", *sections.values(), notes]), encoding="utf-8")
