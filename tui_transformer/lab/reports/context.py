"""A report's input: runs and studies with everything in their files. Damage raises nothing."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from gettext import NullTranslations
from itertools import islice
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from engine.base.clean import clean
from engine.base.language import Message, translate
from engine.runs.reader import RunReader
from engine.runs.records import DataFacts, Floor
from engine.runs.tail import Metrics
from tui_transformer.lab.analysis.curves import MetricsReader
from tui_transformer.lab.analysis.entry import RunEntry
from tui_transformer.lab.analysis.folder import RequestedStudy
from tui_transformer.lab.analysis.groups import Grouping, differing_part
from tui_transformer.lab.analysis.lists import SENTENCES, join, join_names
from tui_transformer.lab.analysis.verdict import VariantEvaluator, VariantResult
from tui_transformer.lab.reports.document import Paragraph

FULL_STOP = Message("{sentence}.")


@dataclass(frozen=True)
class ReportContext:
    """The input of every section: runs by variant, their measurements, and the language to use."""

    results: tuple[VariantResult, ...]  # every variant beside its baseline; the baseline first
    studies: Mapping[str, RequestedStudy]  # the named studies, by name
    metrics: Mapping[Path, Metrics]  # of each run
    language: NullTranslations  # of its words
    picture_language: NullTranslations  # of its pictures; differs if this machine lacks the first one's letters
    _facts: dict[Path, DataFacts] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def runs(self) -> tuple[RunEntry, ...]:
        return tuple(run for standing in self.results for run in standing.runs)

    @property
    def has_several_variants(self) -> bool:
        return len(self.results) > 1

    @cached_property
    def representative(self) -> VariantResult:
        """The representative variant: the baseline, or the first."""
        return next((s for s in self.results if s.is_baseline), self.results[0])

    @cached_property
    def parts(self) -> tuple[tuple[VariantResult, ...], ...]:
        """Variants grouped by measure: each part has one corpus, unit, context and stride."""
        parts: list[list[VariantResult]] = []
        for standing in self.results:
            run = standing.group.representative
            found = next((p for p in parts if not differing_part(run, p[0].group.representative)), None)
            parts.append([standing]) if found is None else found.append(standing)
        return tuple(map(tuple, parts))

    @property
    def corpora(self) -> list[str]:
        return list(dict.fromkeys(corpus_name(run) for run in self.runs))

    @property
    def folder_name(self) -> str:
        names = list(self.studies) or [run.name for run in self.runs]
        return "-".join(names[:3]) + (f"-and-{len(names) - 3}-more" if len(names) > 3 else "")

    def name(self, standing: VariantResult) -> str:
        """A variant's name, with its study's if there are several."""
        several = len({s.group.study for s in self.results}) > 1
        return standing.group.title if several else standing.name

    def facts(self, run: RunEntry) -> DataFacts:
        """data.json of a run, read once."""
        if run.path not in self._facts:
            self._facts[run.path] = RunReader(run.path).data
        return self._facts[run.path]

    def floor(self, run: RunEntry) -> Floor | None:
        """The floor that its excess refers to."""
        return next(iter(self.facts(run).floors), None)

    def common_floor(self, standings: Sequence[VariantResult]) -> Floor | None:
        found = {self.floor(standing.group.representative) for standing in standings}
        return found.pop() if len(found) == 1 else None

    # Its words

    def say(self, text: str, /, **values: Any) -> str:
        """Return a message in the report's language, as `tr` does in the language in use."""
        return translate(text, self.language, **values)

    def say_in_pictures(self, text: str, /, **values: Any) -> str:
        return translate(text, self.picture_language, **values)

    def paragraph(self, text: str, /, **values: Any) -> Paragraph:
        return Paragraph((self.say(text, **values),))

    def sentences(self, parts: Iterable[str]) -> str:
        return self.say(join(SENTENCES, filter(None, parts)))

    def names(self, standings: Iterable[VariantResult]) -> str:
        return self.say(join_names(map(self.name, standings)))

    def headings(self, *texts: str) -> tuple[str, ...]:
        """Return headings of a table's columns: messages in the context `heading`."""
        return tuple(self.say(Message.in_context("heading", text)) for text in texts)


def read_context(
    entries: Sequence[RunEntry],
    studies: Mapping[str, RequestedStudy],
    language: NullTranslations,
    picture_language: NullTranslations,
    pinned: Path | None = None,
) -> ReportContext:
    """Read all that a report says about one or more runs.

    `pinned` is a run of the baseline variant; the default is the study's own or, without a study, the first.
    """
    if pinned is None and len(entries) > 1 and not studies:
        pinned = entries[0].path
    standings = VariantEvaluator().evaluate(Grouping().group(entries), studies, pinned)
    return ReportContext(
        standings, studies, MetricsReader().read([entry.path for entry in entries]), language, picture_language
    )


# Names without their folders: a report does not reveal where its author keeps things.

_LEFT_OUT = ("--runs-dir", "--data-dir", "--out")  # paths are up to whoever repeats it
_QUOTED_PATH = re.compile(r"""(?<=["'])(?:~|[A-Za-z]:)?[\\/][^"'\n]*(?=["'])""")


def corpus_name(run: RunEntry) -> str:
    return shorten_absolute_paths(run.corpus)


def shorten_absolute_paths(path: str) -> str:
    """Reduce absolute paths, also comma-separated ones, to their last part; keep anything else."""

    def last(part: str) -> str:
        if PureWindowsPath(part).drive or "\\" in part:
            return PureWindowsPath(part).name or part
        return PurePosixPath(part).name or part if part.startswith(("/", "~")) else part

    return ",".join(map(last, path.split(",")))


def portable_command(command: str) -> str:
    """A recorded command line, shell-quoted, without folders; unchanged if it cannot be parsed."""
    try:
        words = iter(shlex.split(command))
    except ValueError:
        return command
    kept = [PurePosixPath(word).name for word in islice(words, 1)]
    for word in words:
        option, equals, value = word.partition("=")
        if option not in _LEFT_OUT:
            kept.append(f"{option}={shorten_absolute_paths(value)}" if equals else shorten_absolute_paths(word))
        elif not equals:
            next(words, None)
    return shlex.join(kept)


def shorten_quoted_paths(text: str) -> str:
    """A TOML file with quoted absolute paths cut to names."""
    return _QUOTED_PATH.sub(lambda found: shorten_absolute_paths(found[0]), clean(text))
