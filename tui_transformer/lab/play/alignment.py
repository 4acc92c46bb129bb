"""The picture of an alignment: where a decoder looked in the source while it wrote each word of a translation.

Source words stand above their columns, across where there is room and upright where there is not; where not even that
fits, a list says where each word came from. No torch here: the numbers come from `engine.generation.inspection`.
Notation: S source words, T target words.
"""

import math
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from engine.clean import clean_line
from tui_transformer.lab.play.pictures import SHADES, grey

WIDEST = (12, 8, 6, 5)  # columns a word across may take: more are tried first
UPRIGHT = 2  # columns of a word that stands upright: as many as its widest character
TALLEST = 8  # characters of it
LEFT = 16  # columns a target word may take, and no more than a quarter of the picture
BAR = " │"
CAPTION = "rows: written, columns: source"  # a picture is as wide at least
_OF_UNSURE_WIDTH = {0x200D: None, 0xFE0F: None}  # joined and restyled signs: terminals disagree about their columns


def alignment_picture(
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    weights: Sequence[Sequence[float]],
    width: int,
    colour: bool,
) -> Text:
    """A matrix of shades, source across and target down, or a list where it does not fit.

    Args:
        source_tokens: S texts, as they come: they are cleaned here.
        target_tokens: T texts, likewise.
        weights: T × S, from 0.
        width: columns there are.
        colour: greys; else shades.
    """
    # White space is shown, or a column would have no name.
    source, target = (
        [clean_line(token).translate(_OF_UNSURE_WIDTH).strip() or "␣" for token in tokens]
        for tokens in (source_tokens, target_tokens)
    )
    if not source or not target:
        return Text("nothing was written, so there is nothing to align")
    shares = [[value if math.isfinite(value) and value > 0 else 0.0 for value in row] for row in weights]
    left = min(max(map(cell_len, target)), LEFT, max(4, width // 4))
    if width < len(CAPTION):
        return _list(source, target, shares, width)
    for widest in WIDEST:
        columns = [max(UPRIGHT, min(cell_len(word), widest)) for word in source]
        if left + len(BAR) + sum(columns) + len(columns) <= width:
            head = [" ".join(_fit(word, room) for word, room in zip(source, columns, strict=True))]
            return _matrix(head, target, shares, left, [room + 1 for room in columns], width, colour)
    if left + len(BAR) + UPRIGHT * len(source) <= width:
        return _matrix(_upright(source), target, shares, left, [UPRIGHT] * len(source), width, colour)
    return _list(source, target, shares, width)


def _matrix(
    head: Sequence[str],
    target: Sequence[str],
    shares: Sequence[Sequence[float]],
    left: int,
    columns: Sequence[int],
    width: int,
    colour: bool,
) -> Text:
    """Words across over rows of cells; a cell keeps its last column free where there are more than two."""
    most = max(max(row) for row in shares)
    scale = _scale(most, colour)
    lines = [Text.assemble(CAPTION, ", " if len(CAPTION) + 2 + scale.cell_len <= width else "\n", scale)]
    lines += [Text(" " * (left + len(BAR)) + line.rstrip()) for line in head]
    for word, row in zip(target, shares, strict=True):
        line = Text(_fit(word, left, right=True) + BAR)
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


def _scale(most: float, colour: bool) -> Text:
    """What shades mean: `0 ░▒▓█ 0.83`."""
    scale = Text("0 ")
    for i in range(0 if colour else 1, len(SHADES)):
        scale.append_text(_cell(i / (len(SHADES) - 1), 1, colour))
    return scale.append(f" {most:.2f}")


def _upright(words: Sequence[str]) -> list[str]:
    """Words written downwards, two columns each, their last characters on the last line."""
    signs = []
    for word in words:
        found: list[str] = []  # its characters, each with the marks that stand on it
        for sign in word:
            if found and cell_len(sign) == 0:
                found[-1] += sign
            else:
                found.append(sign)
        signs.append(found if len(found) <= TALLEST else [*found[: TALLEST - 1], "⋮"])
    height = max(map(len, signs))
    padded = [[""] * (height - len(word)) + word for word in signs]
    return ["".join(set_cell_size(sign, UPRIGHT) for sign in line) for line in zip(*padded, strict=True)]


def _list(source: Sequence[str], target: Sequence[str], shares: Sequence[Sequence[float]], width: int) -> Text:
    """`word → word (0.83)` for each target word: the source word it looked at most."""
    room = max(1, (width - len(" →  (0.00)")) // 2)
    left = min(room, max(map(cell_len, target)))
    lines = [_fit("written → looked at most", width).rstrip()]
    for word, row in zip(target, shares, strict=True):
        at = max(range(len(row)), key=row.__getitem__)
        lines.append(f"{_fit(word, left, right=True)} → {_fit(source[at], room).rstrip()} ({row[at]:.2f})")
    return Text("\n".join(lines))


def _fit(text: str, width: int, *, right: bool = False) -> str:
    """A text in exactly so many columns, cut with an ellipsis or filled up with spaces."""
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    blank = " " * (width - cell_len(text))
    return blank + text if right else text + blank


def by_words(
    source: Sequence[str], target: Sequence[str], weights: Sequence[Sequence[float]]
) -> tuple[list[str], list[str], list[list[float]]]:
    """Join pieces of words to words: a source word has the sum of its pieces' weights, a target word the mean."""
    across, down = _words(source), _words(target)
    joined = [
        [math.fsum(weights[row][column] for row in rows for column in columns) / len(rows) for columns in across]
        for rows in down
    ]
    sources = ["".join(source[place] for place in word) for word in across]
    targets = ["".join(target[place] for place in word) for word in down]
    return sources, targets, joined


def _words(pieces: Sequence[str]) -> list[list[int]]:
    """Places of pieces, word by word: one begins at a space, and where letters meet signs."""
    words: list[list[int]] = []
    for place, piece in enumerate(pieces):
        goes_on = bool(words) and piece[:1].isalnum() and pieces[place - 1][-1:].isalnum()
        if goes_on:
            words[-1].append(place)
        else:
            words.append([place])
    return words
