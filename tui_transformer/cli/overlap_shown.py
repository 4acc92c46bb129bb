"""`data show` for any corpus: how much of its held-out data also appears in its training split."""

from collections.abc import Iterator, Sequence
from typing import Any

from engine.data.overlap import Overlap
from engine.evaluation.alarms import overlapping


def overlap_facts(found: Sequence[Overlap]) -> dict[str, Any]:
    """By split, and for documents by kind of held-out data, as in data.json."""
    kinds = {one.of for one in found}
    return {one.split if len(kinds) == 1 else f"{one.of}-{one.split}": one.to_json() for one in found}


def overlap_lines(found: Sequence[Overlap]) -> Iterator[tuple[str, str]]:
    """A label and a sentence for each held-out split; not sanitized."""
    for one in found:
        yield "⚠ OVERLAP" if one.much else "overlap", overlapping(one).why
