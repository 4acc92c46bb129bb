"""Stages of a study: runs of one variant and seed, each starting from the weights of an earlier one.

A study compares its last stage; the stages before it are how a variant comes to its weights.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.config import presets
from engine.config.keys import flatten
from engine.errors import InputError, nearest, one_of
from engine.runs.lineage import split_init_from


@dataclass(frozen=True)
class Stage:
    """One stage.

    Args:
        name: a legal part of a run's name.
        starts_from: an earlier stage, `NAME` or `NAME@last`; "" for weights of its own.
        changes: dotted config keys, above what the study changes, below what a variant changes.
        preset: an overlay whose settings lie below these changes; "" for none.
    """

    name: str
    starts_from: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    preset: str = ""

    @property
    def overlay(self) -> tuple[dict[str, Any], ...]:
        """The tables of its preset, each above the one before.

        Raises:
            InputError: no such preset, or one that changes nothing.
        """
        links = presets.overlay(self.preset, "a stage changes the study's base") if self.preset else ()
        return tuple(dict(link.tables) for link in links)

    @property
    def keys(self) -> set[str]:
        """The dotted keys that it says itself."""
        return {*self.changes, *(key for tables in self.overlay for key in flatten(tables))}

    @property
    def parent(self) -> tuple[str, str]:
        """The stage whose weights it starts with, and which checkpoint; both "" where none."""
        return split_init_from(self.starts_from) if self.starts_from else ("", "")


@dataclass(frozen=True)
class Link:
    """A stage of one variant.

    Args:
        stage: which.
        after: the stage it starts from in this variant, which may have left one out; "" for weights of its own.
        checkpoint: that it starts from.
    """

    stage: Stage
    after: str
    checkpoint: str


def chain(stages: Sequence[Stage], kept: Sequence[str]) -> tuple[Link, ...]:
    """The stages of a variant in their order.

    Args:
        stages: of the study.
        kept: those of the variant; none means all. What starts from one that is left out starts where that does.
    """
    by_name = {stage.name: stage for stage in stages}
    names = set(kept) or set(by_name)
    links = []
    for stage in stages:
        after, checkpoint = stage.parent
        while after and after not in names:
            after, checkpoint = by_name[after].parent
        if stage.name in names:
            links.append(Link(stage, after, checkpoint))
    return tuple(links)


def check_stages(stages: Sequence[Stage], where: str) -> None:
    """Refuse stages that are no chain.

    Raises:
        InputError: one alone, two of a name, one that starts from none before it, or that leads nowhere.
    """
    names = [stage.name for stage in stages]
    if len(stages) == 1:
        raise InputError(f"{where}: one stage is no chain; leave [[stages]] out, or add the one that starts from it")
    for place, stage in enumerate(stages):
        said = f"{where}, stage '{stage.name[:80]}'"
        if names.count(stage.name) > 1:
            raise InputError(f"{where}: two stages are called '{stage.name[:80]}'; each needs a name of its own")
        try:
            parent, _ = stage.parent
        except InputError as error:
            raise InputError(f"{said}: from: {error}") from None
        if parent and parent not in names[:place]:
            hint = nearest(parent, names[:place]) or (f"; it can be {one_of(names[:place])}" if place else "")
            raise InputError(f"{said}: from = '{parent[:80]}' is no stage before it{hint}")
    for name in names[:-1]:
        if not any(stage.parent[0] == name for stage in stages):
            raise InputError(f"{where}, stage '{name[:80]}': no stage starts from it; give one from = \"{name[:80]}\"")


def check_kept(stages: Sequence[Stage], kept: Sequence[str], where: str) -> None:
    """Refuse a variant's choice of stages.

    Raises:
        InputError: an unknown one, or without the last, which is what is compared.
    """
    names = [stage.name for stage in stages]
    for name in kept:
        if name not in names:
            hint = f"; they are {one_of(names)}" if names else "; the study has none"
            hint = nearest(str(name), names) or hint
            raise InputError(f"{where}: stages: no stage is called '{str(name)[:80]}'{hint}")
    if kept and names[-1] not in kept:
        raise InputError(f"{where}: stages: leaves out '{names[-1]}', the last one, which is what is compared")


def said_by_all(stages: Sequence[Stage], keys: Mapping[str, Any]) -> Iterator[str]:
    """Keys that every stage sets itself: what is asked for below them would change nothing."""
    return (key for key in keys if stages and all(key in stage.keys for stage in stages))
