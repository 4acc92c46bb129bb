"""`queue`: train queued runs, or show whose turn is next."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from engine.base.command_line import DEFAULT_RUNS_DIR
from engine.base.language import tr, trn
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import Device, Json, RunsDir, Until
from tui_transformer.cli.output import print_answer, print_columns, print_info, print_json, print_result
from tui_transformer.cli.run.run import resolve_device_name
from tui_transformer.lab.formatting import duration, parse_duration, rough_duration
from tui_transformer.lab.work import queue_runner
from tui_transformer.lab.work.deadline import Deadline, seconds_until
from tui_transformer.lab.work.device_queue import DeviceQueue, QueuePosition


@command(50)
@examples(
    {
        "queue": "Train the queued runs now.",
        "queue --list": "Show whose run is next, and when.",
        "queue --limit 30m --stay": "Share a device in half-hour turns; whoever has used it least goes next.",
    }
)
def queue(
    limit: Annotated[
        str | None,
        typer.Option("--limit", help="Longest turn, e.g. 30m; an unfinished run resumes on its next turn."),
    ] = None,
    until: Until = None,
    stay: Annotated[bool, typer.Option("--stay", help="Wait for more runs when none is left.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the queued runs in turn order; train none.")] = False,
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
) -> None:
    """Train queued runs, one after another; `run --queue` does this in the background automatically."""
    longest = None if limit is None else parse_duration(limit)
    clock = Deadline(None if until is None else seconds_until(until, datetime.now()))
    device = resolve_device_name(device)
    if list_:
        _list_queue(runs_dir, device, as_json=json)
        return
    runs_dir.mkdir(parents=True, exist_ok=True)
    done = queue_runner.train_queued(
        runs_dir,
        device,
        lambda text: print_result({"kind": "queue", "text": text}, text, as_json=json),
        turn_limit=longest,
        stay=stay,
        time_is_up=clock.check,
    )
    if json:
        return
    if clock.is_up:
        print_answer(
            trn(
                "time is up; trained {n} run on {device}",
                "time is up; trained {n} runs on {device}",
                done,
                device=device,
            )
        )
    else:
        print_answer(tr("no more runs are waiting for {device}; {trained} trained", device=device, trained=done))


def _list_queue(runs_dir: Path, device: str, *, as_json: bool) -> None:
    waiting = DeviceQueue(runs_dir, device)
    waiting.refresh()
    head = (tr("place"), tr("run"), tr("owner"), tr("time used"), tr("starts in"))
    used, rows = waiting.seconds_by_owner, [head]
    positions = [*(QueuePosition(run, 0, 0.0) for run in waiting.training), *waiting.positions()]
    for run, place, wait in positions:
        seconds = used.get(run.owner, 0.0)
        record = {"kind": "turn", "run": run.path.name, "owner": run.owner, "device": device, "state": run.state}
        if as_json:
            print_json({**record, "place": place, "owner_seconds": round(seconds, 1), "wait_seconds": wait})
        starts = tr("unknown") if wait is None else rough_duration(wait) if wait else "–"
        starts = starts if place else tr(run.state)
        rows.append((str(place) if place else "", run.path.name, run.owner, duration(seconds), starts))
    if not as_json and len(rows) > 1:
        print_columns(rows)
    elif not as_json:
        print_info(tr("no run is waiting for {device}", device=device))
