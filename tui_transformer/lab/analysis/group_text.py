"""A study as text: the table, the probes, the verdicts in sentences, as `compare` and `ablate` print it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.cells import cell_len

from engine.clean import clean_line
from tui_transformer.lab.analysis.columns import NONE, Column
from tui_transformer.lab.analysis.comparable import unit_of
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.expected import Expectation, expectations
from tui_transformer.lab.analysis.group_columns import main_columns, mean_column, of_runs
from tui_transformer.lab.analysis.group_sentences import (
    expectation_sentence,
    more_sentences,
    notes,
    outcome_counts,
    probe_sentence,
    verdict_sentence,
)
from tui_transformer.lab.analysis.groups import Grouping
from tui_transformer.lab.analysis.measures import Measure, probes, scores
from tui_transformer.lab.analysis.sentence_noise import noise_of_sentences
from tui_transformer.lab.analysis.standing import Standing, Standings, brief
from tui_transformer.lab.analysis.studies import StudyFile

GAP = 2  # columns between two
Rows = list[list[str]]


def study_text(
    entries: Sequence[Entry],
    study: StudyFile | None = None,
    *,
    pinned: Path | None = None,
    width: int | None = None,
) -> str:
    """What came out of a study.

    Args:
        entries: its runs.
        study: its file.
        pinned: a run of the variant that is the baseline; the study's own without it.
        width: columns of the terminal, so that what is wider stands in several tables; None for one wide one.
    """
    files: Mapping[str, StudyFile] = {study.name: study} if study is not None else {}
    return text_of(Standings().of(Grouping().of(entries), files, pinned), width=width)


def text_of(standings: Sequence[Standing], *, all_settings: bool = False, width: int | None = None) -> str:
    """These variants: a table, one of the probes, and a verdict each in words."""
    if not standings:
        return "no run belongs to it yet\n"
    runs = of_runs(standings)
    columns = main_columns(standings, all_settings=all_settings)
    measures = (*probes(runs), *(m for m in scores(runs) if m.judged))
    primary = " and ".join(dict.fromkeys(standing.primary.name for standing in standings))
    parts = [
        f"loss in {unit_of(runs)}; verdicts are about {primary}",
        *_tables(_cells(columns, standings), columns, width),
    ]
    if measures:
        shown = [columns[0], *map(mean_column, measures)]
        made = [[column.title for column in shown], *(_probe_row(s, columns[0], measures) for s in standings)]
        parts += ["", "probes and scores, each beside the baseline's", *_tables(made, shown, width, left=True)]
    parts += ["", *_verdicts(standings, measures), "", *notes(standings)]
    return "\n".join(line if line.startswith(" ") else clean_line(line) for line in parts) + "\n"


def _cells(columns: Sequence[Column], standings: Sequence[Standing]) -> Rows:
    return [[c.title for c in columns], *([clean_line(c.shown(s, None)) for c in columns] for s in standings)]


def _probe_row(standing: Standing, name: Column, measures: Sequence[Measure]) -> list[str]:
    cells = [clean_line(name.shown(standing, None))]
    for measure in measures:
        mean = standing.mean(measure)
        judged = brief(standing.judgement(measure)).partition(",")[0]
        cells.append(NONE if mean is None else " ".join([measure.spread(mean), judged]).strip())
    return cells


def _tables(rows: Rows, columns: Sequence[Column], width: int | None, *, left: bool = False) -> Iterator[str]:
    """Aligned; where the width does not do, in several tables that all begin with the first column."""
    rows = [[clean_line(cell) for cell in row] for row in rows]
    widths = [max(cell_len(row[i]) for row in rows) for i in range(len(columns))]
    at = 1
    while at < len(columns):
        end, taken = at + 1, widths[0] + GAP + widths[at]
        while end < len(columns) and (width is None or taken + GAP + widths[end] <= width):
            taken += GAP + widths[end]
            end += 1
        if at > 1:
            yield ""
        shown = [0, *range(at, end)]
        for row in rows:
            cells = [_padded(row[i], widths[i], right=columns[i].right and not left and i > 0) for i in shown]
            yield (" " * GAP).join(cells).rstrip()
        at = end


def _padded(text: str, width: int, *, right: bool) -> str:
    air = " " * (width - cell_len(text))
    return air + text if right else text + air


def _verdicts(standings: Sequence[Standing], measures: Sequence[Measure]) -> Iterator[str]:
    several = len({standing.group.study for standing in standings}) > 1
    everything: list[Expectation] = []
    for standing in standings:
        name = clean_line(standing.group.title if several else standing.name)
        yield f"{name}: {verdict_sentence(standing)}"
        for sentence in (*more_sentences(standing), *noise_of_sentences(standing)):
            yield f"  {clean_line(sentence)}"
        found = expectations(standing, measures)
        everything += found
        why = standing.family.file.why.get(standing.group.variant, "") if found and standing.family.file else ""
        for expectation in found:
            yield f"  {clean_line(expectation_sentence(expectation))}"
        if why:
            yield f"  why: {clean_line(why)}"
        told = {m.key for e in found for m, _ in e.found}
        for measure in measures:
            said = probe_sentence(standing, measure)
            if said and measure.key not in told:
                yield f"  {clean_line(measure.name)}: {said}"
    if everything:
        yield f"expectations: {outcome_counts(everything)}"
