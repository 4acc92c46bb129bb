"""A study, and the queue of a device, have one runner at a time: the process that holds their lock."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from engine.base.errors import InputError, write_error
from engine.base.language import tr


@contextmanager
def be_only_runner(lock: Path, busy: str) -> Iterator[None]:
    """Hold a lock, which is released when this process ends, however it ends. Raises InputError if it cannot be
    written, or with the message `busy` if another process holds it.
    """
    try:
        held = FileLock(lock, timeout=0).acquire()
    except Timeout:
        raise InputError(busy) from None
    except OSError as error:
        raise write_error(tr("cannot write {filename}", filename=error.filename or lock.parent), error) from None
    with held:
        yield


def has_runner(lock: Path) -> bool:
    """Return whether a process holds a lock; a lock that cannot be written may be held by another user."""
    try:
        with FileLock(lock, timeout=0):
            return False
    except (Timeout, OSError):
        return True
