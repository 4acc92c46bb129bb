"""A run or a variant in full against a baseline, as titled blocks of lines; a study as printed text. All is cleaned."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.cells import cell_len

from engine.base.clean import clean_line
from engine.base.command_line import command_line
from engine.base.errors import comma_separated
from engine.base.language import Message, tr
from engine.config.measures import Measure, probe_display_name
from engine.runs.lineage import chain_text
from tui_transformer.lab.analysis.columns import (
    ABOUT_COLUMNS,
    JUDGED_COLUMNS,
    LAST,
    MEASURED_COLUMNS,
    NONE,
    Column,
    changes,
    score_column,
    setting_shown,
)
from tui_transformer.lab.analysis.entry import LOSSES, RunEntry, probe_measures, score_measures
from tui_transformer.lab.analysis.folder import RequestedStudy
from tui_transformer.lab.analysis.group_columns import (
    COST_COLUMNS,
    DERIVED_COLUMNS,
    all_runs,
    main_columns,
    mean_column,
)
from tui_transformer.lab.analysis.groups import Grouping, VariantRuns, unit_of, why_incomparable
from tui_transformer.lab.analysis.lists import join_names
from tui_transformer.lab.analysis.sentences import (
    bleu_noise_sentences,
    evidence_sentence,
    expectation_sentence,
    named,
    outcome_counts,
    probe_sentence,
    sentences_besides_verdict,
    table_footnotes,
    verdict_sentence,
)
from tui_transformer.lab.analysis.verdict import (
    AS_EXPECTED,
    NOT_AS_EXPECTED,
    Expectation,
    VariantEvaluator,
    VariantResult,
    brief_verdict,
    expectations,
    verdict,
)
from tui_transformer.lab.formatting import confusion_lines, fit_to_width
from tui_transformer.lab.records.badges import badge, mark_if_seen
from tui_transformer.lab.records.run_lines import average_lines, lead_baseline_text

UNSET = "–"
NO_BASELINE = Message("No baseline is set; press p to set one.")
GAP = 2  # spaces between two columns
STATE = 10  # columns
Rows = list[list[str]]
_KINDS: dict[str, str] = {AS_EXPECTED: "advice", NOT_AS_EXPECTED: "warn"}


@dataclass(frozen=True)
class DetailLine:
    """One line: a head, aligned with the others in its block, and its text."""

    head: str
    text: str
    kind: str = "plain"  # `plain`, `bad` (a void score), `warn`, or `advice`


Blocks = dict[str, list[DetailLine]]  # by title


def _line(head: str, text: str, kind: str = "plain") -> DetailLine:
    return DetailLine(clean_line(head), clean_line(text), kind)


def _non_empty_blocks(*made: tuple[str, Iterable[DetailLine]]) -> Blocks:
    return {title: found for title, lines in made if (found := list(lines))}


def detail(entry: RunEntry, baseline: RunEntry | None) -> Blocks:
    """Return a run's detail, most important first."""
    wrong, origin, older = [*_badges(entry.badges, entry.badges_acknowledged)], entry.origin, []
    if entry.reason:
        wrong.append(_line(tr(entry.state), entry.reason))
    written = [_line(tr("tags"), " ".join(f"#{tag}" for tag in entry.tags))] if entry.tags else []
    written += [DetailLine("" if i else tr("note"), line) for i, line in enumerate(entry.notes.splitlines())]
    if entry.redefined:
        names = comma_separated(entry.redefined)
        again = command_line("evaluate", entry.name, runs_dir=entry.path.parent)
        said = tr("Not shown, because an older version used a different definition: {names}.", names=names)
        older = [_line("", said, "warn"), _line("", tr("Score the run again: {again}", again=again), "advice")]
    lineage = []
    if origin is not None:
        weights = tr("{shown}, weights with SHA-256 {sha256}…", shown=origin.label, sha256=origin.sha256[:12])
        lineage = [_line(tr("chain"), chain_text(origin, entry.name)), _line(tr("from"), weights)]
    values = (LAST, *MEASURED_COLUMNS, *(score_column(name) for name in entry.scores), *ABOUT_COLUMNS)
    shown = [c for c in values if c.key not in ("tags", "notes") and c.value(entry, None) not in (None, "")]
    scores = [_line(_head(column, entry), column.screen_text(entry, None)) for column in shown]
    scores += [_line(*line) for line in average_lines(entry.averages, entry.best)]
    asked = {name: tr(" of {n:,} places", n=n) for name, n in entry.places.items()}
    probes = (_line(tr(probe_display_name(name)), f"{v:.1%}{asked.get(name, '')}") for name, v in entry.probes.items())
    return _non_empty_blocks(
        (tr("Problems"), wrong),
        (tr("Compared to the baseline"), _baseline_lines(entry, baseline)),
        (tr("Where its initial weights come from"), lineage),
        (tr("Notes and tags"), written),
        (tr("Scores"), [*scores, *_lead_baseline_lines(entry)]),
        (tr("Probes: share correct"), probes),
        (tr("Its last evaluation, class by class"), _classified(entry)),
        (tr("Not comparable"), older),
        (tr("Settings"), (_line(key, _setting_value_text(key, value)) for key, value in entry.config.items())),
    )


def _lead_baseline_lines(entry: RunEntry) -> Iterator[DetailLine]:
    if entry.lead is not None:
        yield _line("", lead_baseline_text(entry.lead))


def _classified(entry: RunEntry) -> Iterator[DetailLine]:
    """A confusion table, and what others get right."""
    if entry.classification is None:
        return
    yield DetailLine("", tr("One row per class; the columns are the classes that its texts were assigned to."))
    for line in confusion_lines(entry.classification.classes, entry.classification.confusion):
        yield DetailLine("", line)
    yield from (_line("", words) for words in entry.classification.readers)


def _badges(badges: Mapping[str, str], seen: Sequence[str], *, of_several: bool = False) -> Iterator[DetailLine]:
    for name, why in badges.items():
        known = badge(name)
        kind = "plain" if name in seen else known.severity
        yield _line(mark_if_seen(known.display_name, seen=name in seen), tr(known.means), kind)
        if why:
            yield _line("", why if of_several else tr("Why: {why}", why=why))
        yield _line("", tr("What to do: {advice}", advice=tr(known.advice)), "advice")


def _baseline_lines(entry: RunEntry, baseline: RunEntry | None) -> Iterator[DetailLine]:
    if baseline is None:
        yield DetailLine("", tr(NO_BASELINE))
        return
    if baseline.path == entry.path:
        yield DetailLine("", tr("This run is the baseline."))
        return
    yield _line(tr("verdict"), tr(verdict(entry, baseline)))
    if reason := why_incomparable(entry, baseline):
        yield _line("", tr(reason), "warn")
    for column in (*JUDGED_COLUMNS, *MEASURED_COLUMNS):
        if column.key.startswith("Δ") and column.value(entry, baseline) is not None:
            yield _line(_head(column, entry), column.screen_text(entry, baseline))
    yield from _changes(entry, baseline)


def _changes(entry: RunEntry, baseline: RunEntry, besides: str = "") -> Iterator[DetailLine]:
    changed = [change for change in changes(entry, baseline) if change[0] != besides]
    for key, *values in changed:
        own, others = (UNSET if value is None else setting_shown(value) for value in values)
        yield _line(key, tr("{value}   (baseline: {baseline})", value=own, baseline=others))
    if entry.config and baseline.config and not changed:
        yield DetailLine("", tr("No settings differ, apart from bookkeeping."))


def _setting_value_text(key: str, value: Any) -> str:
    text = setting_shown(value)
    return tr(text) if key == "description" else text


def _head(column: Column, entry: RunEntry) -> str:
    step = {"best": entry.best_step, "last": entry.last_step}.get(column.key)
    name = _without_unit(column)
    return name if step is None else tr("{name}, step {step:,}", name=name, step=step)


def _without_unit(column: Column) -> str:
    """Its full name; seconds are shown as minutes."""
    return column.full.removesuffix(" (s)").removesuffix("（秒）")


def variant_detail(standing: VariantResult) -> Blocks:
    """Return a variant's detail, most important first."""
    group, baseline = standing.group, standing.family.baseline
    others = (*probe_measures(standing.runs), *score_measures(standing.runs))
    judged = [DetailLine("", tr(NO_BASELINE))]
    if baseline is not None:
        kind = "warn" if standing.why_incomparable else "plain"
        sentence = _line(tr("verdict"), tr(verdict_sentence(standing)), kind)
        judged = [_line(tr("baseline"), baseline.name), sentence]
        judged += [_line("", tr(sentence)) for sentence in sentences_besides_verdict(standing)]
        judged += [_line(tr("statistics"), tr(evidence))] if (evidence := evidence_sentence(standing)) else []
    found = expectations(standing, others)
    expected = [_line(tr(e.what), tr(expectation_sentence(e)), _KINDS.get(e.outcome, "plain")) for e in found]
    if expected and standing.expectation.why:
        expected.append(_line(tr("why"), tr(standing.expectation.why)))
    earlier = []
    for run in standing.runs:
        if run.origin is not None:
            head = tr("seed {seed_of_study}", seed_of_study=run.seed_or_study_seed)
            earlier.append(_line(head, chain_text(run.origin, run.name)))
    for run in group.earlier_stages:
        unit = tr("nats per {unit}", unit=tr(run.protocol.unit))
        earlier.append(_line(run.name, _run_summary_text(run, unit=f" {unit}")))
    cost = [c for c in (*COST_COLUMNS, *DERIVED_COLUMNS) if c.value(standing, None) is not None]
    pinned = baseline.representative if baseline is not None and not standing.is_baseline else None
    return _non_empty_blocks(
        (tr("Compared to the baseline"), judged),
        (tr("Problems with its runs"), _badges(standing.badges, standing.badges_acknowledged, of_several=True)),
        (tr("What was expected"), expected),
        (tr("Its runs"), map(partial(_run, group), standing.runs)),
        (tr("Where their initial weights come from"), earlier),
        (tr("Scores: mean and 95 % interval over seeds"), _measured(standing, LOSSES)),
        (tr("Probes and other scores"), [*_measured(standing, others), *_lead_baseline_lines(standing.runs[0])]),
        (tr("The last evaluation of its first run, class by class"), _classified(standing.runs[0])),
        (tr("What it cost"), (_line(_without_unit(c), c.screen_text(standing, None)) for c in cost)),
        (tr("What it changes"), _changes(group.representative, pinned, "seed") if pinned is not None else ()),
        (tr("What the numbers mean"), (_line("", tr(note)) for note in table_footnotes([standing]))),
    )


def _run(group: VariantRuns, run: RunEntry) -> DetailLine:
    seed, reason = run.seed_or_study_seed, group.exclusion_reasons.get(run.path)
    best = "" if run.best is None else tr("   best {best:.4f}", best=run.best)
    left_out = tr("   excluded: {reason}", reason=tr(reason)) if reason else ""
    head = tr("seed {seed}  {name}", seed=seed if seed is not None else UNSET, name=run.name)
    return _line(head, _run_summary_text(run, best=best) + left_out, "warn" if reason else "plain")


def _run_summary_text(run: RunEntry, *, unit: str = "", best: str = "") -> str:
    loss = UNSET if run.last is None else f"{run.last:.4f}{unit}"
    state = fit_to_width(tr(run.state), STATE)
    badges = "".join(f"   {mark_if_seen(badge(n).display_name, seen=n in run.badges_acknowledged)}" for n in run.badges)
    return tr("{state}  last {loss}{best}{badges}", state=state, loss=loss, best=best, badges=badges)


def _measured(standing: VariantResult, measures: Sequence[Measure]) -> Iterator[DetailLine]:
    for measure in measures:
        mean, difference = standing.mean(measure), standing.difference(measure)
        if mean is None:
            continue
        text = measure.format_mean(mean) + (f" {measure.unit}" if measure.unit else "")
        if difference is not None and measure.is_compared:
            text += f"   Δ {measure.format_mean(difference, sign=True)}"
        said = tr(probe_sentence(standing, measure))
        yield _line(tr(measure.name), text + (f"   {said}" if said else ""))


def study_text(entries: Sequence[RunEntry], study: RequestedStudy | None = None, *, width: int | None = None) -> str:
    """Return a study's results; a table wider than `width` columns is split into several."""
    studies = {study.name: study} if study else {}
    return results_text(VariantEvaluator().evaluate(Grouping().group(entries), studies), width=width)


def results_text(standings: Sequence[VariantResult], *, all_settings: bool = False, width: int | None = None) -> str:
    """Return these variants as a table, a probe table, and a verdict each."""
    if not standings:
        return tr("this study has no runs yet\n")
    runs = all_runs(standings)
    columns = main_columns(standings, all_settings=all_settings)
    measures = (*probe_measures(runs), *(m for m in score_measures(runs) if m.is_compared))
    primary = tr(join_names(dict.fromkeys(Message(standing.primary.name) for standing in standings)))
    parts = [
        tr("loss in {unit_of}; verdicts are based on {primary}", unit_of=unit_of(runs), primary=primary),
        *_tables([[c.screen_text(s, None) for c in columns] for s in standings], columns, width),
    ]
    if measures:
        shown = [columns[0], *map(mean_column, measures)]
        made = [[columns[0].screen_text(standing, None)] for standing in standings]
        for cells, standing in zip(made, standings, strict=True):
            for measure in measures:
                mean = standing.mean(measure)
                judged = tr(brief_verdict(standing.judgement(measure))).partition(",")[0]
                cells.append(NONE if mean is None else " ".join([measure.format_mean(mean), judged]).strip())
        parts += ["", tr("probes and scores, each compared to the baseline's"), *_tables(made, shown, width, left=True)]
    parts += ["", *_verdicts(standings, measures), "", *map(tr, table_footnotes(standings))]
    return "\n".join(line if line.startswith(" ") else clean_line(line) for line in parts) + "\n"


def _tables(rows: Rows, columns: Sequence[Column], width: int | None, *, left: bool = False) -> Iterator[str]:
    """Align cells; if too wide, split into several tables that all repeat the first column."""
    rows = [[clean_line(cell) for cell in row] for row in ([column.head for column in columns], *rows)]
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
            cells = []
            for i in shown:
                air = " " * (widths[i] - cell_len(row[i]))
                cells.append(air + row[i] if columns[i].right_aligned and not left and i > 0 else row[i] + air)
            yield (" " * GAP).join(cells).rstrip()
        at = end


def _verdicts(standings: Sequence[VariantResult], measures: Sequence[Measure]) -> Iterator[str]:
    several = len({standing.group.study for standing in standings}) > 1
    everything: list[Expectation] = []
    for standing in standings:
        name = clean_line(standing.group.title if several else standing.name)
        yield tr(named(name, verdict_sentence(standing)))
        for sentence in (*sentences_besides_verdict(standing), *bleu_noise_sentences(standing)):
            yield f"  {clean_line(tr(sentence))}"
        found = expectations(standing, measures)
        everything += found
        for expectation in found:
            yield f"  {clean_line(tr(expectation_sentence(expectation)))}"
        if found and standing.expectation.why:
            yield tr("  why: {why}", why=clean_line(tr(standing.expectation.why)))
        told = {m.key for e in found for m, _ in e.judgements}
        for measure in measures:
            said = probe_sentence(standing, measure)
            if said and measure.key not in told:
                yield "  " + tr(named(clean_line(tr(measure.name)), said))
    if everything:
        yield tr("expectations: {counts}", counts=outcome_counts(everything))
