"""Everything a run would need to go on as if nothing had happened, in one place."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

SCHEMA = 1


@dataclass
class TrainerState:
    """What changes while training, besides weights and optimizer moments, at a step boundary before its evaluation.

    Random numbers need no state: every draw is seeded by (run seed, purpose, step, micro-batch).
    """

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    # The validation records of the best, the newest and the averaged weights; evaluations since the best.
    best: dict[str, Any] | None = None
    last: dict[str, Any] | None = None
    average: dict[str, Any] | None = None
    evaluations_since_best: int = 0
    # The train record being gathered: Σ nll and scored tokens since the last one.
    interval_nll: float = 0.0
    interval_tokens: int = 0
    interval_seconds: float = 0.0
    # Pieces that a micro-batch is cut into because it did not fit into memory.
    pieces: int = 1
    # Length of each stream of the run directory, bytes.
    offsets: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain data for state.json."""
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, data: Any) -> "TrainerState":
        """The state as it was saved.

        Raises:
            ValueError: a piece is missing, unknown, or of another kind; a resumed run must not guess.
        """
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise ValueError("not a trainer state of this version")
        names = {f.name for f in fields(cls)}
        wrong = names ^ (data.keys() - {"schema"})
        if wrong:
            raise ValueError(f"'{min(wrong)}' is {'missing' if min(wrong) in names else 'unknown'}")
        fresh = cls()
        for name in names - {"best", "last", "average"}:
            kind = type(getattr(fresh, name))
            if not isinstance(data[name], (int, float) if kind is float else kind):
                raise ValueError(f"'{name}' is {data[name]!r}")
        for name in ("best", "last", "average"):
            if not isinstance(data[name], dict | None):
                raise ValueError(f"'{name}' is {data[name]!r}")
        if not all(isinstance(length, int) and length >= 0 for length in data["offsets"].values()):
            raise ValueError(f"'offsets' is {data['offsets']!r}")
        return cls(**{name: data[name] for name in names})
