"""Writers for text models: one continues a text or turns a source into a target, one fills gaps."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from engine.errors import InputError
from engine.runs.reader import RunReader
from tui_transformer.lab.play.prompt import SETTINGS, Settings
from tui_transformer.lab.play.writer import START, Writer, answer_tokens, sampling_of, token_scores
from tui_transformer.lab.play.written import AnswerToken, TokenScores

if TYPE_CHECKING:
    from torch import Tensor

    from engine.generation.sampling import Sampling


class TextWriter(Writer):
    mark: ClassVar[str] = START  # for the special token, if there is one

    def _load(self, reader: RunReader, checkpoint: str) -> None:
        from engine.training.checkpoint import load_trained

        self.model, self.tokenizer, self.step = load_trained(reader, checkpoint, self.device)
        generation = self.config.generation
        own = {name: getattr(generation, name) for name in SETTINGS if hasattr(generation, name)}
        self.defaults = {"seed": 1, "length": 200} | own
        self.continues = self.config.task.continues
        self.invitation = "type a text to continue" if self.continues else "type a source"

    def notice(self, text: str, settings: Settings) -> str:
        """Warn that the context will be full, or that the source's length differs from training."""
        if not self.continues:
            trained, given = self.config.model.source_tokens, len(text)
            then = "the newest count" if given > trained else "others are new to it"
            words = f"the model was trained on sources of {trained} characters and this one has {given}: {then}"
            return words if given != trained else ""
        context, wanted = self.config.model.context_length, len(text) + int(settings["length"])
        then = (
            f"it goes on from the newest {max(1, context // 2)} tokens each time they are used up"
            if self.config.generation.overflow == "restart"
            else "it stops there"
        )
        words = f"the model was trained on {context} tokens at once and {wanted} are asked for: {then}"
        return words if wanted > context else ""

    def pieces(self, text: str, settings: Settings, answer: int = 0, alternatives: int = 0) -> Iterator[AnswerToken]:
        if not text:
            raise InputError("prompt '': it needs at least one character, e.g. 'O'")
        how, seed = sampling_of(settings, answer, self.config.generation.overflow)
        yield from self._written(text, int(settings["length"]), how, seed, alternatives)

    def _written(self, text: str, length: int, how: "Sampling", seed: int, alternatives: int) -> Iterator[AnswerToken]:
        from engine.generation.sampling import write

        ids, size = self._encoded(text), self.tokenizer.vocab_size
        drawn = write(self.model, self.config, size, ids, length, how, seed, alternatives)
        yield from answer_tokens(drawn, self._decoded, self._decoded)

    def _encoded(self, text: str) -> "Tensor":
        import torch

        return torch.from_numpy(self.tokenizer.encode(text)).to(self.device)

    def _decoded(self, token: int) -> str:
        return self.tokenizer.decode([token])

    def surprise(self, text: str, alternatives: int = 0) -> TokenScores:
        from engine.generation.surprise import surprise

        found = surprise(self.model, self.config, self.tokenizer.vocab_size, self._encoded(text), alternatives)
        source = self.tokenizer.decode(found.source)
        rule = (
            f"each character given the source “{source}” and the target before it"
            if found.source
            else f"each character given those before it, at most {found.context}; past that, at least "
            f"{found.context - found.stride}"
        )
        return token_scores(found.tokens, self._decoded, self._decoded, source, rule)

    def _read(self, text: str, written: str) -> "tuple[Tensor, Tensor | None]":
        import torch

        model, size = self.config.model, self.tokenizer.vocab_size
        if self.continues:
            return self._encoded(text + written)[-model.context_length :], None
        source = self._encoded(text)[-model.source_tokens :]
        first = source.new_tensor([size]) if self.config.special_tokens else source[-1:]
        return torch.cat((first, self._encoded(written)))[: model.context_length], source

    def _labels(self, ids: "Tensor", *, is_source: bool) -> tuple[str, ...]:
        size = self.tokenizer.vocab_size
        return tuple(self._decoded(token) if token < size else self.mark for token in ids.tolist())


class MaskedWriter(TextWriter):
    mark = "_"

    def _load(self, reader: RunReader, checkpoint: str) -> None:
        super()._load(reader, checkpoint)
        self.invitation = "type a text with a _ for each character to fill in"

    def notice(self, text: str, settings: Settings) -> str:
        return ""

    def _written(self, text: str, length: int, how: "Sampling", seed: int, alternatives: int) -> Iterator[AnswerToken]:
        from engine.generation.sampling import fill

        ids, gaps = self._with_gaps(text)
        filled, choices = fill(self.model, self.tokenizer.vocab_size, ids, gaps, how, seed, alternatives)
        found = answer_tokens(choices, self._decoded, self._decoded)
        for token, gap in zip(filled.tolist(), gaps.tolist(), strict=True):
            yield next(found) if gap else AnswerToken(self._decoded(token))

    def _with_gaps(self, text: str) -> "tuple[Tensor, Tensor]":
        """Return (T,) ids of a text, with placeholders at gaps, and (T,) bool of where they are."""
        import torch

        from engine.generation.samples import GAP

        context = self.config.model.context_length
        if GAP not in text or len(text) > context:
            raise InputError(
                f"prompt: this model fills gaps: mark each with {GAP}, in at most {context} characters, "
                f"e.g. 'the g{GAP}te'"
            )
        gaps = torch.tensor([c == GAP for c in text], device=self.device)
        return self._encoded(text.replace(GAP, self._decoded(0))), gaps

    def _read(self, text: str, written: str) -> "tuple[Tensor, Tensor | None]":
        import torch

        if written:  # the filled text
            return self._encoded(written), None
        ids, gaps = self._with_gaps(text)
        return torch.where(gaps, self.tokenizer.vocab_size, ids), None
