"""Claims about the run's own records: are they complete, in order, and consistent?

Only sums and hashes are recomputed here, so these claims can be checked on any machine.
"""

import itertools
import math
import os
from collections.abc import Iterator, Sequence

from engine.base.language import Message, tr, trn
from engine.base.plain_files import open_regular_file, read_regular_file
from engine.config.schemes import learning_rate
from engine.proofs.verify.comparison import Difference, Outcome, Record, Uncheckable, differences, same_value
from engine.proofs.verify.evidence import Evidence
from engine.runs.files import parsed_lines, read_json
from engine.runs.records import ValidationRecord
from engine.runs.twins import loss_and_gradient_hash
from engine.training import checkpoint
from engine.training.trainer import is_better

AT_REST = ("finished", "stopped", "interrupted")  # status.json was written after the last record
LISTED = 5  # differences of one kind that are listed


def metrics(evidence: Evidence) -> Outcome:
    """metrics.jsonl has exactly the records that the config requires, in order."""
    log, evaluation = evidence.config.log.every, evidence.config.evaluation.every
    wrong = [
        *_damaged_lines(evidence),
        *_token_and_time_decreases(evidence.train),
        *_token_and_time_decreases(evidence.validation),
    ]
    trained, scored = _steps(evidence.train), _steps(evidence.validation)
    end = evidence.end_step if evidence.state in AT_REST else max([*trained, *scored, 0])
    steps = evidence.config.train.steps
    last = [steps] if 0 < steps <= end else []
    wrong += _schedule_differences(tr("train records"), trained, log, end, required=last)
    done = [end] if evidence.finished else []
    optional = [] if evidence.finished else [end]
    wrong += _schedule_differences(tr("validation records"), scored, evaluation, end, required=done, optional=optional)
    for folder in evidence.intact_checkpoints[-1:]:  # files shorter than it notes have lost records
        offsets = read_json(folder / checkpoint.STATE)["offsets"]
        for stream in ("metrics", "samples"):
            size = (evidence.reader.path / f"{stream}.jsonl").stat().st_size
            if size < offsets[stream]:
                what = tr("bytes of {stream}.jsonl", stream=stream)
                least = tr("at least {n}, according to {checkpoint}", n=offsets[stream], checkpoint=folder.name)
                wrong.append(Difference(what, size, least, expected=True))
    if evidence.finished and end != steps and not evidence.config.evaluation.patience:
        wrong.append(Difference(tr("step at which the run finished"), end, steps, expected=True))
    text = tr(
        "{n:,} train and {n2:,} validation records, all that were due up to step {end:,}",
        n=len(trained),
        n2=len(scored),
        end=end,
    )
    return text, wrong


def values(evidence: Evidence) -> Outcome:
    """Each record is consistent: perplexity with loss, learning rate with the schedule."""
    config, wrong = evidence.config, []
    for record in evidence.train:
        rate = learning_rate(config.optimizer, record["step"], config.train.steps)
        if not same_value("lr", record.get("lr"), rate, exact=False):
            what = tr("learning rate at step {step}", step=record["step"])
            wrong.append(Difference(what, record.get("lr"), rate, expected=True))
    for record in evidence.validation:
        loss, perplexity = record.get("loss"), record.get("perplexity")
        if loss is None or perplexity is None:
            continue  # the loss was NaN or infinite
        expected = math.exp(loss) if loss < 700 else math.inf
        if not math.isclose(perplexity, expected, rel_tol=1e-12):
            what = tr("perplexity at step {step}", step=record["step"])
            wrong.append(Difference(what, perplexity, expected, expected=True))
    return tr("learning rates follow the schedule; perplexity is e^loss"), wrong[:LISTED]


def metrics_hash(evidence: Evidence) -> Outcome:
    """The losses and gradient norms have the SHA-256 that the run noted when it finished."""
    noted, what = evidence.summary.get("fingerprint"), tr("SHA-256 of losses and gradient norms")
    if noted is None:
        if evidence.finished:
            return "", (Difference(what, fault=tr("missing, although the run finished")),)
        text = Message("only a finished run records this hash; this run's state is {state}", state=tr(evidence.state))
        raise Uncheckable(text)
    found = loss_and_gradient_hash(evidence.reader.path)
    wrong = () if noted == found else (Difference(what, noted, found),)
    return tr("SHA-256 {found}… of losses and gradient norms, as recorded at the end", found=found[:12]), wrong


def summary(evidence: Evidence) -> Outcome:
    """summary.json says what metrics.jsonl says: the last score, the best one, their gap."""
    if not evidence.summary:
        if evidence.validation and evidence.finished:
            return "", (Difference("summary.json", fault=tr("missing, although metrics.jsonl has scores")),)
        raise Uncheckable(Message("nothing has been scored yet, so there is no summary"))
    until = evidence.summary.get("step")
    records = [r for r in evidence.validation if isinstance(until, int) and r["step"] <= until]
    if not evidence.finished and isinstance(until, int) and until > max([*_steps(evidence.metrics), 0]):
        text = Message(
            "the summary is from a later step than the last metrics: the run was resumed from an earlier step"
        )
        raise Uncheckable(text)
    last, best = (records[-1] if records else None), None
    for record in records:
        held = None if best is None else ValidationRecord.read(best)
        if is_better(ValidationRecord.read(record), held, evidence.config.evaluation.select):
            best = record
    wrong = []
    for name, found in (("best", best), ("last", last)):
        said = evidence.summary.get(name)
        if said is None or found is None:
            wrong += [Difference(name, said, found)] if said != found else []
        else:
            wrong += differences(said, found, tr("of the {name} score", name=name), exact=True, skip=frozenset())
    if best is not None and last is not None:
        gap = None if last["loss"] is None else last["loss"] - best["loss"]
        if evidence.summary.get("gap") != gap:
            wrong.append(Difference(tr("gap between last and best"), evidence.summary.get("gap"), gap))
    try:
        pointed = read_regular_file(evidence.reader.path / "checkpoints" / "best", 100).decode("utf-8").strip()
    except (OSError, ValueError):
        pointed = ""
    if best is not None and pointed != checkpoint.folder_name(best["step"]):
        wrong.append(Difference(tr("checkpoint marked as best"), pointed or None, checkpoint.folder_name(best["step"])))
    scores = (
        "" if best is None else tr(": best loss {best:.4f} at step {best2:,}", best=best["loss"], best2=best["step"])
    )
    return tr("best and last match the metrics{scores}", scores=scores), wrong


def events(evidence: Evidence) -> Outcome:
    """events.jsonl records the same attempts as status.json and environment.json."""
    told = list(evidence.reader.raw_lines("events"))
    attempt = evidence.status.attempt or 1
    numbers: list[int] = [event["attempt"] for event in told]
    wrong = []
    if numbers != sorted(numbers) or (numbers and (numbers[0] != 1 or numbers[-1] > attempt)):
        due = tr("{first} to {last} in order", first=1, last=attempt)
        wrong.append(Difference(tr("attempts in events.jsonl"), sorted(set(numbers)), due, expected=True))
    started = [event for event in told if event.get("event") == "started"]
    first = started[0]["attempt"] if started else 1  # an earlier attempt ended before its first checkpoint
    counted = [one.attempt for one in evidence.attempts]
    if counted != list(range(first, first + len(counted))) or first + len(counted) - 1 > attempt:
        due = tr("{first} to {last} in order", first=first, last=attempt)
        wrong.append(Difference(tr("attempts in environment.json"), counted, due, expected=True))
    if len(started) != 1 and (evidence.metrics or started):
        wrong.append(Difference(tr("times the run was started"), len(started), 1, expected=True))
    steps = f"{evidence.config.train.steps} steps "
    for event in started:
        if not str(event.get("text", "")).startswith(steps):
            wrong.append(Difference(tr("length at the start"), event.get("text"), steps.strip(), expected=True))
    resumed = sum(event.get("event") == "resumed" for event in told)
    if resumed > attempt - 1:
        due = tr("at most {n}", n=attempt - 1)
        wrong.append(Difference(tr("times the run was resumed"), resumed, due, expected=True))
    if evidence.state in AT_REST:
        said = (told[-1].get("event"), told[-1].get("step")) if told else None
        if said != (evidence.state, evidence.end_step):
            wrong.append(Difference(tr("last event"), said, (evidence.state, evidence.end_step), expected=True))
    return tr("{n:,} in order; attempts: {attempt}", n=len(told), attempt=attempt), wrong


def sample_records(evidence: Evidence) -> Outcome:
    """samples.jsonl has a sample for exactly the steps that were due for one."""
    config = evidence.config.evaluation
    steps = [record.get("step") for record in evidence.reader.raw_lines("samples")]
    whole = [step for step in steps if isinstance(step, int)]
    if config.sample_length == 0:
        wrong = [Difference(tr("samples"), len(steps), 0, expected=True)] if steps else []
        return tr("none were requested"), wrong
    end = evidence.end_step if evidence.state in AT_REST else max([*whole, *_steps(evidence.metrics), 0])
    done = [end] if evidence.finished else []
    optional = [] if evidence.finished else [end]
    wrong = _schedule_differences(tr("samples"), whole, config.sample_every, end, required=done, optional=optional)
    return tr("{n:,}, one for every step that was due", n=len(steps)), wrong


def _steps(records: Sequence[Record]) -> list[int]:
    return [record["step"] for record in records]


def _schedule_differences(
    what: str, steps: Sequence[int], every: int, end: int, *, required: Sequence[int], optional: Sequence[int] = ()
) -> list[Difference]:
    for before, after in itertools.pairwise(steps):
        if after <= before:
            fault = tr("step {after} comes after step {before}", after=after, before=before)
            return [Difference(tr("order of {what}", what=what), fault=fault)]
    there = set(steps)
    strange = [step for step in steps if step > end or not (_is_due(step, every) or step in required)]
    fault = tr("not due")
    wrong = [Difference(tr("{what} at step {step}", what=what, step=step), fault=fault) for step in strange[:LISTED]]
    missing = (end // every if every > 0 else 0) - sum(_is_due(step, every) and step <= end for step in there)
    missing -= sum(_is_due(step, every) and step not in there for step in optional)
    missing += sum(step not in there and not _is_due(step, every) for step in required)
    if missing > 0:
        have = len(there) - len(strange)
        text = tr("number of {records} up to step {end:,}", records=what, end=end)
        wrong.append(Difference(text, have, have + missing, expected=True))
    return wrong


def _is_due(step: int, every: int) -> bool:
    return every > 0 and step > 0 and step % every == 0


def _token_and_time_decreases(records: Sequence[Record]) -> Iterator[Difference]:
    for before, after in itertools.pairwise(records):
        for field in ("tokens", "seconds"):
            if not before.get(field, 0) <= after.get(field, 0):
                text = tr("{field} at step {step}", field=field, step=after["step"])
                yield Difference(text, after.get(field), f"≥ {before.get(field)}", expected=True)


def _damaged_lines(evidence: Evidence) -> Iterator[Difference]:
    """Yield lines that are not records; a killed process may leave an unfinished last line."""
    for stream in ("metrics", "samples", "events"):
        path = evidence.reader.path / f"{stream}.jsonl"
        try:
            with open_regular_file(path) as file:
                damaged = sum(record is None for record in parsed_lines(file))
                file.seek(-min(1, file.seek(0, os.SEEK_END)), os.SEEK_END)
                cut = file.read(1) not in (b"", b"\n")
        except OSError:
            yield Difference(path.name, fault=tr("missing"))
            continue
        if cut and damaged and evidence.state not in AT_REST:
            damaged -= 1
        if damaged:
            yield Difference(path.name, fault=trn("{n} damaged line", "{n} damaged lines", damaged))
