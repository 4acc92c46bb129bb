"""Options shared by several commands, and the group that passes on those given before a command's name."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand, TyperGroup

from engine.command_line import RUNS_VARIABLE

if TYPE_CHECKING:
    from typer._click import Command, Context


def _folder(path: Path) -> Path:
    with suppress(ValueError):  # a zero byte: opening it reports that
        if os.path.lexists(path) and not path.is_dir():
            raise typer.BadParameter(f"{str(path)[:200]} is no folder; runs are folders in a folder")
    return path


RunsDir = Annotated[
    Path,
    typer.Option("--runs-dir", envvar=RUNS_VARIABLE, help="The runs folder.", show_default=True, callback=_folder),
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Where named corpora are looked for first.")]
PresetName = Annotated[str | None, typer.Option("--preset", "-p", help="A preset; `presets list` shows them.")]
On = Annotated[str | None, typer.Option("--on", help="Apply the preset's change to this base, e.g. demo.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", "-c", help="A TOML file instead of a preset.")]
Set = Annotated[list[str] | None, typer.Option("--set", "-s", help="Change one setting: model.n_heads=2")]
Corpus = Annotated[str | None, typer.Option("--corpus", help="A corpus by name, or any UTF-8 text file.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line on stdout.")]
Detach = Annotated[bool, typer.Option("--detach", help="Train in a process of its own and return at once.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:0 or mps.")]
RunArgument = Annotated[str, typer.Argument(help="A run's name, its path, or `last`.")]
HANDED_ON = ("runs_dir", "data_dir", "device")  # options taken from before a command's name


class Unloaded(TyperCommand):
    """A command known only by name and help; `load` imports its module."""

    def load(self) -> "Command":
        raise NotImplementedError


class Group(TyperGroup):
    """Commands that accept options before their name: `--runs-dir X runs` is `runs --runs-dir X`.

    An option after the name wins.
    """

    def resolve_command(self, ctx: "Context", args: list[str]) -> "tuple[str | None, Command | None, list[str]]":
        name, command, own = super().resolve_command(ctx, args)
        if name is not None and isinstance(command, Unloaded):
            command = self.commands[name] = command.load()
        if command is None or isinstance(command, TyperGroup):
            return name, command, own
        known = {parameter.name: parameter for parameter in command.params}
        before: list[str] = []
        for parameter, value in _given(ctx):
            if parameter in known:
                before.append(f"{known[parameter].opts[0]}={value}")
            elif parameter == "device":  # an unused folder does no harm
                ctx.fail(f"'{name}' takes no --device")
        return name, command, [*before, *own]


def _given(context: "Context") -> list[tuple[str, object]]:
    """Return the options typed before a command, the outermost group's first."""
    given = _given(context.parent) if context.parent is not None else []
    for name in HANDED_ON:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            given.append((name, context.params[name]))
    return given
