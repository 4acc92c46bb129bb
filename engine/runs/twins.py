"""The inert-switch alarm: two runs with different settings or seeds that agree bit for bit.

Rounding alone makes two different functions diverge after a few steps, so equal losses mean the same computation.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from engine.base.errors import InputError
from engine.config.keys import diff
from engine.runs.files import read_lines
from engine.runs.reader import RunReader, list_runs
from engine.runs.records import TrainRecord

# Settings that may legitimately change nothing: they act only on some event.
CONDITIONAL = (
    "train.activation_checkpointing",
    "train.auto_batch",
    "train.compile",
    "train.precision",
    "evaluation.every",
    "evaluation.stride",
    "data.corpus_size",
    "train.allow_leak",
    "train.threads",
    "evaluation.patience",
    "checkpoint.average_last",
    "train.ema",
)


def loss_and_gradient_hash(run: Path) -> str:
    """SHA-256 over the metrics that reflect a run's function: losses and gradient norms by step."""
    return _hashed(read_lines(run / "metrics.jsonl"), "kind", "step", "loss", "grad_norm")


def scores_hash(run: Path) -> str:
    """SHA-256 over the validation losses by step: unlike `fingerprint`, independent of how often the run logs."""
    scored = (record for record in read_lines(run / "metrics.jsonl") if record.get("kind") == "validation")
    return _hashed(scored, "step", "loss", "accuracy")


def _hashed(records: Iterable[dict[str, Any]], *fields: str) -> str:
    digest = hashlib.sha256()
    for record in records:
        digest.update(repr(tuple(record.get(field) for field in fields)).encode())
    return digest.hexdigest()


def inert_switches(run: RunReader, root: Path) -> Iterator[tuple[str, dict[str, tuple[Any, Any]]]]:
    """Other finished runs in the folder with the same metrics: (name, the settings or seed without effect)."""
    for other in list_runs(root):
        own, its = run.summary, other.summary  # of earlier versions without the second hash
        hashes = ((own.fingerprint, its.fingerprint), (own.scores_sha256, its.scores_sha256))
        same = any(one is not None and one == another for one, another in hashes)
        if not same or other.path.resolve() == run.path.resolve():
            continue
        try:
            found = diff(other.config, run.config)
        except InputError:
            continue  # damaged, or written by another version
        ours, theirs = run.config.model, other.config.model
        said_aloud = {"model.n_kv_heads": ours.kv_heads == theirs.kv_heads}
        said_aloud["model.source_length"] = ours.source_tokens == theirs.source_tokens
        origins = [reader.run.origin for reader in (run, other)]
        said_aloud["train.init_from"] = all(origins) and len({o.sha256 for o in origins if o is not None}) == 1
        said_aloud["train.clip"] = "train.clip" in found and not (_clipped(run) or _clipped(other))
        said_aloud["seed"] = run.config.train.steps == 0  # nothing random was used
        found = {key: v for key, v in found.items() if key not in CONDITIONAL and not said_aloud.get(key)}
        if found:
            yield other.name, found


def _clipped(run: RunReader) -> bool:
    clip = run.config.train.clip
    norms = (record.grad_norm for record in run.metrics() if isinstance(record, TrainRecord))
    return bool(clip) and any(norm is not None and norm > clip for norm in norms)
