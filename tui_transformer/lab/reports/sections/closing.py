"""A report's limits, the machine, and how to repeat it."""

import shlex
from collections.abc import Iterator

from engine.base.command_line import PROGRAM
from engine.base.language import tr
from engine.base.plain_files import read_regular_file
from engine.base.release import version
from engine.config.lints import lint
from engine.runs.reader import RunReader
from tui_transformer.lab.analysis.entry import LAST
from tui_transformer.lab.analysis.power import pooled_sd, power_sentence
from tui_transformer.lab.analysis.sentences import EXPLORATORY, FALLING, OVERFIT
from tui_transformer.lab.formatting import duration, memory
from tui_transformer.lab.reports.context import ReportContext, portable_command, shorten_quoted_paths
from tui_transformer.lab.reports.document import Block, Bullets, Heading, Listing, Paragraph, Table, TableCell
from tui_transformer.lab.reports.sections.setup import config_of
from tui_transformer.lab.work.study_files import SUFFIX

FEW_PLACES = 100  # of a probe: a share over fewer is coarse
ABOUT_COST = "model.attention"  # a lint about time, irrelevant to scores
MOST_COMMANDS = 12
MACHINE = ("device", "processor", "platform", "python", "cores", "threads")
LONGEST_STUDY = 64_000  # bytes of a study's file


def limits(context: ReportContext) -> Iterator[Block]:
    """Every reason to conclude less, from the runs themselves."""
    yield Heading(context.phrase("section.limits"))
    yield Bullets(tuple((item,) for item in _limits(context)))


def _limits(context: ReportContext) -> Iterator[str]:
    say, language, standings, runs = context.phrase, context.language, context.results, context.runs

    # Seeds
    most = max(len(standing.group.counted_runs) for standing in standings)
    if most <= 1:
        yield say("limits.one-seed" if context.has_several_variants else "limits.one-run")
    elif most < EXPLORATORY:
        yield say("limits.few-seeds", n=most)
    for family in dict.fromkeys(standing.family for standing in standings if standing.group.study):
        sd = pooled_sd(family.differences.get(LAST.key, {}).values()) if family.primary is LAST else None
        if family.baseline is not None and (said := power_sentence(most, len(family.groups), sd, language)):
            yield said
    left_out = [standing for standing in standings if standing.group.exclusion_reasons]
    if left_out:
        yield say("limits.left-out", names=context.names(left_out))
    judged = ((standing, standing.judgement(standing.primary)) for standing in standings)
    open_ended = [standing for standing, found in judged if found is not None and found.kind == "inconclusive"]
    if open_ended:
        yield say("limits.inconclusive", names=context.names(open_ended))

    # Training
    for badge, key in ((FALLING, "limits.falling"), (OVERFIT, "limits.overfit")):
        having = [standing for standing in standings if badge in standing.badges]
        if having:
            yield language.format_count(key, len(having), names=context.names(having))
    if context.has_several_variants:
        yield say("limits.untuned")
        parameters = [n for standing in standings if (n := standing.group.representative.parameters) is not None]
        if len(set(parameters)) > 1:
            yield say("limits.sizes", least=f"{min(parameters):,}", most=f"{max(parameters):,}")

    # Scores
    if any(run.best is not None for run in runs):
        yield say("limits.best")
    yield say("limits.no-test")
    facts, places = context.facts(runs[0]), runs[0].places
    few = [probe.name for probe in facts.probes if places.get(probe.name, FEW_PLACES) < FEW_PLACES]
    if few and any(run.probes for run in runs):
        yield say("limits.few-places", names=language.join_list(few), most=FEW_PLACES)
    if any(run.scores.get("bleu") is not None for run in runs):
        yield say("limits.sentences")

    # Scope
    key = "limits.corpus" if len(context.corpora) == 1 else "limits.corpora"
    yield say(key, names=language.join_list(context.corpora))
    if facts.floor is not None:
        yield say("limits.generated")
    sizes = {f"{run.parameters:,}" for run in runs if run.parameters is not None}
    steps = {f"{run.steps:,}" for run in runs if run.steps}
    if len(sizes) == 1 and len(steps) == 1:
        yield say("limits.scale", n=sizes.pop(), steps=steps.pop())
    if any(run.state != "finished" for run in runs):
        yield say("limits.unfinished")

    # Settings surely not intended
    seen: dict[str, list[str]] = {}
    for standing in standings:
        config = config_of(standing.group.representative)
        for found in lint(config) if config is not None else ():
            if found.key != ABOUT_COST:
                seen.setdefault(tr(found.message), []).append(context.name(standing))
    for words, names in seen.items():
        yield say("limits.setting", names=language.join_list(names), text=words)


def environment(context: ReportContext) -> Iterator[Block]:
    say, runs = context.phrase, context.runs
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        for attempt in RunReader(run.path).environment.attempts[-1:]:
            known = {key: value for key, value in attempt.dump().items() if value not in ("", None)}
            facts = [(say(f"environment.{key}"), str(known[key])) for key in MACHINE if key in known]
            if attempt.memory_bytes is not None:
                facts.append((say("environment.memory"), memory(attempt.memory_bytes)))
            facts += sorted(attempt.versions.items())
            if attempt.bit_exact is not None:
                said = say("environment.exact" if attempt.bit_exact else "environment.not-exact")
                why = "" if attempt.bit_exact else attempt.why_not or ""
                facts.append((say("environment.repeats"), context.bracketed(said, why)))
            for key, value in facts:
                found.setdefault(key, {})[value] = None
    yield Heading(say("section.environment"))
    if not found:
        yield Paragraph((say("environment.unknown"),))
        return
    listed = [(key, say("join.semicolon").join(values)) for key, values in found.items()]
    total = sum(run.seconds or 0.0 for run in runs)
    if total:
        listed.append((say("environment.time"), duration(total)))
    rows = tuple(tuple(map(TableCell, pair)) for pair in listed)
    yield Table(say("table.environment"), context.table_headings("what", "value"), rows, "ll")


def repeat(context: ReportContext) -> Iterator[Block]:
    say = context.phrase
    yield Heading(say("section.repeat"))
    yield Paragraph((say("repeat.what"),))
    commands = dict.fromkeys(portable_command(RunReader(run.path).run.command) for run in context.runs)
    listed = list(filter(None, commands))
    if listed:
        more = [f"# {say('repeat.more', n=len(listed) - MOST_COMMANDS)}"] if len(listed) > MOST_COMMANDS else []
        yield Listing("\n".join([*listed[:MOST_COMMANDS], *more]), say("repeat.commands"))
    names = [run.name for run in context.runs[:MOST_COMMANDS]]
    again: list[tuple[str, ...]]
    checks: list[tuple[str, ...]]
    if context.studies:
        again = [("ablate", "--study", f"{study}{SUFFIX}") for study in context.studies]
        checks = [*(("compare", study) for study in context.studies), ("verify", names[0])]
    else:
        again = [("run", "--config", f"runs/{name}/config.toml", "--name", f"{name}-again") for name in names]
        checks = [("verify", name) for name in names]
    yield Listing("\n".join(shlex.join([PROGRAM, *words]) for words in (*again, *checks)), say("repeat.again"))
    for study in context.studies:
        try:
            found = read_regular_file(context.runs[0].path.parent / f"{study}{SUFFIX}", LONGEST_STUDY)
        except (OSError, ValueError):
            continue
        if text := shorten_quoted_paths(found.decode("utf-8", "replace")).rstrip():
            yield Listing(text, say("repeat.study", name=study), long=True)


def made_with(context: ReportContext) -> Iterator[Block]:
    yield Paragraph((context.phrase("made-with", version=version()),))
