"""The optimizer: weight decay and learning rate by parameter group, and the learning rate at each step.

Adam, AdamW and SGD are torch's; Lion and Muon are implemented here. Like torch's fused optimizers, they skip the update
where `found_inf` is 1, so that a step that is not finite needs no device synchronisation.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from engine.base.language import tr
from engine.config.model import ModelConfig
from engine.config.sections import OptimizerConfig
from engine.model.initialisation import fused_rows
from engine.model.numerics import is_gpu_with_bf16
from engine.model.positions import PositionScheme

# Which kinds of parameter weight decay touches. "matrices-and-positions" is nanoGPT's habit (everything with two
# or more dimensions, including learned positions), "linear-weights" minGPT's, "all" what many scripts do by accident.
DECAYED: dict[str, frozenset[str]] = {
    "matrices": frozenset({"linear", "embedding"}),
    "matrices-and-positions": frozenset({"linear", "embedding", "position"}),
    "linear-weights": frozenset({"linear"}),
    "all": frozenset({"linear", "embedding", "position", "vector"}),
}

ParamGroup = dict[str, Any]  # as torch takes it
EMA = "ema"  # in a weight's optimizer state: its moving average, see `engine.training.step`
ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")


def parameter_kinds(model: nn.Module) -> dict[str, str]:
    """Return the kind of each parameter by name; tied parameters once."""
    modules = dict(model.named_modules())
    of_positions = tuple(f"{name}." for name, module in modules.items() if isinstance(module, PositionScheme))
    kinds: dict[str, str] = {}
    for name, parameter in model.named_parameters():
        owner, _, leaf = name.rpartition(".")
        if name.startswith(of_positions):
            kinds[name] = "position"
        elif parameter.dim() < 2:  # biases, gains and the like
            kinds[name] = "vector"
        elif isinstance(modules[owner], nn.Linear | nn.Embedding):
            kinds[name] = "linear" if isinstance(modules[owner], nn.Linear) else "embedding"
        else:  # decay must be decided, not guessed
            text = tr(
                "no decay group covers the parameter '{leaf}' of {name}", leaf=leaf, name=type(modules[owner]).__name__
            )
            raise ValueError(text)
    return kinds


def decay_groups(model: nn.Module, decay: str) -> dict[str, list[str]]:
    """Return the parameter names by group, `decayed` and `plain`; tied parameters once."""
    groups: dict[str, list[str]] = {"decayed": [], "plain": []}
    for name, kind in parameter_kinds(model).items():
        groups["decayed" if kind in DECAYED[decay] else "plain"].append(name)
    return groups


def lr_group(name: str, kind: str) -> str:
    """Return which of `matrix_lr`, `embedding_lr` and `head_lr` applies to a parameter: "matrix", "embedding" or
    "head"; "" for gains, biases and positions.
    """
    if name.startswith("head."):
        return "head"
    return {"embedding": "embedding", "linear": "matrix"}.get(kind, "")


def make_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Return the optimizer of a network. Its parameter groups are those of weight decay, split further where learning
    rate or update rule differ; `scale` multiplies the scheduled rate, `keeps` names the optimizer state of a weight.
    """
    named, kinds = dict(model.named_parameters()), parameter_kinds(model)
    groups: list[ParamGroup] = []
    for decay, names in decay_groups(model, config.decay).items():
        places: dict[str, list[str]] = {}
        for name in names:
            at = lr_group(name, kinds[name])
            apart = _group_lr(config, at) is not None or (config.kind == "muon" and at == "matrix")
            places.setdefault(at if apart else "", []).append(name)
        for at, those in places.items():
            rate = _group_lr(config, at)
            group = {
                "params": [named[name] for name in those],
                "weight_decay": config.weight_decay if decay == "decayed" else 0.0,
                "name": f"{decay} {at}".strip(),
                "scale": 1.0 if rate is None else rate / config.lr,
                "keeps": _state_names(config, at),
            }
            if config.kind == "muon" and at == "matrix":
                assert isinstance(model.config, ModelConfig)
                group["rows"] = [fused_rows(model.config, name) or [named[name].shape[0]] for name in those]
            groups.append(group)
    fused = next(model.parameters()).device.type in ("cpu", "cuda")
    return OPTIMIZER_BUILDERS[config.kind](groups, config, fused)


def _group_lr(config: OptimizerConfig, at: str) -> float | None:
    return getattr(config, f"{at}_lr") if at else None


def _state_names(config: OptimizerConfig, at: str) -> tuple[str, ...]:
    """Return the keys of the optimizer state of a weight of an `lr_group`."""
    if config.kind == "lion":
        return ("exp_avg",)
    if config.kind == "sgd" or (config.kind == "muon" and at == "matrix"):
        return ("momentum_buffer",) if config.kind == "muon" or config.momentum else ()
    return ADAM_STATE


def state_names(optimizer: torch.optim.Optimizer) -> dict[Tensor, tuple[str, ...]]:
    """Return the keys of each parameter's optimizer state after a step."""
    return {weight: group.get("keeps", ADAM_STATE) for group in optimizer.param_groups for weight in group["params"]}


# The optimizers


class CustomOptimizer(torch.optim.Optimizer, ABC):
    """Base of the optimizers that torch does not have."""

    found_inf: Tensor | None = None  # 1 if a gradient is not finite: the update is skipped

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            self.update(group)

    @abstractmethod
    def update(self, group: ParamGroup) -> None:
        """Update the parameters of a group."""

    def moment(self, weight: Tensor, name: str) -> Tensor:
        """Return a weight's moment, initially 0."""
        if name not in self.state[weight]:
            self.state[weight][name] = torch.zeros_like(weight)
        moment: Tensor = self.state[weight][name]
        return moment

    def write_unless_found_inf(self, tensor: Tensor, value: Tensor) -> None:
        if self.found_inf is None:
            tensor.copy_(value)
        else:
            torch.where(self.found_inf > 0, tensor, value, out=tensor)


class Lion(CustomOptimizer):
    """The sign of the momentum: every weight moves by the learning rate (Chen et al. 2023, alg. 2)."""

    def __init__(self, groups: list[ParamGroup], lr: float, betas: tuple[float, float]) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "weight_decay": 0.0})

    def update(self, group: ParamGroup) -> None:
        (beta1, beta2), rate = group["betas"], group["lr"]
        for weight in group["params"]:
            if weight.grad is None:
                continue
            moment = self.moment(weight, "exp_avg")
            direction = moment.lerp(weight.grad, 1.0 - beta1).sign_()
            self.write_unless_found_inf(weight, weight * (1.0 - rate * group["weight_decay"]) - rate * direction)
            self.write_unless_found_inf(moment, moment.lerp(weight.grad, 1.0 - beta2))


# Newton–Schulz: the coefficients of a·x + b·x³ + c·x⁵, applied five times (Jordan et al. 2024)
QUINTIC = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
LEAST_NORM = 1e-7
ADAM_SIZE = 0.2  # root mean square of an update, about that of AdamW (Liu et al. 2025, §2.2)


def orthogonalise(x: Tensor) -> Tensor:
    """Return matrices (B, M, N), best with M ≤ N, with their singular values pushed to about 1: between 0.7 and 1.2.

    In fp32 on a CPU, wide ones take part only in the first and the last product: every iteration is a polynomial p of
    the Gram matrix S = x·xᵀ that multiplies x from the left, so the next Gram matrix is p·S·p. Otherwise, products may
    be rounded to bf16 or TF32, which can give S negative eigenvalues; these iterations would make them explode.
    """
    a, b, c = QUINTIC
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=LEAST_NORM)
    if x.shape[-1] < 2 * x.shape[-2] or x.device.type != "cpu" or x.dtype == torch.bfloat16:
        for _ in range(ITERATIONS):
            gram = torch.bmm(x, x.mT)
            x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
        return x
    gram, product = torch.bmm(x, x.mT), None
    for i in range(ITERATIONS):
        factor = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        factor.diagonal(dim1=-2, dim2=-1).add_(a)
        product = factor if product is None else torch.bmm(factor, product)
        if i < ITERATIONS - 1:
            gram = torch.bmm(factor, torch.bmm(gram, factor))
    assert product is not None
    return torch.bmm(product, x)


class Muon(CustomOptimizer):
    """Muon for the layers' matrices (groups with `rows`), AdamW for everything else (Jordan et al. 2024).

    Each projection's momentum is orthogonalised; projections fused into one matrix (queries, keys and values; a gate
    and its values) are split first, and those of equal shape, transposed or not, are batched. The update is scaled to
    the size of AdamW's (Liu et al. 2025), so that both can share a learning rate. It is computed in bf16 on GPUs that
    have it, as published, otherwise in fp32.
    """

    def __init__(
        self,
        groups: list[ParamGroup],
        lr: float,
        betas: tuple[float, float],
        eps: float,
        momentum: float,
        nesterov: bool,
        fused: bool,
    ) -> None:
        matrices = [group for group in groups if "rows" in group]
        rest = [group for group in groups if "rows" not in group]
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "nesterov": nesterov, "weight_decay": 0.0})
        self.adamw = torch.optim.AdamW(rest, lr=lr, betas=betas, eps=eps, fused=fused)
        self.param_groups += self.adamw.param_groups
        self.bf16 = is_gpu_with_bf16(matrices[0]["params"][0].device)

    def update(self, group: ParamGroup) -> None:
        if "rows" not in group:
            self.adamw.param_groups, self.adamw.state = [group], self.state
            self.adamw.found_inf = self.found_inf  # type: ignore[attr-defined]
            self.adamw.step()
            return
        momentum, updates = group["momentum"], []
        by_shape: dict[torch.Size, list[Tensor]] = {}
        for weight, rows in zip(group["params"], group["rows"], strict=True):
            if weight.grad is None:
                continue
            moment = self.moment(weight, "momentum_buffer")
            now = moment.lerp(weight.grad, 1.0 - momentum)
            update = weight.grad.lerp(now, momentum) if group["nesterov"] else now.clone()
            self.write_unless_found_inf(moment, now)
            updates.append((weight, update))
            for part in update.split(rows):
                wide = part.mT if part.shape[0] > part.shape[1] else part
                by_shape.setdefault(wide.shape, []).append(wide)
        for shape, parts in by_shape.items():
            together = torch.stack(parts)
            found = orthogonalise(together.bfloat16() if self.bf16 and together.dtype == torch.float32 else together)
            found = found.to(together.dtype) * (group["lr"] * ADAM_SIZE * max(shape) ** 0.5)
            for part, one in zip(parts, found, strict=True):
                part.copy_(one)  # into `update`
        for weight, update in updates:
            self.write_unless_found_inf(
                weight, torch.sub(weight * (1.0 - group["lr"] * group["weight_decay"]), update, out=update)
            )


# Builds each of `engine.config.schemes.OPTIMIZERS`. Adam and SGD add weight decay to the gradient.
OPTIMIZER_BUILDERS: dict[str, Callable[[list[ParamGroup], OptimizerConfig, bool], torch.optim.Optimizer]] = {
    "adamw": lambda groups, o, fused: torch.optim.AdamW(groups, lr=o.lr, betas=o.betas, eps=o.eps, fused=fused),
    "adam": lambda groups, o, fused: torch.optim.Adam(groups, lr=o.lr, betas=o.betas, eps=o.eps, fused=fused),
    "muon": lambda groups, o, fused: Muon(groups, o.lr, o.betas, o.eps, o.momentum, o.nesterov, fused),
    "lion": lambda groups, o, fused: Lion(groups, o.lr, o.betas),
    "sgd": lambda groups, o, fused: torch.optim.SGD(
        groups, lr=o.lr, momentum=o.momentum, nesterov=o.nesterov and o.momentum > 0.0, fused=fused
    ),
}
