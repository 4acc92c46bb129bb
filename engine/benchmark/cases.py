"""What is timed: each case makes contenders of one config on one device."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor
from torch.nn import functional as F

from engine.benchmark.limit import products_per_second
from engine.benchmark.measure import Contender, Speed, interleaved
from engine.benchmark.peers import WRITERS, peer, training_step
from engine.config.schema import RunConfig
from engine.data.loader import TextBatches, training_batches
from engine.data.objectives import make_objective
from engine.evaluation.metrics import score_tokens
from engine.evaluation.scorers import evaluation_batch
from engine.generation.sampling import DecoderPredictor, Sampling, stream_batch
from engine.model.attention import softmax_attention
from engine.model.decoding import simple
from engine.model.linear_attention import linear_attention
from engine.model.positions import Positions, PositionScheme
from engine.model.transformer import DecoderLM, build_model
from engine.model.visibility import Visibility
from engine.training.assemble import assemble
from engine.training.devices import keep_memory
from engine.training.numerics import set_fp32_matmul
from engine.training.step import Stepper

VOCABULARY = 65
WRITTEN = 500  # tokens of a sample
SCORED = 256  # windows of a text
BATCHES = (1, 32)  # texts written at once
LENGTHS = (512, 1024, 2048, 4096)  # tokens of an attention
PIECE = 25  # steps between two checkpoints
OURS = "tui-transformer"
# Name of a precision here → (train.precision, train.fp32_matmul).
PRECISIONS = {"fp32": ("fp32", "exact"), "fp32-fast": ("fp32", "fast"), "bf16": ("bf16", "exact")}


@dataclass(frozen=True)
class Measured:
    """One case's result.

    Args:
        case: e.g. "training".
        setting: precision or length.
        unit: of the speeds.
        speeds: one a contender, ours first.
        limit: units a second that the machine's matrix products alone would allow, where that is known.
    """

    case: str
    setting: str
    unit: str
    speeds: Sequence[Speed]
    limit: float | None = None


@dataclass(frozen=True)
class Effort:
    """How much time a benchmark takes.

    Args:
        rounds: turns of each contender.
        seconds: the least that one turn takes.
        said: told what is being timed.
    """

    rounds: int
    seconds: float
    said: Callable[[str], None] = lambda _: None


def _batches(config: RunConfig, device: torch.device) -> TextBatches:
    tokens = torch.randint(VOCABULARY, (1_000_000,), generator=torch.Generator().manual_seed(0))
    return training_batches(tokens, config, make_objective(config, VOCABULARY), device)


def _resolved(config: RunConfig, precision: str, threads: int) -> RunConfig:
    data = config.dump()
    data["train"]["precision"], data["train"]["fp32_matmul"] = PRECISIONS[precision]
    data["train"]["threads"] = threads
    model = RunConfig.model_validate(data)
    return model.resolved(vocab_size=VOCABULARY, threads=threads, train_tokens=1_000_000)


def training(
    config: RunConfig, precision: str, against: Sequence[str], device: torch.device, threads: int, effort: Effort
) -> Measured:
    """Tokens a second of whole optimizer steps: ours as a run takes them, peers' in a bare loop.

    Every contender has the same process settings: threads, matrix-product rounding, allocator.
    """
    torch.set_num_threads(threads)
    keep_memory()
    config = _resolved(config, precision, threads)
    vocabulary = config.model.vocab_size or VOCABULARY
    set_fp32_matmul(config.train.fp32_matmul)
    batches = _batches(config, device)
    stepper = Stepper(config, build_model(config.model, VOCABULARY, config.seed, device), batches)
    taken = 0

    def ours() -> int:
        nonlocal taken
        taken += 1
        return stepper.take(taken).n_targets

    contenders = [Contender(OURS, ours)]
    for name in against:
        network = peer(name, config, vocabulary, device)
        contenders.append(Contender(name, training_step(network, config, batches, config.train.precision, device)))
    effort.said("the limit of matrix products")
    limit = products_per_second(config, vocabulary, config.train.precision, device)
    speeds = interleaved(contenders, rounds=effort.rounds, seconds=effort.seconds, device=device, said=effort.said)
    set_fp32_matmul("exact")
    return Measured("training", precision, "tokens/s", speeds, limit)


def overhead(config: RunConfig, precision: str, device: torch.device, threads: int, effort: Effort) -> Measured:
    """A run's steps with its metrics and checkpoints, a checkpoint each 25 steps, beside a bare loop of its model."""
    data = config.dump()
    data["checkpoint"]["every"], data["evaluation"]["every"], data["evaluation"]["sample_every"] = PIECE, 0, 0
    data["train"]["steps"] = 10**6
    data["train"].pop("epochs", None)
    config = _resolved(RunConfig.model_validate(data), precision, threads)
    batches = _batches(config, device)
    bare = training_step(
        build_model(config.model, VOCABULARY, config.seed, device), config, batches, config.train.precision, device
    )
    with TemporaryDirectory(prefix="tui-transformer-bench-") as folder:
        ready = assemble(config, runs_dir=Path(folder), device=str(device))
        ready.trainer.begin()
        step = ready.trainer.advance

        def piece(step: Callable[[], object]) -> Callable[[], int]:
            def work() -> int:
                for _ in range(PIECE):
                    step()
                return PIECE

            return work

        contenders = [Contender("trainer", piece(step)), Contender("bare loop", piece(bare))]
        speeds = interleaved(contenders, rounds=effort.rounds, seconds=effort.seconds, device=device, said=effort.said)
        ready.trainer.writer.close("stopped")
    return Measured("trainer", precision, "steps/s", speeds)


def sampling(
    config: RunConfig, batch: int, against: Sequence[str], device: torch.device, threads: int, effort: Effort
) -> Measured:
    """Tokens a second of 500 tokens drawn after one, in fp32, with a cache; peers that have one do the same."""
    torch.set_num_threads(threads)
    keep_memory()
    data = config.dump()
    data["model"]["context_length"] = WRITTEN + 140
    config = _resolved(RunConfig.model_validate(data), "fp32", threads)
    how = Sampling(config.generation.temperature, config.generation.top_k, config.generation.top_p)
    start = torch.zeros(batch, 1, dtype=torch.long, device=device)
    model = build_model(config.model, VOCABULARY, config.seed, device).eval()
    assert isinstance(model, DecoderLM)

    def ours(writer: DecoderPredictor) -> Callable[[], int]:
        context = config.model.context_length
        return lambda: batch * sum(1 for _ in stream_batch(writer, start, WRITTEN, how, range(batch), context=context))

    def theirs(name: str) -> Callable[[], int]:
        write = WRITERS[name](config, config.model.vocab_size or VOCABULARY, device)

        def work() -> int:
            with torch.inference_mode():
                write(start, WRITTEN)
            return batch * WRITTEN

        return work

    contenders = [Contender(OURS, ours(DecoderPredictor(model)))]
    if device.type == "cuda" and simple(model):
        contenders.append(Contender(f"{OURS}, as a graph", ours(DecoderPredictor(model, fixed=True))))
    contenders += [Contender(name, theirs(name)) for name in against if name in WRITERS]
    speeds = interleaved(contenders, rounds=effort.rounds, seconds=effort.seconds, device=device, said=effort.said)
    return Measured("sampling", f"fp32, batch {batch}", "tokens/s", speeds)


def evaluation(
    config: RunConfig, against: Sequence[str], device: torch.device, threads: int, effort: Effort
) -> Measured:
    """Tokens a second of scoring a text in fp32; peers in a bare loop without gradients over as many windows."""
    torch.set_num_threads(threads)
    keep_memory()
    config = _resolved(config, "fp32", threads)
    batch, context = evaluation_batch(config), config.model.context_length
    text = torch.randint(VOCABULARY, (SCORED * context + 1,), generator=torch.Generator().manual_seed(0)).to(device)
    model = build_model(config.model, VOCABULARY, config.seed, device)

    def ours() -> int:
        return len(score_tokens(model, text, context=context, stride=context, batch_size=batch).nll)

    def theirs(name: str) -> Callable[[], int]:
        network = peer(name, config, config.model.vocab_size or VOCABULARY, device).eval()
        rows, targets = text[:-1].view(-1, context), text[1:].view(-1, context)

        def work() -> int:
            with torch.inference_mode():
                for inputs, wanted in zip(torch.split(rows, batch), torch.split(targets, batch), strict=True):
                    logits = network(inputs).float()
                    F.cross_entropy(logits.flatten(0, 1), wanted.flatten()).item()
            return rows.numel()

        return work

    contenders = [Contender(OURS, ours), *(Contender(name, theirs(name)) for name in against)]
    speeds = interleaved(contenders, rounds=effort.rounds, seconds=effort.seconds, device=device, said=effort.said)
    return Measured("evaluation", f"fp32, {batch} windows at once", "tokens/s", speeds)


def attention(length: int, device: torch.device, threads: int, effort: Effort) -> Measured:
    """Forward and backward of one attention, 4 heads of 64, batch 1: full (torch's kernel), window 16, linear."""
    torch.set_num_threads(threads)
    keep_memory()
    at, nothing = Positions.consecutive(length, 0, device), PositionScheme()
    q, k, v = (torch.randn(1, 4, length, 64, device=device, requires_grad=True) for _ in range(3))

    def softmax(see: Visibility, backend: str) -> Callable[[], Tensor]:
        return lambda: softmax_attention(q, k, v, at, at, see, nothing, backend=backend)

    window = Visibility(True, 16)
    kinds: dict[str, Callable[[], Tensor]] = {
        "full": softmax(Visibility(True), "sdpa"),
        "window 16": softmax(window, "banded"),
        "window 16, dense mask": softmax(window, "sdpa"),
        "linear": lambda: linear_attention(q, k, v, at, nothing, causal=True),
    }

    def step(compute: Callable[[], Tensor]) -> Callable[[], int]:
        def work() -> int:
            torch.autograd.backward(compute().sum())
            return length

        return work

    contenders = [Contender(name, step(compute)) for name, compute in kinds.items()]
    speeds = interleaved(contenders, rounds=effort.rounds, seconds=effort.seconds, device=device, said=effort.said)
    return Measured("attention", f"T = {length:,}", "tokens/s", speeds)


@dataclass(frozen=True)
class Wanted:
    """What to time, and where.

    Args:
        config: how large.
        precisions: names from `PRECISIONS`, for training.
        against: peers.
        device: to compute on.
        threads: of the CPU.
        effort: how long.
    """

    config: RunConfig
    precisions: Sequence[str]
    against: Sequence[str]
    device: torch.device
    threads: int
    effort: Effort


def _peers(w: Wanted) -> Sequence[str]:
    """Peers attend to all tokens, so they are no comparison for a network that does not."""
    return w.against if w.config.model.attention == "global" else ()


def _trainings(w: Wanted) -> Iterator[Measured]:
    return (training(w.config, p, _peers(w), w.device, w.threads, w.effort) for p in w.precisions)


def _overheads(w: Wanted) -> Iterator[Measured]:
    return (overhead(w.config, p, w.device, w.threads, w.effort) for p in w.precisions)


def _evaluations(w: Wanted) -> Iterator[Measured]:
    yield evaluation(w.config, _peers(w), w.device, w.threads, w.effort)


def _samplings(w: Wanted) -> Iterator[Measured]:
    return (sampling(w.config, batch, _peers(w), w.device, w.threads, w.effort) for batch in BATCHES)


def _attentions(w: Wanted) -> Iterator[Measured]:
    return (attention(length, w.device, w.threads, w.effort) for length in LENGTHS)


CASES: dict[str, Callable[[Wanted], Iterator[Measured]]] = {
    "training": _trainings,
    "trainer": _overheads,
    "evaluation": _evaluations,
    "sampling": _samplings,
    "attention": _attentions,
}
