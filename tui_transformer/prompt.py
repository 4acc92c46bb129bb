"""The line-based prompt: text to continue, or a /command that changes how. One table of commands drives it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from platformdirs import user_state_path

from engine.errors import InputError, nearest
from tui_transformer.output import complain, is_terminal

Settings = dict[str, float | int]
HISTORY_LINES = 1000


@dataclass(frozen=True)
class Setting:
    """A number that the prompt can change."""

    kind: type
    low: float
    high: float
    help: str


SETTINGS: dict[str, Setting] = {
    "temperature": Setting(float, 0.0, 100.0, "0 takes the likeliest token, 1 draws as the model believes"),
    "top_k": Setting(int, 0, 10_000_000, "only the k likeliest tokens; 0 for all"),
    "top_p": Setting(float, 1e-6, 1.0, "only the likeliest tokens up to this probability together"),
    "seed": Setting(int, 0, 2**63 - 1, "equal seeds give equal answers"),
    "length": Setting(int, 1, 10_000_000, "tokens an answer"),
}


def checked(name: str, value: float | int | str) -> float | int:
    """A setting's value within its bounds.

    Raises:
        InputError: not a number, or out of bounds.
    """
    setting = SETTINGS[name]
    right = (
        f"must be {'a whole number' if setting.kind is int else 'a number'} from {setting.low:g} to {setting.high:g}"
    )
    try:
        number = setting.kind(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} {str(value)[:40]!r}: {right}") from None
    if not setting.low <= number <= setting.high:
        raise InputError(f"{name} {number}: {right}")
    checked_number: float | int = number
    return checked_number


@dataclass
class Prompt:
    """The state of one session at the prompt.

    Args:
        settings: current values, see `SETTINGS`.
        answer: continues a text and writes it as it comes.
    """

    settings: Settings
    answer: Callable[[str], None]
    done: bool = field(default=False, init=False)

    def take(self, line: str) -> None:
        """One line from the person: a command or a text. A mistake is said, never raised."""
        try:
            if line.startswith("/"):
                self._command(line[1:].strip())
            elif line.strip() in ("quit", "exit"):
                self.done = True
            elif line:
                self.answer(line)
        except InputError as error:
            complain(str(error))

    def _command(self, line: str) -> None:
        name, _, argument = line.partition(" ")
        name, argument = name.replace("-", "_"), argument.strip()
        if name in ("quit", "exit"):
            self.done = True
        elif name in ("help", "?"):
            print(help_text(self.settings))
        elif name in SETTINGS:
            if argument:
                self.settings[name] = checked(name, argument)
            print(f"{name} {self.settings[name]:g}" if name != "seed" else f"seed {self.settings[name]}")
        else:
            known = [f"/{command}" for command in (*SETTINGS, "help", "quit", "exit")]
            raise InputError(f"no command is called /{name[:40]}{nearest('/' + name, known) or '; /help shows them'}")


def help_text(settings: Settings) -> str:
    """The commands with their current values."""
    rows = [(f"/{name} {settings[name]}", setting.help) for name, setting in SETTINGS.items()]
    rows += [("/help", "this list"), ("/quit, /exit", "leave; ctrl-d does too")]
    width = max(len(left) for left, _ in rows)
    return "\n".join(["any other line is continued by the model", *(f"{a.ljust(width)}  {b}" for a, b in rows)])


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
