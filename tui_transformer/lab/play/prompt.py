"""The prompt: text for the model, or a /command that changes settings.

One table of commands drives the line prompt of `sample` and the Playground's. A command that makes no sense in one of
the two says why.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from engine.errors import InputError, nearest

Settings = dict[str, float | int]


class Setting(NamedTuple):
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


# Settings of a translation.
SEARCH: dict[str, Setting] = {
    "beam": Setting(int, 1, 100, "hypotheses that are followed; 1 takes the likeliest token each time"),
    "nbest": Setting(int, 1, 100, "translations that are shown, at most as many as the beam"),
    "alpha": Setting(float, 0.0, 10.0, "0 favours short translations, more longer ones"),
}


def checked(name: str, value: float | int | str, settings: Mapping[str, Setting] = SETTINGS) -> float | int:
    setting = settings[name]
    right = (
        f"must be {'a whole number' if setting.kind is int else 'a number'} from {setting.low:g} to {setting.high:g}"
    )
    try:
        number = setting.kind(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} {str(value)[:40]!r}: {right}") from None
    if not setting.low <= number <= setting.high:
        raise InputError(f"{name} {number}: {right}")
    return number  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Command:
    argument: str  # what follows the name in the help
    what: str
    why_not: Mapping[str, str] = field(default_factory=dict)  # place → why it does not apply there


Place = Literal["line", "pane"]
COMMANDS: dict[str, Command] = {
    **{name: Command("", setting.help) for name, setting in SETTINGS.items()},
    "again": Command("", "the last prompt with the next seed"),
    "alternatives": Command("[N]", "the N most surprising tokens of the last answer, and what was likelier there"),
    "surprise": Command("TEXT", "how surprised the model is by each character of a text"),
    "examples": Command(
        "",
        "held-out questions, or documents with gaps, and what becomes of them; of runs that were trained on such",
        {"pane": "a run's examples stand in Train, under samples"},
    ),
    "attention": Command(
        "LAYER HEAD [self|cross|encoder]",
        "where a head looks",
        {"line": "where a head looks is a picture: the Playground of `tui-transformer` draws it, key 4"},
    ),
    "run": Command("RUN", "take another run"),
    "vs": Command("[RUN]", "a second run beside it, same prompt and seed; without a name only one again"),
    "checkpoint": Command("best|last|STEP", "which checkpoint of the runs"),
    "copy": Command(
        "", "the last answer into the clipboard", {"line": "what stands on a terminal is copied with its own mouse"}
    ),
    "history": Command("", "the prompts so far"),
    "help": Command("", "this list"),
    "quit": Command("", "leave", {"pane": "escape leaves the line, ctrl+q the studio"}),
}
OTHER_NAMES = {"exit": "quit", "?": "help"}


@dataclass(frozen=True)
class Table:
    settings: Mapping[str, Setting]
    commands: Mapping[str, Command]  # everything with a slash, settings too
    words: tuple[str, ...]  # commands that need no slash
    first: str  # how any other line is treated


WRITING = Table(SETTINGS, COMMANDS, ("quit", "exit"), "any other line is continued by the model")
ASKING = replace(
    WRITING, words=("examples", "quit", "exit"), first="any other line is a question, or a document with ___ for gaps"
)
TRANSLATING = Table(
    SEARCH,
    {
        **{name: Command("", setting.help) for name, setting in SEARCH.items()},
        "examples": Command("", "sentences to try"),
        "align": Command("", "where the model looked in the source while it wrote the last translation"),
        **{name: COMMANDS[name] for name in ("run", "checkpoint", "history", "help", "quit")},
    },
    ("examples", "quit", "exit"),
    "any other line is translated",
)


@dataclass
class Prompt:
    settings: Settings
    answer: Callable[[str], None]  # answers a text, shown as it comes
    actions: Mapping[str, Callable[[str], None]] = field(default_factory=dict)  # commands; each takes its argument
    table: Table = WRITING
    place: Place = "line"
    remark: Callable[[str], None] = print  # shows what else it did
    say: Callable[[str], None] = print  # shows an answer of the prompt itself
    complain: Callable[[str], None] = print  # shows a mistake
    done: bool = field(default=False, init=False)
    history: list[str] = field(default_factory=list, init=False)

    def take(self, line: str) -> None:
        """Handle a line: a command or a text. Mistakes are shown, never raised."""
        try:
            if line.startswith("/"):
                self._command(line[1:])
            elif self.place == "line" and line.strip() in self.table.words:
                self._command(line.strip())
            elif line:
                self.history.append(line)
                self.answer(line)
        except InputError as error:
            self.complain(str(error))

    def _command(self, line: str) -> None:
        written, _, rest = line.strip(" ").partition(" ")
        name = written.replace("-", "_")
        name = OTHER_NAMES.get(name, name)
        commands = self.table.commands
        if name not in commands:
            known = [f"/{command}" for command in (*commands, *OTHER_NAMES)]
            raise InputError(f"no command is called /{name[:40]}{nearest('/' + name, known) or '; /help shows them'}")
        why_not = commands[name].why_not.get(self.place)
        if why_not is not None:
            raise InputError(f"/{name}: {why_not}")
        if name in self.table.settings:
            if value := rest.strip():
                self.settings[name] = checked(name, value, self.table.settings)
            self.say(f"{name} {self.settings[name]:g}" if name != "seed" else f"seed {self.settings[name]}")
        elif name in self.actions:
            self.actions[name](rest)
        elif name == "quit":
            self.done = True
        elif name == "help":
            self.say(help_text(self.settings, self.place, self.table))
        elif name == "history":
            self.say("\n".join(self.history) or "nothing has been asked yet")
        elif name == "again":
            if not self.history:
                raise InputError("/again: nothing has been asked yet")
            self.settings["seed"] = int(self.settings["seed"]) + 1
            self.remark(f"the same prompt with seed {self.settings['seed']}")
            self.answer(self.history[-1])
        else:
            raise InputError("this cannot be done here")


def help_text(settings: Settings, place: Place = "line", table: Table = WRITING) -> str:
    """List the commands that apply in a place, settings with their values, then the others with the reason."""
    rows, missing = [], []
    for name, command in table.commands.items():
        left = f"/{name} {settings[name]}" if name in table.settings else f"/{name} {command.argument}".rstrip()
        if place in command.why_not:
            missing.append((f"/{name}", f"not here: {command.why_not[place]}"))
        else:
            rows.append((left, command.what + ("; /exit and ctrl-d do too" if name == "quit" else "")))
    width = max(len(left) for left, _ in rows)
    return "\n".join([table.first, *(f"{a.ljust(width)}  {b}" for a, b in (*rows, *missing))])
