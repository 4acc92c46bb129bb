"""What the settings of all sections are made of: their types and bounds, and how each is declared."""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from engine.base.language import tr

MAX_STEPS = 10**12
_DURATION = re.compile(r"\s*(\d{1,13}(?:\.\d{1,9})?)\s*(steps?|epochs?|tokens?)\s*\Z")


def _checked_duration(value: object) -> int | str:
    """Check a duration: a whole number of steps stays one; text must name its unit."""
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= MAX_STEPS:
            raise ValueError(tr("must be between 0 and {max_steps:,} steps", max_steps=MAX_STEPS))
        return value
    found = _DURATION.match(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(tr('must be a number of steps, e.g. 100, or text such as "5 epochs" or "10240 tokens"'))
    number, unit = found[1], found[2].rstrip("s")
    return int(number) if unit == "step" and "." not in number else f"{number} {unit}s"


Duration = Annotated[int | str, BeforeValidator(_checked_duration)]


def in_steps(duration: int | str, *, steps_per_epoch: int, tokens_per_step: int) -> int:
    """Return a checked duration in optimizer steps, at least 1 unless it is 0."""
    if isinstance(duration, int):
        return duration
    number, unit = duration.split()
    factor = {"steps": 1.0, "epochs": float(steps_per_epoch), "tokens": 1.0 / tokens_per_step}[unit]
    steps = math.ceil(float(number) * factor - 1e-9)
    return max(1, steps) if float(number) > 0 else 0


Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
Count = Annotated[int, Field(strict=True, ge=0, le=10**12)]
Positive = Annotated[int, Field(strict=True, ge=1, le=10**12)]
Width = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
Depth = Annotated[int, Field(strict=True, ge=1, le=1_000)]
Rate = Annotated[float, Field(ge=0.0, le=1e3)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**63)]


class Doc:
    """A sentence on a setting, and one on each of its named values, in English; goes into `Annotated`."""

    def __init__(self, sentence: str, options: Mapping[str, str] = {}) -> None:
        self.sentence, self.options = sentence, options

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(core) | {"description": self.sentence}


def bookkeeping_field(default: Any, **more: bool) -> Any:
    """Declare a field that does not affect what is learned (see `sections`). With `editable=True`, it affects no record
    either, so it may be edited before a run is resumed.
    """
    return Field(default, json_schema_extra={"bookkeeping": True, **more})


def later_field(default: Any, **bounds: Any) -> Any:
    """Declare a setting that earlier versions lack: a config file leaves it out at its default, so they can read it."""
    return Field(default, json_schema_extra={"later": True}, **bounds)


class Section(BaseModel):
    """Base of all sections: unknown keys are errors, values are finite, nothing changes after it is built."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)
