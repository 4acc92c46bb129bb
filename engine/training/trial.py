"""Tests without training: does a switch do anything, and what does a step cost?"""

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from engine import capabilities
from engine.config.keys import diff
from engine.config.schema import RunConfig
from engine.data.loader import Examples
from engine.evaluation.verdict import OK, Verdict
from engine.model.transformer import EncoderDecoder, Network, build_model, evaluating
from engine.training.copies import DROPOUTS
from engine.training.devices import keep_memory
from engine.training.step import Stepper

FEWEST_TOKENS = 48
MOST_TOKENS = 1024  # of one try


def trial_inputs(config: RunConfig, vocab_size: int, at_least: int = 0) -> tuple[Tensor, Tensor]:
    """Random tokens (2, T) and a random source (2, S), long enough for what acts at a distance to show."""
    generator, model = torch.Generator().manual_seed(0), config.model
    reaches = {"window": 3 * model.window, "sparse": 2 * max(model.window, model.link_every) + 2}
    worth = max(FEWEST_TOKENS, reaches.get(model.attention, 0), at_least)
    lengths = (min(worth, n, MOST_TOKENS) for n in (model.context_length, model.source_tokens))
    tokens, source = (torch.randint(vocab_size, (2, length), generator=generator) for length in lengths)
    return tokens, source


def switch_effect(config: RunConfig, parent: RunConfig, vocab_size: int) -> list[Verdict]:
    """For each model setting that differs from a parent: would the model be another one without it?

    Dropout rates are left out: they change training only.
    """
    verdicts = []
    for key, (before, after) in diff(parent, config).items():
        section, _, name = key.partition(".")
        if section != "model" or name in DROPOUTS:
            continue
        without = config.dump()
        without["model"].pop(name, None)
        if before is not None:
            without["model"][name] = before
        try:
            other = RunConfig.model_validate(without)
        except ValueError:
            other = parent
        if capabilities.check(other) is not None:
            other = parent  # it cannot be taken back alone; then all changes together must show
        what = f"{key} {before} → {after}"
        effect = _difference(other, config, vocab_size)
        why = f"{what} {effect}" if effect else f"{what} changes neither the parameters nor any prediction"
        verdicts.append(Verdict("switch effect", "before", 0, OK if effect else "INERT", float(bool(effect)), why))
    return verdicts


def _difference(a: RunConfig, b: RunConfig, vocab_size: int) -> str:
    left, right = (build_model(c.model, vocab_size, c.seed) for c in (a, b))
    counts = [sum(p.numel() for p in model.parameters()) for model in (left, right)]
    if counts[0] != counts[1]:
        return f"changes the parameters ({counts[0]:,} → {counts[1]:,})"
    if type(left) is not type(right):
        return "makes another kind of network"
    shorter = min((a, b), key=lambda c: (c.model.context_length, c.model.source_tokens))
    far = max(max(c.model.window, c.model.link_every, c.model.t5_max_distance) for c in (a, b))
    tokens, source = trial_inputs(shorter, vocab_size, 2 * far + 2)
    inputs = (source, tokens) if isinstance(left, EncoderDecoder) else (tokens,)
    with evaluating(left), evaluating(right):
        change = float((left(*inputs) - right(*inputs)).abs().max())
    if change > 0.0:
        return f"changes the predictions (by up to {change:.2g} in a logit)"
    if a.model.context_length != b.model.context_length:
        return "changes the length of a context"
    return "changes the length of a source" if a.model.source_tokens != b.model.source_tokens else ""


@dataclass(frozen=True)
class Fit:
    """What a training step costs: seconds, and bytes at the peak (CUDA only, else None).

    `targets` is how many tokens it predicts, of the steps that were timed.
    """

    seconds: float
    peak_bytes: int | None
    targets: float


def one_step_fit(config: RunConfig, model: Network, batches: Examples, repeats: int = 3) -> Fit:
    """Time a training step at full size on the model's device; the first, which warms up, does not count.

    Args:
        config: resolved.
        model: it is trained by these steps.
        batches: of the run.
        repeats: steps that are timed; their median counts.
    """
    stepper = Stepper(config, model, batches)
    device = stepper.device
    if device.type == "cpu":
        keep_memory()  # as a run does
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    times, targets = [], []
    for step in range(1, repeats + 2):
        started = time.perf_counter()
        targets.append(stepper.take(step).n_targets)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)
    peak = int(torch.cuda.max_memory_allocated(device)) if device.type == "cuda" else None
    return Fit(sorted(times[1:])[repeats // 2], peak, sum(targets[1:]) / repeats)
