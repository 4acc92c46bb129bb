"""Commands: each is a function in a file of `COMMAND_FOLDERS`, marked `@command`.

Its name, help and place in `--help` are read from the file's text. The file is imported only when its command is used,
so `--help` is fast.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from inspect import cleandoc
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from engine.base.language import tr
from tui_transformer.cli.help import epilog, first_clause
from tui_transformer.cli.typer_private import Command, Context

F = TypeVar("F", bound=Callable[..., int | None])
COMMAND_FOLDERS = ("run", "show", "work")  # folders beside this file
SHARED_OPTIONS = ("runs_dir", "data_dir", "device", "json")  # options that may also come before a command's name
FOLDER_OPTIONS = SHARED_OPTIONS[:2]  # those that every command accepts there: an unused folder does no harm
COMMAND_PATTERN = re.compile(
    r"(?P<place>\d+)(?P<hidden>, hidden=True)?\)\n(?:@examples\(.*?\)\n)?"
    r'def (?P<name>\w+)\(.*?\) -> (?:int|None):\n    """(?P<help>.*?)"""',
    re.DOTALL,
)


def command(place: int, *, hidden: bool = False) -> Callable[[F], F]:
    """Mark a function as the command of that name; `place` orders the list in `--help`, and its docstring is its help.

    In a file with an `app`, a group of commands, it runs when no subcommand is given.
    """
    return lambda function: function


def examples(lines: Mapping[str, str]) -> Callable[[F], F]:
    """Add one to three examples to a command's help: a line as it is typed, and what it does."""

    def mark(function: F) -> F:
        function.examples = lines  # type: ignore[attr-defined]
        return function

    return mark


def examples_of(command: Command) -> Mapping[str, str]:
    found: Mapping[str, str] = getattr(command.callback, "examples", {})
    return found


def all_examples() -> Iterator[str]:
    """Yield the lines of every command's examples."""
    for one in all_commands().values():
        found = one.load()
        for command in (found, *getattr(found, "commands", {}).values()):
            yield from examples_of(command)


def all_commands() -> "dict[str, LazyCommand]":
    """Return the commands by name, in the order of `--help`."""
    found: dict[int, LazyCommand] = {}
    here = os.path.dirname(__file__)  # noqa: PTH120 - a quarter of pathlib's time
    for folder, file in ((room, file) for room in COMMAND_FOLDERS for file in os.scandir(f"{here}/{room}")):
        if not file.name.endswith(".py"):
            continue
        with open(file.path, "rb") as source:  # noqa: PTH123
            parts = source.read().split(b"\n@command(")[1:]
        for part in parts:
            marked = COMMAND_PATTERN.match(part.decode())
            if marked is not None:
                name = marked["name"].rstrip("_").replace("_", "-")
                place = f"tui_transformer.cli.{folder}.{file.name[:-3]}", marked["name"]
                text, hidden = tr(cleandoc(marked["help"])), bool(marked["hidden"])
                found[int(marked["place"])] = LazyCommand(name, text, hidden, place)
    return {one.name or "": one for _, one in sorted(found.items())}


def translate_help(command: Command) -> None:
    """Put a command's help, examples and parameters into the language in use."""
    command.help = tr(command.help or "")
    command.short_help = first_clause(command.help)
    command.epilog = epilog(examples_of(command)) or tr(command.epilog or "")
    annotations = getattr(command.callback, "__annotations__", {})
    parameters: list[Any] = command.params
    for parameter in parameters:
        annotation = annotations.get(parameter.name)
        given = getattr(annotation, "__metadata__", (parameter,))[0]  # typer keeps only the English of a message
        parameter.help = tr(given.help or "")


class LazyCommand(TyperCommand):
    """A command with only its name and help known; `load` imports its file."""

    def __init__(self, name: str, words: str, hidden: bool, place: tuple[str, str]) -> None:
        super().__init__(name, help=words, short_help=first_clause(words), hidden=hidden, rich_markup_mode=None)
        self._module, self._function = place

    def load(self) -> Command:
        module = import_module(self._module)
        app = getattr(module, "app", None)
        if app is None:
            app = typer.Typer(add_completion=False, rich_markup_mode=None)
            app.command(self.name, hidden=self.hidden)(getattr(module, self._function))
        found = typer.main.get_command(app)
        found.name, found.help = self.name, self.help
        for command in (found, *getattr(found, "commands", {}).values()):
            translate_help(command)
        return found


class CommandGroup(TyperGroup):
    """Commands that accept options before their name: `--runs-dir X runs` is `runs --runs-dir X`.

    An option after the name wins.
    """

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        name, command, own = super().resolve_command(ctx, args)
        if name is not None and isinstance(command, LazyCommand):
            command = self.commands[name] = command.load()
        if command is None:
            return name, command, own
        flags = {parameter.name: parameter.opts[0] for parameter in command.params}
        before: list[str] = []
        for option, value in _options_before(ctx):
            if option in flags:
                before.append(flags[option] if value is True else f"{flags[option]}={value}")
            elif not (option in FOLDER_OPTIONS or isinstance(command, TyperGroup) or ctx.resilient_parsing):
                ctx.fail(tr("'{name}' takes no --{option}", name=name, option=option))
        return name, command, [*before, *own]


def _options_before(context: Context) -> list[tuple[str, object]]:
    """Return the options typed before a command, the outermost group's first."""
    given = _options_before(context.parent) if context.parent is not None else []
    for name in SHARED_OPTIONS:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            given.append((name, context.params[name]))
    return given
