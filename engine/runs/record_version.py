"""The version of a run's records: `schema` is a file's format, this is the meaning of its numbers.

Raise `RECORD_VERSION` when a recorded number is redefined, and name the number here. `records` in run.json is the
version that a run began with, 1 if missing. `verify` does not report a redefined number as different, and `compare`
does not compare it to new ones.
"""

from collections.abc import Mapping

RECORD_VERSION = 3

# Version -> "" (all runs), an objective, or an objective and a tokenizer -> the record fields or checks that this
# version redefines.
REDEFINED: Mapping[int, Mapping[str, frozenset[str]]] = {
    2: {
        # FLOPs of xl, linear and windowed attention; memory by what each attention backend keeps.
        "": frozenset({"flops_per_token", "memory_bytes"}),
        # Only places with their evidence in the window; the floor reachable at this context and stride.
        "next-token": frozenset({"excess", "probes", "probe_places", "by_distance"}),
        # A translation's length limit follows from its own source, not from the longest one beside it.
        "translation": frozenset({"bleu", "chrf", "exact_match", "probes", "translation"}),
    },
    3: {
        # Whole lines, documents and rows count, after NFKC; every task has a bound.
        "": frozenset({"overlap", "plausible", "shortcut", "decoding"}),
        # Spelling a rare word costs bits, and predicting `<unk>` is never right.
        "next-token words": frozenset({"accuracy", "bits_per_character", "bits_per_byte", "word_perplexity"}),
        **{f"{one} words": frozenset({"accuracy"}) for one in ("masked", "copy", "reverse", "continuation", "shifted")},
        # Byte pairs show who is named first, and no constant answer may beat the chance of `order`.
        "classification": frozenset({"unordered", "chance"}),
    },
}


def redefined_fields(version: int, objective: str, tokenizer: str = "") -> frozenset[str]:
    """Return what was redefined since a version of the records, for an `objective.kind` and a `data.tokenizer`."""
    later = [fields for number, fields in REDEFINED.items() if number > version]
    runs = ("", objective, f"{objective} {tokenizer}")
    return frozenset[str]().union(*(fields.get(kind, frozenset()) for fields in later for kind in runs))
