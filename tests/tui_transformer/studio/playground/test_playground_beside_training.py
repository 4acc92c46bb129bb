"""Sampling never disturbs a training: the same bits with and without an answer being written beside it."""

import asyncio
import json
from pathlib import Path

import pytest

from engine.config.schema import RunConfig
from tests.conftest import TINY
from tests.tui_transformer.trained import train
from tui_transformer.lab.play.writers import WriterCache
from tui_transformer.lab.work.processes import TrainingThread, create_queued_run
from tui_transformer.studio.playground.column import stream_batches
from tui_transformer.studio.shared.engine_thread import run_in_engine_thread

STEPS = 250
CONFIG = RunConfig.model_validate(
    TINY
    | {
        "model": TINY["model"] | {"dropout": 0.2},
        "train": TINY["train"] | {"steps": STEPS},
        "evaluation": TINY["evaluation"] | {"every": STEPS, "sample_every": STEPS},
        "checkpoint": {"every": STEPS},
    }
)
MEASURED = ("loss", "grad_norm")


def begin(runs: Path, name: str) -> TrainingThread:
    training = TrainingThread("begin", create_queued_run(CONFIG, runs_dir=runs, name=name, command=""), device="cpu")
    training.start()
    return training


def bits(run: Path) -> tuple[bytes, list[list[float]]]:
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    weights = run / "checkpoints" / f"step-{STEPS:08d}" / "model.safetensors"
    return weights.read_bytes(), [[record.get(name) for name in MEASURED] for record in records]


@pytest.mark.slow
async def test_a_training_has_the_same_bits_beside_an_answer_that_is_written(tmp_path) -> None:
    alone = begin(tmp_path, "alone")
    await asyncio.to_thread(alone.join)
    assert alone.error is None
    played = train(tmp_path, "played", "model.dropout=0.2")
    written = 0
    how = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "seed": 1, "length": 200}
    beside = begin(tmp_path, "beside")
    while beside.alive:
        writer = await run_in_engine_thread(lambda: WriterCache("cpu").get(played, "best"))  # loading is beside it too
        async for pieces in stream_batches(writer, "the", how):
            written += len(pieces)
        await run_in_engine_thread(lambda writer=writer: writer.surprise("the gate is barred"))
        await run_in_engine_thread(lambda writer=writer: writer.attention("the gate", "", 1, 1))
    assert beside.error is None and written > 1000
    assert bits(tmp_path / "beside") == bits(tmp_path / "alone")
