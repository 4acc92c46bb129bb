"""Results: the course of training, the ablation with its verdicts, probes and other scores, model output."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from engine.base.language import Message
from engine.config.measures import MEASURES, ROUGE, Mean, Measure
from engine.runs.reader import RunReader
from engine.runs.records import Sample, ValidationRecord
from tui_transformer.lab.analysis import group_columns as columns
from tui_transformer.lab.analysis.chart_lines import Curve, curve_of
from tui_transformer.lab.analysis.columns import Column
from tui_transformer.lab.analysis.curves import MOST_CURVES, band, points_by_step, reach
from tui_transformer.lab.analysis.entry import BEST, EXCESS, LAST, RunEntry, probe_measures, score_measures
from tui_transformer.lab.analysis.group_columns import all_runs, mean_column
from tui_transformer.lab.analysis.lists import CLAUSES, PHRASES, in_brackets, join
from tui_transformer.lab.analysis.sentences import (
    bleu_noise_sentences,
    expectation_sentence,
    outcome_counts,
    sentences_besides_verdict,
    table_footnotes,
    verdict_sentence,
)
from tui_transformer.lab.analysis.verdict import (
    Expectation,
    VariantResult,
    brief_verdict,
    expectations,
    outcome_summary,
)
from tui_transformer.lab.reports import document as doc
from tui_transformer.lab.reports.context import FULL_STOP, ReportContext
from tui_transformer.lab.reports.figures.bars import bars_figure
from tui_transformer.lab.reports.figures.curves import curves_figure, lines_of
from tui_transformer.lab.reports.figures.distances import probe_distance_charts, probe_distance_figure
from tui_transformer.lab.reports.sections.setup import config_of

Part = tuple[VariantResult, ...]  # whose scores are the same measure
MOST_EVALUATIONS = 24  # rows of a table
MOST_BARS = 24
MOST_AVERAGES = 24  # rows
MOST_WRITERS = 8  # variants with a text shown
MOST_SENTENCES = 5  # of each
LONGEST_SAMPLE = 600  # characters
TABLED = tuple(measure for measure in MEASURES if measure.tabled)
LOSS_FORMS = ("perplexity", "bits per character")  # the loss in other words
HEADINGS = {  # what a report calls the columns of a comparison otherwise than its screens
    "last": Message("validation loss"),
    "Δ last": Message("Δ loss, paired"),
    "p adj.": Message("p, adjusted"),
    "params": Message("parameters"),
    "Δ params": Message("Δ parameters"),
    "best": Message("best loss"),
    "excess": Message("above floor"),
    "expected": Message("expected?"),
    "Δ %": Message("Δ loss, %"),
    "Δ ppl %": Message("Δ perplexity, %"),
}
MEASURE_HEADINGS = {  # of a table of evaluations, where a measure's name is too long
    "bits_per_character": Message("bits/char"),
    "excess": Message("above floor"),
    "unknown": Message("unknown tokens"),
}


def numbered_names(parts: Sequence[Part], name: str) -> Iterator[tuple[str, Part]]:
    """Name the pictures: variants on another text or in another unit get their own, `name-2`."""
    for i, part in enumerate(parts, 1):
        yield (name if len(parts) == 1 else f"{name}-{i}"), part


def cut_note(context: ReportContext, part: Part, most: int) -> str:
    return (
        context.say("Only the first {shown} of {total} variants are drawn.", shown=most, total=len(part))
        if len(part) > most
        else ""
    )


# The course of training


def training(context: ReportContext) -> Iterator[doc.Block]:
    yield doc.Heading(context.say("Training"))
    blocks = [block for name, part in numbered_names(context.parts, "curves") for block in _course(context, name, part)]
    yield from blocks or [context.paragraph("Nothing has been measured yet, so there is no curve.")]


def _course(context: ReportContext, name: str, part: Part) -> Iterator[doc.Block]:
    shown = part[:MOST_CURVES]
    lines = lines_of(context, shown)
    if not lines:
        return
    floor = context.common_floor(shown)
    said = [
        Message(
            "Loss, perplexity, the loss near the end of training, and the learning rate, by optimizer step. Thin "
            "lines: training loss, smoothed; thick lines: validation loss."
            if len(shown) == 1
            else "Loss, perplexity, the loss near the end of training, and the learning rate, by optimizer step. Thin "
            "lines: training loss of one seed, smoothed; thick lines: validation loss."
        )
    ]
    if any(len(s.group.charted_runs) > 1 for s in shown):
        said.append(
            Message("Lines are means over seeds; bands are their 95 % t intervals, computed at each step separately.")
        )
    if floor is not None:
        said.append(
            Message(
                "Dashed: the floor reachable at this context and stride, which no model can beat except by luck."
                if floor.context
                else "Dashed: the floor given the whole past, which no model can beat except by luck."
            )
        )
    if any(s.group.invalid_badge for s in shown):
        said.append(
            Message(
                "Dotted: a loss that means nothing, because the run leaks, its held-out data overlaps its training "
                "data, or its loss is implausible."
            )
        )
    caption = context.sentences([*said, cut_note(context, part, MOST_CURVES)])
    unit = part[0].group.representative.protocol.unit
    yield doc.Figure(name, caption, partial(curves_figure, lines, unit, floor, context.picture_language))
    if len(part) == 1 and len(part[0].runs) == 1:
        yield from _evaluations(context, part[0].runs[0])
    else:
        yield from _mean_losses(context, shown)


def _decimated(steps: Sequence[float], kept: set[float]) -> list[float]:
    """At most `MOST_EVALUATIONS`, equally spaced, with the first, the last and those that must stay."""
    if len(steps) <= MOST_EVALUATIONS:
        return list(steps)
    every = (len(steps) - 1) / (MOST_EVALUATIONS - 1)
    return sorted({steps[round(i * every)] for i in range(MOST_EVALUATIONS)} | (kept & set(steps)))


def _evaluations(context: ReportContext, run: RunEntry) -> Iterator[doc.Table]:
    say = context.say
    metrics = context.metrics[run.path]
    by_step = {float(r.step): r for r in metrics.validation if "step" in r.model_fields_set}
    best = {float(run.best_step)} if run.best_step is not None else set()
    steps = _decimated(sorted(by_step), best)
    if not steps:
        return
    shown = [m for m in TABLED if any(by_step[step].value(m.key) is not None for step in steps)]
    config, tokens = config_of(run), context.facts(run).splits.get("train", {}).get("tokens")
    per_epoch = None  # if unknown, as for pairs, whose batches group similar lengths
    if config is not None and tokens is not None and config.task.corpus not in ("pairs", "labelled"):
        per_epoch = config.steps_per_epoch(tokens, config.train.batch_size)
    train, rate = (curve_of(metrics.train, "step", key) for key in ("loss", "lr"))
    rows = []
    for step in steps:
        values = [(measure.brief_format, by_step[step].value(measure.key)) for measure in shown]
        texts = [
            f"{step:,.0f}",
            *([f"{step / per_epoch:.2f}"] if per_epoch else []),
            *("" if value is None else form.format(value) for form, value in values),
            *(_value_at(train, step, "{:.4f}"), _value_at(rate, step, "{:.2e}")),
        ]
        rows.append(doc.cells(texts, strong=step in best))
    heads = (
        *(*context.headings("step"), *(context.headings("epoch") if per_epoch else ())),
        *(say(MEASURE_HEADINGS.get(measure.key, measure.name)) for measure in shown),
        *context.headings("train loss", "learning rate"),
    )
    notes = [say("In bold: the best of them.")] if best else []
    notes += [_evaluations_cut(context, len(steps), len(by_step))]
    yield doc.Table(say("The evaluations."), heads, tuple(rows), "r" * len(heads), context.sentences(notes))


def _evaluations_cut(context: ReportContext, shown: int, total: int) -> str:
    return (
        context.say("{shown} of {total} evaluations are shown, evenly spaced.", shown=shown, total=total)
        if total > MOST_EVALUATIONS
        else ""
    )


def _value_at(curve: Curve, step: float, form: str) -> str:
    before = [y for x, y in zip(curve.x, curve.y, strict=True) if x <= step]
    return form.format(before[-1]) if before else doc.NONE


def _mean_losses(context: ReportContext, shown: Part) -> Iterator[doc.Table]:
    losses: list[dict[float, str]] = []
    for standing in shown:
        metrics = [context.metrics[run.path] for run in standing.group.charted_runs]
        made = band({i: points_by_step(found.validation, "step") for i, found in enumerate(metrics)})
        points = zip(made.x, made.y, made.half or (None,) * len(made.x), strict=True)
        losses.append({x: LAST.format_mean(Mean(y, half, made.n, None)) for x, y, half in points})
    everything = sorted({step for points in losses for step in points})
    steps = _decimated(everything, set())
    if steps:
        rows = tuple(doc.cells([f"{step:,.0f}", *(points.get(step, "") for points in losses)]) for step in steps)
        heads = (*context.headings("step"), *map(context.name, shown))
        note = _evaluations_cut(context, len(steps), len(everything))
        yield doc.Table(
            context.say("Validation loss at each evaluation: mean over seeds ± half the width of its 95 % t interval."),
            heads,
            rows,
            "r" * len(heads),
            note,
        )


# The ablation


def results(context: ReportContext) -> Iterator[doc.Block]:
    say, standings = context.say, context.results
    runs = all_runs(standings)
    measures = (*probe_measures(runs), *(measure for measure in score_measures(runs) if measure.is_compared))
    loss = mean_column(LAST, always=True)
    named = [columns.VARIANT, columns.SEEDS, loss]
    yield doc.Heading(say("Results"))
    if context.has_several_variants:
        judged = [columns.difference_column(LAST), columns.P_VALUE, columns.VERDICT, columns.CHECKS]
        ablation = [*named, *judged, columns.expected_column(measures), columns.PARAMETERS]
        yield _table_of_columns(
            context,
            say(
                "The variants and their baseline: mean over n seeds with its 95 % interval, difference paired by seed, "
                "and verdict."
            ),
            ablation,
            measures,
        )
        for name, part in numbered_names(context.parts, "ablation"):
            shown = part[:MOST_BARS]
            if any(standing.mean(LAST) is not None for standing in shown):
                void = say("Hatched: a loss that means nothing.") if any(s.group.invalid_badge for s in shown) else ""
                caption = context.sentences(
                    [
                        say(
                            "Left: mean validation loss with its 95 % t interval; circles are individual seeds. Right: "
                            "difference from the baseline, paired by seed; a bar is coloured only if the difference "
                            "still holds after correction for all comparisons."
                        ),
                        void,
                        cut_note(context, part, MOST_BARS),
                    ]
                )
                yield doc.Figure(name, caption, partial(bars_figure, context, shown))
        yield doc.Heading(say("Verdicts"), 2)
        verdicts = []  # each with all its evidence
        for standing in standings:
            said = [say(FULL_STOP, sentence=verdict_sentence(standing))]
            said += [
                *sentences_besides_verdict(standing),
                *bleu_noise_sentences(standing),
            ]
            verdicts.append(_named(context, standing, said))
        yield doc.Bullets(tuple(verdicts))
        yield from _expectations(context, measures)
    # Best losses, distance to the floor, cost: beside the verdict, never instead of it.
    more = [*named, mean_column(BEST, always=True), mean_column(EXCESS), columns.PER_CENT, columns.PERPLEXITY]
    caption = say(
        "Best loss, loss above the floor, and change relative to the baseline."
        if context.has_several_variants
        else "Last loss, best loss, and loss above the floor."
    )
    yield replace(
        _table_of_columns(context, caption, more, ()),
        note=say(
            "A best loss is the lowest of many evaluations on the same split, so it is optimistic. A percentage of "
            "loss is not a percentage of quality."
        ),
    )
    yield from _averaged_weights_losses(context)
    cost = [*named[:2], *columns.COST_COLUMNS]
    yield replace(
        _table_of_columns(context, say("Cost (mean over seeds)."), cost, ()),
        note=say(
            "FLOPs follow from the size of the model; tokens per second depend on the machine and on what else it was "
            "doing."
        ),
    )


def _averaged_weights_losses(context: ReportContext) -> Iterator[doc.Table]:
    """The losses of averaged weights beside each run's best, if any were scored."""
    rows = []
    for run in all_runs(context.results):
        for name, loss in run.averages:
            best, minus = ("", "") if run.best is None else (f"{run.best:.4f}", f"{loss - run.best:+.4f}")
            rows.append(doc.cells([run.name, context.say(name), f"{loss:.4f}", best, minus]))
    if rows:
        cut = (
            context.say("{shown} of {total} rows are shown.", shown=MOST_AVERAGES, total=len(rows))
            if len(rows) > MOST_AVERAGES
            else ""
        )
        heads = context.headings("run", "weights", "loss", "best loss", "minus best loss")
        yield doc.Table(
            context.say("Validation losses of averaged weights."), heads, tuple(rows[:MOST_AVERAGES]), "llrrr", cut
        )


def _table_of_columns(
    context: ReportContext, caption: str, among: Sequence[Column], measures: Sequence[Measure]
) -> doc.Table:
    """The columns in which any variant has a value."""
    standings, say = context.results, context.say
    shown = [c for c in among if c.always or any(c.value(s, None) not in (None, "", ()) for s in standings)]

    def cell(column: Column, standing: VariantResult) -> doc.TableCell:
        if column is columns.VERDICT:
            return doc.TableCell(say(standing.verdict()) or doc.NONE, strong=bool(standing.why_incomparable))
        if column is columns.VARIANT:
            return doc.TableCell(context.name(standing), strong=standing.is_baseline)
        if column.key == "expected":
            return doc.TableCell(say(outcome_summary(expectations(standing, measures))) or doc.NONE)
        if column is columns.CHECKS:  # without what its owner has seen: a reader judges alone
            words = replace(column, screen_cell=None).screen_text(standing, None)
            return doc.TableCell(words, strong=bool(standing.badges))
        return doc.TableCell(column.screen_text(standing, None))

    rows = tuple(tuple(cell(column, standing) for column in shown) for standing in standings)
    heads = tuple(say(HEADINGS.get(column.title, column.title)) for column in shown)
    align = "".join("r" if column.right_aligned else "l" for column in shown)
    return doc.Table(caption, heads, rows, align, context.sentences(table_footnotes(standings)))


def _named(context: ReportContext, standing: VariantResult, sentences: Sequence[str]) -> doc.Spans:
    return doc.Strong(context.name(standing)), context.say(": "), context.sentences(sentences)


def _expectations(context: ReportContext, measures: Sequence[Measure]) -> Iterator[doc.Block]:
    everything: list[Expectation] = []
    items = []
    for standing in context.results:
        found = expectations(standing, measures)
        everything += found
        if found:
            each = [expectation_sentence(one) for one in found]
            said = context.say(FULL_STOP, sentence=join(CLAUSES, each))
            why = standing.expectation.why
            items.append(
                _named(
                    context, standing, [said, context.say("The reason given beforehand: {why}", why=why) if why else ""]
                )
            )
    if items:
        yield doc.Heading(context.say("What was expected beforehand"), 2)
        counts = outcome_counts(everything)
        yield context.paragraph(
            "Written down before anything was run, then compared with the verdicts: {counts}.", counts=counts
        )
        yield doc.Bullets(tuple(items))


# Probes and other scores


def probing(context: ReportContext) -> Iterator[doc.Block]:
    """Probes and other scores, by variant and by distance; nothing if no run has any."""
    tables = []
    for part in context.parts:
        runs = [run for standing in part for run in standing.runs]
        measured = probe_measures(runs)
        if measured:
            tables.append(_probe_description_table(context, part[0].group.representative, measured))
            tables.append(
                _table_of_measures(
                    context,
                    part,
                    measured,
                    context.say("Probes: percentage answered correctly at the last evaluation."),
                )
            )
        others = tuple(measure for measure in score_measures(runs) if measure.name not in LOSS_FORMS)
        if others:
            tables.append(
                _table_of_measures(context, part, others, context.say("Other scores at the last evaluation."))
            )
    if not tables:
        return
    yield doc.Heading(context.say("Probes and other scores"))
    yield from tables
    for name, part in numbered_names(context.parts, "distance"):
        charts = probe_distance_charts(context, part[:MOST_CURVES])
        if charts:
            each = []
            for standing in part:
                found = reach(standing.group.representative.config)
                if found is not None and found.why != "context":  # it cannot look back as far as its context
                    facts = {"n": found.tokens, "why": Message(found.why)}
                    each.append(context.say("{name}: {n} characters ({why})", name=context.name(standing), **facts))
            reaches = (
                context.say(
                    "Vertical lines: how far back a variant can look at all, however it is trained; {each}.",
                    each=join(CLAUSES, each),
                )
                if each
                else ""
            )
            caption = context.sentences(
                [
                    context.say(
                        "Share of each probe answered correctly, by the distance in characters to what it depends on: "
                        "mean over seeds with its 95 % t interval. Dotted: chance."
                    ),
                    reaches,
                ]
            )
            yield doc.Figure(name, caption, partial(probe_distance_figure, charts, context.picture_language))


def _probe_description_table(context: ReportContext, run: RunEntry, measured: Sequence[Measure]) -> doc.Table:
    known = {probe.name: probe for probe in context.facts(run).probes}
    rows = []
    for measure in measured:
        probe, places = known.get(measure.key), run.places.get(measure.key)
        shares = (None, None) if probe is None else (probe.chance, probe.shortcut)
        count = "" if places is None else f"{places:,}"
        texts = [count, *("" if share is None else f"{share:.1%}" for share in shares)]
        what = context.say(probe.description) if probe is not None else ""
        rows.append((doc.TableCell(measure.key, code=True), *doc.cells([*texts, what])))
    note = context.say(
        "Sentences of a different kind from the training ones, scored separately."
        if run.protocol.task.corpus == "pairs"
        else "A probe is a set of characters that follow with certainty from something earlier in the text; only "
        "places whose evidence lies inside the window count."
    )
    heads = context.headings("probe", "places", "chance", "shortcut", "what must be remembered")
    return doc.Table(
        context.say("What each probe asks for, and the scores of guessing and of the best shortcut."),
        heads,
        tuple(rows),
        "lrrrl",
        note,
    )


def _table_of_measures(context: ReportContext, part: Part, measures: Sequence[Measure], caption: str) -> doc.Table:
    rows = []
    for standing in part:
        row = [doc.TableCell(context.name(standing), strong=standing.is_baseline)]
        for measure in measures:
            mean = standing.mean(measure)
            judged = standing.judgement(measure) if measure.is_compared else None
            facts = brief_verdict(judged) if measure.is_compared else ""
            amount = doc.NONE if mean is None else context.say(in_brackets(measure.format_mean(mean), facts))
            row.append(doc.TableCell(amount, strong=mean is not None and judged is not None and judged.kind == "worse"))
        rows.append(tuple(row))
    names = ((context.say(measure.name), measure.unit) for measure in measures)
    heads = (*context.headings("variant"), *(f"{name}, %" if unit == "%" else name for name, unit in names))
    return doc.Table(
        caption,
        heads,
        tuple(rows),
        "l" * len(heads),
        context.say("Mean over seeds with its 95 % interval; in parentheses, the verdict compared with the baseline."),
    )


# What the models write


def texts(context: ReportContext) -> Iterator[doc.Block]:
    """Samples, or translations beside their references with the scores of all; nothing without any."""
    written = [
        (standing, run, sample)
        for standing in context.results[:MOST_WRITERS]
        for run in standing.runs[:1]
        for sample in list(RunReader(run.path).samples())[-1:]
    ]
    if not written:
        return
    yield doc.Heading(context.say("What the models write"))
    for standing, run, sample in written:
        if sample.translations:
            yield _translation_scores(context, standing, run)
            yield _translations(context, standing, sample)
    samples = [_sample(context, *one) for one in written if not one[2].translations]
    if samples:
        yield context.paragraph("The newest recorded sample of each variant's first seed; none was hand-picked.")
        yield from samples


# What classes the texts were put into


def confusion_tables(context: ReportContext) -> Iterator[doc.Block]:
    """The confusion table of each variant's first run; nothing without classes."""
    shown = [(s, run) for s in context.results for run in s.runs[:1] if run.classification is not None][:MOST_WRITERS]
    if not shown:
        return
    yield doc.Heading(context.say("Class by class"))
    for standing, run in shown:
        found = run.classification
        assert found is not None
        rows = tuple(
            (doc.TableCell(name), *(doc.TableCell(f"{n:,}", strong=i == j) for j, n in enumerate(row)))
            for i, (name, row) in enumerate(zip(found.classes, found.confusion, strict=True))
        )
        caption = context.say(
            "The last evaluation of {name}, run {run}: texts of each class, by the class they were put into.",
            name=context.name(standing),
            run=run.name,
        )
        heads = (*context.headings("class"), *found.classes)
        yield doc.Table(
            caption, heads, rows, "l" + "r" * len(found.classes), context.say("In bold: the correct class.")
        )


def _sample(context: ReportContext, standing: VariantResult, run: RunEntry, sample: Sample) -> doc.Listing:
    details = []
    if sample.temperature is not None:
        details.append(Message("temperature {value:g}", value=sample.temperature))
    if sample.top_k is not None:
        details.append(Message("top-k {value:g}", value=sample.top_k))
    if sample.top_p is not None and sample.top_p != 1.0:
        details.append(Message("top-p {value:g}", value=sample.top_p))
    title = context.say(
        "{name}, run {run}, step {step}", name=context.name(standing), run=run.name, step=f"{sample.step:,}"
    )
    between = "" if run.protocol.task.continues else "\n→ "
    shown = sample.prompt + between + sample.text
    text = shown[:LONGEST_SAMPLE] + ("…" if len(shown) > LONGEST_SAMPLE else "")
    return doc.Listing(text, context.say(in_brackets(title, join(PHRASES, details))))


def _translation_scores(context: ReportContext, standing: VariantResult, run: RunEntry) -> doc.Paragraph:
    say, last = context.say, RunReader(run.path).summary.last or ValidationRecord()
    said = [say("{name}, run {run}, step {step}.", name=context.name(standing), run=run.name, step=f"{last.step:,}")]
    if last.bleu is not None and last.chrf is not None and last.exact_match is not None:
        shares = {"bleu": f"{last.bleu:.2f}", "chrf": f"{last.chrf:.1f}", "exact": f"{last.exact_match:.1%}"}
        counts = {"n": f"{last.translated or 0:,}", "total": f"{last.sentences or 0:,}"}
        how = say("translated greedily") if last.beam in (None, 1) else say("with a beam of {n}", n=last.beam)
        said.append(
            say(
                "BLEU {bleu}, chrF {chrf}, {exact} exactly right, over {n} of {total} validation sentences, {how}.",
                how=how,
                **shares,
                **counts,
            )
        )
    elif last.rouge_l is not None and last.copied is not None and last.exact_match is not None:
        shares = {"copied": f"{last.copied:.1%}", "exact": f"{last.exact_match:.1%}"}
        shares |= {name: f"{getattr(last, name) or 0.0:.1f}" for name in ROUGE}
        said.append(
            say(
                "ROUGE-1 {rouge_1}, ROUGE-2 {rouge_2}, ROUGE-L {rouge_l}, {exact} exactly right, over {n} of {total} "
                "validation articles; {copied} of the words occur in the article.",
                n=f"{last.translated or 0:,}",
                total=f"{last.sentences or 0:,}",
                **shares,
            )
        )
        if (lead := context.facts(run).lead) is not None:
            first = {name: f"{getattr(lead, name):.1f}" for name in ROUGE}
            said.append(
                say(
                    "A summary that is just the article's first sentence scores ROUGE-1 {rouge_1}, ROUGE-2 {rouge_2} "
                    "and ROUGE-L {rouge_l}; {copied} of the words in the reference summaries occur in the article.",
                    copied=f"{lead.copied:.1%}",
                    **first,
                )
            )
    for language, bleu, exact in last.bleu_and_exact_by_target:
        said.append(
            say(
                "To {language}: BLEU {bleu}, {exact} exactly right.",
                language=language,
                bleu=f"{bleu:.2f}",
                exact=f"{exact:.1%}",
            )
        )
    signature = (" ", say("sacreBLEU's signature: "), doc.Code(last.bleu_signature), say("."))
    return doc.Paragraph((context.sentences(said), *(signature if last.bleu_signature else ())))


def _translations(context: ReportContext, standing: VariantResult, sample: Sample) -> doc.Table:
    rows = []
    for row in sample.translations[:MOST_SENTENCES]:
        wrote = doc.TableCell(row.text[:LONGEST_SAMPLE] or doc.NONE, strong=row.right)
        rows.append((*doc.cells([row.source[:LONGEST_SAMPLE], row.reference[:LONGEST_SAMPLE]]), wrote))
    if standing.protocol.task.row_name == "questions":
        heads = context.headings("question", "reference", "answer")
        caption = context.say("Held-out questions, as {name} answered them.", name=context.name(standing))
    elif standing.protocol.task.row_name == "articles":
        heads = context.headings("article", "reference", "summary")
        caption = context.say("Held-out articles, as {name} summarized them.", name=context.name(standing))
    else:
        heads = context.headings("source", "reference", "translation")
        caption = context.say("Held-out sentences, as {name} translated them.", name=context.name(standing))
    if any(row.probabilities for row in sample.translations):
        heads = context.headings("text", "class", "predicted")
        caption = context.say(
            "Held-out texts with the class that {name} gave them, and its probability.", name=context.name(standing)
        )
        chances = [row.probabilities.get(row.text) for row in sample.translations]
        rows = [
            (
                *row[:2],
                replace(row[2], text=context.say(in_brackets(row[2].text, "" if chance is None else f"{chance:.2f}"))),
            )
            for row, chance in zip(rows, chances, strict=False)
        ]
    return doc.Table(
        caption,
        heads,
        tuple(rows),
        "lll",
        context.say("Evenly spaced through the split, not hand-picked. In bold: identical to the reference."),
    )
