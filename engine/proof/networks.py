"""Every preset in miniature on the device: its losses in each precision, its cache, and its leak probe."""

from collections.abc import Mapping
from functools import partial

import torch

from engine import capabilities
from engine.benchmark.cases import PRECISIONS
from engine.config import presets
from engine.config.schema import RunConfig
from engine.data.loader import Examples
from engine.evaluation.checks import leak_probe, redraw
from engine.evaluation.scorers import largest_batch
from engine.evaluation.verdict import LEAK, OK
from engine.model.transformer import EncoderLM, Network, build_model
from engine.proof.result import Context, Figure, Proof, Result, judged
from engine.training.copies import NO_DROPOUT, SmallCopy
from engine.training.network_checks import cache_difference
from engine.training.numerics import set_fp32_matmul
from engine.training.step import Stepper
from engine.training.task import Task, load_task

STEPS = 20
# Largest relative difference of the first step's loss and gradient norm from the CPU's in fp32. "fp32-fast" is TF32 on
# a GPU (11 significant bits) and bf16 products on a CPU (8 bits).
FIRST_STEP: Mapping[str, tuple[float, float]] = {
    "fp32": (1e-5, 1e-4),
    "fp32-fast": (1e-2, 5e-2),
    "bf16": (1e-2, 5e-2),
}
# Largest difference of cached fp32 logits from a full pass's, relative to the largest: sums run in another order.
CACHED = 1e-4
READ_AT_ONCE = (5, 140)  # tokens; the rest, up to the second number, are read one by one


def preset_proofs(names: tuple[str, ...] | None = None) -> list[Proof]:
    """One proof per preset; all presets by default."""
    names = names if names is not None else tuple(preset.name for preset in presets.list_presets())
    return [Proof(f"preset {name}", "presets", partial(preset, name), seconds=1.2) for name in names]


def preset(name: str, context: Context, steps: int = STEPS) -> Result:
    """Train a preset in miniature in each precision; compare its first step with the CPU's; check cache and leaks.

    Args:
        name: of the preset.
        context: where.
        steps: in each precision.
    """
    device = torch.device(context.device)
    task, config = _small(name, steps, context.threads)
    meant = _first_step(config, task, "fp32", torch.device("cpu"))
    figures: dict[str, Figure] = {"first_loss_on_cpu": meant[0]}
    wrong = []
    for precision, allowed in FIRST_STEP.items():
        found = _first_step(config, task, precision, device)
        for what, one, other, limit in zip(("loss", "gradient"), found, meant, allowed, strict=True):
            figures[f"first_{what}_difference_{precision}"] = apart = abs(one - other) / abs(other)
            if not apart <= limit:
                wrong.append(f"the first {what} in {precision} is {one:.6g}, on the CPU {other:.6g}")
        model, batches, last = _trained(config, task, precision, device)
        figures[f"last_loss_{precision}"] = last
    model.eval()
    if not isinstance(model, EncoderLM):
        inputs = [part.to(device) for part in SmallCopy(config.model, model, "").inputs()]
        figures["cache_difference"] = apart = cache_difference(model, *inputs, growth=READ_AT_ONCE)
        if not apart <= CACHED:
            wrong.append(f"cached logits differ from a full pass by {apart:.2g} (relative)")
    wrong += _leak(config, model, batches, steps)
    said = (
        f"{steps} steps in {', '.join(FIRST_STEP)}; first step matches the CPU, cached decoding matches a full pass, "
        "leaks only where intended"
    )
    return judged(not wrong, said, "; ".join(wrong), **figures)


def _small(name: str, steps: int, threads: int) -> tuple[Task, RunConfig]:
    tables = presets.resolve(presets.find(name)).miniature().dump()
    tables["train"] |= {"steps": steps, "threads": threads}
    config = RunConfig.model_validate(tables)
    task = load_task(config, None)
    return task, task.resolved(config, f"preset '{name}'", threads)


def _in(config: RunConfig, precision: str) -> RunConfig:
    chosen, matmul = PRECISIONS[precision]
    train = config.train.model_copy(update={"precision": chosen, "fp32_matmul": matmul})
    return config.model_copy(update={"train": train})


def _first_step(config: RunConfig, task: Task, precision: str, device: torch.device) -> tuple[float, float]:
    """(nats per target, norm of the gradient) of a step whose weights predict far from uniformly.

    It has no dropout, whose random numbers differ between devices.
    """
    model = config.model.model_copy(update=NO_DROPOUT)
    config = _in(config.model_copy(update={"model": model}), precision)
    stepper, _, _ = _stepper(config, task, device, redrawn=True)
    taken = stepper.take(1)
    nll, norm = taken.read()
    return nll / taken.n_targets, norm


def _trained(config: RunConfig, task: Task, precision: str, device: torch.device) -> tuple[Network, Examples, float]:
    """The model after all steps, its batches, and the last loss; raises if a loss is not finite."""
    config, last = _in(config, precision), 0.0
    stepper, model, batches = _stepper(config, task, device)
    for step in range(1, config.train.steps + 1):
        taken = stepper.take(step)
        last = taken.read()[0] / taken.n_targets
    set_fp32_matmul("exact")
    return model, batches, last


def _stepper(
    config: RunConfig, task: Task, device: torch.device, *, redrawn: bool = False
) -> tuple[Stepper, Network, Examples]:
    set_fp32_matmul(config.train.fp32_matmul)
    vocabulary = config.needed_tokens(task.vocab_size)
    model = build_model(config.model, vocabulary, config.seed, device)
    if redrawn:
        twin = build_model(config.model, vocabulary, config.seed)
        redraw(twin)
        model.load_state_dict(twin.state_dict())
    batches = task.batches(config, device)
    return Stepper(config, model, batches), model, batches


def _leak(config: RunConfig, model: Network, batches: Examples, step: int) -> list[str]:
    """What the leak probe gets wrong; some presets are made to leak."""
    objective = batches.objective
    found = leak_probe(
        model,
        objective,
        batches.probed(),
        objective.vocab_size,
        when="after",
        step=step,
        rows=largest_batch(config),
    )
    meant = OK if capabilities.leaks(config) is None else LEAK
    return [] if found.verdict == meant else [f"leak probe: {found.verdict} instead of {meant}: {found.why}"]
