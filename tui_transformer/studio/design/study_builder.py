"""The study builder: variants of the design, seeds, and the plan, over the Design pane."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import Worker

from engine.clean import clean_line
from engine.errors import InputError
from tui_transformer.lab.design import study_start
from tui_transformer.lab.design.cost import Characters
from tui_transformer.lab.design.fit import Fit
from tui_transformer.lab.design.study_command import command as study_command
from tui_transformer.lab.design.study_draft import Line, StudyDraft
from tui_transformer.lab.design.study_estimate import Estimate, estimated
from tui_transformer.lab.design.study_start import Place
from tui_transformer.lab.studies.study import Study, started_studies
from tui_transformer.studio import settings as user
from tui_transformer.studio.design import own_studies, study_words
from tui_transformer.studio.design.own_presets import own_presets
from tui_transformer.studio.design.study_page import StudyPage
from tui_transformer.studio.design.study_questions import (
    which_name,
    which_overlays,
    which_seeds,
    which_study,
    which_values,
)
from tui_transformer.studio.keys import STUDY, bindings
from tui_transformer.studio.shared.dialog import Answer, Ask
from tui_transformer.studio.shared.help import help_screen
from tui_transformer.studio.shared.palette import Palette

KEYS = "? all keys"
LEAST = 20  # columns to draw in
TICK = 1.0  # seconds between updates on a measurement


@dataclass(frozen=True)
class Known:
    """What is known of the design that a study is made of.

    Args:
        fit: what was measured of it.
        characters: of its corpus.
        options: what the studio was started with, as the command line says it.
        place: where and on what studies are run.
    """

    fit: Fit | None
    characters: Characters | None
    options: list[str]
    place: Place


@dataclass(frozen=True)
class Left:
    """How the builder was left: with this draft, which is to be launched or only kept."""

    draft: StudyDraft
    launch: bool = False


class StudyBuilder(ModalScreen[Left]):
    """One study in the making.

    Args:
        draft: to start from.
        known: of its design.
    """

    DEFAULT_CSS = """
    StudyBuilder #study { width: 100%; max-width: 150; height: 100%; max-height: 44; background: $panel;
        border: round $primary; padding: 0 1; }
    StudyBuilder #study-title { height: 1; }
    StudyBuilder #study-heading { height: 1; margin-top: 1; }
    StudyBuilder OptionList { height: 1fr; min-height: 4; border: none; padding: 0; background: $panel;
        scrollbar-size-vertical: 1; scrollbar-color: $foreground 30%;
        scrollbar-background: $panel; }
    StudyBuilder OptionList:focus { border: none; background-tint: $foreground 0%; }
    StudyBuilder #at-hand { height: auto; max-height: 4; color: $foreground 80%; margin-top: 1; }
    StudyBuilder #plan { height: auto; max-height: 9; margin-top: 1; }
    StudyBuilder #command { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    StudyBuilder OptionList > .option-list--option-disabled { color: $foreground 80%; }
    .narrow StudyBuilder #at-hand { margin-top: 0; }
    .narrow StudyBuilder #plan { max-height: 7; }
    """
    SCOPED_CSS = False  # `narrow` is a class of the app
    BINDINGS: ClassVar[list[BindingType]] = bindings(STUDY)

    def __init__(self, draft: StudyDraft, known: Known) -> None:
        super().__init__()
        self._draft, self._known = draft, known
        self._measured: dict[str, Estimate] = {}  # by the study as a file
        self._measuring = ""
        self._since = 0.0  # when it began
        self._tick: Timer | None = None
        self._failed: tuple[str, str] = ("", "")
        self._ids: list[str] = []
        self._started = started_names(known.place.runs_dir)

    def compose(self) -> ComposeResult:
        """Title, variants, the one at hand, the plan, keys."""
        with Vertical(id="study"):
            yield Static("", id="study-title")
            yield Static("", id="study-heading")
            yield OptionList(id="study-variants")
            yield Static("", id="at-hand")
            yield Static("", id="plan")
            yield Static("", id="command")
            yield Footer(compact=True, show_command_palette=False)
        yield Static("", id="too-small")  # the studio shows it where nothing fits

    def on_mount(self) -> None:
        """The list has the keys."""
        self.query_one(OptionList).focus()
        self._show(self._draft)

    def on_resize(self, event: Resize) -> None:
        """Other room, or too little."""
        words = f"A study does not fit into {event.size.width} × {event.size.height} characters."
        self.query_one("#too-small", Static).update(Text(words))
        self.call_after_refresh(self._redraw)

    # Showing it

    def _show(self, draft: StudyDraft) -> None:
        """Make a draft the one that is shown."""
        if self._measuring and draft.toml() != self._measuring:
            self._stop_measuring()
        self._draft = draft
        ids = [line.variant.name for line in draft.lines]
        if ids != self._ids:
            names, before = self.query_one(OptionList), self._at_hand
            at = names.highlighted or 0
            self._ids = ids
            invited = study_words.invitation(Palette.of(self.app.theme_variables)) if len(ids) == 1 else []
            names.set_options([*(Option("", id=name) for name in ids), *(Option(t, disabled=True) for t in invited)])
            names.highlighted = ids.index(before) if before in ids else min(at, len(ids) - 1)
        self._redraw()

    @property
    def _at_hand(self) -> str:
        option = self.query_one(OptionList).highlighted_option
        return (option.id or "") if option is not None else ""

    @property
    def _line(self) -> Line | None:
        return next((line for line in self._draft.lines if line.variant.name == self._at_hand), None)

    @property
    def _estimate(self) -> Estimate:
        found = self._measured.get(self._draft.toml()) if self._draft.study is not None else None
        return found or estimated(self._draft, self._known.fit, self._known.characters)

    def _redraw(self) -> None:
        draft, palette, names = self._draft, Palette.of(self.app.theme_variables), self.query_one(OptionList)
        width = names.scrollable_content_region.width
        if width < LEAST:
            return
        estimate = self._estimate
        changed = ", changed" if draft.design.changes else ""
        title = Text(clean_line(draft.name), "bold")
        title = Text.assemble(title, (clean_line(f"   a study of {draft.design.name}{changed}"), palette.dim))
        title.append(" " * (width - title.cell_len - len(KEYS))).append(KEYS, palette.dim)
        self.query_one("#study-title", Static).update(title)
        heading = study_words.heading(width, study_words.name_width(draft, width), palette)
        self.query_one("#study-heading", Static).update(heading)
        self._draw_lines(estimate, width, palette)
        self._describe()
        measuring = monotonic() - self._since if self._measuring else None
        failed = self._failed[1] if self._failed[0] == draft.toml() else ""
        started = draft.name in self._started
        plan = study_words.plan_words(
            draft, estimate, palette, width, measuring=measuring, failed=failed, started=started
        )
        self.query_one("#plan", Static).update(plan)
        command = study_words.command_words(draft, self._file, self._known.options, palette)
        self.query_one("#command", Static).update(command)

    def _draw_lines(self, estimate: Estimate, width: int, palette: Palette) -> None:
        names, draft = self.query_one(OptionList), self._draft
        for at, line in enumerate(draft.lines):
            colours = Palette() if at == names.highlighted else palette  # they would not be read on its background
            prompt = study_words.variant_line(line, draft, estimate, width, colours)
            names.replace_option_prompt_at_index(at, prompt)

    def _describe(self) -> None:
        words = study_words.at_hand(self._line, self._draft) if len(self._ids) > 1 else Text()
        self.query_one("#at-hand", Static).update(words)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """More on it."""
        event.stop()
        width = event.option_list.scrollable_content_region.width
        if width >= LEAST:
            self._draw_lines(self._estimate, width, Palette.of(self.app.theme_variables))
            self._describe()

    @property
    def _file(self) -> Path:
        return own_studies.file_of(self._draft.name)

    def _say(self, text: str, severity: Any = "information") -> None:
        self.app.notify(clean_line(text), severity=severity, markup=False)

    def _take(self, change: Callable[[], StudyDraft]) -> None:
        try:
            self._show(change())
        except InputError as error:
            self._say(str(error), "error")

    # Variants

    def action_presets(self) -> None:
        """Tick overlays."""
        draft = self._draft
        try:
            own = [found.preset for found in own_presets() if found.preset is not None]
            offered = draft.overlays(own)
        except InputError as error:
            self._say(str(error), "error")
            return

        def ticked(places: frozenset[int] | None) -> None:
            if places is not None:
                chosen = [overlay.variant for at, overlay in enumerate(offered) if at in places]
                self._show(draft.with_overlays(chosen, offered))

        self.app.push_screen(which_overlays(draft, offered), ticked)

    def action_values(self) -> None:
        """Values of a setting."""
        take = lambda text: self._take(lambda: self._draft.with_axes(text)) if text and text.strip() else None
        self.app.push_screen(which_values(self._draft), take)

    def action_take(self) -> None:
        """Another study's variants."""

        def taken(study: Study | None) -> None:
            if study is not None:
                self._show(self._named(self._draft.with_study(study)))

        self.app.push_screen(which_study(self._draft), taken)

    def _named(self, draft: StudyDraft) -> StudyDraft:
        """With a name that no other study in the runs folder has."""
        return replace(draft, name=free_study_name(draft.name, self._known.place.runs_dir))

    def action_remove(self) -> None:
        """Leave out the variant at hand."""
        if len(self._ids) > 1 and self._at_hand:
            self._show(self._draft.without(self._at_hand))

    def action_baseline(self) -> None:
        """Hold the others against the variant at hand."""
        line = self._line
        if line is None:
            return
        if line.config is None:
            self._say(f"{line.variant.name} cannot be trained: {line.why_not}", "error")
            return
        self._show(replace(self._draft, baseline=line.variant.name, said_as=()))

    # Seeds and name

    def action_seeds(self) -> None:
        """How many, or which."""
        take = lambda text: self._take(lambda: self._draft.with_seeds(text)) if text is not None else None
        self.app.push_screen(which_seeds(self._draft), take)

    def action_more_seeds(self, more: int) -> None:
        """One more or less."""
        self._show(self._draft.with_more_seeds(more))

    def action_rename(self) -> None:
        """Another name."""
        take = lambda name: self._show(replace(self._draft, name=name)) if name else None
        self.app.push_screen(which_name(self._draft), take)

    # The plan

    def action_measure(self) -> None:
        """Time a step of every variant in a separate process; pressed again, cancel it."""
        if self._measuring:
            self._stop_measuring()
            self._redraw()
            return
        study = self._study()
        if study is None or self._draft.toml() in self._measured:
            return
        self._measuring, self._failed, self._since = self._draft.toml(), ("", ""), monotonic()
        self._tick = self.set_interval(TICK, self._redraw)
        self.run_worker(self._measure(study), group="plan", exclusive=True)
        self._redraw()

    async def _measure(self, study: Study) -> None:
        asked = study.to_toml()
        try:
            self._measured[asked] = await study_start.plan(study, self._known.place)
        except InputError as error:
            self._failed = (asked, str(error))
        if self._measuring == asked:
            self._timed()
        if self.is_attached:
            self._redraw()

    def _stop_measuring(self) -> None:
        self.workers.cancel_group(self, "plan")
        self._timed()

    def _timed(self) -> None:
        self._measuring = ""
        if self._tick is not None:
            self._tick.stop()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Nothing above needs to hear of it."""
        event.stop()

    # What becomes of it

    def _study(self) -> Study | None:
        """The study, or a word on why there is none."""
        if self._draft.study is None:
            self._say(self._draft.problem, "error")
        return self._draft.study

    def action_launch(self) -> None:
        """Run it."""
        if self._study() is not None:
            self.dismiss(Left(self._draft, launch=True))

    def action_back(self) -> None:
        """To the design."""
        self.dismiss(Left(self._draft))

    def action_help(self) -> None:
        """The keys of the builder."""
        keys = getattr(getattr(self.app, "settings", None), "keys", {})
        self.app.push_screen(help_screen("study", keys, user.settings_file()))

    def action_copy(self) -> None:
        """The command line, into the clipboard."""
        if self._study() is None:
            return
        command, saved = study_command(self._draft, self._file, self._known.options)
        self.app.copy_to_clipboard(command)
        first = "; s saves the file that it names" if saved and not self._file.exists() else ""
        self._say(f"in the clipboard, where the terminal allows it: {command}{first}")

    def action_toml(self) -> None:
        """The whole study."""
        if self._study() is None:
            return
        command, saved = study_command(self._draft, self._file, self._known.options)
        palette = Palette.of(self.app.theme_variables)
        saved = saved and not self._file.exists()
        page = StudyPage(self._draft.name, self._draft.toml(), command, saved=saved, palette=palette)
        self.app.push_screen(page)

    def action_save(self) -> None:
        """Write it as a file of one's own; asks before it is written over another."""
        study = self._study()
        if study is None:
            return
        if self._file.exists():
            answers = [Answer(False, "Keep it"), Answer(True, "Write over it")]
            question: Ask[bool] = Ask(f"You have a study {study.name} already.", answers)
            self.app.push_screen(question, lambda yes: self._save(study) if yes else None)
        else:
            self._save(study)

    def _save(self, study: Study) -> None:
        try:
            path = own_studies.save(study)
        except InputError as error:
            self._say(str(error), "error")
            return
        self._say(f"saved {path}; c copies the command that runs it")
        self._redraw()


def free_study_name(wanted: str, runs_dir: Path) -> str:
    """`wanted`, or with a number where a study of that name was started already."""
    taken, count, name = started_names(runs_dir), 1, wanted
    while name in taken:
        count += 1
        name = f"{wanted}-{count}"
    return name


def started_names(runs_dir: Path) -> frozenset[str]:
    """The names of the studies that were started in a runs folder."""
    try:
        return frozenset(started_studies(runs_dir))
    except OSError:
        return frozenset()
