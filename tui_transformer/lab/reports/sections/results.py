"""What came out: the course of training, the ablation with its verdicts, probes and other scores, what models write."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from engine.measures import MEASURES, Measure
from engine.runs.reader import RunReader
from engine.runs.records import Sample, ValidationRecord
from tui_transformer.lab.analysis import group_columns as columns
from tui_transformer.lab.analysis.columns import Column
from tui_transformer.lab.analysis.curves import MOST, Metrics, band, reach, scored
from tui_transformer.lab.analysis.entry import BEST, EXCESS, LAST, Entry, probes, scores
from tui_transformer.lab.analysis.group_columns import mean_column, of_runs
from tui_transformer.lab.analysis.sentences import (
    expectation_sentence,
    more_sentences,
    noise_of_sentences,
    notes,
    outcome_counts,
    verdict_sentence,
)
from tui_transformer.lab.analysis.statistics import Mean
from tui_transformer.lab.analysis.verdict import Expectation, VariantResult, brief, expectations, summary
from tui_transformer.lab.charts.curves import Curve, curve_of
from tui_transformer.lab.reports.context import NONE, ReportContext, cells
from tui_transformer.lab.reports.document import (
    Block,
    Bullets,
    Cell,
    Code,
    Figure,
    Heading,
    Listing,
    Paragraph,
    Spans,
    Strong,
    Table,
)
from tui_transformer.lab.reports.figures.bars import bars, bars_of
from tui_transformer.lab.reports.figures.curves import curves, lines_of
from tui_transformer.lab.reports.figures.distances import by_distance, distance_figure
from tui_transformer.lab.reports.sections.setup import config_of

Part = Sequence[VariantResult]  # whose scores are the same measure
MOST_EVALUATIONS = 24  # rows of a table
MOST_BARS = 24
MOST_WRITERS = 8  # variants of which a text is shown
MOST_SENTENCES = 5  # of each
LONGEST_SAMPLE = 600  # characters
TABLED = tuple(measure for measure in MEASURES if measure.tabled)
OF_LOSS = ("perplexity", "bits per character")  # the loss in other words


def numbered(parts: Sequence[Part], name: str) -> Iterator[tuple[str, Part]]:
    """Variants on another text or in another unit have pictures of their own: a name for each, `name-2`."""
    for i, part in enumerate(parts, 1):
        yield (name if len(parts) == 1 else f"{name}-{i}"), part


def cut(context: ReportContext, part: Part, most: int) -> str:
    return context.say("figure.cut", shown=most, total=len(part)) if len(part) > most else ""


# The course of training


def training(context: ReportContext) -> Iterator[Block]:
    """Curves, and every evaluation as a row."""
    yield Heading(context.say("section.training"))
    blocks = [block for name, part in numbered(context.data.parts, "curves") for block in _course(context, name, part)]
    yield from blocks or [Paragraph((context.say("training.nothing"),))]


def _course(context: ReportContext, name: str, part: Part) -> Iterator[Block]:
    shown = part[:MOST]
    lines = lines_of(context.data, shown, context.drawn)
    if not lines:
        return
    floor = context.data.common_floor(shown)
    keys = ["caption.curves" if len(shown) == 1 else "caption.curves.several"]
    if any(len(s.group.drawn) > 1 for s in shown):
        keys.append("caption.band")
    if floor is not None:
        keys.append("caption.floor.window" if floor.context else "caption.floor")
    if any(s.group.void for s in shown):
        keys.append("caption.void")
    caption = context.sentences([*map(context.say, keys), cut(context, part, MOST)])
    unit = part[0].group.representative.protocol.unit
    yield Figure(name, caption, partial(curves, lines, unit, floor, context.drawn))
    if len(part) == 1 and len(part[0].runs) == 1:
        yield from _evaluations(context, part[0].runs[0])
    else:
        yield from _mean_losses(context, shown)


def _thinned(steps: Sequence[float], kept: set[float]) -> list[float]:
    """At most `MOST_EVALUATIONS` of them at equal distances, with the first, the last and those that must stay."""
    if len(steps) <= MOST_EVALUATIONS:
        return list(steps)
    every = (len(steps) - 1) / (MOST_EVALUATIONS - 1)
    return sorted({steps[round(i * every)] for i in range(MOST_EVALUATIONS)} | (kept & set(steps)))


def _evaluations(context: ReportContext, run: Entry) -> Iterator[Table]:
    """Every evaluation of one run, with its epoch where the text has epochs."""
    say = context.say
    metrics = context.data.metrics.get(run.path, Metrics())
    by_step = {float(r.step): r for r in map(ValidationRecord.read, metrics.validation) if "step" in r.model_fields_set}
    best = {float(run.best_step)} if run.best_step is not None else set()
    steps = _thinned(sorted(by_step), best)
    if not steps:
        return
    shown = [m for m in TABLED if any(by_step[step].value(m.key) is not None for step in steps)]
    per_epoch = _steps_per_epoch(context, run)
    train, rate = (curve_of(metrics.train, "step", key) for key in ("loss", "lr"))
    rows = []
    for step in steps:
        values = [(measure.brief, by_step[step].value(measure.key)) for measure in shown]
        texts = [
            f"{step:,.0f}",
            *([f"{step / per_epoch:.2f}"] if per_epoch else []),
            *("" if value is None else form.format(value) for form, value in values),
            *(_at(train, step, "{:.4f}"), _at(rate, step, "{:.2e}")),
        ]
        rows.append(cells(texts, strong=step in best))
    heads = context.heads("step", *(["epoch"] if per_epoch else []), *(m.key for m in shown), "train_loss", "lr")
    notes = [say("table.evaluations.best")] if best else []
    notes += [_evaluations_cut(context, len(steps), len(by_step))]
    yield Table(say("table.evaluations"), heads, tuple(rows), "r" * len(heads), context.sentences(notes))


def _evaluations_cut(context: ReportContext, shown: int, total: int) -> str:
    return context.say("table.evaluations.cut", shown=shown, total=total) if total > MOST_EVALUATIONS else ""


def _at(curve: Curve, step: float, form: str) -> str:
    """The record at that very step, or the last before it."""
    before = [y for x, y in zip(curve.x, curve.y, strict=True) if x <= step]
    return form.format(before[-1]) if before else NONE


def _steps_per_epoch(context: ReportContext, run: Entry) -> int | None:
    """None where it is not known, as of pairs, whose batches are of like lengths."""
    config, tokens = config_of(run), context.data.facts(run).splits.get("train", {}).get("tokens")
    if config is None or tokens is None or config.translates:
        return None
    return config.steps_per_epoch(tokens, config.train.batch_size)


def _mean_losses(context: ReportContext, shown: Part) -> Iterator[Table]:
    """The mean loss of each variant at each step that all its seeds were scored at."""
    losses: list[dict[float, str]] = []
    for standing in shown:
        metrics = [context.data.metrics.get(run.path, Metrics()) for run in standing.group.drawn]
        made = band({i: scored(found.validation, "step") for i, found in enumerate(metrics)})
        halves = made.half or (None,) * len(made.curve.x)
        points = zip(made.curve.x, made.curve.y, halves, strict=True)
        losses.append({x: LAST.spread(Mean(y, half, made.n, None)) for x, y, half in points})
    everything = sorted({step for points in losses for step in points})
    steps = _thinned(everything, set())
    if steps:
        rows = tuple(cells([f"{step:,.0f}", *(points.get(step, "") for points in losses)]) for step in steps)
        heads = (context.say("head.step"), *map(context.data.name, shown))
        note = _evaluations_cut(context, len(steps), len(everything))
        yield Table(context.say("table.means"), heads, rows, "r" * len(heads), note)


# The ablation


def results(context: ReportContext) -> Iterator[Block]:
    """The ablation as a table and as bars, a verdict each in words, and what was expected."""
    say, data, standings = context.say, context.data, context.data.standings
    runs = of_runs(standings)
    measures = (*probes(runs), *(measure for measure in scores(runs) if measure.judged))
    loss = mean_column(LAST, always=True)
    named = [columns.VARIANT, columns.SEEDS, loss]
    yield Heading(say("section.results"))
    if data.several:
        judged = [columns.difference_column(LAST), columns.P, columns.VERDICT, columns.CHECKS]
        ablation = [*named, *judged, columns.expected_column(measures), columns.PARAMETERS]
        yield _table(context, say("table.ablation"), ablation, measures)
        for name, part in numbered(data.parts, "ablation"):
            yield from _bars(context, name, part)
        yield Heading(say("section.verdicts"), 2)
        yield Bullets(tuple(_verdict(context, standing) for standing in standings))
        yield from _expectations(context, measures)
    # Best losses, distance to the floor, cost: beside the verdict, never instead of it.
    more = [*named, mean_column(BEST, always=True), mean_column(EXCESS), columns.PER_CENT, columns.PERPLEXITY]
    caption = say("table.more" if data.several else "table.more.alone")
    yield replace(_table(context, caption, more, ()), note=say("table.more.note"))
    cost = [*named[:2], *columns.FAIRNESS]
    yield replace(_table(context, say("table.cost"), cost, ()), note=say("table.cost.note"))


def _table(context: ReportContext, caption: str, among: Sequence[Column], measures: Sequence[Measure]) -> Table:
    """Those columns that any variant has a value for."""
    standings, language = context.data.standings, context.language
    shown = [c for c in among if c.always or any(c.value(s, None) not in (None, "", ()) for s in standings)]

    def cell(column: Column, standing: VariantResult) -> Cell:
        if column is columns.VERDICT:
            return Cell(standing.verdict_in(language) or NONE, strong=bool(standing.why_not))
        if column is columns.VARIANT:
            return Cell(context.data.name(standing), strong=standing.is_baseline)
        if column.key == "expected":
            return Cell(summary(expectations(standing, measures), language) or NONE)
        return Cell(column.shown(standing, None), strong=column is columns.CHECKS and bool(standing.badges))

    rows = tuple(tuple(cell(column, standing) for column in shown) for standing in standings)
    heads = tuple(language.word(column.title) for column in shown)
    align = "".join("r" if column.right else "l" for column in shown)
    return Table(caption, heads, rows, align, context.sentences(notes(standings, language)))


def _bars(context: ReportContext, name: str, part: Part) -> Iterator[Figure]:
    shown = part[:MOST_BARS]
    made = bars_of(context.data, shown, context.drawn)
    if any(bar.loss is not None for bar in made):
        void = context.say("caption.bars.void") if any(s.group.void for s in shown) else ""
        caption = context.sentences([context.say("caption.bars"), void, cut(context, part, MOST_BARS)])
        unit, floor = part[0].protocol.unit, context.data.common_floor(shown)
        yield Figure(name, caption, partial(bars, made, unit, floor, context.drawn))


def _named(context: ReportContext, standing: VariantResult, sentences: Sequence[str]) -> Spans:
    return Strong(context.data.name(standing)), context.say("name.colon"), context.sentences(sentences)


def _verdict(context: ReportContext, standing: VariantResult) -> Spans:
    """A variant's verdict with everything it rests on."""
    language = context.language
    said = verdict_sentence(standing, language) + context.say("full-stop")
    more = [*more_sentences(standing, language), *noise_of_sentences(standing, language)]
    return _named(context, standing, [said, *more])


def _expectations(context: ReportContext, measures: Sequence[Measure]) -> Iterator[Block]:
    """What a study said beforehand, and how it came out."""
    everything: list[Expectation] = []
    items = []
    for standing in context.data.standings:
        found = expectations(standing, measures)
        everything += found
        if found:
            each = [expectation_sentence(one, context.language) for one in found]
            said = context.say("join.semicolon").join(each) + context.say("full-stop")
            file = standing.family.file
            why = file.why.get(standing.group.variant, "") if file is not None else ""
            items.append(_named(context, standing, [said, context.say("expected.why", why=why) if why else ""]))
    if items:
        yield Heading(context.say("section.expected"), 2)
        counts = outcome_counts(everything, context.language)
        yield Paragraph((context.say("expected.counts", counts=counts),))
        yield Bullets(tuple(items))


# Probes and other scores


def probing(context: ReportContext) -> Iterator[Block]:
    """What a variant can do, by variant and by distance; nothing where no run has a probe or another score."""
    data = context.data
    tables = [made for part in data.parts for made in _probe_tables(context, part)]
    if not tables:
        return
    yield Heading(context.say("section.probes"))
    yield from tables
    for name, part in numbered(data.parts, "distance"):
        charts = by_distance(data, part[:MOST])
        if charts:
            caption = context.sentences([context.say("caption.distance"), _reaches(context, part)])
            yield Figure(name, caption, partial(distance_figure, charts, context.drawn))


def _probe_tables(context: ReportContext, part: Part) -> Iterator[Table]:
    runs = [run for standing in part for run in standing.runs]
    measured = probes(runs)
    if measured:
        yield _described(context, part[0].group.representative, measured)
        yield _by_variant(context, part, measured, context.say("table.probes"))
    others = tuple(measure for measure in scores(runs) if measure.name not in OF_LOSS)
    if others:
        yield _by_variant(context, part, others, context.say("table.scores"))


def _described(context: ReportContext, run: Entry, measured: Sequence[Measure]) -> Table:
    """What each probe asks for, with what guessing and the best shortcut score."""
    known = {probe.name: probe for probe in context.data.facts(run).probes}
    rows = []
    for measure in measured:
        probe, places = known.get(measure.key), run.places.get(measure.key)
        shares = (None, None) if probe is None else (probe.chance, probe.shortcut)
        texts = [
            "" if places is None else f"{places:,}",
            *("" if share is None else f"{share:.1%}" for share in shares),
        ]
        what = context.language.word(probe.description) if probe is not None else ""
        rows.append((Cell(measure.name, code=True), *cells([*texts, what])))
    note = "table.described.pairs" if run.protocol.objective == "translation" else "table.described.note"
    heads = context.heads("probe", "places", "chance", "shortcut", "remembered")
    return Table(context.say("table.described"), heads, tuple(rows), "lrrrl", context.say(note))


def _by_variant(context: ReportContext, part: Part, measures: Sequence[Measure], caption: str) -> Table:
    """Mean and interval, and a word of what may be concluded."""
    language = context.language
    rows = []
    for standing in part:
        row = [Cell(context.data.name(standing), strong=standing.is_baseline)]
        for measure in measures:
            mean = standing.mean(measure)
            judged = standing.judgement(measure) if measure.judged else None
            facts = brief(judged, language) if measure.judged else ""
            amount = NONE if mean is None else context.bracketed(measure.spread(mean), facts)
            row.append(Cell(amount, strong=mean is not None and judged is not None and judged.kind == "worse"))
        rows.append(tuple(row))
    names = ((language.word(measure.name), measure.unit) for measure in measures)
    heads = (context.say("head.variant"), *(f"{name}, %" if unit == "%" else name for name, unit in names))
    return Table(caption, heads, tuple(rows), "l" * len(heads), context.say("table.probes.note"))


def _reaches(context: ReportContext, part: Part) -> str:
    """How far back each variant can look at all, where that is less than its context."""
    each = [
        context.say("caption.reach.each", name=context.data.name(standing), n=found.tokens, why=found.why)
        for standing in part
        if (found := reach(standing.group.representative.config)) is not None and found.why != "context"
    ]
    return context.say("caption.reach", each=context.say("join.semicolon").join(each)) if each else ""


# What the models write


def texts(context: ReportContext) -> Iterator[Block]:
    """Samples, or translations beside their references with the scores of all of them; nothing where none are."""
    written = [
        (standing, run, sample)
        for standing in context.data.standings[:MOST_WRITERS]
        for run in standing.runs[:1]
        for sample in list(RunReader(run.path).samples())[-1:]
    ]
    if not written:
        return
    yield Heading(context.say("section.texts"))
    for standing, run, sample in written:
        if sample.translations:
            yield _translation_scores(context, standing, run)
            yield _translations(context, standing, sample)
    samples = [_sample(context, *one) for one in written if not one[2].translations]
    if samples:
        yield Paragraph((context.say("texts.chosen"),))
        yield from samples


def _sample(context: ReportContext, standing: VariantResult, run: Entry, sample: Sample) -> Listing:
    how = {"temperature": sample.temperature, "top_k": sample.top_k, "top_p": sample.top_p}
    details = [
        context.say(f"texts.{key}", value=f"{value:g}")
        for key, value in how.items()
        if value is not None and not (key == "top_p" and value == 1.0)
    ]
    title = context.say("texts.title", name=context.data.name(standing), run=run.name, step=f"{sample.step:,}")
    between = "" if run.protocol.objective == "next-token" else "\n→ "
    shown = sample.prompt + between + sample.text
    text = shown[:LONGEST_SAMPLE] + ("…" if len(shown) > LONGEST_SAMPLE else "")
    return Listing(text, context.bracketed(title, context.say("join.comma").join(details)))


def _translation_scores(context: ReportContext, standing: VariantResult, run: Entry) -> Paragraph:
    say, last = context.say, RunReader(run.path).summary.last or ValidationRecord()
    said = [say("texts.translated", name=context.data.name(standing), run=run.name, step=f"{last.step:,}")]
    if last.bleu is not None and last.chrf is not None and last.exact_match is not None:
        shares = {"bleu": f"{last.bleu:.2f}", "chrf": f"{last.chrf:.1f}", "exact": f"{last.exact_match:.1%}"}
        counts = {"n": f"{last.translated or 0:,}", "total": f"{last.sentences or 0:,}"}
        how = say("texts.greedy") if last.beam in (None, 1) else say("texts.beam", n=last.beam)
        said.append(say("texts.scores", how=how, **shares, **counts))
    signature = (" ", say("texts.signature"), Code(last.bleu_signature), say("full-stop"))
    return Paragraph((context.sentences(said), *(signature if last.bleu_signature else ())))


def _translations(context: ReportContext, standing: VariantResult, sample: Sample) -> Table:
    rows = []
    for row in sample.translations[:MOST_SENTENCES]:
        right = row.reference != "" and row.reference.strip() == row.text.strip()
        wrote = Cell(row.text[:LONGEST_SAMPLE] or NONE, strong=right)
        rows.append((*cells([row.source[:LONGEST_SAMPLE], row.reference[:LONGEST_SAMPLE]]), wrote))
    asked = standing.protocol.objective == "question-answer"
    heads = context.heads(*(("question", "reference", "answer") if asked else ("source", "reference", "translation")))
    caption = context.say("table.answers" if asked else "table.translations", name=context.data.name(standing))
    return Table(caption, heads, tuple(rows), "lll", context.say("table.translations.note"))
