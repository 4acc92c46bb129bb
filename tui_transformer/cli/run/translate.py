"""`translate`: translate or summarize with a trained model, at a prompt, from a file or a pipe."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from engine.base.clean import clean_line
from engine.base.command_line import DEFAULT_RUNS_DIR
from engine.base.errors import InputError, reason
from engine.base.language import Message, tr
from engine.data.corpus import direction
from engine.data.text_files import Reading, cut_batches, decode
from engine.runs.reader import RunReader
from tui_transformer.cli.commands import command, examples
from tui_transformer.cli.options import Device, Encoding, Json, RunArgument, RunsDir, make_reading
from tui_transformer.cli.output import (
    has_colour,
    is_terminal,
    pad_to_width,
    print_answer,
    print_info,
    print_json,
    stdout,
    width_of,
)
from tui_transformer.cli.run.repl import Session, print_token, run_prompt
from tui_transformer.lab.play.alignment import alignment_picture, merge_into_words
from tui_transformer.lab.play.prompt import TRANSLATING, Settings, parse_setting
from tui_transformer.lab.play.writers import ModelWriter

if TYPE_CHECKING:
    from engine.generation.translation import TranslatedText

END = "■"  # how the end of a source is shown
AT_ONCE = 64  # lines of a file
LONGEST = 100_000  # characters of a line


@dataclass
class TranslationSession(Session):
    settings: Settings = field(default_factory=dict)
    target_language: str = ""  # the language to translate to
    last: str = ""  # the sentence that was translated

    def writer_of(self, reader: RunReader) -> ModelWriter:
        writer = ModelWriter(reader, self.checkpoint, self.device)
        writer.require_translation()
        if self.target_language:
            writer.set_target(self.target_language)
        return writer

    def use_run(self, run: str) -> None:
        self.writers = [self.load(run)]
        config = self.writers[0].config
        for name, value in (("beam", config.evaluation.beam), ("nbest", 1), ("alpha", config.generation.alpha)):
            self.settings.setdefault(name, value)

    @property
    def title(self) -> str:
        languages = [part[:20] for part in self.writers[0].reader.data.languages]
        return super().title + (f", {direction(languages)}" if languages else "")

    @property
    def greedy(self) -> bool:
        return self.settings["beam"] == self.settings["nbest"] == 1

    def translate(self, sentences: Sequence[str]) -> "list[list[TranslatedText]]":
        beam, n_best = int(self.settings["beam"]), int(self.settings["nbest"])
        if n_best > beam:
            raise InputError(
                Message(
                    "nbest {n_best}: more than a beam of {beam} can give; use --beam {n_best}, or /beam",
                    n_best=n_best,
                    beam=beam,
                )
            )
        alpha = float(self.settings["alpha"])
        translator = self.writers[0].translator
        return translator.translate(translator.encode(sentences), beam=beam, n_best=n_best, alpha=alpha)

    def answer(self, sentence: str) -> None:
        """Translate one typed sentence, shown word by word where possible."""
        self.last = sentence
        if self.as_json:
            self.print_translations([sentence])
        elif self.greedy:
            for piece, token, _ in self.writers[0].translator.stream(sentence):
                print_token(clean_line(piece), token.probability)
            print_answer(flush=True)
        else:
            for one in self.translate([sentence])[0]:
                score = f"{one.hypothesis.score:8.3f}  " if self.settings["nbest"] > 1 else ""
                print_answer(f"{score}{clean_line(one.text)}", flush=True)

    def print_translations(self, sentences: Sequence[str]) -> None:
        """Translate lines: one line each, or with n-best one block each."""
        step = self.writers[0].step
        for sentence, found in zip(sentences, self.translate(sentences), strict=True):
            if self.as_json:
                best = [
                    {"text": one.text, "score": one.hypothesis.score, "finished": one.hypothesis.finished}
                    for one in found
                ]
                print_json({"source": sentence, "translations": best, "checkpoint_step": step, **self.settings})
                continue
            for one in found:
                score = f"{one.hypothesis.score:.4f}\t" if len(found) > 1 else ""
                sys.stdout.write(f"{score}{clean_line(one.text)}\n")
        sys.stdout.flush()

    def set_target(self, language: str) -> None:
        super().set_target(language)
        self.target_language = language.strip()

    def align(self, _: str) -> None:
        if not self.last:
            raise InputError(Message("/align: nothing has been translated yet"))
        if not self.writers[0].config.has_source:
            raise InputError(
                Message(
                    "/align: a decoder-only model has no cross-attention; the Playground shows where each of its "
                    "heads looked"
                )
            )
        steps = list(self.writers[0].translator.stream(self.last))
        source, target = [*self.writers[0].translator.source_pieces(self.last), END], [piece for piece, *_ in steps]
        words = merge_into_words(source, target, [attention for *_, attention in steps])
        stdout().print(alignment_picture(*words, stdout().width, has_colour()))

    def examples(self, _: str) -> None:
        found = self.writers[0].reader.data.examples
        if not found:
            raise InputError(Message("examples: this run has none"))
        width = max(width_of(clean_line(one.source)) for one in found)
        lines = Text()
        for one in found:
            lines.append(pad_to_width(clean_line(one.source), width))
            lines.append(f"  {clean_line(tr(one.origin))}\n", "dim")
        lines.rstrip()
        stdout().print(lines)


@command(120)
@examples(
    {
        "translate phrasebook": "Type sentences to translate.",
        "translate phrasebook --input sentences.txt --beam 5": "Translate a file with beam size 5.",
    }
)
def translate(
    run: RunArgument = "last",
    text: Annotated[str | None, typer.Option("--text", help="Translate this text once, then exit.")] = None,
    input_: Annotated[Path | None, typer.Option("--input", help="Translate each line of this file.")] = None,
    beam: Annotated[
        int | None, typer.Option("--beam", help="Beam width: hypotheses kept at each step; 1 is greedy.")
    ] = None,
    nbest: Annotated[int | None, typer.Option("--nbest", help="Translations to show per sentence.")] = None,
    alpha: Annotated[
        float | None,
        typer.Option("--alpha", help="Alpha of the length penalty; higher favours longer translations."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", help="Language to translate into, if the run has several; the first is the default."),
    ] = None,
    checkpoint: Annotated[str, typer.Option("--checkpoint", help="best, last, average, ema, or a step.")] = "best",
    encoding: Encoding = "auto",
    device: Device = "auto",
    json: Json = False,
    runs_dir: RunsDir = DEFAULT_RUNS_DIR,
) -> None:
    """Translate with a trained model: at an interactive prompt, or line by line from --text, --input FILE or a pipe.

    At the prompt: examples, /beam, /nbest, /align and more; /help lists them.
    """
    given = {"beam": beam, "nbest": nbest, "alpha": alpha}
    settings = {name: parse_setting(name, value) for name, value in given.items() if value is not None}
    if "nbest" in settings and "beam" not in settings:
        settings["beam"] = settings["nbest"]
    work = TranslationSession(runs_dir, device, checkpoint, json, settings=settings, target_language=to or "")
    if text is not None and input_ is not None:
        raise InputError(Message("--text and --input cannot be used together; leave one out"))
    reading = make_reading(encoding)
    batches = None if input_ is None else _file(input_, reading)
    work.use_run(run)
    if text is not None:
        work.answer(text)
    elif batches is not None or not is_terminal(sys.stdin):
        for some in batches or _line_batches(sys.stdin.buffer, tr("standard input"), reading):
            work.print_translations(some)
    else:
        print_info(
            tr("{title}: type a sentence, /examples for ideas, /help for commands, /quit to leave", title=work.title)
        )
        actions = {
            "to": work.set_target,
            "align": work.align,
            "examples": work.examples,
            "run": work.use_run,
            "checkpoint": work.use_checkpoint,
        }
        run_prompt(work.settings, work.answer, actions, TRANSLATING)


def _file(path: Path, reading: Reading) -> Iterator[list[str]]:
    """Return the lines of a file, in batches; raises at once if it cannot be read."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(Message("--input {path}: cannot be read: {why}", path=path, why=reason(error))) from None
    return _line_batches(file, f"--input {path}", reading)


def _line_batches(stream: IO[bytes], where: str, reading: Reading) -> Iterator[list[str]]:
    """Lines of a file or pipe, in batches as they arrive: a writer that waits for each answer gets it."""
    blocks = iter(lambda: stream.read1(1 << 16), b"")  # type: ignore[attr-defined]
    for lines in cut_batches(decode(blocks, PurePath(where), reading), where, LONGEST):
        for start in range(0, len(lines), AT_ONCE):
            yield [line.removesuffix("\r") for line in lines[start : start + AT_ONCE]]
