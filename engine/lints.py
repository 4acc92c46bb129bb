"""Settings that are legal but surely not meant. A lint warns and the run goes on."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.config.keys import flatten
from engine.config.schema import RunConfig
from engine.model.visibility import LINEAR_FROM, QUICKER


@dataclass(frozen=True)
class Lint:
    """One warning: the key it is about and what to do."""

    key: str
    text: str


@dataclass(frozen=True)
class Tokens:
    """Of the corpus: of its training and its validation split, where they are known."""

    train: int | None = None
    validation: int | None = None


DEEP_POST_NORM = 6  # layers, encoder's and decoder's together: 4 were seen to learn without warm-up, 6 + 6 were not

TRAINED, USUAL = 3, 0.1  # a token trained on costs three scored ones; the share of its time a run may be scored
QUICKLY = 1_000_000  # tokens; whoever scores fewer does not wait long
Rule = Callable[[RunConfig, Tokens], Lint | None]


def _steps(config: RunConfig) -> int | None:
    """Of the run; None where it is said in epochs and the corpus has to say how many steps these are."""
    return config.train.steps if config.train.epochs is None else None


def _warmup_longer_than_run(config: RunConfig, _: Tokens) -> Lint | None:
    warmup, steps = config.optimizer.warmup, _steps(config)
    if not isinstance(warmup, int) or steps is None or steps == 0 or warmup < steps:
        return None
    share = steps / warmup
    return Lint(
        "optimizer.warmup",
        f"warm-up takes {warmup:,} steps but the run ends after {steps:,}: the learning rate gets to "
        f"{share:.0%} of {config.optimizer.lr:g} and never decays; a tenth of the run is usual ({max(1, steps // 10)})",
    )


def _context_longer_than_corpus(config: RunConfig, tokens: Tokens) -> Lint | None:
    context, train_tokens = config.model.context_length, tokens.train
    if config.on_rows or train_tokens is None or train_tokens >= 20 * context:
        return None
    return Lint(
        "model.context_length",
        f"a context of {context:,} tokens is long for {train_tokens:,} training tokens: "
        f"only {max(train_tokens // context, 1)} windows do not overlap, so the model will learn them by heart",
    )


def _evaluation_never_due(config: RunConfig, _: Tokens) -> Lint | None:
    every, steps = config.evaluation.every, _steps(config)
    if steps is None or 0 < every <= steps:
        return None
    return Lint(
        "evaluation.every",
        f"no evaluation falls within the {steps:,} steps (every = {every:,}): only the end will be scored, "
        "so overfitting cannot be seen",
    )


def _scored_longer_than_trained(config: RunConfig, tokens: Tokens) -> Lint | None:
    every = min(config.evaluation.every or config.train.steps, config.train.steps)
    if config.on_rows or tokens.validation is None or _steps(config) is None or every == 0:
        return None
    targets, train = config.window_targets, config.train
    trained = TRAINED * every * train.batch_size * train.accumulation * targets
    scored = tokens.validation * targets // config.stride
    if scored <= max(trained, QUICKLY):
        return None
    share = config.data.validation_fraction * USUAL * trained / scored
    return Lint(
        "data.validation_fraction",
        f"an evaluation computes {scored:,} tokens and takes about {scored / trained:,.0f} × as long as the {every:,} "
        f"steps before it; --set data.validation_fraction={share:.1g} scores a part of the text that is large enough",
    )


def _cuts_documents(config: RunConfig) -> bool:
    return config.objective.kind == "span-corruption" and not config.has_sentinels


# Settings that act only where another one has some value: (key, when it acts, where that is).
ACTS: tuple[tuple[str, Callable[[RunConfig], bool], str], ...] = (
    ("model.window", lambda c: c.model.attention in ("window", "sparse"), "attention = 'window' or 'sparse'"),
    ("model.link_every", lambda c: c.model.attention == "sparse", "attention = 'sparse'"),
    ("model.rope_base", lambda c: c.model.position == "rope", "position = 'rope'"),
    ("model.rope_pairing", lambda c: c.model.position == "rope", "position = 'rope'"),
    ("model.relative_max_distance", lambda c: c.model.position == "relative", "position = 'relative'"),
    ("model.t5_buckets", lambda c: c.model.position == "t5", "position = 't5'"),
    ("model.t5_max_distance", lambda c: c.model.position == "t5", "position = 't5'"),
    ("model.n_encoder_layers", lambda c: c.model.architecture == "encoder-decoder", "an encoder-decoder"),
    ("model.source_length", lambda c: c.model.architecture == "encoder-decoder", "an encoder-decoder"),
    ("model.norm_eps", lambda c: c.model.norm != "none", "a norm"),
    ("model.init_std", lambda c: c.model.init in ("normal", "scaled-normal"), "init = 'normal' or 'scaled-normal'"),
    ("data.bpe_size", lambda c: c.data.tokenizer == "bpe", "tokenizer = 'bpe'"),
    ("data.max_length", lambda c: c.translates, "objective.kind = 'translation'"),
    ("evaluation.beam", lambda c: c.translates, "objective.kind = 'translation'"),
    (
        "objective.mask_fraction",
        lambda c: c.objective.kind == "masked" or c.has_sentinels,
        "objective.kind = 'masked', or span_form = 't5'",
    ),
    ("objective.span_form", lambda c: c.objective.kind == "span-corruption", "objective.kind = 'span-corruption'"),
    ("objective.span_mean", lambda c: c.has_sentinels, "objective.kind = 'span-corruption' and span_form = 't5'"),
    *(
        (f"objective.{key}", _cuts_documents, "objective.kind = 'span-corruption', and not span_form = 't5'")
        for key in ("span_fraction", "cut_fraction")
    ),
    ("optimizer.decay_factor", lambda c: c.optimizer.schedule == "step", "schedule = 'step'"),
)


def _set_without_effect(config: RunConfig, _: Tokens) -> Lint | None:
    own, usual = flatten(config.dump()), flatten(RunConfig().dump())
    idle = [(key, where) for key, acts, where in ACTS if not acts(config) and own.get(key) != usual.get(key)]
    if not idle:
        return None
    key, where = idle[0]
    others = "".join(f"; nor has {other} ({there})" for other, there in idle[1:])
    return Lint(key, f"is set and has no effect here: it acts with {where}{others}")


def _saves_no_time(config: RunConfig, _: Tokens) -> Lint | None:
    model = config.model
    if model.attention == "sparse":
        return Lint("model.attention", "'sparse' is computed with a dense mask: it costs as much as 'global'")
    saves_from = {"window": QUICKER * (model.window - 1), "linear": LINEAR_FROM}.get(model.attention, 0)
    if model.context_length < saves_from:
        text = f"'{model.attention}' saves no time at a context of {model.context_length}"
        return Lint("model.attention", f"{text}, only from about {saves_from:,} on (`check` measures it here)")
    return None


def _deep_post_norm_without_warmup(config: RunConfig, _: Tokens) -> Lint | None:
    model = config.model
    layers = model.n_layers + (model.encoder_layers if model.architecture == "encoder-decoder" else 0)
    if model.norm == "none" or model.norm_placement != "post" or config.optimizer.warmup or layers < DEEP_POST_NORM:
        return None
    return Lint(
        "optimizer.warmup",
        f"is 0 with post-norm over {layers} layers, whose gradients are largest at first: such a model often stays at "
        "the unigram line (Xiong et al. 2020); --set optimizer.warmup=1000, or norm_placement = 'pre'",
    )


RULES: tuple[Rule, ...] = (
    _warmup_longer_than_run,
    _context_longer_than_corpus,
    _evaluation_never_due,
    _scored_longer_than_trained,
    _set_without_effect,
    _saves_no_time,
    _deep_post_norm_without_warmup,
)


def lint(config: RunConfig, train_tokens: int | None = None, validation_tokens: int | None = None) -> list[Lint]:
    """The warnings for a config.

    Args:
        config: what will run, durations in steps.
        train_tokens: size of the training split, where it is known.
        validation_tokens: the same of the validation split.
    """
    tokens = Tokens(train_tokens, validation_tokens)
    return [found for rule in RULES if (found := rule(config, tokens)) is not None]
