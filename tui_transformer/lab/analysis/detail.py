"""All there is to know of a run or a variant beside a baseline: titled blocks of lines, and a study as it is printed.

Pure; what is in it is cleaned.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len

from engine.clean import clean_line
from engine.command_line import command_line
from engine.measures import Measure
from engine.runs.lineage import drawn
from tui_transformer.lab.analysis.columns import (
    ABOUT,
    JUDGED,
    MEASURED,
    NAME,
    NONE,
    Column,
    changes,
    score,
    setting_text,
)
from tui_transformer.lab.analysis.entry import LOSSES, Entry, probes, scores
from tui_transformer.lab.analysis.folder import StudyFile
from tui_transformer.lab.analysis.group_columns import FAIRNESS, HANDED_IN, main_columns, mean_column, of_runs
from tui_transformer.lab.analysis.groups import Grouping, unit_of, why_not
from tui_transformer.lab.analysis.sentences import (
    evidence_sentence,
    expectation_sentence,
    more_sentences,
    noise_of_sentences,
    notes,
    outcome_counts,
    probe_sentence,
    verdict_sentence,
)
from tui_transformer.lab.analysis.verdict import (
    AS_EXPECTED,
    NOT_AS_EXPECTED,
    Expectation,
    VariantResult,
    VariantResults,
    brief,
    expectations,
    verdict,
)
from tui_transformer.lab.records.badges import badge

UNSET = "–"
GAP = 2  # columns between two
Rows = list[list[str]]
_KINDS = {AS_EXPECTED: "advice", NOT_AS_EXPECTED: "warn"}


@dataclass(frozen=True)
class Line:
    """One line: a head, aligned with the others of its block, and what is said of it.

    Args:
        kind: `plain`, `bad` (a void score), `warn`, or `advice`.
    """

    head: str
    text: str
    kind: str = "plain"


@dataclass(frozen=True)
class Block:
    """A title and its lines."""

    title: str
    lines: tuple[Line, ...]


def detail(entry: Entry, baseline: Entry | None) -> tuple[Block, ...]:
    """What to read about a run, the most important first."""
    blocks = [
        Block("What is wrong with it", tuple(_badges(entry))),
        Block("Beside the baseline", tuple(_beside(entry, baseline))),
        Block("Where its first weights come from", tuple(_lineage(entry))),
        Block("Notes and tags", tuple(_notes(entry))),
        Block("Scores", tuple(_values(entry))),
        Block("Probes: share right", tuple(_probes(entry))),
        Block("Not comparable", tuple(_redefined(entry))),
        Block("Settings", tuple(Line(clean_line(k), clean_line(setting_text(v))) for k, v in entry.config.items())),
    ]
    return tuple(block for block in blocks if block.lines)


def _probes(entry: Entry) -> Iterator[Line]:
    for name, share in entry.probes.items():
        places = entry.places.get(name)
        yield Line(clean_line(name), f"{share:.1%}" + (f" of {places:,} places" if places is not None else ""))


def _badges(entry: Entry) -> Iterator[Line]:
    for name, why in entry.badges.items():
        known = badge(name)
        yield Line(clean_line(name), clean_line(known.means), known.severity)
        if why:
            yield Line("", clean_line(f"Why: {why}"))
        yield Line("", clean_line(f"What to do: {known.advice}"), "advice")
    if entry.reason:
        yield Line(clean_line(entry.state), clean_line(entry.reason))


def _redefined(entry: Entry) -> Iterator[Line]:
    if entry.redefined:
        names = ", ".join(entry.redefined)
        yield Line(
            "", f"Recorded by an older version, which defined it differently, so it is left out here: {names}.", "warn"
        )
        again = command_line("evaluate", entry.name, runs_dir=entry.path.parent)
        yield Line("", clean_line(f"Score it again: {again}"), "advice")


def _beside(entry: Entry, baseline: Entry | None) -> Iterator[Line]:
    if baseline is None:
        yield Line("", "No baseline is pinned: p pins one.")
        return
    if baseline.path == entry.path:
        yield Line("", "This run is the baseline.")
        return
    yield Line("verdict", clean_line(verdict(entry, baseline)))
    reason = why_not(entry, baseline)
    if reason:
        yield Line("", clean_line(reason), "warn")
    for column in (*JUDGED, *MEASURED):
        if column.key.startswith("Δ") and column.value(entry, baseline) is not None:
            yield Line(_head(column, entry), clean_line(column.shown(entry, baseline)))
    changed = list(changes(entry, baseline))
    for key, own, others in changed:
        yield Line(clean_line(key), clean_line(f"{_text(own)}   (baseline: {_text(others)})"))
    if entry.config and baseline.config and not changed:
        yield Line("", "No setting differs but bookkeeping.")


def _text(value: object) -> str:
    return UNSET if value is None else setting_text(value)


def _lineage(entry: Entry) -> Iterator[Line]:
    origin = entry.origin
    if origin is not None:
        yield Line("chain", clean_line(drawn(origin, entry.name)))
        yield Line("from", clean_line(f"{origin.shown}, weights with SHA-256 {origin.sha256[:12]}…"))


def _notes(entry: Entry) -> Iterator[Line]:
    if entry.tags:
        yield Line("tags", clean_line(" ".join(f"#{tag}" for tag in entry.tags)))
    for i, line in enumerate(entry.notes.splitlines()):
        yield Line("note" if i == 0 else "", line)


def _values(entry: Entry) -> Iterator[Line]:
    for column in (JUDGED[0], *MEASURED, *(score(name) for name in entry.scores), *ABOUT):
        if column is NAME or column.key in ("tags", "notes"):
            continue
        value = column.value(entry, None)
        if value is not None and value != "":
            yield Line(_head(column, entry), clean_line(column.shown(entry, None)))


def _head(column: Column, entry: Entry) -> str:
    step = {"best": entry.best_step, "last": entry.last_step}.get(column.key)
    name = column.name.removesuffix(" (s)")  # shown as minutes
    return clean_line(name if step is None else f"{name}, step {step:,}")


def group_detail(standing: VariantResult) -> tuple[Block, ...]:
    """What to read about a variant, the most important first."""
    others = (*probes(standing.runs), *scores(standing.runs))
    why = standing.family.file.why.get(standing.group.variant, "") if standing.family.file is not None else ""
    blocks = [
        Block("Beside the baseline", tuple(_verdict(standing))),
        Block("What is wrong with its runs", tuple(_variant_badges(standing))),
        Block("What was expected beforehand", tuple(_expected(standing, others, why))),
        Block("Its runs", tuple(_runs(standing))),
        Block("Where their first weights come from", tuple(_earlier(standing))),
        Block("Scores: mean and 95 % interval over seeds", tuple(_measured(standing, LOSSES))),
        Block("Probes and other scores", tuple(_measured(standing, others))),
        Block("What it cost", tuple(_cost(standing))),
        Block("What it changes", tuple(_changes(standing))),
        Block("What the numbers mean", tuple(Line("", clean_line(note)) for note in notes([standing]))),
    ]
    return tuple(block for block in blocks if block.lines)


def _verdict(standing: VariantResult) -> Iterator[Line]:
    baseline = standing.family.baseline
    if baseline is None:
        yield Line("", "No baseline is pinned: p pins one.")
        return
    yield Line("baseline", clean_line(baseline.name))
    kind = "warn" if standing.why_not else "plain"
    yield Line("verdict", clean_line(verdict_sentence(standing)), kind)
    for sentence in more_sentences(standing):
        yield Line("", clean_line(sentence))
    if evidence := evidence_sentence(standing):
        yield Line("statistics", clean_line(evidence))


def _variant_badges(standing: VariantResult) -> Iterator[Line]:
    for name, why in standing.badges.items():
        known = badge(name)
        yield Line(clean_line(name), clean_line(known.means), known.severity)
        yield Line("", clean_line(why))
        yield Line("", clean_line(f"What to do: {known.advice}"), "advice")


def _expected(standing: VariantResult, measures: Sequence[Measure], why: str) -> Iterator[Line]:
    found = expectations(standing, measures)
    for expectation in found:
        kind = _KINDS.get(expectation.outcome, "plain")
        yield Line(clean_line(expectation.what), clean_line(expectation_sentence(expectation)), kind)
    if found and why:
        yield Line("why", clean_line(why))


def _runs(standing: VariantResult) -> Iterator[Line]:
    group = standing.group
    for run in standing.runs:
        seed, reason = run.seed_of_study, group.left_out.get(run.path)
        loss = UNSET if run.last is None else f"{run.last:.4f}"
        best = "" if run.best is None else f"   best {run.best:.4f}"
        badges = "".join(f"   {name}" for name in run.badges)
        text = f"{run.state:<10}  last {loss}{best}{badges}{f'   does not count: {reason}' if reason else ''}"
        head = f"seed {seed if seed is not None else UNSET}  {run.name}"
        yield Line(clean_line(head), clean_line(text), "warn" if reason else "plain")


def _earlier(standing: VariantResult) -> Iterator[Line]:
    for run in standing.runs:
        if run.origin is not None:
            yield Line(clean_line(f"seed {run.seed_of_study}"), clean_line(drawn(run.origin, run.name)))
    for run in standing.group.earlier:
        loss = UNSET if run.last is None else f"{run.last:.4f} nats per {run.protocol.unit}"
        badges = "".join(f"   {name}" for name in run.badges)
        yield Line(clean_line(run.name), clean_line(f"{run.state:<10}  last {loss}{badges}"))


def _measured(standing: VariantResult, measures: Sequence[Measure]) -> Iterator[Line]:
    for measure in measures:
        mean, difference = standing.mean(measure), standing.difference(measure)
        if mean is None:
            continue
        text = measure.spread(mean) + (f" {measure.unit}" if measure.unit else "")
        if difference is not None and measure.judged:
            text += f"   Δ {measure.spread(difference.estimate, sign=True)}"
        said = probe_sentence(standing, measure)
        yield Line(clean_line(measure.name), clean_line(text + (f"   {said}" if said else "")))


def _cost(standing: VariantResult) -> Iterator[Line]:
    for column in (*FAIRNESS, *HANDED_IN):
        if column.value(standing, None) is not None:
            yield Line(clean_line(column.name.removesuffix(" (s)")), clean_line(column.shown(standing, None)))


def _changes(standing: VariantResult) -> Iterator[Line]:
    baseline = standing.family.baseline
    if baseline is None or standing.is_baseline:
        return
    changed = [c for c in changes(standing.group.representative, baseline.representative) if c[0] != "seed"]
    for key, own, others in changed:
        shown = [UNSET if value is None else setting_text(value) for value in (own, others)]
        yield Line(clean_line(key), clean_line(f"{shown[0]}   (baseline: {shown[1]})"))
    if not changed:
        yield Line("", "No setting differs but bookkeeping.")


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
    return text_of(VariantResults().of(Grouping().of(entries), files, pinned), width=width)


def text_of(standings: Sequence[VariantResult], *, all_settings: bool = False, width: int | None = None) -> str:
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


def _cells(columns: Sequence[Column], standings: Sequence[VariantResult]) -> Rows:
    return [[c.title for c in columns], *([clean_line(c.shown(s, None)) for c in columns] for s in standings)]


def _probe_row(standing: VariantResult, name: Column, measures: Sequence[Measure]) -> list[str]:
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


def _verdicts(standings: Sequence[VariantResult], measures: Sequence[Measure]) -> Iterator[str]:
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
