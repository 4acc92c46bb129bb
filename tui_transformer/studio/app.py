"""The studio: four panes over the runs folder. It holds no copy of a run's truth, and torch is loaded after it stands.

What runs do is in `launches`; what is seen of them, in the panes. The app ties the two together: it launches what the
Design pane asks for in a worker thread, asks what becomes of it when it is left, and leaves it whole on a hang-up.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.actions import SkipAction, parse
from textual.app import ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.events import Event, Paste, Resize
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Footer, Input, Static

from engine.clean import clean, clean_line
from engine.config.schema import RunConfig
from engine.errors import InputError
from engine.runs.reader import list_runs
from tui_transformer.lab.charts.colours import ON_DARK, ON_LIGHT
from tui_transformer.lab.launch.launches import Launches, LaunchMode
from tui_transformer.lab.launch.logs import hung_up
from tui_transformer.studio import settings as user
from tui_transformer.studio.compare.pane import ComparePane
from tui_transformer.studio.design.pane import DesignPane
from tui_transformer.studio.keys import EVERYWHERE, PANES, bindings
from tui_transformer.studio.playground.pane import PlaygroundPane
from tui_transformer.studio.shared.dialog import Answer, Ask
from tui_transformer.studio.shared.help import help_screen
from tui_transformer.studio.shared.top_bar import PANES as TABS
from tui_transformer.studio.shared.top_bar import Tab, TopBar
from tui_transformer.studio.shared.welcome import Welcome
from tui_transformer.studio.themes import THEMES
from tui_transformer.studio.train.pane import TrainPane
from tui_transformer.studio.typing_order import TypingOrder, hear_alt_digits

LEAST, NARROW = (60, 18), 100  # columns and lines
LOOK = 0.1  # seconds between two looks at the training thread
TERMINAL = 1.0  # seconds between two looks at whether the terminal is still there


class Studio(TypingOrder):
    """The full-screen app.

    Args:
        runs_dir: where runs are.
        data_dir: where named corpora are looked for first.
        device: to train on, as on the command line.
    """

    CSS_PATH = "studio.tcss"
    TITLE = "tui-transformer"
    BINDINGS: ClassVar[list[BindingType]] = bindings(EVERYWHERE)
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, *, runs_dir: Path, data_dir: Path | None = None, device: str = "auto") -> None:
        super().__init__()
        hear_alt_digits()
        self.runs_dir, self.data_dir, self.device = runs_dir, data_dir, device
        self.launches = Launches(runs_dir, data_dir, device)
        self.last_words: list[str] = []  # said on the terminal once the screen is gone
        self.settings, self._wrong_settings = user.load()
        self._leaving = False

    # How it looks

    def compose(self) -> ComposeResult:
        """The tabs, the panes, the keys."""
        yield TopBar()
        with ContentSwitcher(initial="design", id="panes"):
            yield DesignPane(runs_dir=self.runs_dir, data_dir=self.data_dir, device=self.device)
            yield TrainPane(runs_dir=self.runs_dir, launches=self.launches)
            yield ComparePane(runs_dir=self.runs_dir)
            yield PlaygroundPane(runs_dir=self.runs_dir, device=self.device)
        yield Footer(compact=True)
        yield Static("", id="too-small")

    def on_mount(self) -> None:
        """Theme, keys, signals, and on the very first start a welcome."""
        for theme in THEMES:
            self.register_theme(theme)
        known = self.settings.theme in self.available_themes
        self.theme = self.settings.theme if known else THEMES[0].name
        self.set_keymap(self.settings.keys)
        if self._wrong_settings:
            self.say(self._wrong_settings, "warning")
        self.watch(self.screen, "focused", self._tell_keys)
        self._listen()
        self.action_show_pane("design")
        if not self.settings.welcomed and not list_runs(self.runs_dir):
            self.push_screen(Welcome(), self._welcomed)

    def _welcomed(self, start: bool | None) -> None:
        self._keep(welcomed=True)
        if start:
            self.query_one(DesignPane).choose("demo")

    def on_resize(self, event: Resize) -> None:
        """A narrow layout, or the wish for a larger terminal."""
        width, height = event.size.width, event.size.height
        small = width < LEAST[0] or height < LEAST[1]
        self.set_class(width < NARROW, "narrow")
        self.set_class(small, "too-small")
        if small:
            words = f"The studio needs {LEAST[0]} × {LEAST[1]} characters.\nThis terminal has {width} × {height}."
            self.query_one("#too-small", Static).update(Text(words))

    async def on_event(self, event: Event) -> None:
        """What is pasted comes from anywhere: it is cleaned before any line or note has it."""
        if isinstance(event, Paste):
            event.text = clean(event.text.replace("\r\n", "\n").replace("\r", "\n"))
        await super().on_event(event)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text without what would command the terminal that it is pasted into."""
        super().copy_to_clipboard(clean(text))

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Colours of runs where a theme has none."""
        return ON_DARK if self.current_theme.dark else ON_LIGHT

    def say(self, text: str, severity: str = "information") -> None:
        """A sentence in the corner. From any part of the app; never taken for markup."""
        if text:
            self.notify(clean_line(text), severity=severity, markup=False)  # type: ignore[arg-type]

    def _keep(self, **changes: object) -> None:
        for name, value in changes.items():
            setattr(self.settings, name, value)
        self.say(user.save(self.settings), "warning")

    def watch_theme(self, theme: str) -> None:
        """Remember the theme that was chosen."""
        if self.is_running and theme != self.settings.theme:
            self._keep(theme=theme)

    # Going about

    def action_show_pane(self, pane: str) -> None:
        """One of the four."""
        switcher = self.query_one("#panes", ContentSwitcher)
        switcher.current = pane
        self.query_one(TopBar).choose(pane)
        shown = switcher.get_child_by_id(pane)
        assert isinstance(shown, DesignPane | TrainPane | ComparePane | PlaygroundPane)
        shown.focus_first()

    def action_turn_pane(self, by: int) -> None:
        """Show the next or previous of the four panes."""
        if len(self.screen_stack) > 1:  # a dialog is open
            raise SkipAction
        panes = [pane for pane, _ in TABS]
        now = self.query_one("#panes", ContentSwitcher).current or "design"
        self.action_show_pane(panes[(panes.index(now) + by) % len(panes)])

    def _tell_keys(self, focused: Widget | None) -> None:
        """Digits are text while an input line has the focus."""
        self.query_one(TopBar).tell_keys(typing=isinstance(focused, Input))

    def on_tab_chosen(self, event: Tab.Chosen) -> None:
        """A click on a tab."""
        self.action_show_pane(event.pane)

    def action_help(self) -> None:
        """All keys."""
        pane = self.query_one("#panes", ContentSwitcher).current or "design"
        self.push_screen(help_screen(pane, self.settings.keys, user.settings_file()))

    def action_picture(self) -> None:
        """The screen as an SVG."""
        try:
            self.say(f"saved {self.save_screenshot(path=str(Path.cwd()))}")
        except OSError as error:
            self.say(f"no picture could be saved in {Path.cwd()}: {error.strerror or error}", "error")

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: what Textual offers, the panes, and what can be done with the run or design that is shown."""
        yield from super().get_system_commands(screen)
        for key in EVERYWHERE:
            yield SystemCommand(f"view: {key.label}", key.what, lambda action=key.action: self.call_action(action))
        pane = self.query_one("#panes", ContentSwitcher).current or "design"
        owner = self.query_one(f"#{pane}")
        for key in PANES.get(pane, ()):
            _, name, parameters = parse(key.action)
            if owner.check_action(name, parameters):  # what makes no sense now is not offered
                title = f"{pane}: {key.label}"
                yield SystemCommand(title, key.what, lambda action=key.action, on=pane: self.call_action(action, on))

    def call_action(self, action: str, pane: str | None = None) -> None:
        """Run an action of the app, or of a pane."""
        owner = self.query_one(f"#{pane}") if pane else self
        self.call_later(self.run_action, action, owner)

    # Training

    async def on_design_pane_launch(self, event: DesignPane.Launch) -> None:
        """Launch a design."""
        how: LaunchMode = self.settings.launch if event.how == "usual" else event.how  # type: ignore[assignment]
        self._launch(event.config, how, event.command)

    def resume(self, run: Path, how: str) -> None:
        """Go on with a run that ended early."""
        self._resume(run, self.settings.launch if how == "usual" else how)

    def play(self, run: Path, vs: Path | None = None) -> None:
        """Write with a run, or with two side by side."""
        self.query_one(PlaygroundPane).choose(run, vs)
        self.action_show_pane("playground")

    @work(group="training", exit_on_error=False)
    async def _launch(self, config: RunConfig, how: LaunchMode, command: str) -> None:
        with self._saying():
            run = await asyncio.to_thread(self.launches.create, config, how, command)
            self.query_one(TrainPane).show(run)
            self.action_show_pane("train")
            await self._watch_over(self.launches.start, run, how)

    @work(group="training", exit_on_error=False)
    async def _resume(self, run: Path, how: LaunchMode) -> None:
        with self._saying():
            await self._watch_over(self.launches.resume, run, how)

    async def _watch_over(self, begin: Callable[[Path, LaunchMode], str], run: Path, how: LaunchMode) -> None:
        """Begin or resume off the event loop, then keep an eye on the training thread.

        That thread is not Textual's own: asyncio waits for those at the end, and a studio that breaks must not hang.
        """
        said = await asyncio.to_thread(begin, run, how)
        if how == "thread":
            while self.launches.busy:
                await asyncio.sleep(LOOK)
            self.query_one(TrainPane).look_now()
            said = self.launches.outcome()
        self.say(said)

    @contextmanager
    def _saying(self) -> Iterator[None]:
        try:
            yield
        except (InputError, OSError) as error:
            self.say(str(error), "error")

    # Leaving

    def _listen(self) -> None:
        self.set_interval(TERMINAL, self._look_at_terminal)
        loop = asyncio.get_running_loop()
        for name in ("SIGHUP", "SIGTERM"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, lambda: asyncio.ensure_future(self._leave_at_once()))

    async def _look_at_terminal(self) -> None:
        """A terminal may go without a word, where hang-ups are ignored; reading from it would never end."""
        if hung_up():
            await self._leave_at_once()

    async def _leave_at_once(self) -> None:
        stop = self.settings.on_quit == "stop"
        await self._leave("stop" if stop else "hand-over")

    async def action_leave(self) -> None:
        """Quit; a run that trains here is handed over or stopped first."""
        if not self.launches.busy or self.settings.on_quit != "ask":
            await self._leave(self.settings.on_quit)
            return
        here = self.launches.here
        name = here.name if here else "a run"
        answers = [
            Answer("hand-over", "Hand it over: it goes on in a process of its own"),
            Answer("stop", "Stop it: a checkpoint is saved, resume continues from there"),
            Answer("hand-over!", "Always hand over, and do not ask again"),
            Answer("stop!", "Always stop, and do not ask again"),
        ]
        question: Ask[str] = Ask(f"{name} trains in this window. What becomes of it?", answers)
        self.push_screen(question, self._answered)

    async def action_ask_to_leave(self) -> None:
        """Quit, but ask first: a single keypress may have been meant for something else."""
        if self.launches.busy and self.settings.on_quit == "ask":
            await self.action_leave()
            return
        question: Ask[bool] = Ask("Quit?", [Answer(True, "Quit"), Answer(False, "Stay")])
        self.push_screen(question, self._sure)

    async def _sure(self, sure: bool | None) -> None:
        if sure:
            await self.action_leave()

    def action_help_quit(self) -> None:
        """In other programs, ctrl+c quits."""
        self.say(f"{self.settings.keys.get('quit', 'ctrl+q')} quits")

    async def _answered(self, answer: str | None) -> None:
        if answer is None:
            return
        if answer.endswith("!"):
            self._keep(on_quit=answer[:-1])
        await self._leave(answer.rstrip("!"))

    async def action_quit(self) -> None:
        """What the palette calls quit."""
        await self.action_leave()

    async def _leave(self, how: str) -> None:
        if self._leaving:
            return
        self._leaving = True
        end = self.launches.stop_here if how == "stop" else self.launches.hand_over
        if self.launches.busy:
            self.say("saving a checkpoint …")
        said = await asyncio.to_thread(end)
        if said:
            self.last_words.append(said)
        if hung_up():  # there is no screen to give back, and Textual would wait for one to take its last words
            os._exit(128 + signal.SIGHUP)
        self.exit()
