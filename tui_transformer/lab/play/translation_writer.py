"""A writer for translators: a sentence is the prompt, its translation the answer."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.errors import InputError
from engine.runs.reader import RunReader
from tui_transformer.lab.play.prompt import Settings
from tui_transformer.lab.play.writer import (
    END,
    START,
    Writer,
    answer_tokens,
    sampling_of,
    split_at_arrow,
    token_scores,
)
from tui_transformer.lab.play.written import AnswerToken, TokenScores

if TYPE_CHECKING:
    from torch import Tensor


class TranslationWriter(Writer):
    """A checkpoint of a run that translates; see `Writer`.

    It does not rank whole answers: `translate --nbest` ranks with a length penalty, not by probability.
    """

    invitation = "type a sentence to translate; temperature 0 is greedy"

    def _load(self, reader: RunReader, checkpoint: str) -> None:
        from engine.generation.translation import Translator
        from engine.training.checkpoint import load_translator

        model, self.tokenizer, self.step = load_translator(reader, checkpoint, self.device)
        self.model, self.translator = model, Translator(model, self.tokenizer, self.config)
        self.defaults = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "seed": 1, "length": 200}

    def pieces(self, text: str, settings: Settings, answer: int = 0, alternatives: int = 0) -> Iterator[AnswerToken]:
        from engine.generation.answering import sample_answer

        if not text.strip():
            raise InputError("prompt '': it needs a sentence to translate")
        how, seed = sampling_of(settings, answer)
        prompt, size = self.translator.prompt(text), self.tokenizer.vocab_size
        assert prompt.source is not None
        most = min(int(settings["length"]), self.translator.most(len(prompt.source)))
        drawn = sample_answer(self.model, prompt, how, seed, allowed=size, most=most, alternatives=alternatives)
        yield from answer_tokens(drawn, self.tokenizer.target.decoder().feed, self._shown)

    def surprise(self, text: str, alternatives: int = 0) -> TokenScores:
        from engine.generation.surprise import translation_surprise

        source, target = split_at_arrow(text, "a sentence and its translation are needed, e.g. I see. → Ich sehe.")
        found = translation_surprise(self.translator, source, target, alternatives)
        rule = f"each token given the source “{source}” and the target before it; ■ is its end"
        return token_scores(found, self._shown, self._shown, source, rule)

    def _read(self, text: str, written: str) -> "tuple[Tensor, Tensor | None]":
        return self._prompted(self.translator.prompt(text), self.tokenizer.target.encode(written))

    def _shown(self, token: int) -> str:
        return self.tokenizer.target.decode([token]) if token < self.tokenizer.vocab_size else END

    def _labels(self, ids: "Tensor", *, is_source: bool) -> tuple[str, ...]:
        side = self.tokenizer.source if is_source else self.tokenizer.target
        special = END if is_source else START
        return tuple(side.decode([token]) if token < side.vocab_size else special for token in ids.tolist())
