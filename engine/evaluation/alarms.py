"""Alarms on scores and samples: too good to be true, no better than counting, the same text twice. No torch here."""

import math
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from engine.data.overlap import Overlap
from engine.evaluation.verdict import (
    IMPLAUSIBLE,
    NOT_LEARNING,
    OK,
    OVERLAP,
    SAME_TEXT,
    SUSPICIOUS,
    Verdict,
    When,
)

STANDARD_ERRORS = 4.0  # below the floor given the whole past, if no other is known
PLAUSIBLE_SHARE = 0.25  # of the unigram line: no natural text is predicted that well from its own past (≈ 0.35)
UNBOUNDED = ("masked", "span-corruption", "question-answer")  # seen from both sides, or told before
NOISE = 2.0  # standard errors of a share that are no better than it
LEARNED = 0.02  # nats below the unigram line that count as having learned something
FIRST_STEPS = 50  # after warm-up; nobody expects anything before
NATS_IN_COMMON = 40.0  # e^-40: not even among all pairs of places in all samples of a run is that chance
COMPARED = 20  # earlier samples
LONGEST = 2_000  # characters of a sample that are compared


def overlapping(found: Overlap) -> Verdict:
    """Whether so much of the held-out split appears in the training split that its score measures memorization.

    Args:
        found: of the validation split.
    """
    said = found.said
    if not found.much:
        return Verdict("overlap", "before", 0, OK, found.share, said)
    why = (
        f"{said}. The score measures memorization, so it is not compared with other runs: remove duplicates from the "
        "corpus or hold out different text, then train again"
    )
    return Verdict("overlap", "before", 0, OVERLAP, found.share, why)


def implausible(
    record: Mapping[str, Any],
    facts: Mapping[str, Any],
    *,
    kind: str,
    conditional: bool,
    when: When,
    step: int,
    leak_free: bool = False,
) -> Verdict | None:
    """Whether a validation loss is below what is possible, or was ever reached; None where no bound is known.

    A text without a known bound may really be that easy: its loss is suspicious, not implausible.

    Args:
        record: a validation record.
        facts: data.json.
        kind: the objective; the bounds are those of predicting a text from its past.
        conditional: the target is a function of a given source.
        when: for the verdict.
        step: for the verdict.
        leak_free: whether the leak probe has passed.
    """
    if conditional or kind in UNBOUNDED or not isinstance(record.get("loss"), float):
        return None
    floor = facts.get("floor")
    if floor is not None and "reachable" in floor and "excess" in record:
        below, bound = record["excess"], -floor["reachable"]["luck"]
        line = (
            f"{floor['reachable']['nats_per_char']:.4f}, the floor reachable at this context and stride, "
            f"by more than luck allows ({-bound:.4f})"
        )
    elif floor is not None:
        below = record.get("excess", record["loss"] - floor["nats_per_char"])
        bound = -STANDARD_ERRORS * floor["se"]
        line = f"the entropy floor of this text, {floor['nats_per_char']:.4f} ± {floor['se']:.4f}"
    else:
        below = record["loss"]
        bound = facts.get("plausible") or PLAUSIBLE_SHARE * facts["unigram"]
        line = f"{bound:.2f}, less than any model is known to need"
    if not below < bound:  # a loss that is no number is the trainer's matter
        return Verdict("plausible", when, step, OK, below, "the loss is possible")
    if floor is None and not facts.get("plausible"):
        passed = "; the leak probe passed" if leak_free else ""
        why = (
            f"the loss {record['loss']:.4f} is suspiciously low: below {bound:.2f}, which no model of natural text "
            f"reaches. Repetitive text, such as logs or templates, would explain it{passed}"
        )
        return Verdict("plausible", when, step, SUSPICIOUS, below, why)
    why = (
        f"the loss {record['loss']:.4f} is below {line}: the model sees what it has to predict, "
        "or the validation text was in the training text, or the mean was taken over the wrong tokens"
    )
    return Verdict("plausible", when, step, IMPLAUSIBLE, below, why)


def not_learning(
    record: Mapping[str, Any], facts: Mapping[str, Any], *, warmup: int, when: When, step: int
) -> Verdict | None:
    """Whether after warm-up the loss is still that of a model which only counts tokens; None until then.

    Args:
        record: a validation record.
        facts: data.json.
        warmup: steps.
        when: for the verdict.
        step: for the verdict.
    """
    line = facts.get("unigram")
    if step < warmup + FIRST_STEPS or line is None or not isinstance(record.get("loss"), float):
        return None
    below = line - record["loss"]
    if below >= LEARNED:
        return Verdict("learning", when, step, OK, below, "better than counting")
    why = (
        f"the loss {record['loss']:.3f} is no better than knowing how often each token occurs ({line:.3f}): nothing "
        "has been learned yet; a learning rate that is too small or too large is the usual cause, then a wrong mask"
    )
    return Verdict("learning", when, step, NOT_LEARNING, below, why)


def majority_only(record: Mapping[str, Any], facts: Mapping[str, Any], *, when: When, step: int) -> Verdict | None:
    """Whether questions are answered no better than by giving the same answer to all; None where none are asked.

    Args:
        record: a validation record.
        facts: data.json.
        when: for the verdict.
        step: for the verdict.
    """
    majority, share = facts.get("majority"), record.get("exact_match")
    if not majority or not majority["of"] or not isinstance(share, float):
        return None
    always = majority["right"] / majority["of"]
    noise = NOISE * math.sqrt(always * (1.0 - always) / majority["of"])
    above = share - always
    if above > noise:
        return Verdict("answers", when, step, OK, above, "better than always giving the same answer")
    why = (
        f"{share:.1%} of the questions are answered exactly, and always answering '{majority['answer']}' would be "
        f"right in {always:.1%} (noise {noise:.1%}): what was asked is not known; facts that pretraining did not "
        "teach, or too large a learning rate afterwards, are the usual causes"
    )
    return Verdict("answers", when, step, NOT_LEARNING, above, why)


def same_text(new: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]], *, step: int) -> Verdict | None:
    """Whether a sample shares more with an earlier one of the run than chance allows.

    Each was drawn with a seed of its own, so a long common passage must be probable under the model. Text that the
    model knows by heart is, and is not flagged.

    Args:
        new: a record of samples.jsonl with the chance of each token it drew, a character each.
        earlier: older records.
        step: for the verdict.
    """
    chances, text = new.get("chances"), str(new.get("text", ""))[:LONGEST]
    if not chances or len(chances) < len(text):
        return None
    for old in list(earlier)[-COMPARED:]:
        if old.get("step") == new.get("step"):
            continue
        match = SequenceMatcher(None, str(old.get("text", ""))[:LONGEST], text, autojunk=False).find_longest_match()
        nats = -math.fsum(math.log(max(p, 5e-5)) for p in chances[match.b : match.b + match.size])
        if nats > NATS_IN_COMMON:
            why = (
                f"the samples of steps {old.get('step')} and {new.get('step')} share {match.size} characters whose "
                f"chance is e^-{nats:.0f}: they were not drawn independently (one seed for both?)"
            )
            return Verdict("samples", "evaluation", step, SAME_TEXT, nats, why)
    return Verdict("samples", "evaluation", step, OK, 0.0, "samples differ as chance has it")
