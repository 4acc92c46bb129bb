"""The user's settings: one small TOML file in the platform's config folder, never part of a run."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import tomli_w
from filelock import FileLock
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)

from engine.base.clean import clean, clean_line
from engine.base.errors import reason
from engine.base.language import Message, tr
from engine.base.plain_files import read_regular_file
from engine.runs.files import write_atomic
from tui_transformer.languages import settings_file

LARGEST = 64 * 1024  # bytes
LOCK_TIMEOUT = 2.0  # seconds for another studio to finish saving
MOST_KEPT = 32 * 1024  # bytes of kept designs; larger ones are not kept
T = TypeVar("T", bound=BaseModel)


def _lenient(kind: type[T]) -> WrapValidator:
    """What the studio wrote itself, unlike what a person wrote, is replaced by the default if it is damaged."""

    def checked(value: Any, handler: ValidatorFunctionWrapHandler, _: ValidationInfo) -> T:
        try:
            found: T = handler(value)
            if len(tomli_w.dumps(found.model_dump()).encode()) <= MOST_KEPT:
                return found
        except (ValidationError, RecursionError):
            pass
        return kind()

    return WrapValidator(checked)


def _is_clean_line(text: str) -> bool:
    return bool(text) and clean_line(text) == text


def _clean_line_or_empty(text: str) -> str:
    return text if _is_clean_line(text) else ""


def _showable(value: Any) -> bool:
    """Whether a value is a setting's, and has no character that a terminal would obey; a text may have lines."""
    if isinstance(value, str):
        return clean(value) == value
    if isinstance(value, list | tuple):
        return all(isinstance(part, str | int | float) and _showable(part) for part in value)
    return isinstance(value, bool | int | float)


class KeptDraft(BaseModel):
    """One design: a preset's changes."""

    on: Annotated[str, AfterValidator(_clean_line_or_empty)] = ""  # its base, for an overlay
    ranks: int = 1
    changes: dict[str, Any] = Field(default_factory=dict)  # dotted key → value

    @field_validator("changes")
    @classmethod
    def _only_showable(cls, changes: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in changes.items() if _is_clean_line(key) and _showable(value)}


class KeptDesign(BaseModel):
    """The Design pane, as it was left."""

    at: Annotated[str, AfterValidator(_clean_line_or_empty)] = (
        ""  # the preset shown last: its name, or the path of one's own
    )
    drafts: dict[str, Annotated[KeptDraft, _lenient(KeptDraft)]] = Field(default_factory=dict)  # changed ones, likewise

    @field_validator("drafts")
    @classmethod
    def _only_showable(cls, drafts: dict[str, KeptDraft]) -> dict[str, KeptDraft]:
        return {at: draft for at, draft in drafts.items() if _is_clean_line(at)}


class Slurm(BaseModel):
    options: list[str] = Field(default_factory=list)  # that sbatch needs at this site, such as --partition=gpu


class Settings(BaseModel):
    model_config = ConfigDict(extra="ignore", validate_assignment=True)

    # A title and a description put a setting on the settings screen.
    language: Literal["auto", "en", "zh"] = Field(
        "auto",
        title=Message("Language"),
        description=Message("The interface language; takes effect on next startup. auto follows your locale."),
    )
    theme: str = Field("studio-dark", title=Message("Theme"), description=Message("The studio's colours."))
    launch: Literal["thread", "process"] = Field(
        "thread",
        title=Message("Train"),
        description=Message(
            'Where f5 trains a run. In the studio, "On quitting" decides what happens to the run when you quit; in '
            "the background, the run keeps going."
        ),
    )
    on_quit: Literal["ask", "hand-over", "stop"] = Field(
        "ask",
        title=Message("On quitting"),
        description=Message("What happens to a run that is training in the studio when you quit."),
    )
    keys: dict[str, str] = Field(  # remapped keys, by the ids shown in the help
        default_factory=dict,
        title=Message("Keys"),
        description=Message("Press enter to see or change the key for each command."),
    )
    slurm: Slurm = Field(default_factory=Slurm)
    welcomed: bool = False
    pane: str = "design"  # the one shown last
    design: Annotated[KeptDesign, _lenient(KeptDesign)] = Field(default_factory=KeptDesign)


def load() -> tuple[Settings, str]:
    """Return the settings, and one line on errors in the file; wrong entries are ignored."""
    found, wrong = read(settings_file())
    return found, tr("{wrong}; using the default settings", wrong=wrong) if wrong else ""


def read(path: Path) -> tuple[Settings, str]:
    try:
        return Settings.model_validate(tomllib.loads(read_regular_file(path, LARGEST).decode("utf-8"))), ""
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
        path = path.resolve()
        with FileLock(path.with_name(".lock"), timeout=LOCK_TIMEOUT):  # another studio may be saving
            write_atomic(path, tomli_w.dumps(settings.model_dump()))
    except OSError as error:
        return tr(
            "{path} cannot be written: {strerror}; the setting will only last until you quit",
            path=path,
            strerror=reason(error),
        )
    return ""


def save_design(design: KeptDesign, before: KeptDesign | None = None) -> None:
    """Write what changed since `before` into the file as it now is, perhaps edited meanwhile, or written by another
    studio; say nothing if that fails.
    """
    now, wrong = read(settings_file())
    if wrong:
        return
    drafts, was = design.drafts, {} if before is None else before.drafts
    theirs = {at: draft for at, draft in now.design.drafts.items() if drafts.get(at) == was.get(at)}
    ours = {at: draft for at, draft in drafts.items() if draft != was.get(at)}
    kept = KeptDesign(at=design.at, drafts=theirs | ours)
    if now.design != kept:
        now.design = kept
        save(now)
