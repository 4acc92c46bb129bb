"""All formats of `export`, in two tables: texts of some runs together, and other tools, a run at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_transformer.lab.exports import huggingface, mlflow, tables, tensorboard, wandb
from tui_transformer.lab.exports.recorded import Recorded


@dataclass(frozen=True)
class TextFormat:
    """A way to write runs down in one file, which is named like the format.

    Args:
        what: for whom it is.
        write: its text.
    """

    what: str
    write: Callable[[Sequence[Recorded]], str]


@dataclass(frozen=True)
class ToolFormat:
    """A way to give a run to another tool.

    Args:
        what: what is made.
        write: (run, folder, checkpoint) → where it is now, and what to do with it.
    """

    what: str
    write: Callable[[Recorded, Path, str], tuple[Path, str]]


TEXTS = {
    "csv": TextFormat("a row a metrics record, all columns, for a spreadsheet or pandas", tables.to_csv),
    "json": TextFormat("all that the runs say, but for their weights", tables.to_json),
}
TOOLS = {
    "tensorboard": ToolFormat("event files: scalars by step and time, config, samples", tensorboard.write),
    "wandb": ToolFormat("a run of Weights & Biases, offline", wandb.write),
    "mlflow": ToolFormat("a run of MLflow, in a local database", mlflow.write),
    "huggingface": ToolFormat("weights, config, tokenizer and a model card", huggingface.write),
}
FORMATS: dict[str, TextFormat | ToolFormat] = {**TEXTS, **TOOLS}
