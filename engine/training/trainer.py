"""The training loop, `Trainer.train`. No signals, no screen, no prints: it runs in a thread or a process.

State is saved only at a step boundary: optimizer step → train record → checkpoint if due → evaluation, samples, best
→ commands. A stop takes effect before the next layer and discards the unfinished part of a step or an evaluation, so
the checkpoint is that of the last boundary.
"""

import logging
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from engine.base.errors import RunTakenOver, error_message
from engine.base.language import Message
from engine.config.keys import fixed_settings
from engine.config.schema import RunConfig
from engine.evaluation.alarms import nan_verdict
from engine.model.devices import device_load, is_device_failure, keep_memory, memory_in_use
from engine.model.layers import Layer
from engine.model.numerics import make_repeatable, set_fp32_matmul
from engine.ranks import SINGLE, Ranks
from engine.runs.commands import RunCommand
from engine.runs.control import PAUSE_SLEEP, Control, Diverged, Leaking, Outcome, OutOfMemory, RankLost, StopRequested
from engine.runs.records import AverageScores, DataFacts, EvaluationScores, Summary, TrainRecord, ValidationRecord
from engine.runs.twins import loss_and_gradient_hash, scores_hash
from engine.runs.verdict import LEAK
from engine.runs.writer import DISK_FULL_ERRNOS, RunWriter
from engine.training import checkpoint
from engine.training.checkpoint import Provenance, TrainerState
from engine.training.inspector import Inspector
from engine.training.parts import RunParts
from engine.training.step import Stepper, StepResult, read_all

MOST_UNREAD = 100  # steps; results are read after this many if nothing else asks for them

log = logging.getLogger(__name__)


class Trainer:
    """Trains one model and writes one run directory, which it closes; `facts` is the content of data.json."""

    # The loop

    def train(self) -> None:
        """Train to the last step, or until `evaluation.patience` runs out."""
        resumed = self._saved_step >= 0
        self.begin()  # leak probe, self-check, checkpoint of step 0
        if resumed:
            self._evaluate_and_sample_if_due()  # what was due at the checkpoint's own step
        self._process_commands()
        while self.state.step < self.config.train.steps and not self._out_of_patience():
            self.advance()
        self._finish()  # last checkpoint, evaluation, sample; averages of the weights

    def advance(self) -> None:
        """Take one optimizer step, and do what is due after it."""
        self._step()  # batches, forward, backward, clip, learning rate, update: see `step.Stepper`
        self._log_if_due()  # here or in the step, a NaN raises `Diverged`; the weights are still the last good ones
        self._save_if_due()  # before evaluating: a resumed run evaluates again
        self._evaluate_and_sample_if_due()
        self._process_commands()  # checkpoint, pause, stop; a stop may also drop a step between two of its layers

    def __init__(
        self, parts: RunParts, facts: DataFacts, writer: RunWriter, control: Control, ranks: Ranks = SINGLE
    ) -> None:
        self.config, self.model, self.task, self.sampler = parts.config, parts.model, parts.task, parts.sampler
        self.device, self.batches = parts.device, parts.batches
        self.writer, self.control, self.ranks = writer, control, ranks
        self.scorer = self.task.scorer(self.config, self.device)
        self.scorer.ranks = ranks
        self.stepper = Stepper(self.config, self.model, self.batches, ranks=ranks, numerics=parts.numerics)
        self._provenance = Provenance(self.task.tokenizer, fixed_settings(parts.config))
        self.state = TrainerState()
        self._ema: EvaluationScores | None = None  # of the weights' moving average, at the end
        self._saved_step = -1
        self._compiled = False
        self._unread: list[StepResult] = []  # steps whose results are not read yet
        self._unread_seconds = 0.0
        self.inspector = Inspector(parts, facts, writer)

    # One step

    def _step(self) -> None:
        config, step = self.config, self.state.step + 1
        first = self.stepper.compiles and not self._compiled
        if first:
            self.writer.update_status(phase="compiling")
        started = time.perf_counter()
        while True:
            try:
                result = self.stepper.step(step, pieces=self.state.pieces, between=self._raise_if_stopping)
                break
            except torch.OutOfMemoryError as error:
                self._split_batch(step, error)
            except RuntimeError as error:
                if not first or config.train.compile == "always":
                    raise
                first = False
                self.stepper.disable_compilation()
                said = " ".join(str(error).split())[:200]
                said = Message(
                    "compilation failed, continuing uncompiled: {name}: {said}", name=type(error).__name__, said=said
                )
                self.writer.event("compile", said)
                self.inspector.update_recorded_build(compiled=False)  # so that it stays uncompiled when it is resumed
                self.writer.update_status(phase="training")
        if first:
            self._compiled = True
            self.writer.update_status(phase="training")
        self.state.step = step
        self._unread.append(result)
        self._unread_seconds += time.perf_counter() - started

    def _split_batch(self, step: int, error: Exception) -> None:
        """Halve what is computed at once, if enabled and possible; the gradient stays that of the batch."""
        self.stepper.optimizer.zero_grad(set_to_none=True)
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        size, pieces = self.config.train.batch_size, 2 * self.state.pieces
        if not self.config.train.auto_batch or pieces > size:
            fits = max(1, size // pieces)
            text = Message(
                "out of memory on {device} at step {step} with {size} windows at once; use --set "
                "train.auto_batch=true to compute them in pieces, or --set train.batch_size={fits} --set "
                "train.accumulation={pieces}",
                device=self.device,
                step=step,
                size=size,
                fits=fits,
                pieces=pieces,
            )
            raise OutOfMemory(text) from error
        self.state.pieces = pieces
        said = Message("out of memory: {size} windows are now computed in {pieces} pieces", size=size, pieces=pieces)
        self.writer.event("auto_batch", said, step=step)

    def _log_if_due(self) -> None:
        step, config, evaluation = self.state.step, self.config, self.config.evaluation
        due = _any_due(step, config.log.every, config.checkpoint.every, evaluation.every, evaluation.sample_every)
        if due or step == config.train.steps or len(self._unread) >= MOST_UNREAD or not self.stepper.deferred:
            self._read_results()
        self.writer.update_status(step=step, slowest=self.ranks.slowest, behind=self.ranks.lag_seconds)

    def _read_results(self) -> None:
        """Read the results of all unread steps; raise `Diverged` at the first that is not finite."""
        unread, self._unread = self._unread, []
        if not unread:
            return
        found: list[tuple[float, float]] = []
        started = time.perf_counter()
        try:
            for numbers in read_all(unread):
                found.append(numbers)
        except Diverged:
            self.state.step = unread[len(found)].step - 1
            raise
        finally:
            seconds = self._unread_seconds + time.perf_counter() - started
            self._unread_seconds = 0.0
            for result, (nll, norm) in zip(unread, found, strict=False):
                self._record_step(result, nll, norm, seconds / len(unread))

    def _record_step(self, result: StepResult, nll: float, norm: float, seconds: float) -> None:
        state, step = self.state, result.step
        state.tokens, state.seconds = state.tokens + result.n_targets, state.seconds + seconds
        state.interval_nll += nll
        state.interval_tokens += result.n_targets
        state.interval_seconds += seconds
        if step % self.config.log.every and step != self.config.train.steps:
            return
        record = TrainRecord.create(
            kind="train",
            step=step,
            tokens=state.tokens,
            seconds=round(state.seconds, 4),
            loss=state.interval_nll / state.interval_tokens,
            lr=result.rate,
            grad_norm=norm,
            tokens_per_second=round(state.interval_tokens / max(state.interval_seconds, 1e-9), 1),
            device_load=device_load(self.device),
            memory_bytes=memory_in_use(self.device),
        )
        self.writer.metrics(record)
        state.interval_nll, state.interval_tokens, state.interval_seconds = 0.0, 0, 0.0

    # Between steps

    def _save_if_due(self) -> None:
        evaluation = self.config.evaluation
        if _any_due(self.state.step, self.config.checkpoint.every, evaluation.every, evaluation.sample_every):
            self._save()

    def _save(self) -> None:
        self._read_results()
        if self._saved_step == self.state.step:
            return
        self.writer.update_status(phase="checkpointing")
        state, optimizer, provenance = self.state, self.stepper.optimizer, self._provenance
        state.offsets = self.writer.sync()
        run, check, retry = self.writer.path, self.writer.require_claim, self.writer.retry_while_disk_full
        name = retry(lambda: checkpoint.save(run, self.model, optimizer, state, provenance, check))
        self._saved_step = state.step
        self.writer.update_status(phase="training", checkpoint=name)

    def _evaluate_and_sample_if_due(self) -> None:
        if _any_due(self.state.step, self.config.evaluation.every):
            self._evaluate()
        if _any_due(self.state.step, self.config.evaluation.sample_every):
            self._sample()
        kept = self.config.checkpoint
        if self._saved_step == self.state.step:
            self.writer.require_claim()
            checkpoint.prune(self.writer.path, max(kept.keep_last, kept.average_last))

    def _evaluate(self) -> None:
        state = self.state
        self.writer.update_status(phase="evaluating")
        scores = self.scorer.score_model(self.model, self._raise_if_stopping).dump()
        so_far = {"step": state.step, "tokens": state.tokens, "seconds": round(state.seconds, 4)}
        record = ValidationRecord.create(kind="validation", **so_far, **scores)
        self.writer.metrics(record)
        if outputs := self.scorer.outputs():
            self.writer.write(outputs.model_copy(update={"step": state.step}))
        state.last = record
        if is_better(record, state.best, self.config.evaluation.select):
            state.best, state.evaluations_since_best = record, 0
            self.writer.retry_while_disk_full(lambda: checkpoint.set_pointer(self.writer.path, "best", state.step))
            if (answers := self.scorer.predictions()) is not None:
                self.writer.text("predictions.txt", answers)  # one per line
        else:
            state.evaluations_since_best += 1
        self.inspector.probe("evaluation", state.step)
        self.inspector.check_scores(record, state.step)
        self._summarise()
        self.writer.update_status(phase="training")

    def _sample(self) -> None:
        if self.config.evaluation.sample_length > 0:
            sample = self.sampler.sample(self.model, self.state.step, self._raise_if_stopping)
            self.writer.sample(sample)
            self.inspector.check_sample(sample, self.state.step)

    def _process_commands(self) -> None:
        while (command := self.control.poll()) is not None:
            if command is RunCommand.STOP:
                raise StopRequested
            if command is RunCommand.CHECKPOINT:
                self._save()
                self.writer.event("checkpoint", step=self.state.step)
            if command is RunCommand.PAUSE:
                self._pause()
            self.writer.update_status(control_id=self.control.last_command_id)

    def _pause(self) -> None:
        """Wait for `continue` or `stop`; the heartbeat goes on, the clock of training does not."""
        self._save()
        self.writer.event("paused", step=self.state.step)
        self.writer.update_status(state="paused", reason=self.control.reason, control_id=self.control.last_command_id)
        while (command := self.control.poll()) is not RunCommand.CONTINUE:
            if command is RunCommand.STOP:
                raise StopRequested
            if command is None:
                time.sleep(PAUSE_SLEEP)
            self.writer.update_status(step=self.state.step, control_id=self.control.last_command_id)
        self.writer.event("continued", step=self.state.step)
        self.writer.update_status(state="running", phase="training", reason="", control_id=self.control.last_command_id)

    def _out_of_patience(self) -> bool:
        return 0 < self.config.evaluation.patience <= self.state.evaluations_since_best

    # Before the first step and after the last

    def restore(self, folder: Path) -> None:
        """Take up the state of a checkpoint, from which `run` continues bit for bit; raise if it does not fit."""
        self.state = checkpoint.load_state(folder, self.model, self.stepper.optimizer)
        self._saved_step = self.state.step

    def begin(self) -> None:
        """Prepare: process settings, leak probe, self-check, step-0 checkpoint; may raise `Leaking`."""
        prepare_process(self.config, self.device)
        self.control.attach(self.writer.path, after=self.writer.last_command_id)
        weights = sum(4 * parameter.numel() for parameter in self.model.parameters())
        self.writer.wait_for_room, self.writer.checkpoint_bytes = (
            self._sleep_unless_stopping,
            3 * weights,
        )  # with the moments
        self.writer.checkpoint_bytes += weights if self.config.train.ema else 0
        resumed = self._saved_step >= 0
        if not resumed:
            leak = self.inspector.check_before_training(self.control.raise_if_stopped)
            self._save()
            if leak is not None:
                raise Leaking(Message("{leak} before the first step: {why}", leak=LEAK, why=leak.why))
        self.writer.retry_while_disk_full(lambda: checkpoint.set_pointer(self.writer.path, "last", self._saved_step))
        saved = checkpoint.folder_name(self._saved_step)
        self.writer.update_status(state="running", phase="training", checkpoint=saved)
        where = Message(
            "{steps} steps on {device} in {precision}",
            steps=self.config.train.steps,
            device=self.device,
            precision=self.stepper.precision,
        )
        self.writer.event("resumed" if resumed else "started", where, step=self.state.step)
        self.ranks.broadcast_checkpoint_path(self.writer.path / "checkpoints" / saved)

    def _finish(self) -> None:
        self._save()
        if not _any_due(self.state.step, self.config.evaluation.every):  # else it has been evaluated already
            self._evaluate()
        if not _any_due(self.state.step, self.config.evaluation.sample_every):
            self._sample()
        self.inspector.probe("after", self.state.step)
        self._save_and_score_averages()
        self._summarise(loss_and_gradient_hash(self.writer.path), scores_hash(self.writer.path))
        self.inspector.check_finished(self.state.step)

    def _save_and_score_averages(self) -> None:
        """Save and score the mean of the last checkpoints' weights, and their moving average; the model itself stays as
        it is.
        """
        self.scorer.ranks = SINGLE  # the others have the model's own weights
        wanted, moving = self.config.checkpoint.average_last, bool(self.config.train.ema)
        if wanted < 2 and not moving:
            return
        run, model, step, provenance = self.writer.path, self.model, self.state.step, self._provenance
        retry = self.writer.retry_while_disk_full
        own = {name: value.clone() for name, value in checkpoint.weights_of(model).items()}
        try:
            if wanted >= 2:
                steps = retry(lambda: checkpoint.load_average_and_save(run, model, provenance, wanted))
                scores = self.scorer.score_model(model, self._raise_if_stopping).dump()
                self.state.average = AverageScores.create(steps=tuple(steps), **scores)
                checkpoint.copy_weights(model, own)
            if moving:
                optimizer = self.stepper.optimizer
                retry(lambda: checkpoint.load_moving_average_and_save(run, model, optimizer, step, provenance))
                self._ema = self.scorer.score_model(model, self._raise_if_stopping)
        finally:
            checkpoint.copy_weights(model, own)

    def _summarise(self, metrics_digest: str | None = None, scores_digest: str | None = None) -> None:
        state = self.state
        best, last = (None if of is None else of.loss for of in (state.best, state.last))
        summary = Summary.create(
            step=state.step,
            tokens=state.tokens,
            seconds=round(state.seconds, 4),
            best=state.best,
            last=state.last,
            gap=None if best is None or last is None else last - best,
            average=state.average,
            **({} if self._ema is None else {"ema": self._ema}),
            fingerprint=metrics_digest,
            scores_sha256=scores_digest,
        )
        self.writer.write(summary)

    # How it ends

    def run(self) -> Outcome:
        """Train to the end or a requested stop. Never raises for a failure in training."""
        try:
            return self._train_and_close()
        except RunTakenOver as error:  # the run directory belongs to another process now
            self.writer.release_lock()
            self.ranks.close()
            return Outcome("lost", self.state.step, error_message(error))

    def _train_and_close(self) -> Outcome:
        try:
            # Hooks would break up a compiled or recorded step, and stop one rank while others wait for its gradients.
            whole = self.stepper.compiles or self.stepper.records_steps or self.stepper.overlaps
            with nullcontext() if whole else stop_checks_between_layers(self.model, self.control.raise_if_stopped):
                outcome = self._train_until_stopped()
        except RunTakenOver:
            raise
        except Exception as error:
            log.exception("run failed at step %d", self.state.step)
            outcome = Outcome("failed", self.state.step, self._failure_reason(error))
        self.writer.wait_for_room = None
        try:
            with suppress(OSError):  # the final record matters less than the lock
                self.writer.event(outcome.state, outcome.reason, step=outcome.step)
        finally:
            self.writer.close(outcome.state, outcome.reason, self.control.successor)
            self.ranks.close()
        return outcome

    def _train_until_stopped(self) -> Outcome:
        try:
            self.train()
        except StopRequested as stop:
            if stop.why:
                self.control.enqueue_command(RunCommand.STOP, stop.why, received_signal=signal.SIGTERM)
            while self.control.stop_is_queued():  # received mid-step: executed now
                self.control.poll()
            return self._stop_with_checkpoint()
        except (Diverged, OutOfMemory, RankLost) as error:
            self.writer.wait_for_room = None
            if isinstance(error, Diverged):
                self.inspector.write_if_changed(nan_verdict(error_message(error), step=self.state.step))
            with suppress(OSError):
                self._save()  # the update was not applied: the weights are still those of the last step
            raise
        why, patience = "", self.config.evaluation.patience
        if self._out_of_patience():
            why = Message("no improvement for {patience} evaluations", patience=patience)
        return Outcome("finished", self.state.step, why)

    def _stop_with_checkpoint(self) -> Outcome:
        """Stop with a checkpoint, or on a full disk keep the last that fit; without any, resuming starts over."""
        self.writer.wait_for_room = None
        reason = self.control.reason
        wished = self.control.signal is None and self.control.successor is None
        state = "stopped" if wished else "interrupted"
        try:
            if self._saved_step >= 0:
                self._save()
                self.writer.update_status(control_id=self.control.last_command_id)
            elif wished:
                self.writer.update_status(state=state, phase="", control_id=self.control.last_command_id)
        except OSError as error:
            if error.errno not in DISK_FULL_ERRNOS:
                raise
            saved = Message("nothing has been saved yet")
            if self._saved_step >= 0:
                saved = Message("step {saved} is the last one saved", saved=self._saved_step)
            reason = Message("{reason}; the disk is full: {saved}", reason=reason or Message("stop"), saved=saved)
        else:
            if self.control.successor is not None:
                return Outcome("handing-over", max(0, self._saved_step), reason)
        return Outcome(state, max(0, self._saved_step), reason)

    def _failure_reason(self, error: Exception) -> str:
        if isinstance(error, Diverged | OutOfMemory | Leaking | RankLost):
            return error_message(error)
        if is_device_failure(error):
            said = str(error).partition("\n")[0]  # what follows is advice for developers
            return Message(
                "{device} failed or disappeared: {said}; step {saved} is the last one saved",
                device=self.device,
                said=said,
                saved=self._saved_step,
            )
        if gone := self.writer.why_folder_missing():
            return gone
        return " ".join(f"{type(error).__name__}: {error}".split())

    def _raise_if_stopping(self) -> None:
        self.writer.update_status(step=self.state.step)
        if self.control.stop_is_queued():
            raise StopRequested

    def _sleep_unless_stopping(self) -> None:
        if self.control.stop_is_queued():
            raise StopRequested
        time.sleep(PAUSE_SLEEP)


def prepare_process(config: RunConfig, device: torch.device) -> None:
    """Set what training needs of this process and thread."""
    if config.train.threads is not None:
        torch.set_num_threads(config.train.threads)
    set_fp32_matmul(config.train.fp32_matmul)
    make_repeatable(device)
    if device.type == "cpu":
        keep_memory()
    if device.type == "cuda":
        torch.cuda.set_device(device)  # of this thread: pinned memory and graphs use the current device


def is_better(record: EvaluationScores, best: EvaluationScores | None, select: str) -> bool:
    """Whether a validation record is the best so far: the lowest loss, or the highest of any other score and then the
    lowest loss; a loss that is not finite never is.
    """
    if record.loss is None or not math.isfinite(record.loss):
        return False
    ranks = [(0.0 if select == "loss" else -getattr(r, select), r.loss) for r in (record, best) if r is not None]
    return len(ranks) == 1 or ranks[0] < ranks[1]


def _any_due(step: int, *intervals: int) -> bool:
    return any(every > 0 and step > 0 and step % every == 0 for every in intervals)


@contextmanager
def stop_checks_between_layers(model: nn.Module, heed: Callable[[], None]) -> Iterator[None]:
    """Call `heed` before each layer, forward and backward: a step may take a minute. Results are unaffected."""

    def after(layer: nn.Module, given: Any, out: Tensor) -> None:
        if out.requires_grad:
            out.register_hook(lambda gradient: heed())  # type: ignore[no-untyped-call]

    layers = [module for module in model.modules() if isinstance(module, Layer)]
    hooks = [layer.register_forward_pre_hook(lambda layer, given: heed()) for layer in layers]
    hooks += [layer.register_forward_hook(after) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
