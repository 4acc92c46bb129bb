"""A modal question: text and answers, each with a key; escape is always "no", and the frame says so."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.suggester import Suggester
from textual.validation import Function
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from engine.clean import clean, clean_line
from engine.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True)
class Answer(Generic[T]):
    value: T  # what the dialog returns
    label: str
    why_not: str = ""  # why it cannot be chosen here


class Ask(ModalScreen[T | None], Generic[T]):
    """A list of answers, with `at` or the first valid one highlighted; returns the chosen value, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "back")]

    def __init__(self, title: str, answers: "list[Answer[T]]", text: str = "", at: T | None = None) -> None:
        super().__init__()
        self._title, self._answers, self._text, self._at = title, answers, text, at

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_subtitle = "enter: choose · esc: cancel"
            yield Static(Text(clean_line(self._title), style="bold"), classes="dialog-title")
            if self._text:
                yield Static(Text(clean(self._text)), classes="dialog-text")
            yield OptionList(*map(_option, self._answers))

    def on_mount(self) -> None:
        self._highlight()

    def show(self, answers: "list[Answer[T]]") -> None:
        """Offer different answers; keep the highlighted one if it is among them."""
        if answers == self._answers or not self.is_mounted:
            return
        names = self.query_one(OptionList)
        if names.highlighted is not None:
            self._at = self._answers[names.highlighted].value
        self._answers = answers
        names.set_options(map(_option, answers))
        self._highlight()

    def _highlight(self) -> None:
        allowed = [i for i, answer in enumerate(self._answers) if not answer.why_not]
        wanted = [i for i in allowed if self._answers[i].value == self._at and self._at is not None]
        self.query_one(OptionList).highlighted = next(iter(wanted or allowed), None)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._answers[event.option_index].value)


def _option(answer: "Answer[T]") -> Option:
    words = clean_line(answer.label)
    # Padding, so that it wraps indented.
    label: RenderableType = Padding(Text(words.lstrip()), (0, 0, 0, len(words) - len(words.lstrip())))
    if answer.why_not:
        label = Group(label, Padding(Text(clean_line(answer.why_not), style="italic"), (0, 0, 0, 2)))
    return Option(label, disabled=bool(answer.why_not))


class AskText(ModalScreen[str | None]):
    """A line to fill in; returns the text, or None.

    `wrong` says what is wrong with a text, "" if nothing is, at enter and at each key; `hopeless` is asked at each key
    instead where there is one: what is wrong that typing on cannot mend.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "back")]

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
        self._wrong, self._hopeless = wrong, hopeless or wrong
        self._suggester = suggester

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_subtitle = "enter: OK · esc: cancel"
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
        wrong = self._wrong(event.value)
        if wrong:
            self.query_one(".dialog-wrong", Static).update(Text(clean_line(wrong)))
        else:
            self.dismiss(event.value)


def complaint(check: Callable[[], object]) -> str:
    """Return what is wrong: what a check raises, or the text that it returns."""
    try:
        said = check()
    except (InputError, OSError) as error:
        return str(error)
    return said if isinstance(said, str) else ""


async def may_replace(app: App[Any], file: Path, question: str) -> bool:
    """Whether a file may be written: it is new, or the user agrees to replace it."""
    if not file.exists():
        return True
    answer = await app.push_screen_wait(Ask(question, [Answer(False, "Keep"), Answer(True, "Overwrite")]))
    return answer is True


class Read(ModalScreen[None]):
    """Texts to read, in a modal screen; escape, enter or q closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "dismiss", "back")]

    def __init__(self, title: str, *texts: Text | Static) -> None:
        super().__init__()
        self._title, self._texts = title, texts

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide") as dialog:
            dialog.border_subtitle = "↑ ↓: scroll · esc: close"
            yield Static(Text(clean_line(self._title), style="bold"), classes="dialog-title")
            with VerticalScroll():
                yield from (Static(text) if isinstance(text, Text) else text for text in self._texts)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()  # arrows scroll
