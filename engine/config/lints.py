"""Settings that are legal but surely not meant. A lint warns and the run goes on."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.config.schema import RunConfig


@dataclass(frozen=True)
class Lint:
    """One warning: the key it is about and what to do."""

    key: str
    text: str


Rule = Callable[[RunConfig, int | None], Lint | None]


def _warmup_longer_than_run(config: RunConfig, _: int | None) -> Lint | None:
    warmup, steps = config.optimizer.warmup, config.train.steps
    if not isinstance(warmup, int) or steps == 0 or warmup < steps:
        return None
    share = steps / warmup
    return Lint(
        "optimizer.warmup",
        f"warm-up takes {warmup:,} steps but the run ends after {steps:,}: the learning rate gets to "
        f"{share:.0%} of {config.optimizer.lr:g} and never decays; a tenth of the run is usual ({max(1, steps // 10)})",
    )


def _context_longer_than_corpus(config: RunConfig, train_tokens: int | None) -> Lint | None:
    context = config.model.context_length
    if train_tokens is None or train_tokens >= 20 * context:
        return None
    return Lint(
        "model.context_length",
        f"a context of {context:,} tokens is long for {train_tokens:,} training tokens: "
        f"only {max(train_tokens // context, 1)} windows do not overlap, so the model will learn them by heart",
    )


def _evaluation_never_due(config: RunConfig, _: int | None) -> Lint | None:
    every, steps = config.evaluation.every, config.train.steps
    if every <= steps and every > 0:
        return None
    return Lint(
        "evaluation.every",
        f"no evaluation falls within the {steps:,} steps (every = {every:,}): only the end will be scored, "
        "so overfitting cannot be seen",
    )


RULES: tuple[Rule, ...] = (_warmup_longer_than_run, _context_longer_than_corpus, _evaluation_never_due)


def lint(config: RunConfig, train_tokens: int | None = None) -> list[Lint]:
    """The warnings for a config.

    Args:
        config: what will run, durations in steps.
        train_tokens: size of the training split, where it is known.
    """
    return [found for rule in RULES if (found := rule(config, train_tokens)) is not None]
