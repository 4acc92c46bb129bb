"""A draft of a study: variants of a design, and seeds; its cost, and the command that runs it.

It is immutable: every change gives a new one. A variant that cannot be trained, or that would duplicate another run,
stays in the draft with the reason but is left out of the study.
"""

import math
import re
import shlex
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from engine.base.command_line import program
from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.config import presets
from engine.config.keys import diff, flatten
from engine.config.lints import lint
from engine.config.schema import RunConfig
from engine.data.corpus import VocabularySizes
from engine.runs.records import Count, Number
from tui_transformer.lab.design.draft import GENERIC, Benchmark, Draft, cost
from tui_transformer.lab.design.forecast import Machine, tokens_per_step
from tui_transformer.lab.design.run_names import run_name
from tui_transformer.lab.work.arguments import StudyArgs, grid, parse_axis, parse_seeds
from tui_transformer.lab.work.plan import Plan, RunCost, disk_bytes
from tui_transformer.lab.work.study import (
    FEWER,
    LONG_SECONDS,
    SEEDS,
    Change,
    Stage,
    Study,
    Variant,
    base_tables,
    merge_tables,
    nest_keys,
    settings_identity_key,
    stage_chain,
    variant_config,
)

NOT_OF_A_STUDY = ("schema", "preset", "description", "seed")
MOST = 100  # most variants made at once
LOSS_DEPENDS_ON = (  # what a loss measures, and on what
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


@dataclass(frozen=True)
class VariantLine:
    variant: Variant
    configs: tuple[RunConfig, ...] = ()  # trained with each seed, one after the other; empty if it cannot be
    why_not: str = ""  # why it is left out of the study, or cannot be added; "" if neither
    description: str = ""  # of the overlay that would be this variant

    @property
    def config(self) -> RunConfig | None:
        """Of the last stage, which is compared."""
        return self.configs[-1] if self.configs else None


@dataclass(frozen=True)
class StudyDraft:
    design: Draft  # the base
    name: str
    variants: tuple[Variant, ...]
    baseline: str  # the variant others are compared with
    seeds: tuple[int, ...] = SEEDS  # of the runs; the design's own seed is ignored
    seeds_given: bool = False
    description: str = ""
    note: str = ""  # the outcome of applying a study to this design
    variant_arguments: tuple[str, ...] = ()  # command-line form of the variants; empty if only a file can express them
    stages: tuple[Stage, ...] = ()  # of each variant; empty: one run each

    @classmethod
    def from_design(cls, design: Draft) -> "StudyDraft":
        plain = design_variant_name(design)
        return cls(design, f"{plain}-study", (Variant(plain),), plain)

    def with_design(self, design: Draft) -> "StudyDraft":
        """Return a copy on another design; the variant that changes nothing is called after it."""
        old, new = design_variant_name(self.design), design_variant_name(design)
        named = tuple(replace(variant, name=new) if variant == Variant(old) else variant for variant in self.variants)
        baseline = new if self.baseline == old else self.baseline
        return replace(self, design=design, variants=named, baseline=baseline)

    # Changing it

    def with_added_variants(self, variants: Sequence[Variant]) -> "StudyDraft":
        """Return a copy with more variants; existing ones are not added again."""
        kept = list(self.variants)
        for variant in variants:
            if not any(_same_settings(variant, other) for other in kept):
                kept.append(replace(variant, name=numbered_name(variant.name, [other.name for other in kept])))
        return replace(self, variants=tuple(kept), variant_arguments=())

    def with_variants_along_axes(self, text: str) -> "StudyDraft":
        """Return a copy with a variant per value of `KEY=VALUE,VALUE`; several axes make a grid."""
        words = _NEXT_AXIS.split(text.strip())
        axes = dict(parse_axis(word, least=1) for word in words)  # next to the design one value is enough
        if len(axes) < len(words):
            raise InputError(Message("a key appears twice; list all its values at once, separated by commas"))
        count = math.prod(len(values) for values in axes.values())
        if count > MOST:
            raise InputError(
                Message(
                    "these values make {count:,} variants; at most {most} can be added at once", count=count, most=MOST
                )
            )
        for key, values in axes.items():
            for value in values:  # an invalid value is a typo, not a variant
                changed = self.design.with_change(key, value)
                if changed.config is None:
                    raise InputError(changed.problem)
        made = grid(axes)
        if not any(self._variant_line(variant).configs for variant in made):
            raise InputError(self._variant_line(made[0]).why_not)
        alone = self.variants == (Variant(design_variant_name(self.design)),)
        said_as = tuple(part for word in words for part in ("--vary", word)) if alone else ()
        return replace(self.with_added_variants(made), variant_arguments=said_as)

    def with_study(self, study: Study) -> "StudyDraft":
        own = self._study_base == (study.base, study.changes)
        variants = study.variants
        if not own:
            variants = tuple(replace(v, changes={**study.changes, **v.changes}, expect={}, why="") for v in variants)
        foretold = any(variant.expect for variant in study.variants)
        left_out = tr(
            "{name}'s expectations apply to {base}, so they are left out here", name=study.name, base=study.base
        )
        note = left_out if foretold and not own else ""
        return replace(
            self,
            name=study.name,
            variants=variants,
            baseline=study.baseline,
            description=study.description if own else "",
            note=note,
            variant_arguments=("--study", study.name) if own else (),
            stages=study.stages,
            seeds=study.seeds if study.seeds_given else self.seeds,
            seeds_given=study.seeds_given or self.seeds_given,
        )

    def with_overlays(self, ticked: Sequence[Variant], offered: Sequence[VariantLine]) -> "StudyDraft":
        gone = [o.variant for o in offered if not any(_same_settings(o.variant, variant) for variant in ticked)]
        draft = self
        for variant in self.variants:
            if any(_same_settings(variant, other) for other in gone):
                draft = draft.without_variant(variant.name)
        return draft.with_added_variants(ticked)

    def without_variant(self, name: str) -> "StudyDraft":
        """Return a copy without a variant; if it was the baseline, the design becomes that."""
        kept = tuple(variant for variant in self.variants if variant.name != name)
        plain = design_variant_name(self.design)
        if name == self.baseline == plain and kept:
            return replace(self, variants=kept, baseline=kept[0].name, variant_arguments=())
        if not any(variant.name == plain for variant in kept) and self.baseline == name:
            kept = (Variant(plain), *kept)
        baseline = plain if self.baseline == name else self.baseline
        return replace(self, variants=kept, baseline=baseline, variant_arguments=())

    def with_seeds(self, text: str) -> "StudyDraft":
        """A copy with other seeds: `3`, or `1,5,9`."""
        seeds = parse_seeds(text)
        if len(set(seeds)) < len(seeds):
            raise InputError(Message("a seed is listed twice; the same seed gives the same run"))
        return replace(self, seeds=seeds, seeds_given=True)

    def with_seed_added_or_removed(self, direction: int) -> "StudyDraft":
        seeds = (*self.seeds, max(self.seeds) + 1) if direction > 0 else self.seeds[:-1] or self.seeds
        return replace(self, seeds=seeds, seeds_given=True)

    def with_proposed_seeds(self, seconds: float | None) -> "StudyDraft":
        """Return a copy with fewer seeds if its runs, which take `seconds`, are too long, unless they were chosen."""
        if self.seeds_given or seconds is None:
            return self
        return replace(self, seeds=SEEDS if seconds / len(self.seeds) * len(SEEDS) <= LONG_SECONDS else FEWER)

    # What it is

    @cached_property
    def _study_base(self) -> tuple[str, Mapping[str, Any]]:
        return study_base(self.design)

    def _stage_configs(self, variant: Variant) -> tuple[RunConfig, ...]:
        """A variant's configs on this design, stage by stage."""
        base, changes = self._study_base
        this, other = Variant("this", variant.preset, variant.changes, stages=variant.stages), Variant("other")
        try:
            study = Study("study", base, (this, other), "this", changes=changes, stages=self.stages)
            return tuple(variant_config(study, this, stage) for stage in stage_chain(self.stages, variant.stages))
        except InputError as error:
            whole = tr("study '{name}'", name="study")
            within = tr("{where}, variant '{name}'", where=whole, name="this")
            raise InputError(
                re.sub(rf"\A({re.escape(within)}|{re.escape(whole)})(: |：|, |，)", "", str(error))
            ) from None

    def _variant_line(self, variant: Variant, description: str = "") -> VariantLine:
        try:
            return VariantLine(variant, self._stage_configs(variant), description=description)
        except InputError as error:
            return VariantLine(variant, why_not=str(error), description=description)

    def overlays(self, user_presets: Sequence[presets.Preset] = ()) -> list[VariantLine]:
        """Return the overlays that apply here, including user presets; impossible ones last.

        These are generic ones, and those of the design's own base.
        """
        on = self.design.on
        root = presets.extends_chain(presets.find(on) if on else self.design.preset)[0].name
        as_it_is = settings_identity_key(self._stage_configs(Variant("this")))
        offered = [(preset, Variant(preset.name, preset.name)) for preset in presets.list_presets()]
        # A study can only name shipped presets, so user presets are expressed as their changes.
        offered += [
            (preset, Variant(preset.name, changes=_preset_changes(presets.extends_chain(preset)[1:])))
            for preset in user_presets
        ]
        found = []
        for preset, variant in offered:
            links = presets.extends_chain(preset)
            if len(links) == 1 or links[0].name not in (GENERIC, root):
                continue
            line = self._variant_line(variant, tr(preset.description))
            same = line.configs and settings_identity_key(line.configs) == as_it_is
            found.append(replace(line, why_not=tr("the design already includes this")) if same else line)
        return sorted(found, key=lambda line: bool(line.why_not))

    def has_variant(self, variant: Variant) -> bool:
        return any(_same_settings(variant, other) for other in self.variants)

    @cached_property
    def lines(self) -> tuple[VariantLine, ...]:
        """Every variant's state. Of two duplicates the later is left out, or the design if it is one."""
        found: dict[str, VariantLine] = {}
        first: dict[str, str] = {}
        plain = design_variant_name(self.design)
        for variant in sorted(self.variants, key=lambda v: v.name == plain):
            line = found[variant.name] = self._variant_line(variant)
            same = first.setdefault(settings_identity_key(line.configs), variant.name) if line.configs else variant.name
            if same != variant.name:
                twice = tr("same as {same}: it would be the same run again", same=same)
                why_not = tr("{same} is the design as it stands", same=same) if variant.name == plain else twice
                found[variant.name] = replace(line, why_not=why_not)
        return tuple(found[variant.name] for variant in self.variants)

    @cached_property
    def included_lines(self) -> tuple[VariantLine, ...]:
        return tuple(line for line in self.lines if not line.why_not)

    @cached_property
    def effective_baseline(self) -> str:
        """The study's baseline: the chosen one, or the one it duplicates."""
        chosen = next((line for line in self.lines if line.variant.name == self.baseline), None)
        if chosen is None or not chosen.why_not or chosen.config is None:
            return self.baseline
        asked = settings_identity_key(chosen.configs)
        return next(
            other.variant.name for other in self.included_lines if settings_identity_key(other.configs) == asked
        )

    @property
    def baseline_config(self) -> RunConfig | None:
        return next((line.config for line in self.included_lines if line.variant.name == self.effective_baseline), None)

    def differences(self, line: VariantLine) -> dict[str, Change]:
        """How a variant differs from the baseline: dotted key → (baseline's, its own)."""
        other = self.baseline_config
        if other is None or line.config is None:
            return {}
        return {key: change for key, change in diff(other, line.config).items() if key != "seed"}

    def initial_weights_source_text(self, variant: Variant) -> str:
        """Where its last stage gets its weights; "" if the study has no stages."""
        if not self.stages:
            return ""
        after, _ = stage_chain(self.stages, variant.stages)[-1].parent
        return tr("starts from {after}", after=after) if after else tr("starts from fresh weights")

    @cached_property
    def _study_or_problem(self) -> tuple[Study | None, str]:
        if self.design.problem:
            return None, tr("the design cannot be trained: {problem}", problem=self.design.problem)
        try:
            base, changes = self._study_base
            if len(self.included_lines) < 2:
                wrong = next((line for line in self.lines if line.config is None), None)
                why = tr("{name}: {text}", name=wrong.variant.name, text=wrong.why_not) if wrong else tr("add one")
                return None, tr("a study compares at least two variants; {why}", why=why)
            study = Study(
                name=self.name,
                base=base,
                variants=tuple(line.variant for line in self.included_lines),
                baseline=self.effective_baseline,
                seeds=self.seeds,
                changes=changes,
                description=self.description,
                stages=self.stages,
            )
            study.cells()
        except InputError as error:
            return None, str(error)
        return study, ""

    @property
    def study(self) -> Study | None:
        return self._study_or_problem[0]

    @property
    def problem(self) -> str:
        return self._study_or_problem[1]

    @property
    def runs(self) -> int:
        return sum(len(line.configs) for line in self.included_lines) * len(self.seeds)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        one = len(self.seeds) == 1
        said = [tr("one seed proves nothing: differences may be due to luck")] if one else []
        for line in self.included_lines:
            others = [key for key in self.differences(line) if key in LOSS_DEPENDS_ON]
            if others:
                name = line.variant.name
                said.append(
                    tr(
                        "{name}: {key} differs, so its loss cannot be compared with the baseline's",
                        name=name,
                        key=others[0],
                    )
                )
        lints = [found for line in self.included_lines if line.config is not None for found in lint(line.config)]
        return (*said, *([self.note] if self.note else []), *dict.fromkeys(tr(found.message) for found in lints))

    @property
    def power_text(self) -> str:
        """What it can detect, in a sentence."""
        from tui_transformer.lab.analysis.power import power_sentence  # loads numpy, which Design does without

        return tr(power_sentence(len(self.seeds), len(self.included_lines)))

    def toml(self) -> str:
        return "" if self.study is None else self.study.to_toml()

    @cached_property
    def arguments(self) -> list[str] | None:
        """The study's arguments without a file; None if impossible. Verified by reading them back."""
        study, seeds = self.study, seeds_argument(self.seeds)
        if not self.variant_arguments or study is None or self.design.path is not None:
            return None
        if self.variant_arguments[0] == "--study":
            shipped = self.variant_arguments[1]
            asked = StudyArgs(study=shipped, seeds=seeds, name=self.name if self.name != shipped else None)
            words = list(self.variant_arguments)
        else:
            changes = {key: v for key, v in self.design.changes.items() if key not in ("seed", "description")}
            arguments = replace(self.design, changes=changes).arguments()
            asked = StudyArgs(
                preset=self.design.preset.name,
                vary=tuple(word for word in self.variant_arguments if word != "--vary"),
                on=self.design.on,
                seeds=seeds,
                overrides=tuple(value for option, value in pairwise(arguments) if option == "--set"),
                corpus=changes.get("data.corpus"),
                name=self.name,
            )
            words = [*arguments, *self.variant_arguments]
        try:
            if asked.resolve(Path()) != study:
                return None
        except InputError:
            return None
        return [*words, "--seeds", seeds, *(["--name", self.name] if asked.name is not None else [])]


def _same_settings(one: Variant, other: Variant) -> bool:
    return (one.preset, one.stages, dict(one.changes)) == (other.preset, other.stages, dict(other.changes))


def design_variant_name(design: Draft) -> str:
    """The name of the variant that is the design itself."""
    return run_name(design.name, {}, {})[:60]


def numbered_name(wanted: str, taken: Container[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    return name


# The design as the base of a study, and overlays as variants


def study_base(design: Draft) -> tuple[str, Mapping[str, Any]]:
    """A study's base and changes that yield a design; raises InputError if none do."""
    if design.path is None:
        return design.name, _study_changes(design.changes)
    links = presets.extends_chain(design.preset)
    base = design.on or design.preset.extends
    if base is not None:
        own = links[1:] if design.on is not None else links[-1:]
        return base, _study_changes({**_preset_changes(own), **design.changes})
    config, plain = design.config, Draft.from_preset(GENERIC).config
    if config is None or plain is None:
        raise InputError(design.problem)
    changes = _study_changes({key: value for key, (_, value) in diff(plain, config).items() if value is not None})
    whole = flatten(presets.merge(base_tables(GENERIC), nest_keys(changes)))
    unset = [key for key in whole if key not in flatten(config.dump()) and key not in NOT_OF_A_STUDY]
    if unset:
        raise InputError(
            Message(
                "{name} extends no preset and does not set {unset}, which a study requires",
                name=design.name,
                unset=unset[0],
            )
        )
    return GENERIC, changes


def _preset_changes(links: Sequence[presets.Preset]) -> Mapping[str, Any]:
    return _study_changes(flatten(dict(merge_tables(link.tables for link in links))))


def _study_changes(changes: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in changes.items() if key not in NOT_OF_A_STUDY}


# The command line that runs it


def study_command(draft: StudyDraft, file: Path, options: Sequence[str] = ()) -> tuple[str, bool]:
    """Return the command line, quoted for a shell, and whether it needs the study to be saved in `file` first."""
    words = draft.arguments or ["--study", str(file)]
    return shlex.join([program(), "ablate", *words, *options]), draft.arguments is None


def seeds_argument(seeds: Sequence[int]) -> str:
    if tuple(seeds) == tuple(range(1, len(seeds) + 1)):
        return str(len(seeds))
    return ",".join(map(str, seeds)) + ("," if len(seeds) == 1 else "")


# Its cost


class Estimate(Plan):
    """A plan with the time and disk of the whole study, as `ablate` prints it."""

    seconds: Number | None = None  # of all runs; None while nothing was measured
    disk_bytes: Count | None = None  # of all runs; None while the vocabulary is not known
    measured: bool = False  # whether a step of every variant was timed, not only the design's


def estimate_study(
    draft: StudyDraft,
    benchmark: Benchmark | None,
    characters: VocabularySizes | None = None,
    machine: Machine | None = None,
    train_tokens: int | None = None,
) -> Estimate:
    """Estimate from the design's measured step, as time scales with a variant's operations per step; without one,
    from what the machine did in earlier runs.
    """
    prices: dict[str, RunCost] = {}
    disk: int | None = 0
    design = draft.design.config
    work = _run_operations(design, characters) if design is not None else None
    for line in draft.included_lines:
        name = line.variant.name
        found = [cost(config, characters) for config in line.configs]
        known = [(config, one) for config, one in zip(line.configs, found, strict=True) if one is not None]
        if not found or len(known) < len(found):
            disk = None
            continue
        parameters, seconds = known[-1][1].parameters, 0.0
        bytes_each = sum(disk_bytes(config, one.parameters) for config, one in known)
        disk = None if disk is None else disk + len(draft.seeds) * bytes_each
        own = [_run_operations(config, characters) for config in line.configs]
        if benchmark is not None and work and None not in own:
            seconds = benchmark.seconds * sum(filter(None, own)) / work
        elif benchmark is None and machine is not None:
            ahead = [machine.forecast(config, one, train_tokens).seconds for config, one in known]
            seconds = sum(filter(None, ahead)) if None not in ahead else 0.0
        prices[name] = RunCost(seconds=seconds, parameters=parameters)
    each = [price.seconds for price in prices.values() if price.seconds]
    whole = len(draft.seeds) * sum(each) if len(each) == len(draft.included_lines) else None
    devices = (benchmark.device,) if benchmark is not None else (machine.device,) if machine is not None else ()
    return Estimate(prices=prices, seconds=whole, disk_bytes=disk, devices=devices)


def _run_operations(config: RunConfig, characters: VocabularySizes | None) -> float | None:
    """Operations of a whole run; if counted in epochs, of one token, since its corpus stays the same."""
    found = cost(config, characters)
    if found is None:
        return None
    if config.train.epochs is not None:
        return found.flops * config.train.epochs
    return found.flops * tokens_per_step(config) * config.train.steps
