"""A modal question: text and answers, each with a key; escape is always "no", and the frame says so."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import Key
from textual.screen import ModalScreen
from textual.suggester import Suggester
from textual.validation import Function
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from engine.base.clean import clean, clean_line
from engine.base.errors import InputError
from engine.base.language import Message, tr
from tui_transformer.studio.shared.search import match_rank

T = TypeVar("T")
U = TypeVar("U")
FEW = 8  # answers that are seen at a glance


@dataclass(frozen=True)
class Answer(Generic[T]):
    value: T  # what the dialog returns
    label: str
    why_not: str = ""  # why it cannot be chosen here
    description: str = ""  # what it is, beside the label


class ChoiceDialog(ModalScreen[T | None], Generic[T]):
    """A list of answers, with `at` or the first valid one highlighted; returns the chosen value, or None.

    Typing filters a list of more than a few.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", Message("back"))]

    def __init__(self, title: str, answers: "list[Answer[T]]", text: str = "", at: T | None = None) -> None:
        super().__init__()
        self._title, self._answers, self._text, self._preferred = title, answers, text, at
        self._filter, self._shown = Filter(len(answers)), answers

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_subtitle = tr("enter: choose · esc: cancel")
            yield Static(Text(clean_line(self._title), style="bold"), classes="dialog-title")
            if self._text:
                yield Static(Text(clean(self._text)), classes="dialog-text")
            yield Static("", classes="dialog-filter")
            yield OptionList(*self._options)  # now, so that it has its height from the start

    def on_mount(self) -> None:
        self._fill()

    @property
    def _options(self) -> list[Option]:
        width = max((cell_len(answer.label) for answer in self._answers if answer.description), default=0)
        return [_option(answer, width) for answer in self._shown]

    def on_key(self, event: Key) -> None:
        if self._filter.handle_key(event):
            self._fill()

    def _fill(self) -> None:
        self.query_one(".dialog-filter", Static).update(self._filter.line)
        texts = lambda answer: (answer.label, answer.description + answer.why_not)
        self._shown = self._filter.matching(self._answers, texts)
        self.query_one(OptionList).set_options(self._options)
        self._highlight_preferred_or_first()

    def show(self, answers: "list[Answer[T]]") -> None:
        """Offer different answers; keep the highlighted one if it is among them."""
        if answers == self._answers or not self.is_mounted:
            return
        names = self.query_one(OptionList)
        if names.highlighted is not None:
            self._preferred = self._shown[names.highlighted].value
        self._answers = answers
        self._fill()

    def _highlight_preferred_or_first(self) -> None:
        allowed = [i for i, answer in enumerate(self._shown) if not answer.why_not]
        wanted = [i for i in allowed if self._shown[i].value == self._preferred and self._preferred is not None]
        wanted = [] if self._filter.query else wanted
        self.query_one(OptionList).highlighted = next(iter(wanted or allowed), None)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._shown[event.option_index].value)


class Filter:
    """The text typed to filter a list; a short list has no filter."""

    def __init__(self, size: int) -> None:
        self.query, self._offered = "", size > FEW

    def handle_key(self, event: Key) -> bool:
        """Take a key if it is part of a search."""
        typed = event.character if event.is_printable else None
        if not self._offered or (event.key != "backspace" and (typed is None or (typed == " " and not self.query))):
            return False
        self.query = self.query[:-1] if event.key == "backspace" else self.query + (typed or "")
        event.stop()
        return True

    @property
    def line(self) -> Text:
        found = Text.assemble("/ ", self.query, ("▏", "blink")) if self.query else Text(tr("/ type to filter"), "dim")
        return found if self._offered else Text()

    def matching(self, things: "list[U]", words: "Callable[[U], tuple[str, str]]") -> "list[U]":
        """The things whose name or description matches, best first."""
        wanted = self.query.lower().split()
        found = [(words(one), one) for one in things]
        found = [(said, one) for said, one in found if all(word in " ".join(said).lower() for word in wanted)]
        return [one for _, one in sorted(found, key=lambda pair: match_rank(pair[0][0], self.query))]


def _option(answer: "Answer[T]", width: int) -> Option:
    """An answer's line: with `width`, the columns of a label beside what it is."""
    words = clean_line(answer.label)
    if answer.description and not answer.why_not:
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=width, no_wrap=True)
        line.add_column()
        line.add_row(Text(words), Text(clean_line(answer.description)))
        return Option(line)
    # Padding, so that it wraps indented.
    label: RenderableType = Padding(Text(words.lstrip()), (0, 0, 0, len(words) - len(words.lstrip())))
    if answer.why_not:
        label = Group(label, Padding(Text(clean_line(answer.why_not), style="italic"), (0, 0, 0, 2)))
    return Option(label, disabled=bool(answer.why_not))


class TextDialog(ModalScreen[str | None]):
    """A line to fill in; returns the text, or None.

    `wrong` says what is wrong with a text, "" if nothing is, at enter and at each key; `hopeless` is asked at each key
    instead where there is one: what is wrong that typing on cannot mend.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", Message("back"))]

    def __init__(
        self,
        title: str,
        value: str = "",
        *,
        text: str = "",
        wrong: Callable[[str], str] = lambda value: "",
        hopeless: Callable[[str], str] | None = None,
        suggester: Suggester | None = None,
        placeholder: str = "",
    ) -> None:
        super().__init__()
        self._title, self._value, self._text, self._placeholder = title, value, text, placeholder
        self._find_problem, self._hopeless = wrong, hopeless or wrong
        self._suggester = suggester

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_subtitle = tr("enter: OK · esc: cancel")
            yield Static(Text(clean_line(self._title), style="bold"), classes="dialog-title")
            if self._text:
                yield Static(Text(clean(self._text)), classes="dialog-text")
            yield Input(
                clean_line(self._value),
                placeholder=self._placeholder,
                suggester=self._suggester,
                validators=[Function(lambda value: not self._hopeless(value))],
                validate_on=["changed"],
            )
            yield Static("", classes="dialog-wrong")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        wrong = self._hopeless(event.value) if event.value else ""
        self.query_one(".dialog-wrong", Static).update(Text(clean_line(wrong)))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        wrong = self._find_problem(event.value)
        if wrong:
            self.query_one(".dialog-wrong", Static).update(Text(clean_line(wrong)))
        else:
            self.dismiss(event.value)


def error_text(check: Callable[[], object]) -> str:
    """Return what is wrong: what a check raises, or the text that it returns."""
    try:
        said = check()
    except (InputError, OSError) as error:
        return str(error)
    return said if isinstance(said, str) else ""


async def confirm_overwrite(app: App[Any], file: Path, question: str) -> bool:
    """Whether a file may be written: it is new, or the user agrees to replace it."""
    if not file.exists():
        return True
    answers = [Answer(False, tr("Keep it")), Answer(True, tr("Overwrite"))]
    return await app.push_screen_wait(ChoiceDialog(question, answers)) is True


class TextScreen(ModalScreen[None]):
    """Texts to read, in a modal screen; escape, enter or q closes it."""

    AUTO_FOCUS = "VerticalScroll"  # arrows scroll
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "dismiss", Message("back"))]

    def __init__(self, title: str, *texts: Text | Static) -> None:
        super().__init__()
        self._title, self._texts = title, texts

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide") as dialog:
            dialog.border_subtitle = tr("↑ ↓: scroll · esc: close")
            yield Static(Text(clean_line(self._title), style="bold"), classes="dialog-title")
            with VerticalScroll():
                yield from (Static(text) if isinstance(text, Text) else text for text in self._texts)

    def on_screen_suspend(self) -> None:
        for scroll in self.query(VerticalScroll):  # none if it was closed at once
            scroll.scroll_home(animate=False)
