"""Does the network compute what its config says, in a full pass and token by token?

Every check gives a verdict, `ok` or `BROKEN`. Notation: B batch, T time, S source time, V vocabulary.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from engine.config.schema import RunConfig
from engine.evaluation.reference import Reference
from engine.evaluation.verdict import BROKEN, OK, Verdict
from engine.generation.sampling import DecoderPredictor, SampledStep, Sampling, SourcePredictor, stream_batch
from engine.model import size
from engine.model.decoding import Decoding
from engine.model.transformer import DecoderLM, EncoderDecoder, EncoderLM, Network
from engine.training.copies import SmallCopy

# Relative to the largest logit, in float64. Rounding stays below 1e-10; a wrong mask, position or scale exceeds 1e-3.
LIMIT = 1e-6
CHANCE_LIMIT = 1e-4  # of a probability from the sampler, which is fp32
WRITTEN_OUT = 512  # tokens that the reference reads: its matrices are T × T
MOST_CHUNKS = 128
FIRST_TOKENS = 32  # that a decoder reads one by one in whole layers; sampling is faster, and tested separately
ONE_BY_ONE = 512  # most tokens fed singly; those before them are read at once
PAST_THE_END = 24  # tokens sampled after the context is full
GROWTH = (60, 140)  # tokens between which the smallest cache grows twice


def verdict(check: str, wrong: str, right: str, value: float = 0.0) -> Verdict:
    """A verdict before the first step: `wrong` says what is wrong, or "" if nothing is."""
    return Verdict(check, "before", 0, BROKEN if wrong else OK, value, wrong or right)


def parameters(config: RunConfig, model: Network, copy: SmallCopy) -> Verdict:
    """Does the number of parameters match the config, tied as it says, and does each one get a gradient?

    Args:
        config: of the run.
        model: the run's own network.
        copy: of it.
    """
    means = size.parameter_count(config.model, model.vocab_size)
    built = sum(parameter.numel() for parameter in model.parameters())
    tied = model.head.weight is model.token_embedding.weight
    silent = _without_gradient(copy)
    wrong = ""
    if tied != config.model.tie_embeddings:
        asked = "model.tie_embeddings = true, but output and embedding are separate matrices"
        wrong = asked if not tied else "model.tie_embeddings = false, but output and embedding share one matrix"
    elif built != means:
        wrong = f"the model has {built:,} parameters, but the config calls for {means:,}"
    elif silent:
        named = ", ".join(silent[:3]) + (f" and {len(silent) - 3} more" if len(silent) > 3 else "")
        wrong = f"{named} gets no gradient: that part of the network is disconnected and will not learn"
    right = f"{built:,}, as configured, and each gets a gradient{copy.said}"
    return verdict("parameters", wrong, right, float(len(silent)))


def _without_gradient(copy: SmallCopy) -> list[str]:
    network, inputs = copy.network, copy.inputs(length=64)
    if min(part.shape[1] for part in inputs) < 2 or copy.model.d_model < 2:
        return []  # weights over one token, and norms over one feature, are constant
    alone = copy.model.attention in ("window", "sparse") and copy.model.window < 2
    names, weights = zip(*network.named_parameters(), strict=True)
    logits = network(*inputs)
    mixture = torch.randn(logits.shape, generator=torch.Generator().manual_seed(3), dtype=logits.dtype)
    gradients = torch.autograd.grad((logits * mixture).sum(), weights, allow_unused=True)
    return [
        name
        for name, gradient in zip(names, gradients, strict=True)
        if (gradient is None or not gradient.any()) and not (alone and ("positions." in name or "scheme." in name))
    ]


@torch.no_grad()
def reference(copy: SmallCopy) -> Verdict:
    """Does a full pass give the same result as an independent implementation with the same weights?"""
    inputs = copy.inputs(length=WRITTEN_OUT)
    tokens, source = inputs[-1], inputs[0] if len(inputs) == 2 else None
    meant = Reference(copy.model, dict(copy.network.named_parameters())).logits(tokens, source)
    worst = _apart(copy.network(*inputs), meant)
    model = copy.model
    wrong = (
        f"predictions differ from an independent implementation by a relative error of {worst:.1g}: {model.position} "
        f"positions, {model.attention} attention, a norm, a residual or a layer does not match the config"
    )
    right = f"an independent implementation gives the same predictions over {tokens.shape[1]:,} tokens"
    return verdict("reference", "" if worst <= LIMIT else wrong, right + copy.said, worst)


@torch.no_grad()
def cache_parity(copy: SmallCopy) -> Verdict:
    """Does decoding with a cache give the logits of one pass, over the whole context and in any chunks?"""
    if isinstance(copy.network, EncoderLM):
        return verdict("cache parity", "", "an encoder reads the whole text at once, so there is no cache")
    inputs = copy.inputs()
    worst, length = cache_difference(copy.network, *inputs), inputs[-1].shape[1]
    wrong = f"decoding with a cache differs from a full pass by a relative error of {worst:.1g}: samples are wrong"
    right = f"decoding with a cache gives the same logits as one full pass over {length:,} tokens"
    return verdict("cache parity", "" if worst <= LIMIT else wrong, right + copy.said, worst)


@torch.no_grad()
def cache_difference(model: DecoderLM | EncoderDecoder, *inputs: Tensor, growth: tuple[int, int] = GROWTH) -> float:
    """The largest difference between logits decoded with a cache and those of a full pass, relative to the largest.

    Args:
        model: in evaluation mode.
        inputs: tokens (B, T), preceded by a source (B, S) if the model reads one.
        growth: how many tokens a decoder reads at once, and the length up to which it then reads one by one.
    """
    tokens, source = inputs[-1], inputs[0] if len(inputs) == 2 else None
    full, length, worst = model(*inputs), tokens.shape[1], 0.0
    for plan in _plans(length, single=isinstance(model, EncoderDecoder)):
        worst = max(worst, _apart(in_chunks(model, tokens, plan, source), full))
    if isinstance(model, DecoderLM):
        first, last = (min(at, length) for at in growth)
        worst = max(worst, _apart(_in_steps(model, tokens[:, :last], first), full[:, max(0, first - 1) : last]))
    return worst


def _plans(length: int, *, single: bool) -> Iterator[list[int]]:
    """How a text is cut: in threes, after a prefill, and one by one (all of it if no other test does that)."""
    chunk = max(3, -(-length // MOST_CHUNKS))
    yield _cut(length, [chunk] * (length // chunk))
    yield _cut(length, [length // 2, *[1] * min(8, length - length // 2)])
    yield _cut(length, [1] * min(length, ONE_BY_ONE if single else FIRST_TOKENS))


def _cut(length: int, lengths: list[int]) -> list[int]:
    return [n for n in (*lengths, length - sum(lengths)) if n > 0]


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


def _in_steps(model: DecoderLM, tokens: Tensor, first: int) -> Tensor:
    """Logits from the last of the `first` tokens on; those are read at once, the others one by one."""
    decoding = Decoding(model, first)
    rest = torch.split(tokens[:, first:], 1, dim=1) if tokens.shape[1] > first else ()
    return torch.stack([decoding.feed(tokens[:, :first]), *(decoding.feed(token) for token in rest)], dim=1)


def sampling(copy: SmallCopy) -> Verdict | None:
    """Does each sampled token have the probability that one pass gives it, to the end of the context and past it?

    When the context is full, the newest half is read again from position 0, so one pass over each stretch between two
    such points gives all its probabilities. None for an encoder, which has no cache.
    """
    model, inputs, context = copy.network, copy.inputs(), copy.length
    if isinstance(model, EncoderLM):
        return None
    writer = SourcePredictor(model, inputs[0]) if isinstance(model, EncoderDecoder) else DecoderPredictor(model)
    prompt = inputs[-1][:, : max(1, context - ONE_BY_ONE)]
    wanted = context - prompt.shape[1] + PAST_THE_END
    seeds, how = list(range(prompt.shape[0])), Sampling(1.0, 0, 1.0, "restart")
    drawn = list(stream_batch(writer, prompt, wanted, how, seeds, context=context))
    worst, text = 0.0, prompt
    with torch.inference_mode():
        for stretch in _stretches(drawn):
            if stretch[0].restarted:
                text = text[:, -max(1, context // 2) :]
            read = text.shape[1]
            text = torch.cat((text, *(column.tokens for column in stretch)), dim=1)
            logits = model(*inputs[:-1], text[:, :-1])[:, read - 1 :]
            meant = logits.softmax(-1).gather(2, text[:, read:, None])[..., 0]
            given = torch.cat([column.probability for column in stretch], dim=1)
            worst = max(worst, float(((given - meant).abs() / meant).max()))
    wrong = (
        f"a sampled token's probability differs from a full pass by a relative error of {worst:.1g}: samples are wrong"
    )
    right = (
        f"{len(drawn):,} sampled tokens, the last {PAST_THE_END} past a full context, match a full pass's probabilities"
    )
    return verdict("sampling", "" if worst <= CHANCE_LIMIT else wrong, right + copy.said, worst)


def _stretches(drawn: list[SampledStep]) -> Iterator[list[SampledStep]]:
    stretch: list[SampledStep] = []
    for column in drawn:
        if column.restarted and stretch:
            yield stretch
            stretch = []
        stretch.append(column)
    yield stretch


@torch.no_grad()
def source(copy: SmallCopy) -> Verdict | None:
    """Does a different source with the same target change the predictions, through every decoder layer?

    None without a source.
    """
    model = copy.network
    if not isinstance(model, EncoderDecoder):
        return None
    kept: list[list[Tensor]] = []
    parts = [layer.get_submodule("cross_attention") for layer in model.layers]
    hooks = [part.register_forward_hook(lambda _, __, out: kept[-1].append(out)) for part in parts]
    logits = []
    try:
        for seed in (0, 1):
            kept.append([])
            logits.append(model(*copy.inputs(length=32, source_seed=seed)))
    finally:
        for hook in hooks:
            hook.remove()
    changed = [not torch.equal(*pair) for pair in zip(*kept, strict=True)]
    deaf = [str(i + 1) for i in range(len(parts)) if i >= len(changed) or not changed[i]]
    wrong = ""
    if torch.equal(*logits):
        wrong = "a different source changes no prediction: the decoder ignores its source"
    elif deaf:
        wrong = f"a different source changes nothing in the cross-attention of decoder layer {', '.join(deaf)}"
    return verdict("source", wrong, f"a different source changes what each decoder layer reads{copy.said}")


def _apart(found: Tensor, meant: Tensor) -> float:
    """The largest difference, relative to the largest expected value; infinite if it is not a number."""
    apart = float((found - meant).abs().max() / meant.abs().max().clamp(min=1e-300))
    return apart if apart == apart else float("inf")
