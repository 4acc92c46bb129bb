"""Alarms on data, scores, samples and curves: too good to be true, no better than counting, the same text twice,
diverged, overfit, stopped too early. No torch here.

A bad curve invalidates a comparison by the last loss, yet that number does not show it.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from engine.base.language import Message
from engine.config.schema import RunConfig
from engine.config.schemes import require_steps
from engine.config.tasks import TaskKind
from engine.runs.records import DataFacts, EvaluationScores, TrainRecord, ValidationRecord
from engine.runs.verdict import (
    DIVERGED,
    IMPLAUSIBLE,
    NOT_LEARNING,
    OK,
    OVERFIT,
    SAME_TEXT,
    STILL_FALLING,
    SUSPICIOUS,
    Verdict,
    When,
)

STANDARD_ERRORS = 4.0  # beyond the whole-past floor, if no other is known, or the best reader's accuracy
PLAUSIBLE_SHARE = 0.25  # of the unigram loss: no natural text is predicted that well from its own past (≈ 0.35)
MIN_IMPLIED_ANSWERS = 10  # exactly right answers that the tokens' accuracy implies
NOISE = 2.0  # standard errors within which a share is no better
MIN_LEARNED_NATS = 0.02  # nats below the unigram loss that count as learning
FIRST_STEPS = 50  # after warm-up; nothing is expected earlier
NATS_IN_COMMON = 40.0  # e^-40: not chance even over all pairs of places in all samples of a run
MAX_COMPARED_SAMPLES = 20  # earlier samples
MAX_SAMPLE_LENGTH = 2_000  # characters of a sample that are compared


def score_verdicts(
    record: EvaluationScores, facts: DataFacts, config: RunConfig, *, step: int, leak_free: bool
) -> list[Verdict | None]:
    """Return what is wrong with an evaluation's scores; arguments as for `check_plausible`."""
    return [
        check_plausible(record, facts, config.task, step=step, leak_free=leak_free),
        check_decoding_matches_accuracy(record, facts, step=step),
        check_learning(record, facts, warmup=require_steps(config.optimizer.warmup), step=step),
    ]


Bound = tuple[float, float, str, str]  # a value, the least possible, what is wrong below that, and the badge for it


def _loss_bound(record: EvaluationScores, facts: DataFacts, task: TaskKind) -> Bound | None:
    """Of the loss, if a text is predicted from its past. Without a known bound, a text may really be that easy:
    suspicious, not implausible.
    """
    if not task.predicts_from_past or record.loss is None:
        return None
    floor, loss, excess = facts.floor, record.loss, record.excess
    nats = None if floor is None else floor.nats_per_char
    reachable = None if floor is None else floor.reachable
    if reachable is not None and reachable.luck is not None and excess is not None:
        below, bound = excess, -reachable.luck
        line = Message(
            "{nats_per_char:.4f}, the floor reachable at this context and stride, "
            "by more than luck allows ({bound:.4f})",
            nats_per_char=reachable.nats_per_char,
            bound=-bound,
        )
    elif floor is not None and nats is not None and floor.se is not None:
        below = loss - nats if excess is None else excess
        bound = -STANDARD_ERRORS * floor.se
        line = Message("the entropy floor of this text, {nats:.4f} ± {se:.4f}", nats=nats, se=floor.se)
    else:
        below = loss
        bound = facts.plausible or PLAUSIBLE_SHARE * (facts.unigram or 0.0)
        line = Message("{bound:.2f}, the lowest loss expected for natural text", bound=bound)
    if floor is None and not facts.plausible:
        why = Message(
            "the loss {loss:.4f} is suspiciously low: below {bound:.2f}, which no model of natural text "
            "reaches. Repetitive text, such as logs or templates, would explain it",
            loss=loss,
            bound=bound,
        )
        return below, bound, why, SUSPICIOUS
    why = Message(
        "the loss {loss:.4f} is below {line}: the model sees what it has to predict, "
        "or the validation text was in the training text, or the mean was taken over the wrong tokens",
        loss=loss,
        line=line,
    )
    return below, bound, why, IMPLAUSIBLE


def _accuracy_bound(record: EvaluationScores, facts: DataFacts) -> Bound | None:
    """Of the m texts that only one of model and best reader gets right, an honest model gets at most m / 2, give or
    take √m / 2. m is not recorded, so it is taken as large as possible: all that either gets wrong.
    """
    best, n, accuracy = facts.best_reader, record.texts, record.accuracy
    if best is None or accuracy is None or not n or (1.0 - best.accuracy) * n <= STANDARD_ERRORS**2:
        return None  # even 100 % could be luck
    luck = STANDARD_ERRORS * math.sqrt(max(0.0, 2.0 - best.accuracy - accuracy) / n)
    why = Message(
        "the accuracy {accuracy:.1%} is above {best:.1%}, that of the best possible reader on the same {n:,} texts, by "
        "more than luck allows: the texts contain their class, or the model was trained on them",
        accuracy=accuracy,
        best=best.accuracy,
        n=n,
    )
    return best.accuracy - accuracy, -luck, why, IMPLAUSIBLE


def check_plausible(
    record: EvaluationScores, facts: DataFacts, task: TaskKind, *, step: int, leak_free: bool = False
) -> Verdict | None:
    """Return whether a validation score is better than is possible or was ever reached; None if no bound is known.
    `leak_free`: whether the leak probe has passed.
    """
    known = [found for found in (_loss_bound(record, facts, task), _accuracy_bound(record, facts)) if found is not None]
    if not known:
        return None
    fine = known[0][0], 0.0, Message("the score is plausible"), OK
    value, _, why, badge = next((found for found in known if found[0] < found[1]), fine)  # the trainer handles NaN
    passed = Message("; the leak probe passed") if leak_free and badge == SUSPICIOUS else ""
    return Verdict(Message("plausible"), "evaluation", step, badge, value, why + passed)


def check_decoding_matches_accuracy(record: EvaluationScores, facts: DataFacts, *, step: int) -> Verdict | None:
    """Return whether far fewer answers are exactly right than the accuracy of their tokens implies; None if it implies
    nothing. If each token of an answer is predicted from the right ones before it, greedy decoding writes the answer,
    and a wrong token spoils one answer only. A beam may choose otherwise, but hardly for half of them.
    """
    tokens, exact, accuracy = facts.splits.get("validation", {}).get("tokens"), record.exact_match, record.accuracy
    n = record.translated or record.questions
    if not n or tokens is None or exact is None or accuracy is None:
        return None
    # `tokens` does not count two marks of each answer, which are scored.
    least = math.floor(n - (1.0 - accuracy) * (tokens + 2 * n))
    if least < MIN_IMPLIED_ANSWERS:
        return None
    why = Message(
        "{accuracy:.1%} of the tokens are right if the model is shown those before them, so at least {least:,} of "
        "{n:,} answers should be exactly right; {right:,} are",
        accuracy=accuracy,
        least=least,
        n=n,
        right=round(exact * n),
    )
    if exact * n >= least / 2:
        return Verdict("decoding", "evaluation", step, OK, exact, why)
    why += Message("; the model reads what it has to predict, or decoding differs from training")
    return Verdict(Message("decoding"), "evaluation", step, SUSPICIOUS, exact, why)


def check_learning(record: EvaluationScores, facts: DataFacts, *, warmup: int, step: int) -> Verdict | None:
    """Return whether after warm-up (steps) the loss is still that of token counts alone; None until then."""
    line, loss = facts.unigram, record.loss
    if step < warmup + FIRST_STEPS or line is None or loss is None:
        return None
    below = line - loss
    if below >= MIN_LEARNED_NATS:
        return Verdict("learning", "evaluation", step, OK, below, Message("better than token frequencies alone"))
    why = Message(
        "the loss {loss:.3f} is no better than knowing how often each token occurs ({line:.3f}): nothing has been "
        "learned yet; the usual cause is a learning rate that is too small or too large; the next most likely is a "
        "wrong mask",
        loss=loss,
        line=line,
    )
    return Verdict(Message("learning"), "evaluation", step, NOT_LEARNING, below, why)


def check_majority(record: EvaluationScores, facts: DataFacts, *, step: int) -> Verdict | None:
    """Return whether one answer to all questions would score as well; None if none are asked."""
    majority = facts.majority
    share = None if majority is None else record.value(majority.score)
    if majority is None or not majority.of or share is None:
        return None
    always = majority.right / majority.of
    noise = NOISE * math.sqrt(always * (1.0 - always) / majority.of)
    above = share - always
    if above > noise:
        return Verdict("answers", "after", step, OK, above, Message("better than always giving the same answer"))
    if facts.classes:
        why = Message(
            "{share:.1%} of the texts are in the right class; always saying '{answer}' would get {always:.1%} (noise "
            "{noise:.1%}): the model has not learned to tell the classes apart; the usual cause is a learning rate "
            "that is too small or too large",
            share=share,
            answer=majority.answer,
            always=always,
            noise=noise,
        )
        return Verdict("answers", "after", step, NOT_LEARNING, above, why)
    why = Message(
        "{share:.1%} of the answers are exactly right; always answering '{answer}' would get "
        "{always:.1%} (noise {noise:.1%}): the model does not know the answers; the usual causes "
        "are facts that pretraining did not teach, or too large a learning rate afterwards",
        share=share,
        answer=majority.answer,
        always=always,
        noise=noise,
    )
    return Verdict(Message("answers"), "after", step, NOT_LEARNING, above, why)


def check_repeated_sample(new: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]], *, step: int) -> Verdict | None:
    """Return whether a sample shares more with an earlier one of the run than chance allows.

    Each was drawn with a seed of its own, so a long common passage must be probable under the model. Text that the
    model knows by heart is, and is not flagged.
    """
    chances, text = new.get("chances"), str(new.get("text", ""))[:MAX_SAMPLE_LENGTH]
    if not chances or len(chances) < len(text):
        return None
    for old in list(earlier)[-MAX_COMPARED_SAMPLES:]:
        if old.get("step") == new.get("step"):
            continue
        before = str(old.get("text", ""))[:MAX_SAMPLE_LENGTH]
        match = SequenceMatcher(None, before, text, autojunk=False).find_longest_match()
        nats = -math.fsum(math.log(max(p, 5e-5)) for p in chances[match.b : match.b + match.size])
        if nats > NATS_IN_COMMON:
            why = Message(
                "the samples at steps {old} and {new} share a passage of {size} characters; the probability of that "
                "happening by chance is e^-{nats:.0f}, so they were not drawn independently (same seed for both?)",
                old=old.get("step"),
                new=new.get("step"),
                size=match.size,
                nats=nats,
            )
            return Verdict("samples", "evaluation", step, SAME_TEXT, nats, why)
    why = Message("samples have no more in common than expected by chance")
    return Verdict("samples", "evaluation", step, OK, 0.0, why)


BLOCK = 10  # train records to average: single ones are noise
DIVERGED_RISE = (0.2, 0.1)  # a training loss that rose by this share, and this many nats, has diverged
OVERFIT_RISE = (0.01, 0.01)  # a rise of the validation loss above its best that is no accident
AFTER_BEST = 3  # evaluations: a curve may dip once
LATE_FALL = (0.02, 0.01)  # a last tenth that cut the loss by this share, and this many nats, was too early to stop
WIDTHS = (0.1, 0.25)  # shares of a run, the second if records are few
# Standard errors of training losses; the lowest of many blocks is low by chance.
SIGNIFICANCE, SIGNIFICANCE_OF_MANY = 3.0, 5.0
MIN_WINDOW_RECORDS = 3  # records of such a share


def check_curves(
    train: Sequence[TrainRecord], validation: Sequence[ValidationRecord], *, when: When, step: int
) -> Verdict | None:
    """Return the problems of the curves so far; None before the first evaluation.

    Records come oldest first, train records thinned or not. `when` = `after` also asks whether the run was long enough.
    """
    scored = [(record.step, record.loss) for record in validation if record.loss is not None]
    trained = [(record.step, record.loss) for record in train if record.loss is not None]
    if not scored:
        return None
    found = (
        _check_divergence(trained)
        or _check_overfit(scored)
        or (_check_still_falling(scored, trained) if when == "after" else None)
    )
    badge, value, why = found or (OK, 0.0, Message("the curves look normal"))
    return Verdict(Message("curve"), when, step, badge, value, why)


def nan_verdict(why: str, *, step: int) -> Verdict:
    said = Message("{why}; do not compare this run with any other", why=why)
    return Verdict("curve", "after", step, DIVERGED, math.inf, said)


def _check_divergence(trained: list[tuple[int, float]]) -> tuple[str, float, str] | None:
    blocks = [trained[i : i + BLOCK] for i in range(len(trained) % BLOCK, len(trained), BLOCK)]
    if len(blocks) < 2:
        return None
    means = [statistics.fmean(loss for _, loss in block) for block in blocks]
    lowest, last = min(means), means[-1]
    best = blocks[means.index(lowest)]
    noise = SIGNIFICANCE_OF_MANY * _standard_error_of_difference(
        [loss for _, loss in best], [loss for _, loss in blocks[-1]]
    )
    if last - lowest <= max(DIVERGED_RISE[0] * lowest, DIVERGED_RISE[1], noise):
        return None
    at = best[-1][0]
    why = Message(
        "the training loss was {lowest:.3f} around step {at:,} and is {last:.3f} now: training "
        "diverged; the usual cause is a learning rate that is too large, or no warm-up",
        lowest=lowest,
        at=at,
        last=last,
    )
    return DIVERGED, last - lowest, why


def _check_overfit(scored: list[tuple[int, float]]) -> tuple[str, float, str] | None:
    best, (_, last) = min(range(len(scored)), key=lambda i: scored[i][1]), scored[-1]
    at, lowest = scored[best]
    since = [loss for _, loss in scored[best + 1 :]]
    least = lowest + max(OVERFIT_RISE[0] * lowest, OVERFIT_RISE[1])
    if len(since) < AFTER_BEST or min(since[-AFTER_BEST:]) <= least:
        return None
    why = Message(
        "the validation loss was best at step {at:,} ({lowest:.4f}) and has risen to {last:.4f}: "
        "from then on the model memorized its training text; compare best losses, or stop there "
        "(evaluation.patience)",
        at=at,
        lowest=lowest,
        last=last,
    )
    return OVERFIT, last - lowest, why


def _check_still_falling(
    scored: list[tuple[int, float]], trained: list[tuple[int, float]]
) -> tuple[str, float, str] | None:
    fall, name, last = _last_tenth_validation_fall(scored), "validation", scored[-1][1]
    if fall is None:
        fall, name = _last_tenth_training_fall(trained), "training"
    if fall is None or fall <= max(LATE_FALL[0] * last, LATE_FALL[1]):
        return None
    why = Message(
        "the {name} loss fell by {fall:.3f} over the last tenth of the run: the model had more to "
        "learn, and a variant that merely learns more slowly looks worse than it is; train longer "
        "(train.steps) before comparing",
        name=name,
        fall=fall,
    )
    return STILL_FALLING, fall, why


def _last_tenth_validation_fall(scored: list[tuple[int, float]]) -> float | None:
    """Return the nats that the last tenth gained; None if evaluations are too far apart to tell."""
    end, last = scored[-1]
    before = [(step, loss) for step, loss in scored[:-1] if step >= 0.75 * end]
    if not before:
        return None
    step, loss = min(before, key=lambda point: abs(point[0] - 0.9 * end))
    return (loss - last) * (0.1 * end) / (end - step) if step < end else None


def _last_tenth_training_fall(trained: list[tuple[int, float]]) -> float | None:
    end = trained[-1][0] if trained else 0
    for width in WIDTHS:
        newest = [loss for step, loss in trained if step > (1.0 - width) * end]
        before = [loss for step, loss in trained if 1.0 - 2.0 * width < step / end <= 1.0 - width]
        if min(len(newest), len(before)) >= MIN_WINDOW_RECORDS:
            fall = statistics.fmean(before) - statistics.fmean(newest)
            return fall * 0.1 / width if fall > SIGNIFICANCE * _standard_error_of_difference(newest, before) else 0.0
    return None


def _standard_error_of_difference(*parts: list[float]) -> float:
    return math.hypot(*(statistics.stdev(part) / len(part) ** 0.5 for part in parts))
