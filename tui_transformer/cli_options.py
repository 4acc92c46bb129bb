"""What several commands of the command line take, each option in one place."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer


def _folder(path: Path) -> Path:
    with suppress(ValueError):  # a zero byte, which whoever opens it complains about
        if os.path.lexists(path) and not path.is_dir():
            raise typer.BadParameter(f"{str(path)[:200]} is no folder; runs are folders in a folder")
    return path


RunsDir = Annotated[
    Path,
    typer.Option(
        "--runs-dir", envvar="TUI_TRANSFORMER_RUNS", help="Where runs are.", show_default=True, callback=_folder
    ),
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Where named corpora are looked for first.")]
PresetName = Annotated[str | None, typer.Option("--preset", "-p", help="A preset; `presets list` shows them.")]
On = Annotated[str | None, typer.Option("--on", help="Apply the preset's change to this base, e.g. demo.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", "-c", help="A TOML file instead of a preset.")]
Set = Annotated[list[str] | None, typer.Option("--set", "-s", help="Change one setting: model.n_heads=2")]
Corpus = Annotated[str | None, typer.Option("--corpus", help="A corpus by name, or any UTF-8 text file.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line on stdout.")]
Detach = Annotated[bool, typer.Option("--detach", help="Train in a process of its own and return at once.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:0 or mps.")]
RunArgument = Annotated[str, typer.Argument(help="A run's name, its path, or `last`.")]
RUNS = Path("runs")
