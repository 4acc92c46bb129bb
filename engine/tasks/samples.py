"""Samples written during training: one sampler per kind of task.

Text is sampled with its own generator, seeded by the step; everything else is greedy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from engine.base.seeds import seed_for
from engine.config.schema import RunConfig
from engine.data.documents.corpus import Question
from engine.data.loader import mask_generator
from engine.data.objectives import IGNORED, corruption_objective, make_objective
from engine.data.padding import Tokens
from engine.data.parallel.pairs import Pairs
from engine.data.rows import lengths_of
from engine.data.tokenizers import AnyTokenizer, Tokenizer
from engine.generation.answering import answer_questions, greedy_answers
from engine.generation.classifying import class_probabilities
from engine.generation.sampling import Sampling, fill_gaps, sample_text
from engine.generation.translation import Translator
from engine.model.transformer import Network, evaluating
from engine.runs.records import ModelOutput, Sample

GAP = "_"  # shown for a hidden character
MARK = "⁇"  # shown for a mask, and a sentinel
N_SAMPLES = 5  # sentences, documents or questions


class TextSampler:
    """Samples text from a fixed prompt, which needs at least one character the tokenizer knows."""

    def __init__(self, config: RunConfig, tokenizer: Tokenizer, prompt: str, ids: torch.Tensor | None = None) -> None:
        self.config, self.tokenizer, self.prompt = config, tokenizer, prompt
        self._ids = torch.from_numpy(tokenizer.encode(prompt)) if ids is None else ids

    def sample(self, model: Network, step: int, between: Callable[[], None] = lambda: None) -> Sample:
        """Sample a text; `between` is called for each token and may raise to stop."""
        how, seed = Sampling.from_config(self.config), seed_for(self.config.seed, "sample", step)
        device, size = next(model.parameters()).device, self.tokenizer.vocab_size
        with evaluating(model):
            if self.config.task.fills_gaps:
                ids = self._ids[: self.config.model.context_length].to(device)
                objective = make_objective(self.config, size)
                hidden = objective.batch(ids[None], mask_generator(self.config.seed, "sample")).targets[0] != IGNORED
                filled, _ = fill_gaps(model, size, ids, hidden, how, seed)
                prompt = self.tokenizer.decode(torch.where(hidden, size, ids).tolist()).replace("\ufffd", GAP)
                text, given = self.tokenizer.decode(filled.tolist()), {}
            else:
                drawn, length = [], self.config.evaluation.sample_length
                for token in sample_text(model, self.config, size, self._ids.to(device), length, how, seed):
                    between()
                    drawn.append(token)
                written = [token.token for token in drawn]
                prompt, text = self.prompt, self.tokenizer.decode_continuation(self._ids.tolist(), written)
                given = {"chances": [round(token.chance, 4) for token in drawn]}
        drawn_with = {"temperature": how.temperature, "top_k": how.top_k, "top_p": how.top_p}
        return Sample.create(step=step, prompt=prompt, text=text, **given, **drawn_with)


@dataclass(frozen=True)
class RowSampler:
    """Writes a text for each of some fixed sources."""

    sources: Sequence[str]  # as they are shown
    references: Sequence[str]  # the right text for each; "" if unknown
    # writes a text for each source; the callback runs between tokens and may raise to stop
    write: Callable[[Network, Callable[[], None]], Sequence[str]]

    def sample(self, model: Network, step: int, between: Callable[[], None] = lambda: None) -> Sample:
        written = zip(self.sources, self.references, self.write(model, between), strict=True)
        rows = [ModelOutput.create(source=source, reference=right, text=text) for source, right, text in written]
        return Sample.create(step=step, prompt=rows[0].source, text=rows[0].text, translations=tuple(rows))


def translation_sampler(config: RunConfig, tokenizer: AnyTokenizer, held_out: Pairs) -> RowSampler:
    """Translate the lines of `evaluation.sample_prompt`, or some sentences of the validation split.
    `InputError`: a prompt with characters the model will never know.
    """
    prompts = _prompts(config)
    tokenizer.source.encode_all(prompts)  # refused now, not at step 500
    places = range(0, len(held_out), max(1, len(held_out) // N_SAMPLES))[:N_SAMPLES]
    shown = held_out.select(places) if not prompts else Pairs(tuple(prompts), ("",) * len(prompts))

    def write(model: Network, between: Callable[[], None]) -> list[str]:
        translator, beam = Translator(model, tokenizer, config), config.evaluation.beam
        found = translator.translate(translator.encode(shown.sources), beam=beam, between=between)
        return [best[0].text for best in found]

    return RowSampler(shown.sources, shown.targets, write)


def document_sampler(config: RunConfig, tokenizer: Tokenizer, held_out: Sequence[Tokens]) -> RowSampler:
    """Mask some documents of the validation split as the objective does, and let the model fill them in."""
    objective, size = corruption_objective(config, tokenizer.vocab_size), tokenizer.vocab_size
    some = [held_out[i] for i in _spread_indices(held_out)]
    generator = mask_generator(config.seed, "sample")
    cuts = objective.kept_lengths(lengths_of(some), generator)
    asked = [objective.example(document[:cut], generator) for document, cut in zip(some, cuts, strict=True)]
    prompts, missing = [prompt for prompt, _ in asked], [missing for _, missing in asked]
    most = 1 + 2 * max(map(len, missing))

    def write(model: Network, between: Callable[[], None]) -> list[str]:
        answers = greedy_answers(model, prompts, text_vocab_size=size, most=most, between=between)
        return [decode_with_marks(tokenizer, answer.tokens) for answer in answers]

    read = [prompt.tokens[:-1] if prompt.source is None else prompt.source for prompt in prompts]
    sources, references = ([decode_with_marks(tokenizer, row.tolist()) for row in part] for part in (read, missing))
    return RowSampler(sources, references, write)


def question_sampler(config: RunConfig, tokenizer: Tokenizer, held_out: Sequence[Question], most: int) -> RowSampler:
    """Answer the lines of `evaluation.sample_prompt`, or some questions of the validation split.
    `InputError`: a prompt with characters or words the model will never know.
    """
    prompts = _prompts(config)
    tokenizer.encode_all(prompts)  # refused now, not at step 500
    asked = [Question(line, None) for line in prompts] or [held_out[i] for i in _spread_indices(held_out)]
    texts = [question.text for question in asked]

    def write(model: Network, between: Callable[[], None]) -> list[str]:
        return answer_questions(model, tokenizer, config, texts, most=most, between=between)

    return RowSampler(texts, [question.answer or "" for question in asked], write)


@dataclass(frozen=True)
class ClassSampler(RowSampler):
    """Classifies some fixed texts."""

    names: Sequence[str] = ()  # of the classes
    probabilities: Callable[[Network, Callable[[], None]], Tensor] | None = None  # (n, C) of a model

    def sample(self, model: Network, step: int, between: Callable[[], None] = lambda: None) -> Sample:
        assert self.probabilities is not None
        rows = []
        found = self.probabilities(model, between)
        for source, reference, chances in zip(self.sources, self.references, found.tolist(), strict=True):
            ranked = sorted(zip(self.names, chances, strict=True), key=lambda one: -one[1])
            shown = {name: round(chance, 4) for name, chance in ranked}
            rows.append(ModelOutput.create(source=source, reference=reference, text=ranked[0][0], probabilities=shown))
        return Sample.create(step=step, prompt=rows[0].source, text=rows[0].text, translations=tuple(rows))


def class_sampler(
    config: RunConfig, tokenizer: Tokenizer, held_out: Sequence[str], classes: Sequence[int], names: Sequence[str]
) -> ClassSampler:
    """Classify the lines of `evaluation.sample_prompt`, or some texts of the validation split."""
    prompts, at = _prompts(config), _spread_indices(held_out)
    texts = prompts or [held_out[i] for i in at]
    right = [""] * len(prompts) if prompts else [names[classes[i]] for i in at]
    return ClassSampler(
        texts,
        right,
        lambda model, between: (),
        names,
        lambda model, between: class_probabilities(model, tokenizer, config, texts, between),
    )


def _prompts(config: RunConfig) -> list[str]:
    return [line for line in config.evaluation.sample_prompt.splitlines() if line.strip()]


def _spread_indices(held_out: Sequence[object]) -> list[int]:
    return [int(i) for i in np.linspace(0, len(held_out) - 1, min(N_SAMPLES, len(held_out)))]


def decode_with_marks(tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    """Decode tokens, showing each special one as a mark."""
    size = tokenizer.vocab_size
    runs = groupby(tokens, key=lambda token: token < size)
    return "".join(tokenizer.decode(run) if is_text else MARK * len(list(run)) for is_text, run in runs)
