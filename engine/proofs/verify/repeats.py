"""Claims checked by repetition: scores, samples, some training steps, and the cheap checks.

Steps are repeated in a temporary folder from a checkpoint before the end, else from the seed. The inert-switch verdict
depends on other runs in the folder, which may have come or gone, so it is not repeated.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from engine import capabilities
from engine.base.language import Message, tr, trn
from engine.evaluation.alarms import check_curves, check_majority, check_repeated_sample, score_verdicts
from engine.model.numerics import chosen_precision
from engine.proofs.verify.comparison import COARSE, Difference, Outcome, Record, Uncheckable, as_recorded, differences
from engine.proofs.verify.evidence import Evidence
from engine.runs.control import Control, Diverged, Leaking
from engine.runs.reader import RunReader
from engine.runs.records import DataFacts, TrainRecord, ValidationRecord
from engine.runs.verdict import DIVERGED, OK, Verdict
from engine.runs.writer import RunWriter
from engine.training import checkpoint
from engine.training.inspector import CURVE_RECORDS, run_leak_probe
from engine.training.parts import RunParts
from engine.training.self_check import self_check
from engine.training.trainer import Trainer

WRITTEN = "translation"  # a model's translations, among the redefined fields
NON_SCORE_FIELDS = frozenset(("kind", "step", "tokens", "seconds"))  # fields of a validation record that are no scores


def score(evidence: Evidence, which: str) -> Outcome:
    """A checkpoint, rescored on the whole validation split, has the score recorded at its step."""
    if not evidence.validation:
        raise Uncheckable(Message("nothing was scored"))
    with evidence.process_settings():
        folder = checkpoint.find(evidence.reader, which)
        found = _score_checkpoint(evidence, folder, which)
        step = found["step"]
        recorded = [record for record in evidence.validation if record["step"] == step]
        if not recorded:
            raise Uncheckable(Message("no score was recorded at this checkpoint's step, {step:,}", step=step))
        said, wrong = _compare_scores(evidence, recorded[-1], found, tr("at step {step:,}", step=step))
    return tr("step {step:,} scored again: {said}", step=step, said=said), [
        *wrong,
        *_translation_differences(evidence, found),
    ]


def averages(evidence: Evidence) -> Outcome:
    """The mean of the last checkpoints' weights, and their moving average, have the scores that summary.json gives."""
    config = evidence.config
    asked = {checkpoint.AVERAGE: config.checkpoint.average_last >= 2, checkpoint.MOVING_AVERAGE: config.train.ema > 0.0}
    said, wrong = [], []
    for name, wanted in asked.items():
        recorded = evidence.summary.get(name)
        if recorded is None:
            wrong += [Difference(tr("averaged score"), fault=tr("missing"))] if wanted and evidence.finished else []
            continue
        with evidence.process_settings():
            found = _score_checkpoint(evidence, checkpoint.find(evidence.reader, name), name)
            where = tr("of the {name}", name=name)
            text, differ = _compare_scores(evidence, recorded, found, where, frozenset(("steps",)))
        said.append(text if name == checkpoint.AVERAGE else f"{name}: {text}")
        wrong += differ
    return "; ".join(said) or tr("none was requested"), wrong


def samples(evidence: Evidence) -> Outcome:
    """The newest samples, written again by their checkpoints from their seeds, are the same text."""
    if WRITTEN in evidence.redefined_fields:
        raise Uncheckable(Message("an older version wrote the samples with a different length limit"))
    records = list(evidence.reader.raw_lines("samples"))
    if not records:
        raise Uncheckable(Message("the run wrote no samples"))
    wrong: list[Difference] = []
    repeated: list[int] = []
    with evidence.process_settings():
        for record in records[-3:]:
            folder = evidence.folder_of(record["step"])
            if folder is None:
                continue
            model, step = evidence.network(str(record["step"]))
            found = evidence.task.sampler(evidence.config).sample(model, step).dump()
            repeated.append(step)
            skip = frozenset(() if evidence.exact else ("chances",))
            where = tr("of the sample at step {step:,}", step=step)
            wrong += differences(record, found, where, exact=evidence.exact, skip=skip)
    if not repeated:
        raise Uncheckable(Message("the checkpoints that produced the newest samples were not kept"))
    if wrong and not evidence.exact:
        text = Message(
            "different tokens were drawn, which rounding can cause: {why_not_exact}",
            why_not_exact=evidence.why_not_exact,
        )
        raise Uncheckable(text)
    steps = ", ".join(f"{step:,}" for step in repeated)
    kept, others = "", len(records) - len(repeated)
    if others:
        kept = trn(
            "; the checkpoint of the other sample was not kept",
            "; the checkpoints of the other {n} were not kept",
            others,
        )
    said = trn(
        "regenerated from their seeds, at step {steps}{kept}",
        "regenerated from their seeds, at steps {steps}{kept}",
        len(repeated),
        steps=steps,
        kept=kept,
    )
    return said, wrong


def _compare_scores(
    evidence: Evidence, recorded: Record, found: Record, where: str, skip: frozenset[str] = frozenset()
) -> Outcome:
    exact, factor, skip = (
        evidence.exact,
        evidence.score_tolerance_factor,
        NON_SCORE_FIELDS | skip | evidence.redefined_fields,
    )
    wrong = differences(recorded, found, where, exact=exact, factor=factor, skip=skip)
    # `null` in the file stands for NaN or infinity.
    now, then = (tr("NaN or infinite") if one["loss"] is None else f"{one['loss']:.6f}" for one in (found, recorded))
    said = tr(
        "loss {losses} matches the recorded {losses2} {how_exact}",
        losses=now,
        losses2=then,
        how_exact=evidence.how_exact,
    )
    return said + evidence.redefinition_note(*recorded), wrong


def _score_checkpoint(evidence: Evidence, folder: Path, which: str) -> Record:
    if folder not in evidence.scores_by_checkpoint:
        model, step = evidence.network(which)
        scorer = evidence.task.scorer(evidence.config, evidence.verification_device)
        found: Record = {"step": step} | as_recorded(scorer.score_model(model).dump())
        if outputs := scorer.outputs():
            found["translations"] = as_recorded(outputs.dump())
        evidence.scores_by_checkpoint[folder] = found
    return evidence.scores_by_checkpoint[folder]


def _translation_differences(evidence: Evidence, found: Record) -> list[Difference]:
    said = evidence.reader.raw("translations")
    if said.get("step") != found["step"] or not evidence.exact or WRITTEN in evidence.redefined_fields:
        return []
    now = found.get("translations", {})
    return [
        Difference(tr("{name} in translations.json", name=name), said.get(name), now[name])
        for name in ("references", "outputs")
        if said.get(name) != now[name]
    ]


def steps(evidence: Evidence) -> Outcome:
    """Training steps, repeated, have the losses and gradient norms that were recorded."""
    if not evidence.train:
        raise Uncheckable(Message("no step was recorded"))
    if evidence.steps == 0:
        raise Uncheckable(Message("--steps 0: none were requested"))
    last = evidence.train[-1]["step"]
    with evidence.process_settings():
        before = [folder for folder in evidence.intact_checkpoints if 0 < int(folder.name[5:]) < last]
        folder = before[-1] if before else None
        start = int(folder.name[5:]) if folder is not None else 0
        after = [record["step"] for record in evidence.train if record["step"] > start]
        # As many as wanted, but far enough to reach a record.
        until = ([step for step in after if step <= start + evidence.steps] or after[:1])[-1]
        found = repeat_steps(evidence, folder, until - start)
    recorded = {record["step"]: record for record in evidence.train if start < record["step"] <= until}
    wrong = [
        Difference(tr("train record at step {step:,}", step=step), fault=tr("not written when repeated"))
        for step in recorded.keys() - found.keys()
    ]
    coarse = chosen_precision(evidence.config.train, evidence.verification_device) == "bf16"
    factor = COARSE if coarse else evidence.score_tolerance_factor
    for step, record in sorted(found.items()):
        said = {key: recorded.get(step, {}).get(key) for key in ("loss", "grad_norm", "lr", "tokens")}
        where = tr("at step {step:,}", step=step)
        wrong += differences(said, record, where, exact=evidence.exact, factor=factor, skip=frozenset())
    if folder is not None:
        whence = tr("from the checkpoint at step {start:,}", start=start)
    elif evidence.origin is not None:
        whence = tr("from the weights of {shown}", shown=evidence.origin.label)
    else:
        whence = tr("from the seed")
    return trn(
        "steps {start:,} to {until:,} repeated {whence}: {n:,} record matches {how_exact}",
        "steps {start:,} to {until:,} repeated {whence}: {n:,} records match {how_exact}",
        len(found),
        start=start + 1,
        until=until,
        whence=whence,
        how_exact=evidence.how_exact,
    ), wrong


def repeat_steps(evidence: Evidence, folder: Path | None, count: int) -> dict[int, Record]:
    """Train again from a checkpoint, or the start; return the train records. `Uncheckable`: training fails here."""
    config, task = evidence.config, evidence.task
    # These do not affect learning.
    for key in ("evaluation.every", "evaluation.sample_every", "checkpoint.every", "checkpoint.average_last"):
        config = capabilities.with_value(config, key, 0)
    with TemporaryDirectory(prefix="tui-transformer-verify-") as root:
        writer = RunWriter.create(Path(root), "repeated", config, {})
        try:
            parts = RunParts(config, task, evidence.initial_network(), task.sampler(config))
            trainer = Trainer(parts, DataFacts(), writer, Control())
            if folder is not None:
                trainer.restore(folder)
            trainer.begin()
            for _ in range(count):
                trainer.advance()
        except (Diverged, Leaking) as error:
            raise Uncheckable(Message("the repeated training stopped early: {error}", error=error)) from None
        finally:
            writer.release_lock()
        records = RunReader(writer.path).raw_lines("metrics")
        return {record["step"]: record for record in records if record.get("kind") == "train"}


FALLEN = ("is NaN or infinite", "is not a number")  # how the trainer words a divergence, now and in earlier versions


def verdicts(evidence: Evidence) -> Outcome:
    """The verdicts in checks.json are those that the checks give now."""
    with evidence.process_settings():
        asked = [one for one in (*_probes(evidence), *_alarms(evidence)) if one.check not in evidence.redefined_fields]
    wrong = []
    for verdict in asked:
        # A probe is recorded each time, an alarm only on change.
        found = [v for v in evidence.reader.verdicts if v.check == verdict.check]
        if verdict.check == "leak":
            found = [v for v in found if v.when == verdict.when]
        said = found[-1].verdict if found else None if verdict.check == "leak" else OK
        if said != verdict.verdict:
            text = tr("check '{check}', {when}", check=verdict.check, when=verdict.when)
            wrong.append(Difference(text, said, verdict.verdict))
    names = ", ".join(dict.fromkeys(f"{tr(verdict.check)} {verdict.verdict}" for verdict in asked))
    return tr("checked again: {names}", names=names), wrong


def _probes(evidence: Evidence) -> Iterator[Verdict]:
    checked = "overlap" in evidence.reader.raw("data")  # earlier versions did not check
    yield from (one for one in evidence.task.data_verdicts() if checked or one.check != "overlap")
    fresh, batches = evidence.initial_network(), evidence.task.batches(evidence.config, evidence.verification_device)
    yield run_leak_probe(evidence.config, fresh, batches, when="before", step=0)
    yield from self_check(evidence.config, fresh, evidence.task)
    if evidence.finished:
        model, step = evidence.network("last")
        yield run_leak_probe(evidence.config, model, batches, when="after", step=step)


def _alarms(evidence: Evidence) -> Iterator[Verdict]:
    config, facts = evidence.config, evidence.reader.data
    found: list[Verdict | None] = []
    if evidence.validation:
        record, step = ValidationRecord.read(evidence.validation[-1]), evidence.validation[-1]["step"]
        free = evidence.reader.leak_free
        found += [*score_verdicts(record, facts, config, step=step, leak_free=free), _curve_verdict(evidence, step)]
    if evidence.finished and (best := evidence.reader.summary.best) is not None:
        found.append(check_majority(best, facts, step=evidence.end_step))
    samples = list(evidence.reader.raw_lines("samples"))
    if samples:
        found.append(check_repeated_sample(samples[-1], samples, step=samples[-1]["step"]))
    yield from (verdict for verdict in found if verdict is not None)


def _curve_verdict(evidence: Evidence, step: int) -> Verdict | None:
    """Repeat the last curve check: over the whole run at its end, else up to the newest evaluation."""
    reason = evidence.status.reason
    if evidence.state == "failed" and any(said in reason for said in FALLEN):
        return Verdict("curve", "after", step, DIVERGED, 0.0, reason)
    if evidence.finished:
        columns = evidence.reader.follow().load(CURVE_RECORDS)
        return check_curves(columns.train, columns.validation, when="after", step=step)
    if len(evidence.metrics) > CURVE_RECORDS:
        return None  # the recorded check saw these records decimated differently
    until = [TrainRecord.read(record) for record in evidence.train if record["step"] <= step]
    return check_curves(until, [*map(ValidationRecord.read, evidence.validation)], when="evaluation", step=step)
