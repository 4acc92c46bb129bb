"""The first paragraph: the conclusions and every alarm, before anything else."""

from collections.abc import Iterator, Sequence

from engine.config.measures import MEASURE
from engine.evaluation.alarms import LEARNED
from engine.runs.verdict import NOT_LEARNING
from tui_transformer.lab.analysis.entry import DAMAGED, EXCESS, LAST, majorities
from tui_transformer.lab.analysis.groups import DIVERGED, INERT, why_not
from tui_transformer.lab.analysis.sentences import EXPLORATORY
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.records.badges import BADGES
from tui_transformer.lab.reports.context import ReportContext
from tui_transformer.lab.reports.document import Strong, Verdict

EXACT, ACCURACY = MEASURE["exact_match"], MEASURE["accuracy"]
FINISHED = "finished"
Sentence = str | Strong  # an alarm is in bold


def first_paragraph(context: ReportContext) -> Verdict:
    sentences = [*_alarms(context), *_unfinished(context)]
    sentences += _compared(context) if context.several else _alone(context, context.standings[0])
    between = context.say("join.sentence")
    spans = [span for sentence in sentences for span in (between, sentence)]
    void = any(s.group.void or _all_diverged(s) or INERT in s.badges for s in context.standings)
    return Verdict(tuple(spans[1:]), alarm=void)


def _alarms(context: ReportContext) -> Iterator[Sentence]:
    language = context.language
    order = {name: i for i, name in enumerate(BADGES)}
    names = {name for standing in context.standings for name in standing.badges}
    for name in sorted(names, key=lambda name: (order.get(name, len(order)), name)):
        having = [s for s in context.standings if name in s.badges]
        if name != DIVERGED:
            yield _alarm(context, name, having)
            continue
        if whole := [s for s in having if _all_diverged(s)]:
            yield Strong(language.counted("alarm.DIVERGED", len(whole), names=context.names(whole)))
        for s in having:
            if not _all_diverged(s):
                count = {"n": s.group.diverged, "total": len(s.runs)}
                yield Strong(context.say("alarm.diverged-some", name=context.name(s), **count))
    # Losses no better than counting tokens, in runs too short for the check to say so.
    unlearned = []
    for standing in context.standings:
        run = standing.group.representative
        unigram = context.facts(run).unigram
        if NOT_LEARNING not in standing.badges and unigram is not None and run.last is not None:
            unlearned += [standing] if run.last > unigram - LEARNED else []
    if unlearned:
        yield _alarm(context, NOT_LEARNING, unlearned)


def _alarm(context: ReportContext, name: str, having: Sequence[VariantResult]) -> Strong:
    """Variants with a badge, with the number of runs unless all have it; an unknown badge in its own words."""
    each = []
    for standing in having:
        variant, runs = context.name(standing), len(standing.runs)
        count = standing.group.badge_counts[name] or runs
        each.append(variant if count == runs else context.say("alarm.some", name=variant, n=count, total=runs))
    key = f"alarm.{name}" if name in BADGES else "alarm.unknown"
    values = {"names": context.language.joined(each), "badge": name, "means": context.language.badge(name).means}
    return Strong(context.language.counted(key, len(having), **values))


def _all_diverged(standing: VariantResult) -> bool:
    return 0 < standing.group.diverged == len(standing.runs)


def _unfinished(context: ReportContext) -> Iterator[Sentence]:
    language = context.language
    runs = [run for run in context.runs if DIVERGED not in run.badges]
    each = []
    for run in runs:
        if run.state not in (FINISHED, DAMAGED):
            values = {"name": run.name, "step": f"{run.step:,}", "steps": f"{run.steps:,}"}
            each.append(context.say("unfinished.each", state=language.word(run.state), **values))
    if each:
        yield Strong(language.counted("unfinished", len(each), each=language.joined(each)))
    unscored = [run.name for run in runs if run.last is None and run.state == FINISHED]
    if unscored:
        yield Strong(language.counted("unscored", len(unscored), names=language.joined(unscored)))


def _alone(context: ReportContext, standing: VariantResult) -> Iterator[Sentence]:
    say = context.say
    mean, unit, run = standing.mean(LAST), context.language.word(standing.protocol.unit), standing.group.representative
    if mean is None:
        yield (
            say("alone.nothing") if run.last is None else say("alone.not-final", loss=LAST.amount(run.last), unit=unit)
        )
        return
    key = "alone.void" if standing.group.void else "alone"
    seeds = standing.seeds(context.language)
    yield say(key, name=standing.name, loss=LAST.spread(mean), unit=unit, seeds=seeds)
    if standing.group.void:
        return
    excess = standing.mean(EXCESS)
    if excess is not None:
        floor = context.floor(run)
        key = "alone.excess.window" if floor is not None and floor.context else "alone.excess"
        yield say(key, excess=EXCESS.spread(excess, sign=True), unit=unit)
    yield from _answers(context)
    yield Strong(say("alone.one-seed")) if mean.n == 1 else say("alone.no-comparison")


def _compared(context: ReportContext) -> Iterator[Sentence]:
    say = context.say
    reasons = {
        why_not(s.group.representative, level.representative, context.language): None
        for s in context.standings
        if (level := s.family.baseline) is not None and not (s.is_baseline or s.group.void or level.void)
    }
    yield from (Strong(say("compared.measures", why=reason)) for reason in reasons if reason)
    for family in dict.fromkeys(s.family for s in context.standings):
        baseline = next((s for s in context.standings if s.group is family.baseline), None)
        others = [s for s in context.standings if s.family is family and s is not baseline]
        if others and baseline is None:
            yield say("compared.no-baseline", names=context.names(others))
        elif others and baseline is not None:
            mean = baseline.mean(LAST)
            if mean is not None and not baseline.group.void:
                unit, seeds = context.language.word(baseline.protocol.unit), baseline.seeds(context.language)
                yield say(
                    "compared.level", baseline=context.name(baseline), loss=LAST.spread(mean), unit=unit, seeds=seeds
                )
            yield from _kinds(context, context.name(baseline), others)
    yield from _answers(context)
    most = max(len(s.group.counted) for s in context.standings)
    kinds = {kind for s in context.standings if (kind := _kind(s))}
    if "one-seed" in kinds:
        key = "compared.one-seed" if kinds == {"one-seed"} else "compared.some-one-seed"
        yield Strong(say(key, names=context.names(s for s in context.standings if _kind(s) == "one-seed")))
    elif 1 < most < EXPLORATORY and kinds:
        yield say("compared.exploratory", n=most)
    if not kinds:
        yield Strong(say("compared.nothing"))


def _kind(standing: VariantResult) -> str:
    judged = standing.judgement(standing.primary)
    return judged.kind if judged is not None else ""


def _kinds(context: ReportContext, baseline: str, others: Sequence[VariantResult]) -> Iterator[str]:
    """`Worse than the baseline global, in nats per character: win16 (by 0.07 ± 0.01), …`."""
    for kind in ("better", "worse", "same", "inconclusive"):
        having = [s for s in others if _kind(s) == kind]
        if not having:
            continue
        each = [
            context.bracketed(context.name(s), context.language.judgement(found, "first"))
            for s in having
            if (found := s.judgement(s.primary)) is not None
        ]
        primary = having[0].primary
        if primary is LAST:
            measure = context.say("compared.of-loss", unit=context.language.word(having[0].protocol.unit))
        else:
            key = "compared.of-share" if primary.share else "compared.of-score"
            measure = context.say(key, name=context.language.word(primary.name))
        names = context.say("join.comma").join(each)
        yield context.say(f"compared.{kind}", baseline=baseline, names=names, measure=measure)


def _answers(context: ReportContext) -> Iterator[str]:
    """Each one's exact-answer score, and the score of always giving the same answer."""
    asked = [s for s in context.standings if s.group.representative.majority is not None]
    standings = [s for s in asked if s.group.representative.classified is None]
    yield from _classes(context, [s for s in asked if s not in standings])
    each = [
        context.say("answers.each", name=context.name(s), share=EXACT.spread(mean), unit=EXACT.unit)
        for s in standings
        if (mean := s.mean(EXACT)) is not None
    ]
    if each:
        yield context.say("answers", each=context.language.joined(each))
    for one in majorities(s.group.representative for s in standings):
        yield context.say("answers.majority", answer=one.answer, share=f"{one.share:.1%}")


def _classes(context: ReportContext, standings: Sequence[VariantResult]) -> Iterator[str]:
    """Each one's accuracy, and that of always choosing one class, of word counts, and of who knows the grammar."""
    each = [
        context.say("answers.each", name=context.name(s), share=ACCURACY.spread(mean), unit=ACCURACY.unit)
        for s in standings
        if (mean := s.mean(ACCURACY)) is not None
    ]
    if each:
        yield context.say("classes", each=context.language.joined(each))
    for one in majorities(s.group.representative for s in standings):
        yield context.say("classes.majority", answer=one.answer, share=f"{one.share:.1%}")
    known = {facts.bag_of_words: facts for s in standings if (facts := context.facts(s.group.representative))}
    for share, facts in known.items():
        if share is not None:
            yield context.say("classes.words", share=f"{share:.1%}")
        if (reader := facts.best_reader) is not None:
            key = "classes.best" if reader.unordered is None else "classes.best.order"
            yield context.say(key, best=f"{reader.accuracy:.1%}", unordered=f"{reader.unordered or 0.0:.1%}")
