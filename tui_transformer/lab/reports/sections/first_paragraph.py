"""The first paragraph: what may be concluded, and every alarm, before anything else is said."""

from collections.abc import Iterator, Sequence

from engine.clean import clean_line
from engine.evaluation.alarms import LEARNED
from engine.evaluation.verdict import NOT_LEARNING
from engine.measures import MEASURE
from tui_transformer.lab.analysis.entry import DAMAGED, EXCESS, LAST, Entry, majorities
from tui_transformer.lab.analysis.groups import DIVERGED, INERT, why_not
from tui_transformer.lab.analysis.sentences import EXPLORATORY
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.records.badges import BADGES
from tui_transformer.lab.records.facts import number
from tui_transformer.lab.reports.document import Verdict
from tui_transformer.lab.reports.told import Told, emphasis

EXACT = MEASURE["exact_match"]
Sentence = tuple[str, bool]  # and whether it is an alarm
FINISHED = "finished"


def first_paragraph(told: Told) -> Verdict:
    """All of it."""
    standings = told.gathered.standings
    found = [*_alarms(told), *_unlearned(told), *_unfinished(told)]
    judged = list(_compared(told) if told.gathered.several else _alone(told, standings[0]))
    void = any(standing.group.void or _all_diverged(standing) or INERT in standing.badges for standing in standings)
    return Verdict(emphasis([*found, *judged], told.say("join.sentence")), alarm=void)


def _alarms(told: Told) -> Iterator[Sentence]:
    """A sentence for each badge that any variant has, the worst first."""
    standings = told.gathered.standings
    names = dict.fromkeys(name for standing in standings for name in standing.badges)
    order = {name: i for i, name in enumerate(BADGES)}
    for name in sorted(names, key=lambda name: (order.get(name, len(order)), name)):
        having = [s for s in standings if name in s.badges]
        if name == DIVERGED:
            yield from _diverged(told, having)
        else:
            yield _alarm(told, name, having), True


def _unlearned(told: Told) -> Iterator[Sentence]:
    """Losses that counting tokens reaches too, though a run was too short for the check to say so."""
    having = []
    for standing in told.gathered.standings:
        run = standing.group.representative
        line = number(told.gathered.facts(run, "data").get("unigram"))
        if NOT_LEARNING not in standing.badges and line is not None and run.last is not None:
            having += [standing] if run.last > line - LEARNED else []
    if having:
        yield _alarm(told, NOT_LEARNING, having), True


def _alarm(told: Told, name: str, having: Sequence[VariantResult]) -> str:
    """Of a badge of a later version, its name and what it says of itself."""
    key = f"alarm.{name}" if name in BADGES else "alarm.unknown"
    names = told.language.joined(_named(told, s, s.group.badge_counts[name] or len(s.runs)) for s in having)
    means = told.language.badge(name).means
    return told.language.counted(key, len(having), names=names, badge=name, means=means)


def _named(told: Told, standing: VariantResult, count: int) -> str:
    """A variant, and how many of its runs where not all."""
    name, runs = told.gathered.name(standing), len(standing.runs)
    return name if count == runs else told.say("alarm.some", name=name, n=count, total=runs)


def _all_diverged(standing: VariantResult) -> bool:
    return 0 < standing.group.diverged == len(standing.runs)


def _diverged(told: Told, having: Sequence[VariantResult]) -> Iterator[Sentence]:
    whole = [told.gathered.name(s) for s in having if _all_diverged(s)]
    if whole:
        yield told.language.counted("alarm.DIVERGED", len(whole), names=told.language.joined(whole)), True
    for standing in having:
        if not _all_diverged(standing):
            name, n, total = told.gathered.name(standing), standing.group.diverged, len(standing.runs)
            yield told.say("alarm.diverged-some", name=name, n=n, total=total), True


def _unfinished(told: Told) -> Iterator[Sentence]:
    """Runs that still go on, were cut off, or were never scored."""
    runs = [run for run in told.gathered.runs if DIVERGED not in run.badges]
    open_ended = [run for run in runs if run.state not in (FINISHED, DAMAGED)]
    if open_ended:
        each = [_how_far(told, run) for run in open_ended]
        yield told.language.counted("unfinished", len(each), each=told.language.joined(each)), True
    unscored = [run.name for run in runs if run.last is None and run.state == FINISHED]
    if unscored:
        yield told.language.counted("unscored", len(unscored), names=told.language.joined(unscored)), True


def _how_far(told: Told, run: Entry) -> str:
    state = told.language.word(run.state)
    return told.say("unfinished.each", name=run.name, state=state, step=f"{run.step:,}", steps=f"{run.steps:,}")


def _alone(told: Told, standing: VariantResult) -> Iterator[Sentence]:
    """One variant: what it reached, and that nothing follows from it for others."""
    mean, unit = standing.mean(LAST), told.language.word(standing.protocol.unit)
    run = standing.group.representative
    if mean is None:
        loss = run.last
        if loss is None:
            yield told.say("alone.nothing"), False
            return
        yield told.say("alone.not-final", loss=LAST.amount(loss), unit=unit), False
        return
    key = "alone.void" if standing.group.void else "alone"
    seeds = standing.seeds_in(told.language)
    yield told.say(key, name=standing.name, loss=LAST.spread(mean), unit=unit, seeds=seeds), False
    if standing.group.void:
        return
    excess = standing.mean(EXCESS)
    if excess is not None:
        amount = EXCESS.spread(excess, sign=True)
        floor = told.gathered.floor(run)
        key = "alone.excess.window" if floor is not None and floor.context else "alone.excess"
        yield told.say(key, excess=amount, unit=unit), False
    yield from _answers(told)
    yield told.say("alone.one-seed" if mean.n == 1 else "alone.no-comparison"), mean.n == 1


def _compared(told: Told) -> Iterator[Sentence]:
    """Several variants, by what may be concluded of each."""
    standings = told.gathered.standings
    yield from _measures(told)
    for baseline, family in _families(standings):
        if baseline is None:
            names = told.language.joined(told.gathered.name(s) for s in family)
            yield told.say("compared.no-baseline", names=names), False
            continue
        yield from _level(told, baseline)
        yield from _kinds(told, told.gathered.name(baseline), family)
    yield from _answers(told)
    most = max(len(s.group.counted) for s in standings)
    kinds = {judged.kind for s in standings if (judged := s.judgement(s.primary)) is not None}
    if "one-seed" in kinds:
        key = "compared.one-seed" if kinds == {"one-seed"} else "compared.some-one-seed"
        alone = [told.gathered.name(s) for s in standings if _kind(s) == "one-seed"]
        yield told.say(key, names=told.language.joined(alone)), True
    elif 1 < most < EXPLORATORY and kinds:
        yield told.say("compared.exploratory", n=most), False
    if not kinds:
        yield told.say("compared.nothing"), True


def _answers(told: Told) -> Iterator[Sentence]:
    """How many questions each answers exactly, and what always giving the same answer would score."""
    standings = [s for s in told.gathered.standings if s.group.representative.majority is not None]
    means = [(told.gathered.name(s), mean) for s in standings if (mean := s.mean(EXACT)) is not None]
    if means:
        each = [told.say("answers.each", name=name, share=EXACT.spread(mean), unit=EXACT.unit) for name, mean in means]
        yield told.say("answers", each=told.language.joined(each)), False
    for one in majorities(s.group.representative for s in standings):
        yield told.say("answers.majority", answer=clean_line(one.answer), share=f"{one.share:.1%}"), False


def _families(standings: Sequence[VariantResult]) -> Iterator[tuple[VariantResult | None, list[VariantResult]]]:
    """Each baseline with what is held against it."""
    for family in dict.fromkeys(s.family for s in standings):
        members = [s for s in standings if s.family is family]
        baseline = next((s for s in standings if s.group is family.baseline), None)
        others = [s for s in members if s is not baseline]
        if others:
            yield baseline, others


def _level(told: Told, baseline: VariantResult) -> Iterator[Sentence]:
    """What the others are held against."""
    mean = baseline.mean(LAST)
    if mean is not None and not baseline.group.void:
        name, unit = told.gathered.name(baseline), told.language.word(baseline.protocol.unit)
        loss, seeds = LAST.spread(mean), baseline.seeds_in(told.language)
        yield told.say("compared.level", baseline=name, loss=loss, unit=unit, seeds=seeds), False


def _kind(standing: VariantResult) -> str:
    judged = standing.judgement(standing.primary)
    return judged.kind if judged is not None else ""


def _kinds(told: Told, baseline: str, family: Sequence[VariantResult]) -> Iterator[Sentence]:
    """`Worse than the baseline global: win16 (worse by 0.07 ± 0.01), …`."""
    for kind in ("better", "worse", "same", "inconclusive"):
        having = [s for s in family if _kind(s) == kind]
        if having:
            each = [
                told.say("bracketed", text=told.gathered.name(s), facts=told.language.judgement(found, "first"))
                for s in having
                if (found := s.judgement(s.primary)) is not None
            ]
            names, measure = told.say("join.comma").join(each), _measure(told, having[0])
            yield told.say(f"compared.{kind}", baseline=baseline, names=names, measure=measure), False


def _measure(told: Told, standing: VariantResult) -> str:
    """The unit of its family's verdicts: `in nats per character`."""
    primary = standing.primary
    if primary is LAST:
        return told.say("compared.of-loss", unit=told.language.word(standing.protocol.unit))
    key = "compared.of-share" if primary.share else "compared.of-score"
    return told.say(key, name=told.language.word(primary.name))


def _measures(told: Told) -> Iterator[Sentence]:
    """Losses that are different measures: why, for the first of each; that of a leak is said as an alarm."""
    said = set()
    for standing in told.gathered.standings:
        baseline = standing.family.baseline
        if baseline is None or standing.is_baseline or standing.group.void or baseline.void:
            continue
        reason = why_not(standing.group.representative, baseline.representative, told.language)
        if reason and reason not in said:
            said.add(reason)
            yield told.say("compared.measures", why=reason), True
