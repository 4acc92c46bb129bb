"""What breaks under a run: its clock, its device, its folder. A line says so, and the last checkpoint is whole."""

import random
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.base.errors import InputError
from engine.config.schema import RunConfig
from engine.runs import writer as writing
from engine.runs.reader import RunReader
from engine.runs.records import TrainRecord
from engine.runs.tail import MetricsTail
from engine.training import checkpoint
from engine.training.assemble import assemble, resume
from engine.training.trainer import Trainer
from tests.conftest import TINY
from tests.engine.training.test_resume import outcome
from tests.trained_runs import cached_run
from tui_transformer.lab.exports.recorded import wall_times
from tui_transformer.lab.records.pace import Pace

pytestmark = pytest.mark.usefixtures("cached_checks")

LOST = "CUDA error: device lost\nCUDA kernel errors might be asynchronously reported at some other API call"


def made(config, root: Path, name: str) -> Trainer:
    return assemble(config, runs_dir=root, name=name, device="cpu").trainer


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What an undisturbed run leaves behind."""
    return outcome(cached_run(RunConfig.model_validate(TINY), tmp_path_factory.mktemp("whole"), "run"))


def backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the day jumps, mostly back, each time somebody looks."""
    chance, at = random.Random(1), [time.time()]

    def now() -> float:
        at[0] += chance.uniform(-3600.0, 600.0)
        return at[0]

    monkeypatch.setattr(time, "time", now)
    monkeypatch.setattr(writing, "now", lambda: datetime.fromtimestamp(now(), UTC).isoformat(timespec="seconds"))


def test_a_clock_that_goes_back_leaves_no_trace_in_a_run(tiny, tmp_path, monkeypatch, whole) -> None:
    backwards(monkeypatch)
    trainer = made(tiny(), tmp_path, "run")
    reader, states, left, pace = RunReader(tmp_path / "run"), [], [], Pace()
    tail, taken = MetricsTail(reader.path), trainer.stepper.step

    def watched(step: int, **given: Any) -> Any:
        states.append(reader.state)
        pace.add_records(tail.poll()[1].train, reset=False)
        pace.observe(step=step, moving=True, attempt=1, clock=time.monotonic())
        left.append(pace.seconds_left(6, step))
        return taken(step, **given)

    trainer.stepper.step = watched  # type: ignore[method-assign]
    assert trainer.run().state == "finished"
    assert set(states) == {"running"} and all(value is None or value >= 0 for value in left)
    assert outcome(reader.path) == whole
    records = list(reader.raw_lines("metrics"))
    seconds = [record["seconds"] for record in records]
    assert seconds == sorted(seconds) and seconds[0] >= 0
    assert all(record["tokens_per_second"] > 0 for record in records if record["kind"] == "train")
    times = wall_times(map(TrainRecord.read, records), reader.events(), reader.run.created)
    assert times == sorted(times)


MOMENTS = {
    "step": torch.AcceleratorError,
    "evaluation": RuntimeError,
    "checkpoint": torch.AcceleratorError,
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_device_that_disappears_fails_the_run_in_one_line_and_the_last_checkpoint_goes_on(
    tiny, tmp_path, monkeypatch, whole, moment: str
) -> None:
    trainer = made(tiny(), tmp_path, "run")

    def lost(*_: Any, **__: Any) -> Any:
        raise MOMENTS[moment](LOST)

    with monkeypatch.context() as patch:
        if moment == "step":
            real = trainer.stepper.step
            patch.setattr(trainer.stepper, "step", lambda step, **given: lost() if step == 5 else real(step, **given))
        if moment == "evaluation":
            patch.setattr(trainer.scorer, "score_model", lost)
        if moment == "checkpoint":
            real_weights, calls = checkpoint.weights_of, iter(range(9))
            patch.setattr(checkpoint, "weights_of", lambda model: lost() if next(calls) == 1 else real_weights(model))
        ended = trainer.run()
    saved = 0 if moment == "checkpoint" else 3
    assert ended.state == "failed"
    assert ended.reason == f"cpu failed or disappeared: CUDA error: device lost; step {saved} is the last one saved"
    assert RunReader(trainer.writer.path).state == "failed"
    folder, damaged = checkpoint.newest_intact(trainer.writer.path)
    assert folder.name == checkpoint.folder_name(saved) and not damaged
    assert not list((trainer.writer.path / "checkpoints").glob(".*"))
    assert resume(trainer.writer.path, device="cpu").trainer.run().state == "finished"
    assert outcome(trainer.writer.path) == whole


@pytest.mark.parametrize("step", [1, 4])
def test_a_run_whose_folder_vanishes_fails_in_one_line(tiny, tmp_path, step: int) -> None:
    trainer = made(tiny(), tmp_path, "run")
    real = trainer.stepper.step

    def take(now: int, **given: Any) -> Any:
        if now == step:
            shutil.rmtree(trainer.writer.path)
        return real(now, **given)

    trainer.stepper.step = take  # type: ignore[method-assign]
    ended = trainer.run()
    assert ended.state == "failed" and ended.reason == f"its folder {trainer.writer.path} vanished"
    assert not trainer.writer.path.exists()


@pytest.fixture
def text(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "text.txt"
    path.write_text("All work and no play makes Jack a dull boy. " * 400)
    yield path


LONG = [pytest.param(becomes, marks=pytest.mark.slow) for becomes in ("a folder", "shorter", "another text")]


@pytest.mark.parametrize("becomes", ["gone", *LONG])
def test_a_text_that_is_not_what_it_was_is_one_line_before_a_resume(tiny, tmp_path, text, becomes: str) -> None:
    config = tiny(f"data.corpus={text}", "evaluation.select=loss")
    trainer = made(config, tmp_path, "run")
    real = trainer.stepper.step
    trainer.stepper.step = lambda step, **given: 1 / 0 if step == 5 else real(step, **given)  # type: ignore
    assert trainer.run().state == "failed"
    kept = text.read_text()
    text.unlink()
    if becomes == "a folder":
        text.mkdir()
    elif becomes != "gone":
        text.write_text(kept[:9000] if becomes == "shorter" else kept.replace("Jack", "Jill"))
    with pytest.raises(InputError) as caught:
        resume(trainer.writer.path, device="cpu")
    said = str(caught.value)
    assert "\n" not in said and "text" in said
    if text.is_dir():
        text.rmdir()
    text.write_text(kept)
    assert resume(trainer.writer.path, device="cpu").trainer.run().state == "finished"
