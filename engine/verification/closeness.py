"""Whether two records say the same: to the last bit where the environment is the same, else within a tolerance.

The tolerances leave room for one model computed twice with sums taken in another order: with one and two threads, 40
steps of it differed by 4e-8 of the loss and 1e-7 of the gradient norm in fp32, by 1e-5 and 8e-4 in bf16. No torch.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from engine.measures import MEASURES
from engine.runs.files import line
from engine.runs.flat import flat
from engine.verification.finding import Difference

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
    """A record as it would come back from its file."""
    read: dict[str, Any] = json.loads(line(dict(record)))
    return read


def same_value(field: str, recorded: Any, found: Any, *, exact: bool, factor: float = 1.0) -> bool:
    """Whether two values of a field agree.

    Args:
        field: its name; what stands before a dot names the tolerance.
        recorded: what the run says.
        found: what was computed now.
        exact: to the last bit.
        factor: widens the tolerance.
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
    """What a record says otherwise than what was computed; what it does not say at all is no difference.

    Args:
        recorded: from the run.
        found: the same record computed now.
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
