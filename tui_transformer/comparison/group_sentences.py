"""Verdicts over seeds in whole sentences: for the end of a study, the detail of a variant, and a report."""

from collections.abc import Iterator, Sequence

from tui_transformer.badges import badge
from tui_transformer.comparison.comparable import why_not
from tui_transformer.comparison.expected import AS_EXPECTED, BEFOREHAND, LOSS, NOT_AS_EXPECTED, Expectation
from tui_transformer.comparison.groups import INERT
from tui_transformer.comparison.measures import BEST, LAST, Measure
from tui_transformer.comparison.standing import Family, Standing
from tui_transformer.words import per_cent, short

OVERFIT, FALLING = "OVERFIT", "STILL-FALLING"
EXPLORATORY = 5  # seeds below which a study is a first look


def verdict_sentence(standing: Standing) -> str:
    """What may be concluded about its loss, with everything it rests on."""
    group, family = standing.group, standing.family
    if family.baseline is None:
        return f"no baseline to hold it against ({standing.seeds})"
    if standing.is_baseline:
        return f"the baseline ({standing.seeds})"
    if standing.why_not:
        return f"{standing.why_not} ({standing.seeds})"
    judged, found = standing.judgement(LAST), standing.difference(LAST)
    words = judged.text if judged is not None else "no loss in common: cannot tell"
    if found is None:
        return f"{words} ({standing.seeds})"
    facts = [standing.seeds if standing.planned != found.n else f"{found.n} seed{'s' if found.n > 1 else ''}"]
    if found.n < len(group.counted):
        facts.append(f"{found.n} of them in common with {family.baseline.name}")
    if found.holm_p is not None:
        among = f" among {found.compared} variants" if found.compared > 1 else ""
        facts.append(f"p {_p(found.holm_p)} by Holm{among}")
    if found.sign_flip_p is not None:
        facts.append(f"{_p(found.sign_flip_p)} by sign flips")
    if found.correlation is not None:
        facts.append(f"correlation of the seeds {found.correlation:+.2f}")
    difference = f"Δ {LAST.spread(found.difference, found.half, sign=True)}, " if _without_number(standing) else ""
    return f"{words} ({difference}{', '.join(facts)})"


def _without_number(standing: Standing) -> bool:
    judged = standing.judgement(LAST)
    return judged is not None and judged.kind not in ("better", "worse")


def _p(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def more_sentences(standing: Standing) -> Iterator[str]:
    """What has to be known beside the verdict."""
    group, baseline = standing.group, standing.family.baseline
    if baseline is None or standing.is_baseline:
        return
    if group.void or baseline.void or INERT in group.badges:
        name = group.void or baseline.void or INERT
        whose = group.name if group.void or INERT in group.badges else baseline.name
        yield f"{whose} has the badge {name}: {badge(name).means}"
        return
    if standing.why_not:
        reason = why_not(group.representative, baseline.representative) if group.counted and baseline.counted else ""
        if reason:
            yield reason
        return
    found = standing.difference(LAST)
    if found is not None:
        cent, perplexity = standing.per_cent(), standing.perplexity_per_cent()
        if cent is not None and perplexity is not None:
            yield f"That is {per_cent(cent)} of the loss and {per_cent(perplexity)} of the perplexity."
    if group.diverged:
        yield f"{group.diverged} of {len(group.runs)} seeds diverged and do not count: the others flatter it."
    if OVERFIT in group.badges or OVERFIT in baseline.badges:
        best = standing.judgement(BEST)
        who = group.name if OVERFIT in group.badges else baseline.name
        if best is not None:
            yield f"{who} has the badge {OVERFIT}; at its best: {best.text}."
    if FALLING in group.badges or FALLING in baseline.badges:
        yield "The loss was still falling: this is a verdict about this budget, not about the end of training."
    fewer = _parameters(standing)
    if fewer:
        yield fewer


def _parameters(standing: Standing) -> str:
    baseline = standing.family.baseline
    own = standing.group.representative.parameters
    others = baseline.representative.parameters if baseline is not None else None
    if own is None or others is None or own == others:
        return ""
    more = "more" if own > others else "fewer"
    return f"It has {short(abs(own - others))} {more} parameters ({short(own)} against {short(others)})."


def expectation_sentence(found: Expectation) -> str:
    """`recall worse: as expected (recall<110 worse by 51.3 ± 8.1 %, …)`."""
    what = "the loss" if found.what == LOSS else found.what
    said = f"{what} unknown" if found.outcome == BEFOREHAND else f"{what} {found.said}"
    came = "; ".join(f"{'' if m is LAST else m.name + ': '}{_with_unit(m, judged.text)}" for m, judged in found.found)
    head = f"expected {said}" if found.outcome != BEFOREHAND else f"{what}: {BEFOREHAND}"
    outcome = "" if found.outcome == BEFOREHAND else f": {found.outcome}"
    return f"{head}{outcome}{f' ({came})' if came else ' (nothing to judge)'}"


def _with_unit(measure: Measure, text: str) -> str:
    """Percentages of a share are points."""
    has_number = any(character.isdigit() for character in text.partition(";")[0])
    return f"{text} points" if measure.unit == "%" and has_number and ";" not in text else text


def probe_sentence(standing: Standing, measure: Measure) -> str:
    """The verdict on a probe or another score, in words; "" where there is none."""
    judged = standing.judgement(measure) if measure.judged else None
    return _with_unit(measure, judged.text) if judged is not None else ""


def outcome_counts(found: Sequence[Expectation]) -> str:
    """How the expectations of a study came out."""
    known = [e.outcome for e in found if e.outcome != BEFOREHAND]
    right, wrong = known.count(AS_EXPECTED), known.count(NOT_AS_EXPECTED)
    unknown = len(found) - len(known)
    parts = [f"{right} of {len(known)} as expected", f"{wrong} not as expected", f"{len(known) - right - wrong} open"]
    return ", ".join([*parts, *([f"{unknown} unknown beforehand"] if unknown else [])])


def notes(standings: Sequence[Standing]) -> Iterator[str]:
    """What the numbers of the table mean; said once below it."""
    families: list[Family] = list({id(s.family): s.family for s in standings}.values())
    yield "± is half of the 95 % t interval over seeds; Δ is the variant minus the baseline on the same seeds."
    compared = max((found.compared for s in standings if (found := s.difference(LAST)) is not None), default=1)
    if compared > 1:
        yield f"Verdicts allow for {compared} comparisons at once (Holm); intervals are of one difference alone."
    most = max((len(s.group.counted) for s in standings), default=0)
    if 1 < most < EXPLORATORY:
        yield f"{most} seeds are a first look: the p of sign flips is {2 ** (1 - most):g} at best, so it cannot tell."
    if any(family.baseline is not None for family in families):
        yield "A % of the loss is no % of quality, a rank knows no noise: both are for those who must hand them in."
    if any(run.scores.get("bleu") is not None for s in standings for run in s.runs):
        yield "± over seeds says nothing of the noise of the sentences: for BLEU that is the p given seed by seed."
    for family in families:
        begun = {group.variant for group in family.groups}
        waiting = [name for name in family.file.variants if name not in begun] if family.file is not None else []
        if waiting:
            yield f"Not begun yet: {', '.join(waiting)}."
        if family.file is not None and family.file.problem:
            yield f"Its baseline and what was expected are not known: {family.file.problem}"
