"""What the engine says when its input is wrong: one line that names what, where, and what would be right."""

import difflib
import errno
from collections.abc import Iterable


class InputError(Exception):
    """Bad input from a person: shown as one line, without a traceback, exit code 2."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # no other input mends these


class MachineFault(InputError):
    """A full or broken disk, no process: one line as well, but nothing that was asked for is wrong, so exit code 1."""


def refused(what: str, error: OSError) -> InputError:
    """What a write came to, in a line.

    Args:
        what: was not possible, and where.
        error: what the system said.

    Returns:
        A `MachineFault` where the disk is at fault, otherwise an `InputError`: another place may do.
    """
    kind = MachineFault if error.errno in DISK else InputError
    return kind(f"{what}: {error.strerror or error}")


def no_process(error: OSError, before: str = "") -> MachineFault:
    """No process could be started, in a line.

    Args:
        error: what the system said.
        before: of which run, what has been done already.
    """
    where = f"{error.filename}: " if error.filename else ""
    return MachineFault(f"{before}no process could be started: {where}{error.strerror or error}")


def not_a_path(corpus: str, error: Exception) -> InputError:
    """A corpus that is neither a name nor what can be a file's: too long, or with a zero byte."""
    why = error.strerror if isinstance(error, OSError) else str(error)
    return InputError(f"corpus '{corpus[:80]}': not a path: {why}")


def damaged(error: Exception) -> str:
    """What is wrong with a record that was read, in plain words instead of an exception's."""
    if isinstance(error, KeyError):
        return f"it has no '{str(error.args[0])[:80]}'" if error.args else "a field is missing"
    return "a value has the wrong type"


def nearest(word: str, known: Iterable[str]) -> str:
    """`"; did you mean 'x'?"` for the closest known spelling, or the empty string.

    Args:
        word: what was written.
        known: every valid spelling.
    """
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.55)
    return f"; did you mean '{found[0]}'?" if found else ""


def one_of(values: Iterable[str]) -> str:
    """`"a, b or c"`: a list as a reader expects it."""
    items = [str(v) for v in values]
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} or {items[-1]}"
