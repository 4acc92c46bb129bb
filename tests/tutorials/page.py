"""A tutorial, read as what is to be done: commands, what is typed at their prompts, files to write, code to change.

A fence without a language holds commands, one a line. One of `text` shows what the commands before it print; its
lines that begin with `> ` are typed at their prompt. One of `toml`, `bash` or `python` is the file, and one of `diff` a
change to the file, that the line before it names last in backticks; `@@` begins another place in that file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`([\w./-]+\.\w+)`")
FILES = ("toml", "bash", "python")
TYPED = "> "


@dataclass
class Commands:
    """Commands of one fence, with what the page shows of their output."""

    line: int  # of the page
    commands: list[str]
    typed: list[str] = field(default_factory=list)  # at the prompt of the last one
    shown: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class File:
    line: int
    name: str
    text: str


@dataclass(frozen=True)
class Change:
    """Lines to take out of a file and to put in, with those around them that say where."""

    line: int
    name: str
    before: str
    after: str


Step = Commands | File | Change


def steps(page: Path) -> Iterator[Step]:
    """The steps of a page in order. Raises ValueError for a fence that is none."""
    text, last = page.read_text(encoding="utf-8"), None
    for fence in FENCE.finditer(text):
        language, body = fence.groups()
        line = text.count("\n", 0, fence.start()) + 1
        if language == "text":
            if last is None or last.shown or last.typed:
                raise ValueError(f"{page.name}, line {line}: output of no commands")
            for one in body.splitlines():
                (last.typed if one.startswith(TYPED) else last.shown).append(one.removeprefix(TYPED))
            continue
        if last is not None:
            yield last
            last = None
        if not language:
            last = Commands(line, list(commands(body)))
        elif language in FILES:
            yield File(line, _name(text, fence.start()), body)
        elif language == "diff":
            for place in re.split(r"^@@.*\n", body, flags=re.MULTILINE):
                yield Change(line, _name(text, fence.start()), *sides(place))
        else:
            raise ValueError(f"{page.name}, line {line}: nobody knows what a fence of {language} is for")
    if last is not None:
        yield last


def commands(body: str) -> Iterator[str]:
    """The commands of a fence, without comments; a backslash at the end of a line joins it to the next."""
    for line in re.sub(r"\s*\\\n\s*", " ", body).splitlines():
        command = re.sub(r"(^|\s+)#\s.*$", "", line).strip()
        if command:
            yield command


def sides(body: str) -> tuple[str, str]:
    """The lines of a change as they are, and as they will be."""
    lines = body.splitlines(keepends=True)
    before = (line[1:] if line[0] != "\n" else line for line in lines if line[0] != "+")
    after = (line[1:] if line[0] != "\n" else line for line in lines if line[0] != "-")
    return "".join(before), "".join(after)


def applied(change: Change, text: str) -> str:
    """A file's text after a change. Raises ValueError unless the lines are there, and once."""
    if text.count(change.before) != 1:
        raise ValueError(
            f"{change.name}: the lines to change are there {text.count(change.before)} times:\n{change.before}"
        )
    return text.replace(change.before, change.after)


def _name(text: str, at: int) -> str:
    line = text[:at].rstrip("\n").rpartition("\n")[2]
    found = NAMED.findall(line)
    if not found:
        raise ValueError(f"no file is named before this fence: {line}")
    return str(found[-1])
