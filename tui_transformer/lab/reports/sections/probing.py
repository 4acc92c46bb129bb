"""Probes and other scores: what a variant can do, by variant and by distance."""

from collections.abc import Iterator, Sequence
from functools import partial

from engine.clean import clean_line
from engine.measures import Measure
from tui_transformer.lab.analysis.curves import MOST, reach
from tui_transformer.lab.analysis.entry import Entry, probes, scores
from tui_transformer.lab.analysis.verdict import VariantResult, brief
from tui_transformer.lab.records.facts import number, rows, text
from tui_transformer.lab.reports.document import Block, Cell, Figure, Heading, Table
from tui_transformer.lab.reports.figures.distances import by_distance, distance_figure
from tui_transformer.lab.reports.told import NONE, Told, cells


def probing(told: Told) -> Iterator[Block]:
    """The section; none where no run has a probe or another score."""
    gathered = told.gathered
    tables = [made for part in gathered.parts for made in _tables(told, part)]
    if not tables:
        return
    yield Heading(told.say("section.probes"))
    yield from tables
    for i, part in enumerate(gathered.parts):
        charts = by_distance(gathered, part[:MOST])
        if charts:
            name = "distance" if len(gathered.parts) == 1 else f"distance-{i + 1}"
            caption = told.sentences([told.say("caption.distance"), _reaches(told, part)])
            yield Figure(name, caption, partial(distance_figure, charts, told.drawn))


def _tables(told: Told, part: Sequence[VariantResult]) -> Iterator[Table]:
    runs = [run for standing in part for run in standing.runs]
    measured = probes(runs)
    if measured:
        yield _described(told, part[0].group.representative, measured)
        yield _by_variant(told, part, measured, told.say("table.probes"))
    others = tuple(measure for measure in scores(runs) if measure.name not in _OF_LOSS)
    if others:
        yield _by_variant(told, part, others, told.say("table.scores"))


_OF_LOSS = ("perplexity", "bits per character")  # the loss in other words


def _described(told: Told, run: Entry, measured: Sequence[Measure]) -> Table:
    """What each probe asks for, with what guessing and the best shortcut score."""
    known = {text(probe.get("name")): probe for probe in rows(told.gathered.facts(run, "data").get("probes"))}
    made = []
    for measure in measured:
        probe = known.get(measure.key, {})
        places = run.places.get(measure.key)
        share = [number(probe.get(key)) for key in ("chance", "shortcut")]
        texts = ["" if places is None else f"{places:,.0f}", *("" if s is None else f"{s:.1%}" for s in share)]
        what = told.language.word(clean_line(text(probe.get("description"))))
        made.append((Cell(clean_line(measure.name), code=True), *cells(texts), Cell(what or NONE)))
    note = "table.described.pairs" if run.protocol.objective == "translation" else "table.described.note"
    heads = [told.say(f"head.{key}") for key in ("probe", "places", "chance", "shortcut", "remembered")]
    return Table(told.say("table.described"), tuple(heads), tuple(made), "lrrrl", told.say(note))


def _by_variant(told: Told, part: Sequence[VariantResult], measures: Sequence[Measure], caption: str) -> Table:
    """Mean and interval, and a word of what may be concluded."""
    made = []
    for standing in part:
        row = [Cell(clean_line(told.gathered.name(standing)), strong=standing.is_baseline)]
        for measure in measures:
            mean = standing.mean(measure)
            judged = brief(standing.judgement(measure), told.language) if measure.judged else ""
            worse = measure.judged and (found := standing.judgement(measure)) is not None and found.kind == "worse"
            if mean is None:
                row.append(Cell(NONE))
                continue
            amount = measure.spread(mean)
            row.append(Cell(told.say("bracketed", text=amount, facts=judged) if judged else amount, strong=worse))
        made.append(tuple(row))
    heads = [told.say("head.variant"), *(_head(told, measure) for measure in measures)]
    return Table(caption, tuple(heads), tuple(made), "l" * len(heads), told.say("table.probes.note"))


def _head(told: Told, measure: Measure) -> str:
    name = told.language.word(clean_line(measure.name))
    return f"{name}, %" if measure.unit == "%" else name


def _reaches(told: Told, part: Sequence[VariantResult]) -> str:
    """How far back each variant can look at all, where that is less than its context."""
    each = []
    for standing in part:
        found = reach(standing.group.representative.config)
        if found is not None and found.why != "context":
            name = told.gathered.name(standing)
            each.append(told.say("caption.reach.each", name=name, n=found.tokens, why=found.why))
    return told.say("caption.reach", each=told.say("join.semicolon").join(each)) if each else ""
