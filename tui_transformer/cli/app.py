"""The command line: each command's name, its one-line help, and the function in this package that runs it.

A command's module is imported only when the command is used, so `--help` is fast.
"""

import inspect
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from engine.command_line import RUNS
from tui_transformer.cli.options import DataDir, Device, Group, RunsDir, Unloaded

if TYPE_CHECKING:
    from typer._click import Command
    from typer.core import TyperGroup

# In the order of `--help`. A function's docstring is appended to its command's help.
COMMANDS = {
    "run": ("run.run", "Train a model. Ctrl-c stops at the next step and keeps a checkpoint."),
    "ablate": (
        "ablate.ablate",
        "Train variants of one base with several seeds. Stopped or killed, the same command goes on with it.",
    ),
    "measure-study": ("ablate.measure_study", "Plan the study on stdin; what `ablate` starts."),
    "resume": ("run.resume", "Go on with a stopped, interrupted, failed or lost run, bit for bit."),
    "queue": (
        "run.queue",
        "Train what `run --queue` left, one after the other; that starts this by itself in the background.",
    ),
    "begin": ("run.begin", "Train a queued run; what `run --detach` starts."),
    "pause": ("control.pause", "Let a run wait at its next step; its process stays."),
    "continue": ("control.continue_", "Let a paused run go on."),
    "stop": ("control.stop", "End a run at its next step, with a checkpoint to resume from."),
    "checkpoint": ("control.checkpoint", "Let a run save a checkpoint at its next step, and go on."),
    "sample": (
        "sample.sample",
        "Continue text with a trained model: an interactive prompt, or --prompt TEXT for one answer.",
    ),
    "translate": (
        "translate.translate",
        "Translate with a trained model: an interactive prompt, --text, --input FILE, or a pipe, a line each.",
    ),
    "check": (
        "check.check",
        "Try a model without training it: leaks, cache parity, whether its switches do something, time and memory.",
    ),
    "evaluate": (
        "evaluate.evaluate",
        "Score a checkpoint over a whole split; a translation by BLEU and chrF too, questions by exact answers.",
    ),
    "bench": ("bench.bench", "Time training, evaluation, sampling and attention beside other libraries, in turns."),
    "runs": ("runs.runs", "List the runs: state, score, and what is wrong with it."),
    "compare": (
        "compare.compare",
        "Runs side by side: what differs, what they score, and whether anything can be concluded.",
    ),
    "report": (
        "report.report",
        "A report to hand in: verdict, model, data, settings, curves, tables, limits, and how to repeat it.",
    ),
    "rename": ("runs.rename", "Give a run another name. A live one is refused."),
    "delete": ("runs.delete", "Delete runs with their checkpoints. A live one is refused."),
    "note": ("runs.note", "Show or change a run's notes and tags."),
    "watch": ("progress.watch", "Follow a run, wherever it was started. Leaving does not stop it."),
    "doctor": (
        "doctor.doctor",
        "What this machine (or a run) has, what is missing, what to do; with --gpu, proof that training works on it.",
    ),
    "verify": (
        "verify.verify",
        "Score, repeat and hash a run again: can its numbers be confirmed? Exit code 1 if something differs.",
    ),
    "export": (
        "export.export",
        "Write runs down for another tool. Nothing leaves this machine unless your own environment says so.",
    ),
    "schema": ("schema.schema", "The JSON schemas of a run's files and of a study, for other tools."),
    "presets": ("presets.app", "Named settings to start from."),
    "data": ("data.app", "The corpora to train on."),
}
HIDDEN = ("measure-study", "begin")

app = typer.Typer(
    name="tui-transformer",
    cls=Group,
    help="Build a Transformer from its parts, train it in your terminal, and trust what the comparison says.",
    epilog="Exit codes: 0 done · 1 the run failed · 2 bad input · 130, 143, 129 interrupted (ctrl-c, TERM, hang-up).",
    no_args_is_help=False,
    add_completion=False,
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
) -> int:
    """Without a command: the studio."""
    if version:
        from engine.release import version as number

        print(f"tui-transformer {number()}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        from tui_transformer.cli.studio import studio_command

        return studio_command(device=device, runs_dir=runs_dir, data_dir=data_dir)
    return 0


class Listed(Unloaded):
    def load(self) -> "Command":
        assert self.name is not None
        place, words = COMMANDS[self.name]
        file, _, name = place.partition(".")
        found = getattr(import_module(f"tui_transformer.cli.{file}"), name)
        if isinstance(found, typer.Typer):  # a group of commands
            group = typer.main.get_command(found)
            group.name, group.help = self.name, words
            return group
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        more = inspect.getdoc(found)
        alone.command(self.name, help=f"{words}\n\n{more}" if more else words, hidden=self.hidden)(found)
        return typer.main.get_command(alone)


@cache
def command() -> "TyperGroup":
    """Return the whole command line as one object; commands are loaded on use."""
    group: TyperGroup = typer.main.get_command(app)  # type: ignore[assignment]
    for name, (_, words) in COMMANDS.items():
        group.add_command(Listed(name=name, help=words, hidden=name in HIDDEN, rich_markup_mode=None))
    return group
