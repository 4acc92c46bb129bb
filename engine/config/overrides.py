"""`--set model.n_heads=2`: a dotted key and a TOML value from the command line."""

import re
import tomllib
from collections.abc import Iterable
from typing import Any

from engine.config.keys import all_keys
from engine.config.toml import unknown_key
from engine.errors import InputError

_WHOLE = re.compile(r"[+-]?[0-9]+[eE]\+?[0-9]+")  # 1e3, which TOML reads as a float


def parse_override(text: str) -> dict[str, Any]:
    """`a.b=c` as nested tables. The value is TOML; what is not TOML is taken as text (`position=rope`).

    Raises:
        InputError: no `=`, or a key that does not exist.
    """
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise InputError(f"--set {text[:80]!r}: write KEY=VALUE, e.g. --set model.n_heads=2")
    if key not in all_keys():
        raise InputError(f"--set {text[:80]}: {unknown_key(key)}")
    nested: dict[str, Any] = {}
    table = nested
    *sections, last = key.split(".")
    for section in sections:
        table = table.setdefault(section, {})
    table[last] = parse_value(value.strip())
    return nested


def parse_overrides(texts: Iterable[str]) -> list[dict[str, Any]]:
    """Every `--set` of a command line, in order."""
    return [parse_override(text) for text in texts]


def parse_value(text: str) -> Any:
    """A TOML value; what is not TOML is taken as text."""
    if len(text) > 10_000:
        raise InputError(f"--set: the value {text[:40]!r}… is longer than 10,000 characters")
    try:
        value = tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
        return int(value) if _WHOLE.fullmatch(text) and abs(float(value)) < 1e15 else value
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return text
