"""Options and arguments that several commands share, and the shell completion of their values."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.base.command_line import DEFAULT_RUNS_DIR, RUNS_VARIABLE
from engine.base.errors import InputError, did_you_mean, join_or
from engine.base.language import Message, tr

if TYPE_CHECKING:
    from engine.data.text_files import Reading


def require_encoding(encoding: str) -> None:
    """Raise InputError for an encoding in which files cannot be read."""
    from engine.data.text_files import ENCODINGS

    if encoding not in ENCODINGS:
        known, hint = join_or(ENCODINGS), did_you_mean(encoding, ENCODINGS)
        raise InputError(
            Message("--encoding {encoding}: must be {known}{hint}", encoding=encoding[:40], known=known, hint=hint)
        )


def make_reading(encoding: str, *, keeps_cr: bool = False) -> "Reading":
    """Return how the user's own files are read. Raises InputError: no such encoding."""
    from engine.data.text_files import Reading

    require_encoding(encoding)
    return Reading(encoding=encoding, keeps_cr=keeps_cr, option="--encoding ")


def _folder(path: Path) -> Path:
    with suppress(ValueError):  # a zero byte: opening it reports that
        if os.path.lexists(path) and not path.is_dir():
            raise typer.BadParameter(
                tr("{path} is not a folder; name the folder that holds the runs", path=str(path)[:200])
            )
    return path


# Names for shell completion; none if they cannot be read, because an error must not print into the user's line.


def preset_names() -> list[str]:
    from engine.config.presets import list_presets

    return [preset.name for preset in list_presets()]


def corpus_names() -> list[str]:
    from engine.data.known import CORPORA

    return list(CORPORA)


def run_names(context: typer.Context) -> list[str]:
    """Return the runs in the folder given on the line so far, and `last`."""
    from engine.runs.reader import list_runs

    with suppress(InputError, OSError):
        names = [run.name for run in list_runs(_runs_dir(context))]
        return [*names, "last"] if names else []
    return []


def study_names(context: typer.Context) -> list[str]:
    """Return the studies started in that folder, and the built-in ones."""
    from tui_transformer.lab.work.study import shipped_studies
    from tui_transformer.lab.work.study_files import started_studies

    with suppress(OSError):
        return [*started_studies(_runs_dir(context)), *shipped_studies()]
    return []


def run_and_study_names(context: typer.Context) -> list[str]:
    from tui_transformer.lab.work.study_files import started_studies

    with suppress(OSError):
        return [*run_names(context), *started_studies(_runs_dir(context))]
    return []


def _runs_dir(context: typer.Context) -> Path:
    return Path(context.params.get("runs_dir") or DEFAULT_RUNS_DIR)


RunsDir = Annotated[
    Path,
    typer.Option("--runs-dir", envvar=RUNS_VARIABLE, help="The runs folder.", show_default=True, callback=_folder),
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder to search first for named corpora and for texts that have moved."),
]
PresetName = Annotated[
    str | None, typer.Option("--preset", "-p", help="A preset; see `presets list`.", autocompletion=preset_names)
]
On = Annotated[
    str | None,
    typer.Option("--on", help="Apply the preset's change to this base, e.g. demo.", autocompletion=preset_names),
]
ConfigFile = Annotated[Path | None, typer.Option("--config", "-c", help="A TOML file instead of a preset.")]
Set = Annotated[list[str] | None, typer.Option("--set", "-s", help="Change one setting: model.n_heads=2")]
Corpus = Annotated[
    str | None, typer.Option("--corpus", help="A corpus name, or any UTF-8 text file.", autocompletion=corpus_names)
]
Until = Annotated[
    str | None, typer.Option("--until", help="When to stop: a time of day (03:50) or a duration (3h50m).")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per line to stdout.")]
Detach = Annotated[bool, typer.Option("--detach", help="Train in the background and return at once.")]
Encoding = Annotated[
    str,
    typer.Option("--encoding", help="Encoding of your files, such as big5; auto: UTF-8, or by byte-order mark."),
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:0 or mps.")]
RanksOption = Annotated[
    int, typer.Option("--ranks", min=1, help="Number of devices or processes on this machine to train with.")
]
SlurmOptions = Annotated[
    str | None, typer.Option("--slurm", help='Options for sbatch, e.g. "--partition=gpu --gres=gpu:1".')
]
RunArgument = Annotated[str, typer.Argument(help="A run's name or path, or `last`.", autocompletion=run_names)]
