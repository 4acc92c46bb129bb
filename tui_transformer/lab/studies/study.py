"""A study: one base, variants of it, seeds; what is expected of each variant is written down before anything is run.

A study is a TOML file. The shipped ones stand in `presets/studies`; one that was started stands beside its runs as
`NAME.study.toml`, complete, so that it can be gone on with and repeated.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from engine.config import presets
from engine.config.keys import all_keys, flatten, unknown_key
from engine.config.toml import read, shown
from engine.errors import InputError, nearest, one_of
from engine.measures import MEASURES, family
from engine.runs.lineage import INIT_FROM
from engine.runs.names import check_name
from tui_transformer.lab.studies.cells import Cell, cells_of, run_name
from tui_transformer.lab.studies.stages import Stage, chain, check_kept, check_stages

SCHEMA = 1
SUFFIX = ".study.toml"
MOST_RUNS = 10_000  # of one study
MOST_WORDS = 2_000  # characters of a description or a reason
OUTCOMES = ("worse", "better", "same", "unknown")
# What an outcome can be expected of: scores, and the probes of the built-in corpora without their bands.
EXPECTABLE = tuple(measure.key for measure in MEASURES if measure.judged)
_SEED = re.compile(r"\.s\d+\Z")


@dataclass(frozen=True)
class Variant:
    """One thing changed.

    Args:
        name: a legal part of a run's name.
        preset: an overlay applied to the study's base; "" for none.
        changes: dotted config keys on top.
        expect: a measure → an outcome, against the study's baseline.
        stages: of the study that it goes through, the last among them; none named means all.
    """

    name: str
    preset: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    expect: Mapping[str, str] = field(default_factory=dict)
    stages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Study:
    """Variants of one base, each trained with every seed.

    Args:
        name: of the study, the first part of its runs' names.
        base: a preset, or `OVERLAY@BASE`.
        variants: in the order they are run and shown.
        baseline: the variant that the others are held against.
        primary: the measure with most weight in the verdicts, such as `loss` or `recall`; a probe may be named in
            full, `recall<110`. "" for the one the base selects checkpoints by.
        seeds: of the runs; data order and initial weights follow from them.
        changes: dotted config keys for all variants, below what a variant changes.
        description: one line.
        why: variant → one sentence: why that is expected.
        stages: that a variant goes through with each seed, each from the weights of an earlier one; the last is
            compared. None: a run each.

    Raises:
        InputError: anything of that which cannot be; what a variant asks for is looked at in `cells`.
    """

    name: str
    base: str
    variants: tuple[Variant, ...]
    baseline: str
    seeds: tuple[int, ...] = (1, 2, 3)
    changes: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    why: Mapping[str, str] = field(default_factory=dict)
    stages: tuple[Stage, ...] = ()
    primary: str = ""

    def __post_init__(self) -> None:
        where = f"study '{self.name[:80]}'"
        check_name(self.name)
        if ending := _SEED.search(self.name):
            raise InputError(f"{where}: a name that ends in '{ending[0]}' looks like one of its runs")
        names = [variant.name for variant in self.variants]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"{where}: two variants are called '{name[:80]}'; each needs a name of its own")
            _check_name(name, f"{where}, variant '{name[:80]}'")
            _check_name(run_name(self.name, name, _longest(self.seeds)), f"{where}, variant '{name}'")
        if len(names) < 2:
            raise InputError(f"{where}: has {len(names)} variants; a comparison needs at least 2")
        if self.baseline not in names:
            hint = nearest(self.baseline, names) or f"; they are {one_of(names)}"
            raise InputError(f"{where}: baseline '{self.baseline[:80]}' is none of the variants{hint}")
        if self.primary and family(self.primary) not in EXPECTABLE:
            hint = nearest(self.primary, EXPECTABLE) or f"; it can be {one_of(EXPECTABLE)}"
            raise InputError(f"{where}: primary = {shown(self.primary)} is neither a score nor a probe{hint}")
        check_stages(self.stages, where)
        for stage in self.stages:
            _check_name(stage.name, f"{where}, stage '{stage.name[:80]}'")
            _check_changes(stage.changes, f"{where}, stage '{stage.name}': changes")
            try:
                says = stage.keys
            except InputError as error:
                raise InputError(f"{where}, stage '{stage.name}': {error}") from None
            if stage.starts_from and INIT_FROM in says:
                raise InputError(f"{where}, stage '{stage.name}': '{INIT_FROM}' is what its `from` says")
        for variant in self.variants:
            check_kept(self.stages, variant.stages, f"{where}, variant '{variant.name}'")
        self._check_runs(where)
        self._check_seeds(where)
        _check_changes(self.changes, f"{where}: changes")
        for variant in self.variants:
            _check_changes(variant.changes, f"{where}, variant '{variant.name}': changes")
            _check_expected(variant.expect, f"{where}, variant '{variant.name}': expect")
        for name in self.why:
            if name not in names:
                raise InputError(f"{where}: why: no variant is called '{name[:80]}'{nearest(name, names)}")

    def _check_runs(self, where: str) -> None:
        """Earlier stages have names of their own, which must be legal, and no other variant's."""
        seed = _longest(self.seeds)
        names = [(v, run_name(self.name, v.name, seed, stage)) for v in self.variants for stage in self.runs_of(v)]
        for variant, name in names:
            _check_name(name, f"{where}, variant '{variant.name}'")
            if [other for _, other in names].count(name) > 1:
                raise InputError(f"{where}: two of its runs would be called '{name}'; rename variant or stage")

    def runs_of(self, variant: Variant) -> tuple[str, ...]:
        """The stages of a variant, as its runs are named: the last one has no name, it is what is compared."""
        links = chain(self.stages, variant.stages)
        return (*(link.stage.name for link in links[:-1]), "")

    def _check_seeds(self, where: str) -> None:
        if not self.seeds:
            raise InputError(f"{where}: has no seeds; e.g. seeds = [1, 2, 3]")
        runs = len(self.seeds) * sum(len(self.runs_of(variant)) for variant in self.variants)
        if runs > MOST_RUNS:
            raise InputError(f"{where}: {runs:,} runs; at most {MOST_RUNS:,} make one study")
        for seed in self.seeds:
            if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
                raise InputError(f"{where}: seed {shown(seed)}: must be a whole number from 0 on")
            if self.seeds.count(seed) > 1:
                raise InputError(f"{where}: seed {seed} stands there twice; the same seed gives the same run")

    def variant(self, name: str) -> Variant:
        """The variant of that name."""
        return next(variant for variant in self.variants if variant.name == name)

    def cells(self) -> tuple[Cell, ...]:
        """Every run, seeds first; see `tui_transformer.lab.studies.cells.cells_of`."""
        return cells_of(self)

    def to_toml(self) -> str:
        """The study as a file that `read_study` reads back as an equal study."""
        tables: dict[str, Any] = {"schema": SCHEMA, "name": self.name, "description": self.description}
        tables |= {"base": self.base, "baseline": self.baseline, "primary": self.primary, "seeds": list(self.seeds)}
        tables["changes"] = dict(self.changes)
        tables["stages"] = [_stage_table(stage) for stage in self.stages]
        tables["variants"] = [self._variant_table(variant) for variant in self.variants]
        return tomli_w.dumps({key: value for key, value in tables.items() if value not in ("", {}, [])})

    def _variant_table(self, variant: Variant) -> dict[str, Any]:
        table: dict[str, Any] = {"name": variant.name, "preset": variant.preset, "why": self.why.get(variant.name, "")}
        table |= {"changes": dict(variant.changes), "expect": dict(variant.expect), "stages": list(variant.stages)}
        return {key: value for key, value in table.items() if value not in ("", {}, [])}


def _stage_table(stage: Stage) -> dict[str, Any]:
    table = {"name": stage.name, "from": stage.starts_from, "preset": stage.preset, "changes": dict(stage.changes)}
    return {key: value for key, value in table.items() if value not in ("", {})}


def _check_name(name: str, where: str) -> None:
    try:
        check_name(name)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _longest(seeds: tuple[int, ...]) -> int:
    return max((seed for seed in seeds if isinstance(seed, int)), default=1)


def _check_changes(changes: Mapping[str, Any], where: str) -> None:
    for key in changes:
        if key == "seed":
            raise InputError(f"{where}: 'seed' is what `seeds` says for all variants alike")
        if key not in all_keys() or key in ("schema", "preset", "description"):
            raise InputError(f"{where}: {unknown_key(key)}")


def _check_expected(expect: Mapping[str, str], where: str) -> None:
    for measure, outcome in expect.items():
        if measure not in EXPECTABLE:
            hint = nearest(measure, EXPECTABLE) or f"; it can be about {one_of(EXPECTABLE)}"
            raise InputError(f"{where}: '{measure[:80]}' is no score and no probe{hint}")
        if outcome not in OUTCOMES:
            raise InputError(f"{where}: {measure} = {shown(outcome)}: must be {one_of(OUTCOMES)}")


# Keys of a study's file and of one of its variants: what each must be.
STUDY_KEYS: dict[str, type] = {
    "schema": int,
    "name": str,
    "description": str,
    "base": str,
    "baseline": str,
    "primary": str,
    "seeds": list,
    "changes": dict,
    "stages": list,
    "variants": list,
}
STAGE_KEYS: dict[str, type] = {"name": str, "from": str, "preset": str, "changes": dict}
VARIANT_KEYS: dict[str, type] = {
    "name": str,
    "preset": str,
    "why": str,
    "changes": dict,
    "expect": dict,
    "stages": list,
}
KINDS = {int: "a whole number", str: "text", list: "a list", dict: "a table"}


def read_study(path: Path) -> Study:
    """The study in a file; its name is the file's where the file does not say one.

    Raises:
        InputError: unreadable, or anything wrong with it; names the file.
    """
    tables = read(path)
    where = str(path)
    _check_keys(tables, STUDY_KEYS, where)
    if tables.get("schema", SCHEMA) != SCHEMA:
        raise InputError(f"{where}: schema = {shown(tables['schema'])}: this version reads {SCHEMA}")
    for key in ("base", "baseline", "variants"):
        if key not in tables:
            raise InputError(f"{where}: '{key}' is missing; a study has base, baseline and variants")
    rows, stages = tables["variants"], tables.get("stages", [])
    for what, known, found in (("variant", VARIANT_KEYS, rows), ("stage", STAGE_KEYS, stages)):
        for number, row in enumerate(found, 1):
            if not isinstance(row, dict):
                raise InputError(f"{where}: {what} {number} = {shown(row)}: must be a table, [[{what}s]]")
            _check_keys(row, known, f"{where}: {what} {number}")
            if "name" not in row:
                raise InputError(f"{where}: {what} {number} has no name")
    try:
        return Study(
            name=tables.get("name", path.name.removesuffix(SUFFIX).removesuffix(".toml")),
            base=tables["base"],
            variants=tuple(_variant(row) for row in rows),
            baseline=tables["baseline"],
            seeds=tuple(tables.get("seeds", (1, 2, 3))),
            changes=flatten(tables.get("changes", {})),
            description=tables.get("description", ""),
            why={row["name"]: row["why"] for row in rows if row.get("why")},
            stages=tuple(_stage(row) for row in stages),
            primary=tables.get("primary", ""),
        )
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _stage(row: Mapping[str, Any]) -> Stage:
    return Stage(row["name"], row.get("from", ""), flatten(row.get("changes", {})), row.get("preset", ""))


def _variant(row: Mapping[str, Any]) -> Variant:
    return Variant(
        row["name"],
        row.get("preset", ""),
        flatten(row.get("changes", {})),
        row.get("expect", {}),
        tuple(row.get("stages", ())),
    )


def _check_keys(table: Mapping[str, Any], known: Mapping[str, type], where: str) -> None:
    for key, value in table.items():
        if key not in known:
            raise InputError(f"{where}: unknown key '{key[:80]}'{nearest(key, known) or f'; keys are {one_of(known)}'}")
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise InputError(f"{where}: {key} = {shown(value)}: must be {KINDS[known[key]]}")
        if isinstance(value, str) and len(value) > MOST_WORDS:
            raise InputError(f"{where}: {key} has {len(value):,} characters; at most {MOST_WORDS:,}")


def shipped_studies() -> dict[str, Path]:
    """The files of the studies that come with the app, by name."""
    found = {path.stem: path for path in (presets.folder() / "studies").glob("*.toml")}
    return dict(sorted(found.items()))


def find_study(name: str, runs_dir: Path | None = None) -> Study:
    """A study by what a person calls it: a file's path, a shipped study, or one that was started in a runs folder.

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


def started_studies(runs_dir: Path) -> dict[str, Path]:
    """The files of the studies that were started in a runs folder, by name."""
    return {path.name.removesuffix(SUFFIX): path for path in sorted(runs_dir.glob(f"*{SUFFIX}"))}
