"""Files in the user's cache folder: written whole or not at all, and losing one costs time only."""

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """TUI_TRANSFORMER_CACHE, or the platform's cache folder."""
    own = os.environ.get("TUI_TRANSFORMER_CACHE")
    return Path(own) if own else user_cache_path("tui-transformer")


def store(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Put a file in its place: a reader sees all of it or nothing. No room or no permission is no failure.

    Args:
        path: under the cache folder.
        write: writes the content to the file it is given.
    """
    staged: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".new", delete=False) as file:
            staged = Path(file.name)
            write(file)
            file.flush()
            os.fsync(file.fileno())
        staged.replace(path)
        staged = None
    except OSError:
        pass
    finally:
        if staged is not None:
            with contextlib.suppress(OSError):
                staged.unlink()
