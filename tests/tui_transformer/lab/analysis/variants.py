"""Recorded runs that differ: settings, scores, notes, curves. Built on `recorded`."""

import json
from pathlib import Path
from typing import Any

from engine.config.keys import parse_overrides
from engine.config.presets import merge
from engine.config.schema import RunConfig
from engine.config.toml import config_toml
from engine.runs.manage import write_notes
from tests.tui_transformer.recorded import lines, record
from tui_transformer.lab.analysis.entry import RunEntry, read_entry

AT = "2026-11-21T01:{:02d}:00+00:00".format
LEAK = ("leak", "LEAK", "the loss at 12 of 256 places sees a later token")


def change(path: Path, **changes: Any) -> None:
    """Change a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes), encoding="utf-8")


def variant(
    root: Path,
    name: str,
    *settings: str,
    by: float = 0.0,
    preset: str = "demo",
    parameters: int = 108_288,
    note: str = "",
    tags: tuple[str, ...] = (),
    data: dict[str, Any] | None = None,
    scored: dict[str, Any] | None = None,
    **more: Any,
) -> Path:
    """A run with some settings, its losses moved by `by` nats.

    Args:
        root: the runs folder.
        name: of the run.
        settings: as `--set` takes them.
        by: nats.
        preset: as in run.json.
        parameters: as in model.json.
        note: what was noted.
        tags: its tags.
        data: more of data.json.
        scored: more of every validation record.
        more: of `record`.
    """
    run = record(root, name, **more)
    change(run / "run.json", preset=preset)
    tables: dict[str, Any] = {}
    for override in parse_overrides(settings):
        tables = merge(tables, override)
    (run / "config.toml").write_text(config_toml(RunConfig.model_validate(tables)), encoding="utf-8")
    if (run / "model.json").exists():
        change(run / "model.json", parameters=parameters)
        change(run / "data.json", **(data or {}))
        move(run, by, scored or {})
    if note or tags:
        write_notes(run, text=note, add=tags)
    return run


def move(run: Path, by: float, scored: dict[str, Any]) -> None:
    """All its losses by so many nats."""
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for found in records:
        found["loss"] += by
        if found["kind"] == "validation":
            found |= scored
    (run / "metrics.jsonl").write_text(lines(records), encoding="utf-8")
    if (run / "summary.json").exists():
        summary = json.loads((run / "summary.json").read_text())
        for part in ("best", "last"):
            summary[part] |= {"loss": summary[part]["loss"] + by} | scored
        tokens = summary["last"]["tokens"]
        (run / "summary.json").write_text(json.dumps(summary | {"tokens": tokens, "gap": 0.0}), encoding="utf-8")


def entry(root: Path, name: str, *settings: str, **more: Any) -> RunEntry:
    """The same, read."""
    return read_entry(variant(root, name, *settings, **more))


def study(root: Path) -> None:
    """Runs as people compare them."""
    variant(root, "baseline", created=AT(1), note="the one to beat", tags=("report",))
    variant(root, "heads2", "model.n_heads=2", by=0.0009, created=AT(2))
    variant(root, "no-pe", "model.position=none", by=0.0476, created=AT(3), tags=("report", "positions"))
    variant(root, "wide", "model.d_model=320", "seed=2", by=-0.02, parameters=168_960, created=AT(4))
    variant(root, "enc-next", "model.causal=false", by=-0.87, created=AT(5), verdicts=[LEAK])
    variant(root, "short", by=0.01, scored={"context": 128}, created=AT(6))
    variant(root, "hot", "optimizer.lr=0.3", state="failed", step=310, created=AT(7), reason="the loss is not a number")
    variant(root, "young", "model.n_layers=6", state="running", step=800, created=AT(8))
