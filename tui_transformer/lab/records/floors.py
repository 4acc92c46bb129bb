"""Loss floors of a run's text, from data.json: the loss of a perfect predictor. Pure."""

from dataclasses import dataclass

from engine.runs.records import DataFacts


@dataclass(frozen=True)
class Floor:
    """The loss of a predictor that knows the grammar."""

    nats: float  # per character
    se: float | None  # standard error; None if it was not recorded
    context: int = 0  # characters that it sees at most; 0 for the whole past
    stride: int = 0  # characters between window starts

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


def floors(data: DataFacts) -> tuple[Floor, ...]:
    """Return the floors in data.json, the one that `excess` refers to first; runs of earlier versions have only one."""
    past = data.floor
    if past is None:
        return ()
    reachable, found = past.reachable, []
    if reachable is not None and reachable.nats_per_char is not None:
        found.append(Floor(reachable.nats_per_char, reachable.se, reachable.context, reachable.stride))
    if past.nats_per_char is not None:
        found.append(Floor(past.nats_per_char, past.se))
    return tuple(found)
