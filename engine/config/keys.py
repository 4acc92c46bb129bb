"""Dotted keys (`model.n_heads`): which exist, which are bookkeeping, and how two configs differ in them."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from engine.config.schema import RunConfig
from engine.config.sections import Section


def _walk(section: type[Section], prefix: str) -> Iterator[tuple[str, bool]]:
    for name, field in section.model_fields.items():
        key = prefix + (field.alias or name)
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            yield from _walk(kind, key + ".")
        else:
            extra = field.json_schema_extra
            yield key, isinstance(extra, dict) and bool(extra.get("bookkeeping"))


@cache
def all_keys() -> dict[str, bool]:
    """Every dotted key of a config, and whether it is bookkeeping."""
    return dict(_walk(RunConfig, ""))


def is_bookkeeping(key: str) -> bool:
    """True if the key does not change what is learned."""
    return all_keys().get(key, False)


def flatten(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one flat mapping of dotted keys."""
    flat: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def diff(a: RunConfig, b: RunConfig, *, with_bookkeeping: bool = False) -> dict[str, tuple[Any, Any]]:
    """The settings that differ: dotted key → (value in a, value in b); None where a key is unset."""
    left, right = flatten(a.dump()), flatten(b.dump())
    return {
        key: (left.get(key), right.get(key))
        for key in all_keys()
        if left.get(key) != right.get(key) and (with_bookkeeping or not is_bookkeeping(key))
    }
