"""Manage runs: rename, delete, and write notes and tags."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from engine.base.errors import InputError, reason, write_error
from engine.base.language import Message, tr
from engine.base.plain_files import require_regular_files
from engine.runs.files import SCHEMA, write_json
from engine.runs.names import check_name
from engine.runs.reader import LIVE_STATES, RunReader
from engine.runs.records import Notes, read_file

LONGEST_NOTE = 10_000  # characters
LONGEST_TAG = 50
MOST_TAGS = 50
IN_USE = Message("in use")

# Errors for a link and for a live run, by what was attempted.
RENAME_REFUSALS = (
    Message("run '{name}' is a link to {path}; rename it there"),
    Message("run '{name}' is {state}; stop it before you rename it"),
)
DELETE_REFUSALS = (
    Message("run '{name}' is a link to {path}; delete it there"),
    Message("run '{name}' is {state}; stop it before you delete it"),
)


@contextmanager
def _locked_run(reader: RunReader, refusals: tuple[str, str]) -> Iterator[None]:
    """Hold the run's lock, so that nobody trains it meanwhile; `InputError` if it is alive, or a link."""
    if reader.path.is_symlink():
        raise InputError(Message(refusals[0], name=reader.name, path=str(reader.path.resolve())[:200]))
    lock = FileLock(reader.path / ".lock", timeout=0, thread_local=False)
    state = reader.state
    try:
        lock.acquire()
    except Timeout:
        state = state if state in LIVE_STATES else IN_USE
    try:
        if state in (*LIVE_STATES, IN_USE):  # perhaps of another host, or about to be claimed
            raise InputError(Message(refusals[1], name=reader.name, state=tr(state)))
        yield
    finally:
        lock.release()


def rename(reader: RunReader, name: str) -> Path:
    """Rename a run and its folder; `InputError` if it is alive, or the name is invalid or taken."""
    target = reader.path.parent / check_name(name)
    with _locked_run(reader, RENAME_REFUSALS):
        if target.exists():
            raise InputError(
                Message(
                    "run '{name}' already exists in {parent}; choose another name", name=name, parent=reader.path.parent
                )
            )
        try:
            reader.path.rename(target)
        except OSError as error:
            message = Message("run '{name}' cannot be renamed: {strerror}", name=reader.name, strerror=reason(error))
            raise InputError(message) from None
    return target


def delete(reader: RunReader) -> None:
    """Delete a run with its checkpoints, unlisting it first, so that a half-deleted run never looks like a run."""
    grave = reader.path.parent / f".deleted-{reader.name}"
    with _locked_run(reader, DELETE_REFUSALS):
        try:
            if grave.is_symlink() or grave.is_file():
                grave.unlink()
            shutil.rmtree(grave, ignore_errors=True)  # left by an interrupted deletion
            reader.path.rename(grave)
            shutil.rmtree(grave)
        except OSError as error:
            message = Message("run '{name}' cannot be deleted: {strerror}", name=reader.name, strerror=reason(error))
            raise InputError(message) from None


def check_tag(tag: str) -> str:
    """Return the tag; `InputError` if it is empty, too long, or unprintable."""
    if not tag.strip() or len(tag) > LONGEST_TAG or not tag.isprintable():
        raise InputError(
            Message(
                "tag {tag!r}: must have 1 to {longest_tag} printable characters", tag=tag[:60], longest_tag=LONGEST_TAG
            )
        )
    return tag


def write_notes(
    run: Path,
    *,
    text: str | None = None,
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
    see: Iterable[str] = (),
    unsee: Iterable[str] = (),
) -> Notes:
    """Change a run's note, its tags (`add`, `remove`) and the badges its owner has acknowledged (`see`, `unsee`).

    `InputError`: too long, an empty tag, a link, or not writable.
    """
    add, remove, unsee = tuple(add), set(remove), set(unsee)
    if text is not None and len(text) > LONGEST_NOTE:
        message = Message(
            "a note can have at most {longest_note:,} characters; this one has {n:,}",
            longest_note=LONGEST_NOTE,
            n=len(text),
        )
        raise InputError(message)
    for tag in add:
        check_tag(tag)
    require_regular_files(run)
    try:
        with FileLock(run / ".notes.lock", timeout=10):
            before = read_file(run, Notes)
            kept = [tag for tag in before.tags if tag not in remove]
            tags = tuple(dict.fromkeys([*kept, *(tag.strip() for tag in add)]))
            if len(tags) > MOST_TAGS:
                raise InputError(Message("a run can have at most {most_tags} tags", most_tags=MOST_TAGS))
            seen = tuple(dict.fromkeys([*(badge for badge in before.seen if badge not in unsee), *see]))
            notes = Notes(text=before.text if text is None else text, tags=tags, seen=seen)
            record = {"schema": SCHEMA, "text": notes.text, "tags": list(notes.tags)}
            write_json(run / Notes.file, record | ({"seen": list(seen)} if seen else {}))
    except OSError as error:
        raise write_error(tr("cannot write notes to {run}", run=str(run)[:200]), error) from None
    return notes
