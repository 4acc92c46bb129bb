"""What differs between a run's records and what is found now, and how closely they must agree. No torch."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.base.language import tr
from engine.config.measures import MEASURES
from engine.runs.files import flat_items, json_line
from engine.runs.verdict import CheckResult, failed

LISTED = 4  # differences of a claim in its text
MAX_VALUE = 60  # characters of a value
Record = dict[str, Any]  # as in its file


@dataclass(frozen=True)
class Difference:
    what: str  # which value, e.g. `loss at step 500`.
    recorded: Any = None  # the recorded value; None if missing
    found: Any = None  # the value found; None if missing
    expected: bool = False  # `found` is the value that should have been recorded
    fault: str = ""  # what is wrong, where no two values say it

    def __str__(self) -> str:
        if self.fault:
            return tr("{name}: {text}", name=self.what, text=self.fault)
        values = {"what": self.what, "value": _shown(self.recorded), "value2": _shown(self.found)}
        if self.expected:
            return tr("{what}: recorded {value}, expected {value2}", **values)
        return tr("{what}: recorded {value}, found {value2}", **values)


def differing(found: Sequence[Difference]) -> CheckResult:
    """Return the result for a claim with at least one difference."""
    more = tr("; and {n} more", n=len(found) - LISTED) if len(found) > LISTED else ""
    return failed("; ".join(map(str, found[:LISTED])) + more, differences=tuple(found))


class Uncheckable(Exception):
    """A claim cannot be checked here; the message says why."""


Outcome = tuple[str, Sequence[Difference]]  # what was compared and how closely it agrees, and what differs


UNREPEATABLE_FIELDS = frozenset(("seconds", "tokens_per_second", "device_load", "memory_bytes"))
SUMMED_IN_ANY_ORDER = frozenset(("unigram", "bigram"))  # numpy adds up as fits the processor, even of one name
# Field → (relative, absolute) tolerance elsewhere than where the run was made.
TOLERANCES: Mapping[str, tuple[float, float]] = {
    **{measure.key: measure.tolerance for measure in MEASURES if not measure.is_probe},
    **dict.fromkeys(SUMMED_IN_ANY_ORDER, (1e-12, 0.0)),
    "probes": (0.0, 0.05),
    "floor": (0.0, 1e-9),
    "profile": (2e-3, 1e-3),
    "grad_norm": (2e-3, 0.0),
    "lr": (1e-12, 0.0),
}
COARSE = 10.0  # factor if products are rounded to bf16 or TF32


def as_recorded(record: Mapping[str, Any]) -> Record:
    read: Record = json.loads(json_line(record))
    return read


def same_value(field: str, recorded: Any, found: Any, *, exact: bool, factor: float = 1.0) -> bool:
    """Return whether two values of a field agree: to the last bit if `exact`, else within the tolerance, widened by
    `factor`, of the name before its first dot.
    """
    name = field.split(".")[0]
    exact = exact and name not in SUMMED_IN_ANY_ORDER
    if exact or not _is_number(recorded) or not _is_number(found):
        return type(recorded) is type(found) and bool(recorded == found)
    relative, absolute = TOLERANCES.get(name, (0.0, 0.0))
    return math.isclose(recorded, found, rel_tol=relative * factor, abs_tol=absolute * factor)


def differences(
    recorded: Mapping[str, Any],
    found: Mapping[str, Any],
    where: str = "",
    *,
    exact: bool,
    factor: float = 1.0,
    skip: frozenset[str] = UNREPEATABLE_FIELDS,
) -> list[Difference]:
    """Return the differences of a record from the same one computed now; fields that it lacks are no difference, nor
    are those of `skip`. `where` is appended to each, e.g. `at step 500`.
    """
    now = dict(flat_items(as_recorded(found)))
    return [
        Difference(f"{field} {where}".strip(), value, now.get(field))
        for field, value in flat_items(recorded)
        if field.split(".")[0] not in skip and not same_value(field, value, now.get(field), exact=exact, factor=factor)
    ]


def _shown(value: Any) -> str:
    text = tr("nothing") if value is None else str(value)
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
