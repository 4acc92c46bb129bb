"""Tiny runs on documents and on questions that really were trained, for what needs a model: a second each."""

from pathlib import Path

from engine.training.assemble import assemble
from engine.training.control import Control
from tests.small_documents import config

SHORT = {
    "train": {"steps": 2, "batch_size": 16, "threads": 1},
    "evaluation": {"every": 2, "sample_every": 2, "probes": False},
    "checkpoint": {"every": 2},
}


def answering(runs: Path, name: str, kind: str = "question-answer", *, reads: bool = False, **changes: dict) -> Path:
    """Train a run for two steps; `reads` makes it an encoder-decoder."""
    wanted = config(kind, reads=reads, **SHORT | changes)
    ready = assemble(wanted, runs_dir=runs, name=name, device="cpu", control=Control())
    ready.trainer.run()
    return ready.path
