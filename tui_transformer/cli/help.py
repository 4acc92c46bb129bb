"""The text of `--help` in the language in use, wrapped by columns of the terminal, and a command's examples."""

import re
from collections.abc import Mapping, Sequence

from engine.base.command_line import PROGRAM
from engine.base.language import Message, tr
from tui_transformer.cli.output import pad_to_width, width_of, wrap_text
from tui_transformer.cli.typer_private import HelpFormatter, use_formatter, use_translation

# What typer says by itself, translated when it is shown.
TYPERS = (
    Message("Usage: "),
    Message("Arguments"),
    Message("Options"),
    Message("Commands"),
    Message("default: {default}"),
    Message("env var: {var}"),
    Message("required"),
    Message("Show this message and exit."),
    Message("Install completion for the current shell."),
    Message("Show completion for the current shell, to copy it or customize the installation."),
    Message("Install completion for the specified shell."),
    Message("Show completion for the specified shell, to copy it or customize the installation."),
)
use_translation(tr)
WIDEST = 30  # columns of an option that has its help beside it
_CLAUSE = re.compile(r"(.+?)([.;:](?=\s|$)|[。；：])", re.DOTALL)


def first_clause(words: str) -> str:
    """Return a command's help for a list of commands: its first clause."""
    found = _CLAUSE.match(words)
    return words if found is None else found[1] + ("." if found[2] in ".;:" else "。")


class Formatter(HelpFormatter):
    """Measures in columns of the terminal: a Chinese character takes two."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        usage = tr("Usage: ") if prefix is None else prefix
        head = f"{usage}{prog} "
        first, *more = wrap_text(args, max(20, self.width - width_of(head)))
        self.write("\n".join([f"{head}{first}", *(" " * width_of(head) + line for line in more)]) + "\n")

    def write_heading(self, heading: str) -> None:
        self.write(" " * self.current_indent + tr("{heading}:", heading=heading) + "\n")

    def write_text(self, text: str) -> None:
        """Wrap each paragraph; one that begins with a `\\b` line stays as it is."""
        indent, shown = " " * self.current_indent, []
        for part in re.split(r"\n\s*\n", text.strip("\n")):
            whole, _, raw = part.partition("\b\n")
            lines = raw.split("\n") if raw and not whole else wrap_text(part, self.width - self.current_indent)
            shown.append("\n".join(f"{indent}{line}".rstrip() for line in lines))
        self.write("\n\n".join(shown) + "\n")

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = WIDEST, col_spacing: int = 2) -> None:
        indent = " " * self.current_indent
        column = min(max(width_of(first) for first, _ in rows), col_max) + col_spacing
        for first, second in rows:
            lines = wrap_text(tr(second), max(self.width - column - self.current_indent, 10))
            if width_of(first) + col_spacing > column:
                self.write(f"{indent}{first}\n")
                first = ""
            self.write(f"{indent}{pad_to_width(first, column)}{lines[0]}".rstrip() + "\n")
            for line in lines[1:]:
                self.write(f"{indent}{' ' * column}{line}\n")


use_formatter(Formatter)


def epilog(examples: Mapping[str, str]) -> str | None:
    """Return the text below a command's options: its examples, as they are typed."""
    lines = [words for line, what in examples.items() for words in (f"  # {tr(what)}", f"  {PROGRAM} {line}")]
    return "\n".join(["\b", tr("Examples:"), *lines]) if lines else None
