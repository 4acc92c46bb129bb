"""Recorded runs: directories as training writes them, without training. No torch."""

import json
import math
import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil

from engine.config.schema import RunConfig
from engine.config.toml import config_toml
from engine.runs.record_version import RECORD_VERSION

PROBES = (
    ("recall<110", 0.62, 0.083, "who is speaking: the name in the exit line"),
    ("rhyme", 0.41, 0.2, "the rhyme: the vowel that ends a couplet"),
    ("bracket", 0.98, 0.333, "the bracket that closes the open one"),
    ("counter", 0.12, 0.286, "the number after the previous speech's"),
)
TEXT = " the gate is barred, and none\nshall pass before the moon hath set.\nANTONIO: Then let us wait, my lord.\n"
FLOOR = 0.3573


def loss_at(step: int, steps: int) -> float:
    """A loss that falls as losses do, with noise that is the same each time."""
    share = step / max(1, steps)
    return 0.9 + 3.1 * math.exp(-9 * share) + 0.25 * math.exp(-2 * share) + 0.05 * math.sin(step * 12.9898) * 1.3


def train_record(step: int, steps: int) -> dict[str, Any]:
    """As the trainer writes it."""
    rate = 41_200 + 900 * math.sin(step)
    return {
        "kind": "train",
        "step": step,
        "tokens": step * 4096,
        "seconds": round(step * 4096 / 41_200, 4),
        "loss": loss_at(step, steps),
        "lr": 3e-3 * min(1.0, step / 100) * (0.5 + 0.5 * math.cos(math.pi * step / max(1, steps))),
        "grad_norm": 0.5 + 1.2 * math.exp(-4 * step / max(1, steps)) + 0.1 * math.sin(step * 7.1),
        "tokens_per_second": round(rate, 1),
        "device_load": 0.93 + 0.05 * math.sin(step / 30),
        "memory_bytes": 458_000_000 + step * 1000,
    }


def validation_record(step: int, steps: int) -> dict[str, Any]:
    """As the evaluator writes it."""
    loss = loss_at(step, steps) + 0.03 * step / max(1, steps)
    return {
        "kind": "validation",
        "step": step,
        "tokens": step * 4096,
        "seconds": round(step * 4096 / 41_200, 4),
        "context": 256,
        "stride": 128,
        "loss": loss,
        "perplexity": math.exp(loss),
        "bits_per_character": loss / math.log(2),
        "accuracy": 1 - loss / 5,
        "probes": {name: right for name, right, _, _ in PROBES},
        "excess": loss - FLOOR,
    }


def lines(records: Iterable[dict[str, Any]]) -> str:
    """As they stand in a file."""
    return "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)


def status_of(**changes: Any) -> dict[str, Any]:
    """status.json of this process."""
    return {
        "schema": 1,
        "state": "finished",
        "phase": "",
        "reason": "",
        "step": 0,
        "steps": 2000,
        "attempt": 1,
        "pid": os.getpid(),
        "process_started": psutil.Process().create_time(),
        "host": socket.gethostname(),
        "launch": "process",
        "device": "cpu",
        "beat": 1,
        "control_id": 0,
        "checkpoint": None,
    } | changes


def record(
    root: Path,
    name: str,
    *,
    state: str = "finished",
    step: int = 2000,
    steps: int = 2000,
    every: int = 10,
    created: str = "2026-11-21T01:25:04+00:00",
    verdicts: Iterable[tuple[str, str, str]] = (("leak", "ok", "no later token is seen (256 of 256 positions tried)"),),
    text: str = TEXT,
    queue: str = "",
    **status: Any,
) -> Path:
    """A run directory.

    Args:
        root: the runs folder.
        name: of the run.
        state: as in status.json; `lost` is a running one whose process is gone.
        step: how far it came; nothing was measured at 0.
        steps: how far it wants to go.
        every: steps between two train records.
        created: when.
        verdicts: check, verdict, why.
        text: what it wrote.
        queue: the device it waits for.
        status: more of status.json.
    """
    run = root / name
    run.mkdir(parents=True)
    put = lambda file, data: (run / file).write_text(json.dumps(data), encoding="utf-8")
    born = {"schema": 1, "id": name, "created": created, "preset": "demo", "records": RECORD_VERSION}
    put("run.json", born | _queue(queue))
    (run / "config.toml").write_text(config_toml(RunConfig()), encoding="utf-8")
    if state == "lost":
        state, status = "running", {"pid": 2**22 + 1} | status
    phase = {"running": "training", "starting": "loading"}.get(state, "")
    saved = {"checkpoint": f"step-{step:08d}"} if step else {}
    fresh = {"attempt": 0, "device": ""} if state == "queued" else {}
    put(
        "status.json",
        status_of(**{"state": state, "phase": phase, "step": step, "steps": steps, **saved, **fresh, **status}),
    )
    if state in ("queued", "starting"):
        return run
    put(
        "data.json",
        {
            "schema": 1,
            "corpus": "playlets@1",
            "floor": {"nats_per_char": FLOOR, "se": 0.001},
            "probes": [{"name": n, "chance": c, "description": what, "n": 99} for n, _, c, what in PROBES],
        },
    )
    put("model.json", {"schema": 1, "parameters": 108_288})
    put("environment.json", {"schema": 1, "attempts": [{"attempt": 1, "memory_bytes": 25_276_502_016}]})
    train = [train_record(at, steps) for at in range(every, step + 1, every)]
    scored = [validation_record(at, steps) for at in range(200, step + 1, 200)]
    (run / "metrics.jsonl").write_text(lines(sorted([*train, *scored], key=lambda r: r["step"])), encoding="utf-8")
    if scored:
        best = min(scored, key=lambda r: r["loss"])
        put(
            "summary.json",
            {"schema": 1, "step": step, "seconds": scored[-1]["seconds"], "best": best, "last": scored[-1]},
        )
    put(
        "checks.json",
        {
            "schema": 1,
            "verdicts": [
                {"check": check, "when": "before", "step": 0, "verdict": found, "value": 0.0, "why": why}
                for check, found, why in verdicts
            ],
        },
    )
    samples = [{"step": at, "prompt": "ROMEO:", "text": text, "temperature": 0.8} for at in range(500, step + 1, 500)]
    (run / "samples.jsonl").write_text(lines(samples), encoding="utf-8")
    events = [{"time": created, "attempt": 1, "step": 0, "event": "started", "text": f"{steps} steps on cpu in fp32"}]
    (run / "events.jsonl").write_text(lines(events), encoding="utf-8")
    (run / "log.txt").write_text("2026-11-21 01:25:09 INFO engine.training: begins\n", encoding="utf-8")
    return run


def _queue(device: str) -> dict[str, Any]:
    return {"queue": {"device": device, "data_dir": None}} if device else {}


def grow(run: Path, *, to: int, steps: int = 2000, every: int = 10) -> None:
    """Train it further: more records, and the status."""
    status = json.loads((run / "status.json").read_text(encoding="utf-8"))
    train = [train_record(at, steps) for at in range(status["step"] + every, to + 1, every)]
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(lines(train))
    put_status(run, step=to, beat=status["beat"] + 1)


def put_status(run: Path, **changes: Any) -> None:
    """Change status.json, in one step as the writer does."""
    path = run / "status.json"
    staged = run / ".status.json.new"
    staged.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")
    staged.replace(path)


def everything(root: Path) -> None:
    """A run in each state."""
    at = "2026-11-21T01:{:02d}:00+00:00".format
    record(root, "baseline", created=at(1))
    record(root, "no-pe", created=at(2), verdicts=[("leak", "LEAK", "the loss at 12 of 256 places sees a later token")])
    record(root, "heads2", state="failed", step=310, created=at(3), reason="the loss is not finite at step 310 (NaN)")
    record(root, "xl-long-context-512", state="stopped", step=1200, created=at(4))
    record(root, "rope-base-500", state="lost", step=840, created=at(5))
    record(root, "sine", state="interrupted", step=900, created=at(6), reason="SIGTERM")
    record(root, "t5-bias", state="paused", step=500, created=at(7))
    record(root, "win16", state="running", step=1240, created=at(8))
    record(root, "alibi", state="queued", step=0, created=at(9), queue="cpu")
    record(root, "seed2", state="queued", step=0, created=at(10), queue="cpu")
    record(root, "fresh", state="starting", step=0, created=at(11))
