"""Verdicts: on a run against the baseline, on a variant over its seeds, and on what a study expected.

All three use `statistics.against_baseline` and `judge`. A family is the set of variants that share a baseline and one
error rate: those of a study, or all outside studies. The correction covers all variants and measures of a family,
whatever part of it a filter shows.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from engine.base.language import Message
from engine.config.measures import Mean, Measure
from tui_transformer.lab.analysis.entry import (
    BITS_PER_BYTE,
    DAMAGED,
    ENDED_EARLY,
    LAST,
    LOSS,
    LOSSES,
    NO_RUN,
    RunEntry,
    ScoringProtocol,
    judged_measures,
    probe_measures,
    score_measures,
    setting_if_text,
)
from tui_transformer.lab.analysis.folder import RequestedStudy, StudyVariant
from tui_transformer.lab.analysis.groups import (
    INERT,
    VariantRuns,
    invalid_badge,
    only_bytes_comparable,
    other_measure_reason,
)
from tui_transformer.lab.analysis.lists import CLAUSES, PHRASES, join
from tui_transformer.lab.analysis.statistics import (
    Judgement,
    PairedDifference,
    SeedScores,
    against_baseline,
    judge,
    mean_of,
)

BASELINE = "—"
OWN, BASELINES = "", Message("baseline ")  # whose scores have a problem
HAS_BADGE, OTHER_MEASURE = Message("{whose}{badge}: not comparable"), Message("{what}: not comparable")
TRAINING = Message("{whose}still training")
UNKNOWN = "unknown"
INCOMPARABLE = "incomparable"  # the kind of a verdict on scores that cannot be compared
AS_EXPECTED, NOT_AS_EXPECTED = Message("as expected"), Message("not as expected")
OPEN, UNKNOWN_BEFOREHAND = Message.in_context("outcome", "open"), Message("unknown beforehand")
WORDING = {  # of a verdict, by its kind, or by why it is inconclusive
    "better": Message("better by {amount} {interval}"),
    "worse": Message("worse by {amount} {interval}"),
    "same": Message("no difference larger than {amount}"),
    "equal": Message("no difference at all"),
    "one-seed": Message("one seed: inconclusive"),
    "nothing": Message("no seed in common: inconclusive"),
    "inconclusive": Message(
        "inconclusive; if the difference is really this large, about {seeds} seeds would show it "
        "(range {fewest} to {most})"
    ),
    "open": Message(
        "inconclusive; there may be no difference; if there really is one this large, about {seeds} seeds would show "
        "it ({fewest} or more)"
    ),
    "never": Message("inconclusive; there may be no difference, and even 1,000 seeds could not detect one this small"),
    "identical": Message("inconclusive; the difference is exactly the same for every seed, so its noise is unknown"),
    "questions": Message(
        "inconclusive; there may be no difference; with so few questions, more seeds would not show one"
    ),
}
BRIEF_WORDING = {  # where the numbers stand beside it
    "better": Message("better"),
    "worse": Message("worse"),
    "same": Message("no difference > {amount}"),
    "equal": Message.in_context("brief verdict", "no difference at all"),
    "one-seed": Message("one seed: inconclusive"),
    "nothing": Message("no seed in common"),
    "inconclusive": Message("inconclusive"),
}


def verdict(entry: RunEntry, baseline: RunEntry | None) -> str:
    """Return the verdict on one run against the baseline, in a few words; "" if no baseline is pinned.

    With one seed each, the best of five variants without any effect beats the baseline five times in six.
    """
    if baseline is None:
        return ""
    if entry.path == baseline.path:
        return BASELINE
    if entry.state == NO_RUN:
        return NO_RUN
    reason = _why_not_judged(entry, baseline)
    return reason if reason is not None else brief_verdict(_judged(entry, baseline))


def verdict_kind(entry: RunEntry, baseline: RunEntry | None) -> str:
    """Return the kind of that verdict, `INCOMPARABLE` for scores that cannot be compared; "" if there is none."""
    if baseline is None or entry.path == baseline.path or entry.state == NO_RUN:
        return ""
    reason = _why_not_judged(entry, baseline)
    return reason_kind(reason) if reason is not None else _judged(entry, baseline).kind


def reason_kind(reason: Message) -> str:
    return INCOMPARABLE if reason.template in (HAS_BADGE, OTHER_MEASURE) else ""


def _why_not_judged(entry: RunEntry, baseline: RunEntry) -> Message | None:
    for run, whose in ((entry, OWN), (baseline, BASELINES)):
        if badge := invalid_badge(run):
            return Message(HAS_BADGE, whose=whose, badge=badge)
    if (reason := other_measure_reason(entry, baseline)) and not only_bytes_comparable(entry, baseline):
        return Message(OTHER_MEASURE, what=reason)
    for run, whose in ((entry, OWN), (baseline, BASELINES)):
        if run.last is None:
            return Message("{whose}no score yet", whose=whose)
    if entry.live or baseline.live:
        return Message(TRAINING, whose=OWN)
    for run, whose in ((entry, OWN), (baseline, BASELINES)):
        if run.state in ENDED_EARLY:
            return Message("{whose}ended early", whose=whose)
    falling = "STILL-FALLING" in entry.badges or "STILL-FALLING" in baseline.badges
    return Message("still falling: inconclusive") if falling else None


def _judged(entry: RunEntry, baseline: RunEntry) -> Judgement:
    measure = BITS_PER_BYTE if only_bytes_comparable(entry, baseline) else LAST
    own, level = (SeedScores(((0, run.value(measure) or 0.0),)) for run in (entry, baseline))
    difference = against_baseline({measure.key: {entry.path: own}}, {measure.key: level}, measure.key)[measure.key]
    return judge(difference.get(entry.path), lower_is_better=True)


def judgement_text(found: Judgement, wording: Mapping[str, str] = WORDING) -> str:
    """Return a verdict in words."""
    key = "equal" if found.kind == "same" and not found.amounts else found.reason
    amount, interval, *_ = (*found.amounts, "", "")
    seeds, fewest, most = (f"{n or 0:,}" for n in (found.seeds, found.fewest, found.most))
    text = wording.get(key) or wording[found.kind]
    return Message(text, amount=amount, interval=interval, seeds=seeds, fewest=fewest, most=most)


def brief_verdict(judgement: Judgement | None) -> str:
    """Return a verdict for use beside its numbers."""
    return judgement_text(judgement, BRIEF_WORDING) if judgement is not None else ""


def seed_count(n: int) -> str:
    return Message.counted("{n:,} seed", "{n:,} seeds", n)


def with_settings_caveat(text: str, judged: Judgement | None) -> str:
    """Add to a verdict in words that it holds at these settings: tuning might overturn it."""
    decided = judged is not None and judged.kind in ("better", "worse", "same")
    return Message("{text} at these settings", text=text) if decided else text


@lru_cache(16_384)  # most of a folder is unchanged while one of its runs trains
def _mean(found: SeedScores) -> Mean:
    return mean_of([score for _, score in found.by_seed], share=found.share, places=found.places)


def scores_of(group: VariantRuns, measure: Measure) -> SeedScores:
    """Return the counted runs' scores, with the fewest questions of any if all of them record the number."""
    found = {seed: value for seed, run in group.counted_runs.items() if (value := run.value(measure)) is not None}
    asked = [group.counted_runs[seed].places.get(measure.key) for seed in found] if measure.is_share else []
    known = [n for n in asked if n is not None]
    places = min(known) if known and len(known) == len(asked) else None
    return SeedScores(tuple(found.items()), measure.is_share, places)


class VariantFamily:
    """Variants with one baseline, which need not be among them. Results are computed once."""

    def __init__(self, groups: Sequence[VariantRuns], baseline: VariantRuns | None, file: RequestedStudy) -> None:
        self.groups, self.baseline, self.file = tuple(groups), baseline, file
        self._reasons: dict[Path, Message | None] = {}
        self._by_bytes: dict[Path, bool] = {}

    def incomparable_reason(self, group: VariantRuns) -> Message | None:
        """Return why a variant is not compared with the baseline; None if it is."""
        if group.path not in self._reasons:
            self._reasons[group.path] = self._reason(group)
        return self._reasons[group.path]

    def _reason(self, group: VariantRuns) -> Message | None:
        baseline = self.baseline
        if baseline is None or group is baseline:
            return None
        if group.invalid_badge or baseline.invalid_badge:
            whose = OWN if group.invalid_badge else BASELINES
            return Message(HAS_BADGE, whose=whose, badge=group.invalid_badge or baseline.invalid_badge)
        if INERT in group.badges:
            return Message(HAS_BADGE, whose=OWN, badge=INERT)
        for one, whose in ((group, OWN), (baseline, BASELINES)):
            if one.counted_runs:
                continue
            if one.diverged_count == len(one.runs):
                if len(one.runs) > 1:
                    return Message("{whose}diverged in all {n} seeds", whose=whose, n=len(one.runs))
                return Message("{whose}diverged", whose=whose)
            live = any(run.live for run in one.runs)
            return Message(TRAINING, whose=whose) if live else Message("{whose}no finished seed", whose=whose)
        reason = other_measure_reason(group.representative, baseline.representative)
        other = reason is not None and not self.only_bytes_comparable(group)
        return Message(OTHER_MEASURE, what=reason) if other else None

    def only_bytes_comparable(self, group: VariantRuns) -> bool:
        """Return whether a variant has other tokens than the baseline, so that only bits per byte compare them."""
        if group.path not in self._by_bytes:
            baseline, found = self.baseline, False
            if baseline is not None and group.counted_runs and baseline.counted_runs:
                found = only_bytes_comparable(group.representative, baseline.representative)
            self._by_bytes[group.path] = found
        return self._by_bytes[group.path]

    @cached_property
    def has_other_tokens(self) -> bool:
        return any(self.only_bytes_comparable(group) for group in self.groups)

    def is_other_measure(self, group: VariantRuns) -> bool:
        """Return whether a variant's scores are another measure than the baseline's."""
        reason = self.incomparable_reason(group)
        return reason is not None and reason.template == OTHER_MEASURE

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """All measures on which its variants are compared, corrected together."""
        found = judged_measures([run for group in self.groups for run in group.runs])
        return (*found, BITS_PER_BYTE) if self.has_other_tokens else found

    @cached_property
    def primary(self) -> Measure:
        """The measure behind its verdict: bits per byte if tokens differ, the study's, or the one its runs select
        checkpoints by.
        """
        if self.has_other_tokens:
            return BITS_PER_BYTE
        configs = [group.representative.config for group in (self.baseline, *self.groups) if group is not None]
        name = self.file.primary or (setting_if_text(configs[0], "evaluation.select") if configs else "")
        if name == LOSS.key:
            return LAST
        named = [measure for measure in self.measures if measure.key == name]
        return next(iter([*named, *(measure for measure in self.measures if measure.key_without_band == name)]), LAST)

    @cached_property
    def differences(self) -> Mapping[str, Mapping[Path, PairedDifference]]:
        """By measure, every comparable variant's difference from the baseline, corrected over all measures."""
        baseline = self.baseline
        if baseline is None:
            return {}
        compared = [group for group in self.groups if group is not baseline and self.incomparable_reason(group) is None]
        by_loss = [group for group in compared if not self.only_bytes_comparable(group)]
        study = {
            m.key: {group.path: scores_of(group, m) for group in (compared if m is BITS_PER_BYTE else by_loss)}
            for m in self.measures
        }
        return against_baseline(study, {m.key: scores_of(baseline, m) for m in self.measures}, self.primary.key)

    @cached_property
    def ranks(self) -> Mapping[Path, int]:
        """Each one's rank by mean last loss, from 1, among those comparable with the baseline."""
        if self.baseline is None:
            return {}
        held = [g for g in self.groups if not (self.incomparable_reason(g) or self.only_bytes_comparable(g))]
        known = {group.path: scores_of(group, LAST) for group in held}
        ordered = sorted((path for path, s in known.items() if s.by_seed), key=lambda path: _mean(known[path]).mean)
        return {path: i for i, path in enumerate(ordered, 1)}


@dataclass(frozen=True, eq=False)
class VariantResult:
    """A variant's results within its family: a table row."""

    group: VariantRuns
    family: VariantFamily

    @property
    def path(self) -> Path:
        return self.group.path

    @property
    def name(self) -> str:
        return self.group.name

    @cached_property
    def state(self) -> str:
        """The state of all its runs together: a live one first, then a failure."""
        live = next((run.state for run in self.runs if run.live), "")
        bad = next((run.state for run in self.runs if run.state in (*ENDED_EARLY, DAMAGED)), "")
        return live or bad or self.runs[0].state

    @property
    def checked(self) -> bool:
        """Whether each of its runs and a score of each has been checked."""
        return all(run.checked for run in self.runs)

    @property
    def badges(self) -> Mapping[str, str]:
        return self.group.badges

    @property
    def badges_acknowledged(self) -> tuple[str, ...]:
        return self.group.badges_acknowledged

    @property
    def protocol(self) -> ScoringProtocol:
        return self.group.representative.protocol

    @property
    def runs(self) -> tuple[RunEntry, ...]:
        """All of them, by seed."""
        return self.group.runs

    @property
    def planned(self) -> int:
        """Planned seeds: as many as it has runs, or as its study says."""
        file = self.family.file
        return max(len(self.runs), len(file.seeds) if self.group.name in file.variants else 0)

    @property
    def expectation(self) -> StudyVariant:
        """What its study expects of it, and why."""
        return self.family.file.variants.get(self.group.name, StudyVariant())

    @property
    def seed_count_text(self) -> str:
        """Seeds that count, out of how many: `3`, `2/3`."""
        count = len(self.group.counted_runs)
        return f"{count}" if count == self.planned else f"{count}/{self.planned}"

    def seeds_text(self) -> str:
        """The same in words: `2 of 3 seeds; 1 diverged`."""
        count, total = len(self.group.counted_runs), self.planned
        left = Counter(self.group.exclusion_reasons.values()).items()
        why = [Message("{n} {why}", n=number, why=Message(reason)) for reason, number in left]
        why += [Message("{n} not started", n=total - len(self.runs))] if total > len(self.runs) else []
        return join(
            CLAUSES, [Message("{n} of {total} seeds", n=count, total=total) if why else seed_count(count), *why]
        )

    @property
    def is_baseline(self) -> bool:
        return self.group is self.family.baseline

    def mean(self, measure: Measure) -> Mean | None:
        found = scores_of(self.group, measure)
        return _mean(found) if found.by_seed else None

    def has_same_results(self, other: "VariantResult") -> bool:
        """Return whether it equals an older one, though something else in its family has changed."""
        if self.group is not other.group or self.family.baseline is not other.family.baseline:
            return False
        if self.family.file != other.family.file or self.rank != other.rank:
            return False
        measures = (*LOSSES, *probe_measures(self.runs), *score_measures(self.runs))
        return all(self.difference(measure) == other.difference(measure) for measure in measures)

    def difference(self, measure: Measure) -> PairedDifference | None:
        """Return the difference from the baseline; None without a baseline or shared seeds."""
        return self.family.differences.get(measure.key, {}).get(self.path)

    def judgement(self, measure: Measure) -> Judgement | None:
        """Return the verdict; None if there is none."""
        if self.family.baseline is None or self.is_baseline or self.why_incomparable or self.mean(measure) is None:
            return None
        if measure.key != BITS_PER_BYTE.key and self.family.only_bytes_comparable(self.group):
            return None
        found = self.difference(measure)
        return judge(found, lower_is_better=measure.lower_is_better, margin=measure.margin, digits=measure.format_value)

    @property
    def primary(self) -> Measure:
        return self.family.primary

    @property
    def why_incomparable(self) -> str:
        """Why it is not compared with the baseline; "" if it is."""
        found = self.family.incomparable_reason(self.group)
        return found if found is not None else ""

    @property
    def rank(self) -> int | None:
        return self.family.ranks.get(self.path)

    def verdict(self) -> str:
        """Return the verdict on its primary measure in a few words; "" without a baseline."""
        if self.family.baseline is None or self.is_baseline:
            return BASELINE if self.is_baseline else ""
        reason = self.family.incomparable_reason(self.group)
        return reason if reason is not None else brief_verdict(self.judgement(self.primary))

    @property
    def verdict_kind(self) -> str:
        """The kind of that verdict, as of `verdict_kind` of a run."""
        if self.family.baseline is None or self.is_baseline:
            return ""
        reason = self.family.incomparable_reason(self.group)
        return reason_kind(reason) if reason is not None else getattr(self.judgement(self.primary), "kind", "")

    def loss_change(self) -> float | None:
        """Return the difference of the losses as a share of the baseline's."""
        found, baseline = self.difference(LAST), self.family.baseline
        level = scores_of(baseline, LAST) if baseline is not None else SeedScores()
        mean = _mean(level).mean if level.by_seed else 0.0
        return found.mean / mean if found is not None and mean else None

    def perplexity_change(self) -> float | None:
        """Return the same difference as a share of the baseline's perplexity."""
        found = self.difference(LAST)
        return math.expm1(found.mean) if found is not None and abs(found.mean) < 100 else None


class VariantEvaluator:
    """Puts groups into families, and reuses families in which nothing has changed."""

    def __init__(self) -> None:
        self._kept: dict[object, tuple[tuple[VariantRuns | None, ...], RequestedStudy, tuple[VariantResult, ...]]] = {}

    def evaluate(
        self,
        groups: Sequence[VariantRuns],
        requested_studies: Mapping[str, RequestedStudy] | None = None,
        pinned: Path | None = None,
    ) -> tuple[VariantResult, ...]:
        """Return every group with its baseline: the pinned run's group if in the family, else the study's.

        Without either, the pinned run's group, from wherever it is.
        """
        pin = next((g for g in groups if any(run.path == pinned for run in g.runs)), None) if pinned else None
        families: dict[tuple[Path, str], list[VariantRuns]] = {}
        for group in groups:
            families.setdefault((group.runs[0].path.parent, group.study), []).append(group)
        found: list[VariantResult] = []
        kept, self._kept = self._kept, {}
        for key, members in families.items():
            file = (requested_studies or {}).get(key[1]) or RequestedStudy()  # without one, nothing is requested
            # The baseline first, then as the study's file has them.
            places = {name: i for i, name in enumerate(file.variants)} | {file.baseline: -1}
            ordered = sorted(members, key=lambda group: places.get(group.name, len(places)))
            asked = next((group for group in ordered if group.name == file.baseline), None)
            baseline = pin if pin is not None and any(group is pin for group in ordered) else asked or pin
            now = (baseline, *ordered)
            old = kept.get(key)
            if old is None or old[:2] != (now, file):
                family = VariantFamily(ordered, baseline, file)
                before = {result.path: result for result in old[2]} if old is not None else {}
                made = [VariantResult(group, family) for group in ordered]
                # An equal older one's derived values still hold.
                pairs = ((one, before.get(one.path)) for one in made)
                same = (b if b is not None and one.has_same_results(b) else one for one, b in pairs)
                old = now, file, tuple(same)
            self._kept[key] = old
            found += old[2]
        return tuple(found)


@dataclass(frozen=True)
class Expectation:
    """What a study expected of a variant before it ran, beside the outcome."""

    what: str  # "loss", or a family of probes
    expected: str  # worse, better, same, or unknown
    outcome: str  # one of the four
    judgements: tuple[tuple[Measure, Judgement], ...]  # what was judged, and how


def expectations(result: VariantResult, measures: Sequence[Measure]) -> tuple[Expectation, ...]:
    """Return the expectations of one variant; empty if a baseline other than the study's is pinned."""
    family, made = result.family, []
    if family.baseline is None or family.baseline.name != family.file.baseline:
        return ()
    for what, said in result.expectation.expect.items():
        meant = [LAST] if what == LOSS.key else [m for m in measures if what in (m.key, m.key_without_band)]
        found = tuple((m, judgement) for m in meant if (judgement := result.judgement(m)) is not None)
        kinds = [judgement.kind for _, judgement in found]
        if said == UNKNOWN:
            outcome = UNKNOWN_BEFOREHAND
        elif any(kind in ("better", "worse", "same") and kind != said for kind in kinds):
            outcome = NOT_AS_EXPECTED  # one probe of a family that contradicts is enough
        else:
            outcome = AS_EXPECTED if kinds and all(kind == said for kind in kinds) else OPEN
        made.append(Expectation(what, said, outcome, found))
    return tuple(made)


def outcome_summary(found: Sequence[Expectation]) -> str:
    """Return a few words for a cell: the shared outcome, or how many had which."""
    outcomes = [expectation.outcome for expectation in found]
    counts = {outcome: outcomes.count(outcome) for outcome in (NOT_AS_EXPECTED, AS_EXPECTED, OPEN, UNKNOWN_BEFOREHAND)}
    present = [(outcome, count) for outcome, count in counts.items() if count]
    if len(present) == 1:
        return present[0][0]
    brief = {UNKNOWN_BEFOREHAND: Message(UNKNOWN)}
    return join(PHRASES, (Message("{n} {outcome}", n=n, outcome=brief.get(what, what)) for what, n in present))
