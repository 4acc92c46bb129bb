"""Checks that say when a score cannot be trusted. The leak probe: can a position see what it has to predict?

Position t predicts token t + 1, so its logits must not depend on any token after t. Both ways are tried, before, while
and after training (a mask that is merely very negative can be learned around): the change of logits up to t when the
tokens after t are redrawn, and the gradient of logits t with respect to the inputs after t. A leak between neighbours
shows only at its own place, so every t is tried where that is affordable, else one random t in each stretch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from engine.seeds import seed_for

When = Literal["before", "evaluation", "after"]
GRADIENT_LIMIT = 0.0
PERTURBATION_LIMIT = 1e-5  # relative to the logit itself: room for fp32 sums taken in another order
GRADIENT_PLACES = 24
FEWEST_PLACES = 8
ROWS_AT_ONCE = 16
# Multiply-adds a probe may cost, roughly: a second or two on either kind of device.
BUDGET = {"cpu": 1e11, "cuda": 1e13}
SHARE = {"before": 1.0, "evaluation": 0.1, "after": 1.0}


@dataclass(frozen=True)
class Verdict:
    """What a check found: `ok`, or the name of what is wrong."""

    check: str
    when: When
    step: int
    verdict: str
    value: float
    why: str

    def to_json(self) -> dict[str, Any]:
        """As a record of checks.json."""
        return asdict(self)


@contextmanager
def _mode(model: nn.Module, *, training: bool) -> Iterator[None]:
    """A mode for a while, then the one before; torch's own random numbers stay where they were."""
    before = model.training
    devices = [p.device for p in model.parameters() if p.device.type == "cuda"][:1]
    with torch.random.fork_rng(devices):
        model.train(training)
        try:
            yield
        finally:
            model.train(before)


def gradient_leak(model: nn.Module, tokens: Tensor, places: list[int]) -> float:
    """Largest |∂ logits[t] / ∂ embedding[j]| over j > t; NaN if any gradient is.

    Args:
        model: in evaluation mode, with a `token_embedding`.
        tokens: (B, T).
        places: the positions t to look at.
    """
    kept: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        kept.append(output.detach().requires_grad_())
        return kept[-1]

    hook = model.get_submodule("token_embedding").register_forward_hook(keep)
    try:
        with torch.enable_grad():
            logits = model(tokens)  # (B, T, V)
            # A random mixture of the logits: no cancellation can hide a dependence, as a plain sum's could.
            generator = torch.Generator().manual_seed(seed_for(0, "probe", "mixture"))
            mixture = torch.randn(logits.shape[-1], generator=generator).to(logits)
            worst = torch.zeros((), dtype=logits.dtype, device=logits.device)
            for t in places:
                mixed = (logits[:, t] @ mixture).sum()
                for gradient in torch.autograd.grad(mixed, kept, retain_graph=True, allow_unused=True):
                    if gradient is not None and gradient.shape[1] > t + 1:
                        worst = torch.maximum(worst, gradient[:, t + 1 :].abs().max())  # keeps a NaN
            return float(worst)
    finally:
        hook.remove()


def perturbation_leak(model: nn.Module, row: Tensor, places: list[int], vocab_size: int, seed: int = 0) -> float:
    """Largest relative change of the logits up to t when all tokens after t are redrawn; NaN if any logit is.

    Args:
        model: in any mode; what is random in it is seeded alike for both passes.
        row: (T,) tokens.
        places: the positions t to look at, each in its own row of a batch.
        vocab_size: tokens that may be drawn.
        seed: of the redrawn tokens.
    """
    worst = 0.0
    with torch.no_grad():
        for start in range(0, len(places), ROWS_AT_ONCE):
            group = torch.tensor(places[start : start + ROWS_AT_ONCE], device=row.device)[:, None]
            generator = torch.Generator().manual_seed(seed_for(seed, "probe", "perturbation", start))
            same = row.expand(len(group), -1)
            drawn = torch.randint(vocab_size, same.shape, generator=generator).to(row)
            time = torch.arange(row.numel(), device=row.device)
            passes = []
            for tokens in (same, torch.where(time > group, drawn, same)):
                torch.manual_seed(seed)
                passes.append(model(tokens).double())
            before, after = (logits[time.expand_as(same) <= group] for logits in passes)  # (places up to t, V)
            scale = before.abs().nan_to_num(posinf=0.0)
            limit = scale + scale.median()
            change = torch.where(before == after, 0.0, (before - after).abs() / limit.clamp(min=1e-30))
            largest = float(change.max())
            if largest != largest:
                return largest
            worst = max(worst, largest)
    return worst


def places_to_try(length: int, how_many: int, seed: int) -> list[int]:
    """All positions that have a later one, or one at random in each of `how_many` equal stretches.

    The first, the last and the one before it are always among them.
    """
    last = length - 2
    if last < 0:
        return []
    if how_many > last:
        return list(range(last + 1))
    generator = torch.Generator().manual_seed(seed_for(seed, "probe", "places"))
    random = torch.rand(how_many, generator=generator).tolist()
    stretch = (last + 1) / how_many
    return sorted({0, max(0, last - 1), last, *(int((i + share) * stretch) for i, share in enumerate(random))})


def leak_probe(model: nn.Module, tokens: Tensor, vocab_size: int, *, when: When, step: int) -> Verdict:
    """Both probes, in evaluation mode and, where dropout is on, in training mode.

    Args:
        model: any mode; put back as it was.
        tokens: (B, T) windows, real ones; the first two rows are used.
        vocab_size: tokens that may be drawn.
        when: before, at an evaluation, or after training.
        step: the optimizer step; other steps try other places.
    """
    length = tokens.shape[1]
    cost = 2.0 * length * sum(p.numel() for p in model.parameters())
    affordable = BUDGET.get(tokens.device.type, BUDGET["cpu"]) * SHARE[when] / cost
    places = places_to_try(length, max(FEWEST_PLACES, int(affordable)), step)
    drops = any(isinstance(module, nn.Dropout) and module.p > 0.0 for module in model.modules())
    with _mode(model, training=False):
        few = places_to_try(length, min(GRADIENT_PLACES, len(places)), step)
        gradient = gradient_leak(model, tokens[:2], few)
        changes = [perturbation_leak(model, row, places, vocab_size, step) for row in tokens[:2]]
    if drops:
        with _mode(model, training=True):
            changes.append(perturbation_leak(model, tokens[0], places, vocab_size, step))
    change = max(changes, key=lambda c: (c != c, c))
    if gradient != gradient or change != change:
        why = "some predictions are not numbers, so nothing can be said of what they depend on"
        return Verdict("leak", when, step, "NOT A NUMBER", float("nan"), why)
    if gradient > GRADIENT_LIMIT or change > PERTURBATION_LIMIT:
        why = (
            f"a position's prediction depends on tokens after it (gradient {gradient:.2g}, change {change:.2g}): "
            "the model can read its answer, so its scores say nothing"
        )
        return Verdict("leak", when, step, "LEAK", max(gradient, change), why)
    why = f"no later token is seen ({len(places):,} of {max(length - 1, 0):,} positions tried)"
    return Verdict("leak", when, step, "ok", 0.0, why)
