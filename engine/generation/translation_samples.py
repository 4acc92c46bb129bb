"""Shows how a model translates a few held-out sentences at a step of its training, always the same ones."""

from collections.abc import Callable
from typing import Any

from engine.config.schema import RunConfig
from engine.data.parallel.pairs import Pairs
from engine.data.tokenizers import PairTokenizer
from engine.generation.translator import Translator
from engine.model.transformer import EncoderDecoder, Network

SHOWN = 5  # sentences


class TranslationSampler:
    """Translates the lines of `evaluation.sample_prompt`, or some sentences of the validation split.

    Args:
        config: the run's.
        tokenizer: of both sides.
        held_out: the validation split.

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
        """A record of samples.jsonl."""
        assert isinstance(model, EncoderDecoder)
        found = Translator(model, self.tokenizer, self.config).translate(
            self._shown.sources, beam=self.config.evaluation.beam, between=between
        )
        rows = [
            {"source": source, "reference": reference, "text": best[0].text}
            for source, reference, best in zip(self._shown.sources, self._shown.targets, found, strict=True)
        ]
        return {"step": step, "prompt": rows[0]["source"], "text": rows[0]["text"], "translations": rows}
