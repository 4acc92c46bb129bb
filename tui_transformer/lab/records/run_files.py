"""A run's small files, read once: what its row, its comparisons and its badges come from, damaged or not."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from engine.base.errors import InputError, comma_separated
from engine.base.language import tr
from engine.base.plain_files import read_regular_file
from engine.config.keys import flatten
from engine.config.toml import MAX_BYTES, parse, read_toml
from engine.runs.files import read_json
from engine.runs.reader import badges_of, downgrade_unproven
from engine.runs.records import MOST_PROBES, Checks, DataFacts, ModelFacts, Notes, Run, RunFile, Status, Summary

CONFIG = "config.toml"
READ_FILES = (CONFIG, Status.file, Summary.file, Checks.file, ModelFacts.file, DataFacts.file, Notes.file)
DAMAGED_FILES = "DAMAGED"  # the badge
R = TypeVar("R", bound=RunFile)


class RunFiles:
    """A run's small files as they are now, never its metrics. Never raises: what cannot be read is empty, and named in
    `damaged`.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        self.damaged: list[str] = []
        self.run_record, self.status, self.summary = self._read(Run), self._read(Status), self._read(Summary)
        self.config: dict[str, Any] = {}  # by dotted key
        try:
            self.config = read_flat_config(run / CONFIG)
        except (InputError, RecursionError):
            self.damaged.append(CONFIG)
        self.model, self.data = self._read(ModelFacts), self._read(DataFacts)
        self.verdicts = downgrade_unproven(self._read(Checks).verdicts, self.data)

    @property
    def badges(self) -> dict[str, str]:
        """What is wrong with its scores and its files: badge → why."""
        found, last = badges_of(self.verdicts), self.summary.last
        if self.damaged:  # an unreadable file does not mean that nothing is wrong
            found[DAMAGED_FILES] = tr("{problems} cannot be read", problems=comma_separated(self.damaged))
        if last is not None and last.probes_recorded > MOST_PROBES:
            found[DAMAGED_FILES] = tr(
                "summary.json has {probes_recorded:,} probes; only the first {most_probes} are read",
                probes_recorded=last.probes_recorded,
                most_probes=MOST_PROBES,
            )
        return found

    def _read(self, kind: type[R]) -> R:
        data = read_json(self._run / kind.file)
        if not isinstance(data, dict) and (self._run / kind.file).exists():
            self.damaged.append(kind.file)
        return kind.read(data)


# The settings of a run as a flat table, straight from config.toml: validating five hundred configs takes seconds. Most
# runs in a folder share most sections verbatim, so a file is parsed section by section, and each distinct section
# only once; a file for which that is unsafe is parsed whole.

_HEADER = re.compile(rb"^(?=\[\w+\]\r?$)", re.MULTILINE)


def read_flat_config(path: Path) -> dict[str, Any]:
    """Return the settings by dotted key; raises InputError if they cannot be read."""
    try:
        raw = read_regular_file(path, MAX_BYTES)
    except OSError:
        return flatten(read_toml(path))  # says why
    if len(raw) > MAX_BYTES or b'"""' in raw or b"'''" in raw:
        return flatten(read_toml(path))
    sections = _HEADER.split(raw)
    names = [section.partition(b"]")[0][1:].decode("ascii", "replace") for section in sections[1:]]
    try:
        tables = [_parse_flat_section(section) for section in sections]
    except InputError:
        return flatten(read_toml(path))
    above = {key.partition(".")[0] for key in tables[0]}
    if len(set(names)) < len(names) or above.intersection(names):  # TOML forbids both: let the parser say so
        return flatten(read_toml(path))
    return {key: value for table in tables for key, value in table.items()}


@lru_cache(4096)
def _parse_flat_section(raw: bytes) -> dict[str, Any]:
    return flatten(parse(raw, CONFIG))
