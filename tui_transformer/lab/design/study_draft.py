"""A study in the making: variants of a design, and seeds; what it costs, and the command that runs it.

No widget, no torch. It is never changed: every change gives a new one. A variant that cannot be trained, or that would
be the same run twice, stays in it with the reason, and is left out of the study.
"""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from engine.command_line import program
from engine.config import presets
from engine.config.keys import diff, flatten, parse_override
from engine.config.schema import RunConfig
from engine.errors import InputError
from engine.lints import lint
from tui_transformer.lab.design.draft import Benchmark, Characters, Draft, cost
from tui_transformer.lab.studies.arguments import StudyArgs, grid, parse_axis, parse_seeds
from tui_transformer.lab.studies.plan import disk_bytes
from tui_transformer.lab.studies.study import (
    Change,
    Stage,
    Study,
    Variant,
    base_tables,
    chain,
    nested,
    settings_of,
    variant_config,
)

DESIGN = "design"  # the variant that changes nothing
GENERIC = "baseline"  # what overlays for any base extend
NOT_OF_A_STUDY = ("schema", "preset", "description", "seed")
SEEDS = (1, 2, 3)
DECIDES = 5  # seeds from which on a study is more than exploratory
MOST = 100  # variants that are made at once
LOSS_DEPENDS_ON = (  # what a loss is a loss of, and on what
    "data.corpus",
    "data.corpus_seed",
    "data.corpus_size",
    "data.validation_fraction",
    "data.max_length",
    "data.tokenizer",
    "data.bpe_size",
    "objective.kind",
    "model.context_length",
    "evaluation.stride",
)
_NEXT_AXIS = re.compile(r"\s+(?=[a-z_]+(?:\.[a-z_0-9]+)*=)")
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class VariantLine:
    """One variant as it stands."""

    variant: Variant
    config: RunConfig | None  # of its last stage, which is compared; None where it cannot be
    why_not: str = ""  # why it is left out of the study; "" if it is part of it
    earlier: tuple[RunConfig, ...] = ()  # of the stages before, in their order

    @property
    def configs(self) -> tuple[RunConfig, ...]:
        """What is trained with each seed, one after the other; nothing where it cannot be."""
        return () if self.config is None else (*self.earlier, self.config)


@dataclass(frozen=True)
class Overlay:
    """A preset that changes one thing, as a variant."""

    variant: Variant
    description: str
    why_not: str = ""  # why it cannot be a variant of the design; "" if it can


@dataclass(frozen=True)
class StudyDraft:
    """One study."""

    design: Draft  # the base
    name: str
    variants: tuple[Variant, ...] = (Variant(DESIGN),)
    seeds: tuple[int, ...] = SEEDS  # of the runs; the design's own seed is not looked at
    baseline: str = DESIGN  # the variant that others are compared with
    why: Mapping[str, str] = field(default_factory=lambda: NOTHING)  # variant → why something is expected of it
    description: str = ""
    note: str = ""  # what became of a study that was put on this design
    said_as: tuple[str, ...] = ()  # how a command line says the variants; nothing where only a file does
    stages: tuple[Stage, ...] = ()  # that a variant goes through; none: a run each

    @classmethod
    def of(cls, design: Draft) -> "StudyDraft":
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", design.name).strip(".-") or DESIGN
        return cls(design, f"{stem[:60]}-study")

    # Changing it

    def with_variants(self, variants: Sequence[Variant]) -> "StudyDraft":
        """The same with more variants; those that are there already are not added again."""
        kept = list(self.variants)
        for variant in variants:
            if not any(_alike(variant, other) for other in kept):
                kept.append(replace(variant, name=_free(variant.name, [other.name for other in kept])))
        return replace(self, variants=tuple(kept), said_as=())

    def with_axes(self, text: str) -> "StudyDraft":
        """The same with a variant for each value of `KEY=VALUE,VALUE`; several axes make a grid.

        Raises:
            InputError: an unknown key, too many variants, or none of them can be trained.
        """
        words = _NEXT_AXIS.split(text.strip())
        axes = dict(_axis(word) for word in words)
        if len(axes) < len(words):
            raise InputError("a key is named twice; give all its values at once, with commas between")
        count = math.prod(len(values) for values in axes.values())
        if count > MOST:
            raise InputError(f"this makes {count:,} variants; at most {MOST} are made at once")
        for key, values in axes.items():
            for value in values:  # a value that is none is a slip of the pen, and no variant
                changed = self.design.with_change(key, value)
                if changed.config is None:
                    raise InputError(changed.problem)
        made = grid(axes)
        problems = [self.problem_of(variant) for variant in made]
        if all(problems):
            raise InputError(problems[0])
        alone = len(self.variants) == 1 and self.variants[0].name == DESIGN
        said_as = tuple(part for word in words for part in ("--vary", word)) if alone else ()
        return replace(self.with_variants(made), said_as=said_as)

    def with_study(self, study: Study) -> "StudyDraft":
        """The variants of another study, put on this design."""
        base, changes = self._base
        own = study.base == base and dict(study.changes) == changes
        variants = tuple(
            replace(v, changes={**({} if own else study.changes), **v.changes}, expect=v.expect if own else {})
            for v in study.variants
        )
        foretold = any(variant.expect for variant in study.variants)
        note = "" if own or not foretold else f"what {study.name} expects was said of {study.base}, so it is left out"
        return replace(
            self,
            name=study.name,
            variants=variants,
            baseline=study.baseline,
            why=dict(study.why) if own else NOTHING,
            description=study.description if own else "",
            note=note,
            said_as=("--study", study.name) if own else (),
            stages=study.stages,
        )

    def with_overlays(self, ticked: Sequence[Variant], offered: Sequence[Overlay]) -> "StudyDraft":
        """The same with these overlays, and without the others that were offered."""
        gone = [o.variant for o in offered if not any(_alike(o.variant, variant) for variant in ticked)]
        draft = self
        for variant in self.variants:
            if any(_alike(variant, other) for other in gone):
                draft = draft.without(variant.name)
        return draft.with_variants(ticked)

    def without(self, name: str) -> "StudyDraft":
        """The same without a variant; the baseline goes to the design where it was that one."""
        kept = tuple(variant for variant in self.variants if variant.name != name)
        if name == DESIGN and self.baseline == DESIGN and kept:
            return replace(self, variants=kept, baseline=kept[0].name, said_as=())
        if not any(variant.name == DESIGN for variant in kept) and self.baseline == name:
            kept = (Variant(DESIGN), *kept)
        baseline = DESIGN if self.baseline == name else self.baseline
        why = {variant: text for variant, text in self.why.items() if variant != name}
        return replace(self, variants=kept, baseline=baseline, why=why, said_as=())

    def with_seeds(self, text: str) -> "StudyDraft":
        """The same with other seeds: `3`, or `1,5,9`.

        Raises:
            InputError: no whole numbers, or one twice.
        """
        seeds = parse_seeds(text)
        if len(set(seeds)) < len(seeds):
            raise InputError("a seed stands there twice; the same seed gives the same run")
        return replace(self, seeds=seeds)

    def with_more_seeds(self, more: int) -> "StudyDraft":
        """The same with one seed more or less; at least one stays."""
        if more > 0:
            return replace(self, seeds=(*self.seeds, max(self.seeds) + 1))
        return replace(self, seeds=self.seeds[:-1]) if len(self.seeds) > 1 else self

    # What it is

    @cached_property
    def _base(self) -> tuple[str, dict[str, Any]]:
        return study_base(self.design)

    def _configs(self, variant: Variant) -> tuple[RunConfig, ...]:
        """What a variant of this design comes to, stage by stage.

        Raises:
            InputError: why it cannot be.
        """
        base, changes = self._base
        this, other = Variant("this", variant.preset, variant.changes, stages=variant.stages), Variant("other")
        links = chain(self.stages, variant.stages)
        try:
            study = Study("study", base, (this, other), "this", changes=changes, stages=self.stages)
            stages: list[Stage | None] = [link.stage for link in links] or [None]
            return tuple(variant_config(study, this, stage) for stage in stages)
        except InputError as error:
            raise InputError(re.sub(r"\Astudy 'study'(, variant 'this')?: ", "", str(error))) from None

    def problem_of(self, variant: Variant) -> str:
        """Why a variant of this design cannot be trained, "" if it can."""
        try:
            self._configs(variant)
        except InputError as error:
            return str(error)
        return ""

    def overlays(self, own: Sequence[presets.Preset] = ()) -> list[Overlay]:
        """Return the overlays that are of use here, of the user's own presets too; impossible ones last.

        These are generic ones, and those of the design's own base.
        """
        on = self.design.on
        root = presets.chain(presets.find(on) if on else self.design.preset)[0].name
        as_it_is = settings_of(self._configs(Variant(DESIGN)))
        found = []
        for variant, description, of in _overlay_variants(own):
            if of not in (GENERIC, root):
                continue
            try:
                same = as_it_is == settings_of(self._configs(variant))
                found.append(Overlay(variant, description, "the design has this already" if same else ""))
            except InputError as error:
                found.append(Overlay(variant, description, str(error)))
        return sorted(found, key=lambda overlay: bool(overlay.why_not))

    def has(self, variant: Variant) -> bool:
        """Whether it is among the variants, by whatever name."""
        return any(_alike(variant, other) for other in self.variants)

    @cached_property
    def lines(self) -> tuple[VariantLine, ...]:
        """Every variant as it stands. Of two that ask for the same the later one is left out, and the design always."""
        found: dict[str, VariantLine] = {}
        first: dict[str, str] = {}
        for variant in sorted(self.variants, key=lambda v: v.name == DESIGN):
            try:
                *earlier, config = configs = self._configs(variant)
            except InputError as error:
                found[variant.name] = VariantLine(variant, None, str(error))
                continue
            asked = settings_of(configs)
            same = first.setdefault(asked, variant.name)
            why_not = "" if same == variant.name else f"asks for the same as {same}: it would be the same run twice"
            if why_not and variant.name == DESIGN:
                why_not = f"{same} is the design as it stands"
            found[variant.name] = VariantLine(variant, config, why_not, tuple(earlier))
        return tuple(found[variant.name] for variant in self.variants)

    @cached_property
    def kept(self) -> tuple[VariantLine, ...]:
        return tuple(line for line in self.lines if not line.why_not)

    @cached_property
    def held_against(self) -> str:
        """The baseline of the study: the one that was chosen, or the one that asks for the same."""
        chosen = next((line for line in self.lines if line.variant.name == self.baseline), None)
        if chosen is None or not chosen.why_not or chosen.config is None:
            return self.baseline
        asked = settings_of(chosen.configs)
        return next(other.variant.name for other in self.kept if settings_of(other.configs) == asked)

    def differences(self, line: VariantLine) -> dict[str, Change]:
        """What a variant differs in from the baseline: dotted key → (baseline's, its own)."""
        other = next((o.config for o in self.kept if o.variant.name == self.held_against), None)
        if other is None or line.config is None:
            return {}
        return {key: change for key, change in diff(other, line.config).items() if key != "seed"}

    def begins(self, variant: Variant) -> str:
        """Where its last stage has its weights from; "" where the study has no stages."""
        links = chain(self.stages, variant.stages)
        if not links:
            return ""
        return f"starts from {links[-1].after}" if links[-1].after else "starts from weights of its own"

    @cached_property
    def _made(self) -> tuple[Study | None, str]:
        if self.design.problem:
            return None, f"the design cannot be trained: {self.design.problem}"
        try:
            base, changes = self._base
            if len(self.kept) < 2:
                wrong = next((line for line in self.lines if line.config is None), None)
                why = f"{wrong.variant.name}: {wrong.why_not}" if wrong else "add one"
                return None, f"a study compares at least two variants; {why}"
            study = Study(
                name=self.name,
                base=base,
                variants=tuple(line.variant for line in self.kept),
                baseline=self.held_against,
                seeds=self.seeds,
                changes=changes,
                description=self.description,
                why={name: text for name, text in self.why.items() if any(name == k.variant.name for k in self.kept)},
                stages=self.stages,
            )
            study.cells()
        except InputError as error:
            return None, str(error)
        return study, ""

    @property
    def study(self) -> Study | None:
        """What will be run; None where nothing can be (`problem` says why)."""
        return self._made[0]

    @property
    def problem(self) -> str:
        """Why nothing can be run, in one line; "" if it can."""
        return self._made[1]

    @property
    def runs(self) -> int:
        """Variants × seeds, and × stages where there are several."""
        return sum(len(line.configs) for line in self.kept) * len(self.seeds)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a student should know before it is started."""
        count = len(self.seeds)
        said = []
        if count == 1:
            said.append("one seed: nothing can be concluded, for luck alone makes differences")
        elif count < DECIDES:
            said.append(f"{count} seeds are exploratory: small differences stay untold; {DECIDES} and more decide")
        for line in self.kept:
            others = [key for key in self.differences(line) if key in LOSS_DEPENDS_ON]
            if others:
                name = line.variant.name
                said.append(f"{name}: another {others[0]}, so its loss cannot be held against the baseline's")
        lints = [found for line in self.kept if line.config is not None for found in lint(line.config)]
        return (*said, *([self.note] if self.note else []), *dict.fromkeys(f"{f.key}: {f.text}" for f in lints))

    def toml(self) -> str:
        return "" if self.study is None else self.study.to_toml()


def _axis(text: str) -> tuple[str, tuple[Any, ...]]:
    """`KEY=VALUE,VALUE`; one value is enough beside the design."""
    key, equals, values = text.partition("=")
    if equals and values.strip() and "," not in values and key.strip() != "seed":
        ((name, value),) = flatten(parse_override(text)).items()
        return name, (value,)
    return parse_axis(text)


def _alike(one: Variant, other: Variant) -> bool:
    return (one.preset, one.stages, dict(one.changes)) == (other.preset, other.stages, dict(other.changes))


def _free(name: str, taken: Sequence[str]) -> str:
    count, free = 1, name
    while free in taken:
        count += 1
        free = f"{name}-{count}"
    return free


# The design as the base of a study, and overlays as variants


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
        return base, _of_a_study(_own_changes(own) | dict(design.changes))
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


def _own_changes(links: Sequence[presets.Preset]) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for link in links:
        tables = presets.merge(tables, link.tables)
    return flatten(tables)


def _of_a_study(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in changes.items() if key not in NOT_OF_A_STUDY}


def _overlay_variants(own: Sequence[presets.Preset]) -> list[tuple[Variant, str, str]]:
    """Return every overlay as a variant, its description, and the base it was written for.

    A study names shipped presets only, so the user's own are given by what they change.
    """
    found = []
    for preset in presets.list_presets():
        if preset.extends is not None:
            root = presets.chain(preset)[0].name
            found.append((Variant(preset.name, preset.name), preset.description, root))
    for preset in own:
        links = presets.chain(preset)
        if len(links) > 1:
            changes = _of_a_study(_own_changes(links[1:]))
            found.append((Variant(preset.name, changes=changes), preset.description, links[0].name))
    return found


# The command line that runs it


def command(draft: StudyDraft, file: Path, options: Sequence[str] = ()) -> tuple[str, bool]:
    """Return the command line, quoted for a shell, and whether it needs the study to be saved in `file` first."""
    words = _words(draft)
    needed = words is None
    return shlex.join([program(), "ablate", *(words or ["--study", str(file)]), *options]), needed


def _words(draft: StudyDraft) -> list[str] | None:
    """What says the study without a file; None where nothing does. It is read back to be sure."""
    study, seeds = draft.study, as_seeds(draft.seeds)
    if not draft.said_as or study is None or draft.design.path is not None:
        return None
    if draft.said_as[0] == "--study":
        shipped = draft.said_as[1]
        asked = StudyArgs(study=shipped, seeds=seeds, name=draft.name if draft.name != shipped else None)
        words = list(draft.said_as)
    else:
        changes = {key: v for key, v in draft.design.changes.items() if key not in ("seed", "description")}
        arguments = replace(draft.design, changes=changes).arguments()
        asked = StudyArgs(
            preset=draft.design.preset.name,
            vary=tuple(word for word in draft.said_as if word != "--vary"),
            on=draft.design.on,
            seeds=seeds,
            overrides=tuple(value for option, value in pairwise(arguments) if option == "--set"),
            corpus=changes.get("data.corpus"),
            name=draft.name,
        )
        words = [*arguments, *draft.said_as]
    try:
        if asked.resolve(Path()) != study:
            return None
    except InputError:
        return None
    return [*words, "--seeds", seeds, *(["--name", draft.name] if asked.name is not None else [])]


def as_seeds(seeds: Sequence[int]) -> str:
    """Seeds as `--seeds` takes them."""
    if tuple(seeds) == tuple(range(1, len(seeds) + 1)):
        return str(len(seeds))
    return ",".join(map(str, seeds)) + ("," if len(seeds) == 1 else "")


# Its cost


@dataclass(frozen=True)
class Estimate:
    """Time and disk of a study."""

    parameters: Mapping[str, int] = field(default_factory=dict)  # by variant
    each: Mapping[str, float] = field(default_factory=dict)  # seconds of a run, by variant
    seconds: float | None = None  # of all runs; None while nothing was measured
    disk: int | None = None  # bytes of all runs; None while the vocabulary is not known
    measured: bool = False  # whether a step of every variant was timed, and not the design's alone
    at_once: int = 1  # runs at a time
    threads: int = 0  # of each; 0 where not known
    devices: tuple[str, ...] = ()  # they are spread over


def estimated(draft: StudyDraft, benchmark: Benchmark | None, characters: Characters | None = None) -> Estimate:
    """Estimate from the design's measured step: a variant takes as much longer as its steps have more operations.

    Without a benchmark of the design no time is known.
    """
    parameters: dict[str, int] = {}
    each: dict[str, float] = {}
    disk: int | None = 0
    design = draft.design.config
    work = _operations(design, characters) if design is not None else None
    for line in draft.kept:
        name = line.variant.name
        found = [cost(config, characters) for config in line.configs]
        known = [(config, one) for config, one in zip(line.configs, found, strict=True) if one is not None]
        if not found or len(known) < len(found):
            disk = None
            continue
        parameters[name] = known[-1][1].parameters
        bytes_each = sum(disk_bytes(config, one.parameters) for config, one in known)
        disk = None if disk is None else disk + len(draft.seeds) * bytes_each
        own = [_operations(config, characters) for config in line.configs]
        if benchmark is not None and work and None not in own:
            each[name] = benchmark.seconds * sum(filter(None, own)) / work
    seconds = len(draft.seeds) * sum(each.values()) if len(each) == len(draft.kept) else None
    devices = (benchmark.device,) if benchmark is not None else ()
    return Estimate(parameters, each, seconds, disk, devices=devices)


def _operations(config: RunConfig, characters: Characters | None) -> float | None:
    """Operations of a whole run; of one that is counted in epochs, of a token, for its corpus stays the same."""
    found = cost(config, characters)
    if found is None:
        return None
    train = config.train
    if train.epochs is not None:
        return found.flops * train.epochs
    tokens = train.batch_tokens or train.batch_size * train.accumulation * config.window_targets
    return float(found.flops) * tokens * train.steps
