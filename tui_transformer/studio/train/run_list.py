"""The lines of the list: a run's state, name, and progress or result; a study's progress, with its runs under it.

Under the list, where there is room: the settings of the chosen run.
"""

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from engine.base.clean import clean_line
from engine.base.language import tr, trn
from tui_transformer.lab.design.draft import format_value
from tui_transformer.lab.formatting import duration, elide_middle, fit_to_width
from tui_transformer.lab.records.badges import SIGNS, badge, explain, mark_if_seen
from tui_transformer.lab.records.run_states import run_state
from tui_transformer.lab.records.run_view import RunRow
from tui_transformer.lab.records.study_row import StudyRow

StyledPart = tuple[str, str]  # text, style
TRAIN_LOSS = "t"  # precedes a loss other than validation
ROOMY = 30  # least columns for a study's bar
BAR = 4  # its columns
INDENT = "  "


def run_line(row: RunRow, width: int, *, inside: bool) -> list[StyledPart]:
    """Return the parts of a run's line in `width` columns; `inside`: under its study, whose name it need not repeat.

    The loss always stays, and a badge or a state is a word as long as the whole name fits, else a sign.
    """
    state = run_state(row.state)
    name = clean_line(row.name)
    if inside:
        name = name.removeprefix(f"{row.study.name}.")
    score = ""
    if row.loss is not None:
        size = abs(row.loss)
        score = f"{row.loss:.3f}" if size < 10 else f"{row.loss:.2f}" if size < 100 else f"{row.loss:.3g}"
        score = score if row.scored else TRAIN_LOSS + score
    lead = f" {INDENT if inside else ''}{state.sign} "
    room = width - cell_len(lead) - 1 - (len(score) + 1 if score else 0)
    share = f"{row.share:.0%}" if row.state == "running" else tr(state.word)
    word, style = share, state.style
    if row.badges:
        unseen = [name for name in row.badges if name not in row.seen]
        worst = badge(unseen[0] if unseen else row.badges[0])
        long = clean_line(mark_if_seen(worst.word, seen=not unseen))
        word = long if cell_len(name) + cell_len(long) + 1 <= room else SIGNS[worst.severity]
        style = worst.severity if unseen else "dim"
    elif score and not row.live and cell_len(name) + cell_len(word) + 1 > room:
        word = ""  # the sign before the name says it
    name = elide_middle(name, room - (cell_len(word) + 1 if word else 0))
    return [
        (lead, state.style),
        (name, "name"),
        *([(f" {word}", style)] if word else []),
        *([(f" {score}", "name" if row.scored else "dim")] if score else []),
        (" ", "name"),
    ]


def badges_tooltip(row: RunRow, width: int, x: int, *, inside: bool) -> str:
    """What the badges of a run's line mean, if column `x` of it is over the one that stands for them; else ""."""
    if not row.badges:
        return ""
    lead, name, shown, *_ = (cell_len(text) for text, _ in run_line(row, width, inside=inside))
    return explain(row.badges) if lead + name < x < lead + name + shown else ""


def study_line(study: StudyRow, width: int, *, opened: bool) -> list[StyledPart]:
    """`▾ demo-study 5/12 ▰▰▱▱ 2:10`: runs that have finished, progress, and the time left or why none is.

    Of one with workers on other machines, `▾ demo-study 5/12 3 workers 2:10`, where there is room.
    """
    state = run_state(study.state)
    left = study.eta if study.state in ("running", "starting") else None
    word = duration(left) if left is not None else tr(state.word) or state.sign
    done = round(study.share * BAR) if study.share < 1 else BAR
    bar = f" {'▰' * done}{'▱' * (BAR - done)}" if width >= ROOMY else ""
    name, tail = clean_line(study.name), f" {study.finished}/{study.total}"
    workers = " " + trn("{n} worker", "{n} workers", study.workers.total()) if study.is_remote else ""
    fits = cell_len(name + tail + workers + word) + 5 <= width
    tail += workers if workers and fits else bar
    name = elide_middle(name, width - 4 - cell_len(tail) - cell_len(word) - 1)
    return [(f" {'▾' if opened else '▸'} ", state.style), (name, "name"), (tail, "name"), (f" {word} ", state.style)]


def settings_text(settings: Sequence[tuple[str, Any]], width: int, dim: str) -> Text:
    """Return a line for each setting, its value at the right."""
    text = Text(no_wrap=True)
    for key, value in settings:
        section, _, name = key.rpartition(".")
        label = (name if section in ("", "model", "train") else f"{section} {name}").replace("_", " ")
        said = clean_line(format_value(value))
        said = fit_to_width(said, max(8, width - cell_len(label) - 1)).strip()
        text.append(fit_to_width(label, max(0, width - cell_len(said) - 1)), dim).append(f" {said}\n")
    text.rstrip()
    return text
