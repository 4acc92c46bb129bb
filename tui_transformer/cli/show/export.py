"""`export`: write runs for other tools and print where each went. Nothing is uploaded unless configured."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from engine.base.clean import clean_line
from engine.base.command_line import DEFAULT_RUNS_DIR
from engine.base.errors import InputError, did_you_mean, join_or, write_error
from engine.base.language import Message, tr, trn
from engine.runs.reader import RunReader
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import Json, RunsDir, run_names
from tui_transformer.cli.output import print_answer, print_badges, print_info, print_json, show_progress
from tui_transformer.lab.analysis.export import save
from tui_transformer.lab.analysis.lists import join_choices
from tui_transformer.lab.exports.formats import FORMATS, TEXTS, write
from tui_transformer.lab.exports.recorded import ExportedRun

FOLDER = Path("exports")  # default folder for tools' files


@command(250)
@examples(
    {
        "export demo no-pe-demo --to csv --out curves.csv": "Export the curves of two runs as CSV.",
        "export demo --to huggingface --checkpoint last": "Export a model for Hugging Face.",
        "export demo --to package": "Write a folder to hand in: source, data, results, report.",
    }
)
def export(
    runs: Annotated[list[str], typer.Argument(help="Run names, paths, or `last`.", autocompletion=run_names)],
    to: Annotated[str, typer.Option("--to", help=join_choices(FORMATS) + ".", autocompletion=lambda: list(FORMATS))],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help=Message("Output folder; for {texts}, a file works too.", texts=join_choices(TEXTS))
        ),
    ] = None,
    checkpoint: Annotated[
        str, typer.Option("--checkpoint", help="Which weights: best, last, average, ema, or a step.")
    ] = "best",
    json: Json = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
) -> None:
    """Export runs for another tool. Nothing leaves this machine unless your environment variables say so."""
    if to not in FORMATS:
        raise InputError(
            Message(
                "{option} {value!r}: must be {known}{nearest}",
                option="--to",
                value=to[:40],
                known=join_or(FORMATS),
                nearest=did_you_mean(to, FORMATS),
            )
        )
    found = {reader.path.resolve(): reader for reader in (RunReader.resolve(run, runs_dir) for run in runs)}
    chosen = [ExportedRun(reader.path) for reader in found.values()]
    for run in chosen:
        _ = run.config  # report a damaged one before writing anything
        print_badges(run)
    if to in TEXTS:
        text = TEXTS[to](chosen)
        if out is None and json:
            raise InputError(Message("--json reports where the file was written: add --out, or leave out --json"))
        if out is None:
            sys.stdout.writelines(text)
            return
        path = out / f"metrics.{to}" if out.is_dir() or not out.suffix else out
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(tr("cannot create {parent}", parent=path.parent), error) from None
        save(text, path)
        if json:
            print_json({"kind": "export", "runs": [run.name for run in chosen], "to": to, "where": str(path)})
        else:
            print_info(trn("{n:,} run written to {path}", "{n:,} runs written to {path}", len(chosen), path=path))
        return
    folder = out if out is not None else FOLDER / to
    for run in chosen:
        with show_progress(tr("writing {name} for {to}", name=run.name, to=to)):
            try:
                where, next_step = write(to, run, folder, checkpoint)
            except OSError as error:
                raise write_error(
                    tr("{filename} cannot be written", filename=error.filename or folder), error
                ) from None
        if json:
            print_json({"kind": "export", "run": run.name, "to": to, "where": str(where), "next": next_step})
        else:
            print_info(next_step)
            print_answer(clean_line(str(where)), flush=True)
