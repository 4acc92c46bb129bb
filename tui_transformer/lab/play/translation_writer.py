"""A trained translator as the Playground's writer: a sentence is the prompt, its translation the answer."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.errors import InputError
from engine.runs.reader import RunReader
from tui_transformer.lab.play.pictures import stacks, who_sees_whom
from tui_transformer.lab.play.prompt import Settings
from tui_transformer.lab.play.written import Alternative, Attended, Piece, Surprised, Whole

if TYPE_CHECKING:
    from torch import Tensor

    from engine.config.schema import RunConfig

START, END = "▷", "■"  # how special tokens are shown
ARROWS = (" → ", " => ", "\t")  # between a source and its translation


class TranslationWriter:
    """A checkpoint of a run that translates.

    Args:
        reader: the run.
        checkpoint: best, last, or a step.
        device: as on the command line.

    Raises:
        InputError: no such checkpoint, or a damaged one.
    """

    continues = False
    ranks = False
    invitation = "type a sentence to translate; temperature 0 is greedy"
    kinds = ("self", "cross", "encoder")

    def __init__(self, reader: RunReader, checkpoint: str, device: str) -> None:
        from engine.generation.translation import Translator
        from engine.training.checkpoint import load_translator
        from engine.training.devices import resolve_device

        self.name = reader.name
        self.config: RunConfig = reader.config
        model, self.tokenizer, self.step = load_translator(reader, checkpoint, resolve_device(device))
        self.translator = Translator(model, self.tokenizer, self.config)
        self.defaults: Settings = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "seed": 1, "length": 200}

    def shape(self, which: str) -> tuple[int, int]:
        """Layers and heads of a kind of attention.

        Raises:
            InputError: this network has no such kind.
        """
        from engine.generation.inspection import attentions

        return len(attentions(self.translator.model, which)), self.config.model.n_heads

    def notice(self, text: str, settings: Settings) -> str:
        """What is to be known before an answer: nothing."""
        return ""

    def pieces(self, text: str, settings: Settings, answer: int = 0, alternatives: int = 0) -> Iterator[Piece]:
        """The translation as it comes; see `Writer.pieces`.

        Raises:
            InputError: nothing to translate, or unknown characters.
        """
        from engine.generation.sampling import Sampling
        from engine.seeds import seed_for

        if not text.strip():
            raise InputError("prompt '': it needs a sentence to translate")
        how = Sampling(float(settings["temperature"]), int(settings["top_k"]), float(settings["top_p"]))
        seed, decoder = seed_for(int(settings["seed"]), "sample", answer), self.tokenizer.target.decoder()
        for one in self.translator.sample(text, how, seed, int(settings["length"]), alternatives):
            others = tuple(
                Alternative(self._shown(other.token), other.probability, other.chance) for other in one.alternatives
            )
            yield Piece(decoder.feed(one.token), one.probability, one.chance, others)

    def wholes(self, text: str, written: str, others: int) -> tuple[Whole, ...]:
        """None: what `translate --nbest` ranks is compared by a length penalty, not by probability."""
        return ()

    def surprise(self, text: str, alternatives: int = 0) -> Surprised:
        """How surprised it is by a translation, `SOURCE → TRANSLATION`.

        Raises:
            InputError: no arrow, or unknown characters.
        """
        from engine.generation.surprise import translation_surprise

        arrow = next((sign for sign in ARROWS if sign in text), None)
        if arrow is None:
            raise InputError("surprise: a sentence and its translation are needed, e.g. I see. → Ich sehe.")
        source, _, target = text.partition(arrow)
        found = translation_surprise(self.translator, source.strip(), target.strip(), alternatives)
        pieces = tuple(
            Piece(
                self._shown(token.token),
                None if token.nats is None else math.exp(-token.nats),
                None,
                tuple(Alternative(self._shown(one.token), one.probability, one.chance) for one in token.alternatives),
            )
            for token in found.tokens
        )
        rule = f"each token given the source “{source.strip()}” and the target before it; ■ is its end"
        return Surprised(pieces, tuple(token.nats for token in found.tokens), source.strip(), rule)

    def attention(self, text: str, written: str, layer: int, head: int, which: str = "self") -> Attended:
        """Where a head looks; see `Writer.attention`.

        Raises:
            InputError: no such layer, head or kind, no weights, or unknown characters.
        """
        import torch

        from engine.generation.inspection import head_attention

        source = self.translator.encoded(text)
        target = torch.from_numpy(self.tokenizer.target.encode(written)).to(source.device)
        tokens = torch.cat((source.new_tensor([self.translator.special.target.start]), target))
        tokens = tokens[: self.config.model.context_length]
        found = head_attention(self.translator.model, tokens, layer - 1, head - 1, which, source)
        layers, heads = self.shape(which)
        read, wrote = self._source(source), self._target(tokens)
        plan = stacks(self.config.model)[0 if which == "encoder" else -1]
        crosses = which == "cross"
        rule = "cross-attention: each token of the target sees all of the source"
        return Attended(
            read if which == "encoder" else wrote,
            wrote if which == "self" else read,
            found.weights.float().cpu().numpy(),
            found.visible.cpu().numpy(),
            None if found.bias is None else found.bias.float().cpu().numpy(),
            f"layer {layer} of {layers}, head {head} of {heads}" + (f", {which}" if which != "self" else ""),
            rule if crosses else who_sees_whom(plan, plan.length),
            crosses,
        )

    def _shown(self, token: int) -> str:
        """A target token; the end comes after the text's tokens, as in drawing, or as a special one."""
        return self.tokenizer.target.decode([token]) if token < self.tokenizer.vocab_size else END

    def _source(self, ids: "Tensor") -> tuple[str, ...]:
        size, decode = self.tokenizer.source_vocab_size, self.tokenizer.source.decode
        return tuple(decode([token]) if token < size else END for token in ids.tolist())

    def _target(self, ids: "Tensor") -> tuple[str, ...]:
        size, decode = self.tokenizer.vocab_size, self.tokenizer.target.decode
        return tuple(decode([token]) if token < size else START for token in ids.tolist())
