"""What a report does not show, the machine, and how to repeat it."""

import shlex
from collections.abc import Iterator

from engine.command_line import PROGRAM
from engine.lints import lint
from engine.release import version
from engine.runs.reader import RunReader
from engine.runs.records import Attempt
from tui_transformer.lab.analysis.folder import ENDING
from tui_transformer.lab.analysis.sentences import EXPLORATORY, FALLING, OVERFIT
from tui_transformer.lab.formatting import duration, memory
from tui_transformer.lab.reports.context import ReportContext, pairs_table
from tui_transformer.lab.reports.document import Block, Bullets, Heading, Listing, Paragraph
from tui_transformer.lab.reports.report_data import command_line, without_folders
from tui_transformer.lab.reports.sections.setup import config_of

FEW_PLACES = 100  # of a probe: a share of fewer is coarse
ABOUT_COST = "model.attention"  # a lint about time, which says nothing of scores
MOST_COMMANDS = 12


def limits(context: ReportContext) -> Iterator[Block]:
    """Every reason to conclude less, from what the runs themselves say."""
    items = [*_of_seeds(context), *_of_training(context), *_of_scores(context), *_of_scope(context), *_lints(context)]
    yield Heading(context.say("section.limits"))
    yield Bullets(tuple((item,) for item in items))


def _of_seeds(context: ReportContext) -> Iterator[str]:
    standings = context.data.standings
    most = max(len(standing.group.counted) for standing in standings)
    if most <= 1:
        yield context.say("limits.one-seed" if context.data.several else "limits.one-run")
    elif most < EXPLORATORY:
        yield context.say("limits.few-seeds", n=most)
    left_out = [standing for standing in standings if standing.group.left_out]
    if left_out:
        yield context.say("limits.left-out", names=context.names(left_out))
    judged = ((standing, standing.judgement(standing.primary)) for standing in standings)
    open_ended = [standing for standing, found in judged if found is not None and found.kind == "inconclusive"]
    if open_ended:
        yield context.say("limits.inconclusive", names=context.names(open_ended))


def _of_training(context: ReportContext) -> Iterator[str]:
    standings = context.data.standings
    for badge, key in ((FALLING, "limits.falling"), (OVERFIT, "limits.overfit")):
        having = [standing for standing in standings if badge in standing.badges]
        if having:
            yield context.language.counted(key, len(having), names=context.names(having))
    if context.data.several:
        yield context.say("limits.untuned")
        sizes = [n for standing in standings if (n := standing.group.representative.parameters) is not None]
        if len(set(sizes)) > 1:
            yield context.say("limits.sizes", least=f"{min(sizes):,}", most=f"{max(sizes):,}")


def _of_scores(context: ReportContext) -> Iterator[str]:
    runs = context.data.runs
    if any(run.best is not None for run in runs):
        yield context.say("limits.best")
    yield context.say("limits.no-test")
    few = [
        probe.name
        for probe in context.data.facts(runs[0]).probes
        if (places := runs[0].places.get(probe.name)) is not None and places < FEW_PLACES
    ]
    if few and any(run.probes for run in runs):
        yield context.say("limits.few-places", names=context.language.joined(few), most=FEW_PLACES)
    if any(run.scores.get("bleu") is not None for run in runs):
        yield context.say("limits.sentences")


def _of_scope(context: ReportContext) -> Iterator[str]:
    runs = context.data.runs
    key = "limits.corpus" if len(context.data.corpora) == 1 else "limits.corpora"
    yield context.say(key, names=context.corpora())
    if context.data.facts(runs[0]).floor is not None:
        yield context.say("limits.generated")
    sizes = {f"{run.parameters:,}" for run in runs if run.parameters is not None}
    steps = {f"{run.steps:,}" for run in runs if run.steps}
    if len(sizes) == 1 and len(steps) == 1:
        yield context.say("limits.scale", n=sizes.pop(), steps=steps.pop())
    if any(run.state != "finished" for run in runs):
        yield context.say("limits.unfinished")


def _lints(context: ReportContext) -> Iterator[str]:
    """Settings that were surely not meant, in the checker's own English."""
    seen: dict[str, list[str]] = {}
    for standing in context.data.standings:
        config = config_of(standing.group.representative)
        for found in lint(config) if config is not None else ():
            if found.key != ABOUT_COST:
                seen.setdefault(f"{found.key}: {found.text}", []).append(context.data.name(standing))
    for words, names in seen.items():
        yield context.say("limits.setting", names=context.language.joined(names), text=words)


def environment(context: ReportContext) -> Iterator[Block]:
    """The machine, where runs know it; several values where they were trained on several."""
    say, runs = context.say, context.data.runs
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        for attempt in RunReader(run.path).environment.attempts[-1:]:
            for key, value in _machine(context, attempt):
                found.setdefault(key, {})[value] = None
    yield Heading(say("section.environment"))
    if not found:
        yield Paragraph((say("environment.unknown"),))
        return
    listed = [(key, say("join.semicolon").join(values)) for key, values in found.items()]
    total = sum(run.seconds or 0.0 for run in runs)
    if total:
        listed.append((say("environment.time"), duration(total)))
    yield pairs_table(say("table.environment"), context.heads("what", "value"), listed)


def _machine(context: ReportContext, attempt: Attempt) -> Iterator[tuple[str, str]]:
    known = {
        "device": attempt.device,
        "processor": attempt.processor,
        "platform": attempt.platform,
        "python": attempt.python,
        "cores": "" if attempt.cores is None else str(attempt.cores),
        "threads": "" if attempt.threads is None else str(attempt.threads),
        "memory": "" if attempt.memory_bytes is None else memory(attempt.memory_bytes),
    }
    yield from ((context.say(f"environment.{key}"), value) for key, value in known.items() if value)
    yield from sorted(attempt.versions.items())
    if attempt.bit_exact is not None:
        said = context.say("environment.exact" if attempt.bit_exact else "environment.not-exact")
        why = "" if attempt.bit_exact else attempt.why_not or ""
        yield context.say("environment.repeats"), context.bracketed(said, why)


def repeat(context: ReportContext) -> Iterator[Block]:
    """The commands as they were typed, without the folders of whoever typed them; a study's own file."""
    say, data = context.say, context.data
    yield Heading(say("section.repeat"))
    yield Paragraph((say("repeat.what"),))
    commands = dict.fromkeys(command_line(RunReader(run.path).run.command) for run in data.runs)
    listed = list(filter(None, commands))
    if listed:
        more = [f"# {say('repeat.more', n=len(listed) - MOST_COMMANDS)}"] if len(listed) > MOST_COMMANDS else []
        yield Listing("\n".join([*listed[:MOST_COMMANDS], *more]), say("repeat.commands"))
    names = [run.name for run in data.runs[:MOST_COMMANDS]]
    again: list[tuple[str, ...]]
    checks: list[tuple[str, ...]]
    if data.studies:
        again = [("ablate", "--study", f"{study}{ENDING}") for study in data.studies]
        checks = [*(("compare", study) for study in data.studies), ("verify", names[0])]
    else:
        again = [("run", "--config", f"runs/{name}/config.toml", "--name", f"{name}-again") for name in names]
        checks = [("verify", name) for name in names]
    yield Listing("\n".join(shlex.join([PROGRAM, *words]) for words in (*again, *checks)), say("repeat.again"))
    for study in data.studies.values():
        text = without_folders(data.study_text(study)).rstrip()
        if text:
            yield Listing(text, say("repeat.study", name=study.name), long=True)


def made_with(context: ReportContext) -> Iterator[Block]:
    """What made the report, and what its numbers rest on."""
    yield Paragraph((context.say("made-with", version=version()),))
