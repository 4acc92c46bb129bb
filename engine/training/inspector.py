"""Check a run while it trains: leak probe, self-check and every alarm, as verdicts in its directory."""

from collections.abc import Callable
from typing import Any

from engine.base.language import Message
from engine.config.schema import RunConfig
from engine.data.loader import BatchStream
from engine.evaluation.alarms import check_curves, check_majority, check_repeated_sample, score_verdicts
from engine.evaluation.checks import leak_probe
from engine.model.transformer import Network
from engine.runs.reader import RunReader
from engine.runs.records import DataFacts, EvaluationScores, Sample
from engine.runs.twins import inert_switches
from engine.runs.verdict import BROKEN, INERT, LEAK, OK, Verdict, When
from engine.runs.writer import RunWriter
from engine.tasks.task import evaluation_batch
from engine.training.parts import RunParts
from engine.training.self_check import self_check

CURVE_RECORDS = 1_000  # train records, enough for a curve's shape


def run_leak_probe(config: RunConfig, model: Network, batches: BatchStream, *, when: When, step: int) -> Verdict:
    objective = batches.objective
    rows = max(config.train.batch_size, evaluation_batch(config))  # the most that the model takes at once
    return leak_probe(
        model, objective, batches.leak_probe_examples(), objective.vocab_size, when=when, step=step, rows=rows
    )


class Inspector:
    """Inspects one run and records its findings; `facts` is data.json, kept because its folder may disappear."""

    def __init__(self, parts: RunParts, facts: DataFacts, writer: RunWriter) -> None:
        self.config, self.model, self.task, self.batches = parts.config, parts.model, parts.task, parts.batches
        self.facts, self.writer = facts, writer
        self.leak: Verdict | None = None  # the first that was found
        self._reader = RunReader(writer.path)

    def probe(self, when: When, step: int) -> None:
        """Probe for leaks. A clean result during training is not recorded; a leak always is."""
        verdict = run_leak_probe(self.config, self.model, self.batches, when=when, step=step)
        if when != "evaluation" or verdict.verdict != OK:
            self.writer.verdict(verdict)
        if verdict.verdict != OK and self.leak is None:
            self.leak = verdict
            self.writer.event("leak", verdict.why, step=step)

    def check_before_training(self, between: Callable[[], None]) -> Verdict | None:
        """Run the checks that are made once, before the first step. `between` may raise to stop.

        Return a leak that ends the run; the other checks are then skipped, as a leaking network fails them too.
        """
        self.probe("before", 0)
        if self.leak is not None and self.leak.verdict == LEAK and not self.config.train.allow_leak:
            return self.leak
        for verdict in self_check(self.config, self.model, self.task, between):
            self._write(verdict)
        return None

    def update_recorded_build(self, **changed: Any) -> None:
        facts = self._reader.model
        self.writer.write(facts.model_copy(update={"built": facts.built | changed}))

    def check_scores(self, record: EvaluationScores, step: int) -> None:
        """Check a validation record: too good to be true, or no better than counting?"""
        free = self._reader.leak_free
        for verdict in score_verdicts(record, self.facts, self.config, step=step, leak_free=free):
            self.write_if_changed(verdict)
        self._check_curve("evaluation", step)

    def check_sample(self, record: Sample, step: int) -> None:
        self.write_if_changed(check_repeated_sample(record.dump(), list(self._reader.raw_lines("samples")), step=step))

    def check_finished(self, step: int) -> None:
        """Check the whole curve, and whether a run with other settings has identical metrics."""
        self._check_curve("after", step)
        best = self._reader.summary.best or EvaluationScores()
        self.write_if_changed(check_majority(best, self.facts, step=step))
        last, average = self._reader.summary.last, self._reader.summary.ema
        if step > 1 and last is not None and average is not None and last.loss == average.loss:
            why = Message("the weights and their moving average have the same loss: one was taken for the other")
            self.write_if_changed(Verdict(Message("moving average"), "after", step, BROKEN, 0.0, why))
        for name, switches in inert_switches(self._reader, self.writer.path.parent):
            changed = ", ".join(f"{key} {before} → {after}" for key, (before, after) in switches.items())
            why = Message(
                "run '{name}' has different settings ({changed}) but bit-identical metrics: the settings had no effect",
                name=name,
                changed=changed,
            )
            if set(switches) == {"seed"}:
                why = Message(
                    "run '{name}' has a different seed but bit-identical metrics: the seed had no effect", name=name
                )
            self.write_if_changed(Verdict(Message("switches"), "after", step, INERT, float(len(switches)), why))

    def _check_curve(self, when: When, step: int) -> None:
        metrics = self._reader.follow().load(CURVE_RECORDS)
        self.write_if_changed(check_curves(metrics.train, metrics.validation, when=when, step=step))

    def write_if_changed(self, verdict: Verdict | None) -> None:
        """Record a verdict if it differs from its check's last one; a first pass is not recorded."""
        if verdict is not None and verdict.verdict != self.writer.last_verdict(verdict.check, default=OK):
            self._write(verdict)

    def _write(self, verdict: Verdict) -> None:
        self.writer.verdict(verdict)
        if verdict.verdict != OK:
            self.writer.event(verdict.verdict.lower(), verdict.why, step=verdict.step)
