"""Variants beside their baseline: what they score over seeds, and what may be concluded. The engine has the statistics.

A family is the set of variants that share a baseline and one error rate: those of a study, or all outside studies. The
correction is over all variants and measures of a family, whatever part of it a filter shows.
"""

import math
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from tui_transformer.lab.analysis.comparable import other_said
from tui_transformer.lab.analysis.entry import Entry, Protocol
from tui_transformer.lab.analysis.groups import INERT, Group
from tui_transformer.lab.analysis.language import ENGLISH, Language, Said, Word
from tui_transformer.lab.analysis.measures import LAST, LOSSES, Measure, judged, meant, probes, scores
from tui_transformer.lab.analysis.statistics import Judgement, Mean, Paired, corrected, judge, mean_of, paired
from tui_transformer.lab.analysis.studies import StudyFile
from tui_transformer.lab.analysis.verdict import BASELINE
from tui_transformer.lab.records.facts import text

_KEPT = 16_384  # differences
OWN, BASELINES = Said("whose.own"), Said("whose.baseline")  # whose scores something is wrong with


class Family:
    """Variants with one baseline. What is asked for is computed once.

    Args:
        groups: all of them.
        baseline: what they are held against; it may be none of them.
        file: of the study, where there is one.
    """

    def __init__(self, groups: Sequence[Group], baseline: Group | None, file: StudyFile | None = None) -> None:
        self.groups, self.baseline, self.file = tuple(groups), baseline, file
        self._differences: dict[str, Mapping[Path, Paired]] = {}
        self._ranks: dict[Path, int] | None = None
        self._reasons: dict[Path, Said | None] = {}

    @property
    def study(self) -> str:
        """Its name; "" where the runs belong to none."""
        return self.groups[0].study if self.groups else ""

    @property
    def asked(self) -> bool:
        """Whether the baseline is the one that the study was planned with, so that what it expected can be judged."""
        return bool(self.file and self.baseline and self.file.baseline == self.baseline.variant)

    def why_not(self, group: Group) -> str:
        """Why a variant is not held against the baseline, in a few words; "" if it is."""
        found = self.reason(group)
        return ENGLISH.tell(found) if found is not None else ""

    def reason(self, group: Group) -> Said | None:
        """The same in no language yet; None if it is."""
        if group.path not in self._reasons:
            self._reasons[group.path] = self._reason(group)
        return self._reasons[group.path]

    def _reason(self, group: Group) -> Said | None:
        baseline = self.baseline
        if baseline is None or group is baseline:
            return None
        if group.void or baseline.void:
            whose = OWN if group.void else BASELINES
            return Said("no.badge", {"whose": whose, "badge": group.void or baseline.void})
        if INERT in group.badges:
            return Said("no.badge", {"whose": OWN, "badge": INERT})
        if not group.counted or not baseline.counted:
            return _nothing(group, OWN) if not group.counted else _nothing(baseline, BASELINES)
        reason = other_said(group.representative, baseline.representative)
        return Said("no.other", {"what": reason}) if reason is not None else None

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """All measures in which its variants are compared, corrected together."""
        return judged([run for group in self.groups for run in group.runs])

    @cached_property
    def primary(self) -> Measure:
        """The measure behind its verdict: the study's, else the one its runs select checkpoints by."""
        configs = [group.representative.config for group in (self.baseline, *self.groups) if group is not None]
        selected = text(configs[0].get("evaluation.select")) if configs else ""
        said = self.file.primary if self.file is not None else ""
        return meant(said or selected, self.measures) or LAST

    def differences(self, measure: Measure) -> Mapping[Path, Paired]:
        """The differences of every comparable variant to the baseline, paired by seed, corrected over all measures."""
        if measure.key not in self._differences:
            if measure.judged:
                study = {one.key: self._paired(one) for one in self.measures}
                self._differences |= corrected(study, self.primary.key)
            self._differences.setdefault(measure.key, self._paired(measure))
        return self._differences[measure.key]

    def _paired(self, measure: Measure) -> dict[Path, Paired]:
        baseline = self.baseline
        if baseline is None:
            return {}
        compared = [group for group in self.groups if group is not baseline and not self.why_not(group)]
        level, found = tuple(values(baseline, measure).items()), {}
        for group in compared:
            known = [n for n in (places(one, measure) for one in (group, baseline)) if n is not None]
            n = min(known) if len(known) == 2 else None
            difference = _paired(tuple(values(group, measure).items()), level, measure.share, n)
            if difference is not None:
                found[group.path] = difference
        return found

    def rank(self, group: Group) -> int | None:
        """Its place by mean last loss, from 1, among those that can be held against the baseline."""
        if self._ranks is None:
            baseline = self.baseline
            held = [g for g in self.groups if baseline is not None and not self.why_not(g) and values(g, LAST)]
            held.sort(key=lambda g: mean_of(list(values(g, LAST).values())).mean)
            self._ranks = {g.path: i for i, g in enumerate(held, 1)}
        return self._ranks.get(group.path)


@lru_cache(_KEPT)
def _paired(
    ours: tuple[tuple[int, float], ...], baseline: tuple[tuple[int, float], ...], share: bool, places: int | None
) -> Paired | None:
    """As the engine has it; most of a folder stays as it is while one run of it is trained."""
    return paired(dict(ours), dict(baseline), share=share, places=places)


@lru_cache(_KEPT)
def _mean(values: tuple[float, ...], share: bool, places: int | None) -> Mean:
    return mean_of(values, share=share, places=places)


def values(group: Group, measure: Measure) -> dict[int, float]:
    """Seed -> what the run that counts has."""
    found = {seed: run.value(measure) for seed, run in group.counted.items()}
    return {seed: value for seed, value in found.items() if value is not None}


def places(group: Group, measure: Measure) -> int | None:
    """Questions behind a share, the fewest of any counted run; None if it is not a share, or a run does not say."""
    if not measure.share:
        return None
    found = [run.places.get(measure.key) for run in group.counted.values() if run.value(measure) is not None]
    known = [n for n in found if n is not None]
    return min(known) if known and len(known) == len(found) else None


def _nothing(group: Group, whose: Said) -> Said:
    """What is to be said of a variant none of whose runs counts."""
    if group.diverged == len(group.runs):
        key = "no.all-diverged" if len(group.runs) > 1 else "no.diverged"
        return Said(key, {"whose": whose, "n": len(group.runs)})
    return Said("no.training" if group.live else "no.seed", {"whose": whose})


@dataclass(frozen=True, eq=False)
class Standing:
    """A variant as it stands in its family: a row of the table."""

    group: Group
    family: Family

    @property
    def path(self) -> Path:
        """What it is known by."""
        return self.group.path

    @property
    def name(self) -> str:
        """The variant."""
        return self.group.name

    @property
    def state(self) -> str:
        """Of all its runs."""
        return self.group.state

    @property
    def checked(self) -> bool:
        """Whether each of its runs, and a score of it, has been checked."""
        return all(run.checked for run in self.runs)

    @property
    def badges(self) -> Mapping[str, str]:
        """Of all its runs, void ones first."""
        return self.group.badges

    @property
    def protocol(self) -> Protocol:
        """How its runs were scored."""
        return self.group.protocol

    @property
    def runs(self) -> tuple[Entry, ...]:
        """All of them, by seed."""
        return self.group.runs

    @property
    def planned(self) -> int:
        """Seeds there are to be: as many as it has runs, or as its study says."""
        file = self.family.file
        return max(len(self.runs), len(file.seeds) if file is not None and self.group.variant in file.variants else 0)

    @property
    def n(self) -> str:
        """Seeds that count, of how many: `3`, `2/3`."""
        count = len(self.group.counted)
        return f"{count}" if count == self.planned else f"{count}/{self.planned}"

    @property
    def seeds(self) -> str:
        """The same in words: `2 of 3 seeds; 1 diverged`."""
        return self.seeds_in(ENGLISH)

    def seeds_in(self, language: Language) -> str:
        """The same in a language."""
        count, total = len(self.group.counted), self.planned
        left = Counter(self.group.left_out.values()).items()
        why = [language.say("seeds.left-out", n=number, why=Word(reason)) for reason, number in left]
        why += [language.say("seeds.not-begun", n=total - len(self.runs))] if total > len(self.runs) else []
        said = language.say("seeds.of", n=count, total=total) if why else language.counted("seeds", count)
        return language.say("join.semicolon").join([said, *why])

    @property
    def is_baseline(self) -> bool:
        """Whether the others are held against it."""
        return self.group is self.family.baseline

    def mean(self, measure: Measure) -> Mean | None:
        """Over the seeds that count; None where none has it."""
        found = tuple(values(self.group, measure).values())
        return _mean(found, measure.share, places(self.group, measure)) if found else None

    def says_the_same(self, other: "Standing") -> bool:
        """Whether it differs from an older one in nothing, though something else in its family has changed."""
        if self.group is not other.group or self.family.baseline is not other.family.baseline:
            return False
        if self.family.file != other.family.file or self.rank != other.rank:
            return False
        measures = (*LOSSES, *probes(self.runs), *scores(self.runs))
        return all(self.difference(measure) == other.difference(measure) for measure in measures)

    def difference(self, measure: Measure) -> Paired | None:
        """To the baseline; None where there is none, or nothing in common with it."""
        return self.family.differences(measure).get(self.path)

    def judgement(self, measure: Measure) -> Judgement | None:
        """What may be concluded; None where nothing is to be."""
        if self.family.baseline is None or self.is_baseline or self.why_not or self.mean(measure) is None:
            return None
        return judge(
            self.difference(measure), lower_is_better=measure.lower, margin=measure.margin, digits=measure.amount
        )

    @property
    def primary(self) -> Measure:
        """The primary measure."""
        return self.family.primary

    @property
    def why_not(self) -> str:
        """Why it is not judged at all."""
        return self.family.why_not(self.group)

    @property
    def rank(self) -> int | None:
        """Its place by mean last loss."""
        return self.family.rank(self.group)

    @property
    def verdict(self) -> str:
        """A few words; the difference stands beside them."""
        return self.verdict_in(ENGLISH)

    def verdict_in(self, language: Language) -> str:
        """The same in a language."""
        reason = self.family.reason(self.group)
        if self.family.baseline is None or self.is_baseline:
            return "" if self.family.baseline is None else BASELINE
        return language.tell(reason) if reason is not None else brief(self.judgement(self.primary), language)

    def per_cent(self) -> float | None:
        """The difference of the losses as a share of the baseline's."""
        found, level = self.difference(LAST), self.family.baseline and _mean_last(self.family.baseline)
        return found.difference / level if found is not None and level else None

    def perplexity_per_cent(self) -> float | None:
        """The same difference as a share of the baseline's perplexity."""
        found = self.difference(LAST)
        return math.expm1(found.difference) if found is not None and abs(found.difference) < 100 else None


def mean_value(mean: Mean | None) -> float | None:
    """The number alone."""
    return mean.mean if mean is not None else None


def _mean_last(group: Group) -> float | None:
    found = list(values(group, LAST).values())
    return mean_of(found).mean if found else None


def brief(judgement: Judgement | None, language: Language = ENGLISH) -> str:
    """A verdict where its numbers stand beside it."""
    return language.judgement(judgement, "brief") if judgement is not None else ""


class Standings:
    """Puts groups into families, and keeps the families in which nothing has changed."""

    def __init__(self) -> None:
        self._kept: dict[object, tuple[tuple[Group | None, ...], StudyFile | None, tuple[Standing, ...]]] = {}

    def of(
        self, groups: Sequence[Group], files: Mapping[str, StudyFile] | None = None, pinned: Path | None = None
    ) -> tuple[Standing, ...]:
        """Every group beside its baseline: the pinned run's group where it is one of the family, else the study's.

        Without either, the pinned run's group, from wherever it is.

        Args:
            groups: all that there are.
            files: the studies that were begun, by name.
            pinned: a run.
        """
        pin = next((g for g in groups if any(run.path == pinned for run in g.runs)), None) if pinned else None
        families: dict[tuple[Path, str], list[Group]] = {}
        for group in groups:
            families.setdefault((group.runs[0].path.parent, group.study), []).append(group)
        found: list[Standing] = []
        kept, self._kept = self._kept, {}
        for key, members in families.items():
            file = (files or {}).get(key[1]) if key[1] else None
            ordered = _ordered(members, file)
            baseline = _baseline(ordered, file, pin)
            now = (baseline, *ordered)
            old = kept.get(key)
            if old is None or old[1] != file or len(old[0]) != len(now) or not all(map(operator.is_, old[0], now)):
                family = Family(ordered, baseline, file)
                before = {standing.path: standing for standing in old[2]} if old is not None else {}
                made = [Standing(group, family) for group in ordered]
                old = now, file, tuple(_kept(standing, before.get(standing.path)) for standing in made)
            self._kept[key] = old
            found += old[2]
        return tuple(found)


def _kept(made: Standing, before: Standing | None) -> Standing:
    """The older one where it says the same: what was made of it holds."""
    return before if before is not None and made.says_the_same(before) else made


def _ordered(groups: Sequence[Group], file: StudyFile | None) -> list[Group]:
    """The baseline first, then as the study's file has them."""
    if file is None:
        return list(groups)
    places = {name: i for i, name in enumerate(file.variants)}
    return sorted(groups, key=lambda g: (g.variant != file.baseline, places.get(g.variant, len(places))))


def _baseline(groups: Sequence[Group], file: StudyFile | None, pin: Group | None) -> Group | None:
    if pin is not None and any(group is pin for group in groups):
        return pin
    asked = next((group for group in groups if file is not None and group.variant == file.baseline), None)
    return asked or pin
