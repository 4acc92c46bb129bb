"""The line prompt of `sample` and `translate`: passes lines from a terminal or pipe to a `CommandPrompt`."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from platformdirs import user_state_path
from rich.text import Text

from engine.base.errors import InputError, join_and
from engine.base.language import tr
from engine.runs.reader import RunReader
from tui_transformer.cli.output import (
    has_colour,
    is_terminal,
    print_badges,
    print_columns,
    print_error,
    print_info,
    show_progress,
    stdout,
)
from tui_transformer.lab.play.prompt import CommandPrompt, CommandTable, Settings
from tui_transformer.lab.play.writers import ModelWriter
from tui_transformer.lab.play.written import probability_level

HISTORY_LINES = 1000
STYLES = ("", "green", "yellow", "red underline", "bold red underline")  # by level, on a terminal


@dataclass
class Session(ABC):
    """The models that answer at a prompt, all at the same checkpoint: best, last, or a step."""

    runs_dir: Path
    device: str
    checkpoint: str
    as_json: bool  # one object per answer
    writers: list[ModelWriter] = field(default_factory=list)

    @abstractmethod
    def writer_of(self, reader: RunReader) -> ModelWriter:
        """Load a run's model. Raises InputError if it is of another kind or cannot be loaded."""

    @property
    def title(self) -> str:
        return join_and(tr("{name} at step {step:,}", name=writer.name, step=writer.step) for writer in self.writers)

    def load(self, run: str) -> ModelWriter:
        reader = RunReader.resolve(run.strip(), self.runs_dir)
        print_badges(reader)
        with show_progress(tr("loading the model")):
            return self.writer_of(reader)

    def set_target(self, language: str) -> None:
        """Translate to this language from now on."""
        for writer in self.writers:
            writer.set_target(language)

    def use_checkpoint(self, which: str) -> None:
        before, self.checkpoint = self.checkpoint, which.strip()
        try:
            self.writers = [self.load(writer.name) for writer in self.writers]
        except InputError:
            self.checkpoint = before
            raise
        print_info(self.title)


def run_prompt(
    settings: Settings, answer: Callable[[str], None], actions: Mapping[str, Callable[[str], None]], table: CommandTable
) -> None:
    """Answer lines from the terminal or a pipe until one of them quits or the input ends."""

    def help(_: str) -> None:
        print_columns([(table.other_lines,)])
        print_columns(prompt.help_rows)

    prompt = CommandPrompt(
        settings, answer, {**actions, "help": help}, table, remark=print_info, show_error=print_error
    )
    with _line_editing(prompt.completions):
        while not prompt.done:
            try:
                line = input("> " if is_terminal(sys.stdin) else "")
            except EOFError:
                if is_terminal(sys.stdin):
                    print()
                break
            except KeyboardInterrupt:
                print()
                continue
            try:
                prompt.handle_line(line)
            except KeyboardInterrupt:  # stops the answer, not the prompt
                print()


def print_token(text: str, probability: float | None) -> None:
    """Write a token's text, which must be clean, at once; in colour by its probability where there is colour."""
    if has_colour():
        stdout().print(Text(text, STYLES[probability_level(probability)]), end="", soft_wrap=True)
    else:
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def _line_editing(completions: Callable[[str], list[str]]) -> Iterator[None]:
    """Arrow keys, a history kept across sessions, and tab for a command's name, where readline is available."""
    try:
        import readline
    except ImportError:
        yield
        return
    readline.set_completer_delims("")  # a slash belongs to the name
    readline.set_completer(lambda line, at: next(islice(completions(line), at, None), None))
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    path = user_state_path("tui-transformer") / "history"
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        readline.read_history_file(path)
    try:
        yield
    finally:
        with suppress(OSError):
            readline.set_history_length(HISTORY_LINES)
            readline.write_history_file(path)
