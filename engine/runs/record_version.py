"""The version of a run's records: `schema` says how a file is written, this says what its numbers mean.

Raise `RECORDS` when a recorded number is defined anew, and name the number here. `run.json` keeps the version that a
run began with as `records`; a run without it is of version 1. A number that was defined otherwise is neither called
different by `verify` nor put beside a new one by `compare`.
"""

from collections.abc import Mapping
from typing import Any

RECORDS = 2

# Version -> objective, "" for all of them -> the fields that this version defines anew.
REDEFINED: Mapping[int, Mapping[str, frozenset[str]]] = {
    2: {
        # FLOPs of xl, linear and windowed attention; memory by what each attention backend keeps.
        "": frozenset({"flops_per_token", "memory_bytes"}),
        # Only places whose evidence the window shows; the floor that this context and stride can reach.
        "next-token": frozenset({"excess", "probes"}),
        # A translation's length limit follows from its own source, not from the longest one beside it.
        "translation": frozenset({"bleu", "chrf", "exact_match", "probes", "translation"}),
    },
}


def record_version(born: Mapping[str, Any]) -> int:
    """The version of a run's records.

    Args:
        born: the content of its run.json.
    """
    found = born.get("records", 1)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 1 else 1


def redefined(version: int, objective: str) -> frozenset[str]:
    """The fields that are defined otherwise now than in records of a version.

    Args:
        version: of the records.
        objective: what the run was trained on, `objective.kind`.
    """
    later = [fields for number, fields in REDEFINED.items() if number > version]
    return frozenset[str]().union(*(fields.get(kind, frozenset()) for fields in later for kind in ("", objective)))
