"""The cells of a study: one run for each variant and seed, with the complete config it is asked for.

What two cells share is shared to the bit: every parameter is drawn from the run's seed and its own name, and every
batch from the run's seed and its number, so that variants differ in what they change and in nothing else.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import capabilities
from engine.config import presets
from engine.config.keys import all_keys, diff, flatten, is_bookkeeping
from engine.config.schema import RunConfig
from engine.config.toml import validate
from engine.errors import InputError
from engine.runs.lineage import INIT_FROM
from tui_transformer.lab.studies.stages import Link, Stage, chain

if TYPE_CHECKING:
    from tui_transformer.lab.studies.study import Study, Variant

Change = tuple[Any, Any]  # before, after; None where a key is unset


@dataclass(frozen=True)
class Cell:
    """One run of a study.

    Args:
        variant: its name.
        seed: of the run.
        config: complete; not yet resolved.
        name: of the run's directory.
        stage: of an earlier stage its name; "" for the run that is compared.
        after: the name of the cell whose weights it starts with; "" where it begins anew.
    """

    variant: str
    seed: int
    config: RunConfig
    name: str
    stage: str = ""
    after: str = ""

    @property
    def kind(self) -> str:
        """What is the same in the cells of all seeds: the variant, with the stage where that is an earlier one."""
        return f"{self.variant}.{self.stage}" if self.stage else self.variant

    @property
    def begins_with(self) -> str:
        """The stage whose weights it starts with; "" where it begins anew."""
        return self.after.removesuffix(f".s{self.seed}").rpartition(f".{self.variant}.")[2] if self.after else ""

    def differs(self, ran: RunConfig) -> dict[str, Change]:
        """Where a run was asked for something else: dotted key → (what it ran, what this cell asks for).

        Args:
            ran: the run's config, which may have been resolved since it was asked for.
        """
        return {key: change for key, change in diff(ran, self.config).items() if not self._resolved(key, *change)}

    def _resolved(self, key: str, ran: Any, asked: Any) -> bool:
        """Whether the start of a run may have made one of the other."""
        if asked is None:  # filled in from the corpus or the machine
            return True
        if key == "data.corpus":  # a file, by its whole path
            return str(Path(str(asked)).resolve()) == str(Path(str(ran)).resolve())
        if key == "train.epochs":
            return ran is None
        if key == INIT_FROM and self.after:  # the other cell's run may have another name by now
            return ran is not None and str(ran).rpartition("@")[2] == str(asked).rpartition("@")[2]
        if key == "evaluation.stride":  # at most what a window predicts
            return bool(ran == self.config.stride)
        return isinstance(asked, str) and isinstance(ran, int)  # "5 epochs" in steps


def cells_of(study: "Study") -> tuple[Cell, ...]:
    """Every cell, seeds first: what is done of an interrupted study is a smaller complete one; each after its stages.

    Raises:
        InputError: no such preset, a change that is illegal, or two variants that ask for the same.
    """
    configs: dict[str, list[tuple[Link | None, RunConfig]]] = {}
    for variant in study.variants:
        links = chain(study.stages, variant.stages) or (None,)
        configs[variant.name] = [(k, variant_config(study, variant, k.stage if k else None)) for k in links]
    _require_different({name: [config for _, config in links] for name, links in configs.items()})
    return tuple(
        _cell(study.name, name, seed, config, link, last=link is links[-1][0])
        for seed in study.seeds
        for name, links in configs.items()
        for link, config in links
    )


def _cell(study: str, variant: str, seed: int, config: RunConfig, link: Link | None, *, last: bool) -> Cell:
    stage = link.stage.name if link is not None and not last else ""
    after = run_name(study, variant, seed, link.after) if link is not None and link.after else ""
    config = config.model_copy(update={"seed": seed})
    if link is not None and after:
        config = capabilities.with_value(config, INIT_FROM, f"{after}@{link.checkpoint}")
    return Cell(variant, seed, config, run_name(study, variant, seed, stage), stage, after)


def run_name(study: str, variant: str, seed: int, stage: str = "") -> str:
    """`attention.win16.s2`; of an earlier stage `attention.win16.pretrain.s2`."""
    return ".".join(part for part in (study, variant, stage, f"s{seed}") if part)


def base_tables(base: str) -> dict[str, Any]:
    """The tables of a base: a preset, or `OVERLAY@BASE`, an overlay applied to another base.

    Raises:
        InputError: no such preset, or `@` after one that is no overlay.
    """
    name, _, on = base.partition("@")
    links = presets.chain(presets.find(name))
    if on:
        links = [*presets.chain(presets.find(on)), *presets.overlay(name, f"it cannot be put on '{on[:80]}'")]
    return _laid([link.tables for link in links]) | {"preset": base}


def variant_config(study: "Study", variant: "Variant", stage: Stage | None = None) -> RunConfig:
    """What a variant trains with the study's first seed.

    Base, the study's changes, the stage's preset and changes, overlay, the variant's changes: each wins over those
    before it.

    Raises:
        InputError: anything wrong with it; names the variant.
    """
    where = f"study '{study.name}'"
    try:
        base = base_tables(study.base)
        where += f", variant '{variant.name}'"
        overlay = presets.overlay(variant.preset, "a variant changes the study's base") if variant.preset else []
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    where += f", stage '{stage.name}'" if stage is not None else ""
    try:
        staged = _laid([*stage.overlay, nested(stage.changes)]) if stage is not None else {}
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    tables = _laid([base, nested(study.changes), staged, *(link.tables for link in overlay), nested(variant.changes)])
    if overlay:
        tables["preset"] = variant.preset if overlay[0].extends == study.base else f"{variant.preset}@{study.base}"
    config = validate(tables | {"seed": study.seeds[0]}, where)
    capabilities.require(config, where)
    return config


def nested(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as nested tables; later ones win, and take out what said the same in another way."""
    return _laid([_table(key, value) for key, value in changes.items()])


def _table(key: str, value: Any) -> dict[str, Any]:
    section, dot, name = key.partition(".")
    return {section: {name: value}} if dot else {section: value}


def _laid(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for table in tables:
        merged = presets.merge(merged, table)
    return merged


def _require_different(configs: Mapping[str, Sequence[RunConfig]]) -> None:
    """By the settings of all stages."""
    asked: dict[str, str] = {}
    for name, stages in configs.items():
        settings = [{k: v for k, v in flatten(c.dump()).items() if not is_bookkeeping(k)} for c in stages]
        other = asked.setdefault(json.dumps(settings, sort_keys=True), name)
        if other != name:
            raise InputError(
                f"variants '{other}' and '{name}' ask for the same config, so they would be the same run twice; "
                "change one of them, or leave it out"
            )


def varied(configs: Mapping[str, RunConfig]) -> list[str]:
    """The dotted keys in which variants differ, in the order of the config; bookkeeping and seeds are none."""
    first, *rest = configs.values()
    found = {key for other in rest for key in diff(first, other) if key != "seed" and not is_bookkeeping(key)}
    return [key for key in all_keys() if key in found]
