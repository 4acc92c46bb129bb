"""Runs on questions that were never trained: an exact match beside what always the same answer would score."""

import json
from pathlib import Path

from tests.tui_transformer.recorded import record

RIGHT, OF = 31, 250  # always 'Arlow'


def asking(runs: Path, name: str, exact: float) -> Path:
    """A run on questions with an exact match."""
    path = record(runs, name)
    data, summary = (json.loads((path / f"{part}.json").read_text()) for part in ("data", "summary"))
    data["majority"] = {"answer": "Arlow", "right": RIGHT, "of": OF}
    summary["last"]["exact_match"] = exact
    (path / "data.json").write_text(json.dumps(data))
    (path / "summary.json").write_text(json.dumps(summary))
    return path
