"""The command line: its options, the studio without a command, and the commands of `commands.all_commands`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from engine.base.command_line import DEFAULT_RUNS_DIR, PROGRAM, command_line
from engine.base.errors import InputError, write_error
from engine.base.language import Message, tr
from tui_transformer.cli.commands import CommandGroup, all_commands, translate_help
from tui_transformer.cli.options import DataDir, Device, Json, RunsDir
from tui_transformer.cli.output import is_terminal, print_answer, print_error, print_info
from tui_transformer.cli.typer_private import install_completion

app = typer.Typer(
    name="tui-transformer",
    cls=CommandGroup,
    help=(
        "Build a Transformer from its parts, train it in your terminal, "
        "and compare variants with results you can trust."
    ),
    epilog="Exit codes: 0 done · 1 the run failed · 2 bad input · 130, 143, 129 interrupted (ctrl-c, TERM, HUP).",
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def studio(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", "-V", "-v", help="Print the version.")] = False,
    device: Device = "auto",
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
    data_dir: DataDir = None,
    json: Json = False,
    language: Annotated[
        str, typer.Option(help="en or zh; defaults to your locale.")
    ] = "",  # taken before: see `languages`
) -> int:
    """Without a command: the studio."""
    if version:
        from engine.base.release import version as number

        print(f"{PROGRAM} {number()}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        if json:
            raise InputError(Message("--json needs a command, such as `runs`; the studio prints nothing"))
        return _open(device=device, runs_dir=runs_dir, data_dir=data_dir)
    return 0


def _open(*, device: str, runs_dir: Path, data_dir: Path | None) -> int:
    """Open the studio; on exit report the outcome of a run trained in it."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        demo = command_line("run", "--preset", "demo", runs_dir=runs_dir, data_dir=data_dir, device=device)
        raise InputError(Message("the studio needs a terminal; `{demo}` trains without one", demo=demo))
    try:
        runs_dir.mkdir(parents=True, exist_ok=True)
        log = runs_dir / ".studio.log"
        log.open("ab").close()
    except OSError as error:
        raise write_error(tr("--runs-dir {folder}: cannot be written", folder=str(runs_dir)[:200]), error) from None
    from tui_transformer.lab.work.logs import redirect_stderr
    from tui_transformer.studio.app import Studio

    studio = Studio(runs_dir=runs_dir, data_dir=data_dir, device=device)
    with redirect_stderr(log):
        studio.run()
        if studio.launches.local_run is not None:  # the studio crashed: its run goes on
            studio.exit_messages.append(studio.launches.hand_over())
    for line in studio.exit_messages:
        print_info(line)
    if studio.return_code:
        print_error(tr("the studio failed; {log} says why", log=log))
    return studio.return_code or 0


def _install_completion(context: Any, parameter: Any, shell: str | bool | None) -> None:
    """Install completion as typer does, with texts in the current language; by default for the current shell."""
    if not shell or context.resilient_parsing:
        return
    name, path = install_completion(shell if isinstance(shell, str) else None)
    print_answer(tr("{name} completion installed in {path}", name=name, path=path))
    print_answer(tr("It works in every terminal that you open from now on."))
    raise typer.Exit(0)


def program() -> TyperGroup:
    """Return the whole command line as one object, in the language in use; commands are loaded on use."""
    group: TyperGroup = typer.main.get_command(app)  # type: ignore[assignment]
    for parameter in group.params:
        if parameter.name == "install_completion":
            parameter.callback = _install_completion
    translate_help(group)
    group.commands.update(all_commands())
    return group
