"""TensorBoard event files, record by record through tensorboard's own code: no TensorFlow, no torch.

Not through its `EventFileWriter`: that writes in a thread, and a disk that is full in the end goes unnoticed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.clean import clean_line
from engine.config.toml import write as config_toml
from engine.errors import InputError
from engine.runs.files import new_file
from tui_transformer.lab.escaping import markdown_block, markdown_text
from tui_transformer.lab.exports.recorded import ExportedRun, scalars


def write(run: ExportedRun, out: Path, checkpoint: str) -> tuple[Path, str]:
    """One folder of event files a run, in a log folder; no weights.

    Raises:
        InputError: there are event files already.
    """
    from tensorboard.summary.writer.record_writer import RecordWriter

    folder = out / run.name
    if any(folder.glob("events.out.tfevents.*")):
        raise InputError(f"{folder} has event files already, and points would stand there twice; choose another --out")
    name = f"events.out.tfevents.{int(run.start):010d}.{run.name}"
    folder.mkdir(parents=True, exist_ok=True)
    with new_file(folder / name) as file:
        writer = RecordWriter(file)
        for event in _events(run):
            writer.write(event.SerializeToString())
    return folder, f"tensorboard --logdir {out}"


def _events(run: ExportedRun) -> Iterator[Any]:
    """Everything of a run, with its step and time."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb

    yield Event(wall_time=run.start, file_version="brain.Event:2")
    checks = "\n".join(f"* **{markdown_text(badge)}** {markdown_text(why)}" for badge, why in run.badges.items())
    for summary in (
        _text("config", markdown_block(config_toml(run.config))),
        _text("checks", checks or "nothing is wrong with the scores, as far as the checks can tell"),
        hparams_pb(run.settings, trial_id=clean_line(run.run.id or run.name), start_time_secs=run.start),
    ):
        yield Event(wall_time=run.start, step=0, summary=summary)
    at: dict[int, float] = {}
    for line, time in zip(run.lines, run.times, strict=True):
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars(line)]
        yield Event(wall_time=time, step=line["step"], summary=Summary(value=values))
        at[line["step"]] = time
    for sample in run.texts:
        words = f"{markdown_block(sample.prompt)}\n\n→\n\n{markdown_block(sample.text)}"
        yield Event(wall_time=at.get(sample.step, run.start), step=sample.step, summary=_text("sample", words))


def _text(tag: str, words: str) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING

    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    tensor = TensorProto(dtype=DT_STRING, string_val=[words.encode("utf-8", "replace")], tensor_shape=shape)
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=tensor)])
