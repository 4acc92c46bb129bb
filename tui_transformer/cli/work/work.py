"""`work`: train the cells of a study that no other worker has claimed, until none is left or time is up."""

import signal
import socket
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from engine.base.command_line import DEFAULT_RUNS_DIR, command_line, current_command_line
from engine.base.errors import InputError, did_you_mean
from engine.base.language import Message, tr, trn
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import DataDir, Device, Json, RunsDir, Until, study_names
from tui_transformer.cli.output import ExitCode, print_error, print_result
from tui_transformer.cli.run.run import handle_signals, resolve_device_name
from tui_transformer.cli.work.queue import queue
from tui_transformer.cli.work.study_progress import CellLines
from tui_transformer.lab.work.cells import SKIPPED, CellStatus, cell_folders, cell_statuses
from tui_transformer.lab.work.deadline import Deadline, seconds_until
from tui_transformer.lab.work.runner import MAX_FAILURES, Runner
from tui_transformer.lab.work.study import read_study
from tui_transformer.lab.work.study_files import SUFFIX, started_studies, stop_file


@command(25)
@examples(
    {
        "work attention": "Help with a study, on any machine that has the runs folder.",
        "work attention --until 3h50m --device cuda:0": "Stop with a checkpoint before the time is up.",
        "work --device cuda:0": "Train the queued runs instead, as `queue` does.",
    }
)
def work(
    study: Annotated[
        str | None,
        typer.Argument(
            help="A study started in the runs folder; leave it out to train the queued runs.",
            autocompletion=study_names,
        ),
    ] = None,
    until: Until = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Retry the runs that failed.")] = False,
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
    data_dir: DataDir = None,
) -> int:
    """Train the runs of a started study that no other worker has claimed, one after another, until none is left.

    Any number of workers can share a study, on any machines with access to its runs folder. TERM and ctrl-c stop
    the worker with a checkpoint; another worker, or this one started again, resumes from there.
    """
    if study is None:
        if retry_failed:
            raise InputError(Message("--retry-failed only works with a study"))
        queue(until=until, device=device, json=json, runs_dir=runs_dir)
        return ExitCode.DONE
    clock = Deadline(None if until is None else seconds_until(until, datetime.now()))
    name = Path(study).name.removesuffix(SUFFIX)
    files = started_studies(runs_dir)
    if name not in files:
        started = command_line("ablate", "--study", name, runs_dir=runs_dir)
        raise InputError(
            tr("no study '{name}' was started in {runs_dir}", name=name[:80], runs_dir=runs_dir)
            + (did_you_mean(name, files) or tr("; `{command}` starts a study", command=started))
        )
    cells = read_study(files[name]).cells()
    paths = cell_folders(name, cells, runs_dir)
    stopped = stop_file(runs_dir, name)
    before = cell_statuses(cells, paths)
    if stopped.exists() and not _done(before):
        again = command_line("ablate", "--study", files[name], runs_dir=runs_dir)
        text = tr("study '{name}' was stopped; `{again}` resumes it", name=name, again=again)
        return _ended(name, "stopped", before, text, as_json=json)
    if device not in ("auto", "cpu"):
        resolve_device_name(device)
    runner = Runner(
        name,
        cells,
        paths,
        WorkerLines(as_json=json),
        runs_dir,
        data_dir,
        (device,),
        1,
        retry_failed=retry_failed,
        command=current_command_line(),
        is_worker=True,
        time_is_up=clock.check,
    )
    with handle_signals(lambda number: runner.stop()) as heard:
        found = runner.run()
    done, total = sum(one.state == "finished" for one in found), len(found)
    so_far = tr("{done} of {total} runs are done", done=done, total=total)
    if _done(found):
        text = tr("study '{name}' is finished: {so_far}", name=name, so_far=so_far)
        return _ended(name, "finished", found, text, as_json=json)
    if runner.failures_in_row >= MAX_FAILURES:
        print_error(
            tr(
                "{n} runs in a row failed here before their first step, so this worker is stopping: something may "
                "be missing on {host}; --retry-failed retries them",
                n=runner.failures_in_row,
                host=socket.gethostname(),
            )
        )
        return _ended(name, "unfinished", found, so_far, as_json=json) or ExitCode.FAILED
    if heard or clock.is_up or stopped.exists():
        why = tr("time is up") if clock.is_up else tr("the study was told to stop")
        why = signal.Signals(heard[0]).name if heard else why
        text = tr("{why}: this worker stopped; {so_far}", why=why, so_far=so_far)
        return _ended(name, "interrupted", found, text, as_json=json)
    failed = sum(one.state in ("failed", SKIPPED) for one in found)
    if failed:
        print_error(
            trn("{n} run failed; --retry-failed retries it", "{n} runs failed; --retry-failed retries them", failed)
        )
    text = tr("{so_far}; none left to claim", so_far=so_far)
    return _ended(name, "unfinished", found, text, as_json=json) or (ExitCode.FAILED if failed else ExitCode.DONE)


def _done(found: Sequence[CellStatus]) -> bool:
    return all(one.state == "finished" for one in found)


def _ended(name: str, state: str, found: Sequence[CellStatus], text: str, *, as_json: bool) -> int:
    done = sum(one.state == "finished" for one in found)
    record = {"kind": "work", "study": name, "state": state, "runs": len(found), "finished": done}
    print_result(record, text, as_json=as_json)
    return ExitCode.DONE


class WorkerLines(CellLines):
    def on_takeover(self, cell: CellStatus) -> None:
        self.tell(cell, "taken", tr("taken over by another worker"))
