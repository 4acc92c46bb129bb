"""What the tasks on documents share: a tokenizer, answers, the facts of their data."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from torch import Tensor

from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.config.schema import RunConfig
from engine.data.baselines import TokenPairs, token_pair_losses
from engine.data.documents.corpus import DocumentCorpus
from engine.data.objectives import IGNORED, Batch, TokenPrompt
from engine.data.padding import Tokens
from engine.data.tokenizers import AnyTokenizer, CharacterTokenizer, Tokenizer, WordTokenizer, cached_bpe
from engine.generation.answering import beam_answers, require_room
from engine.generation.output import FullAnswer, ScoredText
from engine.generation.surprise import answer_surprise
from engine.runs.records import DataFacts, ProbeFacts
from engine.tasks.pipeline import END_MARK, MARK, AnswerPipeline, scored_text, split_at_arrow
from engine.tasks.task import RowTask, require_tokenizer_kind

BEAM = 8  # beam width of the search for the likeliest answers
_BARE = re.compile(rf"\s*{MARK}\s*")
REQUIRED_SPLITS = ("train", "validation")


@dataclass(frozen=True)
class DocumentTask(RowTask):
    """A corpus of documents with its tokenizer, which is the same whether documents or questions are trained on."""

    corpus: DocumentCorpus
    tokenizer: Tokenizer
    corpus_class = DocumentCorpus

    @staticmethod
    def tokenizer_for(corpus: DocumentCorpus, config: RunConfig, given: AnyTokenizer | None) -> Tokenizer:
        if given is None and config.data.tokenizer == "bpe":  # learned from the training splits
            asked = corpus.questions.get("train", ())
            learned = [*corpus.documents.get("train", ()), *(q.text for q in asked), *(q.answer or "" for q in asked)]
            return cached_bpe(learned, config.data.bpe_size)
        if given is None:  # the characters or words of all splits
            kind = WordTokenizer if config.data.tokenizer == "words" else CharacterTokenizer
            return kind.from_texts(corpus.texts())
        require_tokenizer_kind(given, config)
        try:
            given.target.encode_all(list(corpus.texts()))
        except InputError as error:
            problem = Message(
                "corpus {name}: cannot be encoded with the parent's tokenizer: {error}", name=corpus.name, error=error
            )
            raise InputError(problem) from None
        return given.target

    def _facts(
        self,
        config: RunConfig,
        train: Sequence[Batch],
        held_out: Sequence[Batch],
        probes: Sequence[ProbeFacts] = (),
        **more: Any,
    ) -> DataFacts:
        """Return what data.json says of either kind; the count-based losses are those of these batches' targets."""
        size = config.min_vocab_size(self.vocab_size)
        return DataFacts.create(
            **self.corpus_facts(),
            vocabulary=self.vocab_size,
            tokenizer_sha256=self.tokenizer.sha256,
            floor=None,
            plausible=None,
            **token_pair_losses(token_pairs(train), token_pairs(held_out), size),
            **more,
            padding=self.padding_share(config),
            overlap=self.overlap_facts,
            probes=probes,
        )


class DocumentPipeline(AnswerPipeline):
    """Answers from what the documents said."""

    def max_length(self, prompt: TokenPrompt) -> int:
        require_room(self.model, prompt)
        return super().max_length(prompt)

    def likeliest_answers(self, text: str, written: str, others: int) -> tuple[FullAnswer, ...]:
        prompt = self.prompt(text)
        answer = self.encode_answer(written, prompt)
        room = self.config.model.context_length - len(prompt.tokens)
        nats = math.fsum(one.nats or 0.0 for one in answer_surprise(self.model, prompt, answer[:room], self.size))
        first = FullAnswer(_space_out_marks(written), math.exp(-nats))
        most, beam = max(2 * len(answer), 1) + 10, max(BEAM, others + 1)
        found = beam_answers(self.model, prompt, text_vocab_size=self.size, most=most, beam=beam)
        ranked = [
            FullAnswer(_space_out_marks(decode_with_marks(self.tokenizer, one.tokens)), math.exp(one.log_probability))
            for one in found
            if one.finished
        ]
        return first, *[one for one in ranked if one.text != first.text][:others]

    def surprise(self, text: str, alternatives: int) -> ScoredText:
        needed = tr(
            "{surprised_by} are needed, with → between them, e.g. {example} → London",
            surprised_by=self.config.task.surprise_usage,
            example=self.config.task.prompt_example,
        )
        asked, answer = split_at_arrow(text, needed, last=True)
        prompt = self.prompt(asked)
        tokens = self.encode_answer(_BARE.sub(MARK, answer), prompt)
        found = answer_surprise(self.model, prompt, tokens, self.size, alternatives)
        decoder = self.tokenizer.decoder()
        rule = tr(
            "each token given “{asked}” and the answer tokens before it; {end} marks the end", asked=asked, end=END_MARK
        )
        text_of = lambda token: decoder.feed(token) if token < self.size else END_MARK
        return scored_text(found, text_of, self.decode_token, asked, rule)

    def token_labels(self, ids: Tensor, *, is_source: bool) -> tuple[str, ...]:
        return tuple(map(self.decoder(), ids.tolist()))

    def encode_answer(self, written: str, prompt: TokenPrompt) -> Tokens:
        spans = written.split(MARK)
        if self.tokenizer.joins_spaces:
            spans = [f" {span.strip()}" if span.strip() else "" for span in spans]
        rows = self.tokenizer.encode_all(spans)
        marks = [np.array([mark], dtype=np.int64) for mark in prompt.extra_allowed[: len(rows) - 1]]
        joined = [rows[0], *(part for pair in zip(marks, rows[1:], strict=False) for part in pair)]
        return np.concatenate(joined).astype(np.int64)


def _space_out_marks(written: str) -> str:
    """Strip an answer's white space, and put a space on either side of its marks."""
    return _BARE.sub(f" {MARK} ", written).strip()


def encode_answers(tokenizer: Tokenizer, answers: Sequence[str]) -> list[Tokens]:
    """Encode answers as they stand in a document: byte pairs hold the space before a word, other tokens do not."""
    space = " " if tokenizer.joins_spaces else ""
    return tokenizer.encode_all([space + answer for answer in answers])


def decode_with_marks(tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    """Decode tokens, showing each special one as a mark."""
    size = tokenizer.vocab_size
    runs = groupby(tokens, key=lambda token: token < size)
    return "".join(tokenizer.decode(run) if is_text else MARK * len(list(run)) for is_text, run in runs)


def count_tokens(texts: Sequence[str], encoded: Sequence[Tokens]) -> dict[str, int]:
    return {"characters": sum(map(len, texts)), "tokens": sum(map(len, encoded))}


def token_pairs(batches: Sequence[Batch]) -> TokenPairs:
    tokens = [batch.tokens[batch.targets != IGNORED].numpy() for batch in batches]
    targets = [batch.targets[batch.targets != IGNORED].numpy() for batch in batches]
    return np.concatenate(tokens), np.concatenate(targets)
