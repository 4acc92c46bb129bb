"""The settings in which runs differ; bookkeeping is no difference."""

from collections.abc import Iterator, Sequence
from typing import Any

from engine.config.keys import all_keys, is_bookkeeping
from engine.runs.lineage import INIT_FROM
from tui_transformer.lab.analysis.entry import Entry

NAMES = {INIT_FROM: "from"}


def settings(entries: Sequence[Entry]) -> list[str]:
    """Every dotted key that any of these runs has, in the order of the config; keys of later versions at the end."""
    present = set().union(*(entry.config for entry in entries))
    known = [key for key in all_keys() if key in present]
    return [*known, *sorted(present.difference(known))]


def differing(entries: Sequence[Entry]) -> list[str]:
    """The keys whose values are not the same in all these runs; a damaged config counts as none."""
    configs = [entry.config for entry in entries if entry.config]
    if len(configs) < 2:
        return []
    first, rest = configs[0], configs[1:]
    keys = (key for key in settings(entries) if not is_bookkeeping(key))
    return [key for key in keys if any(config.get(key) != first.get(key) for config in rest)]


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """Each key's last part, or all of it where that says which of several is meant; some have a better name."""
    lasts = [NAMES.get(key, key.rpartition(".")[2]) for key in keys]
    return {key: last if lasts.count(last) == 1 else key for key, last in zip(keys, lasts, strict=True)}


def against(entry: Entry, baseline: Entry) -> Iterator[tuple[str, Any, Any]]:
    """What a run changes: key, its value, the baseline's."""
    for key in differing([entry, baseline]):
        yield key, entry.config.get(key), baseline.config.get(key)
