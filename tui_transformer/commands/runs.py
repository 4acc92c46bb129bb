"""`runs`: what is in the runs folder, newest last, each with its state, its score and what is wrong with it."""

from pathlib import Path
from typing import Any

from engine.runs.reader import RunReader, list_runs
from tui_transformer.badges import badge
from tui_transformer.columns import print_columns
from tui_transformer.output import emit, say

HEAD = ("run", "state", "step", "loss", "perplexity", "preset", "checks")


def runs_command(*, as_json: bool, runs_dir: Path) -> int:
    """Print one line a run."""
    readers = list_runs(runs_dir)
    if as_json:
        for reader in readers:
            emit(_facts(reader))
        return 0
    if not readers:
        say(f"there is no run in {runs_dir} yet; `tui-transformer run --preset demo` makes one")
        return 0
    print_columns([HEAD, *(_row(_facts(reader)) for reader in readers)])
    return 0


def _facts(reader: RunReader) -> dict[str, Any]:
    status, last = reader.status, reader.summary.get("last") or {}
    return {
        "run": reader.name,
        "state": reader.state,
        "step": status.get("step", 0),
        "steps": status.get("steps", 0),
        "loss": last.get("loss"),
        "perplexity": last.get("perplexity"),
        "preset": reader.facts("run").get("preset", ""),
        "badges": list(reader.badges),
    }


def _row(facts: dict[str, Any]) -> tuple[str, ...]:
    def number(name: str, digits: int) -> str:
        value = facts[name]
        return f"{value:.{digits}f}" if isinstance(value, int | float) else "–"

    steps = f"{facts['step']:,} / {facts['steps']:,}" if isinstance(facts["step"], int) else "–"
    checks = " ".join(badge(name).word for name in facts["badges"]) or ("✓" if facts["loss"] is not None else "–")
    return (
        facts["run"],
        facts["state"],
        steps,
        number("loss", 4),
        number("perplexity", 3),
        str(facts["preset"]),
        checks,
    )
