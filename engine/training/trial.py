"""Tries without training: is cached decoding the same function, does a switch do anything, what does a step cost?"""

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from engine import capabilities
from engine.config.keys import diff
from engine.config.schema import RunConfig
from engine.data.loader import Examples
from engine.evaluation.metrics import evaluating
from engine.evaluation.verdict import OK, Verdict
from engine.model.decoding import Decoding
from engine.model.transformer import DecoderLM, EncoderDecoder, EncoderLM, Network, build_model
from engine.training.devices import keep_memory
from engine.training.step import Stepper

CHUNKS = (1, 3)
PARITY_LIMIT = 1e-10  # absolute, in float64
PARITY_TOKENS = 48
MOST_TOKENS = 1024  # of one try
RESIDUAL_KEYS = ("dropout", "attention_dropout", "attention_output_dropout", "embedding_dropout", "ff_dropout")


def cache_parity(config: RunConfig, vocab_size: int, chunks: tuple[int, ...] = CHUNKS) -> Verdict:
    """Decoding step by step against one full pass, in float64: chunks, and a prefill followed by single tokens."""
    model = build_model(config.model, vocab_size, config.seed).double().eval()
    if isinstance(model, EncoderLM):
        return Verdict("cache parity", "before", 0, OK, 0.0, "an encoder reads its text at once: there is no cache")
    tokens, source = trial_inputs(config, vocab_size)
    length = tokens.shape[1]
    worst = 0.0
    with torch.no_grad():
        full = model(tokens) if isinstance(model, DecoderLM) else model(source, tokens)
        plans = [[c] * (length // c) + [length % c] for c in chunks] + [[length // 2] + [1] * (length - length // 2)]
        for plan in plans:
            cached = in_chunks(model, tokens, [n for n in plan if n], source)
            worst = max(worst, float((cached - full).abs().max()))
        if isinstance(model, DecoderLM):
            worst = max(worst, float((_in_steps(model, tokens) - full).abs().max()))
    ok = worst <= PARITY_LIMIT
    why = f"decoding with a cache gives the logits of one full pass (largest difference {worst:.1e}, float64)"
    if not ok:
        why = f"decoding with a cache differs from a full pass by {worst:.1e}: samples would not be the model's"
    return Verdict("cache parity", "before", 0, OK if ok else "DIFFERS", worst, why)


def trial_inputs(config: RunConfig, vocab_size: int, at_least: int = 0) -> tuple[Tensor, Tensor]:
    """Random tokens (2, T) and a random source (2, S), long enough for what acts at a distance to show."""
    generator, model = torch.Generator().manual_seed(0), config.model
    reaches = {"window": 3 * model.window, "sparse": 2 * max(model.window, model.link_every) + 2}
    worth = max(PARITY_TOKENS, reaches.get(model.attention, 0), at_least)
    lengths = (min(worth, n, MOST_TOKENS) for n in (model.context_length, model.source_tokens))
    tokens, source = (torch.randint(vocab_size, (2, length), generator=generator) for length in lengths)
    return tokens, source


def in_chunks(
    model: DecoderLM | EncoderDecoder, tokens: Tensor, lengths: list[int], source: Tensor | None = None
) -> Tensor:
    """(B, T, V) logits of tokens (B, T), and a source where there is one, fed to a cache in chunks of these lengths."""
    cache, parts, start = model.new_cache(), [], 0
    memory = model.encode(source) if isinstance(model, EncoderDecoder) and source is not None else None
    for length in lengths:
        part = tokens[:, start : start + length]
        if isinstance(model, EncoderDecoder):
            assert memory is not None
            parts.append(model.decode(part, memory, cache=cache))
        else:
            parts.append(model(part, cache=cache))
        start += length
    return torch.cat(parts, dim=1)


def _in_steps(model: DecoderLM, tokens: Tensor) -> Tensor:
    """(B, T, V) logits of tokens (B, T), fed one by one as sampling does."""
    decoding = Decoding(model, tokens.shape[1])
    return torch.stack([decoding.feed(token) for token in torch.split(tokens, 1, dim=1)], dim=1)


def switch_effect(config: RunConfig, parent: RunConfig, vocab_size: int) -> list[Verdict]:
    """For each model setting that differs from a parent: would the model be another one without it?

    Dropout rates are left out: they change training only.
    """
    verdicts = []
    for key, (before, after) in diff(parent, config).items():
        section, _, name = key.partition(".")
        if section != "model" or name in RESIDUAL_KEYS:
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
