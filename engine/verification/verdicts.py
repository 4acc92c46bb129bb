"""The claim that checks.json says what the checks say: those that are cheap are asked again.

An inert switch is told from other runs of the folder, and those may have come or gone: that verdict is not asked again.
"""

from collections.abc import Iterator

from engine.evaluation.alarms import implausible, majority_only, not_learning, overlapping, same_text
from engine.evaluation.checks import leak_probe
from engine.evaluation.evaluator import largest_batch
from engine.evaluation.shape import curve
from engine.evaluation.verdict import DIVERGED, OK, Verdict, When
from engine.model.transformer import Network
from engine.training.inspector import CURVE
from engine.training.self_check import self_check
from engine.verification.evidence import Evidence
from engine.verification.finding import Difference, Outcome

FALLEN = "is not a number"  # as the trainer says it when a run has diverged


def verdicts(evidence: Evidence) -> Outcome:
    """The verdicts in checks.json are those that the checks give now."""
    with evidence.process():
        asked = [*_probes(evidence), *_alarms(evidence)]
    wrong = []
    for verdict in asked:
        said = _said(evidence, verdict)
        if said != verdict.verdict:
            wrong.append(Difference(f"check '{verdict.check}', {verdict.when}", said, verdict.verdict))
    names = ", ".join(dict.fromkeys(f"{verdict.check} {verdict.verdict}" for verdict in asked))
    return Outcome(f"asked again: {names}", tuple(wrong))


def _said(evidence: Evidence, verdict: Verdict) -> str | None:
    """What checks.json says last of a check. A probe's verdicts stand there each, an alarm's only where it changes."""
    found = [v for v in evidence.reader.verdicts if v.get("check") == verdict.check]
    if verdict.check == "leak":
        found = [v for v in found if v.get("when") == verdict.when]
        return str(found[-1].get("verdict")) if found else None
    return str(found[-1].get("verdict")) if found else OK


def _probes(evidence: Evidence) -> Iterator[Verdict]:
    """Before the first step, on the model of the seed; after the last one, on the last checkpoint."""
    overlap = evidence.task.overlap
    if overlap is not None and "overlap" in evidence.reader.facts("data"):  # earlier versions did not check
        yield overlapping(overlap)
    fresh = evidence.fresh()
    yield _leak(evidence, fresh, "before", 0)
    yield from self_check(evidence.config, fresh, evidence.task)
    if evidence.finished:
        model, step = evidence.network("last")
        yield _leak(evidence, model, "after", step)


def _leak(evidence: Evidence, model: Network, when: When, step: int) -> Verdict:
    batches = evidence.task.batches(evidence.config, evidence.device)
    rows, words = largest_batch(evidence.config), evidence.task.vocab_size
    return leak_probe(model, batches.objective, batches.probed(), words, when=when, step=step, rows=rows)


def _alarms(evidence: Evidence) -> Iterator[Verdict]:
    """What the newest score, curve and sample say."""
    config, facts = evidence.config, evidence.reader.facts("data")
    objective = evidence.task.batches(config, evidence.device).objective
    found: list[Verdict | None] = []
    if evidence.validation:
        record, step = evidence.validation[-1], evidence.validation[-1]["step"]
        warmup = config.optimizer.warmup
        assert isinstance(warmup, int)
        found += [
            implausible(
                record,
                facts,
                kind=config.objective.kind,
                conditional=objective.conditional,
                when="evaluation",
                step=step,
                leak_free=evidence.reader.leak_free,
            ),
            not_learning(record, facts, warmup=warmup, when="evaluation", step=step),
            _curve(evidence, step),
        ]
    if evidence.finished and isinstance(best := evidence.summary.get("best"), dict):
        found.append(majority_only(best, facts, when="after", step=evidence.end))
    samples = list(evidence.reader.records("samples"))
    if samples:
        found.append(same_text(samples[-1], samples, step=samples[-1]["step"]))
    yield from (verdict for verdict in found if verdict is not None)


def _curve(evidence: Evidence, step: int) -> Verdict | None:
    """As it was asked last: over the whole run at its end, else over what there was at the newest evaluation."""
    reason = str(evidence.status.get("reason", ""))
    if evidence.state == "failed" and FALLEN in reason:
        return Verdict("curve", "after", step, DIVERGED, 0.0, reason)
    if evidence.finished:
        columns = evidence.reader.follow().load(CURVE)
        return curve(columns.train, columns.validation, when="after", step=step)
    if len(evidence.metrics) > CURVE:
        return None  # it was asked over thinned records, and thinned otherwise then
    until = [record for record in evidence.train if record["step"] <= step]
    return curve(until, evidence.validation, when="evaluation", step=step)
