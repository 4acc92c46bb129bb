"""`sample`: text from a trained model, once or at a prompt."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from engine.errors import InputError
from engine.runs.reader import RunReader
from tui_transformer.clean import clean
from tui_transformer.commands.run import loading
from tui_transformer.output import emit, is_terminal, say, warn
from tui_transformer.prompt import SETTINGS, Prompt, Settings, checked, converse

if TYPE_CHECKING:
    from engine.config.schema import RunConfig
    from engine.data.tokenizers import CharacterTokenizer
    from engine.generation.sampling import Decodes, Drawn


class Writer:
    """A trained model that continues text."""

    def __init__(self, reader: RunReader, checkpoint: str, device: str) -> None:
        from engine.training.checkpoint import load_trained
        from engine.training.devices import resolve_device

        self.config: RunConfig = reader.config
        self.device = resolve_device(device)
        model, tokenizer, self.step = load_trained(reader, checkpoint, self.device)
        self.model = cast("Decodes", model)
        self.tokenizer: CharacterTokenizer = tokenizer
        self._warned = False

    def tokens(self, text: str, settings: Settings, answer: int = 0) -> Iterator["Drawn"]:
        """The tokens of one answer; `answer` counts answers to the same prompt."""
        import torch

        from engine.generation.sampling import Sampling, stream
        from engine.seeds import seed_for

        how = Sampling(
            float(settings["temperature"]),
            int(settings["top_k"]),
            float(settings["top_p"]),
            self.config.generation.overflow,
        )
        ids = torch.from_numpy(self.tokenizer.encode(text)).to(self.device)
        if ids.numel() == 0:
            raise InputError("--prompt '': a prompt needs at least one character, e.g. --prompt 'O'")
        self._warn_of_overflow(ids.numel() + int(settings["length"]))
        yield from stream(
            self.model,
            ids,
            int(settings["length"]),
            how,
            torch.Generator().manual_seed(seed_for(int(settings["seed"]), "sample", answer)),
            context=self.config.model.context_length,
            allowed=self.tokenizer.vocab_size,
        )

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
    with loading("loading the model"):
        writer = Writer(reader, checkpoint, device)
    generation = writer.config.generation
    settings: Settings = {name: getattr(generation, name) for name in SETTINGS if hasattr(generation, name)} | given
    if prompt is not None:
        for answer in range(n):
            _one(writer, prompt, settings, answer, as_json=as_json)
        return 0
    if is_terminal(sys.stdin):
        say(f"{reader.name} at step {writer.step:,}: type a text to continue, /help for commands, /quit to leave")
    session = Prompt(settings, lambda text: _one(writer, text, session.settings, 0, as_json=as_json))
    converse(session)
    return 0


def _one(writer: Writer, text: str, settings: Settings, answer: int, *, as_json: bool) -> None:
    decode = writer.tokenizer.decode
    if as_json:
        drawn = list(writer.tokens(text, settings, answer))
        emit(
            {
                "prompt": text,
                "text": decode(d.token for d in drawn),
                "answer": answer,
                "checkpoint_step": writer.step,
                "nll": -math.fsum(math.log(max(d.probability, 1e-45)) for d in drawn),
                **settings,
            }
        )
        return
    for i, token in enumerate(writer.tokens(text, settings, answer)):
        if i == 0:
            sys.stdout.write(clean(text))
        sys.stdout.write(clean(decode([token.token])))
        sys.stdout.flush()
    sys.stdout.write("\n")
    sys.stdout.flush()
