"""`schema`: JSON schemas for the files on disk, so that other tools can read runs and studies."""

import json
from pathlib import Path
from typing import Annotated

import typer

from engine.base.errors import InputError, did_you_mean, join_or, write_error
from engine.base.language import Message, tr
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.output import print_answer


@command(260)
@examples(
    {
        "schema status.json": "Print the schema of one file.",
        "schema --out schemas": "Write all schemas to a folder.",
    }
)
def schema(
    file: Annotated[str | None, typer.Argument(help="A file name, such as status.json; defaults to all files.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write one FILE.schema.json per file into this folder.")
    ] = None,
) -> None:
    """Print the JSON schemas of run and study files, for other tools.

    Prints one JSON object keyed by file name, or the schema of a single file.

    The schema of a .jsonl file describes a single line. Readers should ignore unknown fields.
    """
    from pydantic import TypeAdapter

    from engine.runs.files import write_json
    from engine.runs.records import SCHEMAS
    from tui_transformer.lab.work.study import StudyFileModel
    from tui_transformer.lab.work.study_files import SUFFIX

    known = {**SCHEMAS, f"NAME{SUFFIX}": StudyFileModel}
    if file is not None and file not in known:
        raise InputError(
            Message(
                "no schema for '{file}'{nearest}",
                file=file[:80],
                nearest=did_you_mean(file, known) or tr("; choose {known}", known=join_or(known)),
            )
        )
    found = {name: TypeAdapter(kind).json_schema(by_alias=True) for name, kind in known.items() if file in (None, name)}
    if out is None:
        print_answer(json.dumps(found if file is None else found[file], indent=2))
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, one in found.items():
            write_json(out / f"{name}.schema.json", one)
            print_answer(str(out / f"{name}.schema.json"))
    except OSError as error:
        raise write_error(tr("cannot write {filename}", filename=error.filename or out), error) from None
