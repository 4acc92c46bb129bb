"""What there is to say about a run's progress and scores, worded once; views choose and arrange it."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from engine.base.clean import clean_line
from engine.base.errors import comma_separated
from engine.base.language import Message, tr, trn
from engine.runs.lineage import chain_text
from engine.runs.reader import RunReader
from engine.runs.records import DataFacts, Floor, LeadBaseline, TrainRecord, ValidationRecord
from tui_transformer.lab.formatting import DOT, done_at, duration, si_number, sparkline
from tui_transformer.lab.records.run_view import RunView


def step_text(step: int, steps: int) -> str:
    return tr("step {step:,} / {steps:,}", step=step, steps=steps)


def speed_text(newest: TrainRecord | None) -> str:
    rate = newest.tokens_per_second if newest is not None else None
    return tr("{short} tok/s", short=si_number(rate)) if rate else ""


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


def losses_text(train: TrainRecord | None, validation: ValidationRecord | None, floor: Floor | None) -> str:
    """The newest losses, nats per character or token, and what may be compared with them."""
    parts = []
    if train is not None:
        parts.append(tr("train {loss}", loss=_loss_text(train)))
    if validation is not None:
        parts.append(tr("validation {loss}", loss=_loss_text(validation)))
    if floor is not None:
        text = Message("reachable floor {nats:.3f}") if floor.context else Message("floor {nats:.3f}")
        parts.append(tr(text, nats=floor.known_nats_per_char))
    if validation is not None and validation.macro_f1 is not None:
        parts.append(tr("accuracy {accuracy:.1%}", accuracy=validation.accuracy))
    if validation is not None and validation.exact_match is not None:
        parts.append(tr("exact match {exact_match:.1%}", exact_match=validation.exact_match))
    return tr("loss {parts}", parts=DOT.join(parts)) if parts else tr("no loss yet")


def _loss_text(record: TrainRecord | ValidationRecord) -> str:
    return tr("not a number") if record.loss is None else f"{record.loss:.3f}"


def validation_text(view: RunView) -> str:
    """Whether a run still improves, and how far it is from the best possible loss."""
    best, last = view.best, view.last
    if best is None or last is None or best.loss is None or last.loss is None:
        return ""
    before = view.validation[-2].loss if len(view.validation) > 1 else None
    better = tr("best {loss:.4g} at step {step:,}", loss=best.loss, step=best.step)
    if best.step == last.step:
        better = tr("best so far")
        if before is not None and before > last.loss:
            better = tr("best so far, down {by:.2g}", by=before - last.loss)
    now = tr("validation {loss:.4g} at step {step:,}", loss=last.loss, step=last.step or 0)
    return DOT.join((now, *_above_floor(view, last.loss), better))


def result_text(view: RunView) -> str:
    """What a run has achieved; "" without a score."""
    best = view.best
    if best is None or best.loss is None:
        return ""
    parts = [tr("best validation loss {loss:.4g} at step {step:,}", loss=best.loss, step=best.step)]
    parts += _above_floor(view, best.loss)
    parts += map(" ".join, average_lines(view.averages, best.loss))
    if view.seconds is not None:
        parts.append(tr("{duration} of training", duration=duration(view.seconds)))
    return DOT.join(parts)


def _above_floor(view: RunView, loss: float) -> Iterator[str]:
    for floor in view.floors[:1]:
        yield tr("{loss:.3f} above the floor", loss=loss - floor.known_nats_per_char)


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


def score_lines(reader: RunReader) -> Iterator[str]:
    """Yield the scores of a run at its end, and those to compare them with; TypeError if a value is missing."""
    summary, data, config = reader.summary, reader.data, reader.config
    last, best = summary.last, summary.best
    if last is None or best is None:
        return
    scores, bits = vars(last), last.bits_per_character  # by name, as messages have them
    yield tr("validation loss {loss:.4f} nats per {unit}", loss=last.loss, unit=tr(config.english_loss_unit))
    if bits is None:
        yield tr("  perplexity {perplexity:.3f}, accuracy {accuracy:.1%}", **scores)
    else:
        yield tr(
            "  perplexity {perplexity:.3f}, {bits:.3f} bits per character, accuracy {accuracy:.1%}", bits=bits, **scores
        )
    if last.bits_per_byte is not None and config.data.tokenizer != "characters":
        words, unknown = last.word_perplexity, last.unknown
        yield tr(
            "  {bits:.4f} bits per byte{words}{unknown}",
            bits=last.bits_per_byte,
            words="" if words is None else tr(", perplexity {perplexity:.2f} per word", perplexity=words),
            unknown="" if unknown is None else tr(", {share:.1%} of the tokens <unk>", share=unknown),
        )
    windows = "" if config.trains_on_rows else tr(", context {context}, stride {stride}", **scores)
    newer = tr("; best {loss:.4f} at step {step:,}", loss=best.loss, step=best.step) if best.step != last.step else ""
    yield tr("  scored on the whole split{windows}{newer}", windows=windows, newer=newer)
    for name, text in average_lines(summary.averages, best.loss):
        yield f"  {name} {text}"
    how = tr("greedily") if last.beam == 1 else tr("with a beam of {beam}", beam=last.beam)
    if "bleu" in config.task.scores:
        yield tr(
            "  BLEU {bleu:.2f}, chrF {chrf:.1f}, {exact_match:.1%} exactly right: {translated:,} of "
            "{sentences:,} sentences translated {how}",
            how=how,
            **scores,
        )
        yield f"  {clean_line(last.bleu_signature)}"
        for one, bleu, exact in last.bleu_and_exact_by_target:
            yield tr(
                "  to {language}: BLEU {bleu:.2f}, {exact:.1%} exactly right", language=one, bleu=bleu, exact=exact
            )
    elif last.rouge_l is not None:
        yield tr(
            "  ROUGE-1 {one:.1f}, ROUGE-2 {two:.1f}, ROUGE-L {longest:.1f}, {exact_match:.1%} exactly right, "
            "{copied:.1%} of the words copied: {translated:,} of {sentences:,} articles summarized {how}",
            one=last.rouge_1,
            two=last.rouge_2,
            longest=last.rouge_l,
            how=how,
            **scores,
        )
        if data.lead is not None:
            yield f"  {lead_baseline_text(data.lead)}"
    elif last.macro_f1 is not None:
        yield tr("  macro F1 {macro_f1:.1%} on {texts:,} texts", **scores)
        for line in classification_baseline_lines(data):
            yield f"  {line}"
    elif "exact_match" in config.task.scores:
        questions = config.task.row_name == "questions"
        right = tr(" ({right:,} of {questions:,} questions)", **vars(best)) if questions else ""
        said = tr("  exact match {exact_match:.1%} at step {step:,}{right}", **vars(best) | {"right": right})
        if (always := data.majority) is not None and always.of:
            answer = clean_line(always.answer)
            said += tr("; always answering “{answer}” would score {share:.1%}", answer=answer, share=always.share)
        yield said
    if last.excess is not None:
        floor, *others = data.floors
        known = {"floor": floor.description, "amount": floor.loss_text}
        yield tr("  {excess:+.4f} above the {floor} ({amount})", **scores, **known)
        for other in others:
            yield f"  {other.description} {other.loss_text}"
    if last.honest_loss is not None:
        yield tr("  {loss:.4f} on answers that cannot be copied from the input", loss=last.honest_loss)
    profile = [value for value in last.profile if value is not None]
    if len(profile) > 1:
        yield tr(
            "  loss by position in the window {sparkline} {first:.2f} → {last:.2f}",
            sparkline=sparkline(profile),
            first=profile[0],
            last=profile[-1],
        )
    if data.classes and data.unigram is not None:
        yield tr("  class frequencies alone would score: {loss:.3f}", loss=data.unigram)
    else:
        counted = ((tr("unigram"), data.unigram), (tr("bigram"), data.bigram))
        counts = comma_separated(f"{name} {value:.3f}" for name, value in counted if value is not None)
        yield tr("  token counts alone would score: {counts}", counts=counts)
    if last.nanogpt_loss is not None:
        yield tr("  on random batches, as in nanoGPT: {loss:.4f}", loss=last.nanogpt_loss)
    if summary.step is None or summary.tokens is None or summary.seconds is None:
        raise TypeError
    steps, tokens = trn("{n:,} step", "{n:,} steps", summary.step), si_number(summary.tokens)
    took = duration(summary.seconds)
    yield tr("  {steps}, {tokens} tokens, {duration} of training", steps=steps, tokens=tokens, duration=took)
    origin = reader.run.origin
    if origin is not None:
        chain = chain_text(origin, clean_line(reader.name))
        yield tr("  {lineage}: from {origin}", lineage=chain, origin=origin.label)
