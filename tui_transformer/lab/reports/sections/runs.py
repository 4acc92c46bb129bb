"""What was run: in a paragraph, and every run with what became of it."""

from collections.abc import Iterator

from engine.clean import clean_line
from tui_transformer.lab.analysis.columns import NONE
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.records.badges import PASSED
from tui_transformer.lab.reports.document import Block, Cell, Heading, Paragraph, Table
from tui_transformer.lab.reports.gathered import corpus_name
from tui_transformer.lab.reports.told import Told

MOST = 60  # rows of runs


def runs(told: Told) -> Iterator[Block]:
    """The section."""
    yield Heading(told.say("section.runs"))
    yield Paragraph((told.sentences(_said(told)),))
    yield _table(told)


def _said(told: Told) -> Iterator[str]:
    gathered, say = told.gathered, told.say
    everything = gathered.runs
    corpora = told.language.joined(dict.fromkeys(corpus_name(run) for run in everything))
    steps = dict.fromkeys(f"{run.steps:,}" for run in everything if run.steps)
    values = {"runs": len(everything), "variants": len(gathered.standings), "corpora": corpora}
    yield say("runs.several" if gathered.several else "runs.one" if len(everything) == 1 else "runs.seeds", **values)
    if steps:
        yield say("runs.steps", steps=told.language.joined(steps))
    yield from _begun(told)
    for study in gathered.studies.values():
        yield say("runs.study", name=clean_line(study.name))
        if study.description:
            yield say("runs.description", text=clean_line(study.description))
        if study.baseline:
            yield say("runs.baseline", name=clean_line(study.baseline))
    if not gathered.studies and gathered.several:
        yield say("runs.first", name=gathered.name(gathered.first))


def _begun(told: Told) -> Iterator[str]:
    """Whose weights the runs began with, where it was not with weights of their own."""
    for standing in told.gathered.standings:
        origins = dict.fromkeys(run.origin.shown for run in standing.runs if run.origin is not None)
        name, before = told.gathered.name(standing), standing.group.earlier
        if before:
            stages = told.language.joined(dict.fromkeys(run.study.stage for run in before if run.study is not None))
            steps = told.language.joined(dict.fromkeys(f"{run.steps:,}" for run in before))
            kinds = told.language.joined(dict.fromkeys(told.language.word(run.protocol.objective) for run in before))
            yield told.say("runs.stages", name=name, stages=stages, steps=steps, objectives=kinds, n=len(before))
        elif origins:
            yield told.say("runs.origins", name=name, origins=clean_line(told.language.joined(origins)))


def _table(told: Told) -> Table:
    say, gathered = told.say, told.gathered
    rows = []
    for standing in gathered.standings:
        for run in standing.runs:
            why = standing.group.left_out.get(run.path, "")
            rows.append(_row(told, gathered.name(standing), run, why))
    heads = [say(f"head.{key}") for key in ("variant", "run", "seed", "state", "step", "last", "best", "checks")]
    note = say("runs.left-out") if any(standing.group.left_out for standing in gathered.standings) else ""
    if len(rows) > MOST:
        note = told.sentences([note, say("table.cut", shown=MOST, total=len(rows))])
    return Table(say("table.runs"), tuple(heads), tuple(rows[:MOST]), "llrlrrrl", note)


def _row(told: Told, variant: str, run: Entry, why: str) -> tuple[Cell, ...]:
    seed = run.seed_of_study
    state = told.language.word(run.state)
    reason = told.language.word(why) if why and why != run.state else ""
    counted = told.say("bracketed", text=state, facts=reason) if reason and reason != state else state
    step = f"{run.step:,} / {run.steps:,}" if run.step != run.steps else f"{run.step:,}"
    losses = [NONE if value is None else f"{value:.4f}" for value in (run.last, run.best)]
    texts = [variant, run.name, NONE if seed is None else str(seed), counted, step, *losses]
    return (
        *(Cell(clean_line(text)) for text in texts),
        Cell(" ".join(run.badges) or (PASSED if run.checked else NONE), strong=bool(run.badges)),
    )
