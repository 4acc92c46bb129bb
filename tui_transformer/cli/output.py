"""Where words go: the answer to stdout, commentary to stderr; colour only where a terminal wants it."""

import json
import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO

from engine.clean import clean, clean_line
from engine.command_line import PROGRAM

if TYPE_CHECKING:
    from rich.console import Console

    from engine.runs.reader import RunReader

LONGEST = 1_000  # characters of a line of commentary; what it repeats may be longer than any screen


def is_terminal(stream: TextIO) -> bool:
    """True if a person looks at it: a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


@cache
def stdout() -> "Console":
    """For answers. Nothing that is printed is ever taken for markup."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False, soft_wrap=True)


@cache
def stderr() -> "Console":
    """For commentary: progress, warnings, errors."""
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def answer(text: str = "", *, end: str = "\n", flush: bool = False) -> None:
    """Some lines of the answer, cleaned: what every command prints that has no table."""
    print(clean(text), end=end, flush=flush)


def say(text: str) -> None:
    """A line of commentary. Where that goes into a file that takes no more, it is lost, and nothing else is."""
    line = clean_line(text)
    try:
        print(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…", file=sys.stderr, flush=True)
    except BrokenPipeError:  # nobody listens any more
        raise
    except OSError:
        pass


def complain(text: str) -> None:
    """One line about what went wrong."""
    say(f"{PROGRAM}: {text}")


def warn(text: str) -> None:
    """One line about what is probably not meant."""
    complain(f"warning: {text}")


def stamp(reader: "RunReader") -> None:
    """One line for each thing that is wrong with a run's scores; said by whatever reads the run."""
    for badge, why in reader.badges.items():
        complain(f"{badge}: run '{reader.name}': {why}")


def emit(record: dict[str, Any]) -> None:
    """One JSON object on a line of stdout."""
    print(json.dumps(record, ensure_ascii=True), flush=True)
