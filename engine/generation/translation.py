"""A trained network that translates or summarizes, with its tokenizer: sentences in, sentences out.

Sentences are translated in batches of similar length, by a decoder of equal length. Padding changes no logit, and the
length limit of a translation depends only on its own source, so a translation does not depend on the rest of its batch.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.base.errors import InputError
from engine.base.language import Message
from engine.config.schema import RunConfig
from engine.data.objectives import TokenPrompt
from engine.data.rows import BothSpecials, Specials, pad_sources
from engine.data.tokenizers import AnyTokenizer
from engine.generation.answering import sample_answer
from engine.generation.beam import NO_NUMBERS, Hypothesis, make_length_penalty, translate_batch
from engine.generation.inspection import record_cross_attention
from engine.generation.sampling import SampledToken, Sampling
from engine.model.transformer import Network, evaluating

AT_ONCE = 64  # sentences
MAX_SENTENCE_TOKENS = 2048  # tokens of a typed sentence: attention's time and memory grow with its square
LENGTH_LIMIT = (2, 10)  # a translation has at most this many times its source's length, plus this many tokens


@dataclass(frozen=True)
class TranslatedText:
    """One of a sentence's translations: the detokenised text, and its tokens, their chances and its score."""

    text: str
    hypothesis: Hypothesis


class Translator:
    """Translates with one model, in any mode; its weights may change between two calls."""

    def __init__(self, model: Network, tokenizer: AnyTokenizer, config: RunConfig) -> None:
        self.model, self.tokenizer, self.config = model, tokenizer, config
        self.special = pair_special_tokens(tokenizer)
        self.target_language = ""  # the language to translate to, if there are several; "" for the first

    def encode(self, sentences: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return typed sentences as sources, without end tokens. Raise `InputError` for characters that a character
        tokenizer does not know, more than `MAX_SENTENCE_TOKENS` tokens, or a language that the model lacks.
        """
        known = self.tokenizer.source
        tagged = known.add_language_tags(sentences, self.target_language)
        sources = [self._truncate(source) for source in known.encode_all(tagged)]
        for source in sources:
            if len(source) > MAX_SENTENCE_TOKENS:
                problem = Message(
                    "the sentence has {n:,} tokens, but at most {longest:,} can be translated at once; shorten it",
                    n=len(source),
                    longest=MAX_SENTENCE_TOKENS,
                )
                raise InputError(problem)
        return sources

    def translate(
        self,
        sources: Sequence[NDArray[np.int64]],
        *,
        beam: int = 1,
        n_best: int = 1,
        alpha: float | None = None,
        most: int = sys.maxsize,
        between: Callable[[], None] = lambda: None,
    ) -> list[list[TranslatedText]]:
        """Return the `n_best` translations of each source, at most `beam`, best first; a beam of 1 is greedy.

        `alpha`, of the length penalty, defaults to the config's; a translation has at most `most` tokens; `between` is
        called between steps and may raise to stop. A learned position table and a decoder's context truncate longer
        sources.
        """
        sources = [self._truncate(source) for source in sources]
        order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
        out: list[list[TranslatedText]] = [[] for _ in sources]
        device = next(self.model.parameters()).device
        generation = self.config.generation
        alpha = generation.alpha if alpha is None else alpha
        penalty = make_length_penalty(generation.length_penalty, alpha)
        with evaluating(self.model):
            for rows in self._batches(order, sources):
                some = [sources[i] for i in rows]
                if self.model.reads_source:
                    tokens, at = pad_sources(some, self.special.source, device)
                else:
                    tokens, at = torch.from_numpy(np.stack([self._prompt(one).tokens for one in some])).to(device), None
                found = translate_batch(
                    self.model,
                    tokens,
                    at,
                    beam=beam,
                    n_best=n_best,
                    penalty=penalty,
                    specials=self.special.target,
                    text_vocab_size=self.tokenizer.vocab_size,
                    max_length=[min(self.max_length(len(sources[i]) + 1), most) for i in rows],
                    between=between,
                )
                for i, hypotheses in zip(rows, found, strict=True):
                    out[i] = [TranslatedText(self.tokenizer.target.decode(h.tokens), h) for h in hypotheses]
        return out

    def stream(self, sentence: str) -> Iterator[tuple[str, SampledToken, tuple[float, ...]]]:
        """Yield the greedy translation as it is written: the text that a token completes, the token, and where the last
        layer looked: (S,) the weight of each source token, averaged over heads; they sum to 1. A decoder, which has no
        cross-attention, gives none. Raise `InputError` as `encode` does, or if a probability is not finite.
        """
        prompt, decoder, size = self.prompt(sentence), self.tokenizer.target.decoder(), self.tokenizer.vocab_size
        most = self.max_length(len(prompt.source_or_tokens))
        looking = record_cross_attention(self.model) if self.model.reads_source else nullcontext(list[Tensor]())
        with evaluating(self.model), looking as weights:
            for one in sample_answer(self.model, prompt, Sampling(0.0), 0, text_vocab_size=size, most=most):
                if not math.isfinite(one.probability):
                    raise InputError(NO_NUMBERS)
                looked = weights[-1][0].mean(0)[-1].float().tolist() if weights else ()
                yield decoder.feed(one.token), one, tuple(looked)

    def prompt(self, sentence: str) -> TokenPrompt:
        """Return a typed sentence as a prompt; raise `InputError` as `encode` does."""
        return self._prompt(self.encode([sentence])[0])

    def _prompt(self, source: NDArray[np.int64]) -> TokenPrompt:
        start, end = self.special.target.start, self.special.target.end
        if not self.model.reads_source:
            return TokenPrompt(np.append(source, start), end)
        return TokenPrompt(np.array([start]), end, np.append(source, self.special.source.end))

    def source_pieces(self, sentence: str) -> list[str]:
        return [self.tokenizer.source.decode([token]) for token in self.encode([sentence])[0]]

    def max_length(self, source_tokens: int) -> int:
        """Return the most tokens of a translation, its end included, of a source this long, with the token after it."""
        room = self.config.model.context_length + (0 if self.model.reads_source else 1 - source_tokens)
        return min(room, LENGTH_LIMIT[0] * source_tokens + LENGTH_LIMIT[1])

    def _truncate(self, source: NDArray[np.int64]) -> NDArray[np.int64]:
        positions = self.model.stacks[0].positions.longest
        source = source[: self.config.task.source_truncation_length(self.config)]
        if not self.model.reads_source:
            positions = self.config.model.context_length
        return source if positions is None else source[: positions - 1]

    def _batches(self, order: Sequence[int], sources: Sequence[NDArray[np.int64]]) -> Iterator[Sequence[int]]:
        """Yield the sources that are translated at once, of those ordered by length."""
        alike = [order]
        if not self.model.reads_source:
            alike = [list(rows) for _, rows in groupby(order, key=lambda i: len(sources[i]))]
        for rows in alike:
            yield from (rows[start : start + AT_ONCE] for start in range(0, len(rows), AT_ONCE))


def pair_special_tokens(tokenizer: AnyTokenizer) -> BothSpecials:
    return BothSpecials(*map(Specials.numbered_from, (tokenizer.source.vocab_size, tokenizer.vocab_size)))
