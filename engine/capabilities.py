"""Which combinations of settings are valid, as a table of rules, and why the others are not.

The table greys out choices in the app and gives the command line its errors. No torch here.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from engine.base.errors import InputError, comma_separated, join_and, join_or
from engine.base.language import tr
from engine.config.model import ModelConfig, active_parts
from engine.config.rules import Refusal, Rule, refusals
from engine.config.schema import RunConfig
from engine.config.schemes import ATTENTIONS, NORMS, POSITIONS, SCHEDULES
from engine.config.visibility import self_attention
from engine.data.known import CORPORA, kind_by_name, names_of

LAYER_KEY = "model.attention"  # a part's rules with this key apply to each layer


def _rotating(model: ModelConfig) -> list[str]:
    return [name for name in model.distinct_positions if POSITIONS[name].rotates]


def _embedded_among_several(model: ModelConfig) -> list[str]:
    """Return the positions that are added to the embeddings, if its layers have several schemes."""
    found = {model.position, *model.distinct_positions}
    return [name for name in POSITIONS if name in found and POSITIONS[name].acts_on == "embeddings"] * (len(found) > 1)


def _architecture_reason(c: RunConfig) -> str:
    able = join_or(f"'{name}'" for name in c.task.architectures)
    both = tr("it needs architecture = {architectures}", architectures=able)
    return tr(
        "'{kind}' does not work with architecture = '{architecture}': {why_not}",
        kind=c.task.name,
        architecture=c.model.architecture,
        why_not=c.task.why_not.get(c.model.architecture, both),
    )


def _corpus_reason(c: RunConfig) -> str:
    from engine.data.catalogue import KINDS

    corpus, found, wanted = c.data.corpus, kind_by_name(c.data.corpus), c.task.corpus
    assert found is not None
    entry, able = CORPORA.get(corpus), KINDS[found].preset
    preset = (entry and entry.preset) or (able and f"{able} --corpus {corpus[:80]}")
    needed = c.task.needs_phrase or tr("'{kind}' needs", kind=c.task.name)
    return tr(
        "'{corpus}' contains {kind}, but {needed} {needed_kind}, such as {example} or your own files{hint}",
        corpus=corpus[:80],
        kind=KINDS[found].description,
        needed=needed,
        needed_kind=KINDS[wanted].description,
        example=names_of(wanted)[0],
        hint=tr("; --preset {preset} trains on it", preset=preset) if preset else "",
    )


def _refusals_of_layers(model: ModelConfig) -> Iterator[Refusal]:
    """Yield a refusal for each layer whose attention and position do not combine."""
    if not model.layers:
        yield from refusals(LAYER_RULES, model)
        return
    for layer, (first, *_) in model.layer_kinds():
        for refusal in refusals(LAYER_RULES, layer):
            reason = tr("layer {layer}: {reason}", layer=first + 1, reason=refusal.reason)
            yield Refusal(("model.layers", *refusal.keys), reason)


def _refusals_of_parts(model: ModelConfig, *, of_a_layer: bool) -> Iterator[Refusal]:
    """Yield the refusals of the active parts' rules: those about a layer's attention, or the others."""
    rules = [rule for row in active_parts(model).values() for rule in row.rules]
    return refusals((rule for rule in rules if (LAYER_KEY in rule.keys) == of_a_layer), model)


Check = Callable[[Any], Iterator[Refusal]]

# On the config of a layer, with its own attention and position.
LAYER_RULES: tuple[Check, ...] = (
    Rule(
        ("model.position", "model.attention"),
        lambda m: not ATTENTIONS[m.attention].has_scores and POSITIONS[m.position].adds,
        lambda m: tr(
            "{attention} attention has no score matrix to add {term} to; positions that work with it: {fitting}",
            attention=m.attention,
            term=POSITIONS[m.position].adds,
            fitting=comma_separated([name for name, other in POSITIONS.items() if not other.adds]),
        ),
    ),
    Rule(
        ("model.attention_dropout", "model.attention"),
        lambda m: not ATTENTIONS[m.attention].has_scores and m.attention_dropout > 0.0,
        "{attention} attention has no weights to drop; --set model.attention_dropout=0.0",
    ),
    Rule(
        ("model.backend", "model.attention"),
        lambda m: m.backend not in ATTENTIONS[m.attention].backends,
        lambda m: tr(
            "backend '{backend}' does not support {attention} attention; these do: {backends}",
            backend=m.backend,
            attention=m.attention,
            backends=comma_separated(ATTENTIONS[m.attention].backends),
        ),
    ),
    Rule(
        ("model.backend", "model.attention"),
        lambda m: m.backend == "banded" and self_attention(m).reach(1) is None,
        "backend 'banded' supports only attention = 'window', not '{attention}'",
    ),
    Rule(
        ("model.backend", "model.position"),
        lambda m: m.backend in ("sdpa", "dense") and POSITIONS[m.position].acts_on == "content",
        lambda m: tr(
            "backend '{backend}' does not support {term}; leave backend at 'auto'",
            backend=m.backend,
            term=POSITIONS[m.position].adds,
        ),
    ),
    lambda m: refusals(ATTENTIONS[m.attention].rules, m),
    lambda m: refusals(POSITIONS[m.position].rules, m),
    lambda m: _refusals_of_parts(m, of_a_layer=True),
)

# On the whole config. Later rules rely on earlier ones.
RULES: tuple[Check, ...] = (
    Rule(
        ("model.n_heads", "model.d_model"),
        lambda c: c.model.d_model % c.model.n_heads != 0,
        lambda c: tr(
            "d_model {d_model} is not divisible by {n_heads} heads; head counts that work: {fitting}",
            d_model=c.model.d_model,
            n_heads=c.model.n_heads,
            fitting=comma_separated([str(n) for n in range(1, 65) if c.model.d_model % n == 0][:8]),
        ),
    ),
    Rule(
        ("model.position", "model.n_heads"),
        lambda c: _rotating(c.model) and c.model.head_width % 2 != 0,
        lambda c: tr(
            "{position} rotates features in pairs, but a head has {head_width} features; d_model / n_heads "
            "must be even (got {d_model} / {n_heads})",
            position=_rotating(c.model)[0],
            head_width=c.model.head_width,
            d_model=c.model.d_model,
            n_heads=c.model.n_heads,
        ),
    ),
    Rule(
        ("model.n_kv_heads", "model.n_heads"),
        lambda c: c.model.n_heads % c.model.kv_heads != 0,
        lambda c: tr(
            "{n_heads} query heads cannot evenly share {kv_heads} key and value heads; n_kv_heads must divide n_heads",
            n_heads=c.model.n_heads,
            kv_heads=c.model.kv_heads,
        ),
    ),
    Rule(
        ("objective.kind", "model.architecture"),
        lambda c: c.model.architecture not in c.task.architectures,
        _architecture_reason,
    ),
    Rule(
        ("model.causal", "model.architecture"),
        lambda c: not c.model.causal and c.model.architecture != "encoder",
        "a decoder generates from left to right, so it must not see later tokens; for attention in "
        "both directions, choose architecture = 'encoder'",
    ),
    lambda c: refusals(c.task.rules, c),
    Rule(
        ("model.source_length", "model.context_length"),
        lambda c: c.window_targets > c.model.context_length,
        lambda c: tr(
            "'{kind}' targets are {window_targets:,} tokens long, but the decoder's context is only "
            "{context_length:,}; --set model.context_length={window_targets}",
            kind=c.task.name,
            window_targets=c.window_targets,
            context_length=c.model.context_length,
        ),
    ),
    Rule(
        ("model.layers", "model.position"),
        lambda c: c.model.layers and _embedded_among_several(c.model),
        lambda c: tr(
            "{added} positions are added to the embeddings, before the first layer, so layers cannot "
            "each have their own; with --set model.position=none, layers can choose from {others}",
            added=_embedded_among_several(c.model)[0],
            others=comma_separated([name for name, row in POSITIONS.items() if row.acts_on != "embeddings"]),
        ),
    ),
    lambda c: _refusals_of_layers(c.model),
    Rule(
        ("model.backend", "objective.kind"),
        lambda c: c.model.backend == "dense" and c.trains_on_rows,
        "backend 'dense' does not support padding, which '{kind}' needs; leave backend at 'auto'",
    ),
    lambda c: refusals(NORMS[c.model.norm].rules, c.model),
    lambda c: _refusals_of_parts(c.model, of_a_layer=False),
    Rule(
        ("model.position_init", "model.position"),
        lambda c: c.model.position_init == "zero" and not POSITIONS[c.model.position].bounded,
        "position_init = 'zero' needs a learned table, but position = '{position}' has none; leave "
        "position_init out or choose position = 'learned'",
    ),
    Rule(
        ("data.tokenizer", "data.corpus"),
        lambda c: c.task.corpus == "text" and c.data.tokenizer != "characters" and c.data.corpus == "playlets",
        "playlets works only with character tokens, for which its floor and probes are defined: --set "
        "data.tokenizer=characters, or choose another corpus",
    ),
    Rule(
        ("data.tokenizer", "objective.kind"),
        lambda c: c.data.tokenizer == "words" and c.task.corpus == "pairs",
        "word tokens are for texts and documents; translations use characters or byte pairs: --set data.tokenizer=bpe",
    ),
    Rule(
        ("data.tokenizer", "objective.kind"),
        lambda c: c.data.tokenizer in ("bytes", "loaded") and c.task.corpus != "text",
        "tokenizer = '{tokenizer}' is for texts; translations and documents use characters or byte pairs: "
        "--set data.tokenizer=bpe",
    ),
    Rule(
        ("data.tokenizer", "data.tokenizer_from"),
        lambda c: c.data.tokenizer == "loaded" and c.data.tokenizer_from is None,
        "tokenizer = 'loaded' needs a path to load it from: --set data.tokenizer_from=PATH",
    ),
    Rule(
        ("data.tokenizer_from", "data.tokenizer"),
        lambda c: c.data.tokenizer != "loaded" and c.data.tokenizer_from is not None,
        "tokenizer_from is for tokenizer = 'loaded', not '{tokenizer}': --set data.tokenizer=loaded",
    ),
    Rule(
        ("data.shared_vocabulary", "objective.kind"),
        lambda c: not c.data.shared_vocabulary and c.task.corpus != "pairs",
        "only translations can have a separate vocabulary for each side; leave shared_vocabulary at true",
    ),
    Rule(
        ("model.source_vocab_size", "data.shared_vocabulary"),
        lambda c: c.data.shared_vocabulary and c.model.source_vocab_size is not None,
        "source and target share one vocabulary, sized by model.vocab_size; remove source_vocab_size or use "
        "--set data.shared_vocabulary=false",
    ),
    Rule(
        ("model.classes", "objective.kind"),
        lambda c: c.model.classes is not None and not c.task.uses("model.classes", c),
        "'{kind}' predicts tokens; only classification has classes: leave model.classes out",
    ),
    Rule(
        ("evaluation.select", "objective.kind"),
        lambda c: c.evaluation.select not in c.task.scores,
        "'{kind}' has no {select} score: translations have bleu and exact_match, summaries have rouge_1, "
        "rouge_2, rouge_l and exact_match, questions have exact_match, classification has accuracy and "
        "macro_f1; --set evaluation.select=loss",
    ),
    Rule(
        ("data.window_stride", "objective.kind"),
        lambda c: c.trains_on_rows and c.data.window_stride is not None,
        "'{kind}' trains on sentences, documents, questions or texts, which are not cut into windows; leave "
        "window_stride out",
    ),
    lambda c: refusals(SCHEDULES[c.optimizer.schedule].rules, c.optimizer),
    Rule(
        ("data.corpus", "objective.kind"),
        lambda c: kind_by_name(c.data.corpus) not in (None, c.task.corpus),
        _corpus_reason,
    ),
)


def check(config: RunConfig) -> Refusal | None:
    """Return the first reason why a config cannot be built or trained; None if it can."""
    return next(refusals(RULES, config), None)


def require_valid(config: RunConfig, where: str) -> None:
    """Raise an `InputError` with the reason if the config cannot be built."""
    refusal = check(config)
    if refusal is not None:
        raise InputError(f"{where}: {join_and(refusal.keys)}: {refusal.reason}")


def with_value(config: RunConfig, key: str, value: Any) -> RunConfig:
    """Return the config with one setting changed; values derived from the old one stay."""
    return with_values(config, {key: value})


def with_values(config: RunConfig, values: Mapping[str, Any]) -> RunConfig:
    """Return the config with settings changed, by dotted key; values derived from the old ones stay."""
    data = config.dump()
    for section, name in (key.split(".") for key in values):
        data[section][name] = values[f"{section}.{name}"]
    return RunConfig.model_validate(data)


def why_ranks_uneven(config: RunConfig, n: int) -> str:
    """Why a number of ranks cannot share the micro-batches of a step evenly, "" if they can."""
    if config.train.accumulation % n == 0:
        return ""
    return tr(
        "{n} ranks cannot evenly share a step with train.accumulation = {shards}; set it to a multiple of {n}",
        n=n,
        shards=config.train.accumulation,
    )


def require_even_ranks(config: RunConfig, n: int) -> None:
    if why := why_ranks_uneven(config, n):
        raise InputError(why)
