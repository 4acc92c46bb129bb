"""Checks a run while it trains: leak probe, self-check and every alarm, as verdicts in its directory."""

from collections.abc import Callable, Mapping
from typing import Any

from engine.evaluation.alarms import curve, implausible, majority_only, no_number, not_learning, same_text
from engine.evaluation.checks import leak_probe
from engine.evaluation.scorers import largest_batch
from engine.evaluation.verdict import INERT, LEAK, OK, Verdict, When
from engine.runs.reader import RunReader
from engine.runs.twins import inert_switches
from engine.runs.writer import RunWriter
from engine.training.self_check import self_check
from engine.training.task import RunParts

CURVE = 1_000  # train records that are enough to see a curve's shape


class Inspector:
    """Looks at one run and writes down what it finds; `facts` is data.json, kept because its folder may disappear."""

    def __init__(self, parts: RunParts, facts: Mapping[str, Any], writer: RunWriter) -> None:
        self.config, self.model, self.task, self.batches = parts.config, parts.model, parts.task, parts.batches
        self.facts, self.writer = facts, writer
        self.leak: Verdict | None = None  # the first that was found
        self._reader = RunReader(writer.path)

    def probe(self, when: When, step: int) -> None:
        """Probe for leaks. A clean result during training is not worth a line; a leak always is."""
        objective, rows = self.batches.objective, largest_batch(self.config)
        text, vocabulary = self.batches.probed(), objective.vocab_size
        verdict = leak_probe(self.model, objective, text, vocabulary, when=when, step=step, rows=rows)
        if when != "evaluation" or verdict.verdict != OK:
            self.writer.verdict(verdict.to_json())
        if verdict.verdict != OK and self.leak is None:
            self.leak = verdict
            self.writer.event("leak", verdict.why, step=step)

    def before(self, between: Callable[[], None] = lambda: None) -> None:
        """Run the checks that a run gets once, before its first step. `between` may raise to stop."""
        self.probe("before", 0)
        if self.leak is not None and self.leak.verdict == LEAK and not self.config.train.allow_leak:
            return  # it ends here, and a leaking network fails other checks too
        for verdict in self_check(self.config, self.model, self.task, between):
            self._write(verdict)

    def built(self, **changed: Any) -> None:
        """Correct what model.json says was built."""
        facts = self._reader.raw("model")
        self.writer.facts("model", facts | {"built": (facts.get("built") or {}) | changed})

    def scores(self, record: Mapping[str, Any], step: int) -> None:
        """Check a validation record: too good to be true, or no better than counting?"""
        kind, conditional = self.config.objective.kind, self.batches.objective.conditional
        free, warmup = self._reader.leak_free, self.config.optimizer.warmup
        when: When = "evaluation"
        assert isinstance(warmup, int)
        self._note(
            implausible(record, self.facts, kind=kind, conditional=conditional, when=when, step=step, leak_free=free)
        )
        self._note(not_learning(record, self.facts, warmup=warmup, when=when, step=step))
        self._curve(when, step)

    def sample(self, record: Mapping[str, Any], step: int) -> None:
        """Check whether a sample is the same text as the ones before."""
        self._note(same_text(record, list(self._reader.raw_lines("samples")), step=step))

    def diverged(self, why: str, step: int) -> None:
        self._note(no_number(why, step=step))

    def finished(self, step: int) -> None:
        """Check the whole curve, and whether a run with other settings has the very same metrics."""
        self._curve("after", step)
        best = self._reader.summary.best
        self._note(majority_only({} if best is None else best.dump(), self.facts, when="after", step=step))
        for name, switches in inert_switches(self._reader, self.writer.path.parent):
            changed = ", ".join(f"{key} {before} → {after}" for key, (before, after) in switches.items())
            why = f"run '{name}' has other settings ({changed}) and the same metrics to the last bit: no effect"
            if set(switches) == {"seed"}:
                why = f"run '{name}' has a different seed and the same metrics to the last bit: the seed had no effect"
            self._note(Verdict("switches", "after", step, INERT, float(len(switches)), why))

    def _curve(self, when: When, step: int) -> None:
        columns = self._reader.follow().load(CURVE)
        self._note(curve(columns.train, columns.validation, when=when, step=step))

    def _note(self, verdict: Verdict | None) -> None:
        """Write down a verdict that differs from the last one of its check; what was fine all along is no news."""
        if verdict is None or verdict.verdict == self.writer.last_verdict(verdict.check, default=OK):
            return
        self._write(verdict)

    def _write(self, verdict: Verdict) -> None:
        self.writer.verdict(verdict.to_json())
        if verdict.verdict != OK:
            self.writer.event(verdict.verdict.lower(), verdict.why, step=verdict.step)
