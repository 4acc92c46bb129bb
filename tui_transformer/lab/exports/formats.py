"""All formats of `export`: text files for several runs, and other tools, one run each."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from engine.base.clean import clean_line
from engine.base.errors import InputError, join_and, join_or
from engine.base.language import Message
from engine.runs.files import SCHEMA, flat_items, replace_non_finite
from tui_transformer.lab.escaping import csv_cell
from tui_transformer.lab.exports import huggingface, mlflow, package, tensorboard, wandb
from tui_transformer.lab.exports.recorded import ExportedRun

PART = 1 << 16  # characters written at a time
FIRST = ("run", "kind", "step", "tokens", "seconds")  # columns; others come as the records have them


def metrics_to_csv(runs: Sequence[ExportedRun]) -> Iterator[str]:
    """All metrics records of some runs, RFC 4180: one row each, one column per number in any of them. Yielded in
    parts: the files are read twice, first for the columns, so that memory does not grow with the records.
    """

    def cell(value: Any) -> Any:  # a number as it stands in the record, to the last digit
        return csv_cell(clean_line(value)) if isinstance(value, str) else value

    columns, counts = dict.fromkeys(FIRST), [0] * len(runs)
    for i, run in enumerate(runs):
        for counts[i], (_, line) in enumerate(run.read_metrics(), 1):
            columns.update(dict.fromkeys(name for name, _ in flat_items(line)))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(cell, columns))
    for run, count in zip(runs, counts, strict=True):
        for _, line in islice(run.read_metrics(), count):  # a live run may have more by now
            row = {"run": run.name} | dict(flat_items(line))
            writer.writerow([cell(row.get(column)) for column in columns])
            if out.tell() > PART:
                yield out.getvalue()
                out.seek(0)
                out.truncate()
    yield out.getvalue()


def to_json(runs: Sequence[ExportedRun]) -> str:
    """Everything about some runs but weights, in one document."""
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
    return json.dumps(replace_non_finite({"schema": SCHEMA, "runs": documents}), ensure_ascii=True, indent=1) + "\n"


TEXTS: Mapping[str, Callable[[Sequence[ExportedRun]], Iterable[str]]] = {
    "csv": metrics_to_csv,
    "json": lambda runs: [to_json(runs)],
}
# Each with the packages it needs, from the extra named after the first.
TOOLS: Mapping[str, tuple[Callable[[ExportedRun, Path, str], tuple[Path, str]], tuple[str, ...]]] = {
    "tensorboard": (tensorboard.write, ("tensorboard",)),
    "wandb": (wandb.write, ("wandb",)),
    "mlflow": (mlflow.write, ("mlflow", "sqlalchemy", "alembic")),
    "huggingface": (huggingface.write, ()),
    "package": (package.write, ()),
}
FORMATS = (*TEXTS, *TOOLS)


def write(tool: str, run: ExportedRun, out: Path, checkpoint: str) -> tuple[Path, str]:
    """Write a run into a folder, with a checkpoint's weights if the tool takes any.

    Returns where it is now and what to do with it; raises InputError if a package is missing.
    """
    make, packages = TOOLS[tool]
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise InputError(
            Message(
                "export --to {tool} needs {missing}: run pip install 'tui-transformer[{tool}]'; --to {texts} "
                "needs nothing extra",
                tool=tool,
                missing=join_and(missing),
                texts=join_or(TEXTS),
            )
        )
    return make(run, out, checkpoint)
