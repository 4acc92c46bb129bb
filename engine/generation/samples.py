"""Samples along the way: what the model writes at a step of its training, from a seed of that step."""

from collections.abc import Callable
from typing import Any, cast

import torch

from engine.config.schema import RunConfig
from engine.data.tokenizers import CharacterTokenizer
from engine.evaluation.metrics import evaluating
from engine.generation.sampling import Decodes, Sampling, stream
from engine.seeds import seed_for


def sampling_of(config: RunConfig) -> Sampling:
    """How the config's `[generation]` draws."""
    g = config.generation
    return Sampling(g.temperature, g.top_k, g.top_p, g.overflow)


class Sampler:
    """Continues a fixed prompt.

    Args:
        config: length, temperature, cuts, seed.
        tokenizer: encodes the prompt.
        prompt: at least one character the tokenizer knows.
    """

    def __init__(self, config: RunConfig, tokenizer: CharacterTokenizer, prompt: str) -> None:
        self.config, self.tokenizer, self.prompt = config, tokenizer, prompt
        self._ids = torch.from_numpy(tokenizer.encode(prompt))

    def sample(self, model: torch.nn.Module, step: int, between: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """A record of samples.jsonl. `between` is called for each token and may raise to stop."""
        device = next(model.parameters()).device
        generator = torch.Generator().manual_seed(seed_for(self.config.seed, "sample", step))
        drawn = []
        with evaluating(model):
            for token in stream(
                cast(Decodes, model),
                self._ids.to(device),
                self.config.evaluation.sample_length,
                sampling_of(self.config),
                generator,
                context=self.config.model.context_length,
                allowed=self.tokenizer.vocab_size,
            ):
                between()
                drawn.append(token.token)
        return {
            "step": step,
            "prompt": self.prompt,
            "text": self.tokenizer.decode(drawn),
            "temperature": self.config.generation.temperature,
            "top_k": self.config.generation.top_k,
            "top_p": self.config.generation.top_p,
        }
