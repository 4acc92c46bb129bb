"""Claims checked by repetition: scores, samples, some training steps, and the cheap checks.

Steps are repeated in a temporary folder from a checkpoint before the end, else from the seed. The inert-switch verdict
depends on other runs in the folder, which may have come or gone, so it is not repeated.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from engine import capabilities
from engine.base.language import tr, trn
from engine.base.recorded_text import told
from engine.evaluation.alarms import curve, majority_only, of_scores, same_text
from engine.model.numerics import chosen_precision
from engine.proofs.verify.evidence import Evidence
from engine.proofs.verify.finding import COARSE, Difference, Outcome, Record, Unknown, as_recorded, differences
from engine.runs.control import Control, Diverged, Leaking
from engine.runs.reader import RunReader
from engine.runs.records import DataFacts, TrainRecord, ValidationRecord
from engine.runs.verdict import DIVERGED, OK, Verdict
from engine.runs.writer import RunWriter
from engine.training import checkpoint
from engine.training.inspector import CURVE, probed
from engine.training.parts import RunParts
from engine.training.self_check import self_check
from engine.training.trainer import Trainer

WRITTEN = "translation"  # a model's translations, among the redefined fields
NEWEST_SAMPLES = 3  # that are written again, where their checkpoints are kept
SAID_OF = frozenset(("kind", "step", "tokens", "seconds"))  # fields of a validation record that are no scores


def score(evidence: Evidence, which: str) -> Outcome:
    """A checkpoint, rescored on the whole validation split, has the score recorded at its step."""
    if not evidence.validation:
        raise Unknown(tr("nothing was scored"))
    with evidence.process():
        folder = checkpoint.find(evidence.reader, which)
        found = _scored(evidence, folder, which)
        step = found["step"]
        recorded = [record for record in evidence.validation if record["step"] == step]
        if not recorded:
            raise Unknown(tr("no score was recorded at this checkpoint's step, {step:,}", step=step))
        said, wrong = _same_scores(evidence, recorded[-1], found, tr("at step {step:,}", step=step))
    return tr("step {step:,} scored again: {said}", step=step, said=said), [*wrong, *_translations(evidence, found)]


def averages(evidence: Evidence) -> Outcome:
    """The mean of the last checkpoints' weights, and their moving average, have the scores that summary.json gives."""
    config = evidence.config
    asked = {checkpoint.AVERAGE: config.checkpoint.average_last >= 2, checkpoint.MOVING: config.train.ema > 0.0}
    said, wrong = [], []
    for name, wanted in asked.items():
        recorded = evidence.summary.get(name)
        if recorded is None:
            wrong += [Difference(tr("averaged score"), fault=tr("missing"))] if wanted and evidence.finished else []
            continue
        with evidence.process():
            found = _scored(evidence, checkpoint.find(evidence.reader, name), name)
            text, differ = _same_scores(
                evidence, recorded, found, tr("of the {name}", name=name), frozenset(("steps",))
            )
        said.append(text if name == checkpoint.AVERAGE else f"{name}: {text}")
        wrong += differ
    return "; ".join(said) or tr("none was requested"), wrong


def samples(evidence: Evidence) -> Outcome:
    """The newest samples, written again by their checkpoints from their seeds, are the same text."""
    if WRITTEN in evidence.redefined:
        raise Unknown(tr("an older version wrote the samples with a different length limit"))
    records = list(evidence.reader.raw_lines("samples"))
    if not records:
        raise Unknown(tr("the run wrote no samples"))
    wrong: list[Difference] = []
    repeated: list[int] = []
    with evidence.process():
        for record in records[-NEWEST_SAMPLES:]:
            folder = evidence.folder_of(record["step"])
            if folder is None:
                continue
            model, step = evidence.network(str(record["step"]))
            found = evidence.task.sampler(evidence.config).sample(model, step).dump()
            repeated.append(step)
            skip = frozenset(() if evidence.exact else ("chances",))
            wrong += differences(
                record, found, tr("of the sample at step {step:,}", step=step), exact=evidence.exact, skip=skip
            )
    if not repeated:
        raise Unknown(tr("the checkpoints that produced the newest samples were not kept"))
    if wrong and not evidence.exact:
        raise Unknown(
            tr(
                "different tokens were drawn, which rounding can cause: {why_not_exact}",
                why_not_exact=evidence.why_not_exact,
            )
        )
    steps = ", ".join(f"{step:,}" for step in repeated)
    kept = (
        ""
        if len(repeated) == len(records)
        else trn(
            "; the checkpoint of the other sample was not kept",
            "; the checkpoints of the other {n} were not kept",
            len(records) - len(repeated),
        )
    )
    said = trn(
        "regenerated from their seeds, at step {steps}{kept}",
        "regenerated from their seeds, at steps {steps}{kept}",
        len(repeated),
        steps=steps,
        kept=kept,
    )
    return said, wrong


def _same_scores(
    evidence: Evidence, recorded: Record, found: Record, where: str, skip: frozenset[str] = frozenset()
) -> Outcome:
    exact, factor, skip = evidence.exact, evidence.score_factor, SAID_OF | skip | evidence.redefined
    wrong = differences(recorded, found, where, exact=exact, factor=factor, skip=skip)
    # `null` in the file stands for NaN or infinity.
    losses = [tr("NaN or infinite") if one["loss"] is None else f"{one['loss']:.6f}" for one in (found, recorded)]
    said = tr(
        "loss {losses} matches the recorded {losses2} {how_exact}",
        losses=losses[0],
        losses2=losses[1],
        how_exact=evidence.how_exact,
    )
    return said + evidence.not_compared(*recorded), wrong


def _scored(evidence: Evidence, folder: Path, which: str) -> Record:
    if folder not in evidence.scored:
        model, step = evidence.network(which)
        scorer = evidence.task.scorer(evidence.config, evidence.device)
        found: Record = {"step": step} | as_recorded(scorer.record(model).dump())
        if outputs := scorer.outputs():
            found["translations"] = as_recorded(outputs.dump())
        evidence.scored[folder] = found
    return evidence.scored[folder]


def _translations(evidence: Evidence, found: Record) -> list[Difference]:
    said = evidence.reader.raw("translations")
    if said.get("step") != found["step"] or not evidence.exact or WRITTEN in evidence.redefined:
        return []
    now = found.get("translations", {})
    return [
        Difference(tr("{name} in translations.json", name=name), said.get(name), now[name])
        for name in ("references", "outputs")
        if said.get(name) != now[name]
    ]


COMPARED = ("loss", "grad_norm", "lr", "tokens")
# Settings that do not affect learning.
QUIETED = ("evaluation.every", "evaluation.sample_every", "checkpoint.every", "checkpoint.average_last")


def steps(evidence: Evidence) -> Outcome:
    """Training steps, repeated, have the losses and gradient norms that were recorded."""
    if not evidence.train:
        raise Unknown(tr("no step was recorded"))
    if evidence.steps == 0:
        raise Unknown(tr("--steps 0: none were requested"))
    last = evidence.train[-1]["step"]
    with evidence.process():
        before = [folder for folder in evidence.saved if 0 < int(folder.name[5:]) < last]
        folder = before[-1] if before else None
        start = int(folder.name[5:]) if folder is not None else 0
        after = [record["step"] for record in evidence.train if record["step"] > start]
        # As many as wanted, but far enough to reach a record.
        until = ([step for step in after if step <= start + evidence.steps] or after[:1])[-1]
        found = repeated(evidence, folder, until - start)
    recorded = {record["step"]: record for record in evidence.train if start < record["step"] <= until}
    wrong = [
        Difference(tr("train record at step {step:,}", step=step), fault=tr("not written when repeated"))
        for step in recorded.keys() - found.keys()
    ]
    coarse = chosen_precision(evidence.config.train, evidence.device) == "bf16"
    factor = COARSE if coarse else evidence.score_factor
    for step, record in sorted(found.items()):
        said = {key: recorded.get(step, {}).get(key) for key in COMPARED}
        wrong += differences(
            said, record, tr("at step {step:,}", step=step), exact=evidence.exact, factor=factor, skip=frozenset()
        )
    whence = (
        tr("from the seed")
        if evidence.origin is None
        else tr("from the weights of {shown}", shown=evidence.origin.shown)
    )
    if folder is not None:
        whence = tr("from the checkpoint at step {start:,}", start=start)
    return trn(
        "steps {start:,} to {until:,} repeated {whence}: {n:,} record matches {how_exact}",
        "steps {start:,} to {until:,} repeated {whence}: {n:,} records match {how_exact}",
        len(found),
        start=start + 1,
        until=until,
        whence=whence,
        how_exact=evidence.how_exact,
    ), wrong


def repeated(evidence: Evidence, folder: Path | None, count: int) -> dict[int, Record]:
    """Train again from a checkpoint, or the start; return the train records. `Unknown`: training fails here."""
    config, task = evidence.config, evidence.task
    for key in QUIETED:
        config = capabilities.with_value(config, key, 0)
    with TemporaryDirectory(prefix="tui-transformer-verify-") as root:
        writer = RunWriter.create(Path(root), "repeated", config, {})
        try:
            parts = RunParts(config, task, evidence.fresh(), task.sampler(config))
            trainer = Trainer(parts, DataFacts(), writer, Control())
            if folder is not None:
                trainer.restore(folder)
            trainer.begin()
            for _ in range(count):
                trainer.advance()
        except (Diverged, Leaking) as error:
            raise Unknown(tr("the repeated training stopped early: {error}", error=error)) from None
        finally:
            writer.release()
        records = RunReader(writer.path).raw_lines("metrics")
        return {record["step"]: record for record in records if record.get("kind") == "train"}


FALLEN = ("is NaN or infinite", "is not a number")  # how the trainer says that a run has diverged, and said it


def verdicts(evidence: Evidence) -> Outcome:
    """The verdicts in checks.json are those that the checks give now."""
    with evidence.process():
        asked = [one for one in (*_probes(evidence), *_alarms(evidence)) if one.check not in evidence.redefined]
    wrong = []
    for verdict in asked:
        # A probe is recorded each time, an alarm only on change.
        found = [v for v in evidence.reader.verdicts if v.check == verdict.check]
        if verdict.check == "leak":
            found = [v for v in found if v.when == verdict.when]
        said = found[-1].verdict if found else None if verdict.check == "leak" else OK
        if said != verdict.verdict:
            wrong.append(
                Difference(tr("check '{check}', {when}", check=verdict.check, when=verdict.when), said, verdict.verdict)
            )
    names = ", ".join(dict.fromkeys(f"{told(verdict.check)} {verdict.verdict}" for verdict in asked))
    return tr("checked again: {names}", names=names), wrong


def _probes(evidence: Evidence) -> Iterator[Verdict]:
    checked = "overlap" in evidence.reader.raw("data")  # earlier versions did not check
    yield from (one for one in evidence.task.data_verdicts() if checked or one.check != "overlap")
    fresh, batches = evidence.fresh(), evidence.task.batches(evidence.config, evidence.device)
    yield probed(evidence.config, fresh, batches, when="before", step=0)
    yield from self_check(evidence.config, fresh, evidence.task)
    if evidence.finished:
        model, step = evidence.network("last")
        yield probed(evidence.config, model, batches, when="after", step=step)


def _alarms(evidence: Evidence) -> Iterator[Verdict]:
    config, facts = evidence.config, evidence.reader.data
    found: list[Verdict | None] = []
    if evidence.validation:
        record, step = ValidationRecord.read(evidence.validation[-1]), evidence.validation[-1]["step"]
        free = evidence.reader.leak_free
        found += [
            *of_scores(record, facts, config, step=step, leak_free=free),
            _curve(evidence, step),
        ]
    if evidence.finished and (best := evidence.reader.summary.best) is not None:
        found.append(majority_only(best, facts, step=evidence.end))
    samples = list(evidence.reader.raw_lines("samples"))
    if samples:
        found.append(same_text(samples[-1], samples, step=samples[-1]["step"]))
    yield from (verdict for verdict in found if verdict is not None)


def _curve(evidence: Evidence, step: int) -> Verdict | None:
    """Repeat the last curve check: over the whole run at its end, else up to the newest evaluation."""
    reason = evidence.status.reason
    if evidence.state == "failed" and any(said in reason for said in FALLEN):
        return Verdict("curve", "after", step, DIVERGED, 0.0, reason)
    if evidence.finished:
        columns = evidence.reader.follow().load(CURVE)
        return curve(columns.train, columns.validation, when="after", step=step)
    if len(evidence.metrics) > CURVE:
        return None  # it ran over records that were thinned differently then
    until = [TrainRecord.read(record) for record in evidence.train if record["step"] <= step]
    return curve(until, [*map(ValidationRecord.read, evidence.validation)], when="evaluation", step=step)
