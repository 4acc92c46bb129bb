"""What a report is of: runs and studies with everything that their files say, read once. Raises nothing on damage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from engine.plain_files import read_plain
from engine.runs.files import read_json
from engine.runs.reader import RunReader
from tui_transformer.lab.analysis.curves import Curves, Metrics
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.folder import ENDING, StudyFile
from tui_transformer.lab.analysis.groups import Grouping, other
from tui_transformer.lab.analysis.verdict import VariantResult, VariantResults
from tui_transformer.lab.records.facts import Record, table, text
from tui_transformer.lab.records.floors import Floor, floors
from tui_transformer.lab.reports.places import base_name

LONGEST_STUDY = 64_000  # bytes of a study's file; more is none


@dataclass(frozen=True)
class Gathered:
    """Runs, by variant, with what they measured.

    Args:
        standings: every variant beside its baseline; the baseline first.
        studies: those that were named, by name.
        metrics: of each run.
    """

    standings: tuple[VariantResult, ...]
    studies: Mapping[str, StudyFile]
    metrics: Mapping[Path, Metrics]

    @property
    def runs(self) -> tuple[Entry, ...]:
        """All of them, in the order of their variants."""
        return tuple(run for standing in self.standings for run in standing.runs)

    @property
    def several(self) -> bool:
        """Whether there are variants to compare."""
        return len(self.standings) > 1

    @cached_property
    def first(self) -> VariantResult:
        """The variant that stands for all: the baseline, or the first."""
        return next((s for s in self.standings if s.is_baseline), self.standings[0])

    @cached_property
    def parts(self) -> tuple[tuple[VariantResult, ...], ...]:
        """Variants whose scores are the same measure, each part with one corpus, unit, context and stride."""
        parts: list[list[VariantResult]] = []
        for standing in self.standings:
            run = standing.group.representative
            found = next((p for p in parts if not other(run, p[0].group.representative)), None)
            parts.append([standing]) if found is None else found.append(standing)
        return tuple(map(tuple, parts))

    def name(self, standing: VariantResult) -> str:
        """A variant's name; with its study's where there are several."""
        several = len({s.group.study for s in self.standings}) > 1
        return standing.group.title if several else standing.name

    def facts(self, run: Entry, name: str) -> Record:
        """model.json, data.json, environment.json or run.json of a run; {} where it is missing or damaged."""
        return table(read_json(run.path / f"{name}.json"))

    def samples(self, run: Entry) -> list[Record]:
        """What it wrote, oldest first."""
        return list(RunReader(run.path).raw_lines("samples"))

    def floor(self, run: Entry) -> Floor | None:
        """The floor of its text that its excess refers to."""
        return next(iter(floors(self.facts(run, "data"))), None)

    def study_text(self, study: StudyFile, folder: Path) -> str:
        """A study's own file; "" where it cannot be read."""
        try:
            found = read_plain(folder / f"{study.name}{ENDING}", LONGEST_STUDY)
        except (OSError, ValueError):
            return ""
        return found.decode("utf-8", "replace")

    def command(self, run: Entry) -> str:
        """The command line that started it; "" where that is not known."""
        return text(self.facts(run, "run").get("command"))


def gather(entries: Sequence[Entry], studies: Mapping[str, StudyFile], pinned: Path | None = None) -> Gathered:
    """Read all that a report says of these runs.

    Args:
        entries: at least one; where they belong to no study, the first is the baseline.
        studies: the files of studies that were named, by name.
        pinned: a run of the variant that is the baseline instead.
    """
    if pinned is None and len(entries) > 1 and not studies:
        pinned = entries[0].path
    standings = VariantResults().of(Grouping().of(entries), studies, pinned)
    return Gathered(standings, studies, Curves().read([entry.path for entry in entries]))


def corpus_name(run: Entry) -> str:
    """Its corpus with its version, a file by its name: where it lay is nobody's business."""
    return base_name(run.corpus)
