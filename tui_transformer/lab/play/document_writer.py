"""A model of documents as the prompt's and the Playground's writer: it answers a question, or fills in a document.

What stands before the answer is the prompt that the model was trained with (`engine.generation.answering`), and ⁇ is a
mark in it.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import InputError
from engine.runs.reader import RunReader
from tui_transformer.lab.play.inspected import Inspected
from tui_transformer.lab.play.pictures import stacks, who_sees_whom
from tui_transformer.lab.play.prompt import Settings
from tui_transformer.lab.play.written import Alternative, Attended, Piece, Surprised, Whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.config.schema import RunConfig
    from engine.data.padding import Tokens
    from engine.generation.answering import Prompt

MARK, END = "⁇", "■"  # how a gap, and what stands before an answer, is shown; and the end among alternatives
GAP = re.compile(r"⁇|_{2,}")
_BARE = re.compile(rf"\s*{MARK}\s*")
ARROWS = (" → ", " => ", "\t")  # between what is asked and its answer
FOLLOWED = 8  # hypotheses of the search for the likeliest answers
GREEDY: Settings = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "seed": 1, "length": 50}
INVITATIONS = {
    "question-answer": "type a question; temperature 0 is greedy",
    "span-corruption": "type a document with ___ where something is missing; temperature 0 is greedy",
}


@dataclass(frozen=True)
class Example:
    """Something held-out that was asked; not cleaned.

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
        """Whether the answer is exactly that."""
        return bool(self.reference) and self.written.strip() == self.reference.strip()

    def record(self) -> dict[str, str | bool | None]:
        """Of JSON."""
        right = self.right if self.reference else None
        return {"asked": self.asked, "reference": self.reference, "text": self.written, "right": right}


class DocumentWriter(Inspected):
    """A checkpoint of a run on documents or on questions about them.

    Args:
        reader: the run.
        checkpoint: best, last, or a step.
        device: as on the command line.

    Raises:
        InputError: no such checkpoint, or a damaged one.
    """

    continues = False
    ranks = True

    def __init__(self, reader: RunReader, checkpoint: str, device: str) -> None:
        from engine.data.objectives import QuestionAnswer, span_corruption
        from engine.training.checkpoint import load_of_documents
        from engine.training.devices import resolve_device

        self.name = reader.name
        self.config: RunConfig = reader.config
        self.model, self.tokenizer, self.step = load_of_documents(reader, checkpoint, resolve_device(device))
        self._size = self.tokenizer.vocab_size
        self._asks = QuestionAnswer(self.config, self._size) if self.config.answers else None
        self._fills = None if self.config.answers else span_corruption(self.config, self._size)
        self._joins = self.tokenizer.kind == "bpe"  # the space before a word is a part of its first token
        self.defaults: Settings = dict(GREEDY)

    @property
    def invitation(self) -> str:
        """What to type."""
        return INVITATIONS[self.config.objective.kind]

    def notice(self, text: str, settings: Settings) -> str:
        """What is to be known before an answer: nothing."""
        return ""

    def pieces(self, text: str, settings: Settings, answer: int = 0, alternatives: int = 0) -> Iterator[Piece]:
        """The answer, or what is missing, as it comes; see `Writer.pieces`.

        Raises:
            InputError: nothing is asked, no gap is marked, unknown words or characters, or the text is too long.
        """
        from engine.generation.answering import sample_answer
        from engine.generation.sampling import Sampling
        from engine.seeds import seed_for

        how = Sampling(float(settings["temperature"]), int(settings["top_k"]), float(settings["top_p"]))
        prompt, seed = self._prompt(text), seed_for(int(settings["seed"]), "sample", answer)
        most, decoder = int(settings["length"]), self.tokenizer.decoder()
        for one in sample_answer(
            self.model, prompt, how, seed, allowed=self._size, most=most, alternatives=alternatives
        ):
            others = tuple(
                Alternative(self._named(other.token, len(prompt.marks)), other.probability, other.chance)
                for other in one.alternatives
            )
            is_text = one.token < self._size
            shown = decoder.feed(one.token) if is_text else MARK
            decoder = decoder if is_text else self.tokenizer.decoder()
            yield Piece(shown, one.probability, one.chance, others)

    def wholes(self, text: str, written: str, others: int) -> tuple[Whole, ...]:
        """What was written as a whole answer with its probability, and the likeliest others, best first.

        Args:
            text: what was asked.
            written: the answer.
            others: how many others.

        Raises:
            InputError: as `pieces`.
        """
        from engine.generation.answering import beam_answers
        from engine.generation.surprise import answer_surprise

        prompt = self._prompt(text)
        answer = self._answer(written, prompt)
        room = self.config.model.context_length - len(prompt.tokens)
        nats = math.fsum(one.nats or 0.0 for one in answer_surprise(self.model, prompt, answer[:room], self._size))
        first = Whole(_on_a_line(written), math.exp(-nats))
        most, beam = max(2 * len(answer), 1) + 10, max(FOLLOWED, others + 1)
        found = beam_answers(self.model, prompt, allowed=self._size, most=most, beam=beam, n_best=beam)
        ranked = [Whole(self._text(one.tokens), math.exp(one.log_probability)) for one in found if one.finished]
        return first, *[one for one in ranked if one.text != first.text][:others]

    def filled(self, text: str, written: str) -> str:
        """The document with what was written in its gaps, each in brackets; "" where a question is answered."""
        if self.config.answers:
            return ""
        spans = iter(written.split(MARK))
        return GAP.sub(lambda gap: f"[{next(spans, '').strip()}]", text)

    def examples(self) -> list[Example]:
        """A few held-out questions, or documents with gaps, always the same ones; the corpus is loaded.

        Raises:
            InputError: the corpus cannot be found, or something is wrong with it.
        """
        from engine.training.tasks import make_task

        evaluation = self.config.evaluation.model_copy(update={"sample_prompt": ""})
        config = self.config.model_copy(update={"evaluation": evaluation})
        rows = make_task(config, None, self.tokenizer).sampler(config).sample(self.model, self.step)["translations"]
        return [Example(row["source"], row["reference"], row["text"]) for row in rows]

    def surprise(self, text: str, alternatives: int = 0) -> Surprised:
        """How surprised it is by an answer, `QUESTION → ANSWER`, or by what is missing, `DOCUMENT → MISSING`.

        Raises:
            InputError: no arrow, or as `pieces`.
        """
        from engine.generation.surprise import answer_surprise

        arrow = next((sign for sign in ARROWS if sign in text), None)
        if arrow is None:
            what = "a question and its answer" if self.config.answers else "a document with ___ and what is missing"
            raise InputError(f"surprise: {what} are needed, with → between them, e.g. {self._example()} → London")
        asked, _, answer = text.rpartition(arrow)
        prompt = self._prompt(asked.strip())
        found = answer_surprise(
            self.model, prompt, self._answer(_BARE.sub(MARK, answer.strip()), prompt), self._size, alternatives
        )
        pieces = []
        decoder = self.tokenizer.decoder()
        for token in found:
            others = tuple(
                Alternative(self.tokenizer.decode([one.token]), one.probability, one.chance)
                for one in token.alternatives
            )
            shown = decoder.feed(token.token) if token.token < self._size else END
            pieces.append(Piece(shown, math.exp(-(token.nats or 0.0)), None, others))
        rule = f"each token given “{asked.strip()}” and the answer before it; {END} is its end"
        return Surprised(tuple(pieces), tuple(token.nats for token in found), asked.strip(), rule)

    def attention(self, text: str, written: str, layer: int, head: int, which: str = "self") -> Attended:
        """Where a head looks; see `Writer.attention`.

        Raises:
            InputError: no such layer, head or kind, no weights, or as `pieces`.
        """
        import numpy as np
        import torch

        from engine.generation.inspection import head_attention

        prompt = self._prompt(text)
        tokens = np.concatenate((prompt.tokens, self._answer(written, prompt)))[: self.config.model.context_length]
        device = next(self.model.parameters()).device
        source = None if prompt.source is None else torch.from_numpy(prompt.source).to(device)
        found = head_attention(self.model, torch.from_numpy(tokens).to(device), layer - 1, head - 1, which, source)
        layers, heads = self.shape(which)
        wrote, read = self._shown(tokens), () if prompt.source is None else self._shown(prompt.source)
        plan = stacks(self.config.model)[0 if which == "encoder" else -1]
        crosses = which == "cross"
        rule = (
            "cross-attention: each token of the answer sees all that was read"
            if crosses
            else who_sees_whom(plan, plan.length)
        )
        first = "" if which == "encoder" else f"; the first token of the answer is written by the last {MARK} before it"
        return Attended(
            read if which == "encoder" else wrote,
            wrote if which == "self" else read,
            found.weights.float().cpu().numpy(),
            found.visible.cpu().numpy(),
            None if found.bias is None else found.bias.float().cpu().numpy(),
            f"layer {layer} of {layers}, head {head} of {heads}" + (f", {which}" if which != "self" else ""),
            rule + first,
            crosses,
        )

    # Texts and tokens

    def _prompt(self, text: str) -> "Prompt":
        """What the model is asked."""
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
        """The tokens of an answer, as they stand after the prompt."""
        import numpy as np

        spans = written.split(MARK)
        if self._joins:
            spans = [f" {span.strip()}" if span.strip() else "" for span in spans]
        rows = self.tokenizer.encode_all(spans)
        marks = [np.array([mark], dtype=np.int64) for mark in prompt.marks[: len(rows) - 1]]
        joined = [rows[0], *(part for pair in zip(marks, rows[1:], strict=False) for part in pair)]
        return np.concatenate(joined).astype(np.int64)

    def _named(self, token: int, marks: int) -> str:
        """An alternative: of the text, a mark, or after them the end."""
        if token < self._size:
            return self.tokenizer.decode([token])
        return MARK if token < self._size + marks else END

    def _text(self, tokens: "Sequence[int]") -> str:
        """An answer on one line."""
        from engine.generation.samples import shown

        return _on_a_line(shown(self.tokenizer, tokens))

    def _shown(self, ids: "Tokens") -> tuple[str, ...]:
        """Tokens one by one, with the spaces before words, special ones as marks."""
        decoder, found = self.tokenizer.decoder(), []
        for token in ids.tolist():
            found.append(decoder.feed(token) if token < self._size else MARK)
            decoder = decoder if token < self._size else self.tokenizer.decoder()
        return tuple(found)


def _on_a_line(written: str) -> str:
    """An answer without white space around it, and a space on either side of its marks."""
    return _BARE.sub(f" {MARK} ", written).strip()
