"""The studio: panes over the runs folder. It keeps no run state of its own, and loads torch after startup.

`launches` acts on runs; the panes show them. The app ties the two together: it launches the Design pane's runs in a
worker thread, asks on exit what to do with a running one, and keeps it intact on a hang-up. Panes do not know the app:
they post messages.
"""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from rich.text import Text
from textual import work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.command import CommandPalette, Provider
from textual.containers import Horizontal, Vertical
from textual.events import Click, Event, InputEvent, Paste, Resize
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Static

from engine.base.clean import clean
from engine.base.errors import reason
from engine.base.language import Message, tr
from engine.runs.scan import RUN_FILE
from tui_transformer import settings as user
from tui_transformer.lab.analysis.colours import ON_DARK, ON_LIGHT
from tui_transformer.lab.formatting import fit_to_width
from tui_transformer.lab.wide_characters import break_between_characters, correct_svg_widths
from tui_transformer.lab.work.logs import is_terminal_gone
from tui_transformer.lab.work.run_actions import LaunchMode, RunActions
from tui_transformer.languages import settings_file
from tui_transformer.settings import KeptDesign
from tui_transformer.studio.shared.dialog import Answer, ChoiceDialog
from tui_transformer.studio.shared.engine_thread import IMPORT_LOCK
from tui_transformer.studio.shared.key_line import KeyLine
from tui_transformer.studio.shared.keys import COMMAND_KEYS, PANE_BINDINGS, SPARE, help_screen, update_displayed_keys
from tui_transformer.studio.shared.messages import LaunchChoice, PlayRun, ResumeRun, StudyTiming, notify, show_errors
from tui_transformer.studio.shared.textual_private import SafeCommandPalette, lay_out, mount_hidden_screen
from tui_transformer.studio.shared.typing_order import TypingOrderApp, accepts_as_text, register_alt_and_symbol_keys
from tui_transformer.studio.themes import THEMES

if TYPE_CHECKING:
    from tui_transformer.studio.design.pane import DesignPane
    from tui_transformer.studio.train.pane import TrainPane

PANE_NAMES = ("design", "train", "compare", "playground")
LEAST, NARROW, FRAMED = (60, 18), 100, (100, 30)  # columns and lines
QUIET = 0.3  # seconds to wait before building each pane's help in the background
LOOK = 0.1  # seconds between checks of the training thread
TERMINAL = 1.0  # seconds between checks that the terminal still exists
IMPORTED = 1.0  # seconds between checks for newly imported modules


class TopBar(Horizontal):
    class Tab(Static):
        def __init__(self, number: int, pane: str) -> None:
            super().__init__(id=f"tab-{pane}", classes="tab")
            self.pane, self._number = pane, number
            self.update_key_label(typing=False)

        def update_key_label(self, *, typing: bool) -> None:
            key = f" {'alt+' if typing else ''}{self._number} "
            self.update(Text.assemble((key, "bold"), f"{tr(self.pane).capitalize()} "))

        async def on_click(self, event: Click) -> None:
            event.stop()
            await self.run_action(f"app.show_pane('{self.pane}')")

    _typing = False  # whether digits are typed where the focus is

    def compose(self) -> ComposeResult:
        yield Static(Text(" tui-transformer ", style="bold"), id="brand")
        for number, pane in enumerate(PANE_NAMES, 1):
            yield self.Tab(number, pane)
        yield Static("", id="where")

    def highlight(self, pane: str | None) -> None:
        for tab in self.query(TopBar.Tab):
            tab.set_class(tab.pane == pane, "chosen")

    def update_key_labels(self, *, typing: bool) -> None:
        if typing == self._typing:
            return
        self._typing = typing
        for tab in self.query(TopBar.Tab):
            tab.update_key_label(typing=typing)


@runtime_checkable
class Pane(Protocol):
    def focus_first(self) -> None:
        """Focus the part that is used first, at once: the next keys are meant for it."""


class PaneSwitcher(ContentSwitcher):
    """The panes, one shown at a time.

    A pane's message that leads to another pane is handled here, not by the app: keys typed meanwhile wait for the
    focused widget's ancestors, see `typing_order`.
    """

    def show(self, pane: str) -> None:
        self.current = pane
        shown = self.get_child_by_id(pane)
        assert isinstance(shown, Pane)
        shown.focus_first()

    def on_play_run(self, event: PlayRun) -> None:
        from tui_transformer.studio.playground.pane import PlaygroundPane

        event.stop()
        self.query_one(PlaygroundPane).choose(event.run, event.vs)
        self.show("playground")


@lru_cache(maxsize=1)
def limit_gc_pauses(module_count: int) -> None:
    """Exempt imports from garbage collection, and collect often: a pass over torch's modules, or over 200,000 new
    objects, freezes the screen for 150 ms.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


class Welcome(ModalScreen[bool]):
    """The welcome screen: what this is, and two keys to a growing curve. True if the demo is wanted."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,f5", "dismiss(True)", Message("start")),
        Binding("escape", "dismiss(False)", Message("look around")),
        *(replace(key, action="app.help") for key in PANE_BINDINGS["everywhere"] if key.id == "help"),
        *(replace(key, action=f"go({key.id!r})") for key in PANE_BINDINGS["everywhere"] if key.id in PANE_NAMES),
    ]

    def action_go(self, pane: str) -> None:
        self.dismiss(False)
        self.app.call_next(self.app.run_action, f"show_pane('{pane}')")

    def compose(self) -> ComposeResult:
        words = Text()
        words.append(tr("A studio for Transformers\n\n"), "bold")
        words.append(tr("Build one from its parts, train it, and compare variants, with results you can trust.\n\n"))
        for key in PANE_BINDINGS["everywhere"]:
            if key.action.startswith("show_pane"):
                sign = key.key.split(",")[0]
                words.append(f"  {sign}  {fit_to_width(tr(key.description).capitalize(), 12)}", "bold")
                words.append(f"{tr(key.tooltip)}\n")
        words.append("\n")
        words.append("enter", "bold reverse")
        words.append(tr("  chooses a demo that trains on a laptop in a minute or two;  "))
        words.append("f5", "bold reverse").append(tr("  then trains it.\n\n"))
        words.append(tr("esc  look around first     ?  show the keys at any time"), "dim")
        with Vertical(classes="dialog"):
            yield Static(words)


def _finder() -> type[Provider]:
    from tui_transformer.studio.command_palette import PaletteProvider

    return PaletteProvider


class Studio(TypingOrderApp):
    """The app. The first pane is drawn before the others are imported, which would take longer than all the rest.

    Args:
        runs_dir: the runs folder.
        data_dir: the folder of corpora; None for the user's.
        device: what runs train on.
        panes: those that are built; the top bar lists all of them.
    """

    CSS_PATH = "studio.tcss"
    TITLE = "tui-transformer"
    COMMANDS: ClassVar = {_finder}
    BINDINGS: ClassVar[list[BindingType]] = [*PANE_BINDINGS["everywhere"]]

    def __init__(
        self, *, runs_dir: Path, data_dir: Path | None = None, device: str = "auto", panes: tuple[str, ...] = PANE_NAMES
    ) -> None:
        super().__init__()
        register_alt_and_symbol_keys()
        break_between_characters()
        self.runs_dir, self.data_dir, self.device, self.panes = runs_dir, data_dir, device, panes
        self.launches = RunActions(runs_dir, data_dir, device)
        self.exit_messages: list[str] = []  # said on the terminal once the screen is gone
        self.settings, self._settings_problem = user.load()
        self._has_runs = any(runs_dir.glob(f"*/{RUN_FILE}"))
        self._leaving = False
        self._adding_panes = asyncio.Lock()
        self._has_all_panes = False
        for theme in THEMES:
            self.register_theme(theme)
        known = self.settings.theme in self.available_themes
        self.theme = self.settings.theme if known else THEMES[0].name  # before anything is styled: once is enough

    # How it looks

    def compose(self) -> ComposeResult:
        self._choose_layout(self.size)  # later, everything would be styled again
        yield TopBar()
        first = self.settings.pane if self._has_runs and self.settings.pane in self.panes else self.panes[0]
        with PaneSwitcher(initial=first, id="panes"):
            yield self._build_pane(first)
        yield KeyLine(spare=SPARE)
        yield Static("", id="too-small")

    def _build_pane(self, pane: str) -> Widget:
        match pane:
            case "train":
                from tui_transformer.studio.train.pane import TrainPane

                return TrainPane(runs_dir=self.runs_dir, launches=self.launches)
            case "compare":
                from tui_transformer.studio.compare.pane import ComparePane

                return ComparePane(runs_dir=self.runs_dir)
            case "playground":
                from tui_transformer.studio.playground.pane import PlaygroundPane

                return PlaygroundPane(runs_dir=self.runs_dir, device=self.device, keys_heard=lambda: self.key_count)
            case _:
                from tui_transformer.studio.design.pane import DesignPane

                return DesignPane(
                    runs_dir=self.runs_dir, data_dir=self.data_dir, device=self.device, was=self.settings.design
                )

    async def _add_other_panes(self) -> None:
        """Add the missing panes; a key or click that comes meanwhile waits for the lock, until every pane exists."""
        if self._has_all_panes:  # asked at every key: a query walks all widgets
            return
        async with self._adding_panes:
            for switcher in self.query(PaneSwitcher):  # none while the app closes
                missing = [pane for pane in self.panes if pane not in {child.id for child in switcher.children}]
                for pane in missing:
                    with IMPORT_LOCK:
                        added = self._build_pane(pane)
                    await switcher.add_content(added)
                if missing:
                    self.run_worker(self._open_train_if_live(), group="live")
                    self.run_worker(self._prepare_help(), group="help")
                self._has_all_panes = True

    def on_mount(self) -> None:
        self._remap()
        if self._settings_problem:
            notify(self, self._settings_problem, "warning")
        bar = self.query_one(TopBar)
        show_keys = lambda screen: bar.update_key_labels(typing=accepts_as_text(screen.focused, "1"))
        self.screen.bindings_updated_signal.subscribe(bar, show_keys)
        switcher = self.query_one(PaneSwitcher)
        self.watch(switcher, "current", bar.highlight)
        self._install_signal_handlers()
        switcher.show(switcher.current or self.panes[0])
        self.call_after_refresh(self._add_other_panes)
        self.set_interval(IMPORTED, lambda: limit_gc_pauses(len(sys.modules)))

        def welcomed(start: bool | None) -> None:
            self._save_settings(welcomed=True)
            if start:
                from tui_transformer.studio.design.pane import DesignPane

                self.query_one(DesignPane).choose("demo")

        if not self.settings.welcomed:  # even if there are runs: `make demo` leaves one
            self.push_screen(Welcome(), welcomed)

    async def _open_train_if_live(self) -> None:
        """Open where the user was; but a live run opens Train, unless a key was typed meanwhile."""
        if "train" in self.panes:
            from tui_transformer.studio.train.pane import TrainPane

            train = self.query_one(TrainPane)
            await train.has_looked.wait()
            if any(row.live for row in train.snapshot.rows) and not self.key_count:
                self.action_show_pane("train")

    def on_resize(self, event: Resize) -> None:
        if self._choose_layout(event.size):
            words = tr(
                "The studio needs {least} × {least2} characters.\nThis terminal has {width} × {height}.",
                least=LEAST[0],
                least2=LEAST[1],
                width=event.size.width,
                height=event.size.height,
            )
            self.query_one("#too-small", Static).update(Text(words))

    def _choose_layout(self, size: Size) -> bool:
        """Choose the layout for a size; return whether it is too small for any."""
        width, height = size
        small = width < LEAST[0] or height < LEAST[1]
        self.set_class(width < NARROW, "narrow")
        self.set_class(width >= FRAMED[0] and height >= FRAMED[1], "framed")
        self.set_class(small, "too-small")
        return small

    def refresh_css(self, animate: bool = True) -> None:
        """Apply the theme. Before the first screen exists, only set the variables; otherwise Textual would parse the
        style sheet twice.
        """
        if self.screen_stack:
            super().refresh_css(animate)
        else:
            self.stylesheet.set_variables(self.get_css_variables())

    async def on_event(self, event: Event) -> None:
        """Add the missing panes before any input is handled; clean pasted text, which is untrusted."""
        if isinstance(event, InputEvent | Paste):
            if self._leaving:  # there may be hundreds
                return
            await self._add_other_panes()
        if isinstance(event, Paste):
            event.text = clean(event.text.replace("\r\n", "\n").replace("\r", "\n"))
        await super().on_event(event)

    def copy_to_clipboard(self, text: str) -> None:
        super().copy_to_clipboard(clean(text))

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return ON_DARK if self.current_theme.dark else ON_LIGHT

    def _save_settings(self, **changes: object) -> None:
        for name, value in changes.items():
            setattr(self.settings, name, value)
        now = user.load()[0].design  # perhaps another studio's
        notify(self, user.save(self.settings.model_copy(update={"design": now})), "warning")

    def _save_design(self, design: KeptDesign) -> None:
        before, self.settings.design = self.settings.design, design
        user.save_design(self.settings.design, before)

    def on_design_pane_save_requested(self, event: "DesignPane.SaveRequested") -> None:
        self._save_design(event.design)

    def watch_theme(self, theme: str) -> None:
        if self.is_running and theme != self.settings.theme:
            self._save_settings(theme=theme)

    # Navigation

    @property
    def current_pane(self) -> str:
        return self.query_one(PaneSwitcher).current or self.panes[0]

    def action_show_pane(self, pane: str) -> None:
        self.query_one(PaneSwitcher).show(pane)

    def action_turn_pane(self, by: int) -> None:
        if len(self.screen_stack) > 1:  # a dialog is open
            raise SkipAction
        self.action_show_pane(self.panes[(self.panes.index(self.current_pane) + by) % len(self.panes)])

    def action_help(self, topic: str = "") -> None:
        self.push_screen(self._help_screen_name(topic or self.current_pane))

    def _help_screen_name(self, topic: str) -> str:
        """Return the name of a help screen, made once for these keys and kept: `?` then shows it at once."""
        name = repr((topic, self.settings.keys))
        if not self.is_screen_installed(name):
            self.install_screen(help_screen(topic, self.settings.keys, settings_file()), name)
        return name

    async def _prepare_help(self) -> None:
        """Build each pane's help in the background, so that the first `?` is as fast as later ones."""
        for pane in self.panes:
            await asyncio.sleep(QUIET)
            screen, mounted = mount_hidden_screen(self, self._help_screen_name(pane))
            await mounted
            lay_out(screen, self)

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            words = tr("find a command, run, preset, study or setting · esc: close")
            self.push_screen(SafeCommandPalette(placeholder=words))

    def action_settings(self, at: str = "") -> None:
        from tui_transformer.studio.settings_page import SettingsPage

        self.push_screen(SettingsPage(self.settings, settings_file(), self._change_setting, at))

    def _change_setting(self, name: str, value: object) -> None:
        if name == "theme":
            self.theme = str(value)  # which keeps it
        else:
            self._save_settings(**{name: value})
        if name == "keys":
            self._remap()

    def _remap(self) -> None:
        self.set_keymap(self.settings.keys)
        update_displayed_keys(self.settings.keys)

    def export_screenshot(self, *, title: str | None = None, simplify: bool = False) -> str:
        return correct_svg_widths(super().export_screenshot(title=title, simplify=simplify))

    def action_screenshot(self, filename: str | None = None, path: str | None = None) -> None:
        folder = path or str(Path.cwd())  # Textual's own saves to Downloads
        try:
            notify(self, tr("saved {path}", path=self.save_screenshot(filename, folder)))
        except OSError as error:
            problem = tr("cannot save a screenshot in {folder}: {reason}", folder=folder, reason=reason(error))
            notify(self, problem, "error")

    # Training

    @property
    def _train_pane(self) -> "TrainPane":
        from tui_transformer.studio.train.pane import TrainPane

        return self.query_one(TrainPane)

    def _launch_mode(self, how: LaunchChoice) -> LaunchMode:
        return self.settings.launch if how == "usual" else how

    @work(group="training", exit_on_error=False)
    async def on_design_pane_launch_requested(self, event: "DesignPane.LaunchRequested") -> None:
        how: LaunchMode | None = self._launch_mode(event.how)
        if event.ranks > 1 and how == "thread":
            how = "process"  # ranks are processes
        if how == "thread" and (here := self.launches.local_run) is not None:
            answers: list[Answer[LaunchMode | None]] = [
                Answer("process", tr("Train it in the background, at the same time")),
                Answer("queue", tr("Queue it: it starts when the device is free")),
                Answer(None, tr("Cancel")),
            ]
            question = tr("{name} is already training here. How should {name2} run?", name=here.name, name2=event.name)
            how = await self.push_screen_wait(ChoiceDialog(question, answers))
        if how is None:
            return
        with show_errors(self):
            create = self.launches.create
            run = await asyncio.to_thread(create, event.config, how, event.command, event.name, event.ranks)
            self._train_pane.show(run)
            self.action_show_pane("train")
            await self._launch_and_notify_outcome(self.launches.start, run, how)

    @work(group="training", exit_on_error=False)
    async def on_resume_run(self, event: ResumeRun) -> None:
        with show_errors(self):
            await self._launch_and_notify_outcome(self.launches.resume, event.run, self._launch_mode(event.how))

    def on_study_timing(self, event: StudyTiming) -> None:
        self._train_pane.update_study_being_timed(event)

    async def _launch_and_notify_outcome(
        self, begin: Callable[[Path, LaunchMode], str], run: Path, how: LaunchMode
    ) -> None:
        """Begin or resume off the event loop, then watch the training thread.

        That thread is not Textual's: asyncio waits for those at exit, and a crashing studio must not hang.
        """
        said = await asyncio.to_thread(begin, run, how)
        if how == "thread":
            while self.launches.local_run is not None:
                await asyncio.sleep(LOOK)
            self._train_pane.poll_now()
            said = self.launches.outcome()
        notify(self, said)

    # Leaving

    def _install_signal_handlers(self) -> None:
        self.set_interval(TERMINAL, self._quit_if_terminal_gone)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGHUP, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, lambda: asyncio.ensure_future(self._quit_without_asking()))

    async def _quit_if_terminal_gone(self) -> None:
        """A terminal may vanish silently if hang-ups are ignored; reading from it would never end."""
        if is_terminal_gone():
            await self._quit_without_asking()

    async def _quit_without_asking(self) -> None:
        await self._shut_down("stop" if self.settings.on_quit == "stop" else "hand-over")

    async def action_leave(self) -> None:
        here = self.launches.local_run
        if here is None or self.settings.on_quit != "ask":
            await self._shut_down(self.settings.on_quit)
            return
        answers = [
            Answer("hand-over", tr("Keep training in the background")),
            Answer("stop", tr("Stop and save a checkpoint (you can resume later)")),
            Answer("hand-over!", tr("Always keep training in the background")),
            Answer("stop!", tr("Always stop and save a checkpoint")),
        ]

        async def answered(answer: str | None) -> None:
            if answer is None:
                return
            if answer.endswith("!"):
                self._save_settings(on_quit=answer[:-1])
            await self._shut_down(answer.rstrip("!"))

        text = tr("You can change the “Always” choices later in the settings (press , ).")
        question = tr("{name} is still training. What should happen to it?", name=here.name)
        self.push_screen(ChoiceDialog(question, answers, text), answered)

    @work
    async def action_ask_to_quit(self) -> None:
        """Quit, but ask first: a single keypress may be a mistake."""
        # If a run trains here, the next question asks anyway.
        sure: bool | None = self.launches.local_run is not None and self.settings.on_quit == "ask"
        if not sure:
            answers = [Answer(True, tr("Quit")), Answer(False, tr("Stay"))]
            sure = await self.push_screen_wait(ChoiceDialog(tr("Quit?"), answers))
        if sure:
            await self.action_leave()

    def action_help_quit(self) -> None:
        notify(self, tr("{keys} quits", keys=COMMAND_KEYS["quit"]))

    async def action_quit(self) -> None:
        await self.action_leave()

    async def _shut_down(self, how: str) -> None:
        if self._leaving:
            return
        from tui_transformer.studio.design.pane import DesignPane

        self._leaving = True
        if self.current_pane != self.settings.pane:
            self._save_settings(pane=self.current_pane)
        for design in self.query(DesignPane):
            self._save_design(design.kept_design)
        end = self.launches.stop_here if how == "stop" else self.launches.hand_over
        if self.launches.local_run is not None:
            notify(self, tr("saving a checkpoint …"))
        said = await asyncio.to_thread(end)
        if said:
            self.exit_messages.append(said)
        if is_terminal_gone():  # there is no screen to restore, and Textual would wait for one to write its last output
            os._exit(128 + signal.SIGHUP)
        self.exit()
