"""The self-check: does this code do what the config says? Run before a run's first step, and by `check`.

All checks use small copies: the same code builds them from the same config, with at most `LAYERS` layers per stack and
`WIDTH` features but the full context, in float64 on the CPU, with their own weights. So a result is independent of
device, rounding and training, and any network costs the same. Torch's random state is left alone.

Notation: B batch, T time, S source time, V vocabulary. Losses are in nats.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from engine.base.language import Message
from engine.config.model import PARTS, ModelConfig
from engine.config.schema import RunConfig
from engine.config.sections import OptimizerConfig
from engine.config.tasks import END
from engine.config.visibility import self_attention
from engine.data.loader import BatchStream, TextBatches
from engine.data.objectives import IGNORED, Batch
from engine.data.padding import right_padded_positions
from engine.data.rows import BucketedBatches, Specials
from engine.data.tokenizers import AnyTokenizer
from engine.evaluation.checks import order_check, places_to_try, randomize_weights
from engine.evaluation.metrics import score_batches, score_tokens
from engine.generation.beam import make_length_penalty, translate_batch
from engine.generation.sampling import SampledStep, Sampling, stream_batch
from engine.model import size
from engine.model.decoding import Predictor
from engine.model.positions import Positions
from engine.model.reference import ReferenceNetwork
from engine.model.transformer import Network, build_model
from engine.ranks import Ranks
from engine.runs.verdict import BROKEN, OK, CheckResult, Verdict, failed, passed, passed_if, skipped
from engine.tasks.task import Task
from engine.training.checkpoint import MOVING_AVERAGE, WEIGHTS, Provenance, load_moving_average_and_save
from engine.training.step import Stepper
from engine.training.written_out import ExampleInverter, Mismatch, check_first_batches, check_small_corpus

# The small copy of a network
LAYERS, WIDTH = 2, 64
TOKENS = 1024  # the longest text tried
WORDS = 64  # the largest vocabulary, unless the run's own batches are read
ROWS = 2
DROPOUTS = (
    *("dropout", "attention_dropout", "attention_output_dropout", "embedding_dropout", "ff_dropout"),
    *(name for name, row in PARTS.items() if row.acts_when == "in training"),
)
NO_DROPOUT = dict.fromkeys(DROPOUTS, 0.0)

# Checks of the network.
# Relative to the largest logit, in float64. Rounding stays below 1e-10; a wrong mask, position or scale exceeds 1e-3.
LIMIT = 1e-6
ONE_BY_ONE = 512  # most tokens fed singly; those before them are read at once
PAST_THE_END = 24  # tokens sampled after the context is full
LONG = 4096  # tokens that a copy with one head reads of a context longer than `TOKENS`
FAR = 12  # tokens of the short texts that begin anywhere in it
READ = 16  # most tokens of a source that is padded or translated

# Checks of training
BATCH_TOKENS = 64  # of a batch that a copy is trained on
GRADIENT_LIMIT = 1e-3  # of the largest entry: logits are rounded to fp32
UPDATE_LIMIT = 1e-6  # relative to the learning rate, for updates and for the rate itself
SCORE_LIMIT = 1e-4  # nats
DROPPED = 0.5  # the dropout rate used in tests: a small one may drop nothing from a small batch


def self_check(
    config: RunConfig, model: Network, task: Task, between: Callable[[], None] = lambda: None
) -> list[Verdict]:
    """Return one verdict per check that applies; `between` is called before each, and may raise to stop."""
    device = next(model.parameters()).device

    def reseeded(seed: int) -> BatchStream:
        return task.batches(config.model_copy(update={"seed": seed}), device)

    few = TruncatedBatches(stream := task.batches(config, device), min(config.train.accumulation, 3))
    with torch.random.fork_rng([]), torch.enable_grad():
        copy = small_copy(config, min(model.vocab_size, WORDS))
        reader = full_vocabulary_copy(config, few.objective.vocab_size)
        checks: dict[str, Callable[[], CheckResult | None]] = {
            Message("order"): lambda: order_check(copy.network, copy.network.vocab_size),
            Message("parameters"): lambda: check_parameters(config, model, copy),
            Message("reference"): lambda: check_reference(copy),
            Message("source"): lambda: check_source(copy),
            Message("padding"): lambda: check_padding(copy, few.objective.pools_logits, type(few.first[0])),
            Message("cache parity"): lambda: check_cache(config, copy),
            Message("sampling"): lambda: check_sampled_probabilities(copy),
            Message("beams"): lambda: check_beam_scores(config, copy),
            Message("gradient"): lambda: check_gradient(config, reader, few),
            Message("update"): lambda: check_update(config, reader, few, task.tokenizer),
            Message("dropout"): lambda: check_dropout(config, reader, few),
            Message("seed"): lambda: check_seed_has_effect(config, copy, reseeded),
            Message("examples"): lambda: check_examples_against_files(config, task, reader),
            Message("batches"): lambda: check_epoch_coverage(config, stream),
        }
        found = []
        for name, check in checks.items():
            between()
            try:
                result = check()
            except Exception as error:  # a failure too
                said = f"{type(error).__name__}: {' '.join(str(error).split())}"
                result = failed(Message("the check failed with an error: {error}", error=said))
                if isinstance(error, MemoryError | OSError) or "memory" in str(error):
                    result = skipped(Message("skipped: out of memory or disk ({error})", error=said))
            if result is not None:
                badge = result.figures.get("badge", BROKEN) if result.status == "failed" else OK
                found.append(Verdict(name, "before", 0, badge, result.figures.get("value", 0.0), result.why))
    return found


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference, relative to the largest expected value; infinite if it is NaN."""
    error = float((found - expected).abs().max() / expected.abs().max().clamp(min=1e-300))
    return error if error == error else float("inf")


# The small copy


@dataclass(frozen=True)
class SmallCopy:
    """A network as configured, but small: float64, CPU, evaluation mode; `size_note` says how it is smaller."""

    model: ModelConfig
    network: Network
    size_note: str

    def clone(self) -> "SmallCopy":
        """A copy with the same weights and no gradients; cheaper than building one."""
        return replace(self, network=deepcopy(self.network).eval())

    @property
    def length(self) -> int:
        """T: the whole context, or as much of it as is tried."""
        return min(self.model.context_length, TOKENS)

    def inputs(self, length: int | None = None, source_seed: int = 0) -> tuple[Tensor, ...]:
        rows = ROWS if self.length <= TOKENS // 4 else 1
        wanted = self.length if length is None else min(length, self.model.context_length)
        tokens = _random_tokens(rows, wanted, self.network.vocab_size, 1)
        if not self.network.reads_source:
            return (tokens,)
        words = self.model.source_vocab_size or self.network.vocab_size
        return _random_tokens(rows, min(self.model.source_tokens, TOKENS), words, 2 + source_seed), tokens


def _random_tokens(rows: int, length: int, words: int, seed: int) -> Tensor:
    return torch.randint(words, (rows, length), generator=torch.Generator().manual_seed(seed))


def small_copy(config: RunConfig, vocab_size: int, **changes: Any) -> SmallCopy:
    """Build a small copy of a run's network; `changes` override the copy's settings."""
    model = config.model
    heads = min(model.n_heads, 4)
    width = min(model.head_width, max(2, WIDTH // heads))
    width -= width % 2 if model.head_width % 2 == 0 else 0  # rotary positions rotate pairs of features
    shared = max(1, model.kv_heads * heads // model.n_heads)
    # A short pattern is tried as it is; of a longer one, each kind of layer once.
    pattern = model.layers if len(model.layers) <= 8 else tuple(dict.fromkeys(model.layers))
    most = max(LAYERS, len(pattern))
    smaller: dict[str, Any] = {
        "n_layers": min(model.n_layers, most),
        "n_encoder_layers": min(model.encoder_layers, most),
        "layers": pattern,
        "n_heads": heads,
        "n_kv_heads": shared if heads % shared == 0 else 1,
        "d_model": heads * width,
        "d_ff": min(model.d_ff, 4 * heads * width),
    }
    if model.source_vocab_size is not None:
        smaller["source_vocab_size"] = min(model.source_vocab_size, WORDS)
    if model.classes is not None:
        smaller["classes"] = min(model.classes, vocab_size)
    if model.backend not in ("auto", "reference", "sdpa", "chunked"):  # the others only handle whole texts
        smaller["backend"] = "auto"
    small = model.model_copy(update={**smaller, **NO_DROPOUT, "vocab_size": vocab_size, **changes})
    sizes = (
        ("layers", model.n_layers, small.n_layers),
        ("features", model.d_model, small.d_model),
        ("tokens", model.context_length, min(small.context_length, TOKENS)),
    )
    parts = [f"{few:,} of {all_:,} {what}" for what, all_, few in sizes if few != all_]
    network = build_model(small, vocab_size, 0).double().eval()
    randomize_weights(network)
    return SmallCopy(small, network, Message(", tried with {parts}", parts=", ".join(parts)) if parts else "")


def full_vocabulary_copy(config: RunConfig, vocab_size: int, **changes: Any) -> SmallCopy:
    """A copy that can read the run's own tokens, of which its tokenizer has `vocab_size`."""
    words = config.min_vocab_size(vocab_size)
    return small_copy(config, words, source_vocab_size=config.model.source_vocab_size, **changes)


# Does the network compute what its config says, in a full pass and token by token?


def check_parameters(config: RunConfig, model: Network, copy: SmallCopy) -> CheckResult:
    """Does the number of parameters match the config, tied as it says, and does each one get a gradient?"""
    expected = size.parameter_count(config.model, model.vocab_size)
    built = sum(parameter.numel() for parameter in model.parameters())
    tied = model.head.weight is model.token_embedding.weight
    network, inputs, silent = copy.network, copy.inputs(length=64), []
    # Weights over one token, and norms over one feature, are constant.
    if min(part.shape[1] for part in inputs) >= 2 and copy.model.d_model >= 2:
        windows = [self_attention(layer).window for layer in (kind for kind, _ in copy.model.layer_kinds())]
        alone = any(window is not None and window < 2 for window in windows)
        logits = network(*inputs)
        mixture = torch.randn(logits.shape, generator=torch.Generator().manual_seed(3), dtype=logits.dtype)
        torch.autograd.backward((logits * mixture).sum())
        for name, weight in network.named_parameters():
            of_scores = alone and any(part in name for part in ("positions.", "scheme.", "query_norm.", "key_norm."))
            if (weight.grad is None or not weight.grad.any()) and not of_scores:
                silent.append(name)
        network.zero_grad()
    wrong = ""
    if config.model.tie_embeddings and not tied:
        wrong = Message("model.tie_embeddings = true, but output and embedding are separate matrices")
    elif tied and not config.model.tie_embeddings:
        wrong = Message("model.tie_embeddings = false, but output and embedding share one matrix")
    elif built != expected:
        wrong = Message(
            "the model has {built:,} parameters, but the config calls for {expected:,}", built=built, expected=expected
        )
    elif silent:
        named = ", ".join(silent[:3]) + (Message(" and {n} more", n=len(silent) - 3) if len(silent) > 3 else "")
        wrong = Message(
            "{named} gets no gradient: that part of the network is disconnected and will not learn", named=named
        )
    right = Message("{built:,}, as configured, and each gets a gradient{said}", built=built, said=copy.size_note)
    return passed_if(not wrong, right, wrong, value=float(len(silent)))


@torch.no_grad()
def check_reference(copy: SmallCopy) -> CheckResult:
    """Does a full pass give the same result as an independent implementation with the same weights?"""
    inputs, model = copy.inputs(length=512), copy.model  # no more: the reference's matrices are T × T
    tokens, source = inputs[-1], inputs[0] if len(inputs) == 2 else None
    expected = ReferenceNetwork(model, dict(copy.network.named_parameters())).logits(tokens, source)
    worst = relative_error(copy.network(*inputs), expected)
    wrong = Message(
        "predictions differ from those of an independent implementation (relative error {worst:.1g}): {positions} "
        "positions, {attentions} attention, a norm, a residual or a layer does not match the config",
        worst=worst,
        positions=" or ".join(model.distinct_positions),
        attentions=" or ".join(model.distinct_attentions),
    )
    right = Message("an independent implementation gives the same predictions over {shape:,} tokens")
    right = right.format(shape=tokens.shape[1]) + copy.size_note
    return passed_if(worst <= LIMIT, right, wrong, value=worst)


@torch.no_grad()
def check_source(copy: SmallCopy) -> CheckResult | None:
    """Does a different source change the predictions, through every decoder layer? None without a source."""
    model = copy.network
    if not model.reads_source:
        return None
    kept: list[list[Tensor]] = []
    parts = [layer.get_submodule("cross_attention") for layer in model.stacks[-1].layers]
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
    deaf = ", ".join(str(i + 1) for i in range(len(parts)) if i >= len(changed) or not changed[i])
    if torch.equal(*logits):
        return failed(Message("a different source changes no prediction: the decoder ignores its source"))
    right = Message("a different source changes what each decoder layer reads{said}", said=copy.size_note)
    wrong = Message("changing the source has no effect on the cross-attention of decoder layer {deaf}", deaf=deaf)
    return passed_if(not deaf, right, wrong)


@torch.no_grad()
def check_padding(copy: SmallCopy, pools: bool, kind: type[Batch]) -> CheckResult | None:
    """Does a row read in both directions give the same logits padded, beside a longer one, as alone?"""
    inputs = copy.inputs(length=READ)
    read = inputs[0][:1, :READ].expand(2, -1)
    lengths = [read.shape[1], read.shape[1] // 2]
    if not (copy.network.reads_source or pools) or 0 in lengths:
        return None

    def logits(read: Tensor, at: Positions | None) -> Tensor:
        text, source = (read, None) if len(inputs) == 1 else (inputs[1][:1].expand(len(read), -1), read)
        batch = kind(text, text, 0, source, at)
        return batch.target_logits(copy.network(*batch.inputs))

    alone = torch.cat([logits(read[:1, :length], None) for length in lengths])
    worst = relative_error(logits(read, right_padded_positions(lengths, "cpu")), alone)
    wrong = Message("padding changes predictions (relative error {worst:.1g})", worst=worst)
    right = Message("a row has the same predictions with padding as without")
    return passed_if(worst <= LIMIT, right + copy.size_note, wrong, value=worst)


@torch.no_grad()
def check_cache(config: RunConfig, copy: SmallCopy) -> CheckResult:
    """Does decoding with a cache give the logits of one pass, over the whole context and in any chunks?"""
    if not copy.network.has_cache:
        return passed(Message("an encoder reads the whole text at once, so there is no cache"))
    inputs = copy.inputs()
    length = inputs[-1].shape[1]
    beyond, more = _long_cache_difference(config, copy) if copy.model.context_length > length else (0.0, "")
    worst = max(cache_difference(copy.network, *inputs), beyond)
    wrong = Message(
        "decoding with a cache differs from a full pass (relative error {worst:.1g}): samples are wrong", worst=worst
    )
    right = Message("decoding with a cache gives the same logits as one full pass over {length:,} tokens")
    right = right.format(length=length) + copy.size_note + more
    return passed_if(worst <= LIMIT, right, wrong, value=worst)


def _long_cache_difference(config: RunConfig, copy: SmallCopy) -> tuple[float, str]:
    """Return `cache_difference` for a long context, at a bounded cost, and what was read: a copy with one head reads
    the first `LONG` tokens, the last of them one by one, and short texts that begin anywhere in the context.
    """
    model, width, layers = copy.model, copy.model.head_width, tuple(dict.fromkeys(copy.model.layers))
    one_head = {"n_heads": 1, "n_kv_heads": 1, "d_model": width, "d_ff": min(model.d_ff, 4 * width)}
    narrow = small_copy(config, copy.network.vocab_size, layers=layers, n_layers=max(1, len(layers)), **one_head)
    *source, tokens = narrow.inputs(length=LONG)
    n, last, text = tokens.shape[1], model.context_length, tokens[:, :FAR]
    worst = cache_difference(narrow.network, *source, tokens, growth=(n - FAR, n))
    predictor = Predictor(narrow.network, source[0] if source else None)
    for start in (TOKENS - FAR + place for place in places_to_try(last - TOKENS + 2, 6, 0)):
        predictor.begin()
        predictor.cache.length = start
        read = [predictor.feed(part) for part in torch.split(text, [2, *[1] * (FAR - 2)], dim=1)]
        full = narrow.network(*source, text, at=Positions.consecutive(FAR, start))
        worst = max(worst, relative_error(torch.stack(read, dim=1), full[:, 1:]))
    return worst, Message("; with one head, over {n:,} tokens, and at positions up to {last:,}", n=n, last=last)


@torch.no_grad()
def cache_difference(model: Network, *inputs: Tensor, growth: tuple[int, int] = (60, 140)) -> float:
    """Return the largest difference of logits decoded with a cache from those of a full pass, relative to the largest.

    The inputs are tokens (B, T), preceded by a source (B, S) if the model, in evaluation mode, reads one. `growth`: how
    many tokens a decoder reads at once, and the length up to which it then reads one by one; by default, the smallest
    cache grows twice between them.
    """
    tokens, source = inputs[-1], inputs[0] if len(inputs) == 2 else None
    full, length, worst = model(*inputs), tokens.shape[1], 0.0
    chunk = max(3, -(-length // 128))
    singles = ONE_BY_ONE if model.reads_source else 32  # in whole layers; sampling is faster, and tested separately
    plans = (
        [chunk] * (length // chunk),
        [length // 2, *[1] * min(8, length - length // 2)],  # after a prefill
        [1] * min(length, singles),
    )
    for plan in plans:
        lengths = [n for n in (*plan, length - sum(plan)) if n > 0]
        worst = max(worst, relative_error(chunked_logits(model, tokens, lengths, source), full))
    if not model.reads_source:
        first, last = (min(at, length) for at in growth)
        predictor = Predictor(model)
        predictor.begin(first)
        rest = torch.split(tokens[:, first:last], 1, dim=1) if last > first else ()
        stepped = [predictor.feed(tokens[:, :first]), *(predictor.feed(token) for token in rest)]
        worst = max(worst, relative_error(torch.stack(stepped, dim=1), full[:, max(0, first - 1) : last]))
    return worst


def chunked_logits(model: Network, tokens: Tensor, lengths: list[int], source: Tensor | None = None) -> Tensor:
    """Return the (B, T, V) logits of tokens (B, T), and a source if any, fed to a cache in chunks of these lengths."""
    cache = model.new_cache(0, source)
    return torch.cat([model.decode(part, cache) for part in torch.split(tokens, lengths, dim=1)], dim=1)


def check_sampled_probabilities(copy: SmallCopy) -> CheckResult | None:
    """Does each sampled token have the probability that one pass gives it, to the end of the context and past it?

    When the context is full, the newest half is read again from position 0, so one pass over each stretch between two
    such points gives all its probabilities. None for an encoder, which has no cache.
    """
    model, inputs, context = copy.network, copy.inputs(), copy.length
    if not model.has_cache:
        return None
    writer = Predictor(model, inputs[0] if model.reads_source else None)
    prompt = inputs[-1][:, : max(1, context - ONE_BY_ONE)]
    wanted = context - prompt.shape[1] + PAST_THE_END
    seeds, how = list(range(prompt.shape[0])), Sampling(1.0, 0, 1.0, "restart")
    drawn = list(stream_batch(writer, prompt, wanted, how, seeds, context=context))
    stretches: list[list[SampledStep]] = [[]]
    for column in drawn:
        if column.restarted and stretches[-1]:
            stretches.append([])
        stretches[-1].append(column)
    worst, text = 0.0, prompt
    with torch.inference_mode():
        for stretch in stretches:
            if stretch[0].restarted:
                text = text[:, -max(1, context // 2) :]
            read = text.shape[1]
            text = torch.cat((text, *(column.tokens for column in stretch)), dim=1)
            logits = model(*inputs[:-1], text[:, :-1])[:, read - 1 :]
            expected = logits.softmax(-1).gather(2, text[:, read:, None])[..., 0]
            given = torch.cat([column.probability for column in stretch], dim=1)
            worst = max(worst, float(((given - expected).abs() / expected).max()))
    wrong = Message(
        "a sampled token's probability differs from that in a full pass (relative error {worst:.1g}): samples are "
        "wrong",
        worst=worst,
    )
    right = Message(
        "{n:,} sampled tokens, the last {past_the_end} past a full context, have the same probabilities as in a full "
        "pass",
        n=len(drawn),
        past_the_end=PAST_THE_END,
    )
    # The limit is relative, and wider than elsewhere: the sampler's probabilities are fp32.
    return passed_if(worst <= 1e-4, right + copy.size_note, wrong, value=worst)


@torch.no_grad()
def check_beam_scores(config: RunConfig, copy: SmallCopy) -> CheckResult | None:
    """Does each hypothesis of a beam search have the score of one pass over its tokens, and is a beam of 1 greedy?"""
    network, generation, (first, *_) = copy.network, config.generation, copy.inputs()
    if not config.task.uses("evaluation.beam", config):
        return None
    special, reads = Specials.numbered_from(network.vocab_size - len(config.special_tokens)), network.reads_source
    read = first[0, : max(1, min(READ, copy.model.context_length // 2))] % special.pad
    sources, lengths = torch.stack((read, read.flip(0))), [len(read), max(1, len(read) // (2 if reads else 1))]
    penalty = make_length_penalty(generation.length_penalty, generation.alpha)
    how: dict[str, Any] = {
        "penalty": penalty,
        "specials": special,
        "text_vocab_size": special.pad,
        "max_length": [12] * 2,
    }
    words = torch.tensor([*range(special.pad), special.end])
    at = right_padded_positions(lengths, "cpu") if reads else None
    worst, n = 0.0, 0
    for beam in (1, 3):
        found = translate_batch(network, sources, at, beam=beam, n_best=beam, **how)
        for row, one in [(row, one) for row, best in enumerate(found) for one in best]:
            written = torch.tensor([*one.tokens, *([special.end] if one.finished else [])])
            source = sources[row : row + 1, : lengths[row]]
            begun = torch.tensor([[special.start]]) if reads else source
            logits = network(*[source][:reads], torch.cat((begun, written[None, :-1]), dim=1))
            log_p = logits[0, begun.shape[1] - 1 :].log_softmax(-1)
            score = log_p.gather(1, written[:, None]).sum() / penalty(len(written))
            greedy = torch.equal(words[log_p[:, words].argmax(-1)], written)
            error = relative_error(score.new_tensor(one.score), score)
            worst, n = max(worst, error if greedy or beam > 1 else math.inf), n + 1
    wrong = Message("beam search differs from full passes (relative error {worst:.1g})", worst=worst)
    right = Message("{n} beam search hypotheses have the scores of full passes, and a beam of 1 is greedy", n=n)
    return passed_if(worst <= LIMIT, right + copy.size_note, wrong, value=worst)


# Does training do what the config says? Each check recomputes from the papers' formulas what the run's own code does in
# a few steps on a small copy.


class TruncatedBatches:
    """The first batches of a run, cut to a few rows and tokens, fewer in each later micro-batch of a step."""

    def __init__(self, batches: BatchStream, accumulation: int) -> None:
        self.objective, self.leak_probe_examples = batches.objective, batches.leak_probe_examples
        self.first = [_truncate(batches.batch(1, micro), max(1, ROWS - micro)) for micro in range(accumulation)]

    def batch(self, step: int, micro: int) -> Batch:
        return self.first[micro]

    def locate_largest_batch(self) -> tuple[int, int]:
        return 1, 0


def _truncate(batch: Batch, rows: int) -> Batch:
    """The beginning of some rows, on the CPU; the whole rows if the beginning has no target."""

    def part(x: Tensor, most: int | None) -> Tensor:
        return x[:rows, :most].cpu()

    most = BATCH_TOKENS if bool((batch.targets[:rows, :BATCH_TOKENS] != IGNORED).any()) else None
    targets = part(batch.targets, most)
    source = None if batch.source is None else part(batch.source, None)
    longest = most if batch.source is None else None
    at = batch.source_positions
    if at is not None:
        at = Positions(part(at.index, longest), one_sided_padding=True)
    return type(batch)(part(batch.tokens, most), targets, int((targets != IGNORED).sum()), source, at)


class OneRank(Ranks):
    """One of several ranks, alone; the micro-batches of `few` that are not its own belong to the missing ones."""

    def __init__(self, rank: int, size: int, few: TruncatedBatches) -> None:
        super().__init__(torch.device("cpu"))
        self.rank, self.size, self.few = rank, size, few

    def all_gather(self, numbers: Sequence[int]) -> list[int]:
        return [batch.n_targets for batch in self.few.first]


def _stepper(
    config: RunConfig, copy: SmallCopy, few: TruncatedBatches, clip: float, rank: int = 0, of: int = 1
) -> Stepper:
    """A stepper for a copy, as configured but in exact arithmetic: that of one of `of` ranks, without the others."""
    exact = {"precision": "fp32", "compile": "never", "accumulation": len(few.first), "clip": clip, "exact_sum": "on"}
    train = config.train.model_copy(update=exact)
    alike = config.model_copy(update={"model": copy.model, "train": train})
    return Stepper(alike, copy.network.train(), few, deferred=False, ranks=OneRank(rank, of, few))


def check_gradient(config: RunConfig, small: SmallCopy, few: TruncatedBatches) -> CheckResult:
    """Is the gradient of a step that of the mean loss over all its targets, with label smoothing and z-loss as set?"""
    share, z_loss = config.objective.label_smoothing, config.objective.z_loss
    if z_loss:  # a usual one is too small to be seen
        larger = config.objective.model_copy(update={"z_loss": max(z_loss, 0.1)})
        config = config.model_copy(update={"objective": larger})
    copy = small.clone()
    expected = _gradient_of_mean_loss(config, copy, few)
    for ranks in sorted({1, len(few.first)}):  # alone, and one for each micro-batch
        parts = [small.clone() for _ in range(ranks)]
        for rank, part in enumerate(parts):
            _stepper(config, part, few, 0.0, rank, ranks).step(1)
        found = torch.stack([_gradient_of(part) for part in parts]).sum(0)
        worst = relative_error(found, expected)
        if not worst <= GRADIENT_LIMIT:
            break
    if not worst <= GRADIENT_LIMIT:
        because = Message("the loss, its mean or the sum over micro-batches does not match the config")
        if ranks > 1:
            because = Message("{ranks} ranks do not share out its micro-batches", ranks=ranks)
        if (
            relative_error(found, _gradient_of_mean_loss(config, copy, few, mean_per_micro_batch=True))
            <= GRADIENT_LIMIT
        ):
            because = Message(
                "each micro-batch's loss is divided by its own number of targets instead of the whole step's"
            )
        for name in ("label_smoothing", "z_loss"):
            without = config.model_copy(update={"objective": config.objective.model_copy(update={name: 0.0})})
            if relative_error(found, _gradient_of_mean_loss(without, copy, few)) <= GRADIENT_LIMIT:
                because = Message("objective.{name} has no effect", name=name)
        wrong = Message(
            "a step's gradient has a relative error of {worst:.1g}: {because}", worst=worst, because=because
        )
        return failed(wrong, value=worst)
    smoothed = Message(", including label smoothing {share:g}", share=share) if share else ""
    smoothed += Message(", including {z_loss:g} of log² Z", z_loss=z_loss) if z_loss else ""
    over = Message(" in {n} micro-batches", n=len(few.first)) if len(few.first) > 1 else ""
    right = Message("a step's gradient is that of the mean loss over all its targets{over}{smoothed}{said}")
    return passed(right.format(over=over, smoothed=smoothed, said=copy.size_note), value=worst)


def _gradient_of(copy: SmallCopy) -> Tensor:
    return torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in copy.network.parameters()])


def _gradient_of_mean_loss(
    config: RunConfig, copy: SmallCopy, few: TruncatedBatches, *, mean_per_micro_batch: bool = False
) -> Tensor:
    """∇ of the mean over targets of (1 − share) · nll + share · mean of −log p over the tokens that may follow, and
    z · log² Z.
    """
    share, z_loss = config.objective.label_smoothing, config.objective.z_loss
    words, special = copy.model.classes or few.objective.vocab_size, config.special_tokens
    may_follow = [*range(words), *([words + special.index(END)] if END in special else [])]
    losses, n_targets = [], [batch.n_targets for batch in few.first]
    for batch in few.first:
        asked = batch.targets != IGNORED
        logits = batch.target_logits(copy.network(*batch.inputs))[asked]
        log_p = logits.log_softmax(-1)
        nll = -log_p[torch.arange(len(log_p)), batch.targets[asked]]
        spread = -log_p[:, may_follow].mean(-1) if share else 0.0
        normaliser = logits.exp().sum(-1).log() ** 2 if z_loss else 0.0
        losses.append(((1.0 - share) * nll + share * spread + z_loss * normaliser).sum())
    divided = [loss / n for loss, n in zip(losses, n_targets, strict=True) if n]
    total = torch.stack(divided).mean() if mean_per_micro_batch else torch.stack(losses).sum() / sum(n_targets)
    torch.autograd.backward(total, inputs=list(copy.network.parameters()))
    found = _gradient_of(copy)
    copy.network.zero_grad()
    return found


def check_update(config: RunConfig, small: SmallCopy, few: TruncatedBatches, tokenizer: AnyTokenizer) -> CheckResult:
    """Do rate, clipping, decay, update and moving average follow the config at the start, midway and at the end?"""
    copy, optimizer, clip = small.clone(), config.optimizer, config.train.clip or 0.0
    if clip:  # or a smaller one, that the first gradient is sure to reach
        norm = float(_gradient_of_mean_loss(config, copy, few).norm())
        clip = min(clip, norm / 2) if norm > 0.0 else clip
    stepper = _stepper(config, copy, few, clip)
    named = dict(copy.network.named_parameters())
    decayed, ema = {n for n, p in named.items() if is_decayed(optimizer.decay, n, p)}, config.train.ema
    average: dict[str, Tensor] = {}
    moments = {name: (torch.zeros_like(p), torch.zeros_like(p)) for name, p in named.items()}
    warmup, last = optimizer.warmup, config.train.steps
    assert isinstance(warmup, int)
    steps = sorted({min(max(1, step), max(1, last)) for step in (1, warmup, (warmup + last) // 2, last)})
    wrong = ""
    for count, step in enumerate(steps, start=1):
        before = {name: p.detach().clone() for name, p in named.items()}
        rate, expected = stepper.step(step).rate, scheduled_rate(optimizer, step, last)
        gradients = {name: p.grad for name, p in named.items() if p.grad is not None}
        norm = math.sqrt(sum(float(g.square().sum()) for g in gradients.values()))
        if abs(rate - expected) > UPDATE_LIMIT * optimizer.lr:
            said = Message("the learning rate at step {step:,} is {rate:.3g}, but the {schedule} schedule gives ")
            wrong = said.format(step=step, rate=rate, schedule=optimizer.schedule) + f"{expected:.3g}"
        elif clip and norm > clip * 1.001:
            said = Message("the gradient's norm is {norm:.3g} after clipping at {clip:.3g}: train.clip has no effect")
            wrong = said.format(norm=norm, clip=clip)
        else:
            wrong = _wrong_update(optimizer, copy.model, before, named, gradients, moments, decayed, expected, count)
        average = {n: ema * average.get(n, p.detach()) + (1.0 - ema) * p.detach() for n, p in named.items()}
        if wrong:
            break
    wrong = wrong or (_wrong_average(copy, stepper, average, tokenizer) if ema else "")
    clipped = Message(", clipping at {clip:g}", clip=config.train.clip) if clip else ""
    rate = optimizer.weight_decay
    decay = Message(", weight decay {weight_decay:g}", weight_decay=rate) if rate else ""
    decay += Message(", moving average {ema:g}", ema=ema) if ema else ""
    at = ", ".join(f"{step:,}" for step in steps)
    right = Message("learning rate{clipped}{decay} and weight update at steps {at} follow the config's formulas")
    return passed_if(not wrong, right.format(clipped=clipped, decay=decay, at=at) + copy.size_note, wrong)


def is_decayed(which: str, name: str, weight: Tensor) -> bool:
    """Whether weight decay touches a parameter, by its name and shape; `which` is `optimizer.decay`."""
    if "positions." in name or ".scheme." in name:
        return which in ("matrices-and-positions", "all")
    if weight.dim() < 2:
        return which == "all"
    return which != "linear-weights" or not name.endswith("embedding.weight")


def _wrong_average(copy: SmallCopy, stepper: Stepper, average: dict[str, Tensor], tokenizer: AnyTokenizer) -> str:
    """Return what is wrong with the checkpoint `ema`, which should contain this average; "" if nothing."""
    live = {name: weight.detach().clone() for name, weight in copy.network.named_parameters()}
    with TemporaryDirectory(prefix="tui-transformer-check-") as folder:
        (saved := Path(folder) / "checkpoints").mkdir()
        load_moving_average_and_save(Path(folder), copy.network, stepper.optimizer, 1, Provenance(tokenizer, {}))
        found = load_file(saved / MOVING_AVERAGE / WEIGHTS)
    for name, expected in average.items():
        room = 1e-3 * (expected - live[name]).abs().max() + 1e-12
        if not (found[name] - expected).abs().max() <= room:
            return Message("{name} in the checkpoint 'ema' is not the moving average of the weights", name=name)
    return ""


def scheduled_rate(optimizer: OptimizerConfig, step: int, steps: int) -> float:
    """The learning rate of a step, independently: linear warm-up, then the schedule."""

    def whole(duration: int | str | None, otherwise: int) -> int:
        return duration if isinstance(duration, int) else otherwise

    low, high, warmup = optimizer.min_lr, optimizer.lr, whole(optimizer.warmup, 0)
    if step <= warmup:
        return high / warmup * step
    if optimizer.schedule == "constant":
        return high
    every = whole(optimizer.decay_every, 0)
    if optimizer.schedule == "inverse-sqrt":
        return max(low, high * math.sqrt(max(warmup, 1) / step))
    if optimizer.schedule == "step":
        return max(low, high * optimizer.decay_factor ** ((step - 1) // every))
    if optimizer.schedule == "wsd":
        begin = max(warmup, round(steps * optimizer.decay_from))
        return high if step <= begin else (low * (step - begin) + high * (steps - step)) / (steps - begin)
    at = step if not every else step - 1 - (step - 1) % every
    done = (at - warmup) / max(whole(optimizer.decay_over, steps) - warmup, 1)
    done = min(max(done, 0.0), 1.0)
    if optimizer.schedule == "linear":
        return high * (1.0 - done) + low * done
    return low + (high - low) * math.cos(math.pi / 2 * done) ** 2


def _wrong_update(
    optimizer: OptimizerConfig,
    model: ModelConfig,
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
    gradients: Mapping[str, Tensor],
    moments: dict[str, tuple[Tensor, Tensor]],
    decayed: set[str],
    rate: float,
    count: int,
) -> str:
    """What is wrong with an update; "" if it matches the papers' formulas. `moments` are those of the previous update,
    replaced here; `count` is the number of updates so far.
    """
    coupled = optimizer.kind in ("adam", "sgd")
    for name, g in gradients.items():
        weight = before[name]
        matrix = weight.dim() == 2 and "layers." in name and ".scheme." not in name
        own = rate
        for setting, here in (
            ("matrix_lr", matrix),
            ("embedding_lr", name.endswith("embedding.weight")),
            ("head_lr", name.startswith("head.")),
        ):
            if here and getattr(optimizer, setting) is not None:
                own = rate / optimizer.lr * getattr(optimizer, setting)
        decay = optimizer.weight_decay if name in decayed else 0.0
        g = g + decay * weight if coupled else g
        parts = _projection_rows(model, name, len(weight)) if matrix else []
        direction, moments[name] = _direction(optimizer, g, moments[name], count, parts)
        moves, shrunk = own * direction, 0.0 if coupled else own * decay * weight
        moved, room = weight - after[name].detach(), UPDATE_LIMIT * own + 1e-12 * weight.abs()
        if bool(((moved - moves - shrunk).abs() > room).any()):
            if decay and not coupled and bool(((moved - moves).abs() <= room).all()):
                return Message("optimizer.weight_decay = {decay:g} has no effect on {name}", decay=decay, name=name)
            settings = Message("learning rate {own:.3g} and weight decay {decay:g}", own=own, decay=decay)
            wrong = Message("the update of {name} does not match {kind} with {settings}")
            return wrong.format(name=name, kind=optimizer.kind, settings=settings)
    return ""


def _direction(
    optimizer: OptimizerConfig, g: Tensor, kept: tuple[Tensor, Tensor], count: int, maps: list[int]
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """An update without its rate and decoupled decay, and the new moments: Adam (Kingma and Ba 2015, alg. 1), Lion
    (Chen et al. 2023, alg. 2), momentum (Sutskever et al. 2013), Muon (Jordan et al. 2024) as large as in Liu et al.
    2025. `maps` are the rows of each projection that is fused into a layer's matrix.
    """
    (first, second), (one, two), mu = kept, optimizer.betas, optimizer.momentum
    if optimizer.kind == "lion":
        return torch.sign(one * first + (1.0 - one) * g), (two * first + (1.0 - two) * g, second)
    if optimizer.kind == "sgd":
        first = mu * first + g
        return (g + mu * first if optimizer.nesterov else first), (first, second)
    if optimizer.kind == "muon" and maps:
        first = mu * first + (1.0 - mu) * g
        aim = mu * first + (1.0 - mu) * g if optimizer.nesterov else first
        return torch.cat([_orthogonalise(part) for part in torch.split(aim, maps)]), (first, second)
    first, second = one * first + (1.0 - one) * g, two * second + (1.0 - two) * g * g
    root = (second / (1.0 - two**count)).sqrt() + optimizer.eps
    return first / (1.0 - one**count) / root, (first, second)


def _projection_rows(model: ModelConfig, name: str, rows: int) -> list[int]:
    """The rows of each projection in a layer's matrix."""
    queries, shared = model.d_model, model.kv_width
    for joining, maps in (
        ("query_key_value", [queries, shared, shared]),
        ("key_value", [shared, shared]),
        ("feed_forward.expand", [model.d_ff] * (model.ff_expanded_width // model.d_ff)),
    ):
        if joining in name and sum(maps) == rows:
            return maps
    return [rows]


def _orthogonalise(matrix: Tensor) -> Tensor:
    """Muon's direction by a singular value decomposition: Newton–Schulz steps change nothing but singular values."""
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    values = values / max(float(values.square().sum().sqrt()), 1e-7)
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    found: Tensor = (left * values) @ right
    return 0.2 * math.sqrt(max(matrix.shape)) * found


def check_dropout(config: RunConfig, small: SmallCopy, few: TruncatedBatches) -> CheckResult:
    """Does each nonzero rate drop something in training, and nothing in evaluation and scoring?"""
    batch, words, wrong = few.first[0], few.objective.vocab_size, ""
    rates = {name: getattr(config.model, name) for name in DROPOUTS if getattr(config.model, name) > 0.0}
    with torch.random.fork_rng([]), torch.no_grad():
        copy = small.clone()
        kept = copy.network(*batch.inputs)
        in_training = copy.network.train()(*batch.inputs)
        if not torch.allclose(kept, in_training, rtol=0.0, atol=SCORE_LIMIT):
            wrong = Message("with dropout off, training mode and evaluation mode give different predictions")
        for name in rates:
            network = full_vocabulary_copy(config, words, **{name: DROPPED}).network.train()
            passes = []
            for seed in range(1, 21):  # several, as two passes in succession may happen to drop the same layer
                torch.default_generator.manual_seed(seed)
                passes.append(network(*batch.inputs))
                if not torch.equal(passes[0], passes[-1]):
                    break
            else:
                wrong = Message("model.{name} = {rates:g} has no effect: two training passes give the same predictions")
                wrong = wrong.format(name=name, rates=rates[name])
        scored = full_vocabulary_copy(config, words, **dict.fromkeys(rates, DROPPED)) if rates else small.clone()
        wrong = wrong or _wrong_scores(config, scored.network.train(), kept, batch)
    right = Message("none is set, and training mode adds none")
    if rates:
        said = ", ".join(f"{name} {rate:g}" for name, rate in rates.items())
        right = Message("{said}: active in training, off in scoring", said=said)
    return passed_if(not wrong, right + copy.size_note, wrong)


def _wrong_scores(config: RunConfig, network: Network, kept: Tensor, batch: Batch) -> str:
    """What is wrong with the scores of a batch, whose logits without dropout are `kept`; "" if nothing."""
    asked = batch.targets != IGNORED
    expected = -batch.target_logits(kept)[asked].log_softmax(-1).gather(1, batch.targets[asked][:, None])[:, 0].numpy()
    for seed in (1, 2):
        torch.default_generator.manual_seed(seed)
        length = batch.tokens.shape[1]
        scores = {Message("scoring"): score_batches(network, [batch], context=length, stride=length).nll}
        if config.task.continues:
            n = int(asked[0].sum())  # all, or those before a document ends
            text = torch.cat((batch.tokens[0, :n], batch.targets[0, n - 1 : n]))
            read = score_tokens(network, text, context=length, stride=length, batch_size=1)
            scores[Message("scoring a text")] = read.nll
        for what, nll in scores.items():
            if not abs(nll - expected[: len(nll)]).max() <= SCORE_LIMIT:
                return Message(
                    "{what} gives different losses from the network without dropout: dropout stays on in evaluation",
                    what=what,
                )
        if not network.training:
            return Message("after scoring, the network is no longer in training mode")
    return ""


def check_seed_has_effect(config: RunConfig, copy: SmallCopy, reseeded: Callable[[int], BatchStream]) -> CheckResult:
    """Do the initial weights and the first batches depend on the seed?"""
    first, other = (build_model(copy.model, copy.network.vocab_size, config.seed + i).state_dict() for i in (0, 1))

    def batches(seed: int) -> list[tuple[Tensor, ...]]:
        found = [reseeded(seed).batch(step, 0) for step in range(1, 4)]
        return [(*batch.texts, batch.targets) for batch in found]

    def alike(one: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> bool:
        return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))

    own = batches(config.seed)
    varied = not all(alike(batch, own[0]) for batch in own)  # else there is only one batch
    others = (batches(config.seed + more) for more in range(1, 5))
    if all(torch.equal(weight, other[name]) for name, weight in first.items()):
        return failed(
            Message("another seed gives the same initial weights: runs that differ only in their seed are the same run")
        )
    if varied and all(alike(batch, mine) for found in others for batch, mine in zip(found, own, strict=True)):
        return failed(Message("another seed gives the same batches in the same order, so seeds do not measure noise"))
    return passed(Message("another seed gives different initial weights and batches"))


def check_examples_against_files(config: RunConfig, task: Task, copy: SmallCopy) -> CheckResult:
    """Are examples, losses and scores those of a second implementation that reads the corpus's files?"""
    if not ExampleInverter.supports(kind := config.task.name):
        return passed(Message("no second implementation of '{kind}' to compare with", kind=kind))
    try:
        own = check_first_batches(config, task, copy.network, lambda batch: _truncate(batch, ROWS))
        small = check_small_corpus(config, task, lambda small, words: full_vocabulary_copy(small, words).network)
    except Mismatch as mismatch:
        return failed(str(mismatch))
    return passed(f"{own}; {small}")


def check_epoch_coverage(config: RunConfig, stream: BatchStream) -> CheckResult:
    """Does an epoch read each example once, in its own order, and do random windows come from all of the text?"""
    micros, random, moved = config.train.accumulation, False, 0
    total = config.train.steps * micros
    if isinstance(stream, TextBatches):
        random, stride, window = stream.stride is None, stream.stride or 1, stream.objective.window
        n, moved = (stream.tokens.numel() - window) // stride + 1, window if stream.boundary is not None else 0
        per_epoch = -(-n // (config.train.batch_size * micros))
    else:
        assert isinstance(stream, BucketedBatches)
        n = len(stream.lengths(0))
    read: list[list[Any]] = [[], []]  # (B,) examples of each batch, by epoch; windows at random places in turn
    for at in places_to_try(total + 1, 64, 0) if random else range(min(total, 2048)):
        step, micro = 1 + at // micros, at % micros
        if isinstance(stream, BucketedBatches):
            epoch, batch = stream.epoch_and_rows(step, micro)
        else:
            epoch = int(len(read[0]) > len(read[1])) if random else (step - 1) // per_epoch
            starts = stream.starts(step, micro)[:, 0]
            batch = torch.where(starts % stride == 0, starts // stride, -1).numpy()
        if epoch > 1:
            break
        read[epoch].append(batch)
    orders = [np.concatenate(batches) for batches in read if batches]
    tried, repeats = np.concatenate(orders), [np.array_equal(*pair) for pair in zip(*read, strict=False)]
    nearly_all = 1e-10 ** (1 / len(tried)) * n - moved  # of the text, except with a chance of 1e-10
    once = all(len(set(order)) == (n if i < epoch else len(order)) for i, order in enumerate(orders))
    if tried.min() < 0 or tried.max() >= n or not (once or random):
        return failed(Message("an epoch reads some examples twice or not at all, or reads outside the data"))
    if random and min(n - tried.min(), 1 + tried.max()) < nearly_all:
        return failed(Message("random windows come from only a part of the text"))
    if len(repeats) >= 20 and 2 * sum(repeats) > len(repeats) and n >= 100 * max(1, moved):  # not by chance
        return failed(Message("later batches repeat earlier ones"))
    how = Message("windows from all of the text") if random else Message("each example once per epoch, in a new order")
    return passed(Message("{how} ({n:,} micro-batches tried)", how=how, n=sum(map(len, read))))
