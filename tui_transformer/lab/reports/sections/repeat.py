"""How to repeat it: the machine, the versions, the exact commands, a study's own file."""

import shlex
from collections.abc import Iterator

from engine.clean import clean_line
from engine.command_line import PROGRAM
from engine.release import version
from tui_transformer.lab.analysis.folder import ENDING, StudyFile
from tui_transformer.lab.formatting import duration, memory
from tui_transformer.lab.records.facts import Record, number, rows, table, text
from tui_transformer.lab.reports.document import Block, Heading, Listing, Paragraph
from tui_transformer.lab.reports.places import command_line, without_folders
from tui_transformer.lab.reports.told import Told, pairs_table

MOST = 12  # commands


def environment(told: Told) -> Iterator[Block]:
    """The machine, where runs know it; several values where they were trained on several."""
    found: dict[str, dict[str, None]] = {}
    for run in told.gathered.runs:
        attempts = rows(told.gathered.facts(run, "environment").get("attempts"))
        for key, value in _of_attempt(told, attempts[-1]) if attempts else ():
            found.setdefault(key, {})[value] = None
    yield Heading(told.say("section.environment"))
    if not found:
        yield Paragraph((told.say("environment.unknown"),))
        return
    listed = [(key, told.say("join.semicolon").join(values)) for key, values in found.items()]
    total = sum(run.seconds or 0.0 for run in told.gathered.runs)
    if total:
        listed.append((told.say("environment.time"), duration(total)))
    yield pairs_table(told.say("table.environment"), (told.say("head.what"), told.say("head.value")), listed)


def _of_attempt(told: Told, attempt: Record) -> Iterator[tuple[str, str]]:
    for key in ("device", "processor", "platform", "python"):
        if text(attempt.get(key)):
            yield told.say(f"environment.{key}"), clean_line(text(attempt.get(key)))
    for key in ("cores", "threads"):
        value = number(attempt.get(key))
        if value is not None:
            yield told.say(f"environment.{key}"), f"{value:g}"
    size = number(attempt.get("memory_bytes"))
    if size is not None:
        yield told.say("environment.memory"), memory(size)
    for name, found in sorted(table(attempt.get("versions")).items()):
        yield clean_line(name), clean_line(text(found))
    exact = attempt.get("bit_exact")
    if isinstance(exact, bool):
        why = clean_line(text(attempt.get("why_not")))
        said = told.say("environment.exact" if exact else "environment.not-exact")
        yield told.say("environment.repeats"), said if exact or not why else told.say("bracketed", text=said, facts=why)


def repeat(told: Told) -> Iterator[Block]:
    """The commands, as they were typed, without the folders of whoever typed them."""
    gathered = told.gathered
    yield Heading(told.say("section.repeat"))
    yield Paragraph((told.say("repeat.what"),))
    commands = dict.fromkeys(command_line(found) for run in gathered.runs if (found := gathered.command(run)))
    listed = [command for command in commands if command]
    if listed:
        more = [told.say("repeat.more", n=len(listed) - MOST)] if len(listed) > MOST else []
        yield Listing("\n".join([*listed[:MOST], *(f"# {words}" for words in more)]), told.say("repeat.commands"))
    names = [run.name for run in gathered.runs]
    again: list[tuple[str, ...]]
    checks: list[tuple[str, ...]]
    if gathered.studies:
        again = [("ablate", "--study", f"{study}{ENDING}") for study in gathered.studies]
        checks = [*(("compare", study) for study in gathered.studies), ("verify", names[0])]
    else:
        again = [("run", "--config", f"runs/{name}/config.toml", "--name", f"{name}-again") for name in names[:MOST]]
        checks = [("verify", name) for name in names[:MOST]]
    listed = [shlex.join([PROGRAM, *words]) for words in (*again, *checks)]
    yield Listing("\n".join(listed), told.say("repeat.again"))
    for study in gathered.studies.values():
        yield from _study(told, study)


def _study(told: Told, study: StudyFile) -> Iterator[Block]:
    folder = told.gathered.runs[0].path.parent
    found = told.gathered.study_text(study, folder)
    if found:
        yield Listing(without_folders(found).rstrip(), told.say("repeat.study", name=study.name), long=True)


def made_with(told: Told) -> Paragraph:
    """What made the report, and what its numbers rest on."""
    return Paragraph((told.say("made-with", version=version()),))
