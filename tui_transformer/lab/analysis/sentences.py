"""Verdicts over seeds in whole sentences, for the end of a study, a variant's detail, and a report.

This decides what is said, and when; the language decides how.
"""

from collections.abc import Iterator, Sequence

from engine.config.measures import Measure
from engine.evaluation.translation import SAMPLES, paired_bootstrap
from engine.runs.records import DataFacts, Translations, read_file
from tui_transformer.lab.analysis.answer import StudyConclusion
from tui_transformer.lab.analysis.entry import BEST, EXACT_MATCH, LAST, LOSS, majorities
from tui_transformer.lab.analysis.groups import INERT, why_incomparable
from tui_transformer.lab.analysis.language import CURRENT_LANGUAGE, Language, Term
from tui_transformer.lab.analysis.statistics import Judgement
from tui_transformer.lab.analysis.verdict import (
    AS_EXPECTED,
    NOT_AS_EXPECTED,
    UNKNOWN_BEFOREHAND,
    Expectation,
    VariantResult,
    with_settings_caveat,
)
from tui_transformer.lab.formatting import si_number, signed_per_cent

LONGEST_LIST = 4  # names in a sentence, before the rest is counted
OVERFIT, FALLING = "OVERFIT", "STILL-FALLING"
EXPLORATORY = 5  # seeds below which a study is a first look


def conclusion_sentences(answer: StudyConclusion, language: Language = CURRENT_LANGUAGE) -> Iterator[str]:
    """The whole conclusion, fit for a report: what differs, what does not count, and what it says nothing about."""
    say, measure, family = language.phrase, answer.measure, answer.family
    by_kind: dict[str, list[VariantResult]] = {}
    excluded = []
    for result in answer.results:
        reason, judged = family.incomparable_reason(result.group), result.judgement(measure)
        if reason is not None:
            excluded.append(say("bracketed", text=result.name, facts=language.message(reason)))
        elif judged is not None and judged.kind == "nothing":
            excluded.append(say("bracketed", text=result.name, facts=language.judgement(judged, "brief")))
        elif judged is not None:
            by_kind.setdefault(judged.kind, []).append(result)
    baseline, clauses = family.baseline.name if family.baseline is not None else "", []
    for kind in ("better", "worse", "same"):
        if found := by_kind.get(kind):
            names = _listed([result.name for result in found], language)
            clauses.append(language.format_count(f"answer.{kind}", len(found), names=names, baseline=baseline))
    unsettled = by_kind.get("inconclusive", [])
    if unsettled:
        seeds = language.format_count("seeds", max(len(result.group.counted_runs) for result in unsettled))
        names = _listed([result.name for result in unsettled], language)
        clauses.append(say("answer.inconclusive", names=names, baseline=baseline, seeds=seeds))
    if clauses:
        text = say("join.semicolon").join(clauses)
        on = text if measure is LAST else say("answer.on", measure=language.translate(measure.name), text=text)
        yield say("answer", text=on)
    beside = [(result.name, pair) for result in unsettled if (pair := result.difference(measure)) is not None]
    clear = {name: d.comparison_count for name, d in beside if d.half is not None and abs(d.mean) > d.half}
    if clear and max(clear.values()) > 1:
        compared = f"{max(clear.values()):,}"
        yield language.format_count("answer.chance", len(clear), names=_listed([*clear], language), compared=compared)
    judgements = [(result.name, result.judgement(measure)) for result in unsettled]
    enough = {name: judged.seeds for name, judged in judgements if judged is not None and judged.seeds is not None}
    needed = sorted(set(enough.values()))
    if len(needed) > 1 and len(enough) <= LONGEST_LIST:
        each = [say("answer.seeds.of", name=name, seeds=f"{n:,}") for name, n in enough.items()]
        yield say("answer.seeds.each", each=language.join_list(each), most=f"{needed[-1]:,}")
    elif needed:
        key = "answer.seeds" if len(needed) == 1 else "answer.seeds.range"
        yield say(key, seeds=f"{needed[0]:,}", most=f"{needed[-1]:,}")
    if found := by_kind.get("one-seed"):
        names = _listed([result.name for result in found], language)
        yield language.format_count("answer.one-seed", len(found), names=names, baseline=baseline)
    elif clauses and not unsettled:
        yield say("answer.settled")
    if excluded:
        yield language.format_count("answer.not", len(excluded), names=_listed(excluded, language))
    for result in answer.results:
        if result.group.counted_runs and result.group.diverged_count:
            yield say("answer.diverged", name=result.name, n=result.group.diverged_count, total=len(result.runs))
    runs = [run for result in answer.results for run in result.runs]
    if any(run.live or run.state == "queued" for run in runs):
        planned = sum(result.planned for result in answer.results)
        yield say("answer.unfinished", n=sum(run.state == "finished" for run in runs), total=planned)
    groups = [result.group for result in answer.results if not result.why_incomparable]
    counted = [run for group in groups for run in group.counted_runs.values()]
    falling, steps = sum(FALLING in run.badges for run in counted), {run.last_step for run in counted}
    if falling:
        key = "answer.falling" if falling == len(counted) else "answer.falling.some"
        step = steps.pop() if len(steps) == 1 else None
        budget = say("answer.budget") if step is None else say("answer.steps", n=f"{step:,}")
        yield say(key, n=falling, total=len(counted), budget=budget)


def _listed(names: Sequence[str], language: Language) -> str:
    if len(names) > LONGEST_LIST:
        names = [*names[: LONGEST_LIST - 1], language.phrase("answer.more", n=len(names) - LONGEST_LIST + 1)]
    return language.join_list(names)


def verdict_sentence(standing: VariantResult, language: Language = CURRENT_LANGUAGE) -> str:
    """Return the conclusion about its primary measure; `evidence_sentence` has the statistics behind it."""
    group, family = standing.group, standing.family
    say, seeds, reason = language.phrase, standing.seeds_text(language), family.incomparable_reason(group)
    if family.baseline is None:
        return say("bracketed", text=say("no-baseline"), facts=seeds)
    if standing.is_baseline:
        return say("bracketed", text=say("baseline"), facts=seeds)
    if reason is not None:
        return say("bracketed", text=language.message(reason), facts=seeds)
    measure = standing.primary
    judged, found = standing.judgement(measure), standing.difference(measure)
    words = _judgement_with_unit(measure, judged, language) if judged is not None else say("no-loss")
    words = with_settings_caveat(words, judged, language)
    if measure is not LAST:
        words = say("name", name=language.translate(measure.name), text=words)
    if found is None:
        return say("bracketed", text=words, facts=seeds)
    facts = [seeds if standing.planned != found.n else language.format_count("seeds", found.n)]
    if found.n < len(group.counted_runs):
        facts.append(say("in-common", n=found.n, baseline=family.baseline.name))
    if judged is not None and judged.kind not in ("better", "worse"):
        facts.insert(0, f"Δ {measure.format_mean(found, sign=True)}")
    return say("bracketed", text=words, facts=say("join.comma").join(facts))


def evidence_sentence(standing: VariantResult) -> str:
    """The statistics behind a verdict: p values and the correlation over seeds; "" where there are none."""
    found, say, facts = standing.difference(standing.primary), CURRENT_LANGUAGE.phrase, []
    if found is None or standing.family.incomparable_reason(standing.group) is not None:
        return ""
    if found.adjusted_p is not None:
        facts.append(say("p-adjusted", p=_p(found.adjusted_p), n=found.comparison_count))
    if found.sign_flip_p is not None:
        facts.append(say("p-flip", p=_p(found.sign_flip_p)))
    if found.correlation is not None:
        facts.append(say("correlation", r=f"{found.correlation:+.2f}".replace("-", "−")))
    return say("join.semicolon").join(facts)


def _p(p: float) -> str:
    return f"= {p:.3f}" if p >= 0.001 else "< 0.001"


def sentences_besides_verdict(standing: VariantResult, language: Language = CURRENT_LANGUAGE) -> Iterator[str]:
    """What to know besides the verdict."""
    group, baseline, say = standing.group, standing.family.baseline, language.phrase
    if baseline is None or standing.is_baseline:
        return
    if group.invalid_badge or baseline.invalid_badge or INERT in group.badges:
        name = group.invalid_badge or baseline.invalid_badge or INERT
        whose = group.name if group.invalid_badge or INERT in group.badges else baseline.name
        yield say("has-badge", name=whose, badge=name, means=language.badge(name).means)
        return
    if standing.why_incomparable:
        both = group.counted_runs and baseline.counted_runs
        reason = why_incomparable(group.representative, baseline.representative, language) if both else ""
        if reason:
            yield reason
        return
    found = standing.difference(LAST)
    if found is not None:
        cent, perplexity = standing.loss_change(), standing.perplexity_change()
        if cent is not None and perplexity is not None:
            yield say("per-cent", cent=signed_per_cent(cent), perplexity=signed_per_cent(perplexity))
    if group.diverged_count:
        yield say("diverged", n=group.diverged_count, total=len(group.runs))
    if OVERFIT in group.badges or OVERFIT in baseline.badges:
        best = standing.judgement(BEST)
        who = group.name if OVERFIT in group.badges else baseline.name
        if best is not None:
            yield say("overfit", name=who, badge=OVERFIT, text=language.judgement(best))
    if FALLING in group.badges or FALLING in baseline.badges:
        yield say("falling")
    own, others = group.representative.parameters, baseline.representative.parameters
    if own is not None and others is not None and own != others:
        key = "parameters.more" if own > others else "parameters.fewer"
        yield say(key, n=si_number(abs(own - others)), own=si_number(own), other=si_number(others))


def expectation_sentence(found: Expectation, language: Language = CURRENT_LANGUAGE) -> str:
    """`recall worse: as expected (near recall: worse by 51.3 …)`."""
    say = language.phrase
    what = say("the-loss") if found.what == LOSS.key else language.translate(found.what)
    key = "expected.unknown" if found.outcome == UNKNOWN_BEFOREHAND else "expected"
    head = say(key, what=what, said=Term(found.expected), outcome=Term(found.outcome))
    came = [(measure, _judgement_with_unit(measure, judged, language)) for measure, judged in found.judgements]
    told = [text if m is LAST else say("name", name=language.translate(m.name), text=text) for m, text in came]
    facts = say("join.semicolon").join(told) if told else say("expected.nothing")
    return say("bracketed", text=head, facts=facts)


def _judgement_with_unit(measure: Measure, judged: Judgement, language: Language) -> str:
    """Differences of shares are in points; what follows a semicolon counts seeds."""
    text = language.judgement(judged)
    counts_seeds = not {";", "；"}.isdisjoint(text)
    points = measure.is_share and not counts_seeds and any(character.isdigit() for character in text)
    return language.phrase("points", text=text) if points else text


def probe_sentence(standing: VariantResult, measure: Measure) -> str:
    """The verdict on a probe or another score, in words; "" if there is none."""
    judged = standing.judgement(measure) if measure.is_compared else None
    return _judgement_with_unit(measure, judged, CURRENT_LANGUAGE) if judged is not None else ""


def outcome_counts(found: Sequence[Expectation], language: Language = CURRENT_LANGUAGE) -> str:
    known = [e.outcome for e in found if e.outcome != UNKNOWN_BEFOREHAND]
    right, wrong = known.count(AS_EXPECTED), known.count(NOT_AS_EXPECTED)
    unknown = len(found) - len(known)
    counts = language.phrase("counts", right=right, known=len(known), wrong=wrong, open=len(known) - right - wrong)
    return counts + (language.phrase("counts.unknown", n=unknown) if unknown else "")


def table_footnotes(standings: Sequence[VariantResult], language: Language = CURRENT_LANGUAGE) -> Iterator[str]:
    """What the table's numbers mean; shown once below it."""
    families = list(dict.fromkeys(s.family for s in standings))
    say = language.phrase
    yield say("note.interval")
    if any(measure.is_share for s in standings for measure in s.family.measures):
        yield say("note.shares")
    differences = (s.difference(s.primary) for s in standings)
    compared = max((found.comparison_count for found in differences if found is not None), default=1)
    if compared > 1:
        names = dict.fromkeys(language.translate(family.primary.name) for family in families)
        yield language.phrase("note.corrected", n=compared, primary=language.join_list(names))
    if any(family.has_other_tokens for family in families):
        yield language.phrase("note.tokens")
    most = max((len(s.group.counted_runs) for s in standings), default=0)
    if 1 < most < EXPLORATORY:
        yield language.phrase("note.exploratory", n=most)
    if any(family.baseline is not None for family in families):
        yield language.phrase("note.handed-in")
    if any(run.scores.get("bleu") is not None for s in standings for run in s.runs):
        yield language.phrase("note.bleu")
    earlier = [run.study.stage for s in standings for run in s.group.earlier_stages if run.study is not None]
    if earlier:
        stages = language.phrases["list.comma"].join(dict.fromkeys(earlier))
        yield say("note.stages", stages=stages, n=len(earlier))
    for one in majorities(run for s in standings for run in s.runs):
        key = "note.majority" if one.score == EXACT_MATCH else "note.majority.class"
        yield language.phrase(key, name=one.baseline_name, share=f"{one.share:.1%}")
    for family in families:
        begun = {group.name for group in family.groups}
        waiting = [name for name in family.file.variants if name not in begun]
        if waiting:
            yield language.phrase("note.not-begun", names=language.phrase("join.comma").join(waiting))
        if family.file.problem:
            yield language.phrase("note.unread", why=family.file.problem)


def bleu_noise_sentences(standing: VariantResult, language: Language = CURRENT_LANGUAGE) -> Iterator[str]:
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
        each = {"seed": seed, "difference": f"{found.difference:+.2f}", "p": f"{found.p:.3f}"}
        said.append(language.phrase("sentences.seed", **each))
    if said:
        told = language.phrase("join.semicolon").join(said)
        yield language.phrase("sentences", samples=f"{SAMPLES:,}", n=f"{n:,}", each=told)
