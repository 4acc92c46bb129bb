"""What became of one claim of a run: confirmed, different, or not to be checked here. No torch."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from engine.measures import MEASURES
from engine.runs.files import line
from engine.runs.flat import flat


class Result(StrEnum):
    CONFIRMED = "confirmed"
    DIFFERS = "differs"
    UNCHECKED = "unchecked"


@dataclass(frozen=True)
class Difference:
    """A value that is not what the run says."""

    what: str  # which value, e.g. `loss at step 500`.
    recorded: Any  # what the run says; None where it says nothing
    found: Any  # what was found instead; None where there is nothing


@dataclass(frozen=True)
class Finding:
    """A claim and its result; `text` says what was compared, how closely it agrees, or why it could not be checked."""

    claim: str
    result: Result
    text: str
    differences: tuple[Difference, ...] = ()

    def to_json(self) -> Mapping[str, Any]:
        return asdict(self) | {"result": self.result.value}


class Unknown(Exception):
    """A claim cannot be checked here; says why."""


@dataclass(frozen=True)
class Outcome:
    """What a claim's function returns: what agrees, and what does not."""

    text: str
    differences: tuple[Difference, ...] = ()


CLOCKS = frozenset(("seconds", "tokens_per_second", "device_load", "memory_bytes"))  # what no repetition can repeat
# Field → (relative, absolute) tolerance elsewhere than where the run was made.
TOLERANCES: Mapping[str, tuple[float, float]] = {
    **{measure.key: measure.tolerance for measure in MEASURES if not measure.probe},
    "probes": (0.0, 0.05),
    "floor": (0.0, 1e-9),
    "profile": (2e-3, 1e-3),
    "grad_norm": (2e-3, 0.0),
    "lr": (1e-12, 0.0),
}
COARSE = 10.0  # times as much where products are rounded to bf16 or TF32


def as_recorded(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as it would be read back from its file."""
    read: dict[str, Any] = json.loads(line(dict(record)))
    return read


def same_value(field: str, recorded: Any, found: Any, *, exact: bool, factor: float = 1.0) -> bool:
    """Return whether two values of a field agree: to the last bit if `exact`, else within a tolerance.

    What stands before the first dot of `field` names the tolerance, and `factor` widens it.
    """
    if exact or not _is_number(recorded) or not _is_number(found):
        return type(recorded) is type(found) and bool(recorded == found)
    relative, absolute = TOLERANCES.get(field.split(".")[0], (0.0, 0.0))
    return math.isclose(recorded, found, rel_tol=relative * factor, abs_tol=absolute * factor)


def differences(
    recorded: Mapping[str, Any],
    found: Mapping[str, Any],
    where: str = "",
    *,
    exact: bool,
    factor: float = 1.0,
    skip: frozenset[str] = CLOCKS,
) -> list[Difference]:
    """Return where a record differs from the same record computed now; fields that it lacks are no difference.

    Args:
        recorded: from the run.
        found: computed now.
        where: said with each difference, e.g. `at step 500`.
        exact: to the last bit.
        factor: widens the tolerances.
        skip: fields that are left out.
    """
    now = dict(flat(as_recorded(found)))
    return [
        Difference(f"{field} {where}".strip(), value, now.get(field))
        for field, value in flat(recorded)
        if field.split(".")[0] not in skip and not same_value(field, value, now.get(field), exact=exact, factor=factor)
    ]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
