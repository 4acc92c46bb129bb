"""A report's limits, the machine, and how to repeat it."""

import shlex
from collections.abc import Iterator

from engine.base.command_line import PROGRAM
from engine.base.language import Message
from engine.base.plain_files import read_regular_file
from engine.base.release import version
from engine.config.lints import lint
from engine.runs.reader import RunReader
from tui_transformer.lab.analysis.entry import LAST
from tui_transformer.lab.analysis.lists import CLAUSES, in_brackets, join, join_names
from tui_transformer.lab.analysis.power import pooled_sd, power_sentence
from tui_transformer.lab.analysis.sentences import EXPLORATORY, FALLING, OVERFIT
from tui_transformer.lab.formatting import duration, memory
from tui_transformer.lab.reports.context import ReportContext, portable_command, shorten_quoted_paths
from tui_transformer.lab.reports.document import Block, Bullets, Heading, Listing, Table, TableCell
from tui_transformer.lab.reports.sections.setup import config_of
from tui_transformer.lab.work.study_files import SUFFIX

FEW_PLACES = 100  # of a probe: a share over fewer is coarse
ABOUT_COST = "model.attention"  # a lint about time, irrelevant to scores
MOST_COMMANDS = 12
MACHINE = {
    "device": Message("device"),
    "processor": Message("processor"),
    "platform": Message("system"),
    "python": "Python",
    "cores": Message("processor cores"),
    "threads": Message("threads per run"),
}
LONGEST_STUDY = 64_000  # bytes of a study's file


def limits(context: ReportContext) -> Iterator[Block]:
    """Every reason to conclude less, from the runs themselves."""
    yield Heading(context.say("What this does not show"))
    yield Bullets(tuple((item,) for item in _limits(context)))


def _limits(context: ReportContext) -> Iterator[str]:
    say, standings, runs = context.say, context.results, context.runs

    # Seeds
    most = max(len(standing.group.counted_runs) for standing in standings)
    if most <= 1:
        yield say(
            "One seed each: how much another seed would change a loss is unknown, so a difference between two losses "
            "says nothing about the variants."
            if context.has_several_variants
            else "One run: how much another seed would change its loss is unknown."
        )
    elif most < EXPLORATORY:
        yield say(
            "At most {n} seeds each: intervals are wide and rest on the assumption that losses are normally "
            "distributed over seeds, which so few seeds cannot test.",
            n=most,
        )
    for family in dict.fromkeys(standing.family for standing in standings if standing.group.study):
        sd = pooled_sd(family.differences.get(LAST.key, {}).values()) if family.primary is LAST else None
        if family.baseline is not None and (said := power_sentence(most, len(family.groups), sd)):
            yield say(said)
    left_out = [standing for standing in standings if standing.group.exclusion_reasons]
    if left_out:
        yield say(
            "Not all runs of {names} count (see “What was run”): if the excluded ones would have scored differently, "
            "the means are biased.",
            names=context.names(left_out),
        )
    judged = ((standing, standing.judgement(standing.primary)) for standing in standings)
    open_ended = [standing for standing, found in judged if found is not None and found.kind == "inconclusive"]
    if open_ended:
        yield say(
            "An inconclusive verdict on {names} is not evidence of no difference: more seeds might show one.",
            names=context.names(open_ended),
        )

    # Training
    if falling := [standing for standing in standings if FALLING in standing.badges]:
        yield say(
            "The loss of {names} was still falling: with longer training, it would be lower."
            if len(falling) == 1
            else "The losses of {names} were still falling: with longer training, their order may change.",
            names=context.names(falling),
        )
    if overfit := [standing for standing in standings if OVERFIT in standing.badges]:
        text = Message.counted(
            "{names} passed its best before the end: its last loss reflects how long it was trained as well as what "
            "it can do.",
            "{names} passed their best before the end: their last losses reflect how long they were trained as well "
            "as what they can do.",
            len(overfit),
            names=context.names(overfit),
        )
        yield say(text)
    if context.has_several_variants:
        yield say(
            "Nothing was tuned for individual variants: one that needs a different learning rate or budget is at a "
            "disadvantage, which this report does not measure."
        )
        parameters = [n for standing in standings if (n := standing.group.representative.parameters) is not None]
        if len(set(parameters)) > 1:
            yield say(
                "The variants do not all have the same number of parameters ({least} to {most}): a difference may be "
                "due to size alone.",
                least=f"{min(parameters):,}",
                most=f"{max(parameters):,}",
            )

    # Scores
    if any(run.best is not None for run in runs):
        yield say("The best checkpoint was chosen on the very split it is scored on, so best losses are optimistic.")
    yield say("All scores are on the validation split; no test split was scored for this report.")
    facts, places = context.facts(runs[0]), runs[0].places
    few = [probe.name for probe in facts.probes if places.get(probe.name, FEW_PLACES) < FEW_PLACES]
    if few and any(run.probes for run in runs):
        yield say(
            "The probes {names} rest on fewer than {most} places each, so their percentages are coarse.",
            names=join_names(few),
            most=FEW_PLACES,
        )
    if any(run.scores.get("bleu") is not None for run in runs):
        yield say("BLEU and chrF depend on which sentences are in the split; intervals over seeds do not reflect that.")

    # Scope
    yield say(
        "Only one corpus, {names}: nothing can be concluded about others."
        if len(context.corpora) == 1
        else "The runs use different corpora ({names}); a loss on one says nothing about a loss on another.",
        names=join_names(context.corpora),
    )
    if facts.floor is not None:
        yield say("The text is generated: what helps with its grammar need not help with natural language.")
    sizes = {f"{run.parameters:,}" for run in runs if run.parameters is not None}
    steps = {f"{run.steps:,}" for run in runs if run.steps}
    if len(sizes) == 1 and len(steps) == 1:
        yield say(
            "One size ({n} parameters) and one budget ({steps} steps): what holds here may not hold at others.",
            n=sizes.pop(),
            steps=steps.pop(),
        )
    if any(run.state != "finished" for run in runs):
        yield say("Some runs did not finish.")

    # Settings surely not intended
    seen: dict[str, list[str]] = {}
    for standing in standings:
        config = config_of(standing.group.representative)
        for found in lint(config) if config is not None else ():
            if found.key != ABOUT_COST:
                seen.setdefault(found.message, []).append(context.name(standing))
    for words, names in seen.items():
        yield say("A setting of {names} is probably unintended: {text}.", names=join_names(names), text=words)


def environment(context: ReportContext) -> Iterator[Block]:
    say, runs = context.say, context.runs
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        for attempt in RunReader(run.path).environment.attempts[-1:]:
            known = {key: value for key, value in attempt.dump().items() if value not in ("", None)}
            facts = [(say(name), str(known[key])) for key, name in MACHINE.items() if key in known]
            if attempt.memory_bytes is not None:
                facts.append((say("memory"), memory(attempt.memory_bytes)))
            facts += sorted(attempt.versions.items())
            if attempt.bit_exact is not None:
                said = say(
                    "yes, with these versions, this device and this number of threads" if attempt.bit_exact else "no"
                )
                why = "" if attempt.bit_exact else str(attempt.why_not or "")
                facts.append((say("repeatable bit for bit"), say(in_brackets(said, why))))
            for key, value in facts:
                found.setdefault(key, {})[value] = None
    yield Heading(say("Environment"))
    if not found:
        yield context.paragraph("The runs recorded nothing about the machine they ran on.")
        return
    listed = [(key, say(join(CLAUSES, values))) for key, values in found.items()]
    total = sum(run.seconds or 0.0 for run in runs)
    if total:
        listed.append((say("total training time of all runs"), duration(total)))
    rows = tuple(tuple(map(TableCell, pair)) for pair in listed)
    yield Table(say("The environment the runs were trained in."), context.headings("item", "value"), rows, "ll")


def repeat(context: ReportContext) -> Iterator[Block]:
    say = context.say
    yield Heading(say("How to repeat it"))
    yield context.paragraph(
        "The seed determines the data order, the initial weights and the dropout. Each run's own config.toml "
        "is complete."
    )
    commands = dict.fromkeys(portable_command(RunReader(run.path).run.command) for run in context.runs)
    listed = list(filter(None, commands))
    if listed:
        more = (
            [f"# {say('and {commands} more', commands=len(listed) - MOST_COMMANDS)}"]
            if len(listed) > MOST_COMMANDS
            else []
        )
        yield Listing("\n".join([*listed[:MOST_COMMANDS], *more]), say("Commands as typed (folder paths omitted)"))
    names = [run.name for run in context.runs[:MOST_COMMANDS]]
    again: list[tuple[str, ...]]
    checks: list[tuple[str, ...]]
    if context.studies:
        again = [("ablate", "--study", f"{study}{SUFFIX}") for study in context.studies]
        checks = [*(("compare", study) for study in context.studies), ("verify", names[0])]
    else:
        again = [("run", "--config", f"runs/{name}/config.toml", "--name", f"{name}-again") for name in names]
        checks = [("verify", name) for name in names]
    yield Listing(
        "\n".join(shlex.join([PROGRAM, *words]) for words in (*again, *checks)),
        say("To run everything again and confirm the numbers (add --runs-dir if the runs are not in runs)"),
    )
    for study in context.studies:
        try:
            found = read_regular_file(context.runs[0].path.parent / f"{study}{SUFFIX}", LONGEST_STUDY)
        except (OSError, ValueError):
            continue
        if text := shorten_quoted_paths(found.decode("utf-8", "replace")).rstrip():
            yield Listing(text, say("The study file, {name}.study.toml", name=study), long=True)


def made_with(context: ReportContext) -> Iterator[Block]:
    yield context.paragraph(
        "Generated by tui-transformer {version} from the recorded files of these runs alone; the same runs "
        "always give the same report, byte for byte.",
        version=version(),
    )
