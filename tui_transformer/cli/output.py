"""Terminal output: answers to stdout, commentary to stderr; colour only where a terminal wants it."""

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TextIO

from engine.base.clean import clean, clean_line
from engine.base.command_line import PROGRAM
from engine.base.language import tr
from engine.base.progress import listening
from tui_transformer.lab.wide_characters import WORD

if TYPE_CHECKING:
    from rich.console import Console

    from engine.runs.reader import RunReader

EVERY = 30.0  # seconds between two lines about work that takes minutes
LONGEST = 1_000  # characters of a commentary line; what it quotes may be of any length
GAP = "  "
NARROWEST = 20  # narrowest last column worth wrapping, columns of the terminal


class ExitCode(IntEnum):
    """128 + n: ended by signal n. The comments are the documentation's."""

    DONE = 0  # done
    FAILED = 1  # the run failed; its last line says why
    BAD_INPUT = 2  # bad input; one line says what would be right
    TAKEN_OVER = 3  # another worker has taken over the run; nothing more was written
    INTERRUPTED = 130  # ended by ctrl-c (143: by TERM, 129: by a hang-up); a run keeps a checkpoint
    READER_LEFT = 141  # the reader of its output closed the pipe, as in `… | head`


def is_terminal(stream: TextIO) -> bool:
    """Return whether it is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


@cache
def stdout() -> "Console":
    """Return the console for answers. Printed text is never parsed as markup."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False, soft_wrap=True)


@cache
def stderr() -> "Console":
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def has_colour() -> bool:
    """Return whether stdout may use colour: on a terminal that has it, unless NO_COLOR is set."""
    return stdout().color_system is not None and not stdout().no_color


@contextmanager
def show_progress(what: str) -> Iterator[None]:
    """Show a spinner with what is being done, and how far along it is if it takes minutes; without a terminal, print a
    line now and then.
    """
    if is_terminal(sys.stderr):
        spinner = stderr().status(f"{clean_line(what)} …")
        with spinner, listening(lambda *far: spinner.update(f"{clean_line(_progress_text(*far))} …")):
            yield
        return
    said = time.monotonic()

    def line(*far: Any) -> None:
        nonlocal said
        if time.monotonic() - said > EVERY:
            said = time.monotonic()
            print_info(_progress_text(*far))

    with listening(line):
        yield


def _progress_text(what: str, share: float, left: float | None) -> str:
    """Return `encoding big.txt: 40%, 3 min left`."""
    from tui_transformer.lab.formatting import rough_duration

    far = tr("{what}: {share:.0%}", what=what, share=share)
    return far if left is None else tr("{far}, {left} left", far=far, left=rough_duration(left))


def print_answer(text: str = "", *, end: str = "\n", flush: bool = False) -> None:
    """Print some lines of the answer, cleaned: the output of every command without a table."""
    print(clean(text), end=end, flush=flush)


def print_json(record: Mapping[str, object]) -> None:
    import json  # not needed for `--help`

    print(json.dumps(record, ensure_ascii=True), flush=True)


def print_result(record: Mapping[str, object], text: str, *, as_json: bool) -> None:
    """Print one answer, as a JSON record or as text."""
    if as_json:
        print_json(record)
    else:
        print_answer(text, flush=True)


def print_check_result(status: str, text: str) -> None:
    """Print what a check found on a line, after a sign for its status (or `warned`)."""
    from rich.text import Text  # not needed for `--help`

    signs = {"passed": ("✓ ", "green"), "warned": ("! ", "bold yellow"), "failed": ("✗ ", "bold red")}
    stdout().print(Text.assemble(signs.get(status, ("– ", "dim")), clean_line(text)))


def width_of(text: str) -> int:
    """Return the columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # not needed for English help

    return cell_len(text)


def pad_to_width(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))


def wrap_text(text: str, width: int) -> list[str]:
    """Break a text into lines of so many columns: between words, or between Chinese characters."""
    lines = [""]
    for piece in WORD.findall(re.sub(r"\s*\n\s*", " ", text)):
        if lines[-1] and width_of(lines[-1] + piece.rstrip()) > width:
            lines[-1] = lines[-1].rstrip()
            lines.append("")
        lines[-1] += piece if lines[-1] else piece.lstrip()
    return [*lines[:-1], lines[-1].rstrip()]


def print_columns(rows: Sequence[Sequence[str]], least: Sequence[int] = ()) -> list[int]:
    """Print rows of equal length to stdout, cleaned, in aligned columns; return their widths, for rows that follow.

    On a terminal the last column wraps between words; in a pipe each row is one line.
    """
    cells = [[clean_line(cell) for cell in row] for row in rows]
    widths = [max(width_of(row[i]) for row in cells) for i in range(len(cells[0]) - 1)]
    widths = [max(pair) for pair in zip_longest(least, widths, fillvalue=0)]
    left = sum(widths) + len(GAP) * len(widths)
    room = shutil.get_terminal_size().columns - left if is_terminal(sys.stdout) else 0
    for row in cells:
        lines = wrap_text(row[-1], room) if room >= NARROWEST else [row[-1]]
        head = GAP.join([*(pad_to_width(cell, width) for cell, width in zip(row, widths, strict=False)), ""])
        print("\n".join(f"{head if i == 0 else ' ' * left}{line}".rstrip() for i, line in enumerate(lines)))
    return widths


def setting_text(value: object) -> str:
    """Return a setting's value as JSON, cleaned."""
    import json  # not needed for `--help`

    return tr("unset") if value is None else clean_line(json.dumps(value, ensure_ascii=False))


def print_info(text: str) -> None:
    """Print a line of commentary. If stderr cannot be written, only that line is lost."""
    line = clean_line(text)
    try:
        print(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…", file=sys.stderr, flush=True)
    except BrokenPipeError:  # nobody is reading any more
        raise
    except OSError:
        pass


def print_error(text: str) -> None:
    print_info(f"{PROGRAM}: {text}")


def warn(text: str) -> None:
    print_error(tr("warning: {text}", text=text))


def print_badges(reader: "RunReader") -> None:
    """Print one line per problem with a run's scores; every command that reads a run calls this."""
    from tui_transformer.lab.records.badges import badge  # not needed for `--help`

    for name, why in reader.badges.items():
        print_error(tr("{badge}: run '{name}': {why}", badge=badge(name).display_name, name=reader.name, why=why))
