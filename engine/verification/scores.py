"""Claims about scores and samples: a checkpoint is scored again, and writes its sample again from its seed."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from engine.runs.files import read_json
from engine.training import checkpoint
from engine.verification.closeness import as_recorded, differences
from engine.verification.evidence import Evidence, Record
from engine.verification.finding import Difference, Outcome, Unknown

WRITTEN = "translation"  # a model's translations, among the redefined fields
NEWEST_SAMPLES = 3  # that are written again, where their checkpoints are kept
SAID_OF = frozenset(("kind", "step", "tokens", "seconds"))  # fields of a validation record that are no scores


def score(evidence: Evidence, which: str) -> Outcome:
    """A checkpoint, scored again over the whole validation split, has the score that was recorded at its step."""
    if not evidence.validation:
        raise Unknown("nothing was scored")
    with evidence.process():
        folder = checkpoint.find(evidence.reader, which)
        found = _scored(evidence, folder, which)
        step = found["step"]
        recorded = [record for record in evidence.validation if record["step"] == step]
        if not recorded:
            raise Unknown(f"nothing was recorded at step {step:,}, where this checkpoint is")
        wrong = differences(
            recorded[-1],
            found,
            f"at step {step:,}",
            exact=evidence.exact,
            factor=evidence.score_factor,
            skip=SAID_OF | evidence.redefined,
        )
        wrong += _translations(evidence, found)
    return Outcome(
        f"step {step:,} scored again: loss {_digits(found)}, recorded {_digits(recorded[-1])}, "
        f"{evidence.how_exact}{evidence.not_compared(*recorded[-1])}",
        tuple(wrong),
    )


def average(evidence: Evidence) -> Outcome:
    """The mean of the last checkpoints' weights has the score that summary.json gives it."""
    recorded = evidence.summary.get("average")
    asked = evidence.config.checkpoint.average_last >= 2 and evidence.finished
    if recorded is None:
        return Outcome("none was asked for", (Difference("averaged score", None, "a score"),) if asked else ())
    with evidence.process():
        found = _scored(evidence, checkpoint.find(evidence.reader, checkpoint.AVERAGE), checkpoint.AVERAGE)
        wrong = differences(
            recorded,
            found,
            "of the average",
            exact=evidence.exact,
            factor=evidence.score_factor,
            skip=SAID_OF | {"steps"} | evidence.redefined,
        )
    return Outcome(
        f"loss {_digits(found)}, recorded {_digits(recorded)}, {evidence.how_exact}{evidence.not_compared(*recorded)}",
        tuple(wrong),
    )


def samples(evidence: Evidence) -> Outcome:
    """The newest samples, written again by their checkpoints from their seeds, are the same text."""
    if WRITTEN in evidence.redefined:
        raise Unknown("an older version wrote the samples with a different length limit")
    records = list(evidence.reader.records("samples"))
    if not records:
        raise Unknown("the run wrote no samples")
    wrong: list[Difference] = []
    repeated: list[int] = []
    with evidence.process():
        for record in records[-NEWEST_SAMPLES:]:
            folder = evidence.folder_of(record["step"])
            if folder is None:
                continue
            model, step = evidence.network(str(record["step"]))
            found = evidence.task.sampler(evidence.config).sample(model, step)
            repeated.append(step)
            exact = evidence.exact
            skip = frozenset(("chances",)) if not exact else frozenset()
            wrong += differences(record, found, f"of the sample at step {step:,}", exact=exact, skip=skip)
    if not repeated:
        raise Unknown("the checkpoints that wrote the newest samples are not kept")
    if wrong and not evidence.exact:
        raise Unknown(f"it drew otherwise, as rounding can make it: {evidence.why_not_exact}")
    steps = ", ".join(f"{step:,}" for step in repeated)
    kept = (
        "" if len(repeated) == len(records) else f"; of the other {len(records) - len(repeated)} no checkpoint is kept"
    )
    return Outcome(f"written again from their seeds, at step {steps}{kept}", tuple(wrong))


def _digits(record: Record) -> str:
    """The loss for a sentence; null is what a file has for one that is no number."""
    return "no number" if record["loss"] is None else f"{record['loss']:.6f}"


def _scored(evidence: Evidence, folder: Path, which: str) -> Record:
    """The scores of a checkpoint, once."""
    if folder not in evidence.scored:
        model, step = evidence.network(which)
        scorer = evidence.task.scorer(evidence.config, evidence.device)
        found = {"step": step} | as_recorded(scorer.record(model))
        if outputs := scorer.outputs():
            found["translations"] = outputs
        evidence.scored[folder] = found
    return evidence.scored[folder]


def _translations(evidence: Evidence, found: Record) -> list[Difference]:
    """translations.json, where it is of this step: what was written is what BLEU was taken of."""
    said = read_json(evidence.reader.path / "translations.json")
    if not isinstance(said, dict) or said.get("step") != found["step"]:
        return []
    if not evidence.exact or WRITTEN in evidence.redefined:
        return []
    now = found.get("translations", {})
    return [
        Difference(f"{name} in translations.json", said.get(name), now[name])
        for name in ("references", "outputs")
        if said.get(name) != now[name]
    ]


SCORED: dict[str, Callable[[Evidence], Outcome]] = {
    "best score": partial(score, which="best"),
    "last score": partial(score, which="last"),
    "averaged score": average,
}
