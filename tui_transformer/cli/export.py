"""`export`: runs written down for other tools. Where each went is the answer; nothing is sent anywhere by itself."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from engine.clean import clean_line
from engine.command_line import RUNS
from engine.errors import InputError, nearest, one_of, refused
from engine.runs.reader import RunReader
from tui_transformer.cli.options import Json, RunsDir
from tui_transformer.cli.output import ExitCode, answer, emit, loading, say, stamp
from tui_transformer.lab.analysis.export import save
from tui_transformer.lab.exports.formats import FORMATS, TEXTS, TOOLS
from tui_transformer.lab.exports.recorded import ExportedRun

FOLDER = Path("exports")  # where tools' files go unless --out says otherwise


def export(
    runs: Annotated[list[str], typer.Argument(help="Runs' names, paths, or `last`.")],
    to: Annotated[str, typer.Option("--to", help="csv, json, tensorboard, wandb, mlflow or huggingface.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A folder; for csv and json, a file too.")] = None,
    checkpoint: Annotated[str, typer.Option("--checkpoint", help="best, last, or a step: whose weights.")] = "best",
    json: Json = False,
    runs_dir: RunsDir = RUNS,
) -> int:
    if to not in FORMATS:
        raise InputError(f"--to {to[:40]!r}: must be {one_of(FORMATS)}{nearest(to, FORMATS)}")
    found = {reader.path.resolve(): reader for reader in (RunReader.resolve(run, runs_dir) for run in runs)}
    chosen = [ExportedRun(reader.path) for reader in found.values()]
    for run in chosen:
        _ = run.config  # a damaged one is told before anything is written
        stamp(run)
    if to in TEXTS:
        return _write_text(chosen, to, out, json)
    folder = out if out is not None else FOLDER / to
    for run in chosen:
        with loading(f"writing {run.name} for {to}"):
            try:
                where, next_step = TOOLS[to].write(run, folder, checkpoint)
            except OSError as error:
                raise refused(f"{error.filename or folder} cannot be written", error) from None
        if json:
            emit({"kind": "export", "run": run.name, "to": to, "where": str(where), "next": next_step})
        else:
            say(next_step)
            answer(clean_line(str(where)), flush=True)
    return ExitCode.DONE


def _write_text(runs: Sequence[ExportedRun], to: str, out: Path | None, as_json: bool) -> int:
    text = TEXTS[to].write(runs)
    if out is None:
        if as_json:
            raise InputError("--json says where a file went: name it with --out, or leave --json out")
        sys.stdout.write(text)
        return ExitCode.DONE
    path = out / f"metrics.{to}" if out.is_dir() or not out.suffix else out
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(f"{path.parent} cannot be made", error) from None
    save(text, path)
    if as_json:
        emit({"kind": "export", "runs": [run.name for run in runs], "to": to, "where": str(path)})
    else:
        say(f"{len(runs):,} run{'' if len(runs) == 1 else 's'} written to {path}")
    return ExitCode.DONE
