"""The user's settings: one small TOML file in the platform's config folder, never part of a run."""

import os
import tomllib
from pathlib import Path
from typing import Literal

import tomli_w
from platformdirs import user_config_path
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.plain_files import read_plain
from engine.runs.files import write_atomic

ENVIRONMENT = "TUI_TRANSFORMER_SETTINGS"  # another file than the platform's
NAME = "settings.toml"
LARGEST = 64 * 1024  # bytes


class Settings(BaseModel):
    """What a person prefers.

    `launch` is what the launch key does. `on_quit` is what becomes of a run that trains in the app's own thread.
    `keys` gives bindings other keys, by the ids that the help shows.
    """

    model_config = ConfigDict(extra="ignore", validate_assignment=True)

    launch: Literal["thread", "process"] = "thread"
    on_quit: Literal["ask", "hand-over", "stop"] = "ask"
    theme: str = "studio-dark"
    keys: dict[str, str] = Field(default_factory=dict)
    welcomed: bool = False


def settings_file() -> Path:
    given = os.environ.get(ENVIRONMENT)
    return Path(given) if given else user_config_path("tui-transformer") / NAME


def load() -> tuple[Settings, str]:
    """The settings, and one line about what is wrong with the file; what is wrong counts as not said."""
    found, wrong = _read(settings_file())
    return found, f"{wrong}; the usual settings are used" if wrong else ""


def _read(path: Path) -> tuple[Settings, str]:
    try:
        return Settings.model_validate(tomllib.loads(read_plain(path, LARGEST).decode("utf-8"))), ""
    except FileNotFoundError:
        return Settings(), ""
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return Settings(), f"{path}: {where}: {first['msg']}"
    except OSError as error:
        return Settings(), f"{path} cannot be read: {error.strerror or error}"
    except RecursionError:
        return Settings(), f"{path}: nested too deep"
    except ValueError as error:  # no UTF-8, or no TOML
        return Settings(), f"{path}: {error}"


def save(settings: Settings) -> str:
    """Write them; gives back one line where that is not possible.

    A file that cannot be read as settings is somebody's work with a mistake in it, and stays.
    """
    path = settings_file()
    wrong = _read(path)[1]
    if wrong:
        return f"{wrong}; nothing is saved there"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path.resolve(), tomli_w.dumps(settings.model_dump()))
    except OSError as error:
        return f"{path} cannot be written: {error.strerror or error}; the setting holds until you quit"
    return ""
