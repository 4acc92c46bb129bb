"""All formats of `export`: texts of some runs together, and other tools, a run at a time."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from engine.clean import clean_line
from engine.errors import InputError
from engine.runs.files import SCHEMA, finite
from engine.runs.flat import flat
from tui_transformer.lab.escaping import csv_cell
from tui_transformer.lab.exports import huggingface, mlflow, tensorboard, wandb
from tui_transformer.lab.exports.recorded import ExportedRun

FIRST = ("run", "kind", "step", "tokens", "seconds")  # columns; others come as the records have them


def to_csv(runs: Sequence[ExportedRun]) -> str:
    """All metrics records of some runs, RFC 4180: one row each, one column for every number in any of them."""

    def cell(value: Any) -> Any:  # a number as it stands in the record, to the last digit
        return csv_cell(clean_line(value)) if isinstance(value, str) else value

    rows = [{"run": run.name} | dict(flat(line)) for run in runs for line in run.lines]
    columns = list(dict.fromkeys([*FIRST, *(name for row in rows for name in row)]))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(cell, columns))
    writer.writerows([cell(row.get(column)) for column in columns] for row in rows)
    return out.getvalue()


def to_json(runs: Sequence[ExportedRun]) -> str:
    """All that some runs say, but for their weights: one document."""
    documents = [
        {
            "name": run.name,
            "state": run.state,
            "badges": run.badges,
            "config": run.config.dump(),
            **{name: run.raw(name) for name in ("run", "model", "data", "environment", "summary")},
            "verdicts": [verdict.dump() for verdict in run.verdicts],
            **{stream: list(run.raw_lines(stream)) for stream in ("metrics", "samples", "events")},
        }
        for run in runs
    ]
    return json.dumps(finite({"schema": SCHEMA, "runs": documents}), ensure_ascii=True, indent=1) + "\n"


@dataclass(frozen=True)
class TextFormat:
    """A way to write runs down in one file, which is named like the format; `what` says for whom it is."""

    what: str
    write: Callable[[Sequence[ExportedRun]], str]


@dataclass(frozen=True)
class ToolFormat:
    """A way to give a run to another tool: what is made, and the packages of the extra that the first one names."""

    what: str
    make: Callable[[ExportedRun, Path, str], tuple[Path, str]]
    packages: tuple[str, ...] = ()

    def write(self, run: ExportedRun, out: Path, checkpoint: str) -> tuple[Path, str]:
        """Write a run into a folder, with the weights of a checkpoint (best, last, average or a step) if it takes any.

        Returns:
            Where it is now, and what to do with it.

        Raises:
            InputError: a package is missing; names the extra.
        """
        missing = [name for name in self.packages if find_spec(name) is None]
        if missing:
            tool = self.packages[0]
            raise InputError(
                f"export --to {tool} needs {' and '.join(missing)}: pip install 'tui-transformer[{tool}]' brings it; "
                "--to csv and --to json need nothing"
            )
        return self.make(run, out, checkpoint)


TEXTS = {
    "csv": TextFormat("a row a metrics record, all columns, for a spreadsheet or pandas", to_csv),
    "json": TextFormat("all that the runs say, but for their weights", to_json),
}
TOOLS = {
    "tensorboard": ToolFormat(
        "event files: scalars by step and time, config, samples", tensorboard.write, ("tensorboard",)
    ),
    "wandb": ToolFormat("a run of Weights & Biases, offline", wandb.write, ("wandb",)),
    "mlflow": ToolFormat("a run of MLflow, in a local database", mlflow.write, ("mlflow", "sqlalchemy", "alembic")),
    "huggingface": ToolFormat("weights, config, tokenizer and a model card", huggingface.write),
}
FORMATS: dict[str, TextFormat | ToolFormat] = {**TEXTS, **TOOLS}
