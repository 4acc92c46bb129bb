"""Acknowledge a run's warnings: its notes record that its owner has seen them. They are still listed everywhere."""

from collections.abc import Iterable
from pathlib import Path

from engine.base.errors import InputError, comma_separated
from engine.base.language import Message, tr
from engine.runs.manage import write_notes
from engine.runs.reader import RunReader
from tui_transformer.lab.records.badges import badge, is_warning, worst_first
from tui_transformer.lab.records.run_files import RunFiles


def why_cannot_be_acknowledged(name: str, badges: Iterable[str]) -> str:
    """Return why none of a run's badges can be acknowledged; "" if one can."""
    names = worst_first(badges)
    if any(map(is_warning, names)):
        return ""
    if not names:
        return tr("{name} has no warning to mark as seen", name=name)
    word = badge(names[0]).word
    return tr("{name}: {badge} cannot be marked as seen, because it invalidates the scores", name=name, badge=word)


def toggle_seen(run: Path, badges: Iterable[str]) -> str:
    """Acknowledge all of a run's warnings, or take that back if all are; return what was done.

    `InputError`: it has none, or its notes cannot be written.
    """
    warnings = [name for name in worst_first(badges) if is_warning(name)]
    if not warnings:
        raise InputError(why_cannot_be_acknowledged(run.name, badges))
    words = comma_separated(badge(name).word for name in warnings)
    if set(warnings) <= set(RunReader(run).notes.seen):
        write_notes(run, unsee=warnings)
        return tr("{name}: {badges} no longer marked as seen", name=run.name, badges=words)
    write_notes(run, see=warnings)
    return tr("{name}: {badges} marked as seen; press again to undo", name=run.name, badges=words)


def parse_warning_names(reader: RunReader, texts: Iterable[str]) -> list[str]:
    """Return the warnings of a run that are meant, each by its name or its word; `InputError`: it has no such one."""
    found, badges = [], RunFiles(reader.path).badges
    for text in texts:
        meant = next((name for name in badges if text.upper() in (name, badge(name).word)), None)
        if meant is None:
            names = comma_separated(badge(name).display_name for name in badges)
            has = tr("it has {badges}", badges=names) if badges else tr("it has no badges")
            message = Message("run '{name}' has no badge '{badge}'; {has}", name=reader.name, badge=text[:40], has=has)
            raise InputError(message)
        if not is_warning(meant):
            raise InputError(why_cannot_be_acknowledged(reader.name, [meant]))
        found.append(meant)
    return found
