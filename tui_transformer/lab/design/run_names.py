"""A run's name, from what it changes: `demo-no-pe`, `demo-heads2-lr1e-3`."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import PurePath
from typing import Any

from engine.config import presets
from engine.config.keys import flatten, is_bookkeeping
from engine.config.schemes import SCHEMES

MAX_NAMED = 3  # changes named one by one
MAX_CHANGE = 24  # characters of one change
# Settings named by their value alone.
KEYLESS_SETTINGS = (*SCHEMES, "data.corpus", "model.architecture", "objective.kind", "train.precision")


def run_name(preset: str, changes: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Name a run of `preset`, or of `overlay@base`, with changes on top; not yet numbered where it is taken.

    `values` are those of all its settings: `post-norm` also leaves out the last norm.
    """
    overlay, _, base = preset.partition("@")
    parts = [base, overlay] if base else [overlay]
    parts += _change_names({key: value for key, value in changes.items() if not is_bookkeeping(key)}, values)
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(parts)).strip(".-")[:80] or "run"


def _change_names(changes: Mapping[str, Any], values: Mapping[str, Any]) -> Iterable[str]:
    left, found = dict(changes), list[str]()
    if not left:  # the first screen need not wait for the presets to be read
        return found
    for name, own in _one_change_presets().items():
        if own.keys() & left.keys() and own.items() <= values.items():
            found.append(name)
            left = {key: value for key, value in left.items() if key not in own}
    found += [_change_name(key, value) for key, value in left.items()]
    return found if len(found) <= MAX_NAMED else [*found[: MAX_NAMED - 1], f"{len(found) - MAX_NAMED + 1}more"]


@cache
def _one_change_presets() -> Mapping[str, Mapping[str, Any]]:
    """What each preset of one change to the baseline sets, the most specific first."""
    own = {one.name: flatten(one.tables) for one in presets.list_presets() if one.extends == "baseline"}
    kept = {name: {key: v for key, v in all_.items() if key != "description"} for name, all_ in own.items()}
    return dict(sorted(kept.items(), key=lambda item: -len(item[1])))


def _change_name(key: str, value: Any) -> str:
    what = key.rpartition(".")[2].removeprefix("n_").removesuffix("_length").removesuffix("_size")
    what = what.replace("_", "-") if isinstance(value, str | bool) else what
    if isinstance(value, bool):
        return what if value else f"no-{what}"
    if isinstance(value, int | float):
        number = f"{value:.0e}" if 0 < value < 0.01 and float(f"{value:.0e}") == value else f"{value:g}"
        return f"{what}{value if isinstance(value, int) else number.replace('e-0', 'e-')}"
    text = str(value) if not isinstance(value, list | tuple) else "-".join(map(str, value))
    if key == "data.corpus":
        text = PurePath(text.partition(",")[0]).stem
    said = f"no-{what}" if text == "none" else text if key in KEYLESS_SETTINGS else f"{what}-{text}"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", said)[:MAX_CHANGE].strip("-.") or what
