"""A model of documents as a writer: it answers a question, or fills in a document.

What stands before the answer is the prompt that the model was trained with (`engine.generation.answering`), and ⁇ is a
mark in it.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.errors import InputError
from engine.runs.reader import RunReader
from tui_transformer.lab.play.prompt import Settings
from tui_transformer.lab.play.writer import (
    END,
    MARK,
    Writer,
    alternatives_of,
    sampling_of,
    split_at_arrow,
    token_scores,
)
from tui_transformer.lab.play.written import Answer, AnswerToken, AttentionView, TokenScores

if TYPE_CHECKING:
    from torch import Tensor

    from engine.data.padding import Tokens
    from engine.generation.answering import Prompt

GAP = re.compile(r"⁇|_{2,}")
_BARE = re.compile(rf"\s*{MARK}\s*")
FOLLOWED = 8  # hypotheses of the search for the likeliest answers
GREEDY: Settings = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "seed": 1, "length": 50}
INVITATIONS = {
    "question-answer": "type a question; temperature 0 is greedy",
    "span-corruption": "type a document with ___ where something is missing; temperature 0 is greedy",
}


@dataclass(frozen=True)
class Example:
    """A held-out question, or document with gaps, and the greedy answer; not cleaned.

    Args:
        asked: a question, or a document with gaps.
        reference: what is right; "" where that is not told.
        written: the greedy answer.
    """

    asked: str
    reference: str
    written: str

    @property
    def right(self) -> bool:
        return bool(self.reference) and self.written.strip() == self.reference.strip()

    def record(self) -> dict[str, str | bool | None]:
        right = self.right if self.reference else None
        return {"asked": self.asked, "reference": self.reference, "text": self.written, "right": right}


class DocumentWriter(Writer):
    """A checkpoint of a run on documents or on questions about them; see `Writer`."""

    ranks = True
    crossing = "cross-attention: each token of the answer sees all that was read"

    def _load(self, reader: RunReader, checkpoint: str) -> None:
        from engine.data.objectives import QuestionAnswer, span_corruption
        from engine.training.checkpoint import load_of_documents

        self.model, self.tokenizer, self.step = load_of_documents(reader, checkpoint, self.device)
        self._size = self.tokenizer.vocab_size
        self._asks = QuestionAnswer(self.config, self._size) if self.config.answers else None
        self._fills = None if self.config.answers else span_corruption(self.config, self._size)
        self._joins = self.tokenizer.kind == "bpe"  # the space before a word is a part of its first token
        self.defaults, self.invitation = dict(GREEDY), INVITATIONS[self.config.objective.kind]

    def pieces(self, text: str, settings: Settings, answer: int = 0, alternatives: int = 0) -> Iterator[AnswerToken]:
        from engine.generation.answering import sample_answer

        how, seed = sampling_of(settings, answer)
        prompt, most = self._prompt(text), int(settings["length"])
        found = sample_answer(self.model, prompt, how, seed, allowed=self._size, most=most, alternatives=alternatives)
        marks, text_of = len(prompt.marks), self._decoder()
        for one in found:
            others = alternatives_of(one.alternatives, lambda token: self._named(token, marks))
            yield AnswerToken(text_of(one.token), one.probability, one.chance, others)

    def wholes(self, text: str, written: str, others: int) -> tuple[Answer, ...]:
        from engine.generation.answering import beam_answers
        from engine.generation.samples import shown
        from engine.generation.surprise import answer_surprise

        prompt = self._prompt(text)
        answer = self._answer(written, prompt)
        room = self.config.model.context_length - len(prompt.tokens)
        nats = math.fsum(one.nats or 0.0 for one in answer_surprise(self.model, prompt, answer[:room], self._size))
        first = Answer(_on_a_line(written), math.exp(-nats))
        most, beam = max(2 * len(answer), 1) + 10, max(FOLLOWED, others + 1)
        found = beam_answers(self.model, prompt, allowed=self._size, most=most, beam=beam, n_best=beam)
        ranked = [
            Answer(_on_a_line(shown(self.tokenizer, one.tokens)), math.exp(one.log_probability))
            for one in found
            if one.finished
        ]
        return first, *[one for one in ranked if one.text != first.text][:others]

    def filled(self, text: str, written: str) -> str:
        """Return the document with what was written in its gaps, each in brackets; "" where a question is answered."""
        if self.config.answers:
            return ""
        spans = iter(written.split(MARK))
        return GAP.sub(lambda gap: f"[{next(spans, '').strip()}]", text)

    def examples(self) -> list[Example]:
        """Return a few held-out questions, or documents with gaps, always the same ones; the corpus is loaded.

        Raises:
            InputError: the corpus cannot be found, or something is wrong with it.
        """
        from engine.training.tasks import make_task

        evaluation = self.config.evaluation.model_copy(update={"sample_prompt": ""})
        config = self.config.model_copy(update={"evaluation": evaluation})
        rows = make_task(config, None, self.tokenizer).sampler(config).sample(self.model, self.step)["translations"]
        return [Example(row["source"], row["reference"], row["text"]) for row in rows]

    def surprise(self, text: str, alternatives: int = 0) -> TokenScores:
        from engine.generation.surprise import answer_surprise

        what = "a question and its answer" if self.config.answers else "a document with ___ and what is missing"
        needed = f"{what} are needed, with → between them, e.g. {self._example()} → London"
        asked, answer = split_at_arrow(text, needed, last=True)
        prompt = self._prompt(asked)
        found = answer_surprise(
            self.model, prompt, self._answer(_BARE.sub(MARK, answer), prompt), self._size, alternatives
        )
        decoder = self.tokenizer.decoder()
        texts = [decoder.feed(one.token) if one.token < self._size else END for one in found]
        rule = f"each token given “{asked}” and the answer before it; {END} is its end"
        return token_scores(found, texts, lambda token: self.tokenizer.decode([token]), asked, rule)

    def attention(self, text: str, written: str, layer: int, head: int, which: str = "self") -> AttentionView:
        found = super().attention(text, written, layer, head, which)
        first = "" if which == "encoder" else f"; the first token of the answer is written by the last {MARK} before it"
        return replace(found, rule=found.rule + first)

    def _read(self, text: str, written: str) -> "tuple[Tensor, Tensor | None]":
        import numpy as np
        import torch

        prompt = self._prompt(text)
        tokens = np.concatenate((prompt.tokens, self._answer(written, prompt)))[: self.config.model.context_length]
        source = None if prompt.source is None else torch.from_numpy(prompt.source).to(self.device)
        return torch.from_numpy(tokens).to(self.device), source

    def _labels(self, ids: "Tensor", *, is_source: bool) -> tuple[str, ...]:
        return tuple(map(self._decoder(), ids.tolist()))

    def _decoder(self) -> Callable[[int], str]:
        """Return what gives the text of one token after the other, with spaces before words; special ones as marks."""
        decoder = self.tokenizer.decoder()

        def text_of(token: int) -> str:
            nonlocal decoder
            if token < self._size:
                return decoder.feed(token)
            decoder = self.tokenizer.decoder()
            return MARK

        return text_of

    def _prompt(self, text: str) -> "Prompt":
        from engine.generation.answering import gaps_prompt, question_prompt

        if self._asks is not None:
            question = self.tokenizer.encode(text.strip())
            if not len(question):
                raise InputError(f"prompt '': it needs a question, e.g. {self._example()}")
            return question_prompt(self._asks, question)
        assert self._fills is not None
        parts = GAP.split(text.strip())
        most = len(self.config.special_tokens) - 3 if self.config.has_sentinels else 1  # without pad, start and end
        if not 1 < len(parts) <= most + 1:
            gaps = "one gap" if most == 1 else f"1 to {most} gaps"
            raise InputError(
                f"prompt: this model fills in a document with {gaps}: mark what is missing with ___, "
                f"e.g. {self._example()}"
            )
        before = [part.rstrip(" ") if self._joins else part for part in parts[:-1]]
        return gaps_prompt(self._fills, self.tokenizer.encode_all([*before, parts[-1]]))

    def _example(self) -> str:
        return "'Where was Ada Lovelace born?'" if self.config.answers else "'Ada Lovelace was born in ___.'"

    def _answer(self, written: str, prompt: "Prompt") -> "Tokens":
        """Return the tokens of an answer, as they stand after the prompt."""
        import numpy as np

        spans = written.split(MARK)
        if self._joins:
            spans = [f" {span.strip()}" if span.strip() else "" for span in spans]
        rows = self.tokenizer.encode_all(spans)
        marks = [np.array([mark], dtype=np.int64) for mark in prompt.marks[: len(rows) - 1]]
        joined = [rows[0], *(part for pair in zip(marks, rows[1:], strict=False) for part in pair)]
        return np.concatenate(joined).astype(np.int64)

    def _named(self, token: int, marks: int) -> str:
        """Return an alternative: of the text, a mark, or after them the end."""
        if token < self._size:
            return self.tokenizer.decode([token])
        return MARK if token < self._size + marks else END


def _on_a_line(written: str) -> str:
    """An answer without white space around it, and a space on either side of its marks."""
    return _BARE.sub(f" {MARK} ", written).strip()
