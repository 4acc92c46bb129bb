"""The optimizer: which parameters decay, and the learning rate at each step."""

import torch
from torch import nn

from engine.config.sections import OptimizerConfig
from engine.model.heads import HeadNorm
from engine.model.positions import PositionScheme
from engine.schemes import SCHEDULES, whole_steps

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
    HeadNorm: "norm",
}


# The class of each of `engine.schemes.OPTIMIZERS`. Adam's decay is coupled into the gradient.
OPTIMIZER: dict[str, type[torch.optim.Adam]] = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}


def decay_groups(model: nn.Module, decay: str) -> dict[str, list[str]]:
    """Return the parameter names by group, `decayed` and `plain`; tied parameters once."""
    modules = dict(model.named_modules())
    of_positions = tuple(f"{name}." for name, module in modules.items() if isinstance(module, PositionScheme))
    groups: dict[str, list[str]] = {"decayed": [], "plain": []}
    for name, _ in model.named_parameters():
        owner, _, leaf = name.rpartition(".")
        kind = "bias" if leaf in ("bias", "sinks") else KINDS.get(type(modules[owner]))
        if name.startswith(of_positions):
            kind = "position"
        if kind is None:  # decay must be decided, not guessed
            raise ValueError(f"no decay group knows the parameter '{leaf}' of {type(modules[owner]).__name__}")
        groups["decayed" if kind in DECAYED[decay] else "plain"].append(name)
    return groups


def make_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    named = dict(model.named_parameters())
    groups = decay_groups(model, config.decay)
    decays = {"decayed": config.weight_decay, "plain": 0.0}
    device = next(model.parameters()).device
    return OPTIMIZER[config.kind](
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
    warmup = whole_steps(config.warmup)
    return config.lr * step / warmup if step <= warmup else SCHEDULES[config.schedule].rate(config, step, steps)
