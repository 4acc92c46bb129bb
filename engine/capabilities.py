"""Which combinations of settings are valid, as data, and why the others are not.

One list of rules greys out choices in the app and gives the command line its errors. No torch here.
"""

from collections.abc import Iterator
from typing import Any

from engine.base.errors import InputError, comma_separated, join_and, join_or
from engine.base.language import tr
from engine.config.fields import Section
from engine.config.model import ModelConfig, active_parts
from engine.config.schema import RunConfig
from engine.config.schemes import ATTENTIONS, NORMS, POSITIONS, SCHEDULES, Scheme
from engine.config.tasks import Refusal
from engine.config.visibility import self_attention
from engine.data.known import CORPORA, kind_by_name, names_of

LAYER_KEY = "model.attention"  # rules with this key apply to each layer


def _broken_rules(scheme: Scheme, section: Section, *, of_a_layer: bool | None = None) -> Iterator[Refusal]:
    """Yield a refusal for each rule of a scheme that a config section breaks; `of_a_layer`: only the rules about a
    layer's attention, or only the others.
    """
    for rule in scheme.rules:
        if of_a_layer not in (None, LAYER_KEY in rule.keys):
            continue
        if rule.broken(section):
            yield Refusal(rule.keys, rule.reason(section))


def _refusals_of_all_layers(model: ModelConfig) -> Iterator[Refusal]:
    """Yield a refusal for each layer whose attention and position do not combine."""
    if not model.layers:
        yield from _layer_refusals(model)
        return
    found = {model.position, *model.distinct_positions}
    added = [name for name in POSITIONS if name in found and POSITIONS[name].acts_on == "embeddings"]
    if added and len(found) > 1:
        others = [name for name, row in POSITIONS.items() if row.acts_on != "embeddings"]
        reason = tr(
            "{added} positions are added to the embeddings, before the first layer, so layers cannot "
            "each have their own; with --set model.position=none, layers can choose from {others}",
            added=added[0],
            others=comma_separated(others),
        )
        yield Refusal(("model.layers", "model.position"), reason)
    for layer, (first, *_) in model.layer_kinds():
        for refusal in _layer_refusals(layer):
            reason = tr("layer {layer}: {reason}", layer=first + 1, reason=refusal.reason)
            yield Refusal(("model.layers", *refusal.keys), reason)


def _layer_refusals(m: ModelConfig) -> Iterator[Refusal]:
    """Yield a refusal for each reason why a layer's attention and position do not combine."""
    attention, position = ATTENTIONS[m.attention], POSITIONS[m.position]
    if not attention.has_scores and position.adds:
        fitting = [name for name, other in POSITIONS.items() if not other.adds]
        reason = tr(
            "{attention} attention has no score matrix to add {term} to; positions that work with it: {fitting}",
            attention=m.attention,
            term=position.adds,
            fitting=comma_separated(fitting),
        )
        yield Refusal(("model.position", "model.attention"), reason)
    if not attention.has_scores and m.attention_dropout > 0.0:
        reason = tr(
            "{attention} attention has no weights to drop; --set model.attention_dropout=0.0", attention=m.attention
        )
        yield Refusal(("model.attention_dropout", "model.attention"), reason)
    if m.backend not in attention.backends:
        reason = tr(
            "backend '{backend}' does not support {attention} attention; these do: {backends}",
            backend=m.backend,
            attention=m.attention,
            backends=comma_separated(attention.backends),
        )
        yield Refusal(("model.backend", "model.attention"), reason)
    if m.backend == "banded" and self_attention(m).reach(1) is None:
        reason = tr("backend 'banded' supports only attention = 'window', not '{attention}'", attention=m.attention)
        yield Refusal(("model.backend", "model.attention"), reason)
    if m.backend in ("sdpa", "dense") and position.acts_on == "content":
        reason = tr(
            "backend '{backend}' does not support {term}; leave backend at 'auto'",
            backend=m.backend,
            term=position.adds,
        )
        yield Refusal(("model.backend", "model.position"), reason)
    for scheme in (attention, position):
        yield from _broken_rules(scheme, m)
    for row in active_parts(m).values():
        yield from _broken_rules(row, m, of_a_layer=True)


def _refusals(c: RunConfig) -> Iterator[Refusal]:
    """Yield each invalid combination with its reason; later rules rely on earlier ones."""
    if c.model.d_model % c.model.n_heads != 0:
        fitting = [str(n) for n in range(1, min(c.model.d_model, 64) + 1) if c.model.d_model % n == 0]
        reason = tr(
            "d_model {d_model} is not divisible by {n_heads} heads; head counts that work: {fitting}",
            d_model=c.model.d_model,
            n_heads=c.model.n_heads,
            fitting=comma_separated(fitting[:8]),
        )
        yield Refusal(("model.n_heads", "model.d_model"), reason)
    turning = [name for name in c.model.distinct_positions if POSITIONS[name].rotates]
    if turning and c.model.head_width % 2 != 0:
        reason = tr(
            "{position} rotates features in pairs, but a head has {head_width} features; d_model / n_heads "
            "must be even (got {d_model} / {n_heads})",
            position=turning[0],
            head_width=c.model.head_width,
            d_model=c.model.d_model,
            n_heads=c.model.n_heads,
        )
        yield Refusal(("model.position", "model.n_heads"), reason)
    if c.model.n_heads % c.model.kv_heads != 0:
        reason = tr(
            "{n_heads} query heads cannot evenly share {kv_heads} key and value heads; n_kv_heads must divide n_heads",
            n_heads=c.model.n_heads,
            kv_heads=c.model.kv_heads,
        )
        yield Refusal(("model.n_kv_heads", "model.n_heads"), reason)
    task, kind, architecture = c.task, c.task.name, c.model.architecture
    if architecture not in task.architectures:
        able = join_or(f"'{name}'" for name in task.architectures)
        both = tr("it needs architecture = {architectures}", architectures=able)
        reason = tr(
            "'{kind}' does not work with architecture = '{architecture}': {why_not}",
            kind=kind,
            architecture=architecture,
            why_not=task.why_not.get(architecture, both),
        )
        yield Refusal(("objective.kind", "model.architecture"), reason)
    if not c.model.causal and c.model.architecture != "encoder":
        reason = tr(
            "a decoder generates from left to right, so it must not see later tokens; for attention in "
            "both directions, choose architecture = 'encoder'"
        )
        yield Refusal(("model.causal", "model.architecture"), reason)
    yield from task.refusals(c)
    if c.window_targets > c.model.context_length:
        reason = tr(
            "'{kind}' targets are {window_targets:,} tokens long, but the decoder's context is only "
            "{context_length:,}; --set model.context_length={window_targets}",
            kind=kind,
            window_targets=c.window_targets,
            context_length=c.model.context_length,
        )
        yield Refusal(("model.source_length", "model.context_length"), reason)
    yield from _refusals_of_all_layers(c.model)
    if c.model.backend == "dense" and c.trains_on_rows:
        yield Refusal(
            ("model.backend", "objective.kind"),
            tr("backend 'dense' does not support padding, which '{kind}' needs; leave backend at 'auto'", kind=kind),
        )
    yield from _broken_rules(NORMS[c.model.norm], c.model)
    for row in active_parts(c.model).values():
        yield from _broken_rules(row, c.model, of_a_layer=False)
    if c.model.position_init == "zero" and not POSITIONS[c.model.position].bounded:
        reason = tr(
            "position_init = 'zero' needs a learned table, but position = '{position}' has none; leave "
            "position_init out or choose position = 'learned'",
            position=c.model.position,
        )
        yield Refusal(("model.position_init", "model.position"), reason)
    tokenizer = c.data.tokenizer
    if task.corpus == "text" and tokenizer != "characters" and c.data.corpus == "playlets":
        reason = tr(
            "playlets works only with character tokens, for which its floor and probes are defined: --set "
            "data.tokenizer=characters, or choose another corpus"
        )
        yield Refusal(("data.tokenizer", "data.corpus"), reason)
    if tokenizer == "words" and task.corpus == "pairs":
        reason = tr(
            "word tokens are for texts and documents; translations use characters or byte pairs: --set "
            "data.tokenizer=bpe"
        )
        yield Refusal(("data.tokenizer", "objective.kind"), reason)
    if tokenizer in ("bytes", "loaded") and task.corpus != "text":
        reason = tr(
            "tokenizer = '{tokenizer}' is for texts; translations and documents use characters or byte pairs: "
            "--set data.tokenizer=bpe",
            tokenizer=tokenizer,
        )
        yield Refusal(("data.tokenizer", "objective.kind"), reason)
    if tokenizer == "loaded" and c.data.tokenizer_from is None:
        reason = tr("tokenizer = 'loaded' needs a path to load it from: --set data.tokenizer_from=PATH")
        yield Refusal(("data.tokenizer", "data.tokenizer_from"), reason)
    if tokenizer != "loaded" and c.data.tokenizer_from is not None:
        reason = tr(
            "tokenizer_from is for tokenizer = 'loaded', not '{tokenizer}': --set data.tokenizer=loaded",
            tokenizer=tokenizer,
        )
        yield Refusal(("data.tokenizer_from", "data.tokenizer"), reason)
    if not c.data.shared_vocabulary and task.corpus != "pairs":
        reason = tr("only translations can have a separate vocabulary for each side; leave shared_vocabulary at true")
        yield Refusal(("data.shared_vocabulary", "objective.kind"), reason)
    if c.data.shared_vocabulary and c.model.source_vocab_size is not None:
        reason = tr(
            "source and target share one vocabulary, sized by model.vocab_size; remove source_vocab_size or use "
            "--set data.shared_vocabulary=false"
        )
        yield Refusal(("model.source_vocab_size", "data.shared_vocabulary"), reason)
    if c.model.classes is not None and not task.uses("model.classes", c):
        reason = tr("'{kind}' predicts tokens; only classification has classes: leave model.classes out", kind=kind)
        yield Refusal(("model.classes", "objective.kind"), reason)
    if c.evaluation.select not in task.scores:
        reason = tr(
            "'{kind}' has no {select} score: translations have bleu and exact_match, summaries have rouge_1, "
            "rouge_2, rouge_l and exact_match, questions have exact_match, classification has accuracy and "
            "macro_f1; --set evaluation.select=loss",
            kind=kind,
            select=c.evaluation.select,
        )
        yield Refusal(("evaluation.select", "objective.kind"), reason)
    if c.trains_on_rows and c.data.window_stride is not None:
        reason = tr(
            "'{kind}' trains on sentences, documents, questions or texts, which are not cut into windows; leave "
            "window_stride out",
            kind=kind,
        )
        yield Refusal(("data.window_stride", "objective.kind"), reason)
    yield from _broken_rules(SCHEDULES[c.optimizer.schedule], c.optimizer)
    corpus, found, wanted = c.data.corpus, kind_by_name(c.data.corpus), task.corpus
    if found is not None and found != wanted:
        from engine.data.catalogue import KINDS

        entry, able = CORPORA.get(corpus), KINDS[found].preset
        preset = (entry and entry.preset) or (able and f"{able} --corpus {corpus[:80]}")
        instead = tr("; --preset {preset} trains on it", preset=preset) if preset else ""
        needed = task.needs_phrase or tr("'{kind}' needs", kind=kind)
        reason = tr(
            "'{corpus}' contains {kind}, but {needed} {needed_kind}, such as {example} or your own files{hint}",
            corpus=corpus[:80],
            kind=KINDS[found].description,
            needed=needed,
            needed_kind=KINDS[wanted].description,
            example=names_of(wanted)[0],
            hint=instead,
        )
        yield Refusal(("data.corpus", "objective.kind"), reason)


def check(config: RunConfig) -> Refusal | None:
    """Return the first reason why a config cannot be built or trained; None if it can."""
    return next(_refusals(config), None)


def require_valid(config: RunConfig, where: str) -> None:
    """Raise an `InputError` with the reason if the config cannot be built."""
    refusal = check(config)
    if refusal is not None:
        raise InputError(f"{where}: {join_and(refusal.keys)}: {refusal.reason}")


def with_value(config: RunConfig, key: str, value: Any) -> RunConfig:
    """Return the config with one setting changed; values derived from the old one stay."""
    section, name = key.split(".")
    data = config.dump()
    data[section][name] = value
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
