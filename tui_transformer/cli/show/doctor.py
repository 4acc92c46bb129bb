"""`doctor`: what this machine has, or which parts of a run are intact, and how to fix the rest."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from engine.base.command_line import DEFAULT_RUNS_DIR, command_line
from engine.base.errors import InputError, comma_separated, reason
from engine.base.language import Message, tr, trn
from engine.data.corpus import data_folders
from engine.data.known import CORPORA, local_path
from engine.runs.reader import LIVE_STATES, RunReader
from engine.runs.verdict import failed, passed, passed_if
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import DataDir, Json, RunsDir, SlurmOptions, run_names
from tui_transformer.cli.output import ExitCode, is_terminal, pad_to_width, print_check_result, print_json, width_of
from tui_transformer.cli.show.node import NamedResult, check_node
from tui_transformer.cli.work.workers import configured_and_typed_slurm_options
from tui_transformer.lab.formatting import memory
from tui_transformer.lab.records.badges import badge


@command(230)
@examples(
    {
        "doctor": "Check this machine.",
        "doctor demo": "Check a run's files.",
        "doctor --gpu": "Prove that training works on the GPU.",
    }
)
def doctor(
    run: Annotated[
        str | None,
        typer.Argument(help="A run to check; without one, checks this machine.", autocompletion=run_names),
    ] = None,
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Prove that training works on a GPU; takes up to ten minutes.")
    ] = False,
    device: Annotated[str, typer.Option("--device", help="With --gpu: auto, cpu, cuda, cuda:0 or mps.")] = "auto",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="With --gpu: the file to write; defaults to gpu-proof.json.")
    ] = None,
    via: Annotated[str | None, typer.Option("--via", help="slurm: check a node of the cluster.")] = None,
    slurm: SlurmOptions = None,
    json: Json = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
    data_dir: DataDir = None,
) -> int:
    """Check this machine (or a run): what it has and lacks, and what to do; with --gpu, prove that training works."""
    if gpu:
        if run is not None:
            raise InputError(Message("doctor --gpu: tests this machine, not a run; leave out '{run}'", run=run[:80]))
        from tui_transformer.cli.show.prove import FILE, prove_all

        return prove_all(device=device, out=out if out is not None else FILE, as_json=json)
    for option, given in (("--device", device != "auto"), ("--out", out is not None)):
        if given:
            raise InputError(Message("doctor {option}: only works with --gpu", option=option))
    if via not in (None, "slurm") or (slurm is not None and via is None) or (via is not None and run is not None):
        raise InputError(
            Message(
                "doctor: --via must be slurm and cannot be combined with a run; --slurm only works with --via slurm"
            )
        )
    reader = RunReader.resolve(run, runs_dir) if run is not None else None
    if via is None:
        findings = list(check_machine(runs_dir, data_dir) if reader is None else check_run(reader))
        well = reader is None or all(found.status == "passed" for _, found in findings)
    else:
        findings, well = check_node(configured_and_typed_slurm_options(slurm), runs_dir, data_dir)
    if json:
        for name, found in findings:
            advice = found.figures.get("advice", "")
            print_json({"what": name, "ok": found.status == "passed", "found": found.why, "advice": advice})
    else:
        shown = {name: badge(name).display_name for name, _ in findings}  # a name that is no badge stays as it is
        width = max(map(width_of, shown.values()))
        for name, found in findings:
            ok, advice = found.status == "passed", found.figures.get("advice")
            why = found.why + (tr("; {advice}", advice=advice) if advice and not ok else "")
            print_check_result("passed" if ok else "warned", f"{pad_to_width(shown[name], width)}  {why}")
    return ExitCode.DONE if well else ExitCode.FAILED


def check_machine(runs_dir: Path, data_dir: Path | None) -> Iterator[NamedResult]:
    import platform

    import psutil
    import torch

    from engine.model.devices import default_threads, device_name, resolve_device
    from engine.model.numerics import is_gpu_with_bf16

    device, place = resolve_device("auto"), runs_dir.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    ram = psutil.virtual_memory()
    machine = f"{platform.system()} {platform.machine()}"
    yield "python", passed(tr("{python} on {machine}", python=platform.python_version(), machine=machine))
    found = tr(
        "{version}, {threads} threads on {cores} cores",
        version=torch.__version__,
        threads=default_threads(),
        cores=os.cpu_count(),
    )
    yield "torch", passed(found)
    found = f"{device_name(device)}{', bf16' if is_gpu_with_bf16(device) else ''}"
    advice = tr("the demo and the *-cpu presets are sized for a CPU; a GPU needs torch with CUDA")
    yield tr("device"), passed_if(device.type != "cpu", found, advice=advice)
    yield tr("memory"), passed(tr("{free} free of {total}", free=memory(ram.available), total=memory(ram.total)))
    found = tr("{memory} free for runs in {runs_dir}", memory=memory(free), runs_dir=runs_dir.absolute())
    enough = free > 2_000_000_000 and os.access(place, os.W_OK)
    yield tr("disk"), passed_if(enough, found, advice=tr("free up space, or choose another folder with --runs-dir"))
    folders = data_folders(data_dir)
    for entry in CORPORA.values():
        if entry.needs_download:
            path = local_path(entry, folders)
            advice = f"`{command_line('data', 'fetch', entry.name)}`"
            if entry.needs_manual_download:
                files = comma_separated(Path(remote.file).name for remote in entry.remotes)
                folder = (folders[-1] / entry.remotes[0].file).parent
                advice = tr("put {files} into {parent}", files=files, parent=folder)
            found = (
                tr("{name} ({kind}) at {path}", name=entry.name, kind=entry.kind_label, path=path)
                if path
                else tr("{name} ({kind}) is not on this machine", name=entry.name, kind=entry.kind_label)
            )
            yield tr("corpus"), passed_if(path is not None, found, advice=advice)
    size = shutil.get_terminal_size()
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    enough = is_terminal(sys.stdout) and unicode and size.columns >= 80 and size.lines >= 24
    found = f"{size.columns}×{size.lines}, {sys.stdout.encoding}"
    found += "" if is_terminal(sys.stdout) else tr(", not a terminal")
    advice = tr("needs at least 80×24 and UTF-8 to show everything")
    yield tr("terminal"), passed_if(enough, found, advice=advice)


def check_run(reader: RunReader) -> Iterator[NamedResult]:
    from engine.base.plain_files import open_regular_file
    from engine.runs.files import parsed_lines, read_json
    from engine.training.checkpoint import find_damage, never_saved, step_folders

    state = reader.state
    why = reader.status.reason
    unsaved = never_saved(reader) and state not in (*LIVE_STATES, "queued")
    found = tr("{state}: {why}", state=tr(state), why=tr(why)) if why else tr(state)
    yield tr("state"), passed_if(state not in ("lost", "failed", "unknown"), found)
    for name, problem in reader.badges.items():
        yield name, failed(problem)
    for name in ("run.json", "model.json", "data.json", "environment.json", "status.json"):
        path = reader.path / name
        if unsaved and not path.exists():
            continue  # it did not get that far
        yield name, passed_if(isinstance(read_json(path), dict), tr("intact"), tr("missing or damaged"))
    try:
        _ = reader.config
        yield "config.toml", passed(tr("intact"))
    except InputError as error:
        yield "config.toml", failed(str(error))
    try:
        with open_regular_file(reader.path / "metrics.jsonl") as file:
            torn = sum(record is None for record in parsed_lines(file))
            left = os.fstat(file.fileno()).st_size - file.tell()
        bad = trn("{n:,} line truncated or damaged", "{n:,} lines truncated or damaged", torn)
        unread = tr("; the remaining {memory} was not read", memory=memory(left)) if left > 0 else ""
        yield "metrics.jsonl", passed_if(torn == 0, tr("intact") + unread, bad + unread)
    except OSError as error:
        yield "metrics.jsonl", failed(tr("cannot be read: {error}", error=reason(error)))
    saved = step_folders(reader.path)
    for path in saved:
        wrong = find_damage(path)
        yield path.name, passed_if(wrong is None, tr("intact, every SHA-256 as recorded"), wrong)
    if not saved:
        found, advice = tr("none"), tr("nothing to sample from")
        if unsaved:
            found = tr("none: the run ended before its first checkpoint")
            advice = tr("`{command}` starts the run over", command=reader.command("resume"))
        yield tr("checkpoints"), failed(found, advice=advice)
