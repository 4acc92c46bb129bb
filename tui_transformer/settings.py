"""The user's settings: one small TOML file in the platform's config folder, never part of a run."""

import tomllib
from pathlib import Path
from typing import Literal

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.errors import reason
from engine.language import tr
from engine.plain_files import read_plain
from engine.runs.files import write_atomic
from tui_transformer.languages import settings_file

LARGEST = 64 * 1024  # bytes


class Slurm(BaseModel):
    options: list[str] = Field(default_factory=list)  # that sbatch needs at this site, such as --partition=gpu


class Settings(BaseModel):
    model_config = ConfigDict(extra="ignore", validate_assignment=True)

    # A title and a description put a setting on the settings screen.
    language: Literal["auto", "en", "zh"] = Field(
        "auto",
        title=tr("Language"),
        description=tr("The interface language; takes effect at the next start. auto follows your locale."),
    )
    theme: str = Field("studio-dark", title=tr("Theme"), description=tr("The studio's colours."))
    launch: Literal["thread", "process"] = Field(
        "thread",
        title=tr("Train"),
        description=tr(
            'Where f5 trains a run. In the studio, "On quitting" decides what happens to the run when you quit; in '
            "the background, the run keeps going."
        ),
    )
    on_quit: Literal["ask", "hand-over", "stop"] = Field(
        "ask",
        title=tr("On quitting"),
        description=tr("What happens to a run that is training in the studio when you quit."),
    )
    keys: dict[str, str] = Field(default_factory=dict)  # remapped keys, by the ids shown in the help
    slurm: Slurm = Field(default_factory=Slurm)
    welcomed: bool = False
    pane: str = "design"  # the one shown last


def load() -> tuple[Settings, str]:
    """Return the settings, and one line on errors in the file; wrong entries are ignored."""
    found, wrong = read(settings_file())
    return found, tr("{wrong}; using the default settings", wrong=wrong) if wrong else ""


def read(path: Path) -> tuple[Settings, str]:
    try:
        return Settings.model_validate(tomllib.loads(read_plain(path, LARGEST).decode("utf-8"))), ""
    except FileNotFoundError:
        return Settings(), ""
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return Settings(), f"{path}: {where}: {first['msg']}"
    except OSError as error:
        return Settings(), tr("{path} cannot be read: {strerror}", path=path, strerror=reason(error))
    except RecursionError:
        return Settings(), tr("{path}: nested too deeply", path=path)
    except ValueError as error:  # not UTF-8, or not TOML
        return Settings(), f"{path}: {error}"


def save(settings: Settings) -> str:
    """Write them; return one line if that fails.

    A file that cannot be read as settings is user work with a mistake, and stays.
    """
    path = settings_file()
    wrong = read(path)[1]
    if wrong:
        return tr("{wrong}; the setting was not saved", wrong=wrong)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path.resolve(), tomli_w.dumps(settings.model_dump()))
    except OSError as error:
        return tr(
            "{path} cannot be written: {strerror}; the setting will only last until you quit",
            path=path,
            strerror=reason(error),
        )
    return ""
