"""`bench`: the engine's speed here, against other libraries and the machine's limit."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.base.command_line import current_command_line
from engine.base.errors import InputError, join_or
from engine.base.language import Message, tr
from engine.config import presets
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import Device, Json
from tui_transformer.cli.output import print_answer, print_columns, print_info, print_json, print_result

if TYPE_CHECKING:
    from engine.proofs.bench.cases import CaseResult
    from engine.proofs.bench.memory import MemoryPeak

MARK = "<!-- the tables are written by `tui-transformer bench --write`: edit only what is before and after them -->"
NOTES = "## Notes"
USUAL, SMALL = "baseline", "demo"  # overlays on the first also run on the second
MEMORY_TITLE = "## memory of training, estimate and measured peak"
MEMORY_NOTE = """*Measured* is the largest growth in a process's resident memory, starting just before the model is
built, over three steps: the first two and the one with the largest batch of the first epoch. Loaded data and torch's
own libraries are not counted. A batch is rows × tokens; for translations, `from` gives the source tokens. If a preset's
rows would take more than 8 GiB, fewer were measured and estimated; if its data was not available, the rows are random
tokens as long as the context. Everything in this table was measured on a CPU, in fp32."""
# Defaults of the options.
ON_CPU: dict[str, tuple[str, ...]] = {
    "size": (USUAL,),
    "case": ("training", "trainer", "evaluation", "sampling", "attention"),
    "precision": ("fp32", "bf16"),
    "against": (),
}
ON_GPU: dict[str, tuple[str, ...]] = {
    "size": (USUAL, "nanogpt", "gpt2-small", "win16", "linear"),
    "case": ("training", "sampling", "attention"),
    "precision": ("bf16", "fp32-fast", "fp32"),
    "against": ("installed",),
}
OF_NO_SIZE = ("attention", "studio")  # the same for every size, so measured once


@command(150)
@examples(
    {
        "bench": "Time the baseline on this machine.",
        "bench --size demo --against installed": "Compare with the other installed libraries.",
    }
)
def bench(
    case: Annotated[
        str,
        typer.Option(
            "--case",
            help="Any of training, trainer, evaluation, sampling, attention, studio, comma-separated; or memory.",
        ),
    ] = "",
    size: Annotated[
        str, typer.Option("--size", help="Presets to measure, comma-separated; with --case memory, also all.")
    ] = "",
    precision: Annotated[str, typer.Option("--precision", help="Any of fp32, fp32-fast, bf16, comma-separated.")] = "",
    against: Annotated[
        str,
        typer.Option(
            "--against",
            help="Any of transformers, x-transformers, torch, comma-separated; or installed, for all found.",
        ),
    ] = "",
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=1000, help="Rounds per contender.")] = 5,
    seconds: Annotated[float, typer.Option("--seconds", min=0.01, max=600, help="Minimum seconds per round.")] = 2.0,
    device: Device = "auto",
    json: Json = False,
    write: Annotated[Path | None, typer.Option("--write", help="Markdown file to write the tables to.")] = None,
) -> None:
    """Time training, evaluation, sampling and attention, alternating with other libraries.

    Defaults depend on the device. On a CPU: the baseline preset in fp32 and bf16, without other libraries. On a GPU:
    baseline, nanogpt, gpt2-small, win16 and linear, in every precision, against all installed libraries.
    """
    options = {"size": size, "case": case, "precision": precision, "against": against}
    given = {name: tuple(filter(None, map(str.strip, text.split(",")))) for name, text in options.items()}
    if given["case"] == ("memory",):
        _memory(given["size"] or (USUAL,), as_json=json, write=write)
        return
    configs = {name: presets.resolve(presets.find(name)) for name in given["size"]}
    import torch

    from engine.model.devices import default_threads, device_name, resolve_device
    from engine.proofs.bench.cases import CASES, PRECISIONS, BenchmarkSpec
    from engine.proofs.bench.peers import installed_peers, require_peer
    from tui_transformer.studio.responsiveness import studio_cases

    every = CASES | {"studio": studio_cases}
    for option, known in (("case", every), ("precision", PRECISIONS)):
        for name in given[option]:
            if name not in known:
                raise InputError(
                    Message("--{option} '{name}': must be {known}", option=option, name=name[:40], known=join_or(known))
                )
    where, threads = resolve_device(device), default_threads()
    usual = ON_CPU if where.type == "cpu" else ON_GPU
    chosen = {option: given[option] or usual[option] for option in usual}
    peers = installed_peers() if chosen["against"] == ("installed",) else chosen["against"]
    for name in peers:
        require_peer(name)
    configs = configs or {name: presets.resolve(presets.find(name)) for name in chosen["size"]}
    if where.type == "cpu":
        _print_progress(tr("measuring on the CPU; --device cuda measures more sizes, on a GPU"))

    for i, (name, config) in enumerate(configs.items()):
        wanted = BenchmarkSpec(config, chosen["precision"], peers, where, threads, rounds, seconds, _print_progress)
        machine = Message(
            "size {name}, {device_name}, {threads} threads", name=name, device_name=device_name(where), threads=threads
        )
        for one in chosen["case"]:
            if i and one in OF_NO_SIZE:
                continue
            _print_progress(f"{tr(one)}, {name}")
            try:
                for result in every[one](wanted):
                    if json:
                        place = {"kind": "bench", "size": name, "device": str(where), "threads": threads}
                        print_json(place | asdict(result))
                    else:
                        print_answer(f"{tr(result.case)}, {tr(result.setting)}, {name}, {result.unit}")
                        print_columns(_rows(result, tr))
                        print_answer()
                    if write is not None:
                        when = Message(
                            "{now:%Y-%m-%d}, {machine}, torch {version}",
                            now=datetime.now(UTC),
                            machine=machine,
                            version=torch.__version__,
                        )
                        title = _title(result, name, device_name(where))
                        text = [f"{when}: `{current_command_line()}`", "", *_table(_rows(result, Message))]
                        _replace_section(write, title, text)
            except torch.OutOfMemoryError:
                _print_progress(
                    tr("{case}, {size}: does not fit in the memory of {device}", case=one, size=name, device=where)
                )
    if write is not None:
        _print_progress(tr("wrote {path}", path=write))


def _print_progress(text: str) -> None:
    print_info(tr("bench: {text}", text=text))


def _title(result: "CaseResult", size: str, device: str) -> str:
    """Return the heading of a table; a new table replaces one with the same heading."""
    parts = [result.case, result.setting]
    parts += [size] if size != USUAL and result.case not in OF_NO_SIZE else []
    parts += [device] if device != "cpu" else []
    return f"## {', '.join(parts)} ({result.unit})"


def _memory(names: tuple[str, ...], *, as_json: bool, write: Path | None) -> None:
    """Each preset's memory estimate and measured training peak; earlier measurements are kept."""
    from engine.proofs.bench.memory import measure_training_peak

    if names == ("all",):
        every = presets.list_presets()  # and overlays on `SMALL` as well
        names = tuple(preset.name for preset in every)
        on_baseline = (preset for preset in every if preset.extends and presets.extends_chain(preset)[0].name == USUAL)
        names += tuple(f"{preset.name}@{SMALL}" for preset in on_baseline)
    configs = []
    for name in names:
        preset, _, base = name.partition("@")
        configs.append(presets.resolve(presets.find(preset), on=base or None))
    found: dict[str, tuple[str, ...]] = {}
    for config in configs:
        _print_progress(config.preset)
        peak = measure_training_peak(config)
        found[config.preset] = cells = _cells(peak)
        record = {"kind": "memory", "ratio": peak.estimate_over_measured, **asdict(peak)}
        print_result(record, "  ".join(map(tr, cells)), as_json=as_json)
        if write is not None:
            _write_memory(write, found)


def _cells(peak: "MemoryPeak") -> tuple[str, ...]:
    shape = peak.shape
    batch = f"{shape.rows} × {shape.target}"
    batch = Message("{batch} from {source}", batch=batch, source=shape.source) if shape.source else batch
    batch = Message("{batch} (of {rows} rows)", batch=batch, rows=peak.rows) if peak.rows > shape.rows else batch
    batch = batch if peak.given else Message("{batch}, random", batch=batch)
    measured = "" if peak.measured is None else f"{peak.measured / 2**20:,.0f}"
    ratio = "" if peak.estimate_over_measured is None else f"{peak.estimate_over_measured:.2f}"
    return peak.preset, batch, f"{peak.estimate / 2**20:,.0f}", measured, ratio


def _write_memory(path: Path, found: dict[str, tuple[str, ...]]) -> None:
    import torch

    from engine.model.devices import processor_description

    machine = Message(
        "{processor_name}, {cpu_count} cores", processor_name=processor_description(), cpu_count=os.cpu_count()
    )
    when = f"{datetime.now(UTC):%Y-%m-%d}, {machine}, one thread, torch {torch.__version__}"
    command = "tui-transformer bench --case memory --size all --write docs/benchmarks.md"
    before = re.search(rf"^{MEMORY_TITLE}\n.*?(?=^## )", _page(path), flags=re.MULTILINE | re.DOTALL)
    lines = before[0].splitlines() if before is not None else []
    old = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][1:]
    rows = {cells[0]: tuple(cells) for cells in old} | found
    head = ("preset", "largest batch", "estimate, MiB", "measured, MiB", "estimate / measured")
    table = _table([head, *(rows[name] for name in sorted(rows))])
    _replace_section(path, MEMORY_TITLE, [f"{when}: `{command}`", "", MEMORY_NOTE, "", *table])


def _page(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else f"# Benchmarks\n\n{MARK}\n\n{NOTES}\n"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    head, *below = ["| " + " | ".join(row) + " |" for row in rows]
    return [head, "|" + "---|" * len(rows[0]), *below]


def _replace_section(path: Path, title: str, lines: Sequence[str]) -> None:
    """Insert a section into a page; keep its other sections, introduction and notes."""
    old = _page(path)
    notes = old[old.index(NOTES) :] if NOTES in old else f"{NOTES}\n"
    top, *found = re.split(r"^(?=## )", old.removesuffix(notes), flags=re.MULTILINE)
    above = top.partition(MARK)[2].strip()
    sections = {section.splitlines()[0]: section.rstrip() + "\n" for section in found}
    sections[title] = "\n".join([title, "", *lines]) + "\n"
    introduction = [above, ""] if above else []
    page = "\n".join(["# Benchmarks", "", MARK, "", *introduction, *sections.values(), notes])
    path.write_text(page, encoding="utf-8")


def _rows(result: "CaseResult", say: Callable[..., str]) -> list[tuple[str, ...]]:
    """Return the table of a measurement; `say` is `english` for a page, `tr` for a terminal."""
    first = result.speeds[0]
    head = map(say, (Message("contender"), Message("median"), Message("lowest"), Message("highest")))
    rows: list[tuple[str, ...]] = [
        (*head, say(Message("{name} is"), name=say(first.name)), say(Message("added memory")))
    ]
    digits = 2 if first.median < 100 else 0
    for speed in result.speeds:
        ratio = say(Message("{ratio:.2f} × as fast"), ratio=first.median / speed.median) if speed is not first else ""
        memory = "" if speed.peak_bytes is None else say(Message("{mib:,.0f} MiB"), mib=speed.peak_bytes / 2**20)
        values = (f"{v:,.{digits}f}" for v in (speed.median, speed.low, speed.high))
        rows.append((say(speed.name), *values, ratio, memory))
    if result.limit is not None:
        share = say(Message("{share:.0%} as fast"), share=first.median / result.limit)
        rows.append((say(Message("matrix products alone")), f"{result.limit:,.0f}", "", "", share, ""))
    return rows
