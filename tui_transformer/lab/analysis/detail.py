"""All there is to know of one run beside a baseline, as titled blocks of lines. Pure; what is in it is cleaned."""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.clean import clean, clean_line
from engine.command_line import command_line
from engine.runs.lineage import drawn
from tui_transformer.lab.analysis import differences
from tui_transformer.lab.analysis.columns import ABOUT, JUDGED, MEASURED, NAME, Column, score, setting_text
from tui_transformer.lab.analysis.comparable import why_not
from tui_transformer.lab.analysis.entry import Entry
from tui_transformer.lab.analysis.verdict import verdict
from tui_transformer.lab.records.badges import badge

UNSET = "–"


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
    changes = list(differences.against(entry, baseline))
    for key, own, others in changes:
        yield Line(clean_line(key), clean_line(f"{_text(own)}   (baseline: {_text(others)})"))
    if entry.config and baseline.config and not changes:
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
    for i, line in enumerate(clean(entry.notes).splitlines()):
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
