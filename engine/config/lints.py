"""Settings that are valid but almost certainly unintended. A lint warns; the run continues."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from engine.base.language import Message
from engine.config.keys import flatten
from engine.config.model import PARTS, active_parts
from engine.config.schema import RunConfig
from engine.config.schemes import ATTENTIONS, SCHEMES


@dataclass(frozen=True)
class Lint:
    key: str
    text: str

    @property
    def message(self) -> Message:
        """The warning with its key."""
        return Message("{name}: {text}", name=self.key, text=self.text)


DEEP_POST_NORM = 6  # encoder and decoder layers together: in tests, 4 learned without warm-up, 6 + 6 did not
TRAINING_COST_FACTOR = 3  # a training token costs as much as three scored ones
USUAL_SCORING_SHARE = 0.1  # the share of a run's time that scoring may take
QUICK_SCORING_TOKENS = 1_000_000  # tokens; scoring fewer is quick

ConditionalSetting = tuple[str, Callable[[RunConfig], bool], str]


def _scheme_settings(key: str) -> Iterator[ConditionalSetting]:
    """Yield the settings that take effect only with some of the schemes that `key` selects."""
    (section, _, choice), schemes = key.partition("."), SCHEMES[key]
    for setting in dict.fromkeys(setting for scheme in schemes.values() for setting in scheme.settings):
        names = [name for name, scheme in schemes.items() if setting in scheme.settings]
        acts = partial(lambda c, names: not names.isdisjoint(_chosen_schemes(c, section, choice)), names=set(names))
        yield f"{section}.{setting}", acts, _requirement(choice, names)


def _requirement(name: str, values: Sequence[object]) -> str:
    return f"{name} = {' / '.join(map(repr, values))}"  # no words, so it is the same in every language


def _chosen_schemes(config: RunConfig, section: str, choice: str) -> set[str]:
    """Return the schemes that a setting selects: one, or one per kind of layer."""
    chosen = {"attention": config.model.distinct_attentions, "position": config.model.distinct_positions}
    return set(chosen[choice]) if choice in chosen else {getattr(getattr(config, section), choice)}


def _part_settings() -> Iterator[ConditionalSetting]:
    """Yield the settings that take effect only with an optional part of the network."""
    for name, row in PARTS.items():
        for setting, values in row.settings.items():
            needed = _requirement(name, values) if values else name
            yield f"model.{setting}", partial(_is_part_on, name=name, values=values), needed


def _is_part_on(config: RunConfig, name: str, values: tuple[object, ...]) -> bool:
    """Whether a part is on, with one of the given values if there are any."""
    return name in active_parts(config.model) and (not values or getattr(config.model, name) in values)


# Settings that act only with some value of another: (key, whether it acts, what it needs).
CONDITIONAL_SETTINGS: tuple[ConditionalSetting, ...] = (
    *_scheme_settings("model.attention"),
    *_scheme_settings("model.position"),
    *_part_settings(),
    ("model.n_encoder_layers", lambda c: c.model.architecture == "encoder-decoder", Message("an encoder-decoder")),
    (
        "model.source_length",
        lambda c: c.has_source or c.task.source_truncation_length(c) is not None,
        Message("an encoder-decoder, or objective.kind = 'summarization'"),
    ),
    ("model.norm_eps", lambda c: c.model.norm != "none", Message("a norm")),
    (
        "model.init_std",
        lambda c: c.model.init in ("normal", "scaled-normal"),
        Message("init = 'normal' or 'scaled-normal'"),
    ),
    ("data.bpe_size", lambda c: c.data.tokenizer == "bpe", "tokenizer = 'bpe'"),
    (
        "data.words_size",
        lambda c: c.data.tokenizer == "words" and not c.trains_on_rows,
        Message("tokenizer = 'words' and plain text"),
    ),
    (
        "data.across_documents",
        lambda c: c.task.continues and c.data.tokenizer in ("bpe", "loaded"),
        Message("objective.kind = 'next-token' and byte-pair tokens"),
    ),
    *(
        (key, lambda c, key=key: c.task.uses(key, c), where)
        for key, where in (
            ("data.max_length", Message("objective.kind = 'translation' or 'summarization'")),
            ("data.lowercase", "objective.kind = 'classification'"),
            ("evaluation.beam", Message("objective.kind = 'translation' or 'summarization'")),
            ("objective.mask_fraction", Message("objective.kind = 'masked', or span_form = 't5'")),
            ("objective.span_form", "objective.kind = 'span-corruption'"),
            ("objective.span_mean", Message("objective.kind = 'span-corruption' and span_form = 't5'")),
            ("objective.span_fraction", Message("objective.kind = 'span-corruption' and span_form other than 't5'")),
            ("objective.cut_fraction", Message("objective.kind = 'span-corruption' and span_form other than 't5'")),
        )
    ),
    *_scheme_settings("optimizer.schedule"),
    *_scheme_settings("optimizer.kind"),
    (
        "optimizer.head_lr",
        lambda c: c.model.head_bias or not c.model.tie_embeddings,
        Message("tie_embeddings = false or head_bias = true"),
    ),
)


def lint(config: RunConfig, train_tokens: int | None = None, validation_tokens: int | None = None) -> Iterator[Lint]:
    """Yield the warnings for a config with durations in steps, and its split sizes if known."""
    model, train, optimizer, every = config.model, config.train, config.optimizer, config.evaluation.every
    context = model.context_length
    steps = train.steps if train.epochs is None else None  # None: the steps of an epoch depend on the corpus

    if isinstance(optimizer.warmup, int) and steps and optimizer.warmup >= steps:
        text = Message(
            "warm-up takes {warmup:,} steps, but the run ends after {steps:,}: the learning rate reaches "
            "{share:.0%} of {lr:g} and never decays; a tenth of the run is usual ({usual})",
            warmup=optimizer.warmup,
            steps=steps,
            share=steps / optimizer.warmup,
            lr=optimizer.lr,
            usual=max(1, steps // 10),
        )
        yield Lint("optimizer.warmup", text)
    averaged = 1.0 / (1.0 - train.ema)  # steps
    if train.ema and steps and averaged > steps:
        text = Message(
            "averages over about {averaged:,.0f} steps, but the run has {steps:,}: the average stays "
            "close to the weights of the first step; a tenth of the run is usual (--set "
            "train.ema={suggested:.6g})",
            averaged=averaged,
            steps=steps,
            suggested=1.0 - 10.0 / max(20, steps),
        )
        yield Lint("train.ema", text)
    if not config.trains_on_rows and train_tokens is not None and train_tokens < 20 * context:
        text = Message(
            "a context of {context:,} tokens is long for {train_tokens:,} training tokens: they make only "
            "{windows} non-overlapping windows, so the model will memorize them",
            context=context,
            train_tokens=train_tokens,
            windows=max(train_tokens // context, 1),
        )
        yield Lint("model.context_length", text)
    if steps is not None and not 0 < every <= steps:
        text = Message(
            "no evaluation falls within the {steps:,} steps (every = {every:,}): only the final model will be "
            "scored, so overfitting will not show",
            steps=steps,
            every=every,
        )
        yield Lint("evaluation.every", text)
    between = min(every or train.steps, train.steps)
    if not config.trains_on_rows and validation_tokens is not None and steps is not None and between > 0:
        targets = config.window_targets
        trained = TRAINING_COST_FACTOR * between * train.batch_size * train.accumulation * targets
        scored = validation_tokens * targets // config.evaluation_stride
        if scored > max(trained, QUICK_SCORING_TOKENS):
            share = config.data.validation_fraction * USUAL_SCORING_SHARE * trained / scored
            text = Message(
                "each evaluation scores {scored:,} tokens, which takes about {ratio:,.0f} times as long as the "
                "{between:,} steps before it; --set data.validation_fraction={share:.1g} would score enough of "
                "the text",
                scored=scored,
                ratio=scored / trained,
                between=between,
                share=share,
            )
            yield Lint("data.validation_fraction", text)
    own, usual = flatten(config.dump()), flatten(RunConfig().dump())
    idle = [
        (key, where) for key, acts, where in CONDITIONAL_SETTINGS if not acts(config) and own.get(key) != usual.get(key)
    ]
    if idle:
        others = "".join(
            Message("; {other} has no effect either (needs {there})", other=other, there=there)
            for other, there in idle[1:]
        )
        text = Message("is set but has no effect without {needed}{others}", needed=idle[0][1], others=others)
        yield Lint(idle[0][0], text)
    for attention in model.distinct_attentions:
        saves_from = ATTENTIONS[attention].break_even_context(model)
        if saves_from is None:
            text = Message(
                "'{attention}' is computed with a dense mask, so it is no cheaper than 'global'", attention=attention
            )
            yield Lint("model.attention", text)
        elif context < saves_from:
            why = Message("'{attention}' saves no time at a context of {context}", attention=attention, context=context)
            text = Message(
                "{claim}; it saves time only from about {saves_from:,} on (`check` measures the break-even point here)",
                claim=why,
                saves_from=saves_from,
            )
            yield Lint("model.attention", text)
    count = len(model.layers) - model.max_stack_depth
    if count > 0:
        unused = Message("the last {count} are", count=count) if count > 1 else Message("the last is")
        text = Message(
            "lists {listed} layers, but the network has {depth}: {which} unused",
            listed=len(model.layers),
            depth=model.max_stack_depth,
            which=unused,
        )
        yield Lint("model.layers", text)
    layers = model.n_layers + (model.encoder_layers if model.architecture == "encoder-decoder" else 0)
    post_norm = model.norm != "none" and model.norm_placement == "post"
    if post_norm and not optimizer.warmup and layers >= DEEP_POST_NORM:
        text = Message(
            "is 0, but with post-norm over {layers} layers the gradients are largest at the start, so "
            "such a model often gets stuck at the unigram loss (Xiong et al. 2020); --set "
            "optimizer.warmup=1000, or use norm_placement = 'pre'",
            layers=layers,
        )
        yield Lint("optimizer.warmup", text)
