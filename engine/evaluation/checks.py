"""Checks that say when a score cannot be trusted. The leak probe: can a position see what it has to predict?

Position t predicts token t + 1, so its logits must not depend on any token after t. Both ways are tried, at
initialisation and after training (a mask that is merely very negative can be learned around):
the gradient of logit t with respect to the inputs after t, and the change of logit t when those inputs change.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from engine.evaluation.metrics import evaluating
from engine.seeds import seed_for

When = Literal["before", "evaluation", "after"]
GRADIENT_LIMIT = 0.0
PERTURBATION_LIMIT = 1e-5  # relative to the largest logit: room for fp32 sums taken in another order


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


def _embedding(model: nn.Module) -> nn.Module:
    found = model.get_submodule("token_embedding")
    assert isinstance(found, nn.Embedding)
    return found


def gradient_leak(model: nn.Module, tokens: Tensor, places: list[int]) -> float:
    """Largest |∂ logits[t] / ∂ embedding[j]| over j > t.

    Args:
        model: in evaluation mode.
        tokens: (B, T).
        places: the positions t to look at.
    """
    kept: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        kept.append(output.detach().requires_grad_())
        return kept[-1]

    hook = _embedding(model).register_forward_hook(keep)
    try:
        with torch.enable_grad():
            logits = model(tokens)  # (B, T, V)
            # A random mixture of the logits: no cancellation can hide a dependence, as a plain sum's could.
            generator = torch.Generator().manual_seed(seed_for(0, "probe", "mixture"))
            mixture = torch.randn(logits.shape[-1], generator=generator).to(logits)
            worst = 0.0
            for t in places:
                mixed = (logits[:, t] @ mixture).sum()
                (gradient,) = torch.autograd.grad(mixed, kept[0], retain_graph=True)
                after = gradient[:, t + 1 :]
                worst = max(worst, float(after.abs().max())) if after.numel() else worst
            return worst
    finally:
        hook.remove()


def perturbation_leak(model: nn.Module, tokens: Tensor, places: list[int], vocab_size: int) -> float:
    """Largest change of the logits up to t when all tokens after t are redrawn, relative to the largest logit."""
    worst = 0.0
    with torch.no_grad():
        before = model(tokens)
        scale = float(before.abs().max()) or 1.0
        for t in places:
            generator = torch.Generator().manual_seed(seed_for(0, "probe", "perturbation", t))
            changed = tokens.clone()
            shape = changed[:, t + 1 :].shape
            changed[:, t + 1 :] = torch.randint(vocab_size, shape, generator=generator).to(tokens.device)
            difference = (model(changed)[:, : t + 1] - before[:, : t + 1]).abs().max()
            worst = max(worst, float(difference) / scale)
    return worst


def leak_probe(model: nn.Module, tokens: Tensor, vocab_size: int, *, when: When, step: int) -> Verdict:
    """Both probes on a few positions of some real windows.

    Args:
        model: any mode; put back as it was.
        tokens: (B, T) windows; the first two rows are used.
        vocab_size: tokens that may be drawn.
        when: before, at an evaluation, or after training.
        step: the optimizer step.
    """
    rows = tokens[:2]
    last = rows.shape[1] - 2
    places = sorted({0, last // 4, last // 2, 3 * last // 4, last} - {-1}) if last >= 0 else []
    with evaluating(model):
        gradient = gradient_leak(model, rows, places)
        perturbation = perturbation_leak(model, rows, places, vocab_size)
    if gradient > GRADIENT_LIMIT or not perturbation <= PERTURBATION_LIMIT:
        why = (
            f"a position's prediction depends on tokens after it (gradient {gradient:.2g}, change {perturbation:.2g}): "
            "the model can read its answer, so its scores say nothing"
        )
        return Verdict("leak", when, step, "LEAK", max(gradient, perturbation), why)
    why = "no prediction depends on a later token, by gradient or by change"
    return Verdict("leak", when, step, "ok", 0.0, why)
