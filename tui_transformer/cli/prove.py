"""`doctor --gpu`: does everything work on this device? A table, and a file with every figure."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import InputError
from engine.proof.prove import BUDGET, Done, Record, prove
from tui_transformer.cli.output import ExitCode, answer, emit, print_columns, say
from tui_transformer.lab.formatting import duration, memory

if TYPE_CHECKING:
    from engine.proof.result import Proof

FILE = Path("gpu-proof.json")
THREADS = 1  # CPU threads; several would wait for each other if another program is running
FEWEST = 3  # equal rows that are merged into one
MARKS = {"passed": "✓ passed", "failed": "✗ failed", "skipped": "· skipped"}


def prove_all(*, device: str, out: Path, as_json: bool) -> int:
    """Run every proof; exit code 1 if one failed.

    Raises:
        InputError: no such device, no GPU, or a file that cannot be written.
    """
    from engine.training.devices import resolve_device

    where = resolve_device(device)
    if device == "auto" and where.type == "cpu":
        raise InputError("--gpu: no GPU found on this machine; --device cpu runs the same proofs on the CPU")
    from tui_transformer.cli.proofs import every_proof, settings

    return run_proofs(every_proof(), str(where), out, as_json=as_json, settings=settings())


def run_proofs(
    proofs: "Sequence[Proof]",
    device: str,
    out: Path,
    *,
    as_json: bool,
    budget: float = BUDGET,
    settings: Mapping[str, Any] | None = None,
) -> int:
    """Run these proofs and print what they find; see `prove_all`."""
    record = Record(out, {"budget_seconds": budget, "threads": THREADS, **(settings or {})})

    def begins(number: int, proof: "Proof", left: float) -> None:
        say(f"doctor: {number} of {len(proofs)}, about {duration(left)} left: {proof.name}")

    found: list[Done] = []
    for done in prove(proofs, device, record, threads=THREADS, budget=budget, begins=begins):
        if as_json and not found:
            emit({"kind": "machine", "project": record.content["project"], **record.content["machine"]})
        found.append(done)
        if as_json:
            emit({"kind": "proof", **record.content["proofs"][-1]})
    if not as_json:
        answer(machine_line(record.content["machine"]))
        answer()
        print_columns([("proof", "result", "seconds", "what was found"), *rows(found)])
    counts, seconds = record.content["counts"], record.content["seconds"]
    if as_json:
        emit({"kind": "summary", **counts, "seconds": seconds, "file": str(out)})
    told = ", ".join(f"{counts[status]} {status}" for status in MARKS)
    say(f"doctor: {told} in {duration(seconds)}; every figure is in {out}")
    return ExitCode.FAILED if counts["failed"] else ExitCode.DONE


def machine_line(facts: dict[str, Any]) -> str:
    """Return the device, its driver, and the versions that ran on it."""
    parts = [str(facts.get("device_name") or facts.get("device"))]
    if facts.get("capability"):
        parts.append(f"capability {facts['capability']}, {memory(facts['device_memory_bytes'])}")
    if facts.get("driver"):
        parts.append(f"driver {facts['driver']}")
    parts += [f"torch {facts.get('torch')}", f"Python {facts.get('python')}", str(facts.get("os"))]
    return ", ".join(parts)


def rows(found: Sequence[Done]) -> Iterator[tuple[str, ...]]:
    """Yield the table's rows; consecutive proofs of one group with the same result share a row."""
    for (group, status, why), alike in groupby(
        found, lambda done: (done.proof.group, done.result.status, done.result.why)
    ):
        same = list(alike)
        if len(same) < FEWEST:
            yield from ((done.proof.name, MARKS[status], f"{done.result.seconds:,.1f}", why) for done in same)
            continue
        largest: dict[str, float] = {}  # value of each difference that these proofs measured
        for done in same:
            for name, value in done.result.figures.items():
                if "difference" in name and isinstance(value, int | float):
                    largest[name] = max(largest.get(name, 0.0), float(value))
        shown = ", ".join(f"{name.replace('_', ' ')} {value:.1e}" for name, value in largest.items())
        words = f"{why}; largest: {shown}" if shown else why
        yield f"{group} ({len(same)} proofs)", MARKS[status], f"{sum(d.result.seconds for d in same):,.1f}", words
