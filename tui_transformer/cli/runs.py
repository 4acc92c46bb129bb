"""`runs`: what is in the runs folder, newest last, each with its state, its score and what is wrong with it."""

from pathlib import Path
from typing import Any

from engine.runs.reader import RunReader, list_runs, no_runs
from engine.runs.records import Run
from tui_transformer.cli.columns import print_columns
from tui_transformer.cli.output import emit, say
from tui_transformer.lab.records.badges import in_a_cell, worst_first
from tui_transformer.lab.records.facts import number

HEAD = ("run", "state", "step", "loss", "perplexity", "preset", "from", "checks")


def runs_command(*, as_json: bool, runs_dir: Path) -> int:
    """Print one line a run."""
    readers = list_runs(runs_dir)
    if as_json:
        for reader in readers:
            emit(_facts(reader))
        return 0
    if not readers:
        say(no_runs(runs_dir))
        return 0
    rows = [HEAD, *(_row(_facts(reader)) for reader in readers)]
    if not any(row[HEAD.index("from")] for row in rows[1:]):  # most folders have none that starts from another
        rows = [tuple(cell for head, cell in zip(HEAD, row, strict=True) if head != "from") for row in rows]
    print_columns(rows)
    for reader in readers:
        if reader.state == "paused" and (why := reader.status.reason):
            say(f"{reader.name} is paused: {why}")
    return 0


def _facts(reader: RunReader) -> dict[str, Any]:
    status, last, born = reader.status, reader.summary.last, reader.run
    return {
        "run": reader.name,
        "state": reader.state,
        "reason": status.reason,
        "step": status.step,
        "steps": status.steps,
        "loss": last and last.loss,
        "perplexity": last and last.perplexity,
        "preset": born.preset if "preset" in born.model_fields_set else "",
        "from": born.origin and born.origin.model_dump(by_alias=True),
        "badges": list(worst_first(reader.badges)),
        "checked": reader.checked,
    }


def _row(facts: dict[str, Any]) -> tuple[str, ...]:
    def shown(name: str, digits: int) -> str:
        value = number(facts[name])
        return "–" if value is None else f"{value:.{digits}f}"

    steps = f"{facts['step']:,} / {facts['steps']:,}"
    return (
        facts["run"],
        facts["state"],
        steps,
        shown("loss", 4),
        shown("perplexity", 3),
        str(facts["preset"]),
        origin.shown if (origin := Run.read(facts).origin) is not None else "",
        in_a_cell(facts["badges"], checked=facts["checked"]),
    )
