"""The optimizer: which parameters decay, and the learning rate at each step."""

import math

import torch
from torch import nn

from engine.config.sections import OptimizerConfig
from engine.model.positions import PositionScheme

# Which kinds of parameter weight decay touches. "matrices-and-positions" is nanoGPT's habit (everything with two
# or more dimensions, including learned positions), "linear-weights" minGPT's, "all" what many scripts do by accident.
DECAYED: dict[str, frozenset[str]] = {
    "matrices": frozenset({"linear", "embedding"}),
    "matrices-and-positions": frozenset({"linear", "embedding", "position"}),
    "linear-weights": frozenset({"linear"}),
    "all": frozenset({"linear", "embedding", "position", "norm", "bias"}),
}

KINDS: dict[type[nn.Module], str] = {
    nn.Linear: "linear",
    nn.Embedding: "embedding",
    nn.LayerNorm: "norm",
    nn.RMSNorm: "norm",
}


def decay_groups(model: nn.Module, decay: str) -> dict[str, list[str]]:
    """Return the parameter names by group, `decayed` and `plain`; tied parameters once."""
    modules = dict(model.named_modules())
    position_modules = {
        name for name, module in modules.items() for _ in module.parameters() if isinstance(module, PositionScheme)
    }
    groups: dict[str, list[str]] = {"decayed": [], "plain": []}
    for name, _ in model.named_parameters():
        owner, _, leaf = name.rpartition(".")
        kind = "bias" if leaf == "bias" else KINDS.get(type(modules[owner]))
        if any(name.startswith(prefix + ".") for prefix in position_modules):
            kind = "position"
        if kind is None:  # decay must be decided, not guessed
            raise ValueError(f"no decay group knows the parameter '{leaf}' of {type(modules[owner]).__name__}")
        groups["decayed" if kind in DECAYED[decay] else "plain"].append(name)
    return groups


def make_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Return AdamW (Loshchilov and Hutter 2019), or Adam with decay coupled into the gradient."""
    named = dict(model.named_parameters())
    groups = decay_groups(model, config.decay)
    decays = {"decayed": config.weight_decay, "plain": 0.0}
    device = next(model.parameters()).device
    kinds: dict[str, type[torch.optim.Adam]] = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}
    return kinds[config.kind](
        [
            {"params": [named[name] for name in names], "weight_decay": decays[group], "name": group}
            for group, names in groups.items()
            if names
        ],
        lr=config.lr,
        betas=config.betas,
        eps=config.eps,
        fused=device.type in ("cpu", "cuda"),
    )


def learning_rate(config: OptimizerConfig, step: int, steps: int) -> float:
    """Return the rate of optimizer step `step` (from 1) of `steps`: linear warm-up, then the schedule."""
    warmup, low, high = _steps(config.warmup), config.min_lr, config.lr
    if step <= warmup:
        return high * step / warmup
    if config.schedule == "constant":
        return high
    if config.schedule == "inverse-sqrt":
        # Vaswani et al. 2017, §5.3, with the rate at the end of warm-up given instead of following from d_model.
        return max(low, high * math.sqrt(max(1, warmup) / step))
    if config.schedule == "step":
        return max(low, high * config.decay_factor ** ((step - 1) // _steps(config.decay_every)))
    # Loshchilov and Hutter 2017, one half period from the end of warm-up to decay_over, by default the last step.
    over = steps if config.decay_over is None else _steps(config.decay_over)
    if config.decay_every is not None:  # held since the last multiple, as a scheduler stepped once an epoch
        step = (step - 1) // _steps(config.decay_every) * _steps(config.decay_every)
    done = min(max((step - warmup) / max(1, over - warmup), 0.0), 1.0)
    return low + 0.5 * (high - low) * (1.0 + math.cos(math.pi * done))


def _steps(duration: int | str | None) -> int:
    if not isinstance(duration, int):
        raise ValueError(f"the duration {duration!r} is not resolved to steps; see RunConfig.resolved")
    return duration
