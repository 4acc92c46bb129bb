"""The command line with every command's file imported."""

from functools import cache

from typer.core import TyperGroup

from tui_transformer.cli.app import program
from tui_transformer.cli.commands import LazyCommand


@cache
def loaded() -> TyperGroup:
    """Return it, in the language of the first call."""
    group = program()
    for name, one in group.commands.items():
        group.commands[name] = one.load() if isinstance(one, LazyCommand) else one
    return group
