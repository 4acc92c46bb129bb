"""A run's line in the list of runs: its state, its name, and its progress or result."""

import re

from rich.cells import cell_len, set_cell_size

from engine.clean import clean_line
from tui_transformer.lab.formatting import fitted
from tui_transformer.lab.records.badges import badge
from tui_transformer.lab.records.run_view import RunRow
from tui_transformer.studio.shared.run_states import STATES, UNKNOWN

ROOMY, VALUE = 30, 6  # least columns for state and loss; those of the loss
OF_A_STUDY = re.compile(r"\.s\d+\Z")  # STUDY.VARIANT.sSEED
TRAIN_LOSS = "t"  # precedes a loss other than validation


def run_line(row: RunRow, width: int) -> list[tuple[str, str]]:
    """Return the parts of a run's line, text and style, in at most `width` columns."""
    state = STATES.get(row.state, UNKNOWN)
    worst = badge(row.badges[0]) if row.badges else None
    wrong, alarm = ("", "") if worst is None else (clean_line(worst.word), worst.severity)
    share = f"{row.share:.0%}" if row.state == "running" else state.word
    score = ""
    if row.loss is not None:
        size = abs(row.loss)
        score = f"{row.loss:.3f}" if size < 10 else f"{row.loss:.2f}" if size < 100 else f"{row.loss:.3g}"
        score = score if row.scored else TRAIN_LOSS + score
    parts: list[tuple[str, str]] = []  # from the right: text, style
    if width >= ROOMY:
        parts.append((fitted(score, VALUE, right=True), "name" if row.scored or not score else "dim"))
        parts.append((fitted(wrong or share, 9, right=True), alarm or state.style))
    elif wrong:
        parts.append((fitted(wrong, min(9, max(len(wrong), 6)), right=True), alarm))
    else:
        # There is room for one value: progress, or the result, or why there is neither.
        tells = row.state == "running" or bool(state.word)
        word = share if tells else score
        parts.append((fitted(word, min(8, max(len(word), 5)), right=True), state.style if tells else "name"))
    taken = sum(cell_len(text) + 1 for text, _ in parts)
    name = _named(clean_line(row.name), width - 4 - taken)
    values = [(" " + text, style) for text, style in reversed(parts)]
    return [(f" {state.sign} ", state.style), (name, "name"), *values, (" ", "name")]


def _named(name: str, width: int) -> str:
    """Exactly this wide; a study's run, which shares its prefix with the others, keeps variant and seed."""
    if not OF_A_STUDY.search(name) or cell_len(name) <= width:
        return fitted(name, width)
    while name and cell_len(name) > width - 1:
        name = name[1:]
    return set_cell_size("…" + name, width) if width > 0 else ""
