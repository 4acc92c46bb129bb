"""Tiny runs on documents and on questions that really were trained, for what needs a model: a second each."""

from pathlib import Path

from tests.small_documents import config
from tests.trained_runs import cached_run

SHORT = {
    "train": {"steps": 2, "batch_size": 16, "threads": 1},
    "evaluation": {"every": 2, "sample_every": 2, "probes": False},
    "checkpoint": {"every": 2},
}


def answering(runs: Path, name: str, kind: str = "question-answer", *, reads: bool = False, **changes: dict) -> Path:
    """A run that was trained for two steps; `reads` makes it an encoder-decoder."""
    return cached_run(config(kind, reads=reads, **SHORT | changes), runs, name)
