"""Does training do what the config says: the gradient, the update, dropout, scoring and the effect of the seed?

Each check recomputes from the papers' formulas what the run's own code does in a few steps on a small copy of the
network. Losses are in nats.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from engine.config.schema import RunConfig
from engine.config.sections import END, OptimizerConfig
from engine.data.loader import Batches, Examples
from engine.data.objectives import IGNORED, Batch
from engine.evaluation.metrics import score_batches, score_tokens
from engine.evaluation.verdict import Verdict
from engine.model.positions import Positions
from engine.model.transformer import Network, build_model
from engine.training.copies import DROPOUTS, SmallCopy, small_copy
from engine.training.network_checks import verdict
from engine.training.optimizer import decay_groups
from engine.training.step import Stepper

ROWS, TOKENS = 2, 64  # of a batch that a copy is trained on
PIECES = 3  # most micro-batches tried
GRADIENT_LIMIT = 1e-3  # of the largest entry: logits are rounded to fp32
UPDATE_LIMIT = 1e-6  # of the learning rate, and of the schedule's
NORM_LIMIT = 1e-3
SCORE_LIMIT = 1e-4  # nats
DROPPED = 0.5  # the dropout rate used in tests: a small one may drop nothing from a small batch
OTHER_SEEDS = 4
FIRST_STEPS = 3

Reseeded = Callable[[int], Batches]


class FewRows:
    """The first batches of a run, cut to a few rows and tokens, fewer in each later micro-batch of a step."""

    def __init__(self, batches: Examples, accumulation: int) -> None:
        self.objective, self._probed = batches.objective, batches.probed
        self.first = [_cut(batches.batch(1, micro), max(1, ROWS - micro)) for micro in range(accumulation)]

    def batch(self, step: int, micro: int) -> Batch:
        """The first step's batch, for any step."""
        return self.first[micro]

    def probed(self) -> Tensor:
        """See `Examples`."""
        return self._probed()

    def largest(self) -> tuple[int, int]:
        """The first; the others have fewer rows."""
        return 1, 0


def _cut(batch: Batch, rows: int) -> Batch:
    """The beginning of some rows, on the CPU; the whole rows if the beginning has no target."""

    def part(x: Tensor, most: int | None) -> Tensor:
        return x[:rows, :most].cpu()

    most = TOKENS if bool((batch.targets[:rows, :TOKENS] != IGNORED).any()) else None
    targets = part(batch.targets, most)
    source = None if batch.source is None else part(batch.source, None)
    at = None if batch.source_at is None else Positions(part(batch.source_at.index, None), one_side=True)
    return Batch(part(batch.tokens, most), targets, int((targets != IGNORED).sum()), source, at)


def _trained(config: RunConfig, copy: SmallCopy, few: FewRows, clip: float) -> Stepper:
    """A stepper for a copy: as the config says, but in exact arithmetic."""
    exact = {"precision": "fp32", "compile": "never", "accumulation": len(few.first), "clip": clip}
    train = config.train.model_copy(update=exact)
    alike = config.model_copy(update={"model": copy.model, "train": train})
    return Stepper(alike, copy.network.train(), few, deferred=False)


def few_rows(config: RunConfig, batches: Examples) -> FewRows:
    """The batches that copies are trained on."""
    return FewRows(batches, min(config.train.accumulation, PIECES))


def reader(config: RunConfig, vocab_size: int, **changes: Any) -> SmallCopy:
    """A copy that can read the run's own tokens, of which its tokenizer has `vocab_size`."""
    words = config.needed_tokens(vocab_size)
    return small_copy(config, words, source_vocab_size=config.model.source_vocab_size, **changes)


def gradient(config: RunConfig, small: SmallCopy, few: FewRows) -> Verdict:
    """Is the gradient of a step that of the mean loss over all its targets, with label smoothing as set?"""
    copy, taken = small.another(), small.another()
    _trained(config, taken, few, 0.0).take(1)
    found = _gradient_of(taken)
    share = config.objective.label_smoothing
    worst = _off(found, _mean_gradient(config, copy, few, share))
    wrong = ""
    if not worst <= GRADIENT_LIMIT:
        because = "the loss, its mean or the sum over micro-batches does not match the config"
        if _off(found, _mean_gradient(config, copy, few, 0.0)) <= GRADIENT_LIMIT:
            because = "objective.label_smoothing has no effect"
        elif _off(found, _mean_gradient(config, copy, few, share, apart=True)) <= GRADIENT_LIMIT:
            because = "each micro-batch is divided by its own number of targets instead of the whole step's"
        wrong = f"a step's gradient has a relative error of {worst:.1g}: {because}"
    smoothed = f", including label smoothing {share:g}" if share else ""
    over = f" in {len(few.first)} micro-batches" if len(few.first) > 1 else ""
    right = f"a step's gradient is that of the mean loss over all its targets{over}{smoothed}{copy.said}"
    return verdict("gradient", wrong, right, worst)


def _off(found: Tensor, meant: Tensor) -> float:
    return float((found - meant).abs().max() / meant.abs().max().clamp(min=1e-300))


def _gradient_of(copy: SmallCopy) -> Tensor:
    return torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in copy.network.parameters()])


def _mean_gradient(config: RunConfig, copy: SmallCopy, few: FewRows, share: float, *, apart: bool = False) -> Tensor:
    """∇ of the mean over targets of (1 − share) · nll + share · mean of −log p over the tokens that may follow."""
    words, special = few.objective.vocab_size, config.special_tokens
    may_follow = [*range(words), *([words + special.index(END)] if END in special else [])]
    losses, n_targets = [], [batch.n_targets for batch in few.first]
    for batch in few.first:
        asked = batch.targets != IGNORED
        log_p = copy.network(*batch.inputs)[asked].log_softmax(-1)
        nll = -log_p[torch.arange(len(log_p)), batch.targets[asked]]
        spread = -log_p[:, may_follow].mean(-1) if share else 0.0
        losses.append(((1.0 - share) * nll + share * spread).sum())
    divided = [loss / n for loss, n in zip(losses, n_targets, strict=True) if n]
    total = torch.stack(divided).mean() if apart else torch.stack(losses).sum() / sum(n_targets)
    torch.autograd.backward(total, inputs=list(copy.network.parameters()))
    found = _gradient_of(copy)
    copy.network.zero_grad()
    return found


def update(config: RunConfig, small: SmallCopy, few: FewRows) -> Verdict:
    """Do learning rate, clipping, weight decay and update follow the config at the start, half-way and at the end?"""
    copy = small.another()
    clip = _clip_that_acts(config, copy, few)
    stepper = _trained(config, copy, few, clip)
    named = dict(copy.network.named_parameters())
    decayed = set(decay_groups(copy.network, config.optimizer.decay)["decayed"])
    moments = {name: (torch.zeros_like(p), torch.zeros_like(p)) for name, p in named.items()}
    wrong, steps = "", _steps_to_try(config)
    for taken, step in enumerate(steps, start=1):
        before = {name: p.detach().clone() for name, p in named.items()}
        rate = stepper.take(step).rate
        meant = scheduled(config.optimizer, step, config.train.steps)
        gradients = {name: p.grad for name, p in named.items() if p.grad is not None}
        norm = math.sqrt(sum(float(g.square().sum()) for g in gradients.values()))
        if abs(rate - meant) > UPDATE_LIMIT * config.optimizer.lr:
            schedule = config.optimizer.schedule
            wrong = f"the learning rate at step {step:,} is {rate:.3g}, but the {schedule} schedule gives {meant:.3g}"
        elif clip and norm > clip * (1.0 + NORM_LIMIT):
            wrong = f"the gradient's norm is {norm:.3g} after clipping at {clip:.3g}: train.clip has no effect"
        else:
            wrong = _moved_wrongly(config.optimizer, before, named, gradients, moments, decayed, meant, taken)
        if wrong:
            break
    clipped = f", clipping at {config.train.clip:g}" if clip else ""
    decay = f", weight decay {config.optimizer.weight_decay:g}" if config.optimizer.weight_decay else ""
    at = ", ".join(f"{step:,}" for step in steps)
    right = f"learning rate{clipped}{decay} and weight update at steps {at} follow the config's formulas"
    return verdict("update", wrong, right + copy.said)


def _clip_that_acts(config: RunConfig, copy: SmallCopy, few: FewRows) -> float:
    """The config's clip, or a smaller one that the first gradient is sure to reach; 0 without clipping."""
    if not config.train.clip:
        return 0.0
    norm = float(_mean_gradient(config, copy, few, config.objective.label_smoothing).norm())
    return min(config.train.clip, norm / 2) if norm > 0.0 else config.train.clip


def _steps_to_try(config: RunConfig) -> list[int]:
    warmup, steps = config.optimizer.warmup, config.train.steps
    assert isinstance(warmup, int)
    return sorted({min(max(1, step), max(1, steps)) for step in (1, warmup, (warmup + steps) // 2, steps)})


def scheduled(optimizer: OptimizerConfig, step: int, steps: int) -> float:
    """The learning rate of a step, independently: linear warm-up, then the schedule."""

    def whole(duration: int | str | None, otherwise: int) -> int:
        return duration if isinstance(duration, int) else otherwise

    low, high, warmup = optimizer.min_lr, optimizer.lr, whole(optimizer.warmup, 0)
    if step <= warmup:
        return high / warmup * step
    if optimizer.schedule == "constant":
        return high
    every = whole(optimizer.decay_every, 0)
    if optimizer.schedule == "inverse-sqrt":
        return max(low, high * math.sqrt(max(warmup, 1) / step))
    if optimizer.schedule == "step":
        return max(low, high * optimizer.decay_factor ** ((step - 1) // every))
    at = step if not every else step - 1 - (step - 1) % every
    done = (at - warmup) / max(whole(optimizer.decay_over, steps) - warmup, 1)
    return low + (high - low) * math.cos(math.pi / 2 * min(max(done, 0.0), 1.0)) ** 2


def _moved_wrongly(
    optimizer: OptimizerConfig,
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
    gradients: Mapping[str, Tensor],
    moments: dict[str, tuple[Tensor, Tensor]],
    decayed: set[str],
    rate: float,
    taken: int,
) -> str:
    """What is wrong with an update; "" if it matches Adam's formulas (Kingma and Ba 2015, alg. 1).

    Args:
        optimizer: the settings.
        before: the weights before the update.
        after: the weights after it.
        gradients: as passed to the update.
        moments: from the previous update; updated in place.
        decayed: names of the weights that decay.
        rate: the learning rate.
        taken: number of updates, including this one.
    """
    (one, two), coupled = optimizer.betas, optimizer.kind == "adam"
    for name, g in gradients.items():
        weight = before[name]
        decay = optimizer.weight_decay if name in decayed else 0.0
        g = g + decay * weight if coupled else g
        first, second = moments[name]
        first, second = one * first + (1.0 - one) * g, two * second + (1.0 - two) * g * g
        moments[name] = first, second
        root = (second / (1.0 - two**taken)).sqrt() + optimizer.eps
        plain = rate * (first / (1.0 - one**taken)) / root
        shrunk = 0.0 if coupled else rate * decay * weight
        moved, room = weight - after[name].detach(), UPDATE_LIMIT * rate + 1e-12 * weight.abs()
        if bool(((moved - plain - shrunk).abs() > room).any()):
            if decay and not coupled and bool(((moved - plain).abs() <= room).all()):
                return f"optimizer.weight_decay = {decay:g} has no effect on {name}"
            settings = f"learning rate {rate:.3g} and weight decay {decay:g}"
            return f"the update of {name} is not that of {optimizer.kind} with {settings}"
    return ""


def dropout(config: RunConfig, small: SmallCopy, few: FewRows) -> Verdict:
    """Does each nonzero rate drop something in training, and nothing in evaluation and scoring?"""
    batch, words, wrong = few.first[0], few.objective.vocab_size, ""
    rates = {name: getattr(config.model, name) for name in DROPOUTS if getattr(config.model, name) > 0.0}
    with _own_chance(), torch.no_grad():
        copy = small.another()
        kept = copy.network(*batch.inputs)
        in_training = copy.network.train()(*batch.inputs)
        if not torch.allclose(kept, in_training, rtol=0.0, atol=SCORE_LIMIT):
            wrong = "with dropout off, training mode and evaluation mode give different predictions"
        for name in rates:
            network = reader(config, words, **{name: DROPPED}).network.train()
            passes = []
            for seed in (1, 2):
                torch.default_generator.manual_seed(seed)
                passes.append(network(*batch.inputs))
            if torch.equal(*passes):
                wrong = f"model.{name} = {rates[name]:g} has no effect: two training passes give the same predictions"
        scored = reader(config, words, **dict.fromkeys(rates, DROPPED)) if rates else small.another()
        wrong = wrong or _scored_wrongly(config, scored.network.train(), kept, batch)
    said = ", ".join(f"{name} {rate:g}" for name, rate in rates.items())
    right = f"{said}: active in training, off in scoring" if rates else "none is set, and training mode adds none"
    return verdict("dropout", wrong, right + copy.said)


def _scored_wrongly(config: RunConfig, network: Network, kept: Tensor, batch: Batch) -> str:
    """What is wrong with the scores of a batch, whose logits without dropout are `kept`; "" if nothing."""
    asked = batch.targets != IGNORED
    meant = -kept[asked].log_softmax(-1).gather(1, batch.targets[asked][:, None])[:, 0].numpy()
    for seed in (1, 2):
        torch.default_generator.manual_seed(seed)
        length = batch.tokens.shape[1]
        scores = {"scoring": score_batches(network, [batch], context=length, stride=length).nll}
        if config.objective.kind == "next-token":
            text = torch.cat((batch.tokens[0], batch.targets[0, -1:]))
            scores["scoring a text"] = score_tokens(network, text, context=length, stride=length, batch_size=1).nll
        for what, nll in scores.items():
            if not abs(nll - meant[: len(nll)]).max() <= SCORE_LIMIT:
                return f"{what} does not give the losses of the network without dropout: dropout stays on in evaluation"
        if not network.training:
            return "after scoring, the network is no longer in training mode"
    return ""


@contextmanager
def _own_chance() -> Iterator[None]:
    """Leave torch's random state unchanged."""
    with torch.random.fork_rng([]):
        yield


def seed(config: RunConfig, copy: SmallCopy, reseeded: Reseeded) -> Verdict:
    """Do the initial weights and the first batches depend on the seed?

    Args:
        config: of the run.
        copy: of its network.
        reseeded: the run's batches under another seed.
    """
    first, other = (
        build_model(copy.model, copy.network.vocab_size, config.seed + more).state_dict() for more in (0, 1)
    )
    wrong = ""
    if all(torch.equal(weight, other[name]) for name, weight in first.items()):
        wrong = "another seed gives the same initial weights: runs that differ only in their seed are the same run"
    elif not _batches_differ(config.seed, reseeded):
        wrong = "another seed gives the same batches in the same order, so seeds do not measure noise"
    return verdict("seed", wrong, "another seed gives different initial weights and batches")


def _batches_differ(own: int, reseeded: Reseeded) -> bool:
    """Whether some other seed changes the first batches; True if there is only one batch."""
    steps = range(1, FIRST_STEPS + 1)
    first = [reseeded(own).batch(step, 0) for step in steps]
    if all(_alike(batch, first[0]) for batch in first[1:]):
        return True
    return any(
        not _alike(reseeded(own + more).batch(step, 0), batch)
        for more in range(1, OTHER_SEEDS + 1)
        for step, batch in zip(steps, first, strict=True)
    )


def _alike(one: Batch, other: Batch) -> bool:
    return all(torch.equal(a, b) for a, b in zip((*one.texts, one.targets), (*other.texts, other.targets), strict=True))
