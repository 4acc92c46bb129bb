"""The user's settings: one small TOML file in the platform's config folder, never part of a run."""

import os
import tomllib
from pathlib import Path
from typing import Literal

import tomli_w
from platformdirs import user_config_path
from pydantic import BaseModel, ConfigDict, Field, ValidationError

ENVIRONMENT = "TUI_TRANSFORMER_SETTINGS"  # another file than the platform's
NAME = "settings.toml"


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
    """Where the settings are."""
    given = os.environ.get(ENVIRONMENT)
    return Path(given) if given else user_config_path("tui-transformer") / NAME


def load() -> tuple[Settings, str]:
    """The settings, and one line about what is wrong with the file; what is wrong counts as not said."""
    path = settings_file()
    try:
        return Settings.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))), ""
    except FileNotFoundError:
        return Settings(), ""
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return Settings(), f"{path}: {where}: {first['msg']}; the usual settings are used"
    except (OSError, ValueError, RecursionError) as error:  # no TOML, not UTF-8, a number of 5,000 digits, too deep
        return Settings(), f"{path}: {error}; the usual settings are used"


def save(settings: Settings) -> str:
    """Write them; gives back one line where that is not possible.

    A file that cannot be read as settings is somebody's work with a mistake in it, and stays.
    """
    path = settings_file()
    if load()[1]:
        return f"{path} has a mistake in it, so nothing is saved there"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text(tomli_w.dumps(settings.model_dump()), encoding="utf-8")
        new.replace(path)
    except OSError as error:
        return f"{path}: {error.strerror or error}; the setting holds until you quit"
    return ""
