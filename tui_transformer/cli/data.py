"""`data list | show`: which corpora there are, and what is in one."""

from pathlib import Path
from typing import Any

from engine.command_line import command_line
from engine.data.catalogue import catalogue, kind_of
from engine.data.entry import CorpusEntry, data_folders
from engine.errors import InputError
from tui_transformer.cli.columns import print_columns
from tui_transformer.cli.exit_codes import ExitCode
from tui_transformer.cli.output import answer, emit

LONGEST = 4096  # characters, as of data.corpus


def _where(entry: CorpusEntry[Any], data_dir: Path | None) -> str:
    if not entry.remotes:
        return "built in"
    return str(entry.found(data_folders(data_dir)) or "not here")


def list_command(*, as_json: bool, data_dir: Path | None) -> int:
    """A line a corpus: its name, of what kind it is, where it is, what it is."""
    entries = catalogue().values()
    if as_json:
        for entry in entries:
            record = {"name": entry.name, "kind": entry.kind, "languages": entry.languages, "licence": entry.licence}
            emit(record | {"where": _where(entry, data_dir), "description": entry.description})
        return ExitCode.DONE
    rows = [(entry.name, entry.words, _where(entry, data_dir), entry.description) for entry in entries]
    print_columns([("CORPUS", "KIND", "WHERE", "WHAT IT IS"), *rows])
    answer(
        "\nand yours, by --corpus: any UTF-8 text file; pairs.tsv, text.en,text.de or a folder of sentence pairs; "
        "a folder with documents.txt"
    )
    return ExitCode.DONE


def show_command(name: str, *, as_json: bool, data_dir: Path | None) -> int:
    """What is in a corpus: a name, or a path as a run takes it."""
    if not 1 <= len(name) <= LONGEST:
        known = command_line("data", "list", data_dir=data_dir)
        raise InputError(f"CORPUS has {len(name):,} characters: must be a name that `{known}` lists, or a path")
    kind = kind_of(name)
    if kind == "documents":
        from tui_transformer.cli.documents_shown import show_documents

        return show_documents(name, as_json=as_json, data_dir=data_dir)
    if kind == "pairs":
        from tui_transformer.cli.pairs_shown import show_pairs

        return show_pairs(name, as_json=as_json, data_dir=data_dir)
    from tui_transformer.cli.text_shown import show_text

    return show_text(name, as_json=as_json, data_dir=data_dir)
