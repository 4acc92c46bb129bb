"""What became of one claim of a run: confirmed, different, or not to be checked here. No torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Result(StrEnum):
    """How a claim came out."""

    CONFIRMED = "confirmed"
    DIFFERS = "differs"
    UNCHECKED = "unchecked"


@dataclass(frozen=True)
class Difference:
    """One value that is not what the run says.

    Args:
        what: which value, e.g. `loss at step 500`.
        recorded: what the run says; None where it says nothing.
        found: what was found instead; None where there is nothing.
    """

    what: str
    recorded: Any
    found: Any


@dataclass(frozen=True)
class Finding:
    """One claim and what became of it.

    Args:
        claim: its name in `engine.verification.claims.CLAIMS`.
        result: see `Result`.
        text: what was compared, how far it agrees, or why it could not be checked; a sentence.
        differences: where it differs, each value.
    """

    claim: str
    result: Result
    text: str
    differences: tuple[Difference, ...] = ()

    def to_json(self) -> Mapping[str, Any]:
        """As plain data."""
        return asdict(self) | {"result": self.result.value}


class Unknown(Exception):
    """A claim cannot be checked here; says why."""


@dataclass(frozen=True)
class Outcome:
    """What a claim's function gives back.

    Args:
        text: what agrees.
        differences: what does not.
    """

    text: str
    differences: tuple[Difference, ...] = ()
