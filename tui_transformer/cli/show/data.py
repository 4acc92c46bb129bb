"""`data list`, `show`, `fetch`: list the corpora, look inside one, and download it into the data folder."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from engine.base.clean import clean_line
from engine.base.command_line import command_line
from engine.base.errors import InputError, comma_separated, did_you_mean
from engine.base.language import Message, tr, trn
from engine.data import hub
from engine.data.catalogue import KINDS, kind_of, load_corpus
from engine.data.corpus import data_folders, fetch_destination
from engine.data.known import CORPORA, local_path
from tui_transformer.cli.commands import CommandGroup, command, examples
from tui_transformer.cli.options import DataDir, Encoding, Json, corpus_names, require_encoding
from tui_transformer.cli.output import (
    is_terminal,
    pad_to_width,
    print_answer,
    print_columns,
    print_info,
    print_json,
    print_result,
    show_progress,
    stderr,
)

LONGEST = 4096  # characters, as of data.corpus
LABEL = 12  # columns
# How a file's hash was checked, and what that proves.
CHECKED = {
    "known": Message("SHA-256 matches"),
    "recorded": Message("SHA-256 unchanged since the first download"),
    "first use": Message(
        "SHA-256 {short}…, with no known value to check it against; recorded beside the file, and checked from now on"
    ),
    "unchecked": Message("SHA-256 {short}…, with no known value to check it against, and not recorded"),
}

app = typer.Typer(cls=CommandGroup, add_completion=False, rich_markup_mode=None)


@app.callback(invoke_without_command=True)
@command(280)
@examples({"data list": "List the named corpora."})
def data(context: typer.Context, json: Json = False, data_dir: DataDir = None) -> None:
    """The corpora to train on."""
    if context.invoked_subcommand is None:
        list_corpora(json=json, data_dir=data_dir)


@app.command("list")
@examples({"data list": "List the named corpora."})
def list_corpora(json: Json = False, data_dir: DataDir = None) -> None:
    """List the named corpora and where they are."""
    rows = [(tr("CORPUS"), tr("KIND"), tr("WHERE"), tr("DESCRIPTION"))]
    for entry in CORPORA.values():
        where = (
            str(local_path(entry, data_folders(data_dir)) or tr("not here")) if entry.needs_download else tr("built in")
        )
        rows.append((entry.name, entry.kind_label, where, tr(entry.description)))
        if json:
            record = {"name": entry.name, "kind": entry.kind, "languages": entry.languages, "licence": entry.licence}
            print_json(record | {"where": where, "description": entry.description})
    if not json:
        print_columns(rows)
        yours = "; ".join(kind.own_files_hint for kind in KINDS.values())
        print_answer("\n" + tr("or your own, with --corpus: {yours}", yours=yours))


@app.command()
@examples(
    {
        "data show playlets": "Show a built-in corpus.",
        "data show phrasebook": "Show sentence pairs; your own file works too.",
    }
)
def show(
    name: Annotated[
        str,
        typer.Argument(help="A corpus name, a text file, or a path to sentence pairs.", autocompletion=corpus_names),
    ],
    encoding: Encoding = "auto",
    json: Json = False,
    data_dir: DataDir = None,
) -> None:
    """Show a corpus: its sizes, characters, reference scores and how it begins."""
    from engine.config.sections import DataConfig

    if not 1 <= len(name) <= LONGEST:
        known = command_line("data", "list", data_dir=data_dir)
        raise InputError(
            Message(
                "CORPUS is {n:,} characters long: must be a name listed by `{known}`, or a path",
                n=len(name),
                known=known,
            )
        )
    require_encoding(encoding)
    kind = kind_of(name)
    with show_progress(tr("reading {name}", name=name[:80])):
        corpus = load_corpus(KINDS[kind].corpus_class, DataConfig(corpus=name, encoding=encoding), data_dir)
        entry = CORPORA.get(corpus.name)
        found = corpus.describe(entry.licence if entry else "")
    if json:
        about = {"name": corpus.name, "kind": kind, "version": corpus.version, "source": corpus.source}
        print_json(about | found.record)
        return
    print_answer(clean_line(comma_separated(map(tr, corpus.title_parts))))
    for label, line in found.lines:
        print_answer(clean_line(f"  {pad_to_width(label, LABEL)}{line}"))
    for line in found.examples:
        print_answer(line)


@app.command()
@examples({"data fetch tiny-shakespeare": "Download a corpus."})
def fetch(
    name: Annotated[str, typer.Argument(help="A corpus name, or hf:OWNER/NAME@REVISION.", autocompletion=corpus_names)],
    json: Json = False,
    data_dir: DataDir = None,
) -> None:
    """Download a corpus, by name or from the Hugging Face Hub, and check its SHA-256, where known."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

    from engine.data import download

    entry = CORPORA.get(name)
    wanted = hub.parse(name if entry is None else entry.hub)
    if wanted is not None:
        with show_progress(tr("fetching {corpus}", corpus=wanted.uri)):
            kept = hub.fetch(wanted, fetch_destination(data_dir))
        record = {"name": name, "path": str(kept.folder), "commit": kept.commit, "files": len(kept.files)}
        text = trn(
            "{name}: {n:,} file from commit {commit} in {path}",
            "{name}: {n:,} files from commit {commit} in {path}",
            len(kept.files),
            **record,
        )
        print_result(record, clean_line(text), as_json=json)
        if entry is not None and entry.licence and not json:
            print_info(tr("{name} may be used under {licence}", name=name, licence=entry.licence))
        return
    if entry is None:
        command = command_line("data", "list")
        hint = did_you_mean(name, CORPORA) or tr("; `{command_line}` lists them", command_line=command)
        raise InputError(Message("no corpus named '{name}'{hint}", name=name[:80], hint=hint))
    if not entry.remotes:
        print_info(tr("{name} is built in; it is generated when needed", name=name))
        return
    folder = fetch_destination(data_dir)
    files = []
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=stderr(), disable=not is_terminal(sys.stderr)) as bar:
        for remote in entry.remotes:
            before = download.recorded_sha256(folder / remote.file)
            task = bar.add_task(f"{entry.name}  {Path(remote.file).name}", total=None)

            def moved(done: int, size: int, task: TaskID = task) -> None:
                bar.update(task, completed=done)

            path = download.fetch(remote, folder, progress=moved)
            sha256 = download.sha256_of(path)
            if remote.sha256 is not None:
                checked = "known"
            elif before is not None:
                checked = "recorded"
            else:
                checked = "first use" if download.recorded_sha256(path) == sha256 else "unchecked"
            files.append((path, sha256, checked))
    for path, sha256, checked in files:
        record = {"name": name, "path": str(path), "sha256": sha256, "checked": checked}
        text = f"{name}: {path}, {tr(CHECKED[checked], short=sha256[:16])}"
        print_result(record, clean_line(text), as_json=json)
    if entry.licence and not json:
        print_info(tr("{name} may be used under {licence}", name=name, licence=entry.licence))
