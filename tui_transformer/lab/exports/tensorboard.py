"""TensorBoard event files, record by record through tensorboard's own code: no TensorFlow, no torch.

Not through its `EventFileWriter`: that writes in a thread, and a disk that is full in the end goes unnoticed.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from engine.clean import clean_line
from engine.config.toml import write as config_toml
from engine.errors import InputError
from engine.runs.files import new_file
from tui_transformer.lab.exports.markdown import block, inline
from tui_transformer.lab.exports.packages import require
from tui_transformer.lab.exports.recorded import Recorded, scalars
from tui_transformer.lab.exports.wall_time import seconds_of, wall_times
from tui_transformer.lab.records.facts import text


def write(run: Recorded, out: Path, checkpoint: str) -> tuple[Path, str]:
    """One folder of event files a run, in a log folder.

    Args:
        run: what to write.
        out: the log folder.
        checkpoint: not used; no weights are written.

    Returns:
        The run's folder, and how to look at it.

    Raises:
        InputError: tensorboard is missing, or there are event files already.
    """
    require("tensorboard", ("tensorboard",))
    from tensorboard.summary.writer.record_writer import RecordWriter

    folder = out / run.name
    if any(folder.glob("events.out.tfevents.*")):
        raise InputError(f"{folder} has event files already, and points would stand there twice; choose another --out")
    times = wall_times(run.metrics, run.reader.raw_lines("events"), text(run.run.get("created")))
    start = times[0] if times else seconds_of(text(run.run.get("created")))
    name = f"events.out.tfevents.{int(start):010d}.{run.name}"
    folder.mkdir(parents=True, exist_ok=True)
    with new_file(folder / name) as file:
        writer = RecordWriter(file)
        for event in _events(run, times, start):
            writer.write(event.SerializeToString())
    return folder, f"tensorboard --logdir {out}"


def _events(run: Recorded, times: Sequence[float], start: float) -> Iterator[Any]:
    """Everything of a run, with its step and time."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    yield Event(wall_time=start, file_version="brain.Event:2")
    for summary in _words(run, start):
        yield Event(wall_time=start, step=0, summary=summary)
    at: dict[int, float] = {}
    for record, time in zip(run.metrics, times, strict=True):
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars(record)]
        yield Event(wall_time=time, step=record["step"], summary=Summary(value=values))
        at[record["step"]] = time
    for sample in run.samples:
        words = f"{block(text(sample.get('prompt')))}\n\n→\n\n{block(text(sample.get('text')))}"
        yield Event(wall_time=at.get(sample["step"], start), step=sample["step"], summary=_text("sample", words))


def _words(run: Recorded, start: float) -> Iterator[Any]:
    """The config as text and as hyperparameters; what is wrong with the scores."""
    from tensorboard.plugins.hparams import summary_v2

    yield _text("config", block(config_toml(run.config)))
    checks = "\n".join(f"* **{inline(badge)}** {inline(why)}" for badge, why in run.badges.items())
    yield _text("checks", checks or "nothing is wrong with the scores, as far as the checks can tell")
    yield summary_v2.hparams_pb(run.settings, trial_id=clean_line(run.id or run.name), start_time_secs=start)


def _text(tag: str, words: str) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING

    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    tensor = TensorProto(dtype=DT_STRING, string_val=[words.encode("utf-8", "replace")], tensor_shape=shape)
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=tensor)])
