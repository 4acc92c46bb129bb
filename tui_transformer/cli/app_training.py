"""The command line, what trains: begin, queue, resume, and what is told to a run that is at it."""

from pathlib import Path
from typing import Annotated

import typer

from engine.command_line import RUNS
from tui_transformer.cli.options import (
    ConfigFile,
    Corpus,
    DataDir,
    Detach,
    Device,
    Json,
    On,
    PresetName,
    RunArgument,
    RunsDir,
    Set,
)

training_app = typer.Typer(rich_markup_mode=None)


@training_app.command()
def run(
    preset: PresetName = None,
    config: ConfigFile = None,
    on: On = None,
    set_: Set = None,
    corpus: Corpus = None,
    seed: Annotated[int | None, typer.Option("--seed", help="The run's seed.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="The run's name; by default the preset's.")] = None,
    detach: Detach = False,
    queue: Annotated[bool, typer.Option("--queue", help="Train it when the device is free; returns at once.")] = False,
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> int:
    """Train a model. Ctrl-c stops at the next step and keeps a checkpoint."""
    from tui_transformer.cli.run import Request, run_command

    request = Request(preset, config, on, tuple(set_ or ()), corpus, seed)
    if queue:
        from tui_transformer.cli.detached import run_queued

        return run_queued(request, name=name, device=device, as_json=json, runs_dir=runs_dir, data_dir=data_dir)
    if detach:
        from tui_transformer.cli.detached import run_detached

        return run_detached(request, name=name, device=device, as_json=json, runs_dir=runs_dir, data_dir=data_dir)
    return run_command(request, name=name, device=device, as_json=json, runs_dir=runs_dir, data_dir=data_dir)


@training_app.command()
def ablate(
    study: Annotated[str | None, typer.Option("--study", help="A study: NAME of --list, or a TOML file.")] = None,
    preset: PresetName = None,
    vary: Annotated[
        list[str] | None, typer.Option("--vary", help="An axis: model.n_heads=1,2,4,8; several: a grid.")
    ] = None,
    on: Annotated[str | None, typer.Option("--on", help="Another base for the variants, e.g. demo.")] = None,
    seeds: Annotated[str | None, typer.Option("--seeds", help="3: the seeds 1, 2 and 3; 1,5,9: these.")] = None,
    set_: Set = None,
    corpus: Corpus = None,
    name: Annotated[str | None, typer.Option("--name", help="The study's name, with which its runs' begin.")] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu, or several: cuda:0,cuda:1.")] = "auto",
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, max=256, help="Runs at a time.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only the plan: runs, time, disk, what differs.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Take up again what failed.")] = False,
    skip_failed: Annotated[bool, typer.Option("--skip-failed", help="What failed is no failure of the study.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Run it in a process of its own; returns at once.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="The studies that come with this.")] = False,
    json: Json = False,
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> int:
    """Train variants of one base with several seeds. Stopped or killed, the same command goes on with it."""
    from engine.errors import InputError
    from tui_transformer.cli import ablate as command
    from tui_transformer.cli.study_ready import How
    from tui_transformer.lab.studies.arguments import StudyArgs

    if list_:
        return command.list_command(as_json=json)
    if retry_failed and skip_failed:
        raise InputError("--retry-failed and --skip-failed exclude each other")
    asked = StudyArgs(study, preset, tuple(vary or ()), on, seeds, tuple(set_ or ()), corpus, name)
    failed = "retry" if retry_failed else "skip" if skip_failed else ""
    how = How(device, jobs, failed, json, runs_dir, data_dir)
    if dry_run:
        return command.plan_command(asked, how)
    return command.detached_command(asked, how) if detach else command.ablate_command(asked, how)


@training_app.command("measure-study", hidden=True)
def measure_study(data_dir: DataDir = None) -> int:
    """Plan the study on stdin; what `ablate` starts."""
    from tui_transformer.cli.ablate import measure_command

    return measure_command(data_dir)


@training_app.command()
def resume(
    run: RunArgument = "last",
    detach: Detach = False,
    handed_over: Annotated[bool, typer.Option("--handed-over", hidden=True)] = False,
    paused: Annotated[bool, typer.Option("--paused", hidden=True)] = False,
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = RUNS,
    data_dir: DataDir = None,
) -> int:
    """Go on with a stopped, interrupted, failed or lost run, bit for bit."""
    if detach:
        from tui_transformer.cli.detached import resume_detached

        return resume_detached(run, device=device, as_json=json, runs_dir=runs_dir, data_dir=data_dir)
    from tui_transformer.cli.run import resume_command

    return resume_command(
        run,
        device=device,
        as_json=json,
        runs_dir=runs_dir,
        data_dir=data_dir,
        handed_over=handed_over,
        paused=paused,
    )


@training_app.command()
def queue(device: Device = "auto", json: Json = False, runs_dir: RunsDir = RUNS) -> int:
    """Train what `run --queue` left, one after the other; that starts this by itself in the background."""
    from tui_transformer.cli.detached import queue_command

    return queue_command(device=device, as_json=json, runs_dir=runs_dir)


@training_app.command(hidden=True)
def begin(run: RunArgument, device: Device = "auto", runs_dir: RunsDir = RUNS, data_dir: DataDir = None) -> int:
    """Train a queued run; what `run --detach` starts."""
    from tui_transformer.cli.run import begin_command

    return begin_command(run, device=device, runs_dir=runs_dir, data_dir=data_dir)


@training_app.command()
def pause(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = RUNS) -> int:
    """Let a run wait at its next step; its process stays."""
    return _control(run, "pause", json, runs_dir)


@training_app.command("continue")
def continue_(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = RUNS) -> int:
    """Let a paused run go on."""
    return _control(run, "continue", json, runs_dir)


@training_app.command()
def stop(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = RUNS) -> int:
    """End a run at its next step, with a checkpoint to resume from."""
    return _control(run, "stop", json, runs_dir)


@training_app.command()
def checkpoint(run: RunArgument = "last", json: Json = False, runs_dir: RunsDir = RUNS) -> int:
    """Let a run save a checkpoint at its next step, and go on."""
    return _control(run, "checkpoint", json, runs_dir)


def _control(run: str, command: str, as_json: bool, runs_dir: Path) -> int:
    from engine.runs.commands import Command
    from tui_transformer.cli.control import control_command

    return control_command(run, Command(command), as_json=as_json, runs_dir=runs_dir)
