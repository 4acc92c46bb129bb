"""The command line: its options, the studio without a command, and the commands of `commands.listed`."""

from functools import cache
from typing import TYPE_CHECKING, Annotated

import typer

from engine.command_line import RUNS
from engine.errors import InputError
from tui_transformer.cli.commands import Group, listed
from tui_transformer.cli.options import DataDir, Device, Json, RunsDir

if TYPE_CHECKING:
    from typer.core import TyperGroup

app = typer.Typer(
    name="tui-transformer",
    cls=Group,
    help="Build a Transformer from its parts, train it in your terminal, and trust what the comparison says.",
    epilog="Exit codes: 0 done · 1 the run failed · 2 bad input · 130, 143, 129 interrupted (ctrl-c, TERM, hang-up).",
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def studio(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", "-V", "-v", help="Print the version.")] = False,
    device: Device = "auto",
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Without a command: the studio."""
    if version:
        from engine.release import version as number

        print(f"tui-transformer {number()}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        if json:
            raise InputError("--json is for a command, such as `runs`; the studio prints nothing")
        from tui_transformer.cli.studio import studio_command

        return studio_command(device=device, runs_dir=runs_dir, data_dir=data_dir)
    return 0


@cache
def program() -> "TyperGroup":
    """Return the whole command line as one object; commands are loaded on use."""
    group: TyperGroup = typer.main.get_command(app)  # type: ignore[assignment]
    group.commands.update(listed())
    return group
