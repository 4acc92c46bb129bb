"""Dotted keys (`model.n_heads`): which exist, how two configs differ, and `--set` on the command line."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from pydantic.fields import FieldInfo

from engine.base.errors import InputError, did_you_mean, join_or
from engine.base.language import Message, tr
from engine.config import Tables
from engine.config.fields import Doc, Section
from engine.config.schema import RunConfig
from engine.config.schemes import SCHEMES, Part


@cache
def _fields() -> dict[str, FieldInfo]:
    """Return the declaration of each setting, by dotted key."""

    def walk(section: type[Section], prefix: str) -> Iterator[tuple[str, FieldInfo]]:
        for name, field in section.model_fields.items():
            key, kind = prefix + (field.alias or name), field.annotation
            if isinstance(kind, type) and issubclass(kind, Section):
                yield from walk(kind, key + ".")
            else:
                yield key, field

    return dict(walk(RunConfig, ""))


@cache
def _marked(mark: str) -> frozenset[str]:
    """Return the dotted keys of the settings declared with a mark, such as "bookkeeping"."""
    extras = ((key, field.json_schema_extra) for key, field in _fields().items())
    return frozenset(key for key, extra in extras if isinstance(extra, dict) and extra.get(mark))


@cache
def all_keys() -> dict[str, bool]:
    """Return every dotted key of a config, with whether it is bookkeeping."""
    return {key: key in _marked("bookkeeping") for key in _fields()}


@cache
def later_defaults() -> Tables:
    """Return the default of each setting that earlier versions lack, by dotted key."""
    usual, later, fields = flatten(RunConfig().dump()), _marked("later"), _fields().items()
    return {key: usual.get(key) for key, one in fields if key in later or isinstance(one.json_schema_extra, Part)}


@cache
def _descriptions() -> dict[str, Doc]:
    """Return the `Doc` of each setting, by dotted key."""
    parts = ((key, field.json_schema_extra) for key, field in _fields().items())
    found = {key: said for key, field in _fields().items() for said in field.metadata if isinstance(said, Doc)}
    return found | {key: Doc(part.sentence, part.options) for key, part in parts if isinstance(part, Part)}


def sentence_of(key: str, value: str | None = None) -> str:
    """Return the sentence on a setting, or on its value, in the language in use; "" if the value has none."""
    said = _descriptions().get(key, Doc(""))
    if value is None:
        return tr(said.sentence)
    return tr(SCHEMES[key][value].sentence if value in SCHEMES.get(key, {}) else said.options.get(value, ""))


def is_bookkeeping(key: str) -> bool:
    return all_keys().get(key, False)


def flatten(data: Tables, prefix: str = "") -> Tables:
    flat: Tables = {}
    for name, value in data.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def diff(a: RunConfig, b: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ, bookkeeping aside: dotted key → (value in a, value in b); None where unset."""
    left, right = flatten(a.dump()), flatten(b.dump())
    found = {key: (left.get(key), right.get(key)) for key, bookkeeping in all_keys().items() if not bookkeeping}
    return {key: (one, other) for key, (one, other) in found.items() if one != other}


def fixed_settings(config: RunConfig) -> Tables:
    """Return the settings that are fixed from a run's first checkpoint on, by dotted key: all but the editable ones. As
    in a file, those that earlier versions lack are left out at their defaults.
    """
    later, flat = later_defaults(), flatten(config.dump()).items()
    return {k: v for k, v in flat if k not in _marked("editable") and (k not in later or v != later[k])}


def changed_settings(recorded: Tables, config: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Return the recorded `fixed_settings` that have since changed: dotted key → (recorded, now), None where unset."""
    was, now = (later_defaults() | kept for kept in (recorded, fixed_settings(config)))
    keys = sorted(key for key in was.keys() | now.keys() if was.get(key) != now.get(key))
    return {key: (was.get(key), now.get(key)) for key in keys if key not in _marked("editable")}


_WHOLE = re.compile(r"[+-]?[0-9]+[eE]\+?[0-9]+")  # 1e3, which TOML reads as a float


def closest_key(leaf: str) -> str:
    """Return the dotted key whose last part is closest to `leaf`; "" if none is close."""
    by_leaf = {key.split(".")[-1]: key for key in reversed(list(all_keys()))}
    close = difflib.get_close_matches(leaf, by_leaf, n=1, cutoff=0.6)
    return by_leaf[close[0]] if close else ""


def unknown_key_message(key: str) -> str:
    """Return one line about an unknown key, with the nearest known one."""
    known = list(all_keys())
    sections = list(dict.fromkeys(k.split(".")[0] for k in known))
    section, _, leaf = key.partition(".")
    if key in sections:
        example = next(k for k in known if k.startswith(key + "."))
        return tr("'{key}' is a section; name one of its keys, e.g. {example}", key=key, example=example)
    candidates = [k for k in known if k.startswith(section + ".")] if leaf else sections
    hint = did_you_mean(key, candidates)
    if not hint:  # the right name in the wrong section
        close = closest_key(leaf or section)
        hint = tr("; did you mean '{close}'?", close=close) if close else did_you_mean(key, known)
    return tr(
        "unknown key '{key}'{hint}",
        key=key[:80],
        hint=hint or tr("; keys start with {sections}", sections=join_or(sections)),
    )


def parse_override(text: str) -> Tables:
    """Parse `a.b=c` into nested tables. The value is TOML, or else plain text (`position=rope`)."""
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise InputError(Message("--set {text!r}: write KEY=VALUE, e.g. --set model.n_heads=2", text=text[:80]))
    if key not in all_keys():
        raise InputError(f"--set {text[:80]}: {unknown_key_message(key)}")
    section, _, name = key.rpartition(".")
    table = {name: parse_value(value.strip())}
    return {section: table} if section else table


def parse_overrides(texts: Iterable[str]) -> list[Tables]:
    return [parse_override(text) for text in texts]


def parse_value(text: str) -> Any:
    if len(text) > 10_000:
        raise InputError(Message("--set: the value {text!r}… is longer than 10,000 characters", text=text[:40]))
    try:
        value = tomllib.loads(f"value = {text}")["value"] if "\n" not in text else text
        return int(value) if _WHOLE.fullmatch(text) and abs(float(value)) < 1e15 else value
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return text
