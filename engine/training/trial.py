"""Trials without training: is a switch effective, what does a step cost, at what length does an attention pay off?"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import torch
from torch import Tensor

from engine import capabilities
from engine.base.language import Message
from engine.config.keys import diff
from engine.config.model import ModelConfig
from engine.config.schema import RunConfig
from engine.config.schemes import ATTENTIONS
from engine.config.visibility import Visibility, self_attention
from engine.data.loader import BatchStream
from engine.evaluation.checks import randomize_weights
from engine.model.attention import AttentionCall, softmax_attention
from engine.model.devices import keep_memory
from engine.model.linear_attention import linear_attention
from engine.model.numerics import chosen_precision
from engine.model.positions import Positions, PositionScheme
from engine.model.transformer import Network, build_model, evaluating
from engine.runs.verdict import INERT, OK, Verdict
from engine.training.self_check import DROPOUTS
from engine.training.step import Stepper

Attend = Callable[[Tensor, Tensor, Tensor, Positions], Tensor]


def switch_effect(config: RunConfig, parent: RunConfig, vocab_size: int) -> list[Verdict]:
    """For each model setting except dropout that differs from a parent: does it change the model?"""
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
            other = parent  # it cannot be reverted alone, so all changes are judged together
        what = f"{key} {before} → {after}"
        effect = _describe_effect(other, config, vocab_size, what)
        why = effect or Message("{what} changes neither the parameters nor any prediction", what=what)
        badge = OK if effect else INERT
        verdicts.append(Verdict(Message("switch effect"), "before", 0, badge, float(bool(effect)), why))
    return verdicts


def _describe_effect(a: RunConfig, b: RunConfig, vocab_size: int, what: str) -> str:
    """Return a sentence on what a change changes; "" if nothing."""
    left, right = (build_model(c.model, vocab_size, c.seed) for c in (a, b))
    counts = [sum(p.numel() for p in model.parameters()) for model in (left, right)]
    if counts[0] != counts[1]:
        return Message(
            "{what} changes the parameters ({counts:,} → {counts2:,})", what=what, counts=counts[0], counts2=counts[1]
        )
    if type(left) is not type(right):
        return Message("{what} builds a different kind of network", what=what)
    # Random texts and sources (2, T), long enough for what acts at a distance to show.
    model = min((a, b), key=lambda c: (c.model.context_length, c.model.source_tokens)).model
    far = max(max(c.model.window, c.model.link_every, c.model.t5_max_distance) for c in (a, b))
    limited = any(self_attention(kind).reach(1) is not None for kind, _ in model.layer_kinds())
    wanted = max(48, 3 * model.window if limited else 0, 2 * far + 2)
    draw = torch.Generator().manual_seed(0)
    lengths = [min(wanted, longest, 1024) for longest in (model.context_length, model.source_tokens)]
    tokens, source = (torch.randint(vocab_size, (2, length), generator=draw) for length in lengths)
    for drawn in (False, True):
        if drawn:  # layers that begin as the identity hide an effect
            randomize_weights(left)
            randomize_weights(right)
        with evaluating(left), evaluating(right):
            change = float((left.logits(tokens, source) - right.logits(tokens, source)).abs().max())
        if change > 0.0:
            return Message("{what} changes the predictions (logits by up to {change:.2g})", what=what, change=change)
    if a.model.context_length != b.model.context_length:
        return Message("{what} changes the context length", what=what)
    if a.model.source_tokens != b.model.source_tokens:
        return Message("{what} changes the source length", what=what)
    return ""


@dataclass(frozen=True)
class StepCost:
    """Seconds and peak bytes (CUDA only, else None) of a training step, and how many tokens a timed step predicts."""

    seconds: float
    peak_bytes: int | None
    targets: float


def step_cost(config: RunConfig, model: Network, batches: BatchStream, repeats: int = 3) -> StepCost:
    """Time training steps, which train the model; the median of `repeats` after those that warm up or are recorded."""
    stepper = Stepper(config, model, batches)
    device = stepper.device
    if device.type == "cpu":
        keep_memory()  # as a run does
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    times, targets, before = [], [], 2 if stepper.records_steps else 1
    for step in range(1, repeats + before + 1):
        started = time.perf_counter()
        targets.append(stepper.step(step).n_targets)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)
    peak = int(torch.cuda.max_memory_allocated(device)) if device.type == "cuda" else None
    return StepCost(sorted(times[before:])[repeats // 2], peak, sum(targets[before:]) / repeats)


def crossover_length(ratios: Sequence[tuple[int, float]]) -> int | None:
    """Return the length from which an attention is always faster than full attention; None if there is none."""
    faster = takewhile(lambda pair: pair[1] < 1.0, reversed(ratios))
    return min((length for length, _ in faster), default=None)


def possibly_faster_layer_kind(model: ModelConfig) -> ModelConfig | None:
    """Return the first kind of layer whose attention may be faster than full attention."""
    return next((kind for kind, _ in model.layer_kinds() if ATTENTIONS[kind.attention].break_even_context(kind)), None)


def crossover_ratios(config: RunConfig, device: torch.device) -> list[tuple[int, float]]:
    """Time one layer's attention against full attention, without positions, forward and backward. Return (length,
    its time / that of full attention), shortest length first; empty for kinds that never save time. If layers differ,
    it is the first kind that may.
    """
    model = possibly_faster_layer_kind(config.model)
    if model is None:
        return []
    longest = 4096  # tokens; shorter texts have several rows, with as many tokens together
    dtype = torch.bfloat16 if chosen_precision(config.train, device) == "bf16" else torch.float32
    nothing, dropout = PositionScheme(), model.attention_dropout

    def seeing(see: Visibility) -> Attend:
        return lambda q, k, v, at: softmax_attention(AttentionCall(q, k, at, at, see, nothing, dropout), v)

    def linear(q: Tensor, k: Tensor, v: Tensor, at: Positions) -> Tensor:
        return linear_attention(q, k, v, at, nothing, causal=model.causal)

    def seconds(attend: Attend, length: int) -> float:
        shape = (longest // length, model.n_heads, length, model.head_width)
        q, k, v = (torch.randn(shape, dtype=dtype, device=device, requires_grad=True) for _ in range(3))
        at, best = Positions.consecutive(length, 0, device), float("inf")
        for _ in range(4):  # the first warms up
            started = time.perf_counter()
            torch.autograd.backward(attend(q, k, v, at).sum())
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            best = min(best, time.perf_counter() - started)
        return best

    this = seeing(self_attention(model)) if ATTENTIONS[model.attention].has_scores else linear
    full = seeing(Visibility(model.causal))
    return [
        (length, seconds(this, length) / seconds(full, length)) for length in (64, 128, 256, 512, 1024, 2048, longest)
    ]
