"""The settings of a run as a flat table, straight from config.toml: to validate five hundred configs takes seconds.

Most runs of a folder share most sections, letter for letter. So a file is parsed a section at a time, and each text of
a section only once; a file for which that is not safe is parsed whole.
"""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.config.keys import flatten
from engine.config.toml import MAX_BYTES, parse, read
from engine.errors import InputError
from engine.plain_files import read_plain

_HEADER = re.compile(rb"^(?=\[\w+\]\r?$)", re.MULTILINE)
_KEPT = 4096  # texts of sections


def config_table(path: Path) -> dict[str, Any]:
    """Dotted key → value.

    Raises:
        InputError: unreadable, too large, or not TOML.
    """
    try:
        raw = read_plain(path, MAX_BYTES)
    except OSError:
        return flatten(read(path))  # says why
    if len(raw) > MAX_BYTES or b'"""' in raw or b"'''" in raw:
        return flatten(read(path))
    sections = _HEADER.split(raw)
    names = [section.partition(b"]")[0][1:].decode("ascii", "replace") for section in sections[1:]]
    try:
        tables = [_section(section) for section in sections]
    except InputError:
        return flatten(read(path))
    above = {key.partition(".")[0] for key in tables[0]}
    if len(set(names)) < len(names) or above.intersection(names):  # TOML forbids both: let the parser say so
        return flatten(read(path))
    return {key: value for table in tables for key, value in table.items()}


@lru_cache(_KEPT)
def _section(raw: bytes) -> dict[str, Any]:
    return flatten(parse(raw, "config.toml"))
