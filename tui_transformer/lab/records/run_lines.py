"""What there is to say about a run's progress and scores, worded once; views choose and arrange it."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from engine.base.clean import clean_line
from engine.base.language import tr
from engine.runs.records import DataFacts, LeadBaseline
from tui_transformer.lab.formatting import done_at, duration, si_number


def step_text(step: int, steps: int) -> str:
    return tr("step {step:,} / {steps:,}", step=step, steps=steps)


def speed_text(tokens_per_second: float | None) -> str:
    return tr("{short} tok/s", short=si_number(tokens_per_second)) if tokens_per_second else ""


def time_left_text(seconds: float, now: datetime | None = None) -> str:
    """`2:10 left`, or `2:10 left, done at 14:32` if the time of day is given."""
    left = tr("{duration} left", duration=duration(seconds))
    done = done_at(seconds, now) if now is not None else ""
    return tr("{left}, {done}", left=left, done=done) if done else left


def run_time_left_text(step: int, steps: int, seconds: float | None, now: datetime | None = None) -> str:
    """The time left to a run that trains; `seconds` is None while that is not known."""
    if step >= steps:
        return tr("finishing")
    return tr("estimating the time left…") if seconds is None else time_left_text(seconds, now)


def average_lines(averages: Sequence[tuple[str, float]], best: float | None) -> Iterator[tuple[str, str]]:
    """What each kind of averaged weights scores, beside the best: `1.2345, 0.0123 lower than best`."""
    for name, loss in averages:
        by = round(loss - best, 4) if best is not None else 0.0
        if best is None:
            text = f"{loss:.4f}"
        elif by == 0:
            text = tr("{loss:.4f}, equal to best", loss=loss)
        elif by < 0:
            text = tr("{loss:.4f}, {by:.4f} lower than best", loss=loss, by=-by)
        else:
            text = tr("{loss:.4f}, {by:.4f} higher than best", loss=loss, by=by)
        yield tr(name), text


def lead_baseline_text(lead: LeadBaseline) -> str:
    return tr(
        "the first sentence as the summary: ROUGE-1 {one:.1f}, ROUGE-2 {two:.1f}, ROUGE-L {longest:.1f}; "
        "{copied:.1%} of the words in the reference summaries occur in the article",
        one=lead.rouge_1,
        two=lead.rouge_2,
        longest=lead.rouge_l,
        copied=lead.copied,
    )


def classification_baseline_lines(data: DataFacts) -> Iterator[str]:
    """What others get right of the validation texts of a classification: one class always, word counts, the grammar."""
    if data.majority is not None and data.majority.of:
        yield tr("always “{answer}”: {share:.1%}", answer=clean_line(data.majority.answer), share=data.majority.share)
    if data.bag_of_words is not None:
        yield tr("naive Bayes on word counts: {share:.1%}", share=data.bag_of_words)
    reader = data.best_reader
    if reader is not None and reader.unordered is None:
        yield tr("a reader who knows the grammar: {best:.1%}", best=reader.accuracy)
    elif reader is not None:
        yield tr(
            "a reader who knows the grammar: {best:.1%}; one who cannot see the word order: {unordered:.1%}",
            best=reader.accuracy,
            unordered=reader.unordered,
        )
