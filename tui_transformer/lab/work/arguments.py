"""The study that command-line arguments ask for: `--study NAME`, or a preset with `--vary KEY=VALUE,VALUE`, where
several axes make a grid of variants; and how it may differ from the study of that name that was started before.
"""

import itertools
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.base.command_line import command_line
from engine.base.errors import InputError, join_and
from engine.base.language import Message, tr
from engine.config.keys import all_keys, flatten, is_bookkeeping, parse_overrides, parse_value, unknown_key_message
from engine.config.schema import RunConfig
from engine.config.tasks import task_named
from engine.config.toml import short_repr_or_unset, validate
from tui_transformer.lab.work.study import MOST_RUNS, SEEDS, THREADS, Study, Variant, base_tables, find_study

MAX_VALUE = 40  # characters of a value in a variant's name
MOST_SEEDS = 1_000


@dataclass(frozen=True)
class StudyArgs:
    """The command-line arguments that define a study, each as typed."""

    study: str | None = None
    preset: str | None = None
    vary: tuple[str, ...] = ()
    on: str | None = None
    seeds: str | None = None
    overrides: tuple[str, ...] = ()
    corpus: str | None = None
    name: str | None = None

    def resolve(self, runs_dir: Path) -> Study:
        """Resolve the study; raises InputError for neither or both ways to give it, or any error in it."""
        if self.study is None and self.preset is None:
            text = Message(
                "say what to study: --study NAME (`{command_line}` lists all studies), or --preset NAME --vary "
                "KEY=VALUE,VALUE",
                command_line=command_line("ablate", "--list"),
            )
            raise InputError(text)
        if self.study is not None and (self.preset is not None or self.vary):
            raise InputError(Message("--study sets the base and the variants; leave out --preset and --vary"))
        if self.study is None:
            study = self._from_preset()
        else:
            found = find_study(self.study, runs_dir)
            base = found.base if self.on is None else self.on
            study = replace(found, base=base, name=found.name if self.name is None else self.name)
        own = {key: value for table in parse_overrides(self.overrides) for key, value in flatten(table).items()}
        own |= {"data.corpus": self.corpus} if self.corpus is not None else {}
        for key in own if study.stages else ():
            if not all(key in stage.keys for stage in study.stages):
                continue  # else changing it below the stages would change nothing
            names = join_and(stage.name for stage in study.stages)
            text = Message(
                "--set {key}: stages {names} each set this key themselves; change it in a study file of your own",
                key=key,
                names=names,
            )
            raise InputError(text)
        changes = {**study.changes, **own}
        corpus = changes.get("data.corpus")
        if isinstance(corpus, str):
            # A file is named by its full path: the study may be resumed from another folder.
            objective = changes.get("objective.kind") or base_tables(study.base).get("objective", {}).get("kind")
            from engine.data.catalogue import portable_name

            changes["data.corpus"] = portable_name(corpus, task_named(objective).corpus)
        study = replace(study, changes=changes)
        return study if self.seeds is None else replace(study, seeds=parse_seeds(self.seeds), seeds_given=True)

    def _from_preset(self) -> Study:
        preset = str(self.preset)
        if not self.vary:
            message = Message(
                "say what to vary, e.g. --preset {preset} --vary model.n_heads=1,2,4,8", preset=preset[:80]
            )
            raise InputError(message)
        axes = dict(parse_axis(text) for text in self.vary)
        if len(axes) < len(self.vary):
            raise InputError(Message("--vary names one key twice; list all its values at once, separated by commas"))
        base = f"{preset}@{self.on}" if self.on is not None else preset
        config = validate(base_tables(base), tr("preset '{name}'", name=preset))
        variants = grid(axes)
        lasts = "-".join(key.rpartition(".")[2] for key in axes)
        name = self.name if self.name is not None else f"{re.sub('[^A-Za-z0-9._-]+', '-', base)}-{lasts}"
        seeds = SEEDS if self.seeds is None else parse_seeds(self.seeds)  # the default ones may be too many
        return Study(name, base, variants, baseline_of(variants, config), seeds)


def resumed_study(asked: Study, before: Study) -> Study:
    """Return the study to resume: as started, with the seeds added since."""
    if THREADS in before.changes and THREADS not in asked.changes:  # the plan chose it
        asked = replace(asked, changes={**asked.changes, THREADS: before.changes[THREADS]})
    if not asked.seeds_given:
        asked = replace(asked, seeds=before.seeds)
    changed = list(_differences(asked, before))
    if changed:
        more = tr(" and {n} more", n=len(changed) - 3) if len(changed) > 3 else ""
        text = Message(
            "study '{name}' was started with different settings: {changed}{more}; give the new one a different "
            "--name, or resume the old one",
            name=asked.name,
            changed="; ".join(changed[:3]),
            more=more,
        )
        raise InputError(text)
    return replace(before, seeds=tuple(dict.fromkeys([*before.seeds, *asked.seeds])))


def _differences(asked: Study, before: Study) -> Iterator[str]:
    """In words. A variant's description is no difference; its expectation is one."""
    yield from _difference("base", asked.base, before.base)
    yield from _difference("baseline", asked.baseline, before.baseline)
    yield from _difference("primary", asked.primary, before.primary)
    missing = [seed for seed in before.seeds if seed not in asked.seeds]
    if missing:
        yield tr("seed {seed} is left out", seed=missing[0])
    yield from _setting_differences("", asked.changes, before.changes)
    stages = [stage.name for stage in asked.stages]
    yield from _difference(tr("the list of stages"), stages, [stage.name for stage in before.stages])
    for now, then in zip(asked.stages, before.stages, strict=False):
        yield from _difference(tr("stage '{name}': from", name=now.name), now.starts_from, then.starts_from)
        yield from _difference(tr("stage '{name}': preset", name=now.name), now.preset, then.preset)
        yield from _setting_differences(tr("stage '{name}': ", name=now.name), now.changes, then.changes)
    ours, theirs = ({variant.name: variant for variant in study.variants} for study in (asked, before))
    for name in [*ours, *(name for name in theirs if name not in ours)]:
        if name not in theirs:
            yield tr("variant '{name}' is new", name=name)
            continue
        if name not in ours:
            yield tr("variant '{name}' is left out", name=name)
            continue
        one, other = ours[name], theirs[name]
        yield from _difference(tr("variant '{name}': preset", name=name), one.preset, other.preset)
        yield from _setting_differences(tr("variant '{name}': ", name=name), one.changes, other.changes)
        yield from _difference(tr("variant '{name}': stages", name=name), list(one.stages), list(other.stages))
        yield from _difference(tr("variant '{name}': expect", name=name), dict(one.expect), dict(other.expect))


def _setting_differences(where: str, asked: Any, before: Any) -> Iterator[str]:
    for key in dict.fromkeys([*asked, *before]):
        if not is_bookkeeping(key):
            yield from _difference(where + key, asked.get(key), before.get(key))


def _difference(what: str, asked: Any, before: Any) -> Iterator[str]:
    if asked != before:
        now, then = short_repr_or_unset(asked), short_repr_or_unset(before)
        yield tr("{what} is {now}, was {before}", what=what, now=now, before=then)


def parse_seeds(text: str) -> tuple[int, ...]:
    """`3` is 1, 2 and 3; `1,5,9` are these; `42,` is 42 alone; a non-integer is an InputError."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 1 and not parts[-1]:
        parts.pop()
    if not all(part.isascii() and part.isdecimal() and len(part) <= 19 for part in parts):
        message = Message(
            "--seeds {text!r}: must be a number of seeds, e.g. 3, or the seeds themselves, e.g. 1,5,9", text=text[:40]
        )
        raise InputError(message)
    numbers = [int(part) for part in parts]
    if "," in text:
        return tuple(numbers)
    if not 1 <= numbers[0] <= MOST_SEEDS:
        message = Message(
            "--seeds {text}: must be from 1 to {most:,}; for the seed {text} alone, write --seeds {text},",
            text=text[:40],
            most=MOST_SEEDS,
        )
        raise InputError(message)
    return tuple(range(1, numbers[0] + 1))


def parse_axis(text: str, least: int = 2) -> tuple[str, tuple[Any, ...]]:
    """`KEY=VALUE,VALUE…` as the key and its values; a value that is not TOML is text."""
    key, equals, values = text.partition("=")
    key = key.strip()
    if not equals or not key:
        message = Message("--vary {text!r}: write KEY=VALUE,VALUE, e.g. --vary model.n_heads=1,2,4,8", text=text[:80])
        raise InputError(message)
    if key == "seed":
        raise InputError(Message("--vary seed: seeds are not variants; use --seeds 5 or --seeds 1,5,9"))
    if key not in all_keys():
        raise InputError(f"--vary {text[:80]}: {unknown_key_message(key)}")
    try:  # a list keeps commas inside its values: [0.9, 0.95], [0.9, 0.98]
        if "," not in values:
            raise ValueError
        found = tuple(tomllib.loads(f"values = [{values}]")["values"])
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        found = tuple(parse_value(part.strip()) for part in values.split(",") if part.strip())
    if len(found) < least:
        message = Message(
            "--vary {text}: give at least two values, e.g. --vary {key}={values},…",
            text=text[:80],
            key=key,
            values=values.strip(),
        )
        raise InputError(message)
    return key, found


def grid(axes: Mapping[str, Sequence[Any]]) -> tuple[Variant, ...]:
    """A variant per combination, last axis fastest; named by key and value: `n_heads-2.position-rope`."""
    count = math.prod(len(values) for values in axes.values())
    if count > MOST_RUNS:
        text = Message("--vary: {n:,} combinations; a study can have at most {most:,} runs", n=count, most=MOST_RUNS)
        raise InputError(text)
    lasts = [key.rpartition(".")[2] for key in axes]
    shown = {key: last if lasts.count(last) == 1 else key for key, last in zip(axes, lasts, strict=True)}
    return tuple(
        Variant(
            ".".join(f"{shown[key]}-{_name_part(value)}" for key, value in zip(axes, values, strict=True)),
            changes=dict(zip(axes, values, strict=True)),
        )
        for values in itertools.product(*axes.values())
    )


def baseline_of(variants: Sequence[Variant], base: RunConfig) -> str:
    """The variant that equals the base; the first if none does."""
    own = flatten(base.dump())
    same = (v.name for v in variants if all(own.get(key) == value for key, value in v.changes.items()))
    return next(same, variants[0].name)


def _name_part(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-")[:MAX_VALUE] or "none"
