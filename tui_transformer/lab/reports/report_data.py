"""What a report is about: runs and studies with everything that their files say. Raises nothing on damage."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath, PureWindowsPath

from engine.clean import clean
from engine.plain_files import read_plain
from engine.runs.reader import RunReader
from engine.runs.records import DataFacts
from tui_transformer.lab.analysis.curves import Curves, Metrics
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.folder import ENDING, StudyFile
from tui_transformer.lab.analysis.groups import Grouping, other
from tui_transformer.lab.analysis.verdict import VariantResult, VariantResults
from tui_transformer.lab.records.floors import Floor, floors

LONGEST_STUDY = 64_000  # bytes of a study's file; more is none


@dataclass(frozen=True)
class ReportData:
    """Runs, by variant, with what they measured.

    Args:
        standings: every variant beside its baseline; the baseline first.
        studies: those that were named, by name.
        metrics: of each run.
    """

    standings: tuple[VariantResult, ...]
    studies: Mapping[str, StudyFile]
    metrics: Mapping[Path, Metrics]
    _facts: dict[Path, DataFacts] = field(default_factory=dict, init=False, repr=False, compare=False)

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

    @property
    def corpora(self) -> list[str]:
        return list(dict.fromkeys(corpus_name(run) for run in self.runs))

    @property
    def folder_name(self) -> str:
        """What the report's folder is called: its studies, or its first runs."""
        names = list(self.studies) or [run.name for run in self.runs]
        return "-".join(names[:3]) + (f"-and-{len(names) - 3}-more" if len(names) > 3 else "")

    def name(self, standing: VariantResult) -> str:
        """A variant's name; with its study's where there are several."""
        several = len({s.group.study for s in self.standings}) > 1
        return standing.group.title if several else standing.name

    def facts(self, run: Entry) -> DataFacts:
        """data.json of a run, read once."""
        if run.path not in self._facts:
            self._facts[run.path] = RunReader(run.path).data
        return self._facts[run.path]

    def floor(self, run: Entry) -> Floor | None:
        """The floor of its text that its excess refers to."""
        return next(iter(floors(self.facts(run))), None)

    def common_floor(self, standings: Sequence[VariantResult]) -> Floor | None:
        """The floor that these variants share."""
        found = {self.floor(standing.group.representative) for standing in standings}
        return found.pop() if len(found) == 1 else None

    def study_text(self, study: StudyFile) -> str:
        """A study's own file; "" where it cannot be read."""
        try:
            found = read_plain(self.runs[0].path.parent / f"{study.name}{ENDING}", LONGEST_STUDY)
        except (OSError, ValueError):
            return ""
        return found.decode("utf-8", "replace")


def gather(entries: Sequence[Entry], studies: Mapping[str, StudyFile], pinned: Path | None = None) -> ReportData:
    """Read all that a report says of these runs.

    Args:
        entries: at least one; where they belong to no study, the first is the baseline.
        studies: the files of studies that were named, by name.
        pinned: a run of the variant that is the baseline instead.
    """
    if pinned is None and len(entries) > 1 and not studies:
        pinned = entries[0].path
    standings = VariantResults().of(Grouping().of(entries), studies, pinned)
    return ReportData(standings, studies, Curves().read([entry.path for entry in entries]))


# Names without the folders they lay in: a report tells nobody where its author keeps things.

_LEFT_OUT = ("--runs-dir", "--data-dir", "--out")  # where things are is for whoever repeats it
_QUOTED_PATH = re.compile(r"""(?<=["'])(?:~|[A-Za-z]:)?[\\/][^"'\n]*(?=["'])""")


def corpus_name(run: Entry) -> str:
    """Its corpus with its version, a file by its name."""
    return base_name(run.corpus)


def base_name(path: str) -> str:
    """The last part of an absolute path, of each of several with commas between them; anything else as it is."""

    def last(part: str) -> str:
        if PureWindowsPath(part).drive or "\\" in part:
            return PureWindowsPath(part).name or part
        return PurePosixPath(part).name or part if part.startswith(("/", "~")) else part

    return ",".join(map(last, path.split(",")))


def command_line(command: str) -> str:
    """A recorded command line, quoted for a shell, without folders; as it is where it is none."""
    try:
        words = iter(shlex.split(command))
    except ValueError:
        return command
    kept = [PurePosixPath(word).name for word in islice(words, 1)]
    for word in words:
        option, equals, value = word.partition("=")
        if option not in _LEFT_OUT:
            kept.append(f"{option}={base_name(value)}" if equals else base_name(word))
        elif not equals:
            next(words, None)
    return shlex.join(kept)


def without_folders(text: str) -> str:
    """A TOML file in which quoted absolute paths are names."""
    return _QUOTED_PATH.sub(lambda found: base_name(found[0]), clean(text))
