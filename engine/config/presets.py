"""Presets: named TOML files that extend each other.

A *base* is complete. An *overlay* has `extends = "…"` and its changes; `on` applies the same changes to another base.
`list_presets` reads only names and first lines, so listing validates nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.base.command_line import command_line
from engine.base.errors import InputError, did_you_mean
from engine.base.language import Message, tr
from engine.config import Tables

if TYPE_CHECKING:
    from engine.config.schema import RunConfig

MAX_CHAIN = 16


@dataclass(frozen=True)
class Preset:
    """One preset file: its name, what it extends, its one-line description, and its own tables."""

    name: str
    extends: str | None
    description: str
    tables: Tables


@cache
def folder() -> Path:
    """Return the folder of the shipped presets: beside the packages in a checkout, inside the app once installed."""
    root = Path(__file__).resolve().parents[2]
    beside, inside = root / "presets", root / "tui_transformer" / "presets"
    return beside if (beside / "baseline.toml").exists() else inside


def load(path: Path) -> Preset:
    from engine.config.toml import read_toml  # kept out of `presets list`, which must start fast

    return _preset(path.stem, read_toml(path), str(path))


def _preset(name: str, tables: Tables, where: str) -> Preset:
    extends = tables.pop("extends", None)
    description = tables.get("description", "")
    if extends is not None and not isinstance(extends, str):
        message = Message(
            "{where}: extends = {extends!r}: must be the name of a preset, e.g. 'baseline'",
            where=where,
            extends=extends,
        )
        raise InputError(message)
    if not isinstance(description, str):
        message = Message("{where}: description = {description!r}: must be text", where=where, description=description)
        raise InputError(message)
    return Preset(name, extends, description, tables)


def list_presets() -> list[Preset]:
    """Return the shipped presets, by name. Only parses TOML, without validation, so that listing is instant."""
    import tomllib

    return [
        _preset(path.stem, tomllib.loads(path.read_text(encoding="utf-8")), str(path))
        for path in sorted(folder().glob("*.toml"))
    ]


def find(name: str) -> Preset:
    """Return the shipped preset of that name. Raises InputError: no such preset; suggests the nearest one."""
    return _find_in(folder(), name)


@cache  # shipped presets do not change, and every edit of a design resolves an overlay again
def _find_in(where: Path, name: str) -> Preset:
    names = [path.stem for path in sorted(where.glob("*.toml"))]
    if name not in names:
        listing = command_line("presets", "list")
        hint = did_you_mean(name, names) or tr("; `{command_line}` lists them", command_line=listing)
        raise InputError(Message("no preset named '{name}'{hint}", name=name[:80], hint=hint))
    return load(where / f"{name}.toml")


def extends_chain(preset: Preset) -> list[Preset]:
    """Return the preset and what it extends, base first. Raises InputError: an unknown or cyclic `extends`."""
    links = [preset]
    while (parent := links[-1].extends) is not None:
        if parent in [link.name for link in links] or len(links) >= MAX_CHAIN:
            path = " → ".join([link.name for link in links] + [parent])
            raise InputError(Message("preset '{name}': circular extends: {path}", name=preset.name, path=path))
        links.append(find(parent))
    return links[::-1]


def overlay_chain(name: str, why: str) -> list[Preset]:
    """Return an overlay's changes: its chain without the base."""
    links = extends_chain(find(name))[1:]
    if not links:
        raise InputError(Message("preset '{name}' is a base, not an overlay: {why}", name=name[:80], why=why))
    return links


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Tables:
    from engine.config.sections import EXCLUSIVE  # not at the top: listing presets must not wait for pydantic

    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            # A new setting replaces its alternatives: epochs replace steps.
            gone = {a if b in value else b for a, b in EXCLUSIVE.get(key, ()) if a in value or b in value}
            merged[key] = merge({k: v for k, v in below.items() if k not in gone}, value)
        else:
            merged[key] = value
    return merged


def resolve(
    preset: Preset, *, on: str | None = None, overrides: Sequence[Tables] = (), where: str | None = None
) -> "RunConfig":
    """Return a preset's complete config; `on`: another base for an overlay; `overrides` win; errors call it `where`."""
    from engine.config.toml import validate

    links = extends_chain(preset)
    if on is not None:
        if len(links) == 1:
            message = Message(
                "preset '{name}' is a base, not an overlay: it cannot be used with --on '{on}'",
                name=preset.name,
                on=on[:80],
            )
            raise InputError(message)
        links = extends_chain(find(on)) + list(links[1:])
    # A run's own config.toml names the preset it came from; that name stands.
    tables: Tables = {"preset": preset.name if on is None else f"{preset.name}@{on}"}
    for changes in [link.tables for link in links] + list(overrides):
        if _corpus(changes) not in (None, _corpus(tables)):  # an earlier prompt was for another text
            tables = merge(tables, {"evaluation": {"sample_prompt": ""}})
        tables = merge(tables, changes)
    return validate(tables, where or f"preset '{preset.name}'")


def _corpus(tables: Tables) -> Any:
    data = tables.get("data")
    return data.get("corpus") if isinstance(data, Mapping) else None


def parent_config(preset: Preset, on: str | None = None) -> "RunConfig | None":
    """Return the config that an overlay changes; None for a base."""
    base = preset.extends if on is None else on
    return None if base is None else resolve(find(base))
