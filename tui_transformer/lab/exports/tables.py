"""Metrics as CSV (a row a record, all columns) and whole runs as JSON."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from engine.clean import clean_line
from engine.runs.files import SCHEMA, finite
from engine.runs.flat import flat
from tui_transformer.lab.analysis.export import no_formula
from tui_transformer.lab.exports.recorded import Recorded

FIRST = ("run", "kind", "step", "tokens", "seconds")  # columns; others come as the records have them


def to_csv(runs: Sequence[Recorded]) -> str:
    """All metrics records of some runs, RFC 4180: one row each, one column for every number in any of them."""
    rows = [{"run": run.name} | dict(flat(record)) for run in runs for record in run.metrics]
    columns = list(dict.fromkeys([*FIRST, *(name for row in rows for name in row)]))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_cell(column) for column in columns])
    for row in rows:
        writer.writerow([_cell(row.get(column)) for column in columns])
    return out.getvalue()


def _cell(value: Any) -> Any:
    """A number as it stands in the record, to the last digit; text that no spreadsheet runs."""
    return no_formula(clean_line(value)) if isinstance(value, str) else value


def to_json(runs: Sequence[Recorded]) -> str:
    """All that some runs say, but for their weights: one document."""
    documents = [
        {
            "name": run.name,
            "state": run.state,
            "badges": run.badges,
            "config": run.config.dump(),
            **{name: run.reader.raw(name) for name in ("run", "model", "data", "environment")},
            "summary": run.reader.raw("summary"),
            "verdicts": [verdict.dump() for verdict in run.reader.verdicts],
            **{stream: list(run.reader.raw_lines(stream)) for stream in ("metrics", "samples", "events")},
        }
        for run in runs
    ]
    return json.dumps(finite({"schema": SCHEMA, "runs": documents}), ensure_ascii=True, indent=1) + "\n"
