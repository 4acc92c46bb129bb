"""Workers of a study elsewhere, for `ablate --via`: what they are asked for, shown and started with."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict

from engine.base.command_line import command_line
from engine.base.errors import InputError, did_you_mean, join_or
from engine.base.language import Message, tr
from tui_transformer.cli.output import ExitCode, print_answer, print_error, print_json
from tui_transformer.lab.work.launchers import LAUNCHERS, Workers
from tui_transformer.languages import settings_file

LOCAL = "local"  # no workers: a runner on this machine


def require_known_launcher_options(via: str, given: Mapping[str, object]) -> None:
    """Raise InputError for a way that does not exist, or an option that it does not have; `given` are all that only
    some ways have."""
    ways = (LOCAL, *LAUNCHERS)
    if via not in ways:
        raise InputError(
            Message(
                "{option} {value!r}: must be {known}{nearest}",
                option="--via",
                value=via[:40],
                known=join_or(ways),
                nearest=did_you_mean(via, ways),
            )
        )
    if via == "ssh" and not given["--hosts"]:
        raise InputError(Message("--via ssh: name the machines, e.g. --hosts node1,node2"))
    for option, value in given.items():
        having = [name for name, way in LAUNCHERS.items() if option in way.cli_options] or [LOCAL]
        if value and via not in having:
            raise InputError(Message("{option}: only works with --via {ways}", option=option, ways=join_or(having)))


def configured_and_typed_slurm_options(typed: str | None) -> tuple[str, ...]:
    """Return sbatch's options: those in the settings, then those typed, which win."""
    from tui_transformer.settings import read

    settings, wrong = read(settings_file())
    if wrong:
        raise InputError(wrong)
    try:
        return (*settings.slurm.options, *shlex.split(typed or ""))
    except ValueError as error:  # a quotation that does not end
        raise InputError(f"--slurm {typed}: {error}") from None


def show(workers: Workers, *, as_json: bool) -> None:
    """Print what will be started, as it would be typed."""
    plan = LAUNCHERS[workers.via].plan(workers)
    if as_json:
        print_json({"kind": "workers", "via": workers.via, "workers": workers.count, "plan": plan})
    else:
        print_answer(f"\n{plan}\n", flush=True)


def start(workers: Workers, *, as_json: bool) -> int:
    """Start them, and say how to watch and stop them; return at once, unless the workers end with this process."""
    started = LAUNCHERS[workers.via].start(workers)
    runs = command_line("runs", runs_dir=workers.runs_dir)
    if as_json:
        record = {name: value for name, value in asdict(started).items() if name != "wait"}
        print_json({"kind": "started", "name": workers.study, "via": workers.via, **record, "progress": runs})
    else:
        print_answer(started.said)
        how = {tr("to see the runs:"): runs, tr("to see the workers:"): started.watch, tr("logs:"): started.log}
        how[tr("to save checkpoints and stop:")] = started.stop
        for what, command in how.items():
            if command:
                print_answer(f"{what} {command}")
        print_answer(tr("for more workers, run the same command again"), flush=True)
    failed = [*started.failed, *(started.wait() if started.wait is not None else ())]
    for line in failed:
        print_error(line)
    return ExitCode.FAILED if failed else ExitCode.DONE
