"""The first paragraph: the conclusions and every alarm, before anything else."""

from collections.abc import Iterator, Sequence

from engine.base.language import Message
from engine.config.measures import MEASURES_BY_KEY
from engine.evaluation.alarms import MIN_LEARNED_NATS
from engine.runs.verdict import NOT_LEARNING
from tui_transformer.lab.analysis.entry import DAMAGED, EXCESS, LAST, majorities
from tui_transformer.lab.analysis.groups import DIVERGED, INERT, why_incomparable
from tui_transformer.lab.analysis.lists import PHRASES, SENTENCES, in_brackets, join, join_names
from tui_transformer.lab.analysis.sentences import EXPLORATORY, few_seeds
from tui_transformer.lab.analysis.verdict import VariantResult, judgement_text
from tui_transformer.lab.records.badges import BADGES, badge
from tui_transformer.lab.reports.context import ReportContext
from tui_transformer.lab.reports.document import Strong, VerdictParagraph

EXACT, ACCURACY = MEASURES_BY_KEY["exact_match"], MEASURES_BY_KEY["accuracy"]
FINISHED = "finished"
Sentence = str | Strong  # an alarm is in bold
BY_VERDICT = {
    "better": Message("Better than the baseline {baseline} at these settings, {measure}: {names}."),
    "worse": Message("Worse than the baseline {baseline} at these settings, {measure}: {names}."),
    "same": Message("No difference from the baseline {baseline} large enough to matter at these settings: {names}."),
    "inconclusive": Message("Inconclusive compared with the baseline {baseline} at this number of seeds: {names}."),
}
WORDING = {  # of a verdict, by its kind, or by why it is inconclusive
    "better": Message("by {amount} {interval}"),
    "worse": Message("by {amount} {interval}"),
    "same": Message("no more than {amount}"),
    "equal": Message("not at all"),
    "inconclusive": Message(
        "if the difference is as large as measured, about {seeds} seeds would show it, with a range of {fewest} to "
        "{most}"
    ),
    "open": Message(
        "there may be no difference; if there is one as large as measured, about {seeds} seeds would show it"
    ),
    "never": Message("there may be no difference"),
    "identical": Message("exactly the same difference for every seed, so its noise is unknown"),
    "questions": Message("there may be no difference; with so few questions, more seeds would not show one"),
}


def first_paragraph(context: ReportContext) -> VerdictParagraph:
    sentences = [*_alarms(context), *_unfinished(context)]
    sentences += _compared(context) if context.has_several_variants else _alone(context, context.results[0])
    between = context.say(SENTENCES, first="", rest="")
    spans = [span for sentence in sentences for span in (between, sentence)]
    void = any(s.group.invalid_badge or _all_diverged(s) or INERT in s.badges for s in context.results)
    return VerdictParagraph(tuple(spans[1:]), alarm=void)


def _alarms(context: ReportContext) -> Iterator[Sentence]:
    order = {name: i for i, name in enumerate(BADGES)}
    names = {name for standing in context.results for name in standing.badges}
    for name in sorted(names, key=lambda name: (order.get(name, len(order)), name)):
        having = [s for s in context.results if name in s.badges]
        if name != DIVERGED:
            yield _alarm(context, name, having)
            continue
        if whole := [s for s in having if _all_diverged(s)]:
            yield Strong(context.say(_alarm_text(name, len(whole)), names=context.names(whole)))
        for s in having:
            if not _all_diverged(s):
                count = {"n": s.group.diverged_count, "total": len(s.runs)}
                yield Strong(
                    context.say(
                        "{n} of {total} seeds of {name} diverged and were excluded, so its mean looks better than it "
                        "is.",
                        name=context.name(s),
                        **count,
                    )
                )
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
        each.append(
            variant if count == runs else context.say("{name} ({n} of {total} runs)", name=variant, n=count, total=runs)
        )
    means = Message(badge(name).means)
    return Strong(context.say(_alarm_text(name, len(having)), names=join_names(each), badge=name, means=means))


def _alarm_text(name: str, n: int) -> str:
    known = badge(name)
    return known.alarm_of_one if n == 1 and known.alarm_of_one else known.alarm


def _all_diverged(standing: VariantResult) -> bool:
    return 0 < standing.group.diverged_count == len(standing.runs)


def _unfinished(context: ReportContext) -> Iterator[Sentence]:
    runs = [run for run in context.runs if DIVERGED not in run.badges]
    each = []
    for run in runs:
        if run.state not in (FINISHED, DAMAGED):
            values = {"name": run.name, "step": f"{run.step:,}", "steps": f"{run.steps:,}"}
            each.append(context.say("{name} ({state} at step {step} of {steps})", state=Message(run.state), **values))
    if each:
        text = Message.counted(
            "This run is not finished, so its numbers are not final: {each}.",
            "These runs are not finished, so their numbers are not final: {each}.",
            len(each),
            each=join_names(each),
        )
        yield Strong(context.say(text))
    unscored = [run.name for run in runs if run.last is None and run.state == FINISHED]
    if unscored:
        text = Message.counted(
            "{names} was never evaluated, so nothing can be said about its loss.",
            "{names} were never evaluated, so nothing can be said about their losses.",
            len(unscored),
            names=join_names(unscored),
        )
        yield Strong(context.say(text))


def _unit(context: ReportContext, standing: VariantResult) -> str:
    return context.say(standing.protocol.unit)


def _alone(context: ReportContext, standing: VariantResult) -> Iterator[Sentence]:
    say = context.say
    mean, run, unit = standing.mean(LAST), standing.group.representative, _unit(context, standing)
    if mean is None:
        if run.last is None:
            yield say("There is no score to report.")
        else:
            yield say(
                "The last evaluation gave a validation loss of {loss} nats per {unit}.",
                loss=LAST.format_value(run.last),
                unit=unit,
            )
        return
    text = Message(
        "Its recorded validation loss of {loss} nats per {unit} ({seeds}) must not be reported as a result."
        if standing.group.invalid_badge
        else "{name} reached a validation loss of {loss} nats per {unit} ({seeds})."
    )
    yield say(text, name=standing.name, loss=LAST.format_mean(mean), unit=unit, seeds=standing.seeds_text())
    if standing.group.invalid_badge:
        return
    excess = standing.mean(EXCESS)
    if excess is not None:
        floor = context.floor(run)
        text = Message(
            "That is {excess} nats per {unit} relative to the floor reachable at this context and stride, which no "
            "model that sees only its window can beat except by luck."
            if floor is not None and floor.context
            else "That is {excess} nats per {unit} relative to the floor given the whole past, which no model of this "
            "text can beat except by luck."
        )
        yield say(text, excess=EXCESS.format_mean(excess, sign=True), unit=unit)
    yield from _answer_scores(context)
    yield (
        Strong(
            say(
                "This is one run with one seed: it shows what this run reached, not how much of that was luck, nor "
                "whether another model would do better or worse."
            )
        )
        if mean.n == 1
        else say("There is nothing here to compare it with, so the cause of this result cannot be determined.")
    )


def _compared(context: ReportContext) -> Iterator[Sentence]:
    say = context.say
    reasons = {
        why_incomparable(s.group.representative, level.representative): None
        for s in context.results
        if (level := s.family.baseline) is not None
        and not (s.is_baseline or s.group.invalid_badge or level.invalid_badge)
    }
    yield from (Strong(say("Not everything here can be compared: {why}", why=reason)) for reason in reasons if reason)
    for family in dict.fromkeys(s.family for s in context.results):
        baseline = next((s for s in context.results if s.group is family.baseline), None)
        others = [s for s in context.results if s.family is family and s is not baseline]
        if others and baseline is None:
            yield say(
                "There is no baseline to compare {names} with, so none can be called better or worse.",
                names=context.names(others),
            )
        elif others and baseline is not None:
            mean = baseline.mean(LAST)
            if mean is not None and not baseline.group.invalid_badge:
                unit, seeds = _unit(context, baseline), baseline.seeds_text()
                loss = LAST.format_mean(mean)
                yield say(
                    "The baseline {baseline} has a validation loss of {loss} nats per {unit} ({seeds}).",
                    baseline=context.name(baseline),
                    loss=loss,
                    unit=unit,
                    seeds=seeds,
                )
            yield from _sentences_by_verdict(context, context.name(baseline), others)
    yield from _answer_scores(context)
    most = max(len(s.group.counted_runs) for s in context.results)
    kinds = {kind for s in context.results if (kind := _primary_verdict_kind(s))}
    if "one-seed" in kinds:
        names = context.names(s for s in context.results if _primary_verdict_kind(s) == "one-seed")
        text = Message(
            "Every comparison here rests on a single seed: no difference can be told apart from luck, so no variant is "
            "called better or worse."
            if kinds == {"one-seed"}
            else "With only one seed in common with the baseline, nothing can be said about {names}."
        )
        yield Strong(say(text, names=names))
    elif 1 < most < EXPLORATORY and kinds:
        yield say(few_seeds(most))
    if not kinds:
        yield Strong(say("So no variant is judged here."))


def _primary_verdict_kind(standing: VariantResult) -> str:
    judged = standing.judgement(standing.primary)
    return judged.kind if judged is not None else ""


def _sentences_by_verdict(context: ReportContext, baseline: str, others: Sequence[VariantResult]) -> Iterator[str]:
    """`Worse than the baseline global, in nats per character: win16 (by 0.07 ± 0.01), …`."""
    for kind, text in BY_VERDICT.items():
        having = [s for s in others if _primary_verdict_kind(s) == kind]
        if not having:
            continue
        each = [
            context.say(in_brackets(context.name(s), judgement_text(found, WORDING)))
            for s in having
            if (found := s.judgement(s.primary)) is not None
        ]
        primary = having[0].primary
        if primary is LAST:
            measure = context.say("in nats per {unit}", unit=_unit(context, having[0]))
        else:
            how = Message("measured by {name}, in percentage points" if primary.is_share else "measured by {name}")
            measure = context.say(how, name=Message(primary.name))
        yield context.say(text, baseline=baseline, names=join(PHRASES, each), measure=measure)


def _answer_scores(context: ReportContext) -> Iterator[str]:
    """Each one's exact-answer score, and the score of always giving the same answer."""
    asked = [s for s in context.results if s.group.representative.majority is not None]
    standings = [s for s in asked if s.group.representative.classification is None]
    yield from _classes(context, [s for s in asked if s not in standings])
    each = [
        context.say("{share} {unit} by {name}", name=context.name(s), share=EXACT.format_mean(mean), unit=EXACT.unit)
        for s in standings
        if (mean := s.mean(EXACT)) is not None
    ]
    if each:
        yield context.say("Held-out questions answered exactly right: {each}.", each=join_names(each))
    for one in majorities(s.group.representative for s in standings):
        yield context.say(
            "Always answering “{answer}” would be right {share} of the time.",
            answer=one.answer,
            share=f"{one.share:.1%}",
        )


def _classes(context: ReportContext, standings: Sequence[VariantResult]) -> Iterator[str]:
    """Each one's accuracy, and that of always choosing one class, of word counts, and of who knows the grammar."""
    each = [
        context.say(
            "{share} {unit} by {name}", name=context.name(s), share=ACCURACY.format_mean(mean), unit=ACCURACY.unit
        )
        for s in standings
        if (mean := s.mean(ACCURACY)) is not None
    ]
    if each:
        yield context.say("Held-out texts put into the right class: {each}.", each=join_names(each))
    for one in majorities(s.group.representative for s in standings):
        yield context.say(
            "Always choosing “{answer}” would be right for {share} of them.",
            answer=one.answer,
            share=f"{one.share:.1%}",
        )
    known = {facts.bag_of_words: facts for s in standings if (facts := context.facts(s.group.representative))}
    for share, facts in known.items():
        if share is not None:
            yield context.say("Naive Bayes, which only counts words, is right for {share}.", share=f"{share:.1%}")
        if (reader := facts.best_reader) is not None:
            text = Message(
                "A reader who knows the grammar that the texts come from gets {best:.1%} right, the most that is "
                "possible."
                if reader.unordered is None
                else "A reader who knows the grammar that the texts come from gets {best:.1%} right, the most that is "
                "possible; one who does not see the order of words gets {unordered:.1%}."
            )
            yield context.say(text, best=reader.accuracy, unordered=reader.unordered)
