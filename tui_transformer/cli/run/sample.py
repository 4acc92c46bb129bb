"""`sample`: text from one or two trained models, once or at a prompt."""

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated

import typer
from rich.text import Text

from engine.base.clean import clean, clean_line
from engine.base.command_line import DEFAULT_RUNS_DIR
from engine.base.errors import InputError
from engine.base.language import Message, tr
from engine.generation.output import AnswerToken
from engine.runs.reader import RunReader
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import Device, Json, RunArgument, RunsDir, run_names
from tui_transformer.cli.output import is_terminal, print_answer, print_info, print_json, show_progress, stdout, warn
from tui_transformer.cli.run.repl import STYLES, Session, print_token, run_prompt
from tui_transformer.lab.play.prompt import ASKING, WRITING, Settings, parse_setting
from tui_transformer.lab.play.writers import ModelWriter
from tui_transformer.lab.play.written import answer_probabilities_text, probability_level, probability_text, token_label

OTHERS = 3  # other answers listed beside the one given
LISTED = 5  # tokens listed by /alternatives, and alternatives of each
AROUND = 12  # characters before a listed token


@dataclass
class SampleSession(Session):
    answers: list[list[AnswerToken]] = field(default_factory=list)
    _noticed: set[str] = field(default_factory=set)

    def writer_of(self, reader: RunReader) -> ModelWriter:
        task = reader.config.task
        if task.prompt_command != "sample":
            raise InputError(
                Message(
                    "run '{name}' {does}; use `{command}`",
                    name=reader.name,
                    does=task.action,
                    command=reader.command(task.prompt_command),
                )
            )
        return ModelWriter(reader, self.checkpoint, self.device)

    def answer(self, text: str, settings: Settings, which: int = 0) -> None:
        self.answers = []
        for writer in self.writers:
            self._title(writer)
            pieces: list[AnswerToken] = []
            self.answers.append(pieces)
            for piece in writer.stream(text, settings, which, LISTED):
                if not pieces:  # the text was taken
                    notice = writer.length_warning(text, settings)
                    if notice and writer.name not in self._noticed:  # once a model is enough
                        self._noticed.add(writer.name)
                        warn(notice)
                    if writer.continues and not self.as_json:
                        sys.stdout.write(clean(text))
                pieces.append(piece)
                if not self.as_json and not writer.ranks_answers:
                    print_token(clean(piece.text), piece.probability)
            written = "".join(piece.text for piece in pieces)
            wholes = writer.answer_and_likeliest_others(text, written, OTHERS)
            filled = writer.filled_prompt(text, written)
            if self.as_json:
                known = [piece.nats for piece in pieces if piece.nats is not None]
                whole = {}
                if wholes:  # it has an end; a text could go on
                    first, *others = map(asdict, wholes)
                    whole = {**first, "alternatives": others, **({"filled": filled} if filled else {})}
                print_json(
                    {
                        "run": writer.name,
                        "prompt": text,
                        "text": written,
                        "answer": which,
                        "checkpoint_step": writer.step,
                        "nll": math.fsum(known) if known else None,
                        "probabilities": [piece.probability for piece in pieces],
                        **whole,
                        **settings,
                    }
                )
            elif writer.ranks_answers:
                print_answer(clean_line(filled or written.strip()))
                print_answer(f"  {clean_line(answer_probabilities_text(wholes))}", flush=True)
            else:
                print_answer(flush=True)

    def _title(self, writer: ModelWriter) -> None:
        if len(self.writers) > 1 and not self.as_json:
            print_answer(tr("── {name}, step {step:,}", name=clean_line(writer.name), step=writer.step), flush=True)

    def alternatives(self, argument: str) -> None:
        wanted = argument.strip() or str(LISTED)
        if not wanted.isdecimal() or len(wanted) > 4 or not 1 <= int(wanted) <= 1000:
            raise InputError(
                Message(
                    "/alternatives {wanted!r}: the number of tokens must be a whole number from 1 to 1000",
                    wanted=wanted[:20],
                )
            )
        if not any(self.answers):
            raise InputError(Message("/alternatives: there is no answer yet"))
        for writer, pieces in zip(self.writers, self.answers, strict=True):
            self._title(writer)
            known = [i for i, piece in enumerate(pieces) if piece.probability is not None]
            for i in sorted(known, key=lambda i: pieces[i].probability or 0.0)[: int(wanted)]:
                if self.as_json:
                    print_json({"run": writer.name, "at": i} | asdict(pieces[i]))
                else:
                    stdout().print(_alternatives_line(pieces, i))

    def surprise(self, text: str) -> None:
        if not text:
            raise InputError(Message("/surprise: needs some text, e.g. /surprise to be or not"))
        for writer in self.writers:
            found = writer.surprise(text, LISTED if self.as_json else 0)
            self._title(writer)
            if self.as_json:
                tokens = [asdict(piece) | {"nats": nats} for piece, nats in zip(found.tokens, found.nats, strict=True)]
                print_json(
                    {
                        "run": writer.name,
                        "surprise_of": text,
                        "checkpoint_step": writer.step,
                        "nll": found.total_nats,
                        "nats_per_character": found.nats_per_character,
                        "perplexity": found.perplexity if math.isfinite(found.perplexity) else None,
                        "tokens": tokens,
                    }
                )
            else:
                parts = [(clean(p.text), STYLES[probability_level(p.probability)]) for p in found.tokens]
                stdout().print(Text.assemble(*parts))
                print_answer(found.summary, flush=True)

    def examples(self, _: str) -> None:
        for writer in self.writers:
            with show_progress(tr("loading the corpus")):
                found = writer.answer_held_out_examples()
            self._title(writer)
            for one in found:
                if self.as_json:
                    right = one.right if one.reference else None
                    said = {"asked": one.source, "reference": one.reference, "text": one.text, "right": right}
                    print_json({"run": writer.name, "checkpoint_step": writer.step, **said})
                    continue
                line = Text()
                if one.reference:
                    line.append(*((tr("right"), "green") if one.right else (tr("wrong"), "red"))).append("  ")
                written = clean_line(one.text) or tr("(nothing)")
                line.append(f"{clean_line(one.source)} → {written}")
                if one.reference and not one.right:
                    line.append(f"   = {clean_line(one.reference)}", "dim")
                stdout().print(line, soft_wrap=True)

    def use_run(self, run: str) -> None:
        self.writers[0], self.answers = self.load(run), []
        print_info(tr("{name} at step {step:,}", name=self.writers[0].name, step=self.writers[0].step))

    def use_second_run(self, run: str) -> None:
        self.writers = [self.writers[0], *([self.load(run)] if run.strip() else [])]
        self.answers = []
        print_info(self.title)


@command(110)
@examples(
    {
        "sample demo": "Type prompts and read what the model writes.",
        "sample demo --prompt ROMEO: --n 3 --temperature 0.7": "Continue one prompt three times.",
        "sample demo --vs no-pe-demo --prompt ROMEO:": "Let two models answer the same prompt.",
    }
)
def sample(
    run: RunArgument = "last",
    prompt: Annotated[str | None, typer.Option("--prompt", help="Answer this prompt once, then exit.")] = None,
    vs: Annotated[
        str | None, typer.Option("--vs", help="A second run: same prompt, same seed.", autocompletion=run_names)
    ] = None,
    n: Annotated[int, typer.Option("--n", "-n", min=1, max=10_000, help="Number of answers to --prompt.")] = 1,
    length: Annotated[int, typer.Option("--length", min=1, max=10_000_000, help="Tokens per answer.")] = 200,
    temperature: Annotated[
        float | None, typer.Option("--temperature", help="0 always picks the most likely token.")
    ] = None,
    top_k: Annotated[
        int | None, typer.Option("--top-k", help="Sample only from the k most likely tokens; 0 means all.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option("--top-p", help="Sample only from the most likely tokens, up to this total probability."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same answers.")] = 1,
    checkpoint: Annotated[str, typer.Option("--checkpoint", help="best, last, average, ema, or a step.")] = "best",
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
) -> None:
    """Continue text with a trained model: at an interactive prompt, or once with --prompt TEXT.

    At the prompt: /alternatives, /surprise TEXT, /vs RUN and more; /help lists them.
    """
    asked = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "length": length, "seed": seed}
    given = {name: parse_setting(name, value) for name, value in asked.items() if value is not None}
    writing = SampleSession(runs_dir, device, checkpoint, json)
    writing.writers = [writing.load(name) for name in (run, vs) if name is not None]
    first = writing.writers[0]
    settings: Settings = first.defaults | given
    if prompt is not None:
        for which in range(n):
            writing.answer(prompt, settings, which)
        return
    if is_terminal(sys.stdin):
        said = (
            tr("{title}: {invitation}, /examples for ideas, /help for commands, /quit to leave")
            if first.ranks_answers
            else tr("{title}: {invitation}, /help for commands, /quit to leave")
        )
        print_info(said.format(title=writing.title, invitation=first.invitation))
    actions = {
        "alternatives": writing.alternatives,
        "surprise": writing.surprise,
        "examples": writing.examples,
        "run": writing.use_run,
        "vs": writing.use_second_run,
        "checkpoint": writing.use_checkpoint,
        "to": writing.set_target,
    }
    table = ASKING if first.ranks_answers else WRITING
    run_prompt(settings, lambda text: writing.answer(text, settings), actions, table)


def _alternatives_line(pieces: Sequence[AnswerToken], at: int) -> Text:
    """Show a token in context, and likelier ones: `…the ga[t] 0.02   m 0.61  n 0.2 …`."""
    piece = pieces[at]
    before = "".join(token_label(one.text) for one in pieces[max(0, at - AROUND) : at]).rjust(AROUND)
    line = Text(before, "dim")
    line.append(f"[{token_label(piece.text)}]", STYLES[probability_level(piece.probability)])
    line.append(f" {probability_text(piece.probability or 0.0)}  ")
    for one in piece.alternatives:
        line.append(f"  {token_label(one.text)} {probability_text(one.probability)}")
    return line
