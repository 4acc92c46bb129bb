"""Verdicts over seeds in whole sentences, for the end of a study, a variant's detail, and a report.

All are messages: English, until `tr` or a report translates them.
"""

from collections.abc import Callable, Iterator, Sequence

from engine.base.language import Message
from engine.config.measures import Measure
from engine.evaluation.translation import SAMPLES, paired_bootstrap
from engine.runs.records import DataFacts, Translations, read_file
from tui_transformer.lab.analysis.answer import StudyConclusion
from tui_transformer.lab.analysis.entry import BEST, EXACT_MATCH, LAST, LOSS, majorities
from tui_transformer.lab.analysis.groups import INERT, has_badge, why_incomparable
from tui_transformer.lab.analysis.lists import CLAUSES, NAMES, PHRASES, in_brackets, join, join_names
from tui_transformer.lab.analysis.statistics import Judgement
from tui_transformer.lab.analysis.verdict import (
    AS_EXPECTED,
    NOT_AS_EXPECTED,
    UNKNOWN_BEFOREHAND,
    Expectation,
    VariantResult,
    brief_verdict,
    judgement_text,
    seed_count,
    with_settings_caveat,
)
from tui_transformer.lab.formatting import si_number, signed_per_cent

LONGEST_LIST = 4  # names in a sentence, before the rest is counted
OVERFIT, FALLING = "OVERFIT", "STILL-FALLING"
EXPLORATORY = 5  # seeds below which a study is a first look
SETTLED: dict[str, Callable[..., Message]] = {  # what is said of so many variants, by the kind of their verdict
    "better": lambda n, **of: Message.counted(
        "{names} is better than {baseline}", "{names} are better than {baseline}", n, **of
    ),
    "worse": lambda n, **of: Message.counted(
        "{names} is worse than {baseline}", "{names} are worse than {baseline}", n, **of
    ),
    "same": lambda n, **of: Message.counted(
        "{names} is no different from {baseline}", "{names} are no different from {baseline}", n, **of
    ),
}


def conclusion_sentences(answer: StudyConclusion) -> Iterator[str]:
    """The whole conclusion, fit for a report: what differs, what does not count, and what it says nothing about."""
    measure, family = answer.measure, answer.family
    by_kind: dict[str, list[VariantResult]] = {}
    excluded = []
    for result in answer.results:
        reason, judged = family.incomparable_reason(result.group), result.judgement(measure)
        if reason is not None:
            excluded.append(in_brackets(result.name, reason))
        elif judged is not None and judged.kind == "nothing":
            excluded.append(in_brackets(result.name, brief_verdict(judged)))
        elif judged is not None:
            by_kind.setdefault(judged.kind, []).append(result)
    baseline, clauses = family.baseline.name if family.baseline is not None else "", list[str]()
    for kind, message in SETTLED.items():
        if found := by_kind.get(kind):
            names = _listed([result.name for result in found])
            clauses.append(message(len(found), names=names, baseline=baseline))
    unsettled = by_kind.get("inconclusive", [])
    if unsettled:
        seeds = seed_count(max(len(result.group.counted_runs) for result in unsettled))
        names = _listed([result.name for result in unsettled])
        clauses.append(
            Message(
                "{names} cannot be told apart from {baseline} with {seeds}", names=names, baseline=baseline, seeds=seeds
            )
        )
    if clauses:
        text = join(CLAUSES, clauses)
        if measure is not LAST:
            text = Message("by {measure}, {text}", measure=Message(measure.name), text=text)
        yield Message("At these settings, {text}.", text=text)
    beside = [(result.name, pair) for result in unsettled if (pair := result.difference(measure)) is not None]
    clear = {name: d.comparison_count for name, d in beside if d.half is not None and abs(d.mean) > d.half}
    if clear and max(clear.values()) > 1:
        yield Message.counted(
            "On its own, the interval of {names} excludes 0, but with {compared:,} comparisons, that may be chance.",
            "On their own, the intervals of {names} exclude 0, but with {compared:,} comparisons, that may be chance.",
            len(clear),
            names=_listed([*clear]),
            compared=max(clear.values()),
        )
    judgements = [(result.name, result.judgement(measure)) for result in unsettled]
    enough = {name: judged.seeds for name, judged in judgements if judged is not None and judged.seeds is not None}
    needed = sorted(set(enough.values()))
    if len(needed) > 1 and len(enough) <= LONGEST_LIST:
        yield Message(
            "Seeds needed in all to settle that: about {each}, and {most:,} for the baseline.",
            each=join_names(Message("{seeds:,} for {name}", name=name, seeds=n) for name, n in enough.items()),
            most=needed[-1],
        )
    elif len(needed) > 1:
        yield Message(
            "Settling that takes about {seeds:,} to {most:,} seeds per variant in total, baseline included.",
            seeds=needed[0],
            most=needed[-1],
        )
    elif needed:
        yield Message(
            "Settling that takes about {seeds:,} seeds per variant in total, baseline included.", seeds=needed[0]
        )
    if found := by_kind.get("one-seed"):
        yield Message.counted(
            "One seed proves nothing: the difference between {names} and {baseline} may be luck. Train 3 to 5 seeds of "
            "each.",
            "One seed proves nothing: the differences between {names} and {baseline} may be luck. Train 3 to 5 seeds "
            "of "
            "each.",
            len(found),
            names=_listed([result.name for result in found]),
            baseline=baseline,
        )
    elif clauses and not unsettled:
        yield Message("These seeds are enough to tell.")
    if excluded:
        yield Message.counted("{names} is excluded.", "{names} are excluded.", len(excluded), names=_listed(excluded))
    for result in answer.results:
        if result.group.counted_runs and result.group.diverged_count:
            yield Message(
                "Excluding the {n} of {total} seeds that diverged flatters {name}.",
                name=result.name,
                n=result.group.diverged_count,
                total=len(result.runs),
            )
    runs = [run for result in answer.results for run in result.runs]
    if any(run.live or run.state == "queued" for run in runs):
        planned = sum(result.planned for result in answer.results)
        finished = sum(run.state == "finished" for run in runs)
        yield Message("So far {n} of {total} runs have finished.", n=finished, total=planned)
    groups = [result.group for result in answer.results if not result.why_incomparable]
    counted = [run for group in groups for run in group.counted_runs.values()]
    falling, steps = sum(FALLING in run.badges for run in counted), {run.last_step for run in counted}
    step = steps.pop() if len(steps) == 1 else None
    budget = Message("this much training") if step is None else Message.in_context("budget", "{n:,} steps", n=step)
    if falling == len(counted) > 0:
        yield Message(
            "All runs were still improving: this ranks them after {budget}, not at their best.", budget=budget
        )
    elif falling:
        yield Message(
            "{n} of {total} runs were still improving: this ranks the runs after {budget}, not at their best.",
            n=falling,
            total=len(counted),
            budget=budget,
        )


def _listed(names: Sequence[str]) -> str:
    if len(names) > LONGEST_LIST:
        names = [*names[: LONGEST_LIST - 1], Message("{n} more", n=len(names) - LONGEST_LIST + 1)]
    return join_names(names)


def verdict_sentence(standing: VariantResult) -> str:
    """Return the conclusion about its primary measure; `evidence_sentence` has the statistics behind it."""
    group, family = standing.group, standing.family
    seeds, reason = standing.seeds_text(), family.incomparable_reason(group)
    if family.baseline is None:
        return in_brackets(Message("no baseline to compare with"), seeds)
    if standing.is_baseline:
        return in_brackets(Message("the baseline"), seeds)
    if reason is not None:
        return in_brackets(reason, seeds)
    measure = standing.primary
    judged, found = standing.judgement(measure), standing.difference(measure)
    no_loss = Message("no loss in common: inconclusive")
    words = _judgement_with_unit(measure, judged) if judged is not None else no_loss
    words = with_settings_caveat(words, judged)
    if measure is not LAST:
        words = named(Message(measure.name), words)
    if found is None:
        return in_brackets(words, seeds)
    facts = [seeds if standing.planned != found.n else seed_count(found.n)]
    if found.n < len(group.counted_runs):
        facts.append(Message("{n} of them in common with {baseline}", n=found.n, baseline=family.baseline.name))
    if judged is not None and judged.kind not in ("better", "worse"):
        facts.insert(0, f"Δ {measure.format_mean(found, sign=True)}")
    return in_brackets(words, join(PHRASES, facts))


def named(name: str, text: str) -> str:
    return Message("{name}: {text}", name=name, text=text)


def evidence_sentence(standing: VariantResult) -> str:
    """The statistics behind a verdict: p values and the correlation over seeds; "" where there are none."""
    found, facts = standing.difference(standing.primary), list[str]()
    if found is None or standing.family.incomparable_reason(standing.group) is not None:
        return ""
    if found.adjusted_p is not None:
        p, n = _p(found.adjusted_p), found.comparison_count
        facts.append(Message("adjusted p {p} (Holm over {n} comparisons, two looks)", p=p, n=n))
    if found.sign_flip_p is not None:
        facts.append(Message("exact sign-flip test p {p}", p=_p(found.sign_flip_p)))
    if found.correlation is not None:
        facts.append(Message("seed correlation r = {r}", r=f"{found.correlation:+.2f}".replace("-", "−")))
    return join(CLAUSES, facts)


def _p(p: float) -> str:
    return f"= {p:.3f}" if p >= 0.001 else "< 0.001"


def sentences_besides_verdict(standing: VariantResult) -> Iterator[str]:
    """What to know besides the verdict."""
    group, baseline = standing.group, standing.family.baseline
    if baseline is None or standing.is_baseline:
        return
    if group.invalid_badge or baseline.invalid_badge or INERT in group.badges:
        whose = group.name if group.invalid_badge or INERT in group.badges else baseline.name
        yield has_badge(whose, group.invalid_badge or baseline.invalid_badge or INERT)
        return
    if standing.why_incomparable:
        both = group.counted_runs and baseline.counted_runs
        reason = why_incomparable(group.representative, baseline.representative) if both else ""
        if reason:
            yield reason
        return
    found = standing.difference(LAST)
    if found is not None:
        cent, perplexity = standing.loss_change(), standing.perplexity_change()
        if cent is not None and perplexity is not None:
            changes = {"cent": signed_per_cent(cent), "perplexity": signed_per_cent(perplexity)}
            yield Message("Loss {cent}, perplexity {perplexity}.", **changes)
    if group.diverged_count:
        yield Message(
            "{n} of {total} seeds diverged and had to be excluded, so this mean looks better than it is.",
            n=group.diverged_count,
            total=len(group.runs),
        )
    if OVERFIT in group.badges or OVERFIT in baseline.badges:
        best = standing.judgement(BEST)
        who = group.name if OVERFIT in group.badges else baseline.name
        if best is not None:
            yield Message(
                "{name} has the badge {badge}; at its best: {text}.",
                name=who,
                badge=OVERFIT,
                text=judgement_text(best),
            )
    if FALLING in group.badges or FALLING in baseline.badges:
        yield Message("Training stopped while the loss was still falling, so this ranks the runs at this budget only.")
    own, others = group.representative.parameters, baseline.representative.parameters
    if own is not None and others is not None and own != others:
        text = Message(
            "It has {n} more parameters ({own} against {other})."
            if own > others
            else "It has {n} fewer parameters ({own} against {other})."
        )
        yield Message(text, n=si_number(abs(own - others)), own=si_number(own), other=si_number(others))


def expectation_sentence(found: Expectation) -> str:
    """`recall worse: as expected (near recall: worse by 51.3 …)`."""
    what = Message("the loss") if found.what == LOSS.key else Message(found.what)
    if found.outcome == UNKNOWN_BEFOREHAND:
        head = Message("{what}: {outcome}", what=what, outcome=Message(found.outcome))
    else:
        head = Message(
            "expected {what} {said}: {outcome}",
            what=what,
            said=Message(found.expected),
            outcome=Message(found.outcome),
        )
    came = [(measure, _judgement_with_unit(measure, judged)) for measure, judged in found.judgements]
    facts = [text if measure is LAST else named(Message(measure.name), text) for measure, text in came]
    return in_brackets(head, join(CLAUSES, facts) or Message("nothing to judge"))


def _judgement_with_unit(measure: Measure, judged: Judgement) -> str:
    """Differences of shares are in points; what follows a semicolon counts seeds."""
    text = judgement_text(judged)
    points = measure.is_share and ";" not in text and any(character.isdigit() for character in text)
    return Message("{text} points", text=text) if points else text


def probe_sentence(standing: VariantResult, measure: Measure) -> str:
    """The verdict on a probe or another score, in words; "" if there is none."""
    judged = standing.judgement(measure) if measure.is_compared else None
    return _judgement_with_unit(measure, judged) if judged is not None else ""


def outcome_counts(found: Sequence[Expectation]) -> str:
    known = [e.outcome for e in found if e.outcome != UNKNOWN_BEFOREHAND]
    right, wrong = known.count(AS_EXPECTED), known.count(NOT_AS_EXPECTED)
    unknown = len(found) - len(known)
    counts = Message(
        "{right} of {known} as expected, {wrong} not as expected, {open} open",
        right=right,
        known=len(known),
        wrong=wrong,
        open=len(known) - right - wrong,
    )
    return Message("{counts}, {n} unknown beforehand", counts=counts, n=unknown) if unknown else counts


def table_footnotes(standings: Sequence[VariantResult]) -> Iterator[str]:
    """What the table's numbers mean; shown once below it."""
    families = list(dict.fromkeys(s.family for s in standings))
    yield Message(
        "± is half the width of the 95 % t interval over seeds; Δ is the variant minus the baseline on the same seeds."
    )
    if any(measure.is_share for s in standings for measure in s.family.measures):
        yield Message(
            "Percentages have their 95 % interval in square brackets; it covers the variation over seeds and, where "
            "the number of questions is known, over questions too."
        )
    differences = (s.difference(s.primary) for s in standings)
    compared = max((found.comparison_count for found in differences if found is not None), default=1)
    if compared > 1:
        names = dict.fromkeys(Message(family.primary.name) for family in families)
        yield Message(
            "Verdicts share one error rate of 5 % over {n} comparisons (Holm), with most weight on {primary}, and "
            "allow for judging once more after adding seeds. Each interval is for one comparison alone.",
            n=compared,
            primary=join_names(names),
        )
    if any(family.has_other_tokens for family in families):
        yield Message(
            "Bits per byte are those of the whole text: a word model also pays for spelling every <unk> byte by byte, "
            "at a price learned from the training text, so its figure is an upper bound. A model of byte pairs does "
            "not see across <|endoftext|> unless data.across_documents is true; other models do."
        )
    most = max((len(s.group.counted_runs) for s in standings), default=0)
    if 1 < most < EXPLORATORY:
        yield few_seeds(most)
    if any(family.baseline is not None for family in families):
        yield Message(
            "Percentages of loss and ranks ignore noise; they are included because some assignments ask for them."
        )
    if any(run.scores.get("bleu") is not None for s in standings for run in s.runs):
        yield Message(
            "± over seeds does not cover the noise from the choice of sentences: for BLEU, see the p given for each "
            "seed."
        )
    earlier = [run.study.stage for s in standings for run in s.group.earlier_stages if run.study is not None]
    if earlier:
        yield Message(
            "Runs of earlier stages ({stages}; {n} in all) are not in this table; see the view by run.",
            stages=join(NAMES, dict.fromkeys(earlier)),
            n=len(earlier),
        )
    for one in majorities(run for s in standings for run in s.runs):
        text = Message(
            "The trivial baseline to beat is {name}, which would be right on {share:.1%} of the questions."
            if one.score == EXACT_MATCH
            else "The trivial baseline to beat is {name}, which would be right for {share:.1%} of the texts."
        )
        yield Message(text, name=one.baseline_name, share=one.share)
    for family in families:
        begun = {group.name for group in family.groups}
        waiting = [name for name in family.file.variants if name not in begun]
        if waiting:
            yield Message("Not started yet: {names}.", names=join(PHRASES, waiting))
        if family.file.problem:
            yield Message("The study's baseline and expectations are unknown: {why}", why=family.file.problem)


def few_seeds(n: int) -> str:
    return Message("{n} seeds can miss small differences; use 5 or more for a firm verdict.", n=n)


def bleu_noise_sentences(standing: VariantResult) -> Iterator[str]:
    """Say how the choice of test sentences affects a BLEU difference; takes about a second per shared seed."""
    baseline = standing.family.baseline
    if baseline is None or standing.is_baseline or standing.why_incomparable:
        return
    said, n = [], 0
    for seed, run in standing.group.counted_runs.items():
        other = baseline.counted_runs.get(seed)
        if other is None or "rouge_l" in run.scores:  # BLEU is no score of summaries
            continue
        ours, theirs = read_file(run.path, Translations), read_file(other.path, Translations)
        whole = all(0 < len(one.references) == len(one.outputs) for one in (ours, theirs))
        languages = read_file(run.path, DataFacts).languages
        if not whole or ours.references != theirs.references or len(languages) > 2:  # a mean of BLEUs is no BLEU
            continue
        outputs = list(ours.outputs), list(theirs.outputs)
        found = paired_bootstrap(list(ours.references), *outputs, "".join(languages[1:]))
        n = found.n
        said.append(
            Message("seed {seed} {difference:+.2f} BLEU, p {p:.3f}", seed=seed, difference=found.difference, p=found.p)
        )
    if said:
        yield Message(
            "Noise from the choice of sentences, seed by seed ({samples:,} draws of {n:,} test sentences, sacreBLEU's "
            "paired bootstrap): {each}",
            samples=SAMPLES,
            n=n,
            each=join(CLAUSES, said),
        )
