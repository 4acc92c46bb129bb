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

ENVIRONMENT = "TUI_TRANSFORMER_SETTINGS"  # a file other than the platform's
NAME = "settings.toml"
LARGEST = 64 * 1024  # bytes


class Settings(BaseModel):
    model_config = ConfigDict(extra="ignore", validate_assignment=True)

    # A title and a description put a setting on the settings screen.
    theme: str = Field("studio-dark", description="The colours of the studio.")
    launch: Literal["thread", "process"] = Field(
        "thread",
        title="Train",
        description="Where f5 trains a run. In the studio, quitting asks what to do with it; in the background it "
        "continues when the studio quits.",
    )
    on_quit: Literal["ask", "hand-over", "stop"] = Field(
        "ask", title="On quitting", description="What happens to a run that is training in the studio when you quit."
    )
    keys: dict[str, str] = Field(default_factory=dict)  # remapped keys, by the ids shown in the help
    welcomed: bool = False
    pane: Literal["design", "train", "compare", "playground"] = "design"  # the one shown last


def settings_file() -> Path:
    given = os.environ.get(ENVIRONMENT)
    return Path(given) if given else user_config_path("tui-transformer") / NAME


def load() -> tuple[Settings, str]:
    """Return the settings, and one line on errors in the file; wrong entries are ignored."""
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
    except ValueError as error:  # not UTF-8, or not TOML
        return Settings(), f"{path}: {error}"


def save(settings: Settings) -> str:
    """Write them; return one line if that fails.

    A file that cannot be read as settings is user work with a mistake, and stays.
    """
    path = settings_file()
    wrong = _read(path)[1]
    if wrong:
        return f"{wrong}; nothing is saved there"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path.resolve(), tomli_w.dumps(settings.model_dump()))
    except OSError as error:
        return f"{path} cannot be written: {error.strerror or error}; the setting lasts until you quit"
    return ""
