"""Alignment pictures: where in the source a decoder looked while writing each word of a translation.

Source words label their columns, across if there is room, else vertically; if not even that fits, a list says where
each word came from. No torch here: the numbers come from `engine.generation.inspection`.
Notation: S source words, T target words.
"""

import math
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from engine.base.clean import clean_line
from engine.base.language import tr
from tui_transformer.lab.formatting import fit_to_width
from tui_transformer.lab.play.pictures import SHADES, grey

WIDEST = (12, 8, 6, 5)  # columns per word written across, widest tried first
UPRIGHT = 2  # columns of a vertical word: those of its widest character
TALLEST = 8  # characters of it
LEFT = 16  # most columns of a target word; also at most a quarter of the picture
BAR = " │"
CAPTION = tr("rows: output, columns: source")  # least width of a picture
_OF_UNSURE_WIDTH = {0x200D: None, 0xFE0F: None}  # joined and restyled signs: terminals disagree about their columns


def alignment_picture(
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    weights: Sequence[Sequence[float]],
    width: int,
    colour: bool,
) -> Text:
    """A matrix (T × S) of greys or shades, source across and target down, or a list if it does not fit.

    Texts come raw from the model and are cleaned here.
    """
    # White space is shown, or a column would have no name.
    source, target = (
        [clean_line(token).translate(_OF_UNSURE_WIDTH).strip() or "␣" for token in tokens]
        for tokens in (source_tokens, target_tokens)
    )
    if not source or not target:
        return Text(tr("nothing was written, so there is nothing to align"))
    shares = [[value if math.isfinite(value) and value > 0 else 0.0 for value in row] for row in weights]
    left = min(max(map(cell_len, target)), LEFT, max(4, width // 4))
    if width < len(CAPTION):
        return _draw_list(source, target, shares, width)
    for widest in WIDEST:
        columns = [max(UPRIGHT, min(cell_len(word), widest)) for word in source]
        if left + len(BAR) + sum(columns) + len(columns) <= width:
            head = [" ".join(fit_to_width(word, room) for word, room in zip(source, columns, strict=True))]
            return _draw_matrix(head, target, shares, left, [room + 1 for room in columns], width, colour)
    if left + len(BAR) + UPRIGHT * len(source) <= width:
        return _draw_matrix(_vertical_lines(source), target, shares, left, [UPRIGHT] * len(source), width, colour)
    return _draw_list(source, target, shares, width)


def _draw_matrix(
    head: Sequence[str],
    target: Sequence[str],
    shares: Sequence[Sequence[float]],
    left: int,
    columns: Sequence[int],
    width: int,
    colour: bool,
) -> Text:
    """Words across over rows of cells; a cell wider than two columns keeps the last one free."""
    most = max(max(row) for row in shares)
    scale = Text("0 ")  # what shades mean: `0 ░▒▓█ 0.83`
    for i in range(0 if colour else 1, len(SHADES)):
        scale.append_text(_cell(i / (len(SHADES) - 1), 1, colour))
    scale.append(f" {most:.2f}")
    lines = [Text.assemble(CAPTION, ", " if len(CAPTION) + 2 + scale.cell_len <= width else "\n", scale)]
    lines += [Text(" " * (left + len(BAR)) + line.rstrip()) for line in head]
    for word, row in zip(target, shares, strict=True):
        line = Text(fit_to_width(word, left, right=True) + BAR)
        for value, room in zip(row, columns, strict=True):
            filled = room if room == UPRIGHT else room - 1
            line.append_text(_cell(value / most if most else 0.0, filled, colour)).append(" " * (room - filled))
        line.rstrip()
        lines.append(line)
    return Text("\n").join(lines)


def _cell(share: float, characters: int, colour: bool) -> Text:
    if colour:
        return Text("█" * characters, grey(share))
    return Text(SHADES[min(int(share * len(SHADES)), len(SHADES) - 1)] * characters)


def _vertical_lines(words: Sequence[str]) -> list[str]:
    """Words written downwards, two columns each, aligned at their last characters."""
    signs = []
    for word in words:
        found: list[str] = []  # its characters, each with its combining marks
        for sign in word:
            if found and cell_len(sign) == 0:
                found[-1] += sign
            else:
                found.append(sign)
        signs.append(found if len(found) <= TALLEST else [*found[: TALLEST - 1], "⋮"])
    height = max(map(len, signs))
    padded = [[""] * (height - len(word)) + word for word in signs]
    return ["".join(set_cell_size(sign, UPRIGHT) for sign in line) for line in zip(*padded, strict=True)]


def _draw_list(source: Sequence[str], target: Sequence[str], shares: Sequence[Sequence[float]], width: int) -> Text:
    """`word → word (0.83)` per target word: the source word with most weight."""
    room = max(1, (width - len(" →  (0.00)")) // 2)
    left = min(room, max(map(cell_len, target)))
    lines = [fit_to_width(tr("output → attends most to"), width).rstrip()]
    for word, row in zip(target, shares, strict=True):
        at = max(range(len(row)), key=row.__getitem__)
        found = fit_to_width(source[at], room).rstrip()
        lines.append(f"{fit_to_width(word, left, right=True)} → {found} ({row[at]:.2f})")
    return Text("\n".join(lines))


def merge_into_words(
    source: Sequence[str], target: Sequence[str], weights: Sequence[Sequence[float]]
) -> tuple[list[str], list[str], list[list[float]]]:
    """Merge word pieces into words: source weights are summed over pieces, target weights averaged."""
    across, down = _piece_indices(source), _piece_indices(target)
    joined = [
        [math.fsum(weights[row][column] for row in rows for column in columns) / len(rows) for columns in across]
        for rows in down
    ]
    sources = ["".join(source[place] for place in word) for word in across]
    targets = ["".join(target[place] for place in word) for word in down]
    return sources, targets, joined


def _piece_indices(pieces: Sequence[str]) -> list[list[int]]:
    """Piece indices by word: one begins at a space, and where letters meet punctuation."""
    words: list[list[int]] = []
    for place, piece in enumerate(pieces):
        goes_on = bool(words) and piece[:1].isalnum() and pieces[place - 1][-1:].isalnum()
        if goes_on:
            words[-1].append(place)
        else:
            words.append([place])
    return words
