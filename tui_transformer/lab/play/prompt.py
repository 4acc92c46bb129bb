"""The prompt: text for the model, or a /command that changes settings.

One table of commands, `commands.toml`, drives the line prompt of `sample` and the Playground's. A command that does not
apply in one of the two says why.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from rich.cells import cell_len

from engine.base.errors import InputError, did_you_mean
from engine.base.language import Message, tr
from tui_transformer.lab.formatting import fit_to_width

Settings = dict[str, float | int]
Place = Literal["line", "pane"]


@dataclass(frozen=True)
class PromptCommand:
    what: str
    argument: str = ""  # what follows the name in the help
    why_not: Mapping[str, str] = field(default_factory=dict)  # place → why it does not apply there


@dataclass(frozen=True, kw_only=True)
class PromptSetting(PromptCommand):
    low: float | int
    high: float | int

    @property
    def kind(self) -> type[float | int]:
        return type(self.low)


@dataclass(frozen=True)
class CommandTable:
    commands: Mapping[str, PromptCommand]  # everything with a slash
    bare_commands: tuple[str, ...]  # commands that need no slash
    other_lines: str  # how any other line is treated

    @property
    def settings(self) -> dict[str, PromptSetting]:
        return {name: found for name, found in self.commands.items() if isinstance(found, PromptSetting)}


def _load_commands(group: str) -> dict[str, PromptCommand]:
    return {
        name: PromptSetting(**one) if "low" in one else PromptCommand(**one)
        for name, one in map(_translated, _TABLES[group].items())
    }


def _translated(row: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    name, one = row
    texts = {key: tr(one[key]) for key in ("what", "argument") if key in one}
    return name, one | texts | {"why_not": {place: tr(why) for place, why in one.get("why_not", {}).items()}}


_TABLES = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))
COMMANDS = _load_commands("text")
OTHER_NAMES = {"exit": "quit", "?": "help"}
WRITING = CommandTable(COMMANDS, ("quit", "exit"), tr("any other line is continued by the model"))
ASKING = replace(
    WRITING,
    bare_commands=("examples", "quit", "exit"),
    other_lines=tr("any other line is a question, or a document with ___ for gaps"),
)
SHARED = ("to", "run", "checkpoint", "history", "help", "quit")
TRANSLATING = CommandTable(
    _load_commands("translation") | {name: COMMANDS[name] for name in SHARED},
    ("examples", "quit", "exit"),
    tr("any other line is translated"),
)
SETTINGS, SEARCH = WRITING.settings, TRANSLATING.settings
PLAYING = replace(TRANSLATING, commands=SETTINGS | SEARCH | COMMANDS)  # the Playground's, for a model that translates


def parse_setting(name: str, value: float | int | str) -> float | int:
    setting = (SETTINGS | SEARCH)[name]
    right = (
        tr("must be a whole number from {low:g} to {high:g}", low=setting.low, high=setting.high)
        if setting.kind is int
        else tr("must be a number from {low:g} to {high:g}", low=setting.low, high=setting.high)
    )
    try:
        number = setting.kind(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} {str(value)[:40]!r}: {right}") from None
    if not setting.low <= number <= setting.high:
        raise InputError(f"{name} {number}: {right}")
    return number


@dataclass
class CommandPrompt:
    settings: Settings
    answer: Callable[[str], None]  # answers a text, shown as it comes
    actions: Mapping[str, Callable[[str], None]] = field(default_factory=dict)  # commands; each takes its argument
    table: CommandTable = WRITING
    place: Place = "line"
    remark: Callable[[str], None] = print  # shows what else it did
    show_reply: Callable[[str], None] = print  # shows an answer of the prompt itself
    show_error: Callable[[str], None] = print  # shows a mistake
    done: bool = field(default=False, init=False)
    history: list[str] = field(default_factory=list, init=False)
    _changed_settings: Settings = field(default_factory=dict, init=False)  # settings, by the last line, changed or not

    def handle_line(self, line: str) -> Settings:
        """Handle a line: a command or a text; return the settings that it set. Mistakes are shown, never raised."""
        self._changed_settings = {}
        try:
            if line.startswith("/"):
                self._run_command(line[1:])
            elif self.place == "line" and line.strip() in self.table.bare_commands:
                self._run_command(line.strip())
            elif line:
                self.history.append(line)
                self.answer(line)
        except InputError as error:
            self.show_error(str(error))
        return self._changed_settings

    def _change_setting(self, name: str, value: float | int) -> None:
        self.settings[name] = self._changed_settings[name] = value

    def _run_command(self, line: str) -> None:
        written, _, rest = line.strip(" ").partition(" ")
        name = written.replace("-", "_")
        name = OTHER_NAMES.get(name, name)
        command = self.table.commands.get(name)
        if command is None:
            known = [f"/{other}" for other in (*self.table.commands, *OTHER_NAMES)]
            raise InputError(
                Message(
                    "unknown command /{name}{nearest}",
                    name=name[:40],
                    nearest=did_you_mean("/" + name, known) or tr("; /help lists the commands"),
                )
            )
        if self.place in command.why_not:
            raise InputError(f"/{name}: {command.why_not[self.place]}")
        if isinstance(command, PromptSetting):
            if value := rest.strip():
                self._change_setting(name, parse_setting(name, value))
            now = self.settings[name]
            self.show_reply(f"{name} {now:g}" if name != "seed" else tr("seed {seed}", seed=now))
        elif name in self.actions:
            self.actions[name](rest)
        elif name == "quit":
            self.done = True
        elif name == "help":
            self.show_reply(self.help)
        elif name == "history":
            self.show_reply("\n".join(self.history) or tr("nothing has been asked yet"))
        elif name == "again":
            if not self.history:
                raise InputError(Message("/again: nothing has been asked yet"))
            self._change_setting("seed", int(self.settings["seed"]) + 1)
            self.remark(tr("the same prompt with seed {seed}", seed=self.settings["seed"]))
            self.answer(self.history[-1])
        else:
            raise InputError(Message("not available here"))

    def completions(self, line: str) -> list[str]:
        """Return the commands that the line may become, with a space before an argument."""
        if not line.startswith("/") or " " in line:
            return []
        begun = line[1:].replace("-", "_")
        return [
            f"/{name} " if isinstance(command, PromptSetting) or command.argument else f"/{name}"
            for name, command in self.table.commands.items()
            if name.startswith(begun) and self.place not in command.why_not
        ]

    @property
    def help_rows(self) -> list[tuple[str, str]]:
        """The commands that apply here, settings with their values, then the others with the reason."""
        rows, missing = [], []
        for name, command in self.table.commands.items():
            if self.place in command.why_not:
                missing.append((f"/{name}", tr("not available here: {why_not}", why_not=command.why_not[self.place])))
                continue
            value = self.settings[name] if isinstance(command, PromptSetting) else command.argument
            also = tr("; also /exit and ctrl-d") if name == "quit" else ""
            rows.append((f"/{name} {value}".rstrip(), command.what + also))
        return rows + missing

    @property
    def help(self) -> str:
        rows = self.help_rows
        width = max(cell_len(left) for left, _ in rows)
        return "\n".join([self.table.other_lines, *(f"{fit_to_width(a, width)}  {b}" for a, b in rows)])
