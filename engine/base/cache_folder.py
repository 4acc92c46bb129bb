"""The user's cache folder: its files are written atomically, and losing one costs only time. No torch, no numpy."""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from platformdirs import user_cache_path

from engine.base.command_line import PROGRAM

CACHE_VARIABLE = "TUI_TRANSFORMER_CACHE"  # names a folder other than the platform's
_override: ContextVar[Path | None] = ContextVar("cache_folder", default=None)


@contextlib.contextmanager
def use_cache_folder(folder: Path) -> Iterator[None]:
    """Use another cache folder in this context, so that nothing cached earlier is found."""
    before = _override.set(folder)
    try:
        yield
    finally:
        _override.reset(before)


def cache_folder() -> Path:
    """Return the user's cache folder, which need not exist."""
    if (here := _override.get()) is not None:
        return here
    own = os.environ.get(CACHE_VARIABLE)
    return Path(own) if own else user_cache_path(PROGRAM)


def try_write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Put a file in place atomically. A full disk or missing permission is not an error."""
    staged = path.with_name(f".{os.urandom(8).hex()}.new")
    with contextlib.suppress(OSError):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with staged.open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            staged.replace(path)
        finally:
            staged.unlink(missing_ok=True)
