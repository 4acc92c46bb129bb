"""The leak probe and the order check: can a position see what it must predict?

The logits of position t must not depend on the text it predicts or what follows, whether in neighbouring tokens or a
source. Two probes run before, during and after training (a model can learn around a mask that is merely very negative):
the change of logits up to t when that text is redrawn, and the gradient of logits t with respect to the inputs that
hold it. A leak between neighbours shows only at its own place, so every t is tried where that is affordable, else one
random t in each stretch. The order check asks whether positions reach the model.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from engine.base.language import Message
from engine.base.seeds import seed_for
from engine.config.model import ModelConfig, active_parts
from engine.config.visibility import Visibility
from engine.data.objectives import IGNORED, Batch, Objective, TokenOrigins, token_origins
from engine.model.dropout import seed_generators
from engine.model.heads import SelfAttention
from engine.model.positions import Positions, widest_float
from engine.model.transformer import Network, Stack
from engine.runs.verdict import LEAK, NO_ORDER, OK, CheckResult, Verdict, When, failed, passed

GRADIENT_LIMIT = 0.0
PERTURBATION_LIMIT = 1e-5  # relative to the logit itself: room for fp32 sums taken in another order
GRADIENT_PLACES = 24
FEWEST_PLACES = 8
ROWS_AT_ONCE = 16
MOST_ROWS = 128  # limit for a batch of the run's size
MOST_BYTES = 2**29  # of logits at once
# Multiply-adds a probe may cost, roughly: a second or two on either kind of device.
BUDGET = {"cpu": 1e11, "cuda": 1e13}
SHARE = {"before": 1.0, "evaluation": 0.1, "after": 1.0}


@contextmanager
def _set_mode(model: nn.Module, *, training: bool) -> Iterator[None]:
    """Set a mode, then restore the previous one; torch's random state is preserved."""
    before = model.training
    devices = [p.device for p in model.parameters() if p.device.type == "cuda"][:1]
    with torch.random.fork_rng(devices):
        model.train(training)
        try:
            yield
        finally:
            model.train(before)


def gradient_leak(model: nn.Module, batch: Batch, places: TokenOrigins, tried: list[int]) -> float:
    """Return the largest |∂ logits[t] / ∂ embedding[j]| over inputs j that hold the answer of t or what follows it, for
    the positions t of `tried`. The model is in evaluation mode, with a `token_embedding` for every input.
    """
    kept: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        kept.append(output.detach().requires_grad_())
        return kept[-1]

    embeddings = [getattr(model, name, None) for name in ("source_embedding", "token_embedding")]
    hooks = [part.register_forward_hook(keep) for part in embeddings if part is not None]
    try:
        with torch.enable_grad():
            logits = batch.target_logits(model(*batch.inputs))  # (B, T, V)
            texts = [places.tokens] if batch.source is None else [places.source, places.tokens]
            # A random mixture of the logits: unlike in a plain sum, no cancellation can hide a dependence.
            generator = torch.Generator().manual_seed(seed_for(0, "probe", "mixture"))
            mixture = torch.randn(logits.shape[-1], generator=generator).to(logits)
            worst = torch.zeros((), dtype=logits.dtype, device=logits.device)
            for t in tried:
                mixed = (logits[:, t] @ mixture).sum()
                gradients = torch.autograd.grad(mixed, kept, retain_graph=True, allow_unused=True)
                for gradient, text in zip(gradients, texts, strict=True):
                    if gradient is None or text is None:
                        continue
                    forbidden = gradient[:, (text >= places.answers[t]).to(gradient.device)]
                    if forbidden.numel():
                        worst = torch.maximum(worst, forbidden.abs().max())  # keeps a NaN
            return float(worst)
    finally:
        for hook in hooks:
            hook.remove()


def perturbation_leak(
    model: nn.Module,
    row: Batch,
    places: TokenOrigins,
    tried: list[int],
    vocab_size: int,
    seed: int = 0,
    *,
    at_once: int = ROWS_AT_ONCE,
) -> float:
    """Return the largest change of the logits up to t when t's answer and what follows are redrawn; NaN if any is.

    `row` is a batch of one; each t of `tried` gets its own row of a batch of `at_once`, fewer if their logits would not
    fit. The model's randomness is seeded alike for both passes.
    """
    worst = 0.0
    device = row.tokens.device
    answers = places.answers.to(device)
    texts = [places.tokens] if row.source is None else [places.source, places.tokens]
    unchanged: dict[int, Tensor] = {}  # logits by number of rows: one pass for all groups of the same size
    with torch.no_grad():
        at_once = _rows_that_fit(model, answers.numel(), vocab_size, at_once)
        for start in range(0, len(tried), at_once):
            group = torch.tensor(tried[start : start + at_once], device=device)
            generator = torch.Generator().manual_seed(seed_for(seed, "probe", "perturbation", start))
            same = [part.expand(len(group), -1) for part in row.texts]
            other = []
            for part, text in zip(same, texts, strict=True):
                drawn = torch.randint(vocab_size, part.shape, generator=generator).to(part)
                hidden = False if text is None else text.to(device) >= answers[group][:, None]
                other.append(torch.where(torch.as_tensor(hidden, device=device), drawn, part))
            up_to = answers[None] <= answers[group][:, None]
            if len(group) not in unchanged:
                unchanged = {len(group): _target_logits(model, row, same, seed)}
            largest = _largest_relative_change_at(unchanged[len(group)], _target_logits(model, row, other, seed), up_to)
            if largest != largest:
                return largest
            worst = max(worst, largest)
    return worst


def _target_logits(model: nn.Module, batch: Batch, inputs: Sequence[Tensor | Positions], seed: int) -> Tensor:
    """Return the logits (B, T, V) for a batch's targets, from these inputs in a seeded pass."""
    seed_generators(batch.tokens.device, seed)
    return batch.target_logits(model(*inputs))


def _largest_relative_change_at(before: Tensor, after: Tensor, where: Tensor) -> float:
    """Return the largest relative change between logits (B, T, V) at `where` (B, T)."""
    passes = [logits[where].to(widest_float(logits.device)) for logits in (before, after)]  # (places, V)
    return largest_relative_change(*passes) if passes[0].numel() else 0.0


def largest_relative_change(before: Tensor, after: Tensor) -> float:
    """Return the largest change of an entry, relative to itself and to a usual entry; keeps a NaN."""
    scale = before.abs().nan_to_num(posinf=0.0)
    limit = scale + scale.median()
    return float(torch.where(before == after, 0.0, (before - after).abs() / limit.clamp(min=1e-30)).max())


def hidden_leak(model: nn.Module, objective: Objective, windows: Tensor, vocab_size: int, seed: int = 0) -> float:
    """Return the largest relative change of the logits at hidden places when what is hidden there is redrawn: the
    inputs do not change by it, so neither may the predictions.
    """

    def batch(text: Tensor) -> Batch:
        return objective.batch(text, torch.Generator().manual_seed(seed_for(seed, "mask", "probe")))

    original = batch(windows)
    hidden = (original.targets != IGNORED) & (original.tokens >= vocab_size)  # a special token is there
    generator = torch.Generator().manual_seed(seed_for(seed, "probe", "hidden"))
    drawn = torch.randint(vocab_size, windows.shape, generator=generator).to(windows)
    redrawn = batch(torch.where(hidden, drawn, windows))
    with torch.no_grad():
        before, after = (_target_logits(model, one, one.inputs, seed) for one in (original, redrawn))
        return _largest_relative_change_at(before, after, hidden)


def places_to_try(length: int, how_many: int, seed: int) -> list[int]:
    """Return all positions but the last, or the ends and a random one in each of `how_many` equal stretches."""
    last = length - 2
    if last < 0:
        return []
    if how_many > last:
        return list(range(last + 1))
    generator = torch.Generator().manual_seed(seed_for(seed, "probe", "places"))
    random = torch.rand(how_many, generator=generator).tolist()
    stretch = (last + 1) / how_many
    return sorted({0, max(0, last - 1), last, *(int((i + share) * stretch) for i, share in enumerate(random))})


def _rows_that_fit(model: nn.Module, length: int, vocab_size: int, rows: int) -> int:
    logits_bytes = length * getattr(model, "vocab_size", vocab_size) * 8
    return max(1, min(rows, MOST_BYTES // (6 * logits_bytes)))


def _probe_both_modes(
    model: nn.Module, scoring: Callable[..., float], training: Callable[..., float], rows: int
) -> tuple[float, int]:
    """Run one probe as a scorer runs the model and one as training does, with this many rows at once, halved until
    they fit into memory; return the larger result and the rows used.
    """
    worst = 0.0
    for probe, trains in ((scoring, False), (training, True)):
        with _set_mode(model, training=trains), torch.inference_mode(not trains):
            while True:
                try:
                    worst = _max_or_nan(worst, probe(at_once=rows))
                    break
                except torch.OutOfMemoryError:
                    if rows == 1:
                        raise
                    rows //= 2
    return worst, rows


def _positions_within_compute_budget(model: nn.Module, length: int, device: str, share: float) -> int:
    cost = 2.0 * length * sum(p.numel() for p in model.parameters())
    return max(FEWEST_PLACES, int(BUDGET.get(device, BUDGET["cpu"]) * share / cost))


def starts_as_identity(model: ModelConfig) -> bool:
    """Whether layers, or their branches, start as the identity or close to it."""
    return any(row.identity_at_init for row in active_parts(model).values())


def leak_probe(
    model: Network,
    objective: Objective,
    examples: Tensor | Sequence[tuple[Batch, TokenOrigins]],
    vocab_size: int,
    *,
    when: When,
    step: int,
    rows: int = ROWS_AT_ONCE,
) -> Verdict:
    """Run both probes in every mode the model is used in: training, evaluation, and the way the scorer runs it.

    Of `examples` (B, L), real text, the first two rows are used, or else all, each a batch of one row; other steps try
    other places. `rows` are in the run's largest batch: as many are tried at once if affordable. The model is
    restored. Before the first step, a copy with other weights stands for a network whose layers pass on too little to
    show what they read.
    """
    if when == "before" and starts_as_identity(model.config):
        model = deepcopy(model)
        randomize_weights(model)
    gradient = change = 0.0
    kind, share = next(model.parameters()).device.type, SHARE[when]
    wanted = min(rows, MOST_ROWS)
    if objective.predicts_hidden:
        assert isinstance(examples, Tensor)
        affordable = _positions_within_compute_budget(model, objective.window, kind, share)
        own = examples.repeat(-(-wanted // len(examples)), 1)[:affordable]
        own = own[: _rows_that_fit(model, objective.window, vocab_size, max(wanted, len(examples)))]
        with _set_mode(model, training=False):
            change = hidden_leak(model, objective, examples, vocab_size, step)
        hidden = lambda at_once: hidden_leak(model, objective, own[:at_once], vocab_size, step)
        found, at_once = _probe_both_modes(model, hidden, hidden, len(own))
        change = _max_or_nan(change, found)
        clean = Message("the model does not see what is hidden")
    else:
        for batch, where in _make_examples(objective, examples[:2], step) if isinstance(examples, Tensor) else examples:
            single = list(batch.chunk(len(batch.tokens)))
            length = where.answers.numel() + 1
            affordable = _positions_within_compute_budget(model, length, kind, share)
            tried = places_to_try(length, affordable, step)
            at_once = _rows_that_fit(model, length - 1, vocab_size, min(wanted, affordable))
            again = list(itertools.islice(itertools.cycle(tried), max(at_once, len(tried)))) if tried else []
            with _set_mode(model, training=False):
                few = places_to_try(length, min(GRADIENT_PLACES, len(tried)), step)
                gradient = _max_or_nan(gradient, gradient_leak(model, batch, where, few))
                change = _max_or_nan(change, perturbation_leak(model, single[0], where, tried, vocab_size, step))
            perturbed = functools.partial(perturbation_leak, model, places=where, vocab_size=vocab_size, seed=step)
            scoring = functools.partial(perturbed, single[-1], tried=again[:: max(1, len(again) // at_once)])
            training = functools.partial(perturbed, single[0], tried=again)
            found, at_once = _probe_both_modes(model, scoring, training, at_once)
            change = _max_or_nan(change, found)
        n, of = len(tried), max(length - 1, 0)
        clean = Message("nothing that the model reads contains the class")
        if not objective.pools_logits:
            clean = Message("the model sees no later token ({n:,} of {length:,} positions tried)", n=n, length=of)
    clean += Message(", in training, evaluation and scoring, {at_once:,} rows at a time", at_once=at_once)
    if gradient != gradient or change != change:
        why = Message("some predictions are not numbers, so what they depend on cannot be checked")
        return Verdict("leak", when, step, "NOT A NUMBER", float("nan"), why)
    if gradient > GRADIENT_LIMIT or change > PERTURBATION_LIMIT:
        why = Message(
            "a position's prediction depends on its answer or on what follows it (gradient "
            "{gradient:.2g}, change {change:.2g}): the model can read what it has to predict, so its "
            "scores are meaningless",
            gradient=gradient,
            change=change,
        )
        return Verdict("leak", when, step, LEAK, max(gradient, change), why)
    return Verdict(Message("leak"), when, step, OK, 0.0, clean)


def _max_or_nan(one: float, other: float) -> float:
    return max(one, other, key=lambda value: (value != value, value))


def _make_examples(objective: Objective, windows: Tensor, step: int) -> Iterator[tuple[Batch, TokenOrigins]]:
    """Yield examples and where their tokens come from: all rows at once, or one by one if each draws its own order."""
    alone = objective.reorders_text
    for number, rows in enumerate(torch.split(windows, 1) if alone else [windows]):
        seed = seed_for(0, "mask", "probe", *((step, number) if alone else ()))
        where = token_origins(objective, torch.Generator().manual_seed(seed))
        assert where is not None
        yield objective.batch(rows, torch.Generator().manual_seed(seed)), where


ORDER_CHECK_LENGTH = 32  # tokens of the permuted text
ORDER_LIMIT = 1e-9  # relative, in float64


def order_check(model: Network, vocab_size: int) -> CheckResult | None:
    """Check whether positions reach the model; None if it has none, or no text is long enough to tell.

    Without a mask and without positions a Transformer cannot see order: permuting its text permutes its predictions.
    So in a copy with other weights the masks are lifted and two neighbours change places; in float64 anything more than
    rounding counts.
    """
    length = min(ORDER_CHECK_LENGTH, model.config.context_length, model.config.source_tokens)
    # A stack whose layers all have none need not tell order.
    placed = [stack for stack in model.stacks if _position_schemes(stack) != ["none"]]
    if not placed or length < 3 or vocab_size < 2:
        return None
    copy = deepcopy(model).cpu().double().eval()  # on the CPU: MPS has no float64
    for part in copy.modules():
        if isinstance(part, SelfAttention):
            part.visibility = Visibility(causal=False)
    randomize_weights(copy)
    tokens = torch.arange(length)[None] % min(vocab_size, length)
    swapped = torch.arange(length)
    swapped[:2] = torch.tensor([1, 0])
    with torch.no_grad():
        moved = []
        for stack in (stack for stack in copy.stacks if _position_schemes(stack) != ["none"]):
            before, after = (_hidden_states(copy, stack, text) for text in (tokens, tokens[:, swapped]))
            moved.append(largest_relative_change(before[:, swapped], after))
    schemes = " and ".join(name for name in model.config.distinct_positions if name != "none")
    if not min(moved) <= ORDER_LIMIT:
        return passed(Message("the model sees the order of tokens ({schemes} positions)", schemes=schemes))
    why = Message(
        "permuting a text only permutes the predictions: {schemes} positions never reach the model "
        "(a table indexed by batch instead of time is the usual cause)",
        schemes=schemes,
    )
    return failed(why, value=min(moved), badge=NO_ORDER)


def _position_schemes(stack: Stack) -> list[str]:
    return list(dict.fromkeys(kind.position for kind, _ in stack.config.layer_kinds(len(stack.layers))))


@torch.no_grad()
def randomize_weights(model: Network) -> None:
    """Redraw the weights at another scale, in place: this tests connections, not initial values."""
    generator = torch.Generator().manual_seed(seed_for(0, "probe", "order"))
    for weight in model.parameters():
        drawn = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
        if weight.dim() >= 2:
            weight.copy_((drawn / weight.shape[-1] ** 0.5).to(weight.device))
        else:
            weight.add_((0.1 * drawn).to(weight))  # gains and biases


def _hidden_states(model: Network, stack: Stack, tokens: Tensor) -> Tensor:
    at, x = Positions.consecutive(tokens.shape[1], 0, tokens.device), model.token_embedding(tokens)
    if not model.reads_source or stack is not model.stacks[-1]:
        return stack.run_layers(x, at)
    generator = torch.Generator().manual_seed(seed_for(0, "probe", "source"))
    hidden = torch.randn(1, 4, x.shape[-1], generator=generator, dtype=torch.float64).to(x)
    return stack.run_layers(x, at, None, stack.keys_and_values(hidden), Positions.consecutive(4, 0, x.device))
