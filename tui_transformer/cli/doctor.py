"""`doctor`: what this machine has, or what of a run is intact, and what to do about the rest."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.clean import clean_line
from engine.command_line import command_line
from engine.data.catalogue import catalogue
from engine.data.entry import CorpusEntry, data_folders
from engine.runs.reader import LIVE_STATES, RunReader
from tui_transformer.cli.exit_codes import ExitCode
from tui_transformer.cli.output import emit, is_terminal, stdout
from tui_transformer.lab.formatting import count, memory

LITTLE_DISK = 2_000_000_000  # bytes
RUN_FILES = ("run.json", "config.toml", "model.json", "data.json", "environment.json", "status.json", "metrics.jsonl")


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, whether it is well, what was found, and what to do if not."""

    what: str
    ok: bool
    found: str
    advice: str = ""


def doctor_command(run: str | None, *, as_json: bool, runs_dir: Path, data_dir: Path | None) -> int:
    """Print the findings; exit code 1 if a run has something broken."""
    reader = RunReader.resolve(run, runs_dir) if run is not None else None
    findings = machine(runs_dir, data_dir) if reader is None else of_run(reader)
    if as_json:
        for finding in findings:
            emit({"what": finding.what, "ok": finding.ok, "found": finding.found, "advice": finding.advice})
    else:
        from rich.text import Text

        width = max(len(finding.what) for finding in findings)
        text = Text()
        for finding in findings:
            text.append("✓ " if finding.ok else "! ", style="green" if finding.ok else "bold yellow")
            advice = f"; {finding.advice}" if finding.advice and not finding.ok else ""
            text.append(clean_line(f"{finding.what:{width}}  {finding.found}{advice}") + "\n")
        text.rstrip()
        stdout().print(text)
    broken = reader is not None and not all(finding.ok for finding in findings)
    return ExitCode.FAILED if broken else ExitCode.DONE


def machine(runs_dir: Path, data_dir: Path | None) -> list[Finding]:
    """Python, torch, devices, memory, disk, corpora, terminal."""
    import platform

    import psutil
    import torch

    from engine.training.devices import default_threads, device_name, resolve_device
    from engine.training.numerics import has_bf16

    device = resolve_device("auto")
    free = shutil.disk_usage(_existing(runs_dir)).free
    ram = psutil.virtual_memory()
    findings = [
        Finding("python", True, f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        Finding("torch", True, f"{torch.__version__}, {default_threads()} threads on {os.cpu_count()} cores"),
        Finding(
            "device",
            device.type != "cpu",
            f"{device_name(device)}{', bf16' if has_bf16(device) else ''}",
            "the demo and the *-cpu presets are sized for it; a GPU needs torch with CUDA",
        ),
        Finding("memory", True, f"{memory(ram.available)} free of {memory(ram.total)}"),
        Finding(
            "disk",
            free > LITTLE_DISK and os.access(_existing(runs_dir), os.W_OK),
            f"{memory(free)} free for runs in {runs_dir.absolute()}",
            "make room or name another folder with --runs-dir",
        ),
    ]
    findings += [_corpus(entry, data_dir) for entry in catalogue().values() if entry.remotes]
    size = shutil.get_terminal_size()
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    findings.append(
        Finding(
            "terminal",
            is_terminal(sys.stdout) and unicode and size.columns >= 80 and size.lines >= 24,
            f"{size.columns}×{size.lines}, {sys.stdout.encoding}"
            + ("" if is_terminal(sys.stdout) else ", not a terminal"),
            "80×24 and UTF-8 are the least that shows everything",
        )
    )
    return findings


def _corpus(entry: CorpusEntry[Any], data_dir: Path | None) -> Finding:
    folders = data_folders(data_dir)
    path = entry.found(folders)
    found = f"{entry.name} ({entry.words}) {f'at {path}' if path else 'is not here'}"
    advice = f"`{command_line('data', 'fetch', entry.name)}`"
    if entry.by_hand:
        files = ", ".join(Path(remote.file).name for remote in entry.remotes)
        advice = f"put {files} into {(folders[-1] / entry.remotes[0].file).parent}"
    return Finding("corpus", path is not None, found, advice)


def _existing(path: Path) -> Path:
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def of_run(reader: RunReader) -> list[Finding]:
    """Each file of a run and each checkpoint."""
    from engine.errors import InputError
    from engine.plain_files import open_plain
    from engine.runs.files import parsed_lines, read_json
    from engine.training.checkpoint import damage, never_saved, steps_saved

    state = reader.state
    why = reader.status.reason
    begins = f"`{reader.command('resume')}` starts it over"
    unsaved = never_saved(reader) and state not in (*LIVE_STATES, "queued")
    findings = [
        Finding("state", state not in ("lost", "failed", "unknown"), f"{state}: {why}" if why else state),
    ]
    findings += [Finding(badge, False, why) for badge, why in reader.badges.items()]
    for name in RUN_FILES:
        path = reader.path / name
        if name.endswith(".json"):
            if unsaved and not path.exists():
                continue  # it did not get that far
            well = isinstance(read_json(path), dict)
            findings.append(Finding(name, well, "intact" if well else "missing or damaged"))
    try:
        _ = reader.config
        findings.append(Finding("config.toml", True, "intact"))
    except InputError as error:
        findings.append(Finding("config.toml", False, str(error)))
    try:
        with open_plain(reader.path / "metrics.jsonl") as file:
            torn = sum(record is None for record in parsed_lines(file))
            left = os.fstat(file.fileno()).st_size - file.tell()
        found = "intact" if torn == 0 else f"{count(torn, 'line')} torn or damaged"
        found += f", and the remaining {memory(left)} not read" if left > 0 else ""
        findings.append(Finding("metrics.jsonl", torn == 0, found))
    except OSError as error:
        findings.append(Finding("metrics.jsonl", False, f"cannot be read: {error.strerror}"))
    saved = steps_saved(reader.path)
    for path in saved:
        wrong = damage(path)
        findings.append(Finding(path.name, wrong is None, wrong or "intact, every SHA-256 as recorded"))
    if not saved:
        found = "none: the run ended before its first one" if unsaved else "none"
        findings.append(Finding("checkpoints", False, found, begins if unsaved else "nothing to sample from"))
    return findings
