"""All there is to know of one variant beside its baseline, as titled blocks of lines. Pure; it is cleaned."""

from collections.abc import Iterator, Sequence

from engine.clean import clean_line
from engine.runs.lineage import drawn
from tui_transformer.lab.analysis import differences
from tui_transformer.lab.analysis.columns import setting_text
from tui_transformer.lab.analysis.detail import UNSET, Block, Line
from tui_transformer.lab.analysis.expected import AS_EXPECTED, NOT_AS_EXPECTED, expectations
from tui_transformer.lab.analysis.group_columns import FAIRNESS, HANDED_IN
from tui_transformer.lab.analysis.group_sentences import (
    evidence_sentence,
    expectation_sentence,
    more_sentences,
    notes,
    probe_sentence,
    verdict_sentence,
)
from tui_transformer.lab.analysis.groups import seed_of
from tui_transformer.lab.analysis.measures import LOSSES, Measure, probes, scores
from tui_transformer.lab.analysis.standing import Standing
from tui_transformer.lab.records.badges import badge

_KINDS = {AS_EXPECTED: "advice", NOT_AS_EXPECTED: "warn"}


def group_detail(standing: Standing) -> tuple[Block, ...]:
    """What to read about a variant, the most important first."""
    others = (*probes(standing.runs), *scores(standing.runs))
    why = standing.family.file.why.get(standing.group.variant, "") if standing.family.file is not None else ""
    blocks = [
        Block("Beside the baseline", tuple(_verdict(standing))),
        Block("What is wrong with its runs", tuple(_badges(standing))),
        Block("What was expected beforehand", tuple(_expected(standing, others, why))),
        Block("Its runs", tuple(_runs(standing))),
        Block("Where their first weights come from", tuple(_earlier(standing))),
        Block("Scores: mean and 95 % interval over seeds", tuple(_scores(standing, LOSSES))),
        Block("Probes and other scores", tuple(_scores(standing, others))),
        Block("What it cost", tuple(_cost(standing))),
        Block("What it changes", tuple(_changes(standing))),
        Block("What the numbers mean", tuple(Line("", clean_line(note)) for note in notes([standing]))),
    ]
    return tuple(block for block in blocks if block.lines)


def _verdict(standing: Standing) -> Iterator[Line]:
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


def _badges(standing: Standing) -> Iterator[Line]:
    for name, why in standing.badges.items():
        known = badge(name)
        yield Line(clean_line(name), clean_line(known.means), known.severity)
        yield Line("", clean_line(why))
        yield Line("", clean_line(f"What to do: {known.advice}"), "advice")


def _expected(standing: Standing, measures: Sequence[Measure], why: str) -> Iterator[Line]:
    found = expectations(standing, measures)
    for expectation in found:
        kind = _KINDS.get(expectation.outcome, "plain")
        yield Line(clean_line(expectation.what), clean_line(expectation_sentence(expectation)), kind)
    if found and why:
        yield Line("why", clean_line(why))


def _runs(standing: Standing) -> Iterator[Line]:
    group = standing.group
    for run in standing.runs:
        seed, reason = seed_of(run), group.left_out.get(run.path)
        loss = UNSET if run.last is None else f"{run.last:.4f}"
        best = "" if run.best is None else f"   best {run.best:.4f}"
        badges = "".join(f"   {name}" for name in run.badges)
        text = f"{run.state:<10}  last {loss}{best}{badges}{f'   does not count: {reason}' if reason else ''}"
        head = f"seed {seed if seed is not None else UNSET}  {run.name}"
        yield Line(clean_line(head), clean_line(text), "warn" if reason else "plain")


def _earlier(standing: Standing) -> Iterator[Line]:
    for run in standing.runs:
        if run.origin is not None:
            yield Line(clean_line(f"seed {seed_of(run)}"), clean_line(drawn(run.origin, run.name)))
    for run in standing.group.earlier:
        loss = UNSET if run.last is None else f"{run.last:.4f} nats per {run.protocol.unit}"
        badges = "".join(f"   {name}" for name in run.badges)
        yield Line(clean_line(run.name), clean_line(f"{run.state:<10}  last {loss}{badges}"))


def _scores(standing: Standing, measures: Sequence[Measure]) -> Iterator[Line]:
    for measure in measures:
        mean, difference = standing.mean(measure), standing.difference(measure)
        if mean is None:
            continue
        text = measure.spread(mean) + (f" {measure.unit}" if measure.unit else "")
        if difference is not None and measure.judged:
            text += f"   Δ {measure.spread(difference.estimate, sign=True)}"
        said = probe_sentence(standing, measure)
        yield Line(clean_line(measure.name), clean_line(text + (f"   {said}" if said else "")))


def _cost(standing: Standing) -> Iterator[Line]:
    for column in (*FAIRNESS, *HANDED_IN):
        if column.value(standing, None) is not None:
            yield Line(clean_line(column.name.removesuffix(" (s)")), clean_line(column.shown(standing, None)))


def _changes(standing: Standing) -> Iterator[Line]:
    baseline = standing.family.baseline
    if baseline is None or standing.is_baseline:
        return
    changes = [c for c in differences.against(standing.group.representative, baseline.representative) if c[0] != "seed"]
    for key, own, others in changes:
        shown = [UNSET if value is None else setting_text(value) for value in (own, others)]
        yield Line(clean_line(key), clean_line(f"{shown[0]}   (baseline: {shown[1]})"))
    if not changes:
        yield Line("", "No setting differs but bookkeeping.")
