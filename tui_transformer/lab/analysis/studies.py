"""What a study's file says of it: its baseline and what was expected. Files are others': nothing in one is trusted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.config.toml import read
from engine.errors import InputError
from engine.runs.tail import Stamp, stamp
from tui_transformer.lab.records.facts import rows, table, text

ENDING = ".study.toml"
EXPECTED = ("worse", "better", "same", "unknown")


@dataclass(frozen=True)
class StudyFile:
    """A study as it was asked for.

    Args:
        name: of the study; its runs have it.
        baseline: the variant that the others are held against; "" if the file does not say.
        primary: the primary measure; "" if the file does not say.
        variants: their names, in the file's order.
        seeds: that each is to be trained with.
        expect: variant -> what is scored ("loss", or a family of probes) -> one of `EXPECTED`, said before it ran.
        why: variant -> one sentence.
        description: one line.
        problem: why the file cannot be read; "" where it can.
    """

    name: str
    baseline: str = ""
    primary: str = ""
    variants: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    expect: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    problem: str = ""


def read_study_file(path: Path) -> StudyFile:
    """Never raises: what is damaged is left out, and said in `problem`."""
    name = path.name.removesuffix(ENDING).removesuffix(".toml")
    try:
        tables = read(path)
    except (InputError, RecursionError) as error:
        return StudyFile(name, problem=str(error))
    variants = {text(row.get("name")): row for row in rows(tables.get("variants")) if text(row.get("name"))}
    return StudyFile(
        name=text(tables.get("name")) or name,
        baseline=text(tables.get("baseline")),
        primary=text(tables.get("primary")),
        variants=tuple(variants),
        seeds=tuple(seed for seed in _list(tables.get("seeds")) if isinstance(seed, int)),
        expect={variant: _expect(table(row.get("expect"))) for variant, row in variants.items()},
        why={variant: text(row.get("why")) for variant, row in variants.items()},
        description=text(tables.get("description")),
    )


class StudyFolder:
    """The studies that were begun in a runs folder; each look opens only files that changed."""

    def __init__(self, runs_dir: Path) -> None:
        self._runs_dir = runs_dir
        self._kept: dict[Path, tuple[Stamp, StudyFile]] = {}
        self.files: Mapping[str, StudyFile] = {}

    def look(self) -> Mapping[str, StudyFile]:
        """Every study by its name; the same object as before where nothing changed."""
        try:
            paths = sorted(path for path in self._runs_dir.glob(f"*{ENDING}") if not path.name.startswith("."))
        except OSError:
            paths = []
        before, self._kept = self._kept, {path: self._one(path) for path in paths}
        if before != self._kept:
            self.files = {study.name: study for _, study in self._kept.values()}
        return self.files

    def _one(self, path: Path) -> tuple[Stamp, StudyFile]:
        now, known = stamp(path), self._kept.get(path)
        return known if known is not None and known[0] == now else (now, read_study_file(path))


def study_files(runs_dir: Path) -> Mapping[str, StudyFile]:
    """Every study that was begun in a runs folder, by its name."""
    return StudyFolder(runs_dir).look()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _expect(found: Mapping[str, Any]) -> dict[str, str]:
    return {what: said for what, said in found.items() if isinstance(said, str) and said in EXPECTED}
