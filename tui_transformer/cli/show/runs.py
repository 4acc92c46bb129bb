"""`runs`, `rename`, `delete`, `note`: list and manage the runs folder."""

import socket
import sys
import time
from collections.abc import Iterable
from itertools import islice
from typing import Annotated

import typer

from engine.base.clean import clean_line
from engine.base.command_line import DEFAULT_RUNS_DIR
from engine.base.errors import InputError, comma_separated
from engine.base.language import Message, tr
from engine.runs import manage
from engine.runs.reader import LOST_AFTER, UNKNOWN, RunReader, no_runs
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import Json, RunArgument, RunsDir, run_names
from tui_transformer.cli.output import is_terminal, print_columns, print_info, print_json, print_result
from tui_transformer.lab.records.badges import acknowledged_badges, badge, cell_text, mark_if_seen
from tui_transformer.lab.records.feed import DAMAGED, rows_oldest_first
from tui_transformer.lab.records.run_files import RunFiles
from tui_transformer.lab.records.run_view import RunRow
from tui_transformer.lab.records.seen import parse_warning_names

FROM = 6  # the column of origins
BLOCK = 200  # lines that are aligned together: the first are printed before the last runs are read
POLL_INTERVAL = 0.2  # seconds between polls


@command(160)
@examples({"runs": "List all runs.", "runs --json": "List all runs as JSON, for a program."})
def runs(json: Json = False, runs_dir: RunsDir = DEFAULT_RUNS_DIR) -> None:
    """List runs with their state, score and any problems."""
    some_started_from_others, listed = rows_oldest_first(runs_dir)
    widths, paused, head = list[int](), list[RunRow](), [_head()]
    while block := list(islice(listed, BLOCK)):
        described = [_described(row) for row in block]
        paused += [row for row in block if row.state == "paused" and row.reason]
        if json:
            for record, _ in described:
                print_json(record)
            continue
        cells = [*head, *(row for _, row in described)]
        if not some_started_from_others:
            cells = [(*row[:FROM], *row[FROM + 1 :]) for row in cells]
        widths, head = print_columns(cells, widths), []
    if not json:
        if head:
            print_info(no_runs(runs_dir))
        for row in paused:
            print_info(tr("{name} is paused: {why}", name=row.name, why=row.reason))


def _head() -> tuple[str, ...]:
    return tr("run"), tr("state"), tr("step"), tr("loss"), tr("perplexity"), tr("preset"), tr("from"), tr("checks")


def _described(row: RunRow) -> tuple[dict[str, object], tuple[str, ...]]:
    loss, state = row.loss if row.scored else None, UNKNOWN if row.state == DAMAGED else row.state
    elsewhere = row.live and row.host not in ("", socket.gethostname())
    record = {
        "run": row.name,
        "state": state,
        "reason": row.recorded_reason,
        "host": row.host,
        "device": row.device,
        "step": row.step,
        "steps": row.steps,
        "loss": loss,
        "perplexity": row.perplexity,
        "preset": row.preset,
        "from": row.origin and row.origin.model_dump(by_alias=True),
        "badges": list(row.badges),
        "checked": row.checked,
    }
    cells = (
        row.name,
        tr("{state} on {host}", state=tr(state), host=row.host) if elsewhere else tr(state),
        f"{row.step:,} / {row.steps:,}",
        "–" if loss is None else f"{loss:.4f}",
        "–" if row.perplexity is None else f"{row.perplexity:.3f}",
        str(row.preset),
        row.origin.label if row.origin is not None else "",
        cell_text(row.badges, checked=row.checked, seen=row.seen),
    )
    return record, cells


def _wait_for_liveness(readers: Iterable[RunReader]) -> None:
    """Wait: whether a run on another host is alive only shows after a while."""
    doubted = [reader for reader in readers if reader.liveness() == "unknown"]
    if doubted:
        names = comma_separated(clean_line(reader.name) for reader in doubted)
        print_info(
            tr(
                "{names}: on another machine; waiting up to {seconds:.0f} s for signs of activity",
                names=names,
                seconds=LOST_AFTER,
            )
        )
    while any(reader.liveness() == "unknown" for reader in doubted):
        time.sleep(POLL_INTERVAL)


@command(190)
@examples({"rename demo demo-1": "Rename a run."})
def rename(
    run: RunArgument,
    name: Annotated[str, typer.Argument(help="The new name.")],
    json: Json = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
) -> None:
    """Rename a run. Live runs cannot be renamed."""
    reader = RunReader.resolve(run, runs_dir)
    _wait_for_liveness([reader])
    path = manage.rename(reader, name)
    record = {"run": path.name, "was": reader.name, "path": str(path)}
    text = clean_line(tr("renamed {name} to {new_name}", name=reader.name, new_name=path.name))
    print_result(record, text, as_json=json)


@command(200)
@examples({"delete demo no-pe-demo": "Delete two runs (asks first)."})
def delete(
    run: Annotated[list[str], typer.Argument(help="Run names.", autocompletion=run_names)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")] = False,
    json: Json = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
) -> None:
    """Delete runs and their checkpoints. Live runs cannot be deleted."""
    readers = [RunReader.resolve(name, runs_dir) for name in run]
    names = comma_separated(reader.name for reader in readers)
    if not yes:
        if not is_terminal(sys.stdin):
            raise InputError(Message("deleting {names} cannot be undone; pass --yes to confirm", names=names))
        asked = tr("delete {names} with all checkpoints? [y/N] ", names=names)
        if input(asked).strip().lower() not in ("y", "yes"):
            return
    _wait_for_liveness(readers)
    for reader in readers:
        manage.delete(reader)
        print_result({"deleted": reader.name}, clean_line(tr("deleted {name}", name=reader.name)), as_json=json)


@command(210)
@examples(
    {
        'note demo "falls too slowly" --tag slow': "Write a note and add a tag.",
        "note demo --seen SUSPICIOUS": "Mark a warning as seen.",
        "note demo": "Show a run's notes and tags.",
    }
)
def note(
    run: RunArgument = "last",
    text: Annotated[str | None, typer.Argument(help="The new note; leave it out to show the current one.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag to add.")] = None,
    untag: Annotated[list[str] | None, typer.Option("--untag", help="A tag to remove.")] = None,
    seen: Annotated[
        list[str] | None, typer.Option("--seen", help="A warning to mark as seen, by its badge; it stays listed.")
    ] = None,
    unseen: Annotated[list[str] | None, typer.Option("--unseen", help="A warning to mark as unseen.")] = None,
    json: Json = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
) -> None:
    """Show or change a run's notes and tags, and which of its warnings are marked as seen."""
    reader = RunReader.resolve(run, runs_dir)
    if text is None and not (tag or untag or seen or unseen):
        notes = reader.notes
    else:
        see, unsee = parse_warning_names(reader, seen or []), parse_warning_names(reader, unseen or [])
        notes = manage.write_notes(reader.path, text=text, add=tag or [], remove=untag or [], see=see, unsee=unsee)
    known = acknowledged_badges(RunFiles(reader.path).badges, notes)
    parts = (
        notes.text,
        " ".join(f"#{tag}" for tag in notes.tags),
        " ".join(mark_if_seen(badge(n).display_name, seen=True) for n in known),
    )
    shown = "\n".join(part for part in parts if part)
    none = tr(
        "{name} has no notes; to add some: {command}",
        name=reader.name,
        command=reader.command("note", tr("what you saw"), "--tag", "good"),
    )
    record = {"run": reader.name, "text": notes.text, "tags": notes.tags} | ({"seen": known} if known else {})
    print_result(record, shown or none, as_json=json)
