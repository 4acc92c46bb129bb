"""What the Design pane and the study builder ask and show over the screen. What is impossible says why."""

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from engine.clean import clean, clean_line
from engine.config import presets
from engine.config.keys import all_keys, unknown_key
from engine.errors import InputError
from tui_transformer.lab.design.draft import Draft, as_set, shown, values_of
from tui_transformer.lab.design.study_draft import NOT_OF_A_STUDY, Overlay, StudyDraft, as_seeds
from tui_transformer.lab.studies.study import Study
from tui_transformer.studio.design import own_files
from tui_transformer.studio.design.switches import Switch
from tui_transformer.studio.shared.dialog import Answer, Ask, AskText, Read
from tui_transformer.studio.shared.palette import Palette

CORPUS = "data.corpus"
FILE = "FILE"  # a corpus that is asked for by its path
FILES = {False: "a text file …", True: "sentence pairs of yours …"}
NUMBER_BEGUN = re.compile(r"[+-]?[\d_]*\.?\d*(e[+-]?\d*)?", re.IGNORECASE)


def _complaint(change: Callable[[], str | StudyDraft]) -> str:
    """Return what is wrong with a change: what it raises, or the problem that it gives back."""
    try:
        problem = change()
    except InputError as error:
        return str(error)
    return problem if isinstance(problem, str) else ""


def ask_to_overwrite(what: str, name: str) -> Ask[bool]:
    answers = [Answer(False, "Keep it"), Answer(True, "Write over it")]
    return Ask(f"You have a {what} {name} already.", answers)


@dataclass(frozen=True)
class Tick:
    """A line that can be ticked."""

    name: str
    what: str  # a few words
    ticked: bool = False  # at first
    why_not: str = ""  # why it cannot be ticked; "" if it can


class Ticks(ModalScreen[frozenset[int] | None]):
    """Lines to tick; enter gives back the places of those that are ticked, escape None."""

    DEFAULT_CSS = """
    Ticks #ticks { width: 100; max-width: 94%; height: 90%; padding: 1 2; background: $panel; border: round $primary; }
    Ticks #how { margin-bottom: 1; color: $foreground 80%; }
    Ticks OptionList { height: 1fr; border: none; padding: 0; background: $panel; scrollbar-size-vertical: 1;
        scrollbar-color: $foreground 30%; scrollbar-background: $panel; }
    Ticks OptionList:focus { border: none; background-tint: $foreground 0%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "back"),
        Binding("space", "tick", "tick"),
        Binding("enter", "take", "take", priority=True),
    ]

    def __init__(self, title: str, ticks: Sequence[Tick]) -> None:
        super().__init__()
        self._title, self._ticks = title, ticks
        self._ticked = {at for at, tick in enumerate(ticks) if tick.ticked}
        self._width = max((len(tick.name) for tick in ticks), default=0)

    def compose(self) -> ComposeResult:
        with Vertical(id="ticks"):
            yield Static(Text(clean_line(self._title), style="bold"))
            yield Static(Text("space ticks · enter takes them · escape leaves all as it was"), id="how")
            yield OptionList(*(Option(self._line(at)) for at in range(len(self._ticks))))  # all can be gone to and read

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = next((i for i, t in enumerate(self._ticks) if not t.why_not), None)

    def _line(self, at: int) -> RenderableType:
        tick = self._ticks[at]
        mark = "✗" if tick.why_not and not tick.ticked else "●" if at in self._ticked else "○"
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=self._width + 2, no_wrap=True)
        line.add_column()
        words = Text(clean_line(tick.why_not), "italic") if tick.why_not else Text(clean_line(tick.what))
        line.add_row(Text(f"{mark} ").append(clean_line(tick.name), "bold"), words)
        return line

    def action_tick(self) -> None:
        names = self.query_one(OptionList)
        at = names.highlighted
        if at is not None and not self._ticks[at].why_not:
            self._ticked ^= {at}
            names.replace_option_prompt_at_index(at, self._line(at))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_tick()

    def action_take(self) -> None:
        self.dismiss(frozenset(self._ticked))


class TomlPage(Read):
    """A design or a study as TOML; c copies it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("c", "copy", "copy")]

    def __init__(
        self, title: str, toml: str, palette: Palette, *, changed: Container[str] = (), above: Text | None = None
    ) -> None:
        """Show a TOML file: the `changed` dotted keys are marked, and the words `above` stand over it."""
        self._toml = toml
        text, section = above or Text(), ""
        for line in clean(toml).splitlines():
            if line.startswith("["):
                section = line.strip("[]") + "."
                text.append(line + "\n", f"bold {palette.primary}".strip())
                continue
            name, equals, value = line.partition(" = ")
            marked = f"{section}{name}" in changed
            text.append(name + equals, palette.dim if equals else "")
            text.append(value, f"bold {palette.accent}".strip() if marked else "")
            text.append("  ●\n" if marked else "\n", palette.accent if marked else "")
        super().__init__(f"{title}   c copies it, escape closes", text)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._toml)  # OSC 52
        self.app.notify("the TOML is in the clipboard, where the terminal allows it", markup=False)


# About a design


def which_value(draft: Draft, switch: Switch) -> Ask[dict[str, Any]]:
    """Ask for one of a switch's values, as changes; a refused one is followed by what would make it possible."""
    answers: list[Answer[dict[str, Any]]] = []
    choices = draft.choices(switch.key)
    if switch.key == CORPUS:  # of two kinds, of which one can be chosen
        choices.sort(key=lambda choice: bool(choice[1]))
    for value, reason in choices:
        answers.append(Answer({switch.key: value}, shown(value), reason))
        way = draft.way(switch.key, value) if reason else None
        if way is not None:
            others = ", ".join(f"{key} = {shown(other)}" for key, other in way.items() if key != switch.key)
            answers.append(Answer(way, f"  ↳ {shown(value)}, with {others}"))
    if switch.key == CORPUS:
        possible = sum(not reason for _, reason in choices)
        answers.insert(possible, Answer({FILE: FILE}, FILES[translates(draft)]))
    at = {switch.key: draft.values.get(switch.key)}
    return Ask(switch.label.strip(), answers, text=switch.key, at=at)


def translates(draft: Draft) -> bool:
    """Return whether its corpus is to be sentence pairs."""
    config = draft.config or draft.unchanged.config
    return config is not None and config.translates


def which_file(draft: Draft) -> AskText:
    config = draft.config or draft.unchanged.config
    if config is not None and config.on_documents:
        words = (
            "A text, each line a document, or a folder with documents.txt, train.tsv and validation.tsv (questions)."
        )
        return AskText("Documents", placeholder="path/to/documents.txt or a folder", text=words)
    if not translates(draft):
        return AskText("A text file, UTF-8", placeholder="path/to/text.txt")
    words = "A table, two files with a comma between them, or a folder with train.en, train.de and so on."
    return AskText("Sentence pairs", placeholder="pairs.tsv or text.en,text.de or a folder", text=words)


def which_number(draft: Draft, switch: Switch) -> AskText:
    """Ask for a number, as text that `switch.typed` takes."""

    def wrong(text: str) -> str:
        return _complaint(lambda: switch.typed(draft, text).problem) if text.strip() else "a number is needed"

    value = draft.values.get(switch.key)
    written = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

    def hopeless(text: str) -> str:
        return "" if NUMBER_BEGUN.fullmatch(text.strip()) else wrong(text)

    return AskText(f"{switch.label.strip()} ({switch.key})", written, wrong=wrong, hopeless=hopeless)


def which_setting(draft: Draft) -> AskText:
    """Ask for KEY=VALUE, as text that `draft.with_text` takes."""

    def wrong(text: str) -> str:
        return _complaint(lambda: draft.with_text(text).problem)

    def hopeless(text: str) -> str:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            return "" if any(name.startswith(key) for name in all_keys()) else unknown_key(key)
        if key not in all_keys():
            return wrong(text)
        few = values_of(key) if key != CORPUS else ()  # a corpus may be a path as well
        begun = not few or any(as_set(one).startswith(value.strip("\"'")) for one in few)
        return "" if begun else wrong(text)

    return AskText(
        "Set any key of the config",
        placeholder="KEY=VALUE",
        text="as --set does, e.g. model.rope_base=50000; → completes a key",
        wrong=wrong,
        hopeless=hopeless,
        suggester=SuggestFromList([f"{name}=" for name in all_keys()]),
    )


def which_base(draft: Draft) -> Ask[tuple[str | None]]:
    """Ask for what `draft.on_base` takes; None is the preset's own.

    Raises:
        InputError: the preset is a base itself.
    """
    links = presets.chain(draft.preset)
    if len(links) == 1:
        name = draft.preset.name
        raise InputError(f"{name} is a base, not a change to one: there is nothing to put on another base")
    answers: list[Answer[tuple[str | None]]] = []
    for base in presets.list_presets():
        if base.extends is None:
            own = base.name == links[0].name
            on = None if own else base.name
            answers.append(Answer((on,), base.name + ("  (its own)" if own else ""), draft.on_base(on).problem))
    return Ask(f"Put what {draft.preset.name} changes on which base?", answers, at=(draft.on,))


def design_page(draft: Draft, palette: Palette) -> TomlPage:
    """Return the complete config of a design; what was changed in the preset is marked."""
    return TomlPage(f"{draft.name}: the complete config", draft.toml(), palette, changed=draft.changes)


# About a study


def which_overlays(draft: StudyDraft, offered: Sequence[Overlay]) -> Ticks:
    ticks = [Tick(o.variant.name, o.description, draft.has(o.variant), o.why_not) for o in offered]
    return Ticks(f"Which changes to {draft.design.name}?", ticks)


def which_values(draft: StudyDraft) -> AskText:
    """Ask for `KEY=VALUE,VALUE`, as text that `draft.with_axes` takes."""
    return AskText(
        "Values of a setting, a variant each",
        placeholder="model.n_heads=1,2,4,8",
        text="KEY=VALUE,VALUE; several keys, with a space between, make a grid; → completes a key",
        wrong=lambda text: _complaint(lambda: draft.with_axes(text)).removeprefix("--vary ").removeprefix("--set "),
        suggester=SuggestFromList([f"{name}=" for name in all_keys() if name not in NOT_OF_A_STUDY]),
    )


def which_study(draft: StudyDraft) -> Ask[Study]:
    """Ask for a study whose variants replace those that are there."""
    answers: list[Answer[Study]] = []
    for study, name, where in own_files.offered_studies():
        if study is None:
            answers.append(Answer(None, name, where))  # type: ignore[arg-type]
            continue
        words = study.description or f"{len(study.variants)} variants of {study.base}"
        answer = f"{name}: {words}" + (f"  ({where})" if where else "")
        answers.append(Answer(study, answer, draft.with_study(study).problem))
    text = f"Its variants take the place of those that are there; {draft.design.name} stays the base."
    return Ask("Take whose variants?", answers, text=text)


def which_seeds(draft: StudyDraft) -> AskText:
    """Ask for seeds, as text that `draft.with_seeds` takes."""
    words = "3 is 1, 2 and 3; 1,5,9 are these. With one nothing can be concluded; 3 explore, 5 decide."
    wrong = lambda text: _complaint(lambda: draft.with_seeds(text)).removeprefix("--seeds ")
    return AskText("Seeds of every variant", as_seeds(draft.seeds), text=words, wrong=wrong)


def which_name(draft: StudyDraft) -> AskText:
    words = "Its runs are called NAME.VARIANT.sSEED."
    return AskText("Name of the study", draft.name, text=words, wrong=own_files.wrong_study_name)


def study_page(draft: StudyDraft, command: str, palette: Palette, *, unsaved: bool) -> TomlPage:
    """Return a study as a file, and the command that runs it; `unsaved` if the study has to be saved first."""
    above = Text().append("runs this study" + (", once s has saved it\n" if unsaved else "\n"), palette.dim)
    above.append(clean_line(command) + "\n\n", palette.calm)
    return TomlPage(f"{draft.name}: the whole study", draft.toml(), palette, above=above)
