"""Aligned columns of text; on a terminal the last one wraps between words, in a pipe every row stays a line."""

import shutil
import sys
import textwrap
from collections.abc import Sequence

from engine.clean import clean_line
from tui_transformer.cli.output import is_terminal

GAP = "  "
NARROWEST = 20  # characters of a last column that is still worth wrapping


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of equal length to stdout; whatever is in them is cleaned."""
    cells = [[clean_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]) - 1)]
    left = sum(widths) + len(GAP) * len(widths)
    room = shutil.get_terminal_size().columns - left if is_terminal(sys.stdout) else 0
    for row in cells:
        lines = textwrap.wrap(row[-1], room) or [""] if room >= NARROWEST else [row[-1]]
        head = GAP.join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), ""])
        print("\n".join(f"{head if i == 0 else ' ' * left}{line}".rstrip() for i, line in enumerate(lines)))
