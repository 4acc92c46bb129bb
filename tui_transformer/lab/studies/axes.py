"""Axes: `--vary model.n_heads=1,2,4,8` as variants of a study; several axes make a grid."""

import itertools
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from engine.config.keys import all_keys, flatten, parse_value, unknown_key
from engine.config.schema import RunConfig
from engine.errors import InputError
from tui_transformer.lab.studies.study import MOST_RUNS, Variant

LONGEST = 40  # characters of a value in a variant's name


def parse_axis(text: str) -> tuple[str, tuple[Any, ...]]:
    """`KEY=VALUE,VALUE…` as the key and its values; a value is TOML, and what is not TOML is text.

    Raises:
        InputError: no `=`, an unknown key, fewer than two values.
    """
    key, equals, values = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise InputError(f"--vary {text[:80]!r}: write KEY=VALUE,VALUE, e.g. --vary model.n_heads=1,2,4,8")
    if key == "seed":
        raise InputError("--vary seed: seeds are no variants; --seeds 5, or --seeds 1,5,9")
    if key not in all_keys():
        raise InputError(f"--vary {text[:80]}: {unknown_key(key)}")
    found = _values(values)
    if len(found) < 2:
        raise InputError(f"--vary {text[:80]}: give at least two values, e.g. --vary {key}={values.strip()},…")
    return key, found


def _values(text: str) -> tuple[Any, ...]:
    try:  # a list keeps commas inside its values: [0.9, 0.95], [0.9, 0.98]
        return tuple(tomllib.loads(f"values = [{text}]")["values"])
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return tuple(parse_value(part.strip()) for part in text.split(",") if part.strip())


def grid(axes: Mapping[str, Sequence[Any]]) -> tuple[Variant, ...]:
    """A variant for each combination, the last axis fastest; named by key and value: `n_heads-2.position-rope`.

    Raises:
        InputError: more combinations than a study can have.
    """
    count = math.prod(len(values) for values in axes.values())
    if count > MOST_RUNS:
        raise InputError(f"--vary: {count:,} combinations; a study has at most {MOST_RUNS:,} runs")
    lasts = [key.rpartition(".")[2] for key in axes]
    shown = {key: last if lasts.count(last) == 1 else key for key, last in zip(axes, lasts, strict=True)}
    return tuple(
        Variant(
            ".".join(f"{shown[key]}-{_word(value)}" for key, value in zip(axes, values, strict=True)),
            changes=dict(zip(axes, values, strict=True)),
        )
        for values in itertools.product(*axes.values())
    )


def baseline_of(variants: Sequence[Variant], base: RunConfig) -> str:
    """The variant that asks for what the base has anyway; the first where none does."""
    own = flatten(base.dump())
    same = (v.name for v in variants if all(own.get(key) == value for key, value in v.changes.items()))
    return next(same, variants[0].name)


def _word(value: Any) -> str:
    """A value as a legal part of a run's name."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-")[:LONGEST] or "none"
