"""Run names: an allow-list, so that no name escapes the runs folder or confuses a shell."""

import os
import re
from pathlib import Path

from engine.base.errors import InputError
from engine.base.language import Message

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}\Z")
LAST = "last"


def check_name(name: str) -> str:
    """Return the name; `InputError` for other characters, a leading dot, `last`, or over 100 characters."""
    if name == LAST:
        raise InputError(Message("run name 'last': reserved for the newest run; choose another, e.g. 'run-1'"))
    if not _NAME.match(name):
        message = Message(
            "run name {name!r}: use up to 100 letters, digits, '.', '_' and '-', not starting with a dot, "
            "e.g. 'win16-seed2'",
            name=name[:80],
        )
        raise InputError(message)
    return name


def free_name(root: Path, wanted: str) -> str:
    """Return `wanted`, or `wanted-2`, `wanted-3` … if that run exists."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", wanted).strip(".-")[:80] or "run"
    stem = "run" if stem == LAST else stem
    name, count = stem, 1
    while os.path.exists(root / name):  # noqa: PTH110  (False for a path too long; creating it will say so)
        count += 1
        name = f"{stem}-{count}"
    return name
