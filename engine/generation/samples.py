"""What a model writes at a step of its training: the records of samples.jsonl, one class a kind of task.

Text is drawn from a seed of its step, with a generator of its own; everything else is greedy.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch

from engine.config.schema import RunConfig
from engine.data.corruption import lengths_of
from engine.data.documents.corpus import Question
from engine.data.loader import mask_generator
from engine.data.objectives import IGNORED, make_objective, span_corruption
from engine.data.padding import Tokens
from engine.data.parallel.pairs import Pairs
from engine.data.tokenizers import CharacterTokenizer, PairTokenizer, Tokenizer
from engine.generation.answering import answer_questions, document_prompt, greedy_answers
from engine.generation.sampling import Sampling, fill, write
from engine.generation.translation import Translator
from engine.model.transformer import EncoderDecoder, EncoderLM, Network, evaluating
from engine.seeds import seed_for

GAP = "_"  # how a hidden character is shown
MARK = "⁇"  # how a mask, and a sentinel, is shown
SHOWN = 5  # sentences, documents or questions


class TextSampler:
    """Samples text always from the same prompt, which needs at least one character the tokenizer knows."""

    def __init__(self, config: RunConfig, tokenizer: CharacterTokenizer, prompt: str) -> None:
        self.config, self.tokenizer, self.prompt = config, tokenizer, prompt
        self._ids = torch.from_numpy(tokenizer.encode(prompt))

    def sample(self, model: Network, step: int, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """`between` is called for each token and may raise to stop."""
        generation = self.config.generation
        masked = self.config.objective.kind == "masked"
        with evaluating(model):
            shown = self._gaps(model, step) if masked else self._text(model, step, between)
        return {
            "step": step,
            **shown,
            "temperature": generation.temperature,
            "top_k": generation.top_k,
            "top_p": generation.top_p,
        }

    def _text(self, model: Network, step: int, between: Callable[[], None]) -> dict[str, Any]:
        drawn = []
        for token in write(
            model,
            self.config,
            self.tokenizer.vocab_size,
            self._ids.to(next(model.parameters()).device),
            self.config.evaluation.sample_length,
            Sampling.of(self.config),
            seed_for(self.config.seed, "sample", step),
        ):
            between()
            drawn.append(token)
        text = self.tokenizer.decode(token.token for token in drawn)
        return {"prompt": self.prompt, "text": text, "chances": [round(token.chance, 4) for token in drawn]}

    def _gaps(self, model: Network, step: int) -> dict[str, Any]:
        assert isinstance(model, EncoderLM)
        device, size = next(model.parameters()).device, self.tokenizer.vocab_size
        ids = self._ids[: self.config.model.context_length].to(device)
        objective = make_objective(self.config, size)
        hidden = objective.batch(ids[None], mask_generator(self.config.seed, "sample")).targets[0] != IGNORED
        seed = seed_for(self.config.seed, "sample", step)
        filled, _ = fill(model, self.config, size, ids, hidden, Sampling.of(self.config), seed)
        shown = self.tokenizer.decode(torch.where(hidden, size, ids).tolist()).replace("\ufffd", GAP)
        return {"prompt": shown, "text": self.tokenizer.decode(filled.tolist())}


class TranslationSampler:
    """Translates the lines of `evaluation.sample_prompt`, or some sentences of the validation split.

    Raises:
        InputError: a prompt with characters the model will never know.
    """

    def __init__(self, config: RunConfig, tokenizer: PairTokenizer, held_out: Pairs) -> None:
        self.config, self.tokenizer = config, tokenizer
        prompts = [line for line in config.evaluation.sample_prompt.splitlines() if line.strip()]
        tokenizer.source.encode_all(prompts)  # refused now, not at step 500
        places = range(0, len(held_out), max(1, len(held_out) // SHOWN))[:SHOWN]
        self._shown = held_out.at(places) if not prompts else Pairs(tuple(prompts), ("",) * len(prompts))

    def sample(self, model: Network, step: int, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
        assert isinstance(model, EncoderDecoder)
        found = Translator(model, self.tokenizer, self.config).translate(
            self._shown.sources, beam=self.config.evaluation.beam, between=between
        )
        rows = [
            {"source": source, "reference": reference, "text": best[0].text}
            for source, reference, best in zip(self._shown.sources, self._shown.targets, found, strict=True)
        ]
        return _record(step, rows)


def _record(step: int, rows: list[dict[str, str]]) -> dict[str, Any]:
    return {"step": step, "prompt": rows[0]["source"], "text": rows[0]["text"], "translations": rows}


def shown(tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    """Decode tokens, each special one among them as a mark."""
    size = tokenizer.vocab_size
    parts = [
        tokenizer.decode(run) if is_text else MARK * len(list(run))
        for is_text, run in groupby(tokens, key=lambda token: token < size)
    ]
    return "".join(parts)


class DocumentSampler:
    """Masks some documents of the validation split as the objective does, and lets the model fill them in."""

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
        """Return a record: in `translations` documents with their gaps, what stood there, what is written."""
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
        return _record(step, rows)


class QuestionSampler:
    """Answers the lines of `evaluation.sample_prompt`, or some questions of the validation split.

    Raises:
        InputError: a prompt with characters or words the model will never know.
    """

    def __init__(self, config: RunConfig, tokenizer: Tokenizer, held_out: Sequence[Question], most: int) -> None:
        self.config, self.tokenizer, self.most = config, tokenizer, most
        prompts = [line for line in config.evaluation.sample_prompt.splitlines() if line.strip()]
        tokenizer.encode_all(prompts)  # refused now, not at step 500
        places = np.linspace(0, len(held_out) - 1, min(SHOWN, len(held_out))).astype(int)
        self._shown = [Question(line, None) for line in prompts] or [held_out[i] for i in places]

    def sample(self, model: Network, step: int, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """Return a record: in `translations` each question, its right answer, the model's answer."""
        asked = [question.text for question in self._shown]
        answers = answer_questions(model, self.tokenizer, self.config, asked, most=self.most, between=between)
        rows = [
            {"source": question.text, "reference": question.answer or "", "text": answer}
            for question, answer in zip(self._shown, answers, strict=True)
        ]
        return _record(step, rows)
