"""Translate English texts whose templates are unknown: of runs of earlier versions, of libraries, of other processes.

Such a text is a template with its gaps filled. The template that fits is found, and its translation is filled with the
same words; a text that no template fits stays as it is.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from gettext import NullTranslations
from string import Formatter
from typing import Any

from engine.base.command_line import PROGRAM
from engine.base.language import Message

NUMBER = r"\S+"  # what fills a gap with a format, such as {steps:,}
WORDS = r".*?"
SEPARATORS = ("; ", ": ")  # parts of a text that may be messages of their own
CONTINUATION_STARTS = (",", ";", " (")  # a message that begins with one continues another
QUOTE = "'"
# Texts that only runs of earlier versions have: they stay in the catalogue.
OLD_MESSAGES = (
    Message("it was paused when handed over"),
    Message("could not be handed over: {error}"),
    Message("handed over by the studio"),
    Message("{bound:.2f}, lower than expected for natural text"),
    Message("the loss is plausible"),
    Message("samples differ as expected by chance"),
    Message(
        "the samples at steps {old} and {new} share {size} characters; the probability of that by chance is "
        "e^-{nats:.0f}, so they were not drawn independently (same seed for both?)"
    ),
    Message(
        "averages over about {averaged:,.0f} steps, but the run has {steps:,}: the average stays close to the weights "
        "after the first step; a tenth of the run is usual (--set train.ema={suggested:.6g})"
    ),
    Message(
        "other programs keep {busy:.0%} of this machine's cores busy; {threads} threads waiting for each other can be "
        "many times slower, so --set train.threads=1 is safer for now"
    ),
    Message(
        "other programs keep {busy:.0%} of this machine's cores busy; {threads} threads that wait for each other "
        "can be many times slower than one, so --set train.threads=1 is safer for now"
    ),
    Message(
        "the loss {loss:.3f} is no better than knowing how often each token occurs ({line:.3f}): nothing has "
        "been learned yet; the usual cause is a learning rate that is too small or too large, the next a "
        "wrong mask"
    ),
    Message(
        "an evaluation scores {scored:,} tokens, which takes about {ratio:,.0f} times as long as the "
        "{between:,} steps before it; --set data.validation_fraction={share:.1g} scores enough of the text"
    ),
    Message(
        "predictions differ from an independent implementation's (relative error {worst:.1g}): {positions} "
        "positions, {attentions} attention, a norm, a residual or a layer does not match the config"
    ),
    Message(
        "BLEU counts the characters of Japanese; to count words, as published scores do, pip install 'sacrebleu[ja]'"
    ),
    Message("a sampled token's probability differs from a full pass's (relative error {worst:.1g}): samples are wrong"),
    Message("{n:,} sampled tokens, the last {past_the_end} past a full context, match a full pass's probabilities"),
    Message("{what} does not give the losses of the network without dropout: dropout stays on in evaluation"),
    Message("{claim}; it does only from about {saves_from:,} on (`check` measures the break-even point here)"),
    Message("{claim}, only from about {saves_from:,} on (`check` measures the break-even point here)"),
    Message("texts whose class only word order reveals; chance: the best reader that ignores it"),
    Message("each micro-batch is divided by its own number of targets instead of the whole step's"),
    Message("{what} changes the predictions (by up to {change:.2g} in a logit)"),
    Message("the head starts fresh: it predicts something else than before"),
    Message("skipped: not enough memory ({error})"),
    Message("the update of {name} is not that of {kind} with {settings}"),
    Message("the model can tell token order ({schemes} positions)"),
    Message("objective.kind = 'next-token', and byte pairs"),
    Message("the number that comes after the last speech's"),
    Message("the class is in nothing that the model reads"),
    Message("tokenizer = 'words' and a text"),
)
# Single words that fill gaps and are translated there: unless quoted, they are not names.
TRANSLATED_WORDS = {
    *(Message("loss"), Message("gradient"), Message("training"), Message("validation"), Message("test")),
    *(Message("stopped"), Message("interrupted"), Message("failed"), Message("finished"), Message("scoring")),
}
NAME = "name"  # a gap that holds a user's name: `test` is a run, not a split
WORD = re.compile(r"[^\W\d_]{3}|[\u4e00-\u9fff]")  # what a tail must have besides its gaps
LETTERS, MIN_LETTERS = re.compile(r"[^\W\d_]+(?![^{}]*\})"), 9  # letters that a message must have besides its gaps


class MatchedMessage(Message):
    """A text in English without its template and values; the template that fits is looked for."""

    __slots__ = ()

    def translated(self, catalogue: NullTranslations, /, **more: Any) -> str:
        return _match(str(self), catalogue)


@dataclass(frozen=True)
class _Pattern:
    """A template as a pattern of its filled texts."""

    regex: str
    tail: bool  # it continues another message: `, in training and scoring`
    literals: tuple[str, ...]
    names: tuple[str, ...]  # of its gaps, in order
    translation: tuple[tuple[str, str | None], ...]  # the translation: a literal, and the name of the gap after it

    def translate(self, text: str, catalogue: NullTranslations) -> str | None:
        at = 0
        for literal in self.literals:
            at = text.find(literal, at)
            if at < 0:
                return None
            at += len(literal)
        found = re.fullmatch(self.regex, text, re.DOTALL)
        if found is None:
            return None
        head, *gaps = found.groups()
        values = dict(zip(reversed(self.names), reversed(gaps), strict=True))
        translated = [_match(head, catalogue)]
        for literal, name in self.translation:
            translated.append(literal)
            if name is not None:
                quoted = literal.endswith(QUOTE) or name == NAME
                translated.append(values[name] if quoted else _translate_gap(values[name], catalogue))
        return "".join(translated)


@lru_cache(maxsize=4096)
def _match(text: str, catalogue: NullTranslations) -> str:
    exact, patterns = _patterns(catalogue)
    if not exact or not text:
        return text
    if text in exact:
        return exact[text]
    for pattern in patterns:
        said = pattern.translate(text, catalogue)
        if said is not None:
            return said
    for sign in SEPARATORS:
        head, found, rest = text.partition(sign)
        if found and (parts := (_match(head, catalogue), _match(rest, catalogue))) != (head, rest):
            return sign.join(parts)
    return text


def _translate_gap(value: str, catalogue: NullTranslations) -> str:
    """Translate what fills a gap, unless it is another single word or a command line (names, typed text)."""
    words = value in TRANSLATED_WORDS or (" " in value and not value.startswith(PROGRAM))
    return _match(value, catalogue) if words else value


@lru_cache(maxsize=2)
def _patterns(catalogue: NullTranslations) -> tuple[dict[str, str], list[_Pattern]]:
    """Return the messages without gaps, and those with gaps, the longest first."""
    exact: dict[str, str] = {}
    found: list[_Pattern] = []
    for text, said in getattr(catalogue, "pairs", tuple)():
        try:
            parts, others = _parsed(text), _parsed(said)
        except ValueError:  # a brace that is no gap
            parts = others = []
        gaps = any(name is not None for _, name, _ in parts)
        has_word = any(WORD.search(literal) for literal, _, _ in parts or [(text, None, "")])
        tail = has_word and text.startswith(CONTINUATION_STARTS)
        if not gaps:
            exact[text] = said
        letters = sum(map(len, LETTERS.findall(text)))
        if tail or (gaps and (letters >= MIN_LETTERS or any(spec for _, _, spec in parts))):
            pattern = "(.*?)" if tail else "()"
            pattern += "".join(
                re.escape(literal) + (f"({NUMBER if spec else WORDS})" if name is not None else "")
                for literal, name, spec in parts
            )
            literals = tuple(literal for literal, _, _ in parts if literal)
            names = tuple(name for _, name, _ in parts if name is not None)
            ends = tuple((literal, name) for literal, name, _ in others)
            found.append(_Pattern(pattern, tail, literals, names, ends))
    return exact, sorted(found, key=lambda one: (one.tail, -sum(map(len, one.literals))))


def _parsed(text: str) -> list[tuple[str, str | None, str]]:
    return [(literal, name, spec or "") for literal, name, spec, _ in Formatter().parse(text)]
