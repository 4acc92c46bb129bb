"""The line prompt of `sample` and `translate`: reads lines from the terminal or a pipe and gives them to a `Prompt`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from platformdirs import user_state_path

from tui_transformer.cli.output import is_terminal
from tui_transformer.lab.play.prompt import Prompt

HISTORY_LINES = 1000


def converse(prompt: Prompt, mark: str = "> ") -> None:
    """Ask until the person leaves. Lines come from a pipe just as well."""
    with _history():
        while not prompt.done:
            try:
                line = input(mark) if is_terminal(sys.stdin) else _piped()
            except EOFError:
                if is_terminal(sys.stdin):
                    print()
                break
            except KeyboardInterrupt:
                print()
                continue
            try:
                prompt.take(line)
            except KeyboardInterrupt:  # stops the answer, not the prompt
                print()


def _piped() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


@contextmanager
def _history() -> Iterator[None]:
    """Arrow keys and a history that outlives the session, where the system has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    path = user_state_path("tui-transformer") / "history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        readline.read_history_file(path)
    except OSError:
        pass
    try:
        yield
    finally:
        try:
            readline.set_history_length(HISTORY_LINES)
            readline.write_history_file(path)
        except OSError:
            pass
