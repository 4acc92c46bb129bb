"""Text from a model of any kind: continued, filled in, or written from a source.

Samples along the way are drawn from a seed of their step, with a generator of their own.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from engine.config.schema import RunConfig
from engine.data.loader import mask_generator
from engine.data.objectives import IGNORED, make_objective
from engine.data.tokenizers import CharacterTokenizer
from engine.evaluation.metrics import evaluating
from engine.generation.sampling import (
    Decodes,
    Drawn,
    FromDecoder,
    FromEncoder,
    FromSource,
    Sampling,
    column,
    stream,
)
from engine.model.transformer import EncoderDecoder, EncoderLM, Network
from engine.seeds import seed_for


def sampling_of(config: RunConfig) -> Sampling:
    """How the config's `[generation]` draws."""
    g = config.generation
    return Sampling(g.temperature, g.top_k, g.top_p, g.overflow)


def answer(
    model: Network,
    config: RunConfig,
    vocab_size: int,
    ids: Tensor,
    length: int,
    how: Sampling,
    seed: int,
    alternatives: int = 0,
) -> Iterator[Drawn]:
    """What a model makes of a text: a decoder continues it, an encoder-decoder takes it for its source.

    Args:
        model: in evaluation mode.
        config: the run's.
        vocab_size: tokens of the text.
        ids: (T,) at least one token.
        length: how many tokens to draw, at most.
        how: temperature, cuts, and what to do when the context is full.
        seed: of the draws.
        alternatives: how many of the likeliest tokens to tell in each place.
    """
    context = config.model.context_length
    writer: Decodes
    if isinstance(model, EncoderDecoder):
        source = ids[-config.model.source_tokens :]
        writer = FromSource(model, source[None])
        if config.special_tokens:
            ids, length = ids.new_tensor([vocab_size]), min(length, source.numel())
        else:
            ids = source[-1:]
        how = Sampling(how.temperature, how.top_k, how.top_p, "stop")
    else:
        writer = FromEncoder(model) if isinstance(model, EncoderLM) else FromDecoder(model)
    yield from stream(writer, ids, length, how, seed, context=context, allowed=vocab_size, alternatives=alternatives)


def fill(
    model: EncoderLM,
    config: RunConfig,
    vocab_size: int,
    ids: Tensor,
    gaps: Tensor,
    how: Sampling,
    seed: int,
    alternatives: int = 0,
) -> tuple[Tensor, list[Drawn]]:
    """Fill the gaps of a text, all at once.

    Args:
        model: in evaluation mode, trained with the objective `masked`.
        config: the run's.
        vocab_size: tokens of the text; the mask token comes after them.
        ids: (T,) the text; what stands at a gap does not matter.
        gaps: (T,) bool.
        how: temperature and cuts.
        seed: of the draws.
        alternatives: how many of the likeliest tokens to tell in each gap.

    Returns:
        (T,) the text with its gaps filled, and what was drawn for each gap.
    """
    count = int(gaps.sum())
    if count == 0:
        return ids, []
    chances = torch.rand(count, 1, generator=torch.Generator().manual_seed(seed))
    with torch.inference_mode():
        logits = model(torch.where(gaps, vocab_size, ids)[None])[0]
        found = column(logits[gaps].float(), how, 1.0 - chances.to(ids.device), vocab_size, alternatives)
    return ids.masked_scatter(gaps, found.tokens), found.drawn()


class Sampler:
    """Shows what a model writes at a step of its training, always from the same text.

    Args:
        config: length, temperature, cuts, seed.
        tokenizer: encodes the prompt.
        prompt: at least one character the tokenizer knows.
    """

    def __init__(self, config: RunConfig, tokenizer: CharacterTokenizer, prompt: str) -> None:
        self.config, self.tokenizer, self.prompt = config, tokenizer, prompt
        self._ids = torch.from_numpy(tokenizer.encode(prompt))

    def sample(self, model: Network, step: int, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """A record of samples.jsonl. `between` is called for each token and may raise to stop."""
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
        device = next(model.parameters()).device
        seed = seed_for(self.config.seed, "sample", step)
        drawn: list[Drawn] = []
        for token in answer(
            model,
            self.config,
            self.tokenizer.vocab_size,
            self._ids.to(device),
            self.config.evaluation.sample_length,
            sampling_of(self.config),
            seed,
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
        filled, _ = fill(model, self.config, size, ids, hidden, sampling_of(self.config), seed)
        shown = self.tokenizer.decode(torch.where(hidden, size, ids).tolist()).replace("\ufffd", GAP)
        return {"prompt": shown, "text": self.tokenizer.decode(filled.tolist())}


GAP = "_"  # how a hidden character is shown
