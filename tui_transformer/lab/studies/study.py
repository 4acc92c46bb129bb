"""A study: variants of one base, each trained with several seeds, perhaps in stages.

A study is a TOML file that says what is expected of each variant before anything runs. The shipped ones are in
`presets/studies`; a started one is kept beside its runs as `NAME.study.toml`, complete, so that it can be resumed and
repeated. `Study.cells` lists its runs. Two cells share to the bit what their configs share: every parameter is drawn
from the seed and its own name, every batch from the seed and its number.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine import capabilities
from engine.config import presets
from engine.config.keys import all_keys, diff, flatten, is_bookkeeping, unknown_key
from engine.config.schema import RunConfig
from engine.config.toml import read, shown, validate
from engine.errors import InputError, nearest, one_of
from engine.measures import MEASURES, family
from engine.runs.lineage import INIT_FROM, split_init_from
from engine.runs.names import check_name

SCHEMA = 1
SUFFIX = ".study.toml"
MOST_RUNS = 10_000  # of one study
MOST_WORDS = 2_000  # characters of a description or a reason
OUTCOMES = ("worse", "better", "same", "unknown")
# What an outcome can be expected of: scores, and the probes of the built-in corpora without their bands.
EXPECTABLE = tuple(measure.key for measure in MEASURES if measure.judged)
Change = tuple[Any, Any]  # before, after; None where a key is unset


@dataclass(frozen=True)
class Stage:
    """A run that later stages of the same variant and seed start from; the last stage is the one compared."""

    name: str  # a legal part of a run's name
    starts_from: str = ""  # an earlier stage, `NAME` or `NAME@last`; "" for fresh weights
    # dotted config keys, above the study's changes, below the variant's
    changes: Mapping[str, Any] = field(default_factory=dict)
    preset: str = ""  # an overlay below these changes; "" for none

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
        """The dotted keys that the stage itself sets."""
        return {*self.changes, *(key for tables in self.overlay for key in flatten(tables))}

    @property
    def parent(self) -> tuple[str, str]:
        """The stage whose weights it starts with, and which checkpoint; both "" if none."""
        return split_init_from(self.starts_from) if self.starts_from else ("", "")


@dataclass(frozen=True)
class Link:
    """A stage of one variant."""

    stage: Stage
    after: str  # the stage it starts from in this variant, which may leave some out; "" for fresh weights
    checkpoint: str  # of that stage


def chain(stages: Sequence[Stage], kept: Sequence[str]) -> tuple[Link, ...]:
    """Return the stages of a variant in order.

    Args:
        stages: of the study.
        kept: those of the variant; empty means all. A stage that starts from one left out starts where that one does.
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


@dataclass(frozen=True)
class Variant:
    """One change."""

    name: str  # a legal part of a run's name
    preset: str = ""  # an overlay applied to the study's base; "" for none
    changes: Mapping[str, Any] = field(default_factory=dict)  # dotted config keys on top
    expect: Mapping[str, str] = field(default_factory=dict)  # a measure → an outcome, against the study's baseline
    stages: tuple[str, ...] = ()  # of the study that it goes through, the last among them; empty means all


@dataclass(frozen=True)
class Cell:
    """One run of a study."""

    variant: str
    seed: int  # of the run
    config: RunConfig  # complete; not yet resolved
    name: str  # of the run's directory
    stage: str = ""  # the name of an earlier stage; "" for the run that is compared
    after: str = ""  # the name of the cell whose weights it starts with; "" for fresh weights

    @property
    def kind(self) -> str:
        """What the cells of all seeds share: the variant, followed by an earlier stage's name."""
        return f"{self.variant}.{self.stage}" if self.stage else self.variant

    @property
    def begins_with(self) -> str:
        """The stage whose weights it starts with; "" for fresh weights."""
        return self.after.removesuffix(f".s{self.seed}").rpartition(f".{self.variant}.")[2] if self.after else ""

    def differs(self, ran: RunConfig) -> dict[str, Change]:
        """Return what a run was asked for otherwise: dotted key → (what it ran, what this cell asks for).

        Args:
            ran: the run's config, which may have been resolved since.
        """

        def may_be_resolved(key: str, ran: Any, asked: Any) -> bool:
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

        found = diff(ran, self.config)
        return {key: change for key, change in found.items() if not may_be_resolved(key, *change)}


@dataclass(frozen=True)
class Study:
    """Variants of one base, each trained with every seed.

    Raises:
        InputError: an invalid study; what a variant asks for is checked by `cells`.
    """

    name: str  # of the study, the first part of its runs' names
    base: str  # a preset, or `OVERLAY@BASE`
    variants: tuple[Variant, ...]  # in the order they run and are shown
    baseline: str  # the variant that the others are compared with
    seeds: tuple[int, ...] = (1, 2, 3)  # of the runs; data order and initial weights follow from them
    # dotted config keys for all variants, below what a variant changes
    changes: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""  # one line
    why: Mapping[str, str] = field(default_factory=dict)  # variant → one sentence on why that is expected
    stages: tuple[Stage, ...] = ()  # that a variant goes through with each seed. Empty: one run each
    # the measure with most weight in the verdicts, such as `loss` or `recall`; a probe may be named in full,
    # `recall<110`. "" for the one the base selects checkpoints by
    primary: str = ""

    def __post_init__(self) -> None:
        where = f"study '{self.name[:80]}'"
        check_name(self.name)
        if ending := re.search(r"\.s\d+\Z", self.name):
            raise InputError(f"{where}: a name that ends in '{ending[0]}' looks like one of its runs")
        names = [variant.name for variant in self.variants]
        longest = max((seed for seed in self.seeds if isinstance(seed, int)), default=1)
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"{where}: two variants are called '{name[:80]}'; each needs a name of its own")
            _check_name(name, f"{where}, variant '{name[:80]}'")
            _check_name(run_name(self.name, name, longest), f"{where}, variant '{name}'")
        if len(names) < 2:
            raise InputError(f"{where}: has {len(names)} variants; a comparison needs at least 2")
        if self.baseline not in names:
            hint = nearest(self.baseline, names) or f"; they are {one_of(names)}"
            raise InputError(f"{where}: baseline '{self.baseline[:80]}' is none of the variants{hint}")
        if self.primary and family(self.primary) not in EXPECTABLE:
            hint = nearest(self.primary, EXPECTABLE) or f"; it can be {one_of(EXPECTABLE)}"
            raise InputError(f"{where}: primary = {shown(self.primary)} is neither a score nor a probe{hint}")
        self._check_stages(where)

        # Earlier stages have runs of their own, whose names must be legal and no other variant's.
        runs = [(v, run_name(self.name, v.name, longest, stage)) for v in self.variants for stage in self.runs_of(v)]
        for variant, run in runs:
            _check_name(run, f"{where}, variant '{variant.name}'")
            if [other for _, other in runs].count(run) > 1:
                raise InputError(f"{where}: two of its runs would be called '{run}'; rename variant or stage")

        if not self.seeds:
            raise InputError(f"{where}: has no seeds; e.g. seeds = [1, 2, 3]")
        if len(self.seeds) * len(runs) > MOST_RUNS:
            raise InputError(f"{where}: {len(self.seeds) * len(runs):,} runs; at most {MOST_RUNS:,} make one study")
        for seed in self.seeds:
            if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
                raise InputError(f"{where}: seed {shown(seed)}: must be a whole number from 0 on")
            if self.seeds.count(seed) > 1:
                raise InputError(f"{where}: seed {seed} stands there twice; the same seed gives the same run")

        _check_changes(self.changes, f"{where}: changes")
        for variant in self.variants:
            _check_changes(variant.changes, f"{where}, variant '{variant.name}': changes")
            for measure, outcome in variant.expect.items():
                said = f"{where}, variant '{variant.name}': expect"
                if measure not in EXPECTABLE:
                    hint = nearest(measure, EXPECTABLE) or f"; it can be about {one_of(EXPECTABLE)}"
                    raise InputError(f"{said}: '{measure[:80]}' is no score and no probe{hint}")
                if outcome not in OUTCOMES:
                    raise InputError(f"{said}: {measure} = {shown(outcome)}: must be {one_of(OUTCOMES)}")
        for name in self.why:
            if name not in names:
                raise InputError(f"{where}: why: no variant is called '{name[:80]}'{nearest(name, names)}")

    def _check_stages(self, where: str) -> None:
        """Each stage but the last is one that a later stage starts from; every variant keeps the last."""
        names = [stage.name for stage in self.stages]
        if len(names) == 1:
            raise InputError(
                f"{where}: one stage is no chain; leave [[stages]] out, or add the one that starts from it"
            )
        for place, stage in enumerate(self.stages):
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
            if not any(stage.parent[0] == name for stage in self.stages):
                hint = f'give one from = "{name[:80]}"'
                raise InputError(f"{where}, stage '{name[:80]}': no stage starts from it; {hint}")
        for stage in self.stages:
            said = f"{where}, stage '{stage.name}'"
            _check_name(stage.name, said)
            _check_changes(stage.changes, f"{said}: changes")
            try:
                keys = stage.keys
            except InputError as error:
                raise InputError(f"{said}: {error}") from None
            if stage.starts_from and INIT_FROM in keys:
                raise InputError(f"{said}: '{INIT_FROM}' is what its `from` says")
        for variant in self.variants:
            said = f"{where}, variant '{variant.name}': stages"
            for name in variant.stages:
                if name not in names:
                    hint = f"; they are {one_of(names)}" if names else "; the study has none"
                    raise InputError(
                        f"{said}: no stage is called '{str(name)[:80]}'{nearest(str(name), names) or hint}"
                    )
            if variant.stages and names[-1] not in variant.stages:
                raise InputError(f"{said}: leaves out '{names[-1]}', the last one, which is what is compared")

    def runs_of(self, variant: Variant) -> tuple[str, ...]:
        """The stages of a variant, as its runs are named: the last one, which is compared, has no name."""
        links = chain(self.stages, variant.stages)
        return (*(link.stage.name for link in links[:-1]), "")

    def set_by_every_stage(self, keys: Mapping[str, Any]) -> Iterator[str]:
        """Yield the keys that every stage sets itself: changing them below the stages would change nothing."""
        return (key for key in keys if self.stages and all(key in stage.keys for stage in self.stages))

    def variant(self, name: str) -> Variant:
        """Return the variant of that name."""
        return next(variant for variant in self.variants if variant.name == name)

    def cells(self) -> tuple[Cell, ...]:
        """Return every run, seeds first, each after its earlier stages.

        What is done of an interrupted study is then a smaller complete one.

        Raises:
            InputError: no such preset, a change that is illegal, or two variants that ask for the same.
        """
        configs: dict[str, list[tuple[Link | None, RunConfig]]] = {}
        asked: dict[str, str] = {}
        for variant in self.variants:
            links = chain(self.stages, variant.stages) or (None,)
            made = [(link, variant_config(self, variant, link.stage if link else None)) for link in links]
            configs[variant.name] = made
        for name, made in configs.items():
            other = asked.setdefault(settings_of(config for _, config in made), name)
            if other != name:
                raise InputError(
                    f"variants '{other}' and '{name}' ask for the same config, so they would be the same run twice; "
                    "change one of them, or leave it out"
                )
        cells = []
        for seed in self.seeds:
            for name, made in configs.items():
                for link, config in made:
                    stage = link.stage.name if link is not None and link is not made[-1][0] else ""
                    after = run_name(self.name, name, seed, link.after) if link is not None and link.after else ""
                    config = config.model_copy(update={"seed": seed})
                    if link is not None and after:
                        config = capabilities.with_value(config, INIT_FROM, f"{after}@{link.checkpoint}")
                    cells.append(Cell(name, seed, config, run_name(self.name, name, seed, stage), stage, after))
        return tuple(cells)

    def to_toml(self) -> str:
        """Return the study as a file that `read_study` reads back as an equal study."""
        stages = [
            _filled({"name": s.name, "from": s.starts_from, "preset": s.preset, "changes": dict(s.changes)})
            for s in self.stages
        ]
        variants = [
            _filled(
                {
                    "name": v.name,
                    "preset": v.preset,
                    "why": self.why.get(v.name, ""),
                    "changes": dict(v.changes),
                    "expect": dict(v.expect),
                    "stages": list(v.stages),
                }
            )
            for v in self.variants
        ]
        file = {
            "schema": SCHEMA,
            "name": self.name,
            "description": self.description,
            "base": self.base,
            "baseline": self.baseline,
            "primary": self.primary,
            "seeds": list(self.seeds),
            "changes": dict(self.changes),
            "stages": stages,
            "variants": variants,
        }
        return tomli_w.dumps(_filled(file))


def _filled(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value not in ("", {}, [])}


def _check_name(name: str, where: str) -> None:
    try:
        check_name(name)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _check_changes(changes: Mapping[str, Any], where: str) -> None:
    for key in changes:
        if key == "seed":
            raise InputError(f"{where}: 'seed' is what `seeds` says for all variants alike")
        if key not in all_keys() or key in ("schema", "preset", "description"):
            raise InputError(f"{where}: {unknown_key(key)}")


# The file of a study. The order of the fields is the order in the file.

Words = Annotated[str, Field(strict=True, max_length=MOST_WORDS)]
Table = dict[str, Any]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class StageFile(_File):
    """One of `[[stages]]`."""

    name: Words
    starts_from: Words = Field("", alias="from")
    preset: Words = ""
    changes: Table = {}


class VariantFile(_File):
    """One of `[[variants]]`."""

    name: Words
    preset: Words = ""
    why: Words = ""
    changes: Table = {}
    expect: Table = {}
    stages: list[Any] = []


class StudyFile(_File):
    """A study as TOML."""

    schema_: Annotated[int, Field(strict=True)] = Field(SCHEMA, alias="schema")
    name: Words = ""
    description: Words = ""
    base: Words
    baseline: Words
    primary: Words = ""
    seeds: list[Any] = [1, 2, 3]
    changes: Table = {}
    stages: list[StageFile] = []
    variants: list[VariantFile]


FILE_KINDS = {
    "int": "a whole number",
    "string": "text",
    "list": "a list",
    "dict": "a table",
    "model": "a table, [[{}]]",
}


def _problem(error: ValidationError) -> str:
    """One line for the first thing that is wrong with a study's file; what a person mistyped comes first."""
    problems = error.errors(include_url=False)
    order = ("extra_forbidden", "missing")
    problem = min(problems, key=lambda p: order.index(p["type"]) if p["type"] in order else len(order))
    *row, key = problem["loc"]
    list_name = str(row[0] if row else problem["loc"][0])
    kinds: dict[str, type[BaseModel]] = {"stages": StageFile, "variants": VariantFile}
    kind = kinds.get(list_name, StudyFile) if row else StudyFile
    number = key if isinstance(key, int) else row[1] if row else None
    where = f"{list_name[:-1]} {int(number) + 1}" if isinstance(number, int) else ""
    said = f"{where}: " if where else ""
    if problem["type"] == "extra_forbidden":
        known = [one.alias or name for name, one in kind.model_fields.items()]
        return f"{said}unknown key '{str(key)[:80]}'{nearest(str(key), known) or f'; keys are {one_of(known)}'}"
    if problem["type"] == "missing" and where:
        return f"{where} has no name"
    if problem["type"] == "missing":
        return f"'{key}' is missing; a study has base, baseline and variants"
    if problem["type"] == "string_too_long":
        return f"{said}{key} has {len(problem['input']):,} characters; at most {MOST_WORDS:,}"
    must = FILE_KINDS[problem["type"].partition("_")[0]].format(list_name)
    return f"{where if isinstance(key, int) else f'{said}{key}'} = {shown(problem['input'])}: must be {must}"


def read_study(path: Path) -> Study:
    """Read a study; its name is the file's where the file gives none.

    Raises:
        InputError: unreadable, or anything wrong with it; names the file.
    """
    tables = read(path)
    if isinstance(schema := tables.get("schema", SCHEMA), int) and schema != SCHEMA:
        raise InputError(f"{path}: schema = {shown(schema)}: this version reads {SCHEMA}")
    try:
        file = StudyFile.model_validate(tables)
    except ValidationError as error:
        raise InputError(f"{path}: {_problem(error)}") from None
    try:
        return Study(
            name=file.name if "name" in tables else path.name.removesuffix(SUFFIX).removesuffix(".toml"),
            base=file.base,
            variants=tuple(
                Variant(v.name, v.preset, flatten(v.changes), v.expect, tuple(v.stages)) for v in file.variants
            ),
            baseline=file.baseline,
            seeds=tuple(file.seeds),
            changes=flatten(file.changes),
            description=file.description,
            why={v.name: v.why for v in file.variants if v.why},
            stages=tuple(Stage(s.name, s.starts_from, flatten(s.changes), s.preset) for s in file.stages),
            primary=file.primary,
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def shipped_studies() -> dict[str, Path]:
    """Return the files of the studies that come with the app, by name."""
    found = {path.stem: path for path in (presets.folder() / "studies").glob("*.toml")}
    return dict(sorted(found.items()))


def started_studies(runs_dir: Path) -> dict[str, Path]:
    """Return the files of the studies that were started in a runs folder, by name."""
    return {path.name.removesuffix(SUFFIX): path for path in sorted(runs_dir.glob(f"*{SUFFIX}"))}


def find_study(name: str, runs_dir: Path | None = None) -> Study:
    """Find a study by a file's path, a shipped study's name, or the name of one that was started in a runs folder.

    Raises:
        InputError: no such study; names the nearest one.
    """
    shipped = shipped_studies()
    if name in shipped:
        return read_study(shipped[name])
    started = started_studies(runs_dir) if runs_dir is not None else {}
    if name in started:
        return read_study(started[name])
    if name.endswith(".toml"):
        return read_study(Path(name))
    known = [*shipped, *started]
    hint = nearest(name, known) or f"; they are {one_of(known)}"
    raise InputError(f"no study is called '{name[:80]}'{hint}, or a file NAME.toml")


# From a study to configs.


def run_name(study: str, variant: str, seed: int, stage: str = "") -> str:
    """`attention.win16.s2`; of an earlier stage `attention.win16.pretrain.s2`."""
    return ".".join(part for part in (study, variant, stage, f"s{seed}") if part)


def base_tables(base: str) -> dict[str, Any]:
    """Return the tables of a base: a preset, or `OVERLAY@BASE`, an overlay applied to another base.

    Raises:
        InputError: no such preset, or `@` after one that is no overlay.
    """
    name, _, on = base.partition("@")
    links = presets.chain(presets.find(name))
    if on:
        links = [*presets.chain(presets.find(on)), *presets.overlay(name, f"it cannot be put on '{on[:80]}'")]
    return _merged(link.tables for link in links) | {"preset": base}


def variant_config(study: Study, variant: Variant, stage: Stage | None = None) -> RunConfig:
    """Return what a variant trains with the study's first seed.

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
        where += f", stage '{stage.name}'" if stage is not None else ""
        staged = _merged([*stage.overlay, nested(stage.changes)]) if stage is not None else {}
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    of_overlay = [link.tables for link in overlay]
    tables = _merged([base, nested(study.changes), staged, *of_overlay, nested(variant.changes)])
    if overlay:
        tables["preset"] = variant.preset if overlay[0].extends == study.base else f"{variant.preset}@{study.base}"
    config = validate(tables | {"seed": study.seeds[0]}, where)
    capabilities.require(config, where)
    return config


def nested(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted keys as nested tables; later ones win over what said the same in another way."""
    tables = []
    for key, value in changes.items():
        section, dot, name = key.partition(".")
        tables.append({section: {name: value}} if dot else {section: value})
    return _merged(tables)


def _merged(tables: Iterator[Mapping[str, Any]] | Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for table in tables:
        merged = presets.merge(merged, table)
    return merged


def settings_of(configs: Iterator[RunConfig] | Sequence[RunConfig]) -> str:
    """Return the settings of all stages of a variant, without seed and bookkeeping: equal for equal runs."""
    flat = [flatten(config.dump()) for config in configs]
    kept = [{k: v for k, v in one.items() if k != "seed" and not is_bookkeeping(k)} for one in flat]
    return json.dumps(kept, sort_keys=True)


def varied(configs: Mapping[str, RunConfig]) -> list[str]:
    """Return the dotted keys in which variants differ, in the order of the config, without seed and bookkeeping."""
    first, *rest = configs.values()
    found = {key for other in rest for key in diff(first, other) if key != "seed" and not is_bookkeeping(key)}
    return [key for key in all_keys() if key in found]
