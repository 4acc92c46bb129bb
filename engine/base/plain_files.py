"""Open untrusted files: regular files only, since a pipe or a device would block a reader for ever."""

import errno
import os
import stat
from pathlib import Path
from typing import IO

from engine.base.errors import InputError
from engine.base.language import tr


def open_regular_file(path: Path) -> IO[bytes]:
    """Open a file for reading bytes; raise `OSError` if it cannot be read or is not a regular file."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, tr("is not a regular file"), str(path))
    return os.fdopen(handle, "rb")


def read_regular_file(path: Path, size_limit: int) -> bytes:
    """Return the bytes of a file; raise `OSError` as `open_regular_file`, or if it has more than `most` bytes."""
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
                message = tr(
                    "{path}: is a link or not a regular file, so writes would go elsewhere; put the file itself there",
                    path=path,
                )
                raise InputError(message)
