"""The version of a run's records: `schema` is a file's format, this is the meaning of its numbers.

Raise `RECORDS` when a recorded number is redefined, and name the number here. `records` in run.json is the version that
a run began with, 1 if missing. `verify` does not report a redefined number as different, and `compare` does not compare
it to new ones.
"""

from collections.abc import Mapping

RECORDS = 2

# Version -> objective ("" for all) -> the fields that this version redefines.
REDEFINED: Mapping[int, Mapping[str, frozenset[str]]] = {
    2: {
        # FLOPs of xl, linear and windowed attention; memory by what each attention backend keeps.
        "": frozenset({"flops_per_token", "memory_bytes"}),
        # Only places with their evidence in the window; the floor reachable at this context and stride.
        "next-token": frozenset({"excess", "probes", "probe_places", "by_distance"}),
        # A translation's length limit follows from its own source, not from the longest one beside it.
        "translation": frozenset({"bleu", "chrf", "exact_match", "probes", "translation"}),
    },
}


def redefined(version: int, objective: str) -> frozenset[str]:
    """Return the fields redefined since a version of the records, for an `objective.kind`."""
    later = [fields for number, fields in REDEFINED.items() if number > version]
    return frozenset[str]().union(*(fields.get(kind, frozenset()) for fields in later for kind in ("", objective)))
