"""The floors of a run's text, from its data.json: the loss of a perfect predictor. Pure."""

from dataclasses import dataclass
from typing import Any

from tui_transformer.lab.records.facts import number, table, whole


@dataclass(frozen=True)
class Floor:
    """The loss of a predictor that knows the grammar.

    Args:
        nats: per character.
        se: standard error; None if it was not recorded.
        context: characters that it sees at most; 0 for the whole past.
        stride: characters between two windows.
    """

    nats: float
    se: float | None
    context: int = 0
    stride: int = 0

    @property
    def words(self) -> str:
        """`floor reachable at context 256, stride 128`, or `floor given the whole past`."""
        if not self.context:
            return "floor given the whole past"
        return f"floor reachable at context {self.context:,}, stride {self.stride:,}"

    @property
    def amount(self) -> str:
        """`0.3688 ± 0.0014`."""
        return f"{self.nats:.4f}" + (f" ± {self.se:.4f}" if self.se is not None else "")


def floors(data: Any) -> tuple[Floor, ...]:
    """The floors in data.json, with the one that `excess` refers to first; runs of earlier versions have only one."""
    found = table(table(data).get("floor"))
    reachable = table(found.get("reachable"))
    read = (_floor(reachable, whole(reachable.get("context")), whole(reachable.get("stride"))), _floor(found, 0, 0))
    return tuple(floor for floor in read if floor is not None)


def _floor(found: dict[str, Any], context: int, stride: int) -> Floor | None:
    nats = number(found.get("nats_per_char"))
    return None if nats is None else Floor(nats, number(found.get("se")), context, stride)
