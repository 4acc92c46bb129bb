"""Errors for invalid input: one line that names what, where, and what would be valid."""

import difflib
import errno
from collections.abc import Iterable

from engine.base.language import Message, tr

# Why the system refuses a file, translated when it is shown.
SYSTEM_ERRORS = (
    Message("No such file or directory"),
    Message("Permission denied"),
    Message("Operation not permitted"),
    Message("Not a directory"),
    Message("Is a directory"),
    Message("File exists"),
    Message("File name too long"),
    Message("No space left on device"),
    Message("Disk quota exceeded"),
    Message("Input/output error"),
    Message("Read-only file system"),
    Message("Too many open files"),
    Message("Too many levels of symbolic links"),
    Message("Cannot allocate memory"),
    Message("Resource temporarily unavailable"),
    Message("Directory not empty"),
    Message("embedded null byte"),
    Message("Could not determine home directory."),
)


class InputError(Exception):
    """Invalid user input: shown as one line, in the language in use, without a traceback, exit code 2."""

    def __str__(self) -> str:
        return " ".join(tr(self.args[0]).split())


DISK_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # no change of input fixes these


class MachineFault(InputError):
    """A full or broken disk, or no process: also one line, but the input is fine, so exit code 1."""


class RunTakenOver(InputError):
    """Another process has taken over the run that this one was writing: also one line, exit code 3."""


def write_error(what: str, error: OSError) -> InputError:
    """Return the one-line error for a failed write (`what`); a `MachineFault` if the disk is at fault."""
    kind = MachineFault if error.errno in DISK_ERRNOS else InputError
    return kind(Message("{what}: {reason}", what=what, reason=reason(error)))


def reason(error: Exception) -> str:
    """Return why the system refused."""
    return Message((isinstance(error, OSError) and error.strerror) or str(error))


def process_start_error(error: OSError, before: str = "") -> MachineFault:
    """Return the one-line error for a process that could not be started; `before` says what has already been done."""
    where = f"{error.filename}: " if error.filename else ""
    return MachineFault(
        Message(
            "{before}no process could be started: {where}{strerror}", before=before, where=where, strerror=reason(error)
        )
    )


def invalid_path_error(corpus: str, error: Exception) -> InputError:
    """Return the error for a corpus that is neither a name nor a possible path: too long, or with a zero byte."""
    return InputError(Message("corpus '{corpus}': not a valid path: {why}", corpus=corpus[:80], why=reason(error)))


def error_message(error: BaseException) -> str:
    """Return an error's text as it is recorded: in English if it is a message."""
    first = error.args[0] if error.args else ""
    return first if isinstance(first, Message) else str(error)


def damage_description(error: Exception) -> str:
    """Return what is wrong with a record, in plain words instead of an exception's."""
    if isinstance(error, KeyError):
        return tr("it has no '{args}'", args=str(error.args[0])[:80]) if error.args else tr("a field is missing")
    return tr("a value has the wrong type")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `"; did you mean 'x'?"` for the closest known spelling of a word, or the empty string."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.55)
    return tr("; did you mean '{found}'?", found=found[0]) if found else ""


def comma_separated(values: Iterable[str]) -> str:
    """Return `"a, b, c"`, as the language in use separates them."""
    return tr(", ").join(values)


def join_or(values: Iterable[str]) -> str:
    """Return `"a, b or c"`."""
    *items, last = map(str, values)
    return tr("{items} or {last}", items=comma_separated(items), last=last) if items else last


def join_and(values: Iterable[str]) -> str:
    """Return `"a, b and c"`."""
    *items, last = map(str, values)
    return tr("{items} and {last}", items=comma_separated(items), last=last) if items else last
