"""What a comparison shows first: a study's variants, or else runs that can be compared, from the best to the worst."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.base.language import tr
from engine.config.measures import Measure
from tui_transformer.lab.analysis.groups import VariantRuns
from tui_transformer.lab.analysis.verdict import VariantFamily, VariantResult


@dataclass(frozen=True)
class StudyConclusion:
    """The variants of one family; `measure` is the one they are ranked by."""

    family: VariantFamily
    measure: Measure
    results: tuple[VariantResult, ...]  # the best first; those without a difference last

    @property
    def study(self) -> str:
        """The name of their study; "" for runs outside of any."""
        return self.family.groups[0].study

    @property
    def baseline(self) -> VariantResult | None:
        return next((result for result in self.results if result.is_baseline), None)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """All measures its variants are judged by, the primary one first."""
        primary = self.family.primary
        return (primary, *(measure for measure in self.family.measures if measure.key != primary.key))


def study_conclusions(results: Sequence[VariantResult], measure: str = "") -> tuple[StudyConclusion, ...]:
    """Return an answer for each study, the newest first, then one for the runs outside studies.

    Each is about `measure` where it is judged by that, else about its primary one. There is none without a baseline,
    or about a lone variant.
    """
    studies: dict[tuple[Path, str], list[VariantResult]] = {}
    for result in results:
        studies.setdefault((result.runs[0].path.parent, result.group.study), []).append(result)
    made = []
    for (_, study), members in studies.items():
        # A result that has not changed still has the family it had; another one has the present family.
        groups = {result.group for result in members}
        family = next((r.family for r in members if groups == set(r.family.groups)), members[-1].family)
        shown = [result for result in members if study or not family.is_other_measure(result.group)]
        if len(shown) > 1 and family.baseline is not None:
            by = next((m for m in family.measures if m.key == measure), family.primary)
            made.append(StudyConclusion(family, by, tuple(sorted(shown, key=lambda result: _rank_key(result, by)))))
    newest = {one.family: max(run.created for result in one.results for run in result.runs) for one in made}
    return tuple(sorted(made, key=lambda one: (bool(one.study), newest[one.family]), reverse=True))


def why_no_conclusion(results: Sequence[VariantResult]) -> str:
    """Return why these have no answer, and what to do; "" where there is no run."""
    if not results:
        return ""
    if not any(result.group.counted_runs for result in results):
        live = any(run.live for result in results for run in result.runs)
        return tr("No answer yet: no run has finished.") if live else tr("No answer: no run has a valid score.")
    if len(results) == 1:
        return tr("No answer yet: there is only one variant. Press 1 to design another.")
    lost = next((r for r in results if r.group.study and r.family.baseline is None), None)
    if lost is not None:
        return tr(
            "No answer yet: study {study} has no baseline to compare with. Press p on a variant to set one.",
            study=lost.group.study,
        )
    return tr("No answer: no two runs can be compared (different data or scoring). Press 1 to train a comparable one.")


def _rank_key(result: VariantResult, measure: Measure) -> tuple[int, float]:
    if result.is_baseline:
        return 0, 0.0
    found = None if result.why_incomparable else result.difference(measure)
    return (1, 0.0) if found is None else (0, found.mean if measure.lower_is_better else -found.mean)


def default_baseline(groups: Sequence[VariantRuns]) -> Path | None:
    """Return a run to compare others with: of the most variants scored alike, the most seeds, then the oldest."""
    known = [group for group in groups if not group.study and group.counted_runs and not group.invalid_badge]
    alike = Counter(group.representative.protocol for group in known)
    known = sorted(known, key=lambda group: group.representative.created)
    best = max(known, key=lambda group: (alike[group.representative.protocol], len(group.counted_runs)), default=None)
    return best.representative.path if best is not None else None
