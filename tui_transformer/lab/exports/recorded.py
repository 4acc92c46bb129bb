"""What a run directory says, read once for a format to write down. Damaged files leave gaps and raise nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from engine.clean import clean_line
from engine.config.keys import flatten
from engine.config.schema import RunConfig
from engine.runs.flat import flat
from engine.runs.reader import RunReader
from engine.runs.records import Notes
from tui_transformer.lab.records.facts import LARGEST, number, table, text

Record = dict[str, Any]
NO_SCORES = ("kind", "step")
PROFILE = "profile"  # by place in the window: a curve of its own, not a scalar


@dataclass(frozen=True)
class Recorded:
    """A run to export.

    Args:
        reader: of its directory.
    """

    reader: RunReader

    @property
    def name(self) -> str:
        """The run's."""
        return self.reader.name

    @cached_property
    def config(self) -> RunConfig:
        """What was asked."""
        return self.reader.config

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Every setting by its dotted key; those that are lists as text."""
        values = flatten(self.config.dump())
        return {key: str(value) if isinstance(value, list | tuple) else value for key, value in values.items()}

    @cached_property
    def metrics(self) -> list[Record]:
        """All metrics records."""
        return [record for record in self.reader.raw_lines("metrics") if _at_a_step(record)]

    @cached_property
    def samples(self) -> list[Record]:
        """All samples: step, prompt, text."""
        return [record for record in self.reader.raw_lines("samples") if _at_a_step(record)]

    @cached_property
    def run(self) -> Record:
        """run.json."""
        return table(self.reader.raw("run"))

    @cached_property
    def data(self) -> Record:
        """data.json."""
        return table(self.reader.raw("data"))

    @cached_property
    def badges(self) -> dict[str, str]:
        """What is wrong with its scores: badge → why."""
        return self.reader.badges

    @cached_property
    def notes(self) -> Notes:
        """What people wrote about it."""
        return self.reader.notes

    @property
    def id(self) -> str:
        """What stays when it is renamed."""
        return text(self.run.get("id"))

    @property
    def state(self) -> str:
        """How it ended."""
        return self.reader.state


def _at_a_step(record: Record) -> bool:
    step = record.get("step")
    return isinstance(step, int) and abs(step) <= LARGEST


def scalars(record: Record) -> Iterator[tuple[str, float]]:
    """The numbers of a metrics record, each with its name under `train/` or `validation/`."""
    kind = text(record.get("kind")) or "other"
    for key, value in record.items():
        if key in NO_SCORES or key == PROFILE:
            continue
        for name, item in flat({key: value}):
            found = number(item)
            if found is not None:
                yield clean_line(f"{kind}/{name.replace('.', '/', 1)}"), found
