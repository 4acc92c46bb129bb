"""`sample`: text from a trained model, once or at a prompt."""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import InputError
from engine.runs.reader import RunReader
from tui_transformer.clean import clean
from tui_transformer.commands.run import loading
from tui_transformer.output import emit, is_terminal, say, stamp, warn
from tui_transformer.prompt import SETTINGS, Prompt, Settings, checked, converse

if TYPE_CHECKING:
    from engine.config.schema import RunConfig

INVITATIONS = {"next-token": "type a text to continue", "masked": "type a text with a _ for each character to fill in"}


@dataclass(frozen=True)
class Piece:
    """A part of an answer, and how probable the model found it, where that is known."""

    text: str
    probability: float | None


class Writer:
    """A trained model that makes something of a text: goes on with it, fills its gaps, or takes it for its source."""

    def __init__(self, reader: RunReader, checkpoint: str, device: str) -> None:
        from engine.training.checkpoint import load_trained
        from engine.training.devices import resolve_device

        self.config: RunConfig = reader.config
        self.device = resolve_device(device)
        self.model, self.tokenizer, self.step = load_trained(reader, checkpoint, self.device)
        self._warned = False

    @property
    def continues(self) -> bool:
        """Its text goes on from the prompt; else it is an answer of its own."""
        return self.config.objective.kind == "next-token"

    def pieces(self, text: str, settings: Settings, answer: int = 0) -> Iterator[Piece]:
        """One answer as it comes; `answer` counts answers to the same prompt.

        Raises:
            InputError: an empty prompt, unknown characters, or no gap where gaps are filled.
        """
        import torch

        from engine.generation.samples import GAP, fill
        from engine.generation.samples import answer as write
        from engine.generation.sampling import Sampling
        from engine.model.transformer import EncoderLM
        from engine.seeds import seed_for

        if not text:
            raise InputError("--prompt '': a prompt needs at least one character, e.g. --prompt 'O'")
        how = Sampling(
            float(settings["temperature"]),
            int(settings["top_k"]),
            float(settings["top_p"]),
            self.config.generation.overflow,
        )
        seed, size = seed_for(int(settings["seed"]), "sample", answer), self.tokenizer.vocab_size
        if self.config.objective.kind == "masked":
            assert isinstance(self.model, EncoderLM)
            context = self.config.model.context_length
            if GAP not in text or len(text) > context:
                raise InputError(
                    f"--prompt: this model fills gaps: mark each with {GAP}, in at most {context} characters, "
                    f"e.g. 'the g{GAP}te'"
                )
            gaps = torch.tensor([c == GAP for c in text], device=self.device)
            known = self.tokenizer.encode(text.replace(GAP, self.tokenizer.characters[0]))
            ids = torch.from_numpy(known).to(self.device)
            yield Piece(self.tokenizer.decode(fill(self.model, self.config, size, ids, gaps, how, seed).tolist()), None)
            return
        ids = torch.from_numpy(self.tokenizer.encode(text)).to(self.device)
        if self.continues:
            self._warn_of_overflow(ids.numel() + int(settings["length"]))
        else:
            self._warn_of_length(ids.numel())
        for drawn in write(self.model, self.config, size, ids, int(settings["length"]), how, seed):
            yield Piece(self.tokenizer.decode([drawn.token]), drawn.probability)

    def _warn_of_length(self, given: int) -> None:
        trained = self.config.model.source_tokens
        if given == trained or self._warned:
            return
        self._warned = True
        then = "the newest count" if given > trained else "others are new to it"
        warn(f"the model was trained on sources of {trained} characters and this one has {given}: {then}")

    def _warn_of_overflow(self, wanted: int) -> None:
        context = self.config.model.context_length
        if wanted <= context or self._warned:
            return
        self._warned = True
        then = (
            f"it goes on from the newest {max(1, context // 2)} tokens each time they are used up"
            if self.config.generation.overflow == "restart"
            else "it stops there"
        )
        warn(f"the model was trained on {context} tokens at once and {wanted} are asked for: {then}")


def sample_command(
    run: str,
    prompt: str | None,
    n: int,
    given: Settings,
    *,
    checkpoint: str,
    device: str,
    as_json: bool,
    runs_dir: Path,
) -> int:
    """One-shot with a prompt, else interactive (or one answer a line of a pipe)."""
    given = {name: checked(name, value) for name, value in given.items()}
    reader = RunReader.resolve(run, runs_dir)
    stamp(reader)
    with loading("loading the model"):
        writer = Writer(reader, checkpoint, device)
    generation = writer.config.generation
    settings: Settings = {name: getattr(generation, name) for name in SETTINGS if hasattr(generation, name)} | given
    if prompt is not None:
        for answer in range(n):
            _one(writer, prompt, settings, answer, as_json=as_json)
        return 0
    if is_terminal(sys.stdin):
        invitation = INVITATIONS.get(writer.config.objective.kind, "type a source")
        say(f"{reader.name} at step {writer.step:,}: {invitation}, /help for commands, /quit to leave")
    session = Prompt(settings, lambda text: _one(writer, text, session.settings, 0, as_json=as_json))
    converse(session)
    return 0


def _one(writer: Writer, text: str, settings: Settings, answer: int, *, as_json: bool) -> None:
    if as_json:
        pieces = list(writer.pieces(text, settings, answer))
        known = [piece.probability for piece in pieces if piece.probability is not None]
        emit(
            {
                "prompt": text,
                "text": "".join(piece.text for piece in pieces),
                "answer": answer,
                "checkpoint_step": writer.step,
                "nll": -math.fsum(math.log(max(p, 1e-45)) for p in known) if known else None,
                **settings,
            }
        )
        return
    for i, piece in enumerate(writer.pieces(text, settings, answer)):
        if i == 0 and writer.continues:
            sys.stdout.write(clean(text))
        sys.stdout.write(clean(piece.text))
        sys.stdout.flush()
    sys.stdout.write("\n")
    sys.stdout.flush()
