"""The command line with every command's file imported."""

from typer.core import TyperGroup

from tui_transformer.cli.app import command
from tui_transformer.cli.options import Unloaded


def loaded() -> TyperGroup:
    group = command()
    for name, one in group.commands.items():
        group.commands[name] = one.load() if isinstance(one, Unloaded) else one
    return group
