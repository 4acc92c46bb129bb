"""Writers for document models: one answers a question, one fills in a document.

Each answer follows the prompt that the model was trained with (`engine.generation.answering`), in which ⁇ is a mark.
"""

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from engine.errors import InputError
from engine.runs.reader import RunReader
from tui_transformer.lab.play.prompt import Settings
from tui_transformer.lab.play.writer import (
    END,
    MARK,
    Writer,
    answer_tokens,
    sampling_of,
    split_at_arrow,
    token_scores,
)
from tui_transformer.lab.play.written import Answer, AnswerToken, AttentionView, Example, TokenScores

if TYPE_CHECKING:
    from torch import Tensor

    from engine.data.padding import Tokens
    from engine.generation.answering import Prompt

GAP = re.compile(r"⁇|_{2,}")
_BARE = re.compile(rf"\s*{MARK}\s*")
FOLLOWED = 8  # beam width of the search for the likeliest answers
GREEDY: Settings = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "seed": 1, "length": 50}


class DocumentWriter(Writer):
    ranks = True
    surprised_by: ClassVar[str]  # what `surprise` needs, besides the arrow
    example: ClassVar[str]  # of a prompt
    crossing = "cross-attention: each token of the answer sees all that was read"

    def _load(self, reader: RunReader, checkpoint: str) -> None:
        from engine.training.checkpoint import load_of_documents

        self.model, self.tokenizer, self.step = load_of_documents(reader, checkpoint, self.device)
        self._size = self.tokenizer.vocab_size
        self._joins = self.tokenizer.kind == "bpe"  # the space before a word belongs to its first token
        self.defaults = dict(GREEDY)

    def pieces(self, text: str, settings: Settings, answer: int = 0, alternatives: int = 0) -> Iterator[AnswerToken]:
        from engine.generation.answering import require_room, sample_answer

        how, seed = sampling_of(settings, answer)
        prompt, most = self._prompt(text), int(settings["length"])
        require_room(self.model, prompt)
        found = sample_answer(self.model, prompt, how, seed, allowed=self._size, most=most, alternatives=alternatives)
        yield from answer_tokens(found, self._decoder(), lambda token: self._named(token, prompt))

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
        found = beam_answers(self.model, prompt, allowed=self._size, most=most, beam=beam)
        ranked = [
            Answer(_on_a_line(shown(self.tokenizer, one.tokens)), math.exp(one.log_probability))
            for one in found
            if one.finished
        ]
        return first, *[one for one in ranked if one.text != first.text][:others]

    def examples(self) -> list[Example]:
        from engine.training.tasks import make_task

        evaluation = self.config.evaluation.model_copy(update={"sample_prompt": ""})
        config = self.config.model_copy(update={"evaluation": evaluation})
        rows = make_task(config, None, self.tokenizer).sampler(config).sample(self.model, self.step).translations
        return [Example(row.source, row.reference, row.text) for row in rows]

    def surprise(self, text: str, alternatives: int = 0) -> TokenScores:
        from engine.generation.surprise import answer_surprise

        needed = f"{self.surprised_by} are needed, with → between them, e.g. {self.example} → London"
        asked, answer = split_at_arrow(text, needed, last=True)
        prompt = self._prompt(asked)
        found = answer_surprise(
            self.model, prompt, self._answer(_BARE.sub(MARK, answer), prompt), self._size, alternatives
        )
        decoder = self.tokenizer.decoder()
        rule = f"each token given “{asked}” and the answer before it; {END} is its end"
        text_of = lambda token: decoder.feed(token) if token < self._size else END
        return token_scores(found, text_of, lambda token: self.tokenizer.decode([token]), asked, rule)

    def attention(self, text: str, written: str, layer: int, head: int, which: str = "self") -> AttentionView:
        found = super().attention(text, written, layer, head, which)
        first = "" if which == "encoder" else f"; the first token of the answer is written by the last {MARK} before it"
        return replace(found, rule=found.rule + first)

    def _read(self, text: str, written: str) -> "tuple[Tensor, Tensor | None]":
        prompt = self._prompt(text)
        return self._prompted(prompt, self._answer(written, prompt))

    def _labels(self, ids: "Tensor", *, is_source: bool) -> tuple[str, ...]:
        return tuple(map(self._decoder(), ids.tolist()))

    def _decoder(self) -> Callable[[int], str]:
        """Return a token-by-token decoder that puts spaces before words and shows special tokens as marks."""
        decoder = self.tokenizer.decoder()

        def text_of(token: int) -> str:
            nonlocal decoder
            if token < self._size:
                return decoder.feed(token)
            decoder = self.tokenizer.decoder()
            return MARK

        return text_of

    @abstractmethod
    def _prompt(self, text: str) -> "Prompt":
        """Return the prompt that the model was trained with; raise InputError if the text cannot be one."""

    def _answer(self, written: str, prompt: "Prompt") -> "Tokens":
        import numpy as np

        spans = written.split(MARK)
        if self._joins:
            spans = [f" {span.strip()}" if span.strip() else "" for span in spans]
        rows = self.tokenizer.encode_all(spans)
        marks = [np.array([mark], dtype=np.int64) for mark in prompt.marks[: len(rows) - 1]]
        joined = [rows[0], *(part for pair in zip(marks, rows[1:], strict=False) for part in pair)]
        return np.concatenate(joined).astype(np.int64)

    def _named(self, token: int, prompt: "Prompt") -> str:
        if token < self._size:
            return self.tokenizer.decode([token])
        return END if token == prompt.end else MARK


class QuestionWriter(DocumentWriter):
    invitation = "type a question; temperature 0 is greedy"
    surprised_by = "a question and its answer"
    example = "'Where was Ada Lovelace born?'"

    def _prompt(self, text: str) -> "Prompt":
        from engine.data.objectives import QuestionAnswer
        from engine.generation.answering import question_prompt

        question = self.tokenizer.encode(text.strip())
        if not len(question):
            raise InputError(f"prompt '': it needs a question, e.g. {self.example}")
        return question_prompt(QuestionAnswer(self.config, self._size), question)


class SpanWriter(DocumentWriter):
    invitation = "type a document with ___ where something is missing; temperature 0 is greedy"
    surprised_by = "a document with ___ and what is missing"
    example = "'Ada Lovelace was born in ___.'"

    def filled(self, text: str, written: str) -> str:
        spans = iter(written.split(MARK))
        return GAP.sub(lambda gap: f"[{next(spans, '').strip()}]", text)

    def _prompt(self, text: str) -> "Prompt":
        from engine.data.objectives import span_corruption
        from engine.generation.answering import gaps_prompt

        parts, sentinels = GAP.split(text.strip()), self.config.objective.has_sentinels
        most = len(self.config.special_tokens) - 3 if sentinels else 1  # without pad, start and end
        if not 1 < len(parts) <= most + 1:
            gaps = "one gap" if most == 1 else f"1 to {most} gaps"
            raise InputError(
                f"prompt: this model fills in a document with {gaps}: mark what is missing with ___, "
                f"e.g. {self.example}"
            )
        before = [part.rstrip(" ") if self._joins else part for part in parts[:-1]]
        objective = span_corruption(self.config, self._size)
        return gaps_prompt(objective, self.tokenizer.encode_all([*before, parts[-1]]))


def _on_a_line(written: str) -> str:
    """Strip an answer's white space, and put a space on either side of its marks."""
    return _BARE.sub(f" {MARK} ", written).strip()
