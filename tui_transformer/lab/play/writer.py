"""A trained model that makes something of a text: the one source of writing for the prompt and for the Playground.

torch is imported only when a model is loaded, and whoever asks for one does so off the event loop.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from engine.errors import InputError
from engine.runs.reader import RunReader
from tui_transformer.lab.play.inspected import Inspected
from tui_transformer.lab.play.pictures import stacks, who_sees_whom
from tui_transformer.lab.play.prompt import SETTINGS, Settings
from tui_transformer.lab.play.written import Alternative, Attended, Piece, Surprised, Whole
from tui_transformer.lab.records.facts import stamp

if TYPE_CHECKING:
    from torch import Tensor

    from engine.config.schema import RunConfig
    from engine.generation.sampling import SampledToken, Sampling

INVITATIONS = {"next-token": "type a text to continue", "masked": "type a text with a _ for each character to fill in"}
KEPT = 3  # models that stay in memory
START = "▷"  # how the start token is shown


class Writes(Protocol):
    """What the Playground asks of a model."""

    name: str
    step: int
    defaults: Settings

    @property
    def continues(self) -> bool:
        """Its text goes on from the prompt; else it is an answer of its own."""
        ...

    @property
    def ranks(self) -> bool:
        """Whether it knows the likeliest whole answers, see `wholes`."""
        ...

    @property
    def invitation(self) -> str:
        """What to type."""
        ...

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of attention: "self", or also "cross" and "encoder"."""
        ...

    def shape(self, which: str) -> tuple[int, int]:
        """Layers and heads of a kind of attention."""
        ...

    def notice(self, text: str, settings: Settings) -> str:
        """What is to be known before an answer, "" if nothing."""
        ...

    def pieces(self, text: str, settings: Settings, answer: int = 0, alternatives: int = 0) -> Iterator[Piece]:
        """One answer as it comes."""
        ...

    def wholes(self, text: str, written: str, others: int) -> tuple[Whole, ...]:
        """What was written as a whole answer, and the likeliest others; () where answers are not of that kind."""
        ...

    def surprise(self, text: str, alternatives: int = 0) -> Surprised:
        """How surprised it is by a text."""
        ...

    def attention(self, text: str, written: str, layer: int, head: int, which: str = "self") -> Attended:
        """Where a head looks, layers and heads counted from 1."""
        ...


class Writer(Inspected):
    """A checkpoint of a run.

    Args:
        reader: the run.
        checkpoint: best, last, or a step.
        device: as on the command line.

    Raises:
        InputError: no such checkpoint, or a damaged one.
    """

    ranks = False

    def __init__(self, reader: RunReader, checkpoint: str, device: str) -> None:
        from engine.training.checkpoint import load_trained
        from engine.training.devices import resolve_device

        self.name = reader.name
        self.config: RunConfig = reader.config
        self.device = resolve_device(device)
        self.model, self.tokenizer, self.step = load_trained(reader, checkpoint, self.device)
        generation = self.config.generation
        own = {name: getattr(generation, name) for name in SETTINGS if hasattr(generation, name)}
        self.defaults: Settings = {"seed": 1, "length": 200} | own

    @property
    def continues(self) -> bool:
        """Its text goes on from the prompt; else it is an answer of its own."""
        return self.config.objective.kind == "next-token"

    @property
    def invitation(self) -> str:
        """What to type."""
        return INVITATIONS.get(self.config.objective.kind, "type a source")

    def notice(self, text: str, settings: Settings) -> str:
        """What is to be known before an answer: that the context will be full, or the source is of another length."""
        if self.config.objective.kind == "masked":
            return ""
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

    def pieces(self, text: str, settings: Settings, answer: int = 0, alternatives: int = 0) -> Iterator[Piece]:
        """One answer as it comes.

        Args:
            text: to go on with, to fill, or a source.
            settings: see `SETTINGS`.
            answer: counts answers to the same prompt.
            alternatives: how many of the likeliest tokens to tell in each place.

        Raises:
            InputError: an empty prompt, unknown characters, or no gap where gaps are filled.
        """
        from engine.generation.sampling import Sampling, write
        from engine.seeds import seed_for

        if not text:
            raise InputError("prompt '': it needs at least one character, e.g. 'O'")
        how = Sampling(
            float(settings["temperature"]),
            int(settings["top_k"]),
            float(settings["top_p"]),
            self.config.generation.overflow,
        )
        seed, size = seed_for(int(settings["seed"]), "sample", answer), self.tokenizer.vocab_size
        if self.config.objective.kind == "masked":
            yield from self._filled(text, how, seed, alternatives)
            return
        ids, length = self._encoded(text), int(settings["length"])
        for drawn in write(self.model, self.config, size, ids, length, how, seed, alternatives):
            yield self._piece(drawn)

    def _filled(self, text: str, how: "Sampling", seed: int, alternatives: int) -> Iterator[Piece]:
        from engine.generation.sampling import fill
        from engine.model.transformer import EncoderLM

        assert isinstance(self.model, EncoderLM)
        ids, gaps = self._with_gaps(text)
        filled, drawn = fill(self.model, self.config, self.tokenizer.vocab_size, ids, gaps, how, seed, alternatives)
        found = iter(drawn)
        for token, gap in zip(filled.tolist(), gaps.tolist(), strict=True):
            yield self._piece(next(found)) if gap else Piece(self.tokenizer.decode([token]))

    def _with_gaps(self, text: str) -> "tuple[Tensor, Tensor]":
        """(T,) ids of a text, something at its gaps, and (T,) bool where they are."""
        import torch

        from engine.generation.samples import GAP

        context = self.config.model.context_length
        if GAP not in text or len(text) > context:
            raise InputError(
                f"prompt: this model fills gaps: mark each with {GAP}, in at most {context} characters, "
                f"e.g. 'the g{GAP}te'"
            )
        gaps = torch.tensor([c == GAP for c in text], device=self.device)
        return self._encoded(text.replace(GAP, self.tokenizer.characters[0])), gaps

    def _encoded(self, text: str) -> "Tensor":
        import torch

        return torch.from_numpy(self.tokenizer.encode(text)).to(self.device)

    def _piece(self, drawn: "SampledToken") -> Piece:
        others = tuple(
            Alternative(self.tokenizer.decode([one.token]), one.probability, one.chance) for one in drawn.alternatives
        )
        return Piece(self.tokenizer.decode([drawn.token]), drawn.probability, drawn.chance, others)

    def wholes(self, text: str, written: str, others: int) -> tuple[Whole, ...]:
        """None: a text that is gone on with has no end."""
        return ()

    def surprise(self, text: str, alternatives: int = 0) -> Surprised:
        """How surprised the model is by a text.

        Raises:
            InputError: not defined for this kind of model, unknown characters, or too short a text.
        """
        from engine.generation.surprise import surprise

        decode = self.tokenizer.decode
        found = surprise(self.model, self.config, self.tokenizer.vocab_size, self._encoded(text), alternatives)
        pieces = tuple(
            Piece(
                decode([token.token]),
                None if token.nats is None else math.exp(-token.nats),
                None,
                tuple(Alternative(decode([one.token]), one.probability, one.chance) for one in token.alternatives),
            )
            for token in found.tokens
        )
        rule = (
            f"each character given the source “{decode(found.source)}” and the target before it"
            if found.source
            else f"each character given those before it, at most {found.context}; past that, at least "
            f"{found.context - found.stride}"
        )
        return Surprised(pieces, tuple(token.nats for token in found.tokens), decode(found.source), rule)

    def attention(self, text: str, written: str, layer: int, head: int, which: str = "self") -> Attended:
        """Where a head looks.

        Args:
            text: the prompt, or the source.
            written: what came after it.
            layer: from 1.
            head: from 1.
            which: "self", "cross" or "encoder".

        Raises:
            InputError: no such layer, head or kind, no weights, or unknown characters.
        """
        from engine.generation.inspection import head_attention

        tokens, source = self._read(text, written)
        found = head_attention(self.model, tokens, layer - 1, head - 1, which, source)
        layers, heads = self.shape(which)
        by = source if which == "encoder" and source is not None else tokens
        at = source if which in ("cross", "encoder") and source is not None else tokens
        plan = stacks(self.config.model)[0 if which == "encoder" else -1]
        rule = (
            "cross-attention: each token of the target sees all of the source"
            if which == "cross"
            else who_sees_whom(plan, plan.length)
        )
        return Attended(
            self._shown(by),
            self._shown(at),
            found.weights.float().cpu().numpy(),
            found.visible.cpu().numpy(),
            None if found.bias is None else found.bias.float().cpu().numpy(),
            f"layer {layer} of {layers}, head {head} of {heads}" + (f", {which}" if which != "self" else ""),
            rule,
            which == "cross",
        )

    def _read(self, text: str, written: str) -> "tuple[Tensor, Tensor | None]":
        """What the network reads to make this: tokens, and a source where it has one."""
        import torch

        model, size = self.config.model, self.tokenizer.vocab_size
        if self.config.objective.kind == "masked":
            if written:  # the filled text
                return self._encoded(written), None
            ids, gaps = self._with_gaps(text)
            return torch.where(gaps, size, ids), None
        if self.continues:
            return self._encoded(text + written)[-model.context_length :], None
        source = self._encoded(text)[-model.source_tokens :]
        first = source.new_tensor([size]) if self.config.special_tokens else source[-1:]
        return torch.cat((first, self._encoded(written)))[: model.context_length], source

    def _shown(self, ids: "Tensor") -> tuple[str, ...]:
        size = self.tokenizer.vocab_size
        mark = "_" if self.config.objective.kind == "masked" else START
        return tuple(self.tokenizer.decode([token]) if token < size else mark for token in ids.tolist())


def load_writer(reader: RunReader, checkpoint: str, device: str) -> Writes:
    """What writes with a run's checkpoint.

    Raises:
        InputError: no such checkpoint, or a damaged one.
    """
    from tui_transformer.lab.play.document_writer import DocumentWriter
    from tui_transformer.lab.play.translation_writer import TranslationWriter

    if reader.config.on_documents:
        return DocumentWriter(reader, checkpoint, device)
    return (TranslationWriter if reader.config.translates else Writer)(reader, checkpoint, device)


class Writers:
    """Loaded models, by run and checkpoint: what was loaded is not loaded again until its files are others.

    Args:
        device: as on the command line.
        load: makes a writer; called off the event loop.
    """

    def __init__(self, device: str, load: Callable[[RunReader, str, str], Writes] = load_writer) -> None:
        self.device, self._load = device, load
        self._kept: dict[tuple[Path, object], Writes] = {}

    def get(self, run: Path, which: str) -> Writes:
        """The model of a run's checkpoint; blocks while it loads.

        Args:
            run: its directory.
            which: best, last, or a step.

        Raises:
            InputError: no such checkpoint, or a damaged one.
        """
        try:
            return self._get(run, which)
        except OSError as error:
            raise InputError(f"{run.name}: its checkpoint cannot be read: {error.strerror or error}") from None
        except InputError:
            if not _trains(run):
                raise
            return self._get(run, which)  # training may have put a newer checkpoint in its place while it was read

    def _get(self, run: Path, which: str) -> Writes:
        from engine.training.checkpoint import MANIFEST, find

        reader = RunReader(run)
        folder = find(reader, which)
        key = (folder, stamp(folder / MANIFEST))
        found = self._kept.pop(key, None) or self._load(reader, which, self.device)
        self._kept[key] = found  # the newest last
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return found


def checkpoints(run: Path) -> tuple[object, ...]:
    """What changes when a run has a newer checkpoint; looks at two files."""
    return tuple(stamp(run / "checkpoints" / name) for name in ("last", "best"))


def _trains(run: Path) -> bool:
    return RunReader(run).status.state in ("running", "paused", "handing-over")
