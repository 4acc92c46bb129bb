"""`doctor --gpu`: prove that everything works on this device, in a table and a file with all figures."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import InputError
from engine.proof.prove import BUDGET, Facts, Record, prove
from tui_transformer.cli.output import ExitCode, answer, emit, print_columns, say
from tui_transformer.lab.formatting import duration, memory

if TYPE_CHECKING:
    from engine.proof.result import Proof, Result

FILE = Path("gpu-proof.json")
THREADS = 1  # CPU threads; more would wait for each other beside another program
FEWEST = 3  # equal rows that are merged into one
MARKS = {"passed": "✓ passed", "failed": "✗ failed", "skipped": "· skipped"}


def prove_all(*, device: str, out: Path, as_json: bool) -> int:
    """Return 1 if a proof failed. Raises InputError: no such device, no GPU, or an unwritable file."""
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
    settings: Mapping[str, Any] | None = None,
) -> int:
    record = Record(out, {"budget_seconds": BUDGET, "threads": THREADS, **(settings or {})})

    def begins(number: int, proof: "Proof", left: float) -> None:
        say(f"doctor: {number} of {len(proofs)}, about {duration(left)} left: {proof.name}")

    found: list[tuple[Proof, Result]] = []
    for done in prove(proofs, device, record, threads=THREADS, begins=begins):
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


def machine_line(facts: Facts) -> str:
    parts = [str(facts.get("device_name") or facts.get("device"))]
    if facts.get("capability"):
        parts.append(f"capability {facts['capability']}, {memory(facts['device_memory_bytes'])}")
    if facts.get("driver"):
        parts.append(f"driver {facts['driver']}")
    parts += [f"torch {facts.get('torch')}", f"Python {facts.get('python')}", str(facts.get("os"))]
    return ", ".join(parts)


def rows(found: "Sequence[tuple[Proof, Result]]") -> Iterator[tuple[str, ...]]:
    """Yield the table's rows; consecutive proofs of one group with the same result share a row."""
    for (group, status, why), alike in groupby(found, lambda done: (done[0].group, done[1].status, done[1].why)):
        same = list(alike)
        if len(same) < FEWEST:
            yield from ((proof.name, MARKS[status], f"{result.seconds:,.1f}", why) for proof, result in same)
            continue
        largest: dict[str, float] = {}  # value of each difference these proofs measured
        for _, result in same:
            for name, value in result.figures.items():
                if "difference" in name and isinstance(value, int | float):
                    largest[name] = max(largest.get(name, 0.0), float(value))
        shown = ", ".join(f"{name.replace('_', ' ')} {value:.1e}" for name, value in largest.items())
        words = f"{why}; largest: {shown}" if shown else why
        seconds = sum(result.seconds for _, result in same)
        yield f"{group} ({len(same)} proofs)", MARKS[status], f"{seconds:,.1f}", words
