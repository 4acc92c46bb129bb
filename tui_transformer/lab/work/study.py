"""A study: variants of one base, each trained with several seeds, perhaps in stages.

A study is a TOML file that says what is expected of each variant before anything runs. The shipped ones are in
`presets/studies`; a started one is kept beside its runs as `NAME.study.toml`, complete, so that it can be resumed and
repeated. `Study.cells` lists its runs. What two cells' configs share is equal bit for bit: every parameter is drawn
from the seed and its own name, every batch from the seed and its number.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import tomli_w
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from engine import capabilities
from engine.base.errors import InputError, did_you_mean, join_or, write_error
from engine.base.language import Message, tr
from engine.config import Tables, presets
from engine.config.keys import all_keys, diff, flatten, is_bookkeeping, unknown_key_message
from engine.config.measures import MEASURES, name_without_band
from engine.config.schema import RunConfig
from engine.config.toml import read_toml, short_repr, validate
from engine.runs.files import write_atomic
from engine.runs.lineage import INIT_FROM, split_init_from
from engine.runs.names import check_name
from tui_transformer.lab.work.study_files import SUFFIX, started_studies, study_file

SCHEMA = 1
MOST_RUNS = 10_000  # of one study
SEEDS, FEWER = (1, 2, 3, 4, 5), (1, 2, 3)  # if none are given; `FEWER` if the runs would take over `LONG_SECONDS`
LONG_SECONDS = 3600.0  # seconds
MOST_WORDS = 2_000  # characters of a description or a reason
OUTCOMES = (Message("worse"), Message("better"), Message("same"), Message("unknown"))
# Measures with expectable outcomes: scores, and the probes of the built-in corpora without their bands.
EXPECTABLE = tuple(measure.key for measure in MEASURES if measure.is_compared)
THREADS = "train.threads"  # sums differ between counts, so every cell has the same
Change = tuple[Any, Any]  # before, after; None where a key is unset


@dataclass(frozen=True)
class Stage:
    """A run that later stages of the same variant and seed start from; the last stage is the one compared."""

    name: str  # a legal part of a run's name
    starts_from: str = ""  # an earlier stage, `NAME` or `NAME@last`; "" for fresh weights
    # dotted config keys; they override the study's changes, and the variant's override them
    changes: Mapping[str, Any] = field(default_factory=dict)
    preset: str = ""  # an overlay applied before these changes; "" for none

    @property
    def overlay(self) -> list[Tables]:
        """The tables of its preset, each overriding the one before; raises InputError if invalid."""
        if not self.preset:
            return []
        links = presets.overlay_chain(self.preset, tr("a stage can only change the study's base, not replace it"))
        return [link.tables for link in links]

    @property
    def keys(self) -> set[str]:
        return {*self.changes, *(key for tables in self.overlay for key in flatten(dict(tables)))}

    @property
    def parent(self) -> tuple[str, str]:
        """The stage and the checkpoint it takes its weights from; both "" if none."""
        return split_init_from(self.starts_from) if self.starts_from else ("", "")


def stage_chain(stages: Sequence[Stage], kept: Sequence[str]) -> tuple[Stage, ...]:
    """Return the `stages` that a variant `kept`, all if it names none; without stages, one unnamed stage.

    A stage whose parent is left out starts where the parent does.
    """
    by_name = {stage.name: stage for stage in stages}
    names = set(kept) or set(by_name)
    found = []
    for stage in stages:
        while (after := stage.parent[0]) and after not in names:
            stage = replace(stage, starts_from=by_name[after].starts_from)
        if stage.name in names:
            found.append(stage)
    return tuple(found) or (Stage(""),)


@dataclass(frozen=True)
class Variant:
    name: str  # a legal part of a run's name
    preset: str = ""  # an overlay applied to the study's base; "" for none
    changes: Mapping[str, Any] = field(default_factory=dict)  # dotted config keys on top
    expect: Mapping[str, str] = field(default_factory=dict)  # a measure → an outcome, against the study's baseline
    stages: tuple[str, ...] = ()  # names of the study's stages to run, including the last; empty means all
    why: str = ""  # one sentence on why that is expected


@dataclass(frozen=True)
class StudyCell:
    variant: str
    seed: int  # of the run
    config: RunConfig  # complete; not yet resolved
    name: str  # of the run's directory
    stage: str = ""  # the name of an earlier stage; "" for the run that is compared
    parent_cell: str = ""  # the name of the cell whose weights it starts with; "" for fresh weights

    @property
    def name_without_seed(self) -> str:
        """What the cells of all seeds share: the variant, followed by an earlier stage's name."""
        return f"{self.variant}.{self.stage}" if self.stage else self.variant

    @property
    def parent_stage(self) -> str:
        """The stage it takes its weights from; "" for fresh weights."""
        return self.parent_cell.removesuffix(f".s{self.seed}").rpartition(f".{self.variant}.")[2]

    def config_differences(self, ran: RunConfig) -> dict[str, Change]:
        """How a resolved run's request differs from this: dotted key → (what it ran, what this requests)."""

        def may_be_resolved(key: str, ran: Any, asked: Any) -> bool:
            if asked is None:  # filled in from the corpus or the machine
                return True
            if key == "data.corpus":  # a file, by its whole path
                return str(Path(str(asked)).resolve()) == str(Path(str(ran)).resolve())
            if key == "train.epochs":
                return ran is None
            if key == INIT_FROM and self.parent_cell:  # the other cell's run may be renamed by now
                return ran is not None and str(ran).rpartition("@")[2] == str(asked).rpartition("@")[2]
            if key == "evaluation.stride":  # at most what a window predicts
                return bool(ran == self.config.evaluation_stride)
            return isinstance(asked, str) and isinstance(ran, int)  # "5 epochs" in steps

        return {key: change for key, change in diff(ran, self.config).items() if not may_be_resolved(key, *change)}


@dataclass(frozen=True)
class Study:
    """Variants of one base, each trained with every seed; raises InputError except for what `cells` checks."""

    name: str  # the study's name, with which its runs' names begin
    base: str  # a preset, or `OVERLAY@BASE`
    variants: tuple[Variant, ...]  # in the order they run and are shown
    baseline: str  # the variant that the others are compared with
    seeds: tuple[int, ...] = SEEDS  # the runs' seeds, which determine data order and initial weights
    # dotted config keys for all variants, which a variant's changes override
    changes: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""  # one line
    stages: tuple[Stage, ...] = ()  # the stages of each variant and seed; empty: one run each
    # the measure with the most weight in the verdicts, such as `loss`, `recall` or the full name of a probe,
    # `recall<110`; "" for the one by which the base selects checkpoints
    primary: str = ""
    seeds_given: bool = field(default=False, compare=False)  # if not, a plan may propose fewer

    def __post_init__(self) -> None:
        check_name(self.name)
        where = tr("study '{name}'", name=self.name[:80])
        for problem in chain.from_iterable(check(self, where) for check in CHECKS):
            raise InputError(problem)

    def variant(self, name: str) -> Variant:
        return next(variant for variant in self.variants if variant.name == name)

    def cells(self) -> tuple[StudyCell, ...]:
        """Return every run, seeds first, each after its earlier stages.

        The finished part of an interrupted study is then a smaller complete one.
        """
        asked: dict[str, str] = {}
        configs = {}
        for variant in self.variants:
            stages = stage_chain(self.stages, variant.stages)
            configs[variant.name] = [(stage, variant_config(self, variant, stage)) for stage in stages]
        for name, made in configs.items():
            other = asked.setdefault(settings_identity_key(config for _, config in made), name)
            if other != name:
                text = Message(
                    "variants '{other}' and '{name}' have the same config, so they would be the same run twice; "
                    "change or remove one of them",
                    other=other,
                    name=name,
                )
                raise InputError(text)
        cells = []
        for seed in self.seeds:
            for name, made in configs.items():
                for stage, config in made:
                    own = stage.name if stage is not made[-1][0] else ""
                    parent, checkpoint = stage.parent
                    after = run_name(self.name, name, seed, parent) if parent else ""
                    config = config.model_copy(update={"seed": seed})
                    if after:
                        config = capabilities.with_value(config, INIT_FROM, f"{after}@{checkpoint}")
                    cells.append(StudyCell(name, seed, config, run_name(self.name, name, seed, own), own, after))
        return tuple(cells)

    def to_toml(self) -> str:
        """Return the study as a file that `read_study` reads back as an equal study, without empty fields."""
        file = StudyFileModel.model_validate(self, from_attributes=True).model_dump(by_alias=True)
        for name in ("stages", "variants"):
            file[name] = [{key: said for key, said in one.items() if said} for one in file[name]]
        return tomli_w.dumps({key: said for key, said in file.items() if said})


@contextmanager
def _error_context(where: str) -> Iterator[None]:
    """Add the place in the study to an error."""
    try:
        yield
    except InputError as error:
        raise InputError(Message("{where}: {error}", where=where, error=error)) from None


# What a study must be. Each check yields what is wrong; the first is raised, and later checks rely on earlier ones.


def _check_names(study: Study, where: str) -> Iterator[str]:
    if ending := re.search(r"\.s\d+\Z", study.name):
        yield tr(
            "{where}: a study name ending in '{ending}' looks like the name of one of the study's runs",
            where=where,
            ending=ending[0],
        )
    for name, count in Counter(variant.name for variant in study.variants).items():
        if count > 1:
            yield tr(
                "{where}: two variants are called '{name}'; each needs a name of its own", where=where, name=name[:80]
            )
        with _error_context(tr("{where}, variant '{name}'", where=where, name=name[:80])):
            check_name(name)
            check_name(run_name(study.name, name, _longest_seed(study)))


def _check_comparison(study: Study, where: str) -> Iterator[str]:
    names = [variant.name for variant in study.variants]
    if len(names) < 2:
        yield tr("{where}: a comparison needs at least 2 variants, not {n}", where=where, n=len(names))
    if study.baseline not in names:
        yield tr(
            "{where}: baseline '{baseline}' is not one of the variants{hint}",
            where=where,
            baseline=study.baseline[:80],
            hint=did_you_mean(study.baseline, names) or tr("; it can be {names}", names=join_or(names)),
        )
    if study.primary and name_without_band(study.primary) not in EXPECTABLE:
        yield tr(
            "{where}: primary = {primary} is neither a score nor a probe{hint}",
            where=where,
            primary=short_repr(study.primary),
            hint=_measure_hint(study.primary),
        )


def _check_chain(study: Study, where: str) -> Iterator[str]:
    """Each stage but the last is one that a later stage starts from."""
    names = [stage.name for stage in study.stages]
    if len(names) == 1:
        yield tr(
            "{where}: a single stage is not a chain; leave [[stages]] out, or add a stage that starts from it",
            where=where,
        )
    for place, stage in enumerate(study.stages):
        if names.count(stage.name) > 1:
            yield tr(
                "{where}: two stages are called '{name}'; each needs a name of its own",
                where=where,
                name=stage.name[:80],
            )
        said = tr("{where}, stage '{name}'", where=where, name=stage.name[:80])
        with _error_context(tr("{said}: from", said=said)):
            parent, _ = stage.parent
        if parent and parent not in names[:place]:
            earlier = tr("; it can be {names}", names=join_or(names[:place])) if place else ""
            yield tr(
                "{said}: from = '{parent}' is not an earlier stage{hint}",
                said=said,
                parent=parent[:80],
                hint=did_you_mean(parent, names[:place]) or earlier,
            )
    for name in names[:-1]:
        if not any(stage.parent[0] == name for stage in study.stages):
            hint = tr('set from = "{name}" in a later stage', name=name[:80])
            yield tr("{where}, stage '{name}': no stage starts from it; {hint}", where=where, name=name[:80], hint=hint)


def _check_stages(study: Study, where: str) -> Iterator[str]:
    """Every variant keeps the last stage."""
    for stage in study.stages:
        said = tr("{where}, stage '{name}'", where=where, name=stage.name)
        with _error_context(said):
            check_name(stage.name)
        yield from _check_changes(stage.changes, tr("{where}: changes", where=said))
        with _error_context(said):
            keys = stage.keys
        if stage.starts_from and INIT_FROM in keys:
            yield tr("{said}: '{init_from}' is already set by its `from`", said=said, init_from=INIT_FROM)
    names = [stage.name for stage in study.stages]
    for variant in study.variants:
        said = tr("{where}, variant '{name}': stages", where=where, name=variant.name)
        for name in variant.stages:
            if name not in names:
                hint = tr("; it can be {names}", names=join_or(names)) if names else tr("; the study has none")
                hint = did_you_mean(str(name), names) or hint
                yield tr("{said}: no stage is called '{name}'{nearest}", said=said, name=str(name)[:80], nearest=hint)
        if variant.stages and names[-1] not in variant.stages:
            yield tr(
                "{said}: '{names}' cannot be left out: the last stage is the one that is compared",
                said=said,
                names=names[-1],
            )


def _check_runs(study: Study, where: str) -> Iterator[str]:
    """Earlier stages have their own runs, whose names must be legal and not another variant's."""
    runs = []
    for v in study.variants:
        stages = (*(stage.name for stage in stage_chain(study.stages, v.stages)[:-1]), "")
        runs += [(v, run_name(study.name, v.name, _longest_seed(study), stage)) for stage in stages]
    counts = Counter(run for _, run in runs)
    for variant, run in runs:
        with _error_context(tr("{where}, variant '{name}'", where=where, name=variant.name)):
            check_name(run)
        if counts[run] > 1:
            yield tr(
                "{where}: two of its runs would be called '{run}'; rename the variant or the stage",
                where=where,
                run=run,
            )
    if not study.seeds:
        yield tr("{where}: has no seeds; e.g. seeds = [1, 2, 3]", where=where)
    if (n := len(study.seeds) * len(runs)) > MOST_RUNS:
        yield tr("{where}: {n:,} runs; a study can have at most {most_runs:,}", where=where, n=n, most_runs=MOST_RUNS)
    for seed in study.seeds:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
            yield tr("{where}: seed {seed}: must be a whole number, 0 or greater", where=where, seed=short_repr(seed))
        if study.seeds.count(seed) > 1:
            yield tr("{where}: seed {seed} is listed twice; the same seed gives the same run", where=where, seed=seed)


def _check_variants(study: Study, where: str) -> Iterator[str]:
    yield from _check_changes(study.changes, tr("{where}: changes", where=where))
    for variant in study.variants:
        said = tr("{where}, variant '{name}': changes", where=where, name=variant.name)
        yield from _check_changes(variant.changes, said)
        for measure, outcome in variant.expect.items():
            said = tr("{where}, variant '{name}': expect", where=where, name=variant.name)
            if measure not in EXPECTABLE:
                yield tr(
                    "{said}: '{measure}' is neither a score nor a probe{hint}",
                    said=said,
                    measure=measure[:80],
                    hint=_measure_hint(measure),
                )
            if outcome not in OUTCOMES:
                yield tr(
                    "{said}: {measure} = {outcome}: must be {outcomes}",
                    said=said,
                    measure=measure,
                    outcome=short_repr(outcome),
                    outcomes=join_or(OUTCOMES),
                )


def _check_changes(changes: Mapping[str, Any], where: str) -> Iterator[str]:
    for key in changes:
        if key == "seed":
            yield tr("{where}: 'seed' is set by `seeds`, for all variants alike", where=where)
        if key not in all_keys() or key in ("schema", "preset", "description"):
            yield f"{where}: {unknown_key_message(key)}"


def _longest_seed(study: Study) -> int:
    return max((seed for seed in study.seeds if isinstance(seed, int)), default=1)


def _measure_hint(name: str) -> str:
    return did_you_mean(name, EXPECTABLE) or tr("; it can be {expectable}", expectable=join_or(EXPECTABLE))


CHECKS = (_check_names, _check_comparison, _check_chain, _check_stages, _check_runs, _check_variants)


# The file of a study. The order of the fields is the order in the file.

Words = Annotated[str, Field(strict=True, max_length=MOST_WORDS)]
Table = dict[str, Any]
Changes = Annotated[Table, AfterValidator(flatten)]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class StageFile(_File):
    name: Words
    starts_from: Words = Field("", alias="from")
    preset: Words = ""
    changes: Changes = {}


class VariantFile(_File):
    name: Words
    preset: Words = ""
    why: Words = ""
    changes: Changes = {}
    expect: Table = {}
    stages: list[Any] = []


class StudyFileModel(_File):
    schema_: Annotated[int, Field(strict=True)] = Field(SCHEMA, alias="schema")
    name: Words = ""
    description: Words = ""
    base: Words
    baseline: Words
    primary: Words = ""
    seeds: list[Any] = [*SEEDS]
    changes: Changes = {}
    stages: list[StageFile] = []
    variants: list[VariantFile]


FILE_KINDS = {
    "int": tr("a whole number"),
    "string": tr("text"),
    "list": tr("a list"),
    "dict": tr("a table"),
    "model": tr("a table, [[{name}]]"),
}


def _problem(error: ValidationError) -> str:
    """One line for the first problem in a study's file; typing mistakes come first."""
    problems = error.errors(include_url=False)
    order = ("extra_forbidden", "missing")
    problem = min(problems, key=lambda p: order.index(p["type"]) if p["type"] in order else len(order))
    *row, key = problem["loc"]
    list_name = str(row[0] if row else problem["loc"][0])
    kinds: dict[str, type[BaseModel]] = {"stages": StageFile, "variants": VariantFile}
    kind = kinds.get(list_name, StudyFileModel) if row else StudyFileModel
    number = key if isinstance(key, int) else row[1] if row else None
    where = tr("{kind} {number}", kind=tr(list_name[:-1]), number=int(number) + 1) if isinstance(number, int) else ""
    said = f"{where}: " if where else ""
    if problem["type"] == "extra_forbidden":
        known = [one.alias or name for name, one in kind.model_fields.items()]
        hint = did_you_mean(str(key), known) or tr("; it can be {known}", known=join_or(known))
        return tr("{said}unknown key '{key}'{nearest}", said=said, key=str(key)[:80], nearest=hint)
    if problem["type"] == "missing" and where:
        return tr("{where} has no name", where=where)
    if problem["type"] == "missing":
        return tr("'{key}' is missing; a study needs base, baseline and variants", key=key)
    if problem["type"] == "string_too_long":
        return tr(
            "{said}{key} has {n:,} characters; at most {most_words:,}",
            said=said,
            key=key,
            n=len(problem["input"]),
            most_words=MOST_WORDS,
        )
    must = FILE_KINDS[problem["type"].partition("_")[0]].format(name=list_name)
    where = where if isinstance(key, int) else f"{said}{key}"
    return tr("{where} = {problem}: must be {must}", where=where, problem=short_repr(problem["input"]), must=must)


def read_study(path: Path) -> Study:
    """Read a study; its name defaults to the file's."""
    return parse_study(read_toml(path), path)


def parse_study(tables: Mapping[str, Any], path: Path) -> Study:
    """Build a study from a file's tables; raises InputError as `read_study`."""
    if isinstance(schema := tables.get("schema", SCHEMA), int) and schema != SCHEMA:
        text = Message(
            "{path}: schema = {schema}: this version reads {schema2}",
            path=path,
            schema=short_repr(schema),
            schema2=SCHEMA,
        )
        raise InputError(text)
    try:
        file = StudyFileModel.model_validate(tables)
    except ValidationError as error:
        raise InputError(f"{path}: {_problem(error)}") from None
    said = {key: value for key, value in file if key != "schema_"}
    said["name"] = file.name if "name" in tables else path.name.removesuffix(SUFFIX).removesuffix(".toml")
    said["stages"] = tuple(Stage(**dict(stage)) for stage in file.stages)
    said["variants"] = tuple(Variant(**dict(v) | {"stages": tuple(v.stages)}) for v in file.variants)
    with _error_context(str(path)):
        return Study(**said | {"seeds": tuple(file.seeds), "seeds_given": "seeds" in tables})


def shipped_studies() -> dict[str, Path]:
    return dict(sorted((path.stem, path) for path in (presets.folder() / "studies").glob("*.toml")))


def write_study(study: Study, runs_dir: Path) -> None:
    try:
        write_atomic(study_file(runs_dir, study.name), study.to_toml())
    except OSError as error:
        raise write_error(tr("cannot write {filename}", filename=error.filename or runs_dir), error) from None


def read_started_study(runs_dir: Path, name: str) -> Study | None:
    """Return a study as started, None if it was not; raises InputError if its file cannot be read."""
    path = study_file(runs_dir, name)
    return read_study(path) if path.exists() else None


def find_study(name: str, runs_dir: Path | None = None) -> Study:
    """Find a study by a shipped study's name, that of one started in a runs folder, or a file's path."""
    known = (started_studies(runs_dir) if runs_dir is not None else {}) | shipped_studies()
    if name in known or name.endswith(".toml"):
        return read_study(known.get(name, Path(name)))
    hint = did_you_mean(name, known) or tr("; it can be {known}", known=join_or(known))
    raise InputError(Message("no study named '{name}' (a file, NAME.toml, works too){hint}", name=name[:80], hint=hint))


# From a study to configs.


def run_name(study: str, variant: str, seed: int, stage: str = "") -> str:
    """`attention.win16.s2`; of an earlier stage `attention.win16.pretrain.s2`."""
    return ".".join(part for part in (study, variant, stage, f"s{seed}") if part)


def base_tables(base: str) -> Tables:
    """Return the tables of a preset or `OVERLAY@BASE`; raises InputError if it is neither."""
    name, _, on = base.partition("@")
    links = presets.extends_chain(presets.find(name))
    if on:
        below = presets.extends_chain(presets.find(on))
        links = [*below, *presets.overlay_chain(name, tr("it cannot be applied to '{on}'", on=on[:80]))]
    return merge_tables([*(link.tables for link in links), {"preset": base}])


def variant_config(study: Study, variant: Variant, stage: Stage) -> RunConfig:
    """Return a variant's config with the study's first seed.

    Base, the study's changes, the stage's preset and changes, overlay, the variant's changes: each overrides those
    before it.
    """
    where = tr("study '{name}'", name=study.name)
    with _error_context(where):
        base = base_tables(study.base)
    where = tr("{where}, variant '{name}'", where=where, name=variant.name)
    with _error_context(where):
        refusal = tr("a variant can only change the study's base, not replace it")
        overlay = presets.overlay_chain(variant.preset, refusal) if variant.preset else []
    where = tr("{where}, stage '{name}'", where=where, name=stage.name) if stage.name else where
    with _error_context(where):
        staged = [*stage.overlay, nest_keys(stage.changes)]
    own = [*(link.tables for link in overlay), nest_keys(variant.changes), {"seed": study.seeds[0]}]
    if overlay:
        own += [{"preset": variant.preset if overlay[0].extends == study.base else f"{variant.preset}@{study.base}"}]
    config = validate(merge_tables([base, nest_keys(study.changes), merge_tables(staged), *own]), where)
    capabilities.require_valid(config, where)
    return config


def nest_keys(changes: Mapping[str, Any]) -> Tables:
    """Return dotted keys as nested tables; later keys override equivalent earlier ones."""
    split = ((key.partition("."), value) for key, value in changes.items())
    return merge_tables({section: {name: value}} if dot else {section: value} for (section, dot, name), value in split)


def merge_tables(tables: Iterable[Tables]) -> Tables:
    return reduce(presets.merge, tables, {})


def settings_identity_key(configs: Iterable[RunConfig]) -> str:
    """Return the settings of a variant's stages, without seed and bookkeeping: equal for equal runs."""
    flat = [flatten(config.dump()) for config in configs]
    kept = [{k: v for k, v in one.items() if k != "seed" and not is_bookkeeping(k)} for one in flat]
    return json.dumps(kept, sort_keys=True)
