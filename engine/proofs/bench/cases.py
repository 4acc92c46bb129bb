"""Benchmark cases: each builds contenders from one config on one device."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor
from torch.nn import functional as F

from engine.base.language import Message, tr
from engine.config.schema import RunConfig
from engine.config.visibility import Visibility
from engine.data.loader import TextBatches, training_batches
from engine.data.objectives import make_objective
from engine.evaluation.metrics import score_tokens
from engine.generation.sampling import Sampling, stream_batch
from engine.model.attention import AttentionCall, softmax_attention
from engine.model.decoding import Predictor
from engine.model.devices import keep_memory
from engine.model.linear_attention import linear_attention
from engine.model.numerics import set_fp32_matmul
from engine.model.positions import Positions, PositionScheme
from engine.model.transformer import build_model
from engine.proofs.bench.measure import Contenders, Throughput, matmul_token_rate, time_interleaved
from engine.proofs.bench.peers import WRITERS, bare_training_step, peer
from engine.tasks.task import evaluation_batch
from engine.training.assemble import assemble
from engine.training.step import Stepper

VOCABULARY = 65
WRITTEN = 500  # tokens of a sample
LENGTHS = (512, 1024, 2048, 4096)  # tokens of an attention
PIECE = 25  # steps between two checkpoints
OURS = "tui-transformer"
# Name of a precision here → (train.precision, train.fp32_matmul).
PRECISIONS = {"fp32": ("fp32", "exact"), "fp32-fast": ("fp32", "fast"), "bf16": ("bf16", "exact")}


@dataclass(frozen=True)
class CaseResult:
    """One case's speeds, ours first; `limit` is what the machine's matrix products alone would allow, where known."""

    case: str
    setting: str
    unit: str
    speeds: Sequence[Throughput]
    limit: float | None = None


@dataclass(frozen=True)
class BenchmarkSpec:
    """What to time, and where; `precisions` are names from `PRECISIONS`, for training."""

    config: RunConfig
    precisions: Sequence[str]
    against: Sequence[str]
    device: torch.device
    threads: int
    rounds: int  # turns per contender
    seconds: float  # minimum length of a turn
    report: Callable[[str], None] = lambda _: None  # called with what is timed

    @property
    def peers(self) -> Sequence[str]:
        """Return the peers; none for a network with limited attention, as peers attend to all tokens."""
        return self.against if self.config.model.distinct_attentions == ["global"] else ()

    def resolved(self, config: RunConfig, precision: str) -> RunConfig:
        data = config.dump()
        data["train"]["precision"], data["train"]["fp32_matmul"] = PRECISIONS[precision]
        data["train"]["threads"] = self.threads
        config = RunConfig.model_validate(data)
        return config.resolved(vocab_size=VOCABULARY, threads=self.threads, train_tokens=1_000_000)

    def random_batches(self, config: RunConfig) -> TextBatches:
        tokens = torch.randint(VOCABULARY, (1_000_000,), generator=torch.Generator().manual_seed(0))
        return training_batches(tokens, config, make_objective(config, VOCABULARY), self.device)

    def stepper(self, config: RunConfig) -> Stepper:
        model = build_model(config.model, VOCABULARY, config.seed, self.device)
        return Stepper(config, model, self.random_batches(config))

    def time(self, contenders: Contenders) -> list[Throughput]:
        return time_interleaved(
            contenders, rounds=self.rounds, seconds=self.seconds, device=self.device, report=self.report
        )

    def configure_process(self) -> None:
        torch.set_num_threads(self.threads)
        keep_memory()


def training(spec: BenchmarkSpec) -> Iterator[CaseResult]:
    """Time whole optimizer steps in tokens per second: ours as a run takes them, peers' in a bare loop."""
    device = spec.device
    for precision in spec.precisions:
        spec.configure_process()
        config = spec.resolved(spec.config, precision)
        vocabulary = config.model.vocab_size or VOCABULARY
        set_fp32_matmul(config.train.fp32_matmul)
        stepper = spec.stepper(config)
        contenders = {OURS: step_callable(stepper)}
        for name in spec.peers:
            network = peer(name, config, vocabulary, device)
            contenders[name] = bare_training_step(network, config, stepper.batches, config.train.precision, device)
        spec.report(tr("measuring the limit set by matrix products"))
        limit = matmul_token_rate(config, vocabulary, config.train.precision, device)
        speeds = spec.time(contenders)
        set_fp32_matmul("exact")
        yield CaseResult("training", precision, "tokens/s", speeds, limit)


def step_callable(stepper: Stepper, steps_done: int = 0) -> Callable[[], int]:
    def work() -> int:
        nonlocal steps_done
        steps_done += 1
        return stepper.step(steps_done).n_targets

    return work


def trainer_overhead(spec: BenchmarkSpec) -> Iterator[CaseResult]:
    """Time a run's steps, with metrics and a checkpoint every 25 steps, against a bare loop of its model."""

    def piece(step: Callable[[], object]) -> Callable[[], int]:
        def work() -> int:
            for _ in range(PIECE):
                step()
            return PIECE

        return work

    for precision in spec.precisions:
        data = spec.config.dump()
        data["checkpoint"]["every"], data["evaluation"]["every"], data["evaluation"]["sample_every"] = PIECE, 0, 0
        data["train"]["steps"] = 10**6
        data["train"].pop("epochs", None)
        config = spec.resolved(RunConfig.model_validate(data), precision)
        model = build_model(config.model, VOCABULARY, config.seed, spec.device)
        bare = bare_training_step(model, config, spec.random_batches(config), config.train.precision, spec.device)
        with TemporaryDirectory(prefix="tui-transformer-bench-") as folder:
            ready = assemble(config, runs_dir=Path(folder), device=str(spec.device))
            ready.trainer.begin()
            speeds = spec.time({Message("trainer"): piece(ready.trainer.advance), Message("bare loop"): piece(bare)})
            ready.trainer.writer.close("stopped")
        yield CaseResult("trainer", precision, "steps/s", speeds)


def evaluation(spec: BenchmarkSpec) -> Iterator[CaseResult]:
    """Time fp32 scoring of a text, in tokens per second; peers in a bare loop, no gradients, as many windows."""
    spec.configure_process()
    config, device = spec.resolved(spec.config, "fp32"), spec.device
    batch, context = evaluation_batch(config), config.model.context_length
    text = torch.randint(VOCABULARY, (256 * context + 1,), generator=torch.Generator().manual_seed(0)).to(device)
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

    contenders = {OURS: ours} | {name: theirs(name) for name in spec.peers}
    setting = Message("fp32, {batch} windows at once", batch=batch)
    yield CaseResult("evaluation", setting, "tokens/s", spec.time(contenders))


def sampling(spec: BenchmarkSpec) -> Iterator[CaseResult]:
    """Time sampling 500 tokens after one, in tokens per second, fp32, with a cache; peers too, if they have one."""
    data, device = spec.config.dump(), spec.device
    data["model"]["context_length"] = WRITTEN + 140
    for batch in (1, 32):  # texts written at once
        spec.configure_process()
        config = spec.resolved(RunConfig.model_validate(data), "fp32")
        start = torch.zeros(batch, 1, dtype=torch.long, device=device)
        model = build_model(config.model, VOCABULARY, config.seed, device).eval()
        contenders = {OURS: _our_sampling(Predictor(model), config, start)}
        contenders |= {name: _peer_sampling(name, config, start) for name in spec.peers if name in WRITERS}
        yield CaseResult("sampling", Message("fp32, batch {batch}", batch=batch), "tokens/s", spec.time(contenders))


def _our_sampling(writer: Predictor, config: RunConfig, start: Tensor) -> Callable[[], int]:
    how = Sampling(config.generation.temperature, config.generation.top_k, config.generation.top_p)
    context, batch = config.model.context_length, len(start)
    return lambda: batch * sum(1 for _ in stream_batch(writer, start, WRITTEN, how, range(batch), context=context))


def _peer_sampling(name: str, config: RunConfig, start: Tensor) -> Callable[[], int]:
    write = WRITERS[name](config, config.model.vocab_size or VOCABULARY, start.device)

    def work() -> int:
        with torch.inference_mode():
            write(start, WRITTEN)
        return len(start) * WRITTEN

    return work


def attention(spec: BenchmarkSpec) -> Iterator[CaseResult]:
    """Time one attention's forward and backward, 4 heads of 64, batch 1: full (torch's kernel), window 16, linear."""
    for length in LENGTHS:
        spec.configure_process()
        at, nothing = Positions.consecutive(length, 0, spec.device), PositionScheme()
        q, k, v = (torch.randn(1, 4, length, 64, device=spec.device, requires_grad=True) for _ in range(3))
        full, window = (AttentionCall(q, k, at, at, see, nothing) for see in (Visibility(True), Visibility(True, 16)))
        kinds: dict[str, Callable[[], Tensor]] = {
            "full": partial(softmax_attention, full, v, "sdpa"),
            "window 16": partial(softmax_attention, window, v, "banded"),
            Message("window 16, dense mask"): partial(softmax_attention, window, v, "sdpa"),
            "linear": partial(linear_attention, q, k, v, at, nothing, causal=True),
        }

        def step(compute: Callable[[], Tensor], length: int = length) -> int:
            torch.autograd.backward(compute().sum())
            return length

        contenders = {name: partial(step, compute) for name, compute in kinds.items()}
        yield CaseResult("attention", f"T = {length:,}", "tokens/s", spec.time(contenders))


CASES: dict[str, Callable[[BenchmarkSpec], Iterator[CaseResult]]] = {
    Message("training"): training,
    "trainer": trainer_overhead,
    Message("evaluation"): evaluation,
    Message("sampling"): sampling,
    Message("attention"): attention,
}
