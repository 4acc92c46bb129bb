"""`export`: runs written down for other tools. Where each went is the answer; nothing is sent anywhere by itself."""

import sys
from collections.abc import Sequence
from pathlib import Path

from engine.clean import clean_line
from engine.errors import InputError, nearest, one_of, refused
from engine.runs.reader import RunReader
from tui_transformer.cli.exit_codes import ExitCode
from tui_transformer.cli.output import answer, emit, say, stamp
from tui_transformer.cli.run import loading
from tui_transformer.lab.analysis.export import save
from tui_transformer.lab.exports.formats import FORMATS, TEXTS, TOOLS
from tui_transformer.lab.exports.recorded import ExportedRun

FOLDER = Path("exports")  # where tools' files go unless --out says otherwise


def export_command(
    runs: Sequence[str], *, to: str, out: Path | None, checkpoint: str, as_json: bool, runs_dir: Path
) -> int:
    """Write runs down.

    Args:
        runs: names, paths, or `last`.
        to: a key of `FORMATS`.
        out: a folder, or a file for a text; by default stdout for a text, and a folder under `exports` for a tool.
        checkpoint: whose weights, where weights are written.
        as_json: say where it went as JSON.
        runs_dir: where runs are.

    Raises:
        InputError: no such run, format or checkpoint, a client that is missing, or a place that cannot be written.
    """
    if to not in FORMATS:
        raise InputError(f"--to {to[:40]!r}: must be {one_of(FORMATS)}{nearest(to, FORMATS)}")
    found = {reader.path.resolve(): reader for reader in (RunReader.resolve(run, runs_dir) for run in runs)}
    chosen = [ExportedRun(reader.path) for reader in found.values()]
    for run in chosen:
        _ = run.config  # a damaged one is told before anything is written
        stamp(run)
    if to in TEXTS:
        return _write_text(chosen, to, out, as_json)
    folder = out if out is not None else FOLDER / to
    for run in chosen:
        with loading(f"writing {run.name} for {to}"):
            try:
                where, next_step = TOOLS[to].write(run, folder, checkpoint)
            except OSError as error:
                raise refused(f"{error.filename or folder} cannot be written", error) from None
        if as_json:
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
