"""Train: the runs, their growing curves, and actions on them. Reads run directories only.

A worker thread polls the runs folder, one poll at a time, less often if drawing is slow; nothing is drawn while another
pane is shown. Actions on a run may wait for a disk or a process, so they run in threads too.
"""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Key as KeyPress
from textual.timer import Timer

from engine.base.clean import clean_line
from engine.base.errors import InputError
from engine.base.language import tr
from engine.runs.commands import RunCommand
from engine.runs.manage import delete, rename
from engine.runs.names import check_name
from engine.runs.reader import RunReader
from tui_transformer.lab.analysis.ghost import Ghost, GhostFinder
from tui_transformer.lab.records.feed import QUEUED, Feed, FolderSnapshot
from tui_transformer.lab.records.pace import MAX_INTERVAL, PollInterval
from tui_transformer.lab.records.run_view import RunRow, RunView
from tui_transformer.lab.records.seen import toggle_seen
from tui_transformer.lab.records.study_row import StudyRow, visible_rows
from tui_transformer.lab.work.async_commands import LaunchTarget, start_study
from tui_transformer.lab.work.run_actions import RunActions
from tui_transformer.lab.work.study import read_study
from tui_transformer.lab.work.study_files import study_file
from tui_transformer.studio.shared.dialog import Answer, ChoiceDialog, TextDialog, error_text
from tui_transformer.studio.shared.keys import PANE_BINDINGS
from tui_transformer.studio.shared.line_list import LineList
from tui_transformer.studio.shared.messages import LaunchChoice, PlayRun, ResumeRun, StudyTiming, notify, show_errors
from tui_transformer.studio.shared.palette import Palette
from tui_transformer.studio.shared.panel import panel
from tui_transformer.studio.shared.run_states import PendingCommand, action_problem, study_action_problem
from tui_transformer.studio.shared.words import CachedText, empty_pane_text
from tui_transformer.studio.train.run_charts import RunCharts
from tui_transformer.studio.train.run_header import Gauges, RunHeader
from tui_transformer.studio.train.run_list import StyledPart, badges_tooltip, run_line, settings_text, study_line
from tui_transformer.studio.train.run_tabs import RunTabs

ROOMY, WIDE = 100, 160  # least screen columns for a roomy list, and for two charts
SHORT, TALL = 22, 30  # least lines for gauges, and for some spacing where there are no frames
AROUND, LEAST_SETTINGS = 2, 6  # lines: of a frame, and of the settings with theirs
SETTLE = 0.05  # idle seconds of the cursor before its run is read
BLANK = 0.25  # seconds until the previous run's curves are removed
PATIENCE = 60.0  # seconds that an action is shown as pending
UNREAD = FolderSnapshot()  # of a runs folder that has not been read yet


class TrainPane(Horizontal):
    BINDINGS: ClassVar[list[BindingType]] = [*PANE_BINDINGS["train"]]

    def __init__(self, *, runs_dir: Path, launches: RunActions) -> None:
        super().__init__(id="train")
        self.runs_dir, self.launches = runs_dir, launches
        self.feed = Feed(runs_dir)
        self.chosen: Path | None = None
        self.snapshot = UNREAD
        # Kept, not queried: a poll may end while the screen is being removed.
        self._title, self._nothing = CachedText(id="runs-title"), CachedText(id="nothing")
        self._list = LineList(self._line, id="runs", tip=self._badge_tooltip)
        self._listed: list[RunRow | StudyRow] = []
        self._open_studies: set[Path] = set()  # studies whose runs are listed
        self._ghosts, self._ghost_shown = GhostFinder(), True  # the second: whether one is drawn
        self._ghost: Ghost | None = None
        self._runs = panel(Vertical(self._title, self._list), tr("Runs"))
        self._settings = panel(CachedText(id="run-settings"), tr("Settings"))
        self._settings.border_subtitle = tr("changed from the defaults")
        self._header, self._charts = RunHeader(), panel(RunCharts(), tr("Charts"))
        self._gauges, self._tabs = Gauges(), panel(RunTabs())
        self._chosen_index = 0  # the chosen run's place in the list, for when it goes
        self._interval = PollInterval()
        self._wake = asyncio.Event()
        self.has_looked = asyncio.Event()  # set once the runs have been read
        self._blank: Timer | None = None
        self._allowed: object = ""  # what the keys in the footer depend on; "": nothing has been read
        self._pending: dict[Path, PendingCommand] = {}
        # Studies that have no runs yet, and the clock time until which they are listed without.
        self._timed: dict[Path, tuple[StudyRow, float]] = {}

    def compose(self) -> ComposeResult:
        with Vertical(id="left"):
            yield self._runs
            yield self._settings
        with Vertical(id="right"):
            yield self._header
            yield self._charts
            yield self._gauges
            yield self._tabs
        yield self._nothing

    def on_mount(self) -> None:
        self.add_class("-empty")
        self.run_worker(self._poll_runs(), name="look at the runs", group="look", exclusive=True)

    def focus_first(self) -> None:
        self.screen.set_focus(self._list)
        self._wake.set()

    # Looking

    async def _poll_runs(self) -> None:
        while True:
            self._wake.clear()
            seen, started = self._is_on_screen(), time.perf_counter()
            snapshot, ghost = await asyncio.to_thread(self._read_runs, self.chosen, seen)
            looked = time.perf_counter()
            self._apply(snapshot, ghost)
            drawn = time.perf_counter() - looked + (self._charts.draw_seconds if snapshot.changed else 0.0)
            wait = self._interval.next(changed=snapshot.changed, cost=drawn + (looked - started) / 4)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait if seen else MAX_INTERVAL)
                await asyncio.sleep(SETTLE)

    def _read_runs(self, chosen: Path | None, on_screen: bool) -> tuple[FolderSnapshot, Ghost | None]:
        snapshot = self.feed.poll(chosen, full=on_screen)
        return snapshot, self._ghosts.find(snapshot) if on_screen and self._ghost_shown else None

    def _is_on_screen(self) -> bool:
        return bool(self.display) and self.size.width > 0

    def poll_now(self) -> None:
        self._wake.set()

    def _apply(self, snapshot: FolderSnapshot, ghost: Ghost | None) -> None:
        """Show the current state; a run this app is about to begin shows as starting: that may take seconds."""
        rows = tuple(
            replace(row, state="starting") if row.state == QUEUED and self.launches.is_beginning(row.path) else row
            for row in snapshot.rows
        )
        timed = self._studies_without_runs(snapshot.studies)
        if rows != snapshot.rows or timed:
            snapshot = replace(snapshot, rows=rows, studies=(*timed, *snapshot.studies))
        self.snapshot, self._ghost = snapshot, ghost
        self.has_looked.set()
        within = self._study_of(snapshot.row(self.chosen))
        if within is not None:  # the chosen run must be in view
            self._open_studies.add(within.path)
        gone = snapshot.row(self.chosen) is None and snapshot.study(self.chosen) is None
        if gone and (self.chosen is None or snapshot.chosen == self.chosen):
            lines = visible_rows(rows, snapshot.studies, self._open_studies)
            self.chosen = lines[min(self._chosen_index, len(lines) - 1)].path if lines else None
        if snapshot.chosen != self.chosen:
            self._wake.set()
        self._settle_pending()
        if self._is_on_screen():
            self.redraw()

    def update_study_being_timed(self, event: StudyTiming) -> None:
        """List a study whose variants are being timed, and choose it; one that could not start is gone at once."""
        path = study_file(self.runs_dir, event.study)
        if event.state == "begun":
            self._timed[path] = StudyRow(path, (), event.runs), math.inf
            self.show(path)
        elif event.state == "failed":
            self._timed.pop(path, None)
        elif path in self._timed:
            self._timed[path] = self._timed[path][0], time.monotonic() + PATIENCE
        self.poll_now()

    def _studies_without_runs(self, known: Sequence[StudyRow]) -> list[StudyRow]:
        """The studies that have no runs yet, without those in `known`, which have some."""
        for path in [*self._timed]:
            if time.monotonic() > self._timed[path][1] or any(study.path == path for study in known):
                del self._timed[path]
        return [study for study, _ in self._timed.values()]

    def redraw(self) -> None:
        snapshot, rows = self.snapshot, self.snapshot.rows
        nothing = not rows and not snapshot.studies
        self.set_class(nothing, "-empty")
        if nothing:
            hint = tr(
                "Runs in {runs_dir} appear here automatically, wherever they were started.", runs_dir=self.runs_dir
            )
            self._nothing.show(empty_pane_text(tr("Nothing has been trained yet"), hint, snapshot.problem))
            self._refresh_bindings_if_changed(None)
            return
        (row, view), study = self.current_run(), self.snapshot.study(self.chosen)
        lines = visible_rows(rows, snapshot.studies, self._open_studies)
        paths = [line.path for line in lines]
        at = paths.index(self.chosen) if self.chosen in paths else 0  # the cursor stays on its run
        if lines != self._listed or at != self._list.cursor:
            self._listed = lines
            self._list.show_lines(paths, at)
        live = sum(row.live for row in rows)
        title = snapshot.problem or tr("Runs  {n:,}", n=len(rows)) + (tr(" · {live} live", live=live) if live else "")
        self._title.show(Text(clean_line(title), no_wrap=True, overflow="ellipsis"))
        self._runs.border_title = Text(clean_line(title))
        self._show_settings(len(lines))
        self._refresh_bindings_if_changed(row or study)
        self.set_class(study is not None, "-study")
        self._chosen_index = at
        if study is not None:
            with self.app.batch_update():
                self._header.show_study(study)
                self._charts.show(study, None)
            return
        if row is None:
            return
        if view is not None and self._blank is not None:
            self._blank.stop()
            self._blank = None
        with self.app.batch_update():
            pending = self._pending.get(row.path)
            self._header.show(row, view, pending.words if pending is not None else "")
            if view is None and self._blank is not None:
                return  # keep the previous run's curves for a moment: most runs are read faster than that
            self._charts.show(row, view, self._ghost)
            self._gauges.show(row, view)
            self._tabs.show(row, view)

    def _show_settings(self, list_height: int) -> None:
        """Show what the chosen run was asked for, in the room that the list leaves."""
        (row, view), box = self.current_run(), self._settings
        if row is not None and view is None:
            return  # the previous ones, for a moment
        room = self._runs.outer_size.height + (box.outer_size.height if box.display else 0) - list_height - AROUND
        settings = view.settings if view is not None else ()
        box.display = bool(settings) and room >= LEAST_SETTINGS and self.app.has_class("framed")
        if box.display:
            most = room - AROUND
            cut = settings if len(settings) <= most else settings[: most - 1]
            width = self._runs.size.width - 2
            text = settings_text(cut, width, Palette.from_app(self.app).dim)
            box.show(
                text.append("\n" + tr("and {n} more", n=len(settings) - len(cut)), "dim") if cut != settings else text
            )

    def current_run(self) -> tuple[RunRow | None, RunView | None]:
        row, view = self.snapshot.row(self.chosen), self.snapshot.view
        return row, view if view is not None and view.path == self.chosen else None

    @property
    def _chosen_row(self) -> RunRow:
        """The chosen run, for actions, which require one."""
        row, _ = self.current_run()
        assert row is not None
        return row

    def _refresh_bindings_if_changed(self, row: RunRow | StudyRow | None) -> None:
        allowed: object = row
        if isinstance(row, RunRow):
            allowed = (
                row.path,
                row.state,
                row.last_checkpoint_step is None,
                self._trains_in_this_process(row),
                row.badges,
            )
        if allowed != self._allowed:
            self._allowed = allowed
            self.refresh_bindings()

    # Choosing

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        event.stop()
        self.show(event.run)

    def _line(self, at: int, width: int) -> list[StyledPart]:
        line = self._listed[at]
        if isinstance(line, StudyRow):
            return study_line(line, width, opened=line.path in self._open_studies)
        return run_line(line, width, inside=bool(line.study.name))

    def _badge_tooltip(self, at: int, width: int, x: int) -> str:
        line = self._listed[at]
        return badges_tooltip(line, width, x, inside=bool(line.study.name)) if isinstance(line, RunRow) else ""

    def _study_of(self, row: RunRow | None) -> StudyRow | None:
        return next((study for study in self.snapshot.studies if row in study.runs), None) if row is not None else None

    def show(self, run: Path) -> None:
        if run != self.chosen:
            self.chosen = run
            if self._blank is not None:
                self._blank.stop()
            self._blank = self.set_timer(BLANK, self._clear_stale)
            if self._is_on_screen():
                self.redraw()
        self._wake.set()

    def _clear_stale(self) -> None:
        self._blank = None
        if self._is_on_screen():
            self.redraw()

    # Appearance

    def on_show(self) -> None:
        self._wake.set()

    def on_resize(self) -> None:
        width = self.app.size.width
        self.set_class(width >= ROOMY, "-roomy")
        self.set_class(width >= WIDE, "-wide")
        self.set_class(self.app.size.height < SHORT, "-short")
        self.set_class(self.app.size.height >= TALL and not self.app.has_class("framed"), "-tall")
        self._charts.wide = width >= WIDE
        self._tabs.wide = width >= WIDE
        if self._is_on_screen():
            self.call_after_refresh(self.redraw)
        self._wake.set()

    def action_zoom(self) -> None:
        self._charts.set_single_chart_mode(not self._charts.zoomed)
        self.set_class(self._charts.zoomed, "-zoom")

    def action_back(self) -> None:
        """Undo, latest first: the part of a chart that is shown, one chart alone."""
        if self._charts.shows_part:
            self._charts.reset_zoom()
            return
        if self._charts.zoomed:
            self.action_zoom()
        self.screen.set_focus(self._list)

    def action_open(self, how: str) -> None:
        """Open or close the study at the cursor, or that of the run there."""
        row, study = self.current_run()[0], self.snapshot.study(self.chosen)
        inside = self._study_of(row)
        if inside is not None and how == "close":
            self.show(inside.path)
            study = inside
        if study is None:
            return
        opened = study.path not in self._open_studies if how == "turn" else how == "open"
        (self._open_studies.add if opened else self._open_studies.discard)(study.path)
        self.redraw()

    def on_line_list_opened(self) -> None:
        self.action_open("turn")

    def action_ghost(self) -> None:
        self._ghost_shown = not self._ghost_shown
        notify(
            self,
            tr("the best other run is drawn as a dashed line behind the curves")
            if self._ghost_shown
            else tr("no other run is drawn behind the curves"),
        )
        self.poll_now()

    def action_x_axis(self) -> None:
        self._charts.next_axis()

    def action_log_y(self) -> None:
        self._charts.toggle_log()

    def action_smooth(self) -> None:
        notify(self, tr("training loss smoothing: {level}", level=tr(self._charts.next_smoothing())))

    def action_next_chart(self) -> None:
        self._charts.next_measure()

    def action_tab(self, tab: str) -> None:
        if self._charts.zoomed:
            self.action_zoom()
        self._tabs.choose(tab)

    # What is allowed, and what is pending

    def _trains_in_this_process(self, row: RunRow) -> bool:
        return self.launches.local_run == row.path

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """None, which greys it in the footer, if it does not apply to the chosen run."""
        return None if self._why_unavailable(action) else True

    def _why_unavailable(self, action: str) -> str:
        study, (row, _) = self.snapshot.study(self.chosen), self.current_run()
        if self.snapshot is not UNREAD and not self.snapshot.rows and not self.snapshot.studies:
            return tr("Nothing has been trained yet")
        if study is not None:
            return study_action_problem(action, study)
        return action_problem(action, row, row is not None and self._trains_in_this_process(row))

    def on_key(self, event: KeyPress) -> None:
        active = self.screen.active_bindings.get(event.key)
        if active is not None and active.node is self and not active.enabled:
            notify(self, self._why_unavailable(active.binding.action.partition("(")[0]), "warning")

    def _settle_pending(self) -> None:
        for run, pending in list(self._pending.items()):
            row, clock = self.snapshot.row(run), time.monotonic()
            if row is None:
                del self._pending[run]
            elif pending.is_over(row, clock):
                del self._pending[run]
                if pending.success_text and clock <= pending.deadline:
                    notify(self, tr("{name}: {text}", name=row.name, text=pending.success_text(row)))

    def _add_pending(self, row: RunRow, words: str, done: Callable[[RunRow], str] | None, *, live: bool = True) -> None:
        self._pending[row.path] = PendingCommand(words, row.control_id, time.monotonic() + PATIENCE, live, done)
        self.redraw()

    # What is done to a run

    async def _try_in_thread(self, task: Callable[[], object], run: Path) -> bool:
        """Run it in a thread; show any error, and return whether it succeeded."""
        try:
            await asyncio.to_thread(task)
        except (InputError, OSError) as error:
            self._pending.pop(run, None)
            notify(self, str(error), "error")
            self.redraw()
            return False
        finally:
            self.poll_now()
        return True

    @work(group="actions", exit_on_error=False)
    async def _send_study_command(self, study: StudyRow, command: RunCommand, doing: str) -> None:
        said: list[str] = []
        runs = [run.path for run in study.runs]
        send = lambda: said.append(self.launches.send_study_command(study.name, runs, command))
        if await self._try_in_thread(send, study.path):
            notify(self, f"{study.name}: {doing} {said[0]}")

    @work(group="actions", exit_on_error=False)
    async def _resume_study(self, study: StudyRow) -> None:
        launches = self.launches
        with show_errors(self):
            target = LaunchTarget(self.runs_dir, launches.data_dir, launches.device)
            notify(self, tr("{name}: resuming…", name=study.name))
            await start_study(read_study(study.path), target)
            notify(self, tr("{name} is training in the background", name=study.name))

    def action_pause(self) -> None:
        if (study := self.snapshot.study(self.chosen)) is not None:
            paused = study.state == "paused"
            command = RunCommand.CONTINUE if paused else RunCommand.PAUSE
            self._send_study_command(study, command, tr("continuing") if paused else tr("pausing"))
        elif self._chosen_row.state == "paused":
            done = lambda now: tr("continues from step {step:,}", step=now.step)
            self._send_command(RunCommand.CONTINUE, tr("continuing…"), done)
        else:
            self._send_command(RunCommand.PAUSE, tr("pausing…"), _state_at_step)

    def action_stop(self) -> None:
        if (study := self.snapshot.study(self.chosen)) is not None:
            self._send_study_command(study, RunCommand.STOP, tr("stopping"))
            return
        # The app itself reports how a run in this process ended.
        self._send_command(
            RunCommand.STOP, tr("stopping…"), None if self._trains_in_this_process(self._chosen_row) else _state_at_step
        )

    def action_checkpoint(self) -> None:
        done = lambda now: tr("saved a checkpoint at step {step:,}", step=now.last_checkpoint_step or 0)
        self._send_command(RunCommand.CHECKPOINT, tr("saving…"), done)

    @work(group="actions", exit_on_error=False)
    async def _send_command(self, command: RunCommand, words: str, done: Callable[[RunRow], str] | None) -> None:
        row = self._chosen_row
        self._add_pending(row, words, done)
        await self._try_in_thread(lambda: self.launches.send_command(row.path, command), row.path)

    def action_resume(self, how: LaunchChoice) -> None:
        if (study := self.snapshot.study(self.chosen)) is not None:
            self._resume_study(study)
            return
        self._add_pending(self._chosen_row, tr("resuming…"), None, live=False)
        self.post_message(ResumeRun(self._chosen_row.path, how))

    @work(group="actions", exit_on_error=False)
    async def action_detach(self) -> None:
        row = self._chosen_row
        said: list[str] = []
        self._add_pending(row, tr("moving to the background…"), None)
        if await self._try_in_thread(lambda: said.append(self.launches.hand_over()), row.path):
            self._pending.pop(row.path, None)
            notify(self, said[0])

    @work(group="actions", exit_on_error=False)
    async def action_seen(self) -> None:
        row = self._chosen_row
        said: list[str] = []
        if await self._try_in_thread(lambda: said.append(toggle_seen(row.path, row.badges)), row.path):
            notify(self, said[0])

    def action_play(self) -> None:
        self.post_message(PlayRun(self._chosen_row.path))

    @work(group="actions", exit_on_error=False)
    async def action_rename(self) -> None:
        row = self._chosen_row

        def taken(name: str) -> str:
            there = name != row.name and (self.runs_dir / check_name(name)).exists()
            return tr("a run named {name} already exists", name=name) if there else ""

        wrong = lambda name: error_text(lambda: taken(name))
        asked = TextDialog(tr("New name for {name}", name=row.name), row.name, wrong=wrong)
        name = await self.app.push_screen_wait(asked)
        if name and name != row.name and await self._try_in_thread(lambda: rename(RunReader(row.path), name), row.path):
            if self.chosen == row.path:
                self.chosen = row.path.with_name(name)
            notify(self, tr("renamed {name} to {new_name}", name=row.name, new_name=name))

    @work(group="actions", exit_on_error=False)
    async def action_delete(self) -> None:
        row = self._chosen_row
        answers = [Answer(False, tr("Keep it")), Answer(True, tr("Delete it and its checkpoints"))]
        question = ChoiceDialog(tr("Delete {name}?", name=row.name), answers, tr("This cannot be undone."))
        sure = await self.app.push_screen_wait(question)
        if sure and await self._try_in_thread(lambda: delete(RunReader(row.path)), row.path):
            notify(self, tr("deleted {name}", name=row.name))


def _state_at_step(run: RunRow) -> str:
    return tr("{state} at step {step:,}", state=tr(run.state), step=run.step)
