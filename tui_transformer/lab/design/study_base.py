"""A design as the base of a study: a shipped preset by its name, and changes to it; and overlays as variants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.config import presets
from engine.config.keys import diff, flatten
from engine.errors import InputError
from tui_transformer.lab.design.draft import Draft
from tui_transformer.lab.studies.study import Variant, base_tables, nested

NOT_OF_A_STUDY = ("schema", "preset", "description", "seed")
GENERIC = "baseline"  # what overlays for any base extend


def study_base(design: Draft) -> tuple[str, dict[str, Any]]:
    """A study's base and its changes for all variants that come to a design.

    Raises:
        InputError: no shipped preset and changes come to it.
    """
    if design.path is None:
        return design.name, _of_a_study(design.changes)
    links = presets.chain(design.preset)
    base = design.on or design.preset.extends
    if base is not None:
        own = links[1:] if design.on is not None else links[-1:]
        return base, _of_a_study(own_changes(own) | dict(design.changes))
    config, plain = design.config, Draft.of(GENERIC).config
    if config is None or plain is None:
        raise InputError(design.problem)
    changes = {key: value for key, (_, value) in diff(plain, config).items() if value is not None}
    changes = _of_a_study(changes)
    merged = presets.merge(base_tables(GENERIC), nested(changes))
    unset = [key for key in flatten(merged) if key not in flatten(config.dump()) and key not in NOT_OF_A_STUDY]
    if unset:
        raise InputError(f"{design.name} extends no preset, and leaves {unset[0]} unset, which a study of it could not")
    return GENERIC, changes


def own_changes(links: Sequence[presets.Preset]) -> dict[str, Any]:
    """What presets change, as dotted keys."""
    tables: dict[str, Any] = {}
    for link in links:
        tables = presets.merge(tables, link.tables)
    return flatten(tables)


def _of_a_study(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in changes.items() if key not in NOT_OF_A_STUDY}


@dataclass(frozen=True)
class Overlay:
    """A preset that changes one thing, as a variant.

    Args:
        variant: it.
        description: of the preset.
        why_not: why it cannot be a variant of the design; "" if it can.
    """

    variant: Variant
    description: str
    why_not: str = ""


def overlay_variants(own: Sequence[presets.Preset]) -> list[tuple[Variant, str, str]]:
    """Every overlay as a variant, its description, and the base it was written for; shipped ones and one's own.

    Args:
        own: a person's own presets; a study names shipped ones only, so these are said by what they change.
    """
    found = []
    for preset in presets.list_presets():
        if preset.extends is not None:
            root = presets.chain(preset)[0].name
            found.append((Variant(preset.name, preset.name), preset.description, root))
    for preset in own:
        links = presets.chain(preset)
        if len(links) > 1:
            changes = _of_a_study(own_changes(links[1:]))
            found.append((Variant(preset.name, changes=changes), preset.description, links[0].name))
    return found
