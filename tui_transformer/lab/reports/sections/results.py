"""The results: the ablation as a table and as bars, a verdict each in words, and what was expected."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from engine.clean import clean_line
from engine.measures import Measure
from tui_transformer.lab.analysis import group_columns
from tui_transformer.lab.analysis.columns import Column
from tui_transformer.lab.analysis.entry import BEST, EXCESS, LAST, probes, scores
from tui_transformer.lab.analysis.group_columns import of_runs
from tui_transformer.lab.analysis.sentences import (
    expectation_sentence,
    more_sentences,
    noise_of_sentences,
    notes,
    outcome_counts,
    verdict_sentence,
)
from tui_transformer.lab.analysis.verdict import Expectation, VariantResult, expectations, summary
from tui_transformer.lab.reports.document import Block, Bullets, Cell, Figure, Heading, Paragraph, Strong, Table
from tui_transformer.lab.reports.figures.bars import bars, bars_of
from tui_transformer.lab.reports.figures.curves import floor_of
from tui_transformer.lab.reports.told import NONE, Told

MOST = 24  # bars of one picture


def judged_measures(told: Told) -> tuple[Measure, ...]:
    """Probes and scores that variants are held against each other in."""
    runs = of_runs(told.gathered.standings)
    return (*probes(runs), *(measure for measure in scores(runs) if measure.judged))


def results(told: Told) -> Iterator[Block]:
    """The section."""
    standings = told.gathered.standings
    measures = judged_measures(told)
    yield Heading(told.say("section.results"))
    if told.gathered.several:
        yield _ablation(told, standings, measures)
        for i, part in enumerate(told.gathered.parts):
            yield from _bars(told, part, "" if len(told.gathered.parts) == 1 else f"-{i + 1}")
        yield Heading(told.say("section.verdicts"), 2)
        yield Bullets(tuple(_verdict(told, standing) for standing in standings))
        yield from _expectations(told, measures)
    yield from _more(told, standings)


def _columns(told: Told, columns: Sequence[Column], standings: Sequence[VariantResult]) -> Sequence[Column]:
    """Those that any variant has a value for."""
    return [c for c in columns if c.always or any(c.value(s, None) not in (None, "", ()) for s in standings)]


def _cell(told: Told, column: Column, standing: VariantResult, measures: Sequence[Measure]) -> Cell:
    if column is group_columns.VERDICT:
        text = standing.verdict_in(told.language)
        return Cell(clean_line(text) or NONE, strong=bool(standing.why_not))
    if column.key == "expected":
        return Cell(clean_line(summary(expectations(standing, measures), told.language)) or NONE)
    if column is group_columns.CHECKS:
        return Cell(clean_line(column.shown(standing, None)), strong=bool(standing.badges))
    if column is group_columns.VARIANT:
        return Cell(clean_line(told.gathered.name(standing)), strong=standing.is_baseline)
    return Cell(clean_line(column.shown(standing, None)))


def _table(
    told: Told, caption: str, columns: Sequence[Column], standings: Sequence[VariantResult], measures: Sequence[Measure]
) -> Table:
    shown = _columns(told, columns, standings)
    rows = tuple(tuple(_cell(told, column, s, measures) for column in shown) for s in standings)
    align = "".join("r" if column.right else "l" for column in shown)
    heads = tuple(told.language.word(column.title) for column in shown)
    return Table(caption, heads, rows, align, told.sentences(notes(standings, told.language)))


def _ablation(told: Told, standings: Sequence[VariantResult], measures: Sequence[Measure]) -> Table:
    loss = group_columns.mean_column(LAST, always=True)
    columns = [
        *(group_columns.VARIANT, group_columns.SEEDS, loss, group_columns.difference_column(LAST), group_columns.P),
        *(group_columns.VERDICT, group_columns.CHECKS, group_columns.expected_column(measures)),
        group_columns.PARAMETERS,
    ]
    return _table(told, told.say("table.ablation"), columns, standings, measures)


def _more(told: Told, standings: Sequence[VariantResult]) -> Iterator[Table]:
    """Best losses, distance to the floor, cost: beside the verdict, never instead of it."""
    named = (group_columns.VARIANT, group_columns.SEEDS)
    scored = [
        *(*named, group_columns.mean_column(LAST, always=True), group_columns.mean_column(BEST, always=True)),
        *(group_columns.mean_column(EXCESS), group_columns.PER_CENT, group_columns.PERPLEXITY),
    ]
    for key, columns in (("table.more", scored), ("table.cost", [*named, *group_columns.FAIRNESS])):
        alone = key == "table.more" and not told.gathered.several
        made = _table(told, told.say(f"{key}.alone" if alone else key), columns, standings, ())
        yield replace(made, note=told.say(f"{key}.note"))


def _bars(told: Told, part: Sequence[VariantResult], ending: str) -> Iterator[Figure]:
    shown = part[:MOST]
    made = bars_of(told.gathered, shown, told.drawn)
    if all(bar.loss is None for bar in made):
        return
    unit, floor = part[0].protocol.unit, floor_of(told.gathered, shown)
    caption = [told.say("caption.bars")]
    caption += [told.say("caption.bars.void")] if any(s.group.void for s in shown) else []
    caption += [told.say("figure.cut", shown=MOST, total=len(part))] if len(part) > MOST else []
    yield Figure(f"ablation{ending}", told.sentences(caption), lambda: bars(made, unit, floor, told.drawn))


def _verdict(told: Told, standing: VariantResult) -> tuple[str | Strong, ...]:
    """A variant's verdict with everything it rests on."""
    language = told.language
    said = verdict_sentence(standing, language) + told.say("full-stop")
    more = [*more_sentences(standing, language), *noise_of_sentences(standing, language)]
    text = told.sentences([said, *more])
    return Strong(told.gathered.name(standing)), told.say("name.colon"), clean_line(text)


def _expectations(told: Told, measures: Sequence[Measure]) -> Iterator[Block]:
    """What a study said beforehand, and how it came out."""
    everything: list[Expectation] = []
    items: list[tuple[str | Strong, ...]] = []
    for standing in told.gathered.standings:
        found = expectations(standing, measures)
        file = standing.family.file
        why = file.why.get(standing.group.variant, "") if found and file is not None else ""
        everything += found
        if found:
            each = [expectation_sentence(one, told.language) for one in found]
            told_why = [told.say("expected.why", why=why)] if why else []
            said = told.say("join.semicolon").join(each) + told.say("full-stop")
            text = clean_line(told.sentences([said, *told_why]))
            items.append((Strong(told.gathered.name(standing)), told.say("name.colon"), text))
    if items:
        yield Heading(told.say("section.expected"), 2)
        yield Paragraph((told.say("expected.counts", counts=outcome_counts(everything, told.language)),))
        yield Bullets(tuple(items))
