"""Every preset in miniature on the device: its losses in each precision, its cache, and its leak probe."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from engine.base.language import Message
from engine.config import presets
from engine.config.schema import RunConfig
from engine.evaluation.checks import randomize_weights
from engine.model.numerics import set_fp32_matmul
from engine.model.transformer import build_model
from engine.proofs.bench.cases import PRECISIONS
from engine.proofs.device.proof import THREADS, Context, Proof
from engine.runs.verdict import LEAK, OK, CheckResult, passed_if
from engine.tasks.task import Task, make_task
from engine.training.inspector import run_leak_probe
from engine.training.self_check import NO_DROPOUT, SmallCopy, cache_difference
from engine.training.step import Stepper

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


def preset_proofs() -> list[Proof]:
    names = (preset.name for preset in presets.list_presets())
    return [
        Proof(Message("preset {name}", name=name), "presets", partial(miniature_preset, name), seconds=1.2)
        for name in names
    ]


def miniature_preset(name: str, context: Context, steps: int = STEPS) -> CheckResult:
    """Train a preset in miniature in each precision; compare its first step with the CPU's; check cache and leaks."""
    device = torch.device(context.device)
    tables = presets.resolve(presets.find(name)).miniature().dump()
    tables["train"] |= {"steps": steps, "threads": THREADS}
    config = RunConfig.model_validate(tables)
    task = make_task(config, None)
    config = task.resolve_config(config, f"preset '{name}'", THREADS)
    expected = _first_step(config, task, "fp32", torch.device("cpu"))
    figures: dict[str, Any] = {"first_loss_on_cpu": expected[0]}
    parts = Message("loss"), Message("gradient")
    wrong = []
    for precision, allowed in FIRST_STEP.items():
        found = _first_step(config, task, precision, device)
        for what, one, other, limit in zip(parts, found, expected, allowed, strict=True):
            figures[f"first_{what}_difference_{precision}"] = apart = abs(one - other) / abs(other)
            if not apart <= limit:
                text = Message(
                    "the first {what} in {precision} is {found:.6g}, but {expected:.6g} on the CPU",
                    what=what,
                    precision=precision,
                    found=one,
                    expected=other,
                )
                wrong.append(text)
        stepper = _stepper(config, task, precision, device)
        for step in range(1, steps + 1):
            result = stepper.step(step)
            last = result.read()[0] / result.n_targets  # raises if it is not finite
        set_fp32_matmul("exact")
        figures[f"last_loss_{precision}"] = last
    model, batches = stepper.model, stepper.batches
    model.eval()
    if model.has_cache:
        inputs = [part.to(device) for part in SmallCopy(config.model, model, "").inputs()]
        figures["cache_difference"] = apart = cache_difference(model, *inputs, growth=(5, 140))
        if not apart <= CACHED:
            text = Message("cached logits differ from those of a full pass (relative error {error:.2g})", error=apart)
            wrong.append(text)
    leak = run_leak_probe(config, model, batches, when="after", step=steps)
    intended = OK if config.task.copy_leak(config) is None else LEAK
    if leak.verdict != intended:
        text = Message(
            "leak probe: {verdict} instead of {intended}: {why}", verdict=leak.verdict, intended=intended, why=leak.why
        )
        wrong.append(text)
    said = Message(
        "{steps} steps in {first_step}; first step matches the CPU, cached decoding matches a full pass, "
        "leaks only where intended",
        steps=steps,
        first_step=", ".join(FIRST_STEP),
    )
    return passed_if(not wrong, said, "; ".join(wrong), **figures)


def _first_step(config: RunConfig, task: Task, precision: str, device: torch.device) -> tuple[float, float]:
    """Return (nats per target, norm of the gradient) of a step from weights that predict far from uniformly.

    It has no dropout, whose random numbers differ between devices.
    """
    config = config.model_copy(update={"model": config.model.model_copy(update=NO_DROPOUT)})
    stepper = _stepper(config, task, precision, device)
    twin = build_model(config.model, config.min_vocab_size(task.vocab_size), config.seed)
    randomize_weights(twin)
    stepper.model.load_state_dict(twin.state_dict())
    result = stepper.step(1)
    nll, norm = result.read()
    return nll / result.n_targets, norm


def _stepper(config: RunConfig, task: Task, precision: str, device: torch.device) -> Stepper:
    chosen, matmul = PRECISIONS[precision]
    train = config.train.model_copy(update={"precision": chosen, "fp32_matmul": matmul})
    config = config.model_copy(update={"train": train})
    set_fp32_matmul(matmul)
    model = build_model(config.model, config.min_vocab_size(task.vocab_size), config.seed, device)
    return Stepper(config, model, task.batches(config, device))
