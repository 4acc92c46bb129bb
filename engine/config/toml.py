"""Read and write configs as TOML, with a one-line error for anything invalid.

Size and depth are capped: deep nesting and very long dotted keys cost a TOML parser seconds or its stack.
"""

import re
import tomllib
from datetime import date, time
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from engine.base.errors import InputError, did_you_mean, join_or, reason
from engine.base.language import Message, tr
from engine.base.matched_messages import MatchedMessage
from engine.base.plain_files import open_regular_file
from engine.config import Tables
from engine.config.keys import flatten, later_defaults, unknown_key_message
from engine.config.schema import RowFacts, RunConfig

MAX_BYTES = 64 * 1024
# Pydantic's messages about a value, translated when they are shown.
PYDANTIC_MESSAGES = (
    Message("should be a valid integer"),
    Message("should be a valid integer, got a number with a fractional part"),
    Message("should be a valid number"),
    Message("should be a finite number"),
    Message("should be a valid boolean"),
    Message("should be a valid string"),
    Message("should be a valid list"),
    Message("should be a valid dictionary"),
    Message("should be a valid dictionary or instance of {class_name}"),
    Message("should be greater than {gt}"),
    Message("should be greater than or equal to {ge}"),
    Message("should be less than {lt}"),
    Message("should be less than or equal to {le}"),
    Message("String should have at least {min_length} character"),
    Message("String should have at most {max_length} characters"),
    Message("Field required"),
)
PARSER_SUFFIX = ", unable"  # where pydantic's message continues with what its parser could not do
MAX_DEPTH = 32
_COMMA = re.compile(r"[+-]?[0-9]{1,20}(,[0-9]{1,20})+")
_LONG_KEY = re.compile(rb"^(?:[^#=\n]{2000,}|[^#=\n]*(?:\.[^#=\n.]*){64,})", re.MULTILINE)


def read_toml(path: Path) -> Tables:
    try:
        with open_regular_file(path) as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(
            Message("{path}: cannot read this config: {strerror}", path=path, strerror=reason(error))
        ) from None
    if len(raw) > MAX_BYTES:
        message = Message(
            "{path}: larger than {max_bytes} KiB; a config is a few lines of TOML",
            path=path,
            max_bytes=MAX_BYTES // 1024,
        )
        raise InputError(message)
    return parse(raw, str(path))


def parse(raw: bytes, where: str) -> Tables:
    """Return the tables of a TOML text; `where` names it in errors. A date, which no setting is, becomes text."""
    deepest = max((line.count(b"[") + line.count(b"{") for line in raw.splitlines()), default=0)
    if deepest > MAX_DEPTH or _LONG_KEY.search(raw):
        raise InputError(Message("{where}: nested too deeply; sections are one level deep, e.g. [model]", where=where))
    try:
        return {key: _undated(value) for key, value in tomllib.loads(raw.decode("utf-8")).items()}
    except UnicodeDecodeError as error:
        message = Message(
            "{where}: not UTF-8 at byte {start}; save the file as UTF-8 text", where=where, start=error.start
        )
        raise InputError(message) from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InputError(Message("{where}: not valid TOML: {error}", where=where, error=error)) from None


def _undated(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _undated(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_undated(inner) for inner in value]
    return value.isoformat() if isinstance(value, date | time) else value  # a datetime is a date


def validate(data: Tables, where: str) -> RunConfig:
    try:
        return RunConfig.model_validate(dict(data))
    except ValidationError as error:
        raise InputError(f"{where}: {_first_error(error)}") from None
    except RecursionError:
        raise InputError(Message("{where}: nested too deeply; sections are one level deep", where=where)) from None


def resolve_config(
    config: RunConfig, where: str, *, vocab_size: int, threads: int, train_tokens: int, rows: RowFacts | None = None
) -> RunConfig:
    """Call `RunConfig.resolved`, where impossible durations and counts may first show."""
    try:
        return config.resolved(vocab_size=vocab_size, threads=threads, train_tokens=train_tokens, rows=rows)
    except ValidationError as error:
        message = Message("{where}: with this corpus and batch size, {first}", where=where, first=_first_error(error))
        raise InputError(message) from None


def config_toml(config: RunConfig) -> str:
    """Return the text of a config file; see `later_field` in `fields` for what it leaves out."""
    data = config.dump()
    for key, default in later_defaults().items():
        section, name = key.split(".")
        if data[section].get(name) == default:
            data[section].pop(name, None)
    return tomli_w.dumps(data)


def _first_error(error: ValidationError) -> str:
    problems = error.errors(include_url=False)
    # An unknown key explains more than the errors it causes.
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return unknown_key_message(key)
    value = problem.get("input")
    if problem["type"] == "literal_error":
        expected = problem.get("ctx", {}).get("expected", "")
        known = [a or b for a, b in re.findall(r"'([^']*)'|\b(\d+)\b", expected)]
        return tr(
            "{key} = {shown}: must be {known}{nearest}",
            key=key,
            shown=short_repr(value),
            known=join_or(known),
            nearest=did_you_mean(str(value), known),
        )
    row = ".".join(str(part) for part in problem["loc"] if not isinstance(part, int))
    usual = flatten(RunConfig().dump()).get(row)
    if isinstance(usual, list) and (row != key or problem["type"] in ("tuple_type", "too_long", "too_short")):
        return tr("{row}: must be {n} values, e.g. {usual}", row=row, n=len(usual), usual=usual)
    if problem["type"] == "value_error":
        return f"{key}: {tr(MatchedMessage(problem['msg'].removeprefix('Value error, ')))}"
    message = translate_pydantic(problem["msg"])
    if isinstance(value, str) and _COMMA.fullmatch(value):
        thousands = re.fullmatch(r"[1-9][0-9]{0,2}(,[0-9]{3})+", value)
        message += tr("; did you mean {value}?", value=value.replace(",", "") if thousands else value.replace(",", "."))
    return f"{key} = {short_repr(value)}: {message}"


def translate_pydantic(message: str) -> str:
    """Pydantic's message about a value of the wrong kind, without the parser's part; any other message as it is."""
    about = message.removeprefix("Input ")
    return tr(MatchedMessage(about.partition(PARSER_SUFFIX)[0] if about.startswith("should be ") else about))


def short_repr_or_unset(value: Any) -> str:
    """Return a setting's value for a message, or that it is not set."""
    return tr("unset") if value is None or value in ("", {}, []) else short_repr(value)


def short_repr(value: Any) -> str:
    """Return a value shortened for an error message."""
    try:
        text = repr(value)
    except RecursionError:
        return tr("a very deeply nested value")
    return text if len(text) <= 60 else text[:57] + "…"
