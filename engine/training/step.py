"""One optimizer step: micro-batches, gradients, clipping, learning rate, update. Nothing is written or printed here."""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from engine.base.language import Message
from engine.base.seeds import seed_for
from engine.config.schema import RunConfig
from engine.config.schemes import learning_rate
from engine.config.tasks import END
from engine.data.loader import BatchStream
from engine.data.objectives import IGNORED, Batch
from engine.model.dropout import Dropout, seed_generators
from engine.model.numerics import Numerics, autocast
from engine.model.torch_private import has_forward_hooks
from engine.model.transformer import Network
from engine.ranks import SINGLE, STEP, Ranks, TreeSum
from engine.runs.control import Diverged
from engine.training.optimizer import EMA, make_optimizer
from engine.training.recording import MAX_GRAPHS, RecordedPass, RecordedUpdate, can_be_recorded

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StepResult:
    """The result of one optimizer step. Its tensors stay on the device: reading them waits for it."""

    step: int
    totals: list[Tensor]  # Σ nll over the targets of each piece, nats
    n_targets: int
    rate: float
    norm: Tensor  # of the gradient before clipping
    ranks: int = 1  # that the totals are from, in equal numbers

    def read(self) -> tuple[float, float]:
        """Return (Σ nll in nats, gradient norm); raise `Diverged` if one is not finite: nothing was updated then."""
        return next(read_all([self]))


def read_all(results: Sequence[StepResult]) -> Iterator[tuple[float, float]]:
    """Read each result in order, waiting for the device only once; raise `Diverged` at the first that is not finite."""
    on_device = [number for result in results for number in (*result.totals, result.norm.to(torch.float32))]
    numbers = iter(torch.stack(on_device).tolist())
    for result in results:
        *totals, norm = (next(numbers) for _ in (*result.totals, result.norm))
        nll, step = math.fsum(totals), result.step
        for what, value in ((Message("the loss"), nll), (Message("a gradient"), norm)):
            if not math.isfinite(value):
                text = Message(
                    "{what} is NaN or infinite at step {step}; the last good state is step {saved}",
                    what=what,
                    step=step,
                    saved=step - 1,
                )
                raise Diverged(text + _failed_rank_note(result, totals))
        yield nll, norm


def _failed_rank_note(result: StepResult, totals: Sequence[float]) -> str:
    at = next((i for i, total in enumerate(totals) if not math.isfinite(total)), None)
    if result.ranks == 1 or at is None:
        return ""
    return Message("; first on rank {rank}", rank=at * result.ranks // len(totals))


class Stepper:
    """Takes optimizer steps; step n is the same at any time and in any process.

    The config is resolved, the model fp32, on its device, in training mode. With `deferred`, by default on CUDA,
    results are read later, so that neither the host nor the device waits for the other: a step that is not finite
    disables its own update and all later ones on the device, and the next step's batches are made while this one is
    computed.
    """

    def __init__(
        self,
        config: RunConfig,
        model: Network,
        batches: BatchStream,
        *,
        deferred: bool | None = None,
        ranks: Ranks = SINGLE,
        numerics: Numerics | None = None,
    ) -> None:
        self.config, self.model, self.batches, self.ranks = config, model, batches, ranks
        self.device = next(model.parameters()).device
        numerics = numerics or Numerics.choose(config, self.device)
        self.precision = numerics.precision
        self.compiles, self.records_steps = numerics.compiles, numerics.records_steps  # unless it turns out to fail
        for stack in model.stacks:
            stack.checkpointing = config.train.activation_checkpointing
        # With "always", CUDA replays steps of one shape as graphs to save launches.
        mode = "reduce-overhead" if self.device.type == "cuda" and config.train.compile == "always" else None
        self._forward: Callable[..., Tensor] = torch.compile(model, mode=mode) if self.compiles else model
        self._recordings: dict[torch.Size, RecordedPass] = {}
        self._replayed: RecordedPass | None = None  # the pass whose gradients are now the parameters' `grad`
        self._warm = False  # whether an update has been made
        # The number of targets and the learning rate of the step, where recordings read them; plain steps also read
        # them there, so that results agree to the last bit.
        self._scored, self._rate = (
            torch.ones((), device=self.device) if self.records_steps else None for _ in range(2)
        )
        self.overlaps = ranks.size > 1 and config.train.exact_sum == "off"
        self._overlapped: DistributedDataParallel | None = None  # made in the first step: all ranks make it together
        self._parameters = list(model.parameters())
        self._smoothing, self._z_loss = config.objective.label_smoothing, config.objective.z_loss
        rates = (module.p for module in model.modules() if isinstance(module, Dropout))
        self._uses_dropout = any(rate > 0.0 for rate in (config.model.attention_dropout, *rates))
        self._ema = config.train.ema
        self.optimizer = make_optimizer(model, config.optimizer)
        if self._ema:
            for group in self.optimizer.param_groups:
                group["keeps"] = (*group["keeps"], EMA)
        self.deferred = self.device.type == "cuda" if deferred is None else deferred
        self._found_inf = torch.zeros((), device=self.device)  # 1 after a step that was not finite
        if self.deferred:
            self.optimizer.found_inf = self._found_inf  # type: ignore[attr-defined]  # as torch.amp.GradScaler does
        self._prefetched: tuple[int, list[Batch]] = (0, [])  # the batches of an upcoming step

    def step(self, step: int, *, pieces: int = 1, between: Callable[[], None] = lambda: None) -> StepResult:
        """Take optimizer step `step`, counted from 1, each micro-batch in `pieces` parts; the gradient stays that of
        the whole. `between` is called between micro-batches, and may raise to drop the step.

        Nothing is updated where the loss or a gradient is not finite (`Diverged`, where deferred raised by
        `StepResult.read`) or a step does not fit (`torch.OutOfMemoryError`).
        """
        if self.ranks.leads:
            self.ranks.broadcast_instruction(STEP, step, pieces)
        totals, n_targets = self._accumulate_gradients(step, pieces, between)
        rate = learning_rate(self.config.optimizer, step, self.config.train.steps)

        def result(norm: Tensor) -> StepResult:
            return StepResult(step, totals, n_targets, rate, norm, self.ranks.size)

        if self.deferred and totals:
            self._disable_unless_finite(torch.stack(totals))
        check = self._disable_unless_finite if self.deferred else lambda norm: result(norm).read()
        norm = self._run_or_replay(partial(self._update, rate if self._rate is None else self._rate.fill_(rate), check))
        if self.deferred and step < self.config.train.steps:
            with suppress(torch.OutOfMemoryError):  # this step is done; the next one tries again
                self._prefetched = (step + 1, self._micro_batches(step + 1))
        return result(norm)

    def _run_or_replay(self, update: Callable[[], Tensor]) -> Tensor:
        """Run or replay `update` and return its norm. The first call always runs it, to create optimizer state."""
        if self.deferred and self._replayed is not None and self._warm and self.records_steps:
            try:
                self._replayed.update = self._replayed.update or RecordedUpdate(update, self.optimizer)
            except RuntimeError as error:
                self._disable_recording(error)
            else:
                return self._replayed.update.replay()
        self._warm = True
        return update()

    def _update(self, rate: float | Tensor, check: Callable[[Tensor], object]) -> Tensor:
        """Clip the gradient, check its norm and update the weights; return the norm before clipping."""
        norm = nn.utils.clip_grad_norm_(self._parameters, self.config.train.clip or math.inf)
        check(norm)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["scale"]
        self.optimizer.step()
        if self._ema:
            self._update_ema()
        return norm

    def _disable_unless_finite(self, values: Tensor) -> None:
        """Disable this update and all later ones, on the device, if a value is not finite."""
        self._found_inf.copy_(torch.maximum(self._found_inf, 1.0 - torch.isfinite(values).all().float()))

    @torch.no_grad()
    def _update_ema(self) -> None:
        """Move the average of each weight, which begins as the weight after the first step. It is kept among the
        optimizer's moments, so that checkpoints have it.
        """
        share = (1.0 - self._ema) * (1.0 - self._found_inf) if self.deferred else 1.0 - self._ema
        for weight in self._parameters:
            kept = self.optimizer.state[weight]
            if EMA in kept:
                kept[EMA].lerp_(weight, share)
            elif weight.grad is not None:
                kept[EMA] = weight.detach().clone()

    def disable_compilation(self) -> None:
        self.compiles, self._forward = False, self.model
        self.optimizer.zero_grad(set_to_none=True)

    def _micro_batches(self, step: int) -> list[Batch]:
        return [
            self.batches.batch(step, micro)
            for micro in self.ranks.own_micro_batch_range(self.config.train.accumulation)
        ]

    def _accumulate_gradients(self, step: int, pieces: int, between: Callable[[], None]) -> tuple[list[Tensor], int]:
        """Sum the gradients over all micro-batches, in the same order for any number of ranks."""
        self.optimizer.zero_grad(set_to_none=True)
        (made_for, micro_batches), self._prefetched = self._prefetched, (0, [])
        if made_for != step:
            micro_batches = self._micro_batches(step)
        targets = self.ranks.all_gather([batch.n_targets for batch in micro_batches])
        scored, mine = sum(targets), self.ranks.own_micro_batch_range(len(targets))
        if self.overlaps:
            self._overlapped = self._overlapped or self.ranks.wrap_data_parallel(self.model)
            return self._accumulate_gradients_overlapped(
                self._overlapped, step, mine, micro_batches, pieces, scored
            ), scored
        tree, totals = TreeSum(self._parameters, mine.start), list[Tensor]()
        self._replayed = None
        if pieces > 1 or not self.records_steps:
            self._recordings.clear()  # frees their memory for the plain steps
        recorded = pieces == 1 and all(batch.n_targets and can_be_recorded(batch) for batch in micro_batches)
        divisor = scored if self._scored is None else self._scored.fill_(scored)

        def own() -> None:
            added = 0  # micro-batches whose gradients are in the parameters' `grad`
            for micro, batch in zip(mine, micro_batches, strict=True):
                if micro > mine.start:
                    between()
                seed = seed_for(self.config.seed, "dropout", step, micro)
                recording = self._find_or_record_pass(batch) if recorded and self.records_steps else None
                if self._uses_dropout:
                    seed_generators(self.device, seed)
                if recording is not None:
                    total, grads = recording.replay(batch)
                    totals.append(total.clone())  # it is read later, but the next replay overwrites it
                    if len(targets) == 1:
                        self._replayed = recording
                    tree.add(1, grads if len(mine) == 1 else [None if grad is None else grad.clone() for grad in grads])
                    continue
                for piece in batch.chunk(pieces) if batch.n_targets else ():  # an epoch's last step may have no more
                    totals.append(self._backward(piece, divisor))
                added += 1
                if pieces == 1 and micro % 2 == 0 and micro + 1 < mine.stop:
                    continue  # autograd adds the next one to it, which is what the tree would do
                tree.add(added, [parameter.grad for parameter in self._parameters])
                added = 0
                self.optimizer.zero_grad(set_to_none=True)

        self.ranks.run_collectively(own)
        for parameter, grad in zip(self._parameters, self.ranks.sum_over_ranks(tree, targets), strict=True):
            parameter.grad = grad
        return self.ranks.gather_losses(totals, pieces * len(micro_batches)), scored

    def _backward(self, piece: Batch, scored: int | Tensor) -> Tensor:
        """Add the gradient of a piece to the parameters' `grad`; return Σ nll over its targets."""
        total, aim = self._nll_and_training_loss(piece)
        # Divided by the tokens of the whole step: micro-batches are weighted by tokens, not equally.
        torch.autograd.backward(aim / scored)
        return total.detach()

    def _find_or_record_pass(self, batch: Batch) -> RecordedPass | None:
        """Return the recorded pass for batches of this shape; None if it cannot be recorded."""
        key = batch.tokens.shape
        if key not in self._recordings:
            if len(self._recordings) == MAX_GRAPHS or any(has_forward_hooks(module) for module in self.model.modules()):
                self._recordings.clear()
                self.records_steps = False
                return None
            try:
                assert self._scored is not None
                work = partial(self._backward, scored=self._scored)
                self._recordings[key] = RecordedPass(work, batch, self._parameters)
            except RuntimeError as error:  # a plain step may still fit, or fail with a clearer message
                self._disable_recording(error)
                self.optimizer.zero_grad(set_to_none=True)
                return None
        return self._recordings[key]

    def _disable_recording(self, error: RuntimeError) -> None:
        log.warning("continuing with plain steps, as recording one failed: %s", error)
        self.records_steps = False

    def _accumulate_gradients_overlapped(
        self,
        forward: DistributedDataParallel,
        step: int,
        mine: range,
        micro_batches: list[Batch],
        pieces: int,
        scored: int,
    ) -> list[Tensor]:
        """Average gradients over ranks during the last backward pass, which none may leave; return the losses."""
        parts = [
            (micro, piece, self.ranks.size / scored)
            for micro, batch in zip(mine, micro_batches, strict=True)
            for piece in batch.chunk(pieces)
        ]
        totals = []
        for micro, piece, weight in parts or [(mine.start, self.batches.batch(1, 0), 0.0)]:  # every rank must take part
            if self._uses_dropout:
                seed_generators(self.device, seed_for(self.config.seed, "dropout", step, micro))
            with nullcontext() if not parts or piece is parts[-1][1] else forward.no_sync():
                total, aim = self._nll_and_training_loss(piece, forward)
                torch.autograd.backward(aim * weight)
            totals.append(total.detach() * bool(weight))
        self.ranks.run_collectively(lambda: None)
        return self.ranks.gather_losses(totals, pieces * len(micro_batches))

    def _nll_and_training_loss(
        self, piece: Batch, forward: Callable[..., Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return Σ nll over the targets, and what is minimised. A separate function, so that only the graph holds the
        logits during the backward pass: the largest tensors of a model with a large vocabulary.
        """
        with autocast(self.precision, self.device):
            logits = piece.target_logits((forward or self._forward)(*piece.inputs).float())
        # cross_entropy in its two parts: smoothing also needs the first
        log_p, targets = logits.flatten(0, 1).log_softmax(-1), piece.targets.flatten()
        total = F.nll_loss(log_p, targets, ignore_index=IGNORED, reduction="sum")
        aim = total if not self._smoothing else self._smoothed_loss(total, log_p, targets)
        if self._z_loss:  # over targets only
            log_z = logits.flatten(0, 1).logsumexp(-1)
            aim = aim + self._z_loss * log_z.square().dot((targets != IGNORED).to(log_z.dtype))
        return total, aim

    def _smoothed_loss(self, total: Tensor, log_p: Tensor, targets: Tensor) -> Tensor:
        """Σ over targets of −Σ q log p; q moves `label_smoothing` to all tokens that may follow, so none to padding."""
        share, special = self._smoothing, self.config.special_tokens
        words = self.config.model.classes or self.batches.objective.vocab_size
        may_follow = log_p.new_zeros(log_p.shape[1])
        may_follow[:words] = 1.0
        if END in special:
            may_follow.narrow(0, words + special.index(END), 1).fill_(1.0)  # indexing would make the host wait
        others = log_p.mv(may_follow).dot((targets != IGNORED).to(log_p.dtype))
        return (1.0 - share) * total - share * others / (words + (END in special))
