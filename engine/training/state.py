"""Everything a run would need to go on as if nothing had happened, in one place."""

from dataclasses import asdict, dataclass, field
from typing import Any

SCHEMA = 1


@dataclass
class TrainerState:
    """What changes while training, besides weights and optimizer moments.

    Random numbers need no state: every draw is seeded by (run seed, purpose, step, micro-batch).
    """

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best_step: int | None = None
    best_loss: float | None = None
    evaluations_since_best: int = 0
    # The train record being gathered: Σ nll and scored tokens since the last one.
    interval_nll: float = 0.0
    interval_tokens: int = 0
    interval_seconds: float = 0.0
    offsets: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain data for state.json."""
        return {"schema": SCHEMA, **asdict(self)}
