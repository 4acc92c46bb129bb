"""Open untrusted files: regular files only, since a pipe or a device would block a reader for ever.

A process that trains another user's queued run opens only what that user may read as well.
"""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO

from engine.base.errors import InputError
from engine.base.language import Message, tr

OWNER_VARIABLE = "TUI_TRANSFORMER_OWNER"  # environment variable, USER-ID:FOLDER: whose queued run this process trains
PUBLIC_FOLDERS: list[Path] = []  # this account's copies of named corpora: they hold nothing private


def open_regular_file(path: Path) -> IO[bytes]:
    """Open a file for reading bytes; raise `OSError` if it cannot be read or is not a regular file."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, tr("is not a regular file"), str(path))
        _require_owner_may_read(path, os.fstat(handle))
    except OSError:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def _require_owner_may_read(path: Path, found: os.stat_result) -> None:
    """Raise `OSError` if this process trains another user's queued run, and that user may not read the file.

    Decided by owners and modes: the process itself may read more.
    """
    user, _, run = os.environ.get(OWNER_VARIABLE, "").partition(":")
    if not user:
        return
    real = Path(os.path.realpath(path))
    if any(real.is_relative_to(folder) for folder in (Path(run), *PUBLIC_FOLDERS)):
        return
    # The same file: nobody has put another one in its place meanwhile.
    if not (os.path.samestat(found, real.stat()) and may_read(int(user), real)):
        raise OSError(errno.EACCES, tr("may not be read by the owner of this queued run"), str(path))


def may_read(user: int, path: Path) -> bool:
    """Whether a user may read a file whose path has no links, by its mode and those of the folders above it."""
    import pwd

    groups = list[int]()
    with suppress(KeyError):  # a user of another machine: of no group known here
        account = pwd.getpwuid(user)
        groups = os.getgrouplist(account.pw_name, account.pw_gid)

    def permits(place: Path, bit: int) -> bool:
        found = place.stat()
        shift = 6 if found.st_uid == user else 3 if found.st_gid in groups else 0
        return bool(found.st_mode >> shift & bit)

    return user == 0 or (permits(path, 4) and all(permits(folder, 1) for folder in path.parents))


def read_regular_file(path: Path, size_limit: int) -> bytes:
    """Return the bytes of a file; raise `OSError` as `open_regular_file`, or if it has more than `size_limit` bytes."""
    with open_regular_file(path) as file:
        if os.fstat(file.fileno()).st_size > size_limit:
            raise OSError(errno.EFBIG, tr("is larger than {most:,} bytes", most=size_limit), str(path))
        return file.read(size_limit)


def require_regular_files(folder: Path) -> None:
    """Raise `InputError` if anything in a folder, at any depth, is a link: a write to it would go elsewhere."""
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(parent) / name
            try:
                mode = path.lstat().st_mode
            except OSError:  # deleted meanwhile
                continue
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                message = Message(
                    "{path}: is a link or not a regular file, so writes would go elsewhere; put the file itself there",
                    path=path,
                )
                raise InputError(message)
