"""The floors of a run's text, from its data.json: the loss of a perfect predictor. Pure."""

from dataclasses import dataclass

from engine.runs.records import DataFacts
from engine.runs.records import Floor as FloorFacts


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


def floors(data: object) -> tuple[Floor, ...]:
    """The floors in data.json, with the one that `excess` refers to first; runs of earlier versions have only one.

    Args:
        data: `DataFacts`, or the parsed JSON of that file.
    """
    found = data.floor if isinstance(data, DataFacts) else DataFacts.read(data).floor
    if found is None:
        return ()
    reachable = found.reachable or FloorFacts()
    known = ((reachable, reachable.context, reachable.stride), (found, 0, 0))
    return tuple(Floor(one.nats_per_char, one.se, *at) for one, *at in known if one.nats_per_char is not None)
