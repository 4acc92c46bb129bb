"""TensorBoard event files, written record by record with tensorboard's own code: no TensorFlow, no torch.

Not through its `EventFileWriter`: that writes in a thread and does not notice a full disk at the end.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.base.clean import clean_line
from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.config.toml import config_toml
from engine.runs.files import atomic_file
from tui_transformer.lab.escaping import markdown_block, markdown_text
from tui_transformer.lab.exports.recorded import ExportedRun, scalars


def write(run: ExportedRun, out: Path, checkpoint: str) -> tuple[Path, str]:
    """One event-file folder per run, in a log folder; no weights."""
    from tensorboard.summary.writer.record_writer import RecordWriter

    folder = out / run.name
    if any(folder.glob("events.out.tfevents.*")):
        raise InputError(
            Message(
                "{folder} already has event files, so points would be duplicated; choose another --out", folder=folder
            )
        )
    name = f"events.out.tfevents.{int(run.start):010d}.{run.name}"
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_file(folder / name) as file:
        writer = RecordWriter(file)
        for event in _events(run):
            writer.write(event.SerializeToString())
    return folder, f"tensorboard --logdir {out}"


def _events(run: ExportedRun) -> Iterator[Any]:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb
    from tensorboard.plugins.text.summary_v2 import text_pb

    yield Event(wall_time=run.start, file_version="brain.Event:2")
    checks = "\n".join(f"* **{markdown_text(badge)}** {markdown_text(why)}" for badge, why in run.badges.items())
    for summary in (
        text_pb("config", markdown_block(config_toml(run.config))),
        text_pb("checks", checks or tr("the checks found nothing wrong with the scores")),
        hparams_pb(run.settings, trial_id=clean_line(run.run.id or run.name), start_time_secs=run.start),
    ):
        yield Event(wall_time=run.start, step=0, summary=summary)
    at: dict[int, float] = {}
    for (step, line), time in zip(run.metrics_lines, run.times, strict=True):
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars(line)]
        yield Event(wall_time=time, step=step, summary=Summary(value=values))
        at[step] = time
    for sample in run.texts:
        words = f"{markdown_block(sample.prompt)}\n\n→\n\n{markdown_block(sample.text)}"
        summary = text_pb("sample", words.encode("utf-8", "replace"))
        yield Event(wall_time=at.get(sample.step, run.start), step=sample.step, summary=summary)
