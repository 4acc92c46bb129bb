"""Which combinations of settings are valid, as data, and why the others are not.

One list of rules greys out choices in the app and gives the command line its errors. No torch here.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.config.schema import RunConfig
from engine.config.sections import ModelConfig, Section
from engine.data.catalogue import CORPORA, kind_by_name, names_of
from engine.data.entry import Kind
from engine.errors import InputError
from engine.model.visibility import self_attention
from engine.schemes import ATTENTIONS, NORMS, POSITIONS, SCHEDULES, Scheme


@dataclass(frozen=True)
class ObjectiveRules:
    """The settings that fit an objective; see `objectives.toml`."""

    architectures: Sequence[str]
    corpus: Kind = "text"
    scores: Sequence[str] = ("loss",)
    why_not: Mapping[str, str] = field(default_factory=dict)


_TABLES = tomllib.loads(Path(__file__).with_name("objectives.toml").read_text(encoding="utf-8"))
OBJECTIVES = {kind: ObjectiveRules(**row) for kind, row in _TABLES.items()}
# A preset that can train on any corpus of a kind.
ANY: dict[Kind, str] = {"text": "demo", "pairs": "multi30k"}
IS_A: dict[Kind, str] = {"text": "one text", "pairs": "sentence pairs", "documents": "documents with questions"}
# The networks that each form of span corruption is for.
SPAN_FORMS = {"decoder": ("cs224n", "cs224n-half"), "encoder-decoder": ("t5",)}
SMALLEST_CONTEXT = 6  # for a document of four tokens and the marks around its span


# Derived defaults, by the setting they follow.
FOLLOWERS = {
    "model.architecture": ("causal",),
    "model.norm": ("final_norm",),
    "model.norm_placement": ("final_norm",),
    "model.attention": ("attention_dropout",),
}


def sees_ahead(model: ModelConfig) -> bool:
    """Return whether any position's self-attention may look at a later one."""
    see = self_attention(model)
    length = model.context_length
    if see.causal or length < 2:
        return False
    return see.window is None or see.window // 2 > 0 or (see.link_every is not None and see.link_every <= length)


def leaks(config: RunConfig) -> str | None:
    """Return why a model of this config could read its answers off its input; None if it cannot."""
    if config.objective.kind == "next-token" and sees_ahead(config.model):
        return (
            "every position sees the tokens after it, and the next one is what it has to predict: it would score near "
            "perplexity 1 and have learned nothing"
        )
    if config.objective.kind == "shifted":
        return "nearly all of the target stands in the source, a place further on: copying it scores near perplexity 1"
    return None


def corpus_kind(config: RunConfig) -> Kind:
    return OBJECTIVES[config.objective.kind].corpus


@dataclass(frozen=True)
class Refusal:
    """Why a config cannot be built: the keys involved, and one sentence."""

    keys: tuple[str, ...]
    reason: str


def _broken(scheme: Scheme, section: Section) -> Iterator[Refusal]:
    """Yield the rules of a scheme that its section of a config breaks."""
    reasons = ((rule.keys, rule.reason(section)) for rule in scheme.rules)
    yield from (Refusal(keys, reason) for keys, reason in reasons if reason)


def _refusals(c: RunConfig) -> Iterator[Refusal]:
    """Yield each invalid combination and the reason, for students; later rules rely on earlier ones."""
    if c.model.d_model % c.model.n_heads != 0:
        fitting = [str(n) for n in range(1, min(c.model.d_model, 64) + 1) if c.model.d_model % n == 0]
        yield Refusal(
            ("model.n_heads", "model.d_model"),
            f"{c.model.n_heads} heads cannot share d_model {c.model.d_model} equally; heads that can: "
            f"{', '.join(fitting[:8])}",
        )
    attention, position = ATTENTIONS[c.model.attention], POSITIONS[c.model.position]
    if position.rotates and c.model.head_width % 2 != 0:
        yield Refusal(
            ("model.position", "model.n_heads"),
            f"{c.model.position} turns features in pairs, and a head of {c.model.head_width} features has an odd one "
            f"left; d_model / n_heads must be even (is {c.model.d_model} / {c.model.n_heads})",
        )
    if c.model.n_heads % c.model.kv_heads != 0:
        yield Refusal(
            ("model.n_kv_heads", "model.n_heads"),
            f"{c.model.n_heads} query heads cannot share {c.model.kv_heads} key and value heads equally; "
            f"n_kv_heads must divide n_heads",
        )
    kind, architecture, rules = c.objective.kind, c.model.architecture, OBJECTIVES[c.objective.kind]
    if architecture not in rules.architectures:
        both = f"'{kind}' has a source and a target, and architecture = '{' or '.join(rules.architectures)}' both"
        yield Refusal(
            ("objective.kind", "model.architecture"),
            f"objective '{kind}' is not for architecture '{architecture}': {rules.why_not.get(architecture, both)}",
        )
    if not c.model.causal and c.model.architecture != "encoder":
        yield Refusal(
            ("model.causal", "model.architecture"),
            "a decoder writes from left to right, so it may not see what it has not written yet; "
            "a model that sees both sides is architecture = 'encoder'",
        )
    if c.objective.kind == "next-token" and leaks(c) is not None and not c.train.allow_leak:
        yield Refusal(
            ("objective.kind", "model.causal"),
            f"{leaks(c)}; choose architecture = 'decoder', or objective.kind = 'masked', "
            "or --set train.allow_leak=true to see it happen",
        )
    if c.objective.kind == "shifted" and not c.train.allow_leak:
        yield Refusal(
            ("objective.kind",),
            f"{leaks(c)}; choose 'continuation', whose target is the text after the source, "
            "or --set train.allow_leak=true to see it happen",
        )
    if c.objective.kind == "span-corruption" and c.objective.span_form not in SPAN_FORMS[c.model.architecture]:
        yield Refusal(
            ("objective.span_form", "model.architecture"),
            f"span_form = '{c.objective.span_form}' "
            + ("writes spans after a source that is read" if c.has_sentinels else "is one text that ends with its span")
            + f"; for architecture = '{c.model.architecture}' there is --set objective.span_form="
            + SPAN_FORMS[c.model.architecture][0],
        )
    if c.on_documents and min(c.model.context_length, c.model.source_tokens) < SMALLEST_CONTEXT:
        yield Refusal(
            ("objective.kind", "model.context_length"),
            f"'{c.objective.kind}' needs a context, and a source, of at least {SMALLEST_CONTEXT} tokens",
        )
    if c.window_targets > c.model.context_length:
        yield Refusal(
            ("model.source_length", "model.context_length"),
            f"a target of '{c.objective.kind}' is {c.window_targets:,} tokens long and the decoder's context only "
            f"{c.model.context_length:,}; --set model.context_length={c.window_targets}",
        )
    if c.objective.kind == "shifted" and c.model.source_tokens < 3:
        yield Refusal(("model.source_length", "objective.kind"), "a shifted target needs a source of at least 3 tokens")
    if not attention.scores and position.adds:
        fitting = [name for name, other in POSITIONS.items() if not other.adds]
        yield Refusal(
            ("model.position", "model.attention"),
            f"{c.model.attention} attention has no score matrix to add {position.adds} to; positions that go with it: "
            f"{', '.join(fitting)}",
        )
    if not attention.scores and c.model.attention_dropout > 0.0:
        yield Refusal(
            ("model.attention_dropout", "model.attention"),
            f"{c.model.attention} attention has no weights to drop; --set model.attention_dropout=0.0",
        )
    if c.model.backend not in attention.backends:
        yield Refusal(
            ("model.backend", "model.attention"),
            f"backend '{c.model.backend}' does not compute {c.model.attention} attention; those that do: "
            f"{', '.join(attention.backends)}",
        )
    if c.model.backend == "banded" and self_attention(c.model).reach(1) is None:
        yield Refusal(
            ("model.backend", "model.attention"),
            f"backend 'banded' computes attention = 'window', and this is '{c.model.attention}'",
        )
    if c.model.backend == "sdpa" and position.acts_on == "content":
        yield Refusal(
            ("model.backend", "model.position"),
            f"the fused kernel has no place for {position.adds}; leave backend at 'auto'",
        )
    for scheme in (attention, NORMS[c.model.norm], position):
        yield from _broken(scheme, c.model)
    if c.model.position_init == "zero" and not position.bounded:
        yield Refusal(
            ("model.position_init", "model.position"),
            f"position_init = 'zero' is about a learned table, and position = '{c.model.position}' learns none; "
            "leave it out or choose position = 'learned'",
        )
    if c.data.tokenizer == "bpe" and not c.on_rows:
        yield Refusal(
            ("data.tokenizer", "objective.kind"),
            "byte pairs are for translations and documents; texts are read by characters: "
            "--set data.tokenizer=characters",
        )
    if c.data.tokenizer == "words" and corpus_kind(c) != "documents":
        yield Refusal(
            ("data.tokenizer", "objective.kind"),
            "words are for documents with questions, such as biographies, where every word is known beforehand; texts "
            "and translations are read by characters: --set data.tokenizer=characters",
        )
    if not c.data.shared_vocabulary and not c.translates:
        yield Refusal(
            ("data.shared_vocabulary", "objective.kind"),
            "only a translation has a vocabulary for each side; leave shared_vocabulary at true",
        )
    if c.data.shared_vocabulary and c.model.source_vocab_size is not None:
        yield Refusal(
            ("model.source_vocab_size", "data.shared_vocabulary"),
            "source and target share one vocabulary, which model.vocab_size is about; leave source_vocab_size out "
            "or --set data.shared_vocabulary=false",
        )
    if c.evaluation.select not in rules.scores:
        yield Refusal(
            ("evaluation.select", "objective.kind"),
            f"'{c.objective.kind}' has no {c.evaluation.select}: translations have bleu and exact_match, questions "
            "exact_match; --set evaluation.select=loss",
        )
    if c.on_rows and c.data.window_stride is not None:
        yield Refusal(
            ("data.window_stride", "objective.kind"),
            f"'{c.objective.kind}' is trained on sentences, documents or questions, which have no windows; leave "
            "window_stride out",
        )
    yield from _broken(SCHEDULES[c.optimizer.schedule], c.optimizer)
    corpus, found, wanted = c.data.corpus, kind_by_name(c.data.corpus), corpus_kind(c)
    if found is not None and found != wanted:
        entry, told = CORPORA.get(corpus), f"{ANY[found]} --corpus {corpus[:80]}" if found in ANY else ""
        preset = (entry and entry.preset) or told
        instead = f"; --preset {preset} trains on it" if preset else ""
        needed = "a translation needs" if c.translates else f"'{c.objective.kind}' needs"
        yield Refusal(
            ("data.corpus", "objective.kind"),
            f"'{corpus[:80]}' is {IS_A[found]}, and {needed} {IS_A[wanted]}, such as {names_of(wanted)[0]} or files of "
            f"yours{instead}",
        )


def check(config: RunConfig) -> Refusal | None:
    """Return the first reason why a config cannot be built and trained; None if it can."""
    return next(_refusals(config), None)


def require(config: RunConfig, where: str) -> None:
    """Raise an `InputError` with the reason if the config cannot be built."""
    refusal = check(config)
    if refusal is not None:
        raise InputError(f"{where}: {' and '.join(refusal.keys)}: {refusal.reason}")


def with_value(config: RunConfig, key: str, value: Any) -> RunConfig:
    section, name = key.split(".")
    data = config.dump()
    for follower in FOLLOWERS.get(key, ()):  # a derived default follows unless it is set
        others = {one: said for one, said in data["model"].items() if one != follower}
        derived = RunConfig.model_validate({**data, "model": others}).dump()["model"][follower]
        if data["model"].get(follower) == derived:
            del data["model"][follower]
    data[section][name] = value
    return RunConfig.model_validate(data)
