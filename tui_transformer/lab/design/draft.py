"""A draft of a design: a preset, perhaps on another base, changes to it, and its cost.

A draft means exactly what its command line means: the same calls resolve it, in the same order. It is immutable:
every change gives a new one.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import tomli_w

from engine.base.command_line import program
from engine.base.errors import InputError
from engine.base.language import tr
from engine.capabilities import check, why_ranks_uneven
from engine.config import presets
from engine.config.keys import diff, flatten, parse_override, sentence_of
from engine.config.lints import Lint, lint
from engine.config.rules import Refusal
from engine.config.schema import RunConfig
from engine.config.sections import EXCLUSIVE
from engine.config.tasks import CorpusKindName
from engine.config.toml import config_toml
from engine.data.corpus import VocabularySizes
from engine.data.known import CORPORA, names_of
from engine.model import size
from engine.model.size import BatchShape, memory_bytes
from engine.runs.records import Number, Raw, Record, VerdictRecord
from tui_transformer.lab.design.run_names import run_name
from tui_transformer.lab.formatting import rough_duration
from tui_transformer.lab.work.study import nest_keys

SMALL = "demo"  # the base that a laptop trains in minutes
GENERIC = "baseline"  # parent of overlays for any base
OPTIONS = {"data.corpus": "--corpus", "seed": "--seed"}  # keys with an option of their own
MOST_RANKS = 1024
PARTNERS = 4  # changes that a choice may need besides itself: objective, architecture, tokenizer, score, corpus
Differences = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True)
class Vocabulary:
    """How many tokens a model is built for, special ones included."""

    tokens: int  # tokens it predicts
    sources: int | None = None  # where these have a vocabulary of their own
    at_most: bool = False  # byte pairs are learned in training, and a small corpus has fewer than requested

    @property
    def description(self) -> str:
        """`a vocabulary of at most 8,003`."""
        known = {"tokens": self.tokens, "sources": self.sources}
        if self.sources is None:
            said = tr("a vocabulary of at most {tokens:,}") if self.at_most else tr("a vocabulary of {tokens:,}")
        elif self.at_most:
            said = tr("vocabularies of at most {sources:,} for sources and {tokens:,} for targets")
        else:
            said = tr("vocabularies of {sources:,} for sources and {tokens:,} for targets")
        return said.format(**known)


@dataclass(frozen=True)
class Cost:
    """What a design costs before measuring; an upper bound if the vocabulary is one."""

    vocabulary: Vocabulary
    parts: Mapping[str, int]  # parameters by component
    flops: int  # to train on one token
    memory: int  # bytes, an estimate
    at_most: bool = False  # rows differ in length, so the estimate is for batches of the longest rows that fit

    @property
    def parameters(self) -> int:
        return sum(self.parts.values())


class Benchmark(Record):
    """What `check` measured of a design."""

    device: Raw = ""
    seconds_per_step: Number = 0.0
    seconds: Number = 0.0  # all steps, without evaluations
    memory_bytes: Number = 0.0  # at the peak
    verdicts: tuple[VerdictRecord, ...] = ()

    @property
    def description(self) -> str:
        """`≈ 4 min on cpu (68 ms per step)`."""
        step = self.seconds_per_step
        each = f"{step:.1f} s" if step >= 1 else f"{step * 1000:.3g} ms"
        all_steps = rough_duration(self.seconds)
        return tr("≈ {time} on {device} ({each} per step)", time=all_steps, device=self.device, each=each)


def vocabulary(config: RunConfig, characters: VocabularySizes | None = None) -> Vocabulary | None:
    """Return an unresolved config's vocabulary; None if its corpus must be read first."""
    model, data = config.model, config.data
    entry = CORPORA.get(data.corpus)
    if characters is None and entry is not None and entry.characters is not None:
        characters = VocabularySizes(entry.characters)
    known, bound = None, False
    if characters is None and entry is not None and data.tokenizer != "bpe":
        from engine.data.catalogue import KINDS

        known = KINDS[entry.kind].vocabularies.get(entry.name)
    if known is not None:
        text, bound = known(data)[data.tokenizer]
        characters = VocabularySizes(text)
    elif data.tokenizer == "words" and config.task.corpus == "text":
        characters, bound = VocabularySizes(data.words_size), True
    elif data.tokenizer == "loaded":
        characters = None  # character counts do not tell the number of its tokens
    if data.tokenizer == "bytes":
        characters = VocabularySizes(256)
    if data.tokenizer == "bpe":
        characters = VocabularySizes(data.bpe_size, data.bpe_size)
    tokens = model.vocab_size or (config.min_vocab_size(characters.text) if characters else None)
    if tokens is None:
        return None
    if data.shared_vocabulary or config.task.corpus in ("documents", "text"):
        learned = data.tokenizer == "bpe" or bound
        return Vocabulary(tokens, at_most=learned and model.vocab_size is None)
    found = config.min_vocab_size(characters.sources) if characters and characters.sources else None
    sources = model.source_vocab_size or found
    if sources is None:
        return None
    learned = model.vocab_size is None or model.source_vocab_size is None
    return Vocabulary(tokens, sources, at_most=data.tokenizer == "bpe" and learned)


def cost(config: RunConfig, characters: VocabularySizes | None = None) -> Cost | None:
    """Return an unresolved config's cost; None if its corpus must be read first."""
    known = vocabulary(config, characters)
    if known is None:
        return None
    model = config.model
    if known.sources is not None:
        model = model.model_copy(update={"source_vocab_size": known.sources})
        config = config.model_copy(update={"model": model})
    parts = size.parameters(model, known.tokens)
    flops = size.training_flops_per_token(model, known.tokens, BatchShape.from_config(config).rows)
    return Cost(known, parts, flops, memory_bytes(config, known.tokens), at_most=config.trains_on_rows)


@dataclass(frozen=True)
class Draft:
    preset: presets.Preset  # what it starts from
    on: str | None = None  # the base of an overlay
    changes: Mapping[str, Any] = field(default_factory=dict)  # dotted key → value, on top
    path: Path | None = None  # of the user's own preset file; None for a shipped preset
    ranks: int = 1  # how many train it together

    @classmethod
    def from_preset(cls, name: str) -> "Draft":
        """Return a shipped preset unchanged; raises InputError if none has that name."""
        return cls(presets.find(name))

    # What it is

    @property
    def name(self) -> str:
        return self.preset.name if self.on is None else f"{self.preset.name}@{self.on}"

    @property
    def run_name(self) -> str:
        """What a run of it is called, from what changed; numbered where that is taken."""
        if self.parent and self.config is not None and not self.differences_from_parent():
            return run_name(self.parent, {}, {})
        return run_name(self.name, self.changes, self.values)

    @cached_property
    def preset_base(self) -> str | None:
        """The base that an overlay extends; None for a base."""
        links = presets.extends_chain(self.preset)
        return links[0].name if len(links) > 1 else None

    @property
    def base(self) -> str | None:
        """The base that an overlay is on; None for a base."""
        return self.on or self.preset_base

    def with_base(self, name: str) -> "Draft":
        return replace(self, on=None if name == self.preset_base else name)

    def drafts_by_base_with_problems(self) -> list[tuple["Draft", str]]:
        """This change on each base there is, each with why that cannot be, or ""."""
        found = [self.with_base(one.name) for one in presets.list_presets() if one.extends is None]
        return [(draft, draft.problem) for draft in found]

    def on_small_base(self, base: str = SMALL) -> "Draft | None":
        """The same changes on a small base; None if they are none, or do not fit it."""
        changed = self.with_base(base) if self.preset_base else Draft.from_preset(base).with_changes(self.changes)
        same = changed.config is None or changed.problem or changed == self or not (self.preset_base or self.changes)
        return None if same else changed

    @cached_property
    def _resolved(self) -> tuple[RunConfig | None, str]:
        try:
            return presets.resolve(self.preset, on=self.on, overrides=[nest_keys(self.changes)], where="here"), ""
        except InputError as error:
            return None, re.sub("\\Ahere(: |：)", "", str(error))

    @property
    def config(self) -> RunConfig | None:
        """The complete config; None if a setting is invalid (`problem` says which)."""
        return self._resolved[0]

    @cached_property
    def refusal(self) -> Refusal | None:
        return None if self.config is None else check(self.config)

    @property
    def problem(self) -> str:
        uneven = "" if self.config is None else why_ranks_uneven(self.config, self.ranks)
        return self._resolved[1] or (self.refusal.reason if self.refusal else "") or uneven

    @cached_property
    def unchanged(self) -> "Draft":
        return replace(self, changes={}) if self.changes else self

    @property
    def config_or_preset_config(self) -> RunConfig | None:
        """The draft's config, or the preset's if the changes are invalid."""
        return self.config or self.unchanged.config

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """Every set key's value; for an invalid draft, the preset's with the changes on top."""
        if self.config is not None:
            return flatten(self.config.dump())
        usual = self.unchanged.config
        return (flatten(usual.dump()) if usual else {}) | dict(self.changes)

    # Changing it

    def with_change(self, key: str, value: Any) -> "Draft":
        """Return a copy with one key changed; None, or the key's original value, undoes the change."""
        rest = {k: v for k, v in self.changes.items() if k != key and k != _exclusive_key(key)}
        without = replace(self, changes=rest)
        if value is None:
            return without
        changed = replace(self, changes=rest | {key: value})
        if changed.config is not None and without.config is not None and changed.config == without.config:
            return without
        return changed

    def with_changes(self, changes: Mapping[str, Any]) -> "Draft":
        gone = {_exclusive_key(key) for key in changes}
        return replace(self, changes={k: v for k, v in self.changes.items() if k not in gone} | dict(changes))

    def with_ranks(self, n: int) -> "Draft":
        """Return a copy trained by `n` ranks, its step cut into as many batches if they could not share it."""
        config, changed = self.config_or_preset_config, replace(self, ranks=n)
        if config is None or config.train.accumulation % n == 0:
            return changed
        changed, key = changed.with_change("train.accumulation", n), "batch_tokens"
        key = "batch_size" if config.train.batch_tokens is None else key
        whole = getattr(config.train, key) * config.train.accumulation
        return changed.with_change(f"train.{key}", max(1, whole // n))

    def with_override_text(self, text: str) -> "Draft":
        """Return a copy with `KEY=VALUE`, read as by `--set`."""
        ((key, value),) = flatten(parse_override(text)).items()
        changed = self.with_change(key, value)
        if changed.config is None:
            raise InputError(changed.problem)
        return changed

    # What could be chosen

    def values_with_refusals(self, key: str) -> list[tuple[Any, str]]:
        """Every value of an enumerable key, each with why it cannot be chosen here, or ""."""
        return [(value, self.why_refused(key, value)) for value in allowed_values(key)]

    def why_refused(self, key: str, value: Any) -> str:
        """Why a value cannot be chosen here, "" if it can; existing errors do not count."""
        problem = self.with_change(key, value).problem
        return "" if problem == self.problem else problem

    def changes_to_allow(self, key: str, value: Any) -> Mapping[str, Any] | None:
        """The fewest changes that allow a refused value: itself, and replacements for its conflicts."""
        ways = (self._search_changes({key: value}, partners) for partners in range(1, PARTNERS + 1))
        return next((way for way in ways if way is not None), None)

    def _search_changes(self, changes: Mapping[str, Any], partners: int) -> Mapping[str, Any] | None:
        """These changes plus up to so many more, chosen from what they conflict with."""
        tried = self.with_changes(changes)
        if not tried.problem:
            return changes
        if tried.refusal is None or not partners:
            return None
        others = [k for k in tried.refusal.keys if k not in changes]
        for other in sorted(others, key=lambda k: k == "model.causal"):
            usual = flatten(RunConfig().dump()).get(other)
            for candidate in sorted(allowed_values(other), key=lambda value: value != usual):
                with_it = {**changes, other: candidate}
                refusal = self.with_changes(with_it).refusal
                if refusal is not None and refusal.keys == tried.refusal.keys:
                    continue  # it did not help
                found = self._search_changes(with_it, partners - 1)
                if found is not None:
                    return found
        return None

    # What it comes to

    def differences_from_preset(self) -> Differences:
        return _differences(self.unchanged.config, self.config)

    def differences_from_parent(self) -> Differences:
        """The differences from what the preset extends; nothing for a base."""
        return _differences(self.reference[1], self.config) if self.parent else {}

    @cached_property
    def reference(self) -> tuple[str, RunConfig | None]:
        """What its changes are seen against: an overlay's base, else the preset itself."""
        name = self.parent or self.preset.name
        try:
            return name, presets.parent_config(self.preset, self.on) if self.parent else self.unchanged.config
        except InputError:
            return name, None

    @property
    def parent(self) -> str | None:
        return self.on or self.preset.extends

    def cost(self, characters: VocabularySizes | None = None) -> Cost | None:
        """Return its cost; None if the vocabulary is unknown or it cannot be trained."""
        return None if self.config is None or self.refusal is not None else cost(self.config, characters)

    def lints(self, train_tokens: int | None = None) -> list[Lint]:
        return [] if self.config is None or self.problem else [*lint(self.config, train_tokens)]

    def toml(self) -> str:
        return "" if self.config is None else config_toml(self.config)

    def arguments(self) -> list[str]:
        """Its command-line arguments, after `run` or `check`."""
        words = ["--preset", self.preset.name] if self.path is None else ["--config", str(self.path)]
        words += ["--on", self.on] if self.on else []
        for key, option in OPTIONS.items():
            words += [option, str(self.changes[key])] if key in self.changes else []
        for key, value in self.changes.items():
            words += ["--set", f"{key}={toml_argument(value)}"] if key not in OPTIONS else []
        return words

    def command(self, options: Sequence[str] = ()) -> str:
        """The command line that trains it, quoted for a shell; `options` come last."""
        ranks = ["--ranks", str(self.ranks)] if self.ranks > 1 else []
        return shlex.join([program(), "run", *self.arguments(), *ranks, *options])


@cache
def allowed_values(key: str) -> tuple[Any, ...]:
    """The values of an enumerable key; none for numbers and texts."""
    if key == "data.corpus":
        return tuple(name for kind in get_args(CorpusKindName) for name in names_of(kind))
    section, _, name = key.rpartition(".")
    model = RunConfig.model_fields[section].annotation if section else RunConfig
    annotation = model.model_fields[name].annotation if isinstance(model, type) else None
    if annotation is bool:
        return (True, False)
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def describe_setting(key: str, value: Any = None) -> str:
    """What a setting does, or what one of its values does; "" if there is nothing to say."""
    if key == "data.corpus" and value in CORPORA:
        return tr(CORPORA[value].description)
    return sentence_of(key, None if value is None else str(value))


def toml_argument(value: Any) -> str:
    """A value as `--set` takes it: TOML, or bare text where that reads the same."""
    if isinstance(value, str):
        bare = value.strip() == value and value != ""
        if bare and flatten(parse_override(f"description={value}"))["description"] == value:
            return value
        return tomli_w.dumps({"v": value}).partition("=")[2].strip()
    return json.dumps(value)


def format_value(value: Any) -> str:
    if isinstance(value, bool):
        return tr("yes") if value else tr("no")
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(format_value(part) for part in value)
    return tr("unset") if value is None else str(value)


def _exclusive_key(key: str) -> str | None:
    section, _, name = key.rpartition(".")
    for pair in EXCLUSIVE.get(section, ()):
        if name in pair:
            return f"{section}.{pair[1 - pair.index(name)]}"
    return None


def _differences(before: RunConfig | None, after: RunConfig | None) -> Differences:
    return {} if before is None or after is None else diff(before, after)
