"""Shows what a model writes where some held-out documents are masked, always the same ones, greedily."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from engine.config.schema import RunConfig
from engine.data.corruption import lengths_of
from engine.data.loader import mask_generator
from engine.data.objectives import span_corruption
from engine.data.padding import Tokens
from engine.data.tokenizers import Tokenizer
from engine.generation.answering import greedy_answers
from engine.generation.prompts import document_prompt
from engine.model.transformer import Network

SHOWN = 5  # documents
MARK = "⁇"  # how a mask, and a sentinel, is shown


def shown(tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    """The text of tokens among which special ones stand, each as a mark."""
    size = tokenizer.vocab_size
    parts = [
        tokenizer.decode(run) if is_text else MARK * len(list(run))
        for is_text, run in groupby(tokens, key=lambda token: token < size)
    ]
    return "".join(parts)


class DocumentSampler:
    """Masks some documents of the validation split as the objective does, and lets the model write what is missing.

    Args:
        config: the run's.
        tokenizer: of the documents.
        held_out: the validation split.
    """

    def __init__(self, config: RunConfig, tokenizer: Tokenizer, held_out: Sequence[Tokens]) -> None:
        self.tokenizer, objective = tokenizer, span_corruption(config, tokenizer.vocab_size)
        some = [held_out[i] for i in np.linspace(0, len(held_out) - 1, min(SHOWN, len(held_out))).astype(int)]
        generator = mask_generator(config.seed, "sample")
        cuts = objective.cuts(lengths_of(some), generator)
        asked = [
            document_prompt(objective, document[:cut], generator) for document, cut in zip(some, cuts, strict=True)
        ]
        self._prompts = [prompt for prompt, _ in asked]
        self._missing = [missing for _, missing in asked]

    def sample(self, model: Network, step: int, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """A record of samples.jsonl: in `translations` documents with their gaps, what stood there, what is written."""
        most = 1 + 2 * max(len(missing) for missing in self._missing)
        answers = greedy_answers(model, self._prompts, allowed=self.tokenizer.vocab_size, most=most, between=between)
        rows = [
            {
                "source": shown(
                    self.tokenizer, (prompt.tokens[:-1] if prompt.source is None else prompt.source).tolist()
                ),
                "reference": shown(self.tokenizer, missing.tolist()),
                "text": shown(self.tokenizer, answer.tokens),
            }
            for prompt, missing, answer in zip(self._prompts, self._missing, answers, strict=True)
        ]
        return {"step": step, "prompt": rows[0]["source"], "text": rows[0]["text"], "translations": rows}
