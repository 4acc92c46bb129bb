"""The first paragraph: the conclusions and every alarm, before anything else."""

from collections.abc import Iterator, Sequence

from engine.config.measures import MEASURES_BY_KEY
from engine.evaluation.alarms import MIN_LEARNED_NATS
from engine.runs.verdict import NOT_LEARNING
from tui_transformer.lab.analysis.entry import DAMAGED, EXCESS, LAST, majorities
from tui_transformer.lab.analysis.groups import DIVERGED, INERT, why_incomparable
from tui_transformer.lab.analysis.sentences import EXPLORATORY
from tui_transformer.lab.analysis.verdict import VariantResult
from tui_transformer.lab.records.badges import BADGES
from tui_transformer.lab.reports.context import ReportContext
from tui_transformer.lab.reports.document import Strong, VerdictParagraph

EXACT, ACCURACY = MEASURES_BY_KEY["exact_match"], MEASURES_BY_KEY["accuracy"]
FINISHED = "finished"
Sentence = str | Strong  # an alarm is in bold


def first_paragraph(context: ReportContext) -> VerdictParagraph:
    sentences = [*_alarms(context), *_unfinished(context)]
    sentences += _compared(context) if context.has_several_variants else _alone(context, context.results[0])
    between = context.phrase("join.sentence")
    spans = [span for sentence in sentences for span in (between, sentence)]
    void = any(s.group.invalid_badge or _all_diverged(s) or INERT in s.badges for s in context.results)
    return VerdictParagraph(tuple(spans[1:]), alarm=void)


def _alarms(context: ReportContext) -> Iterator[Sentence]:
    language = context.language
    order = {name: i for i, name in enumerate(BADGES)}
    names = {name for standing in context.results for name in standing.badges}
    for name in sorted(names, key=lambda name: (order.get(name, len(order)), name)):
        having = [s for s in context.results if name in s.badges]
        if name != DIVERGED:
            yield _alarm(context, name, having)
            continue
        if whole := [s for s in having if _all_diverged(s)]:
            yield Strong(language.format_count("alarm.DIVERGED", len(whole), names=context.names(whole)))
        for s in having:
            if not _all_diverged(s):
                count = {"n": s.group.diverged_count, "total": len(s.runs)}
                yield Strong(context.phrase("alarm.diverged-some", name=context.name(s), **count))
    # Losses no better than counting tokens, in runs too short for the check to say so.
    unlearned = []
    for standing in context.results:
        run = standing.group.representative
        unigram = context.facts(run).unigram
        if NOT_LEARNING not in standing.badges and unigram is not None and run.last is not None:
            unlearned += [standing] if run.last > unigram - MIN_LEARNED_NATS else []
    if unlearned:
        yield _alarm(context, NOT_LEARNING, unlearned)


def _alarm(context: ReportContext, name: str, having: Sequence[VariantResult]) -> Strong:
    """Variants with a badge, with the number of runs unless all have it; an unknown badge in its own words."""
    each = []
    for standing in having:
        variant, runs = context.name(standing), len(standing.runs)
        count = standing.group.badge_counts[name] or runs
        each.append(variant if count == runs else context.phrase("alarm.some", name=variant, n=count, total=runs))
    key = f"alarm.{name}" if name in BADGES else "alarm.unknown"
    values = {"names": context.language.join_list(each), "badge": name, "means": context.language.badge(name).means}
    return Strong(context.language.format_count(key, len(having), **values))


def _all_diverged(standing: VariantResult) -> bool:
    return 0 < standing.group.diverged_count == len(standing.runs)


def _unfinished(context: ReportContext) -> Iterator[Sentence]:
    language = context.language
    runs = [run for run in context.runs if DIVERGED not in run.badges]
    each = []
    for run in runs:
        if run.state not in (FINISHED, DAMAGED):
            values = {"name": run.name, "step": f"{run.step:,}", "steps": f"{run.steps:,}"}
            each.append(context.phrase("unfinished.each", state=language.translate(run.state), **values))
    if each:
        yield Strong(language.format_count("unfinished", len(each), each=language.join_list(each)))
    unscored = [run.name for run in runs if run.last is None and run.state == FINISHED]
    if unscored:
        yield Strong(language.format_count("unscored", len(unscored), names=language.join_list(unscored)))


def _unit(context: ReportContext, standing: VariantResult) -> str:
    return context.language.translate(standing.protocol.unit)


def _alone(context: ReportContext, standing: VariantResult) -> Iterator[Sentence]:
    say = context.phrase
    mean, run, unit = standing.mean(LAST), standing.group.representative, _unit(context, standing)
    if mean is None:
        if run.last is None:
            yield say("alone.nothing")
        else:
            yield say("alone.not-final", loss=LAST.format_value(run.last), unit=unit)
        return
    key = "alone.void" if standing.group.invalid_badge else "alone"
    seeds = standing.seeds_text(context.language)
    yield say(key, name=standing.name, loss=LAST.format_mean(mean), unit=unit, seeds=seeds)
    if standing.group.invalid_badge:
        return
    excess = standing.mean(EXCESS)
    if excess is not None:
        floor = context.floor(run)
        key = "alone.excess.window" if floor is not None and floor.context else "alone.excess"
        yield say(key, excess=EXCESS.format_mean(excess, sign=True), unit=unit)
    yield from _answer_scores(context)
    yield Strong(say("alone.one-seed")) if mean.n == 1 else say("alone.no-comparison")


def _compared(context: ReportContext) -> Iterator[Sentence]:
    say = context.phrase
    reasons = {
        why_incomparable(s.group.representative, level.representative, context.language): None
        for s in context.results
        if (level := s.family.baseline) is not None
        and not (s.is_baseline or s.group.invalid_badge or level.invalid_badge)
    }
    yield from (Strong(say("compared.measures", why=reason)) for reason in reasons if reason)
    for family in dict.fromkeys(s.family for s in context.results):
        baseline = next((s for s in context.results if s.group is family.baseline), None)
        others = [s for s in context.results if s.family is family and s is not baseline]
        if others and baseline is None:
            yield say("compared.no-baseline", names=context.names(others))
        elif others and baseline is not None:
            mean = baseline.mean(LAST)
            if mean is not None and not baseline.group.invalid_badge:
                unit, seeds = _unit(context, baseline), baseline.seeds_text(context.language)
                loss = LAST.format_mean(mean)
                yield say("compared.level", baseline=context.name(baseline), loss=loss, unit=unit, seeds=seeds)
            yield from _sentences_by_verdict(context, context.name(baseline), others)
    yield from _answer_scores(context)
    most = max(len(s.group.counted_runs) for s in context.results)
    kinds = {kind for s in context.results if (kind := _primary_verdict_kind(s))}
    if "one-seed" in kinds:
        key = "compared.one-seed" if kinds == {"one-seed"} else "compared.some-one-seed"
        yield Strong(
            say(key, names=context.names(s for s in context.results if _primary_verdict_kind(s) == "one-seed"))
        )
    elif 1 < most < EXPLORATORY and kinds:
        yield say("compared.exploratory", n=most)
    if not kinds:
        yield Strong(say("compared.nothing"))


def _primary_verdict_kind(standing: VariantResult) -> str:
    judged = standing.judgement(standing.primary)
    return judged.kind if judged is not None else ""


def _sentences_by_verdict(context: ReportContext, baseline: str, others: Sequence[VariantResult]) -> Iterator[str]:
    """`Worse than the baseline global, in nats per character: win16 (by 0.07 ± 0.01), …`."""
    for kind in ("better", "worse", "same", "inconclusive"):
        having = [s for s in others if _primary_verdict_kind(s) == kind]
        if not having:
            continue
        each = [
            context.bracketed(context.name(s), context.language.judgement(found, "first"))
            for s in having
            if (found := s.judgement(s.primary)) is not None
        ]
        primary = having[0].primary
        if primary is LAST:
            measure = context.phrase("compared.of-loss", unit=_unit(context, having[0]))
        else:
            key = "compared.of-share" if primary.is_share else "compared.of-score"
            measure = context.phrase(key, name=context.language.translate(primary.name))
        names = context.phrase("join.comma").join(each)
        yield context.phrase(f"compared.{kind}", baseline=baseline, names=names, measure=measure)


def _answer_scores(context: ReportContext) -> Iterator[str]:
    """Each one's exact-answer score, and the score of always giving the same answer."""
    asked = [s for s in context.results if s.group.representative.majority is not None]
    standings = [s for s in asked if s.group.representative.classification is None]
    yield from _classes(context, [s for s in asked if s not in standings])
    each = [
        context.phrase("answers.each", name=context.name(s), share=EXACT.format_mean(mean), unit=EXACT.unit)
        for s in standings
        if (mean := s.mean(EXACT)) is not None
    ]
    if each:
        yield context.phrase("answers", each=context.language.join_list(each))
    for one in majorities(s.group.representative for s in standings):
        yield context.phrase("answers.majority", answer=one.answer, share=f"{one.share:.1%}")


def _classes(context: ReportContext, standings: Sequence[VariantResult]) -> Iterator[str]:
    """Each one's accuracy, and that of always choosing one class, of word counts, and of who knows the grammar."""
    each = [
        context.phrase("answers.each", name=context.name(s), share=ACCURACY.format_mean(mean), unit=ACCURACY.unit)
        for s in standings
        if (mean := s.mean(ACCURACY)) is not None
    ]
    if each:
        yield context.phrase("classes", each=context.language.join_list(each))
    for one in majorities(s.group.representative for s in standings):
        yield context.phrase("classes.majority", answer=one.answer, share=f"{one.share:.1%}")
    known = {facts.bag_of_words: facts for s in standings if (facts := context.facts(s.group.representative))}
    for share, facts in known.items():
        if share is not None:
            yield context.phrase("classes.words", share=f"{share:.1%}")
        if (reader := facts.best_reader) is not None:
            key = "classes.best" if reader.unordered is None else "classes.best.order"
            yield context.phrase(key, best=f"{reader.accuracy:.1%}", unordered=f"{reader.unordered or 0.0:.1%}")
