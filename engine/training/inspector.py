"""What a run says about its own trustworthiness while it trains: the leak probe and every alarm, as verdicts."""

from collections.abc import Callable, Mapping
from typing import Any

from engine.config.schema import RunConfig
from engine.data.loader import Examples
from engine.evaluation.alarms import curve, implausible, majority_only, no_number, not_learning, same_text
from engine.evaluation.checks import leak_probe
from engine.evaluation.scorers import largest_batch
from engine.evaluation.verdict import INERT, LEAK, OK, Verdict, When
from engine.model.transformer import Network
from engine.runs.reader import RunReader
from engine.runs.twins import inert_switches
from engine.runs.writer import RunWriter
from engine.training.self_check import self_check

CURVE = 1_000  # train records that are enough to see a curve's shape


class Inspector:
    """Looks at one run and writes down what it finds.

    Args:
        config: of the run.
        model: as it is trained.
        batches: the training batches and their objective.
        writer: where verdicts go.
        facts: the content of data.json, kept because its folder may disappear.
        reseeded: the batches under another seed.
    """

    def __init__(
        self,
        config: RunConfig,
        model: Network,
        batches: Examples,
        writer: RunWriter,
        *,
        facts: Mapping[str, Any],
        reseeded: Callable[[int], Examples],
    ) -> None:
        self.config, self.model, self.batches = config, model, batches
        self.facts, self.reseeded = facts, reseeded
        self.writer, self.vocab_size = writer, batches.objective.vocab_size
        self.leak: Verdict | None = None  # the first that was found
        self._reader = RunReader(writer.path)

    def probe(self, when: When, step: int) -> None:
        """The leak probe. A clean one during training is not worth a line; a leak always is."""
        objective, text = self.batches.objective, self.batches.probed()
        rows = largest_batch(self.config)
        verdict = leak_probe(self.model, objective, text, self.vocab_size, when=when, step=step, rows=rows)
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
        for verdict in self_check(self.config, self.model, self.batches, self.reseeded, between):
            self._write(verdict)

    def built(self, **changed: Any) -> None:
        """Correct what model.json says was built."""
        facts = self._reader.raw("model")
        self.writer.facts("model", facts | {"built": (facts.get("built") or {}) | changed})

    def scores(self, record: Mapping[str, Any], step: int) -> None:
        """Too good to be true, or no better than counting?"""
        facts, kind = self.facts, self.config.objective.kind
        conditional, warmup = self.batches.objective.conditional, self.config.optimizer.warmup
        assert isinstance(warmup, int)
        self._note(
            implausible(
                record,
                facts,
                kind=kind,
                conditional=conditional,
                when="evaluation",
                step=step,
                leak_free=self._reader.leak_free,
            )
        )
        self._note(not_learning(record, facts, warmup=warmup, when="evaluation", step=step))
        self._curve("evaluation", step)

    def sample(self, record: Mapping[str, Any], step: int) -> None:
        """The same text as before?"""
        self._note(same_text(record, list(self._reader.raw_lines("samples")), step=step))

    def diverged(self, why: str, step: int) -> None:
        """The loss or a gradient was no number."""
        self._note(no_number(why, step=step))

    def finished(self, step: int) -> None:
        """Was it long enough? Is there another run with other settings and the very same metrics?"""
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
