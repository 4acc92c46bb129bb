"""Train: the runs, their curves as they grow, and what can be done with them. Reads run directories only.

A worker looks at the runs folder in a thread, never twice at once, the rarer the more drawing costs; nothing is drawn
while another pane is shown. What can be done with a run is in `widgets.run_actions`.
"""

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Key as KeyPress
from textual.timer import Timer
from textual.widgets import Static

from engine.clean import clean_line
from tui_transformer.lab.launch.launches import Launches
from tui_transformer.lab.records.feed import QUEUED, Feed, RunRow, Snapshot
from tui_transformer.lab.records.pace import SLOW, Rhythm
from tui_transformer.lab.records.run_view import RunView
from tui_transformer.studio.keys import TRAIN, bindings
from tui_transformer.studio.train.gauges import Gauges
from tui_transformer.studio.train.run_actions import RunActions
from tui_transformer.studio.train.run_charts import RunCharts
from tui_transformer.studio.train.run_header import RunHeader
from tui_transformer.studio.train.run_list import RunList
from tui_transformer.studio.train.run_tabs import RunTabs

TWO, WIDE = 100, 160  # columns of the screen from which there are two charts, and a wide list
SHORT, TALL = 22, 30  # lines under which there are no gauges, and from which there is some air
SETTLE = 0.05  # seconds that the choice must rest before its run is read
BLANK = 0.25  # seconds after which the curves of the run before are taken away


class TrainPane(RunActions):
    """The second pane."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(TRAIN)
    DEFAULT_CSS = """
    TrainPane #left { width: 22; background: $surface; }
    TrainPane.-two #left { width: 30; }
    TrainPane.-wide #left { width: 42; }
    TrainPane #runs-title { height: 1; padding: 0 1; color: $foreground 65%; background: $surface; }
    TrainPane #right { width: 1fr; }
    TrainPane.-tall #runs-title { padding: 0 1 1 1; height: 2; }
    TrainPane.-tall RunHeader { padding: 0 1 1 1; }
    TrainPane.-tall Gauges { margin: 1 0; }
    TrainPane.-short Gauges { display: none; }
    TrainPane #nothing { display: none; width: 1fr; height: 1fr; content-align: center middle; text-align: center; }
    TrainPane.-empty #nothing { display: block; }
    TrainPane.-empty #left, TrainPane.-empty #right { display: none; }
    TrainPane.-zoom #left, TrainPane.-zoom Gauges, TrainPane.-zoom RunTabs { display: none; }
    """

    def __init__(self, *, runs_dir: Path, launches: Launches) -> None:
        super().__init__(id="train")
        self.runs_dir, self.launches = runs_dir, launches
        self.feed = Feed(runs_dir)
        self.chosen: Path | None = None
        self.snapshot = Snapshot()
        # Kept, not looked up: a look may end while the screen is being taken down.
        self._title, self._nothing = Static("", id="runs-title"), Static("", id="nothing")
        self._list, self._header, self._charts = RunList(), RunHeader(), RunCharts()
        self._gauges, self._tabs = Gauges(), RunTabs()
        self._titled = ""
        self._place = 0  # of the chosen run in the list, for when it goes
        self._rhythm = Rhythm()
        self._wake = asyncio.Event()
        self._blank: Timer | None = None
        self._allowed: object = None

    def compose(self) -> ComposeResult:
        """The list; the chosen run; what stands there while there is none."""
        with Vertical(id="left"):
            yield self._title
            yield self._list
        with Vertical(id="right"):
            yield self._header
            yield self._charts
            yield self._gauges
            yield self._tabs
        yield self._nothing

    def on_mount(self) -> None:
        """Begin to look."""
        self.add_class("-empty")
        self.run_worker(self._watch(), name="look at the runs", group="look", exclusive=True)

    def focus_first(self) -> None:
        """Where keys go when the pane is shown."""
        self.screen.set_focus(self._list)
        self._wake.set()

    def show(self, run: Path) -> None:
        """Choose a run, which may only just have been made."""
        self._choose(run)

    # Looking

    async def _watch(self) -> None:
        while True:
            self._wake.clear()
            seen, started = self._seen(), time.perf_counter()
            snapshot = await asyncio.to_thread(self.feed.look, self.chosen, full=seen)
            looked = time.perf_counter()
            self._take(snapshot)
            drawn = time.perf_counter() - looked + (self._charts.cost if snapshot.changed else 0.0)
            wait = self._rhythm.next(changed=snapshot.changed, cost=drawn + (looked - started) / 4)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait if seen else SLOW)
                await asyncio.sleep(SETTLE)

    def _seen(self) -> bool:
        return bool(self.display) and self.size.width > 0

    def _take(self, snapshot: Snapshot) -> None:
        """Show what there is now."""
        self.snapshot = snapshot = self._begun(snapshot)
        rows = snapshot.rows
        if snapshot.row(self.chosen) is None and (self.chosen is None or snapshot.chosen == self.chosen):
            self.chosen = rows[min(self._place, len(rows) - 1)].path if rows else None
        if snapshot.chosen != self.chosen:
            self._wake.set()
        self.settle(rows)
        if self._seen():
            self.redraw()

    def _begun(self, snapshot: Snapshot) -> Snapshot:
        """The same, a run that this app is about to begin as starting: its process may take seconds to say so."""
        begun = [row.state == QUEUED and self.launches.begins(row.path) for row in snapshot.rows]
        if not any(begun):
            return snapshot
        rows = (replace(row, state="starting") if now else row for row, now in zip(snapshot.rows, begun, strict=True))
        return replace(snapshot, rows=tuple(rows))

    def redraw(self) -> None:
        """Everything that says something else than before."""
        snapshot, rows = self.snapshot, self.snapshot.rows
        self.set_class(not rows, "-empty")
        if not rows:
            self._say_nothing()
            self._refresh_allowed(None)
            return
        row, view = self.current()
        self._list.show(rows, self.chosen)
        if row is not None:
            self._place = rows.index(row)
        live = sum(row.live for row in rows)
        title = f"RUNS  {len(rows):,}" + (f" · {live} live" if live else "")
        self._say_title(snapshot.problem or title)
        self._refresh_allowed(row)
        if row is None:
            return
        if view is not None and self._blank is not None:
            self._blank.stop()
            self._blank = None
        with self.app.batch_update():
            self._header.show(row, view, self.pending_words(row))
            if view is None and self._blank is not None:
                return  # the curves of the run before stay for a moment: most runs are read faster than that
            self._charts.show(row, view)
            self._gauges.show(row, view)
            self._tabs.show(view)

    def current(self) -> tuple[RunRow | None, RunView | None]:
        """The chosen run, as far as it is known."""
        row, view = self.snapshot.row(self.chosen), self.snapshot.view
        return row, view if view is not None and view.path == self.chosen else None

    def look_now(self) -> None:
        """Do not wait for the next look."""
        self._wake.set()

    def _say_title(self, text: str) -> None:
        if text != self._titled:
            self._titled = text
            self._title.update(Text(clean_line(text), no_wrap=True, overflow="ellipsis"))

    def _say_nothing(self) -> None:
        words = Text(justify="center")
        if self.snapshot.problem:
            words.append(f"{clean_line(self.snapshot.problem)}\n\n", "bold")
            words.append("The studio looks again every two seconds.")
        else:
            words.append("Nothing has trained yet\n\n", "bold")
            words.append("1", "bold").append("  choose a design      ")
            words.append("f5", "bold").append("  train it\n\n")
            words.append(f"Runs that start elsewhere in {self.runs_dir} appear here by themselves.", "dim")
        self._nothing.update(words)

    def _refresh_allowed(self, row: RunRow | None) -> None:
        allowed = None if row is None else (row.path, row.state, row.saved is None, self.is_here(row))
        if allowed != self._allowed:
            self._allowed = allowed
            self.refresh_bindings()

    # Choosing

    def on_run_list_chosen(self, event: RunList.Chosen) -> None:
        """The cursor went to another run."""
        event.stop()
        self._choose(event.run)

    def _choose(self, run: Path) -> None:
        if run == self.chosen:
            self._wake.set()
            return
        self.chosen = run
        if self._blank is not None:
            self._blank.stop()
        self._blank = self.set_timer(BLANK, self._take_away)
        if self._seen():
            self.redraw()
        self._wake.set()

    def _take_away(self) -> None:
        self._blank = None
        if self._seen():
            self.redraw()

    # Looks

    def on_show(self) -> None:
        """The pane is shown: look at once."""
        self._wake.set()

    def on_resize(self) -> None:
        """One chart or two, a list narrow or wide."""
        width = self.app.size.width
        self.set_class(width >= TWO, "-two")
        self.set_class(width >= WIDE, "-wide")
        self.set_class(self.app.size.height < SHORT, "-short")
        self.set_class(self.app.size.height >= TALL, "-tall")
        self._charts.two = width >= TWO
        self._tabs.two = width >= WIDE
        if self._seen():
            self.call_after_refresh(self.redraw)
        self._wake.set()

    def on_key(self, event: KeyPress) -> None:
        """A key of an action that makes no sense now says why."""
        active = self.screen.active_bindings.get(event.key)
        if active is not None and active.node is self and not active.enabled:
            self.explain(active.binding.action)

    def action_zoom(self) -> None:
        """One chart on the whole pane, or all again."""
        self._charts.zoom(not self._charts.zoomed)
        self.set_class(self._charts.zoomed, "-zoom")

    def action_back(self) -> None:
        """All charts again, the keys to the list."""
        if self._charts.zoomed:
            self.action_zoom()
        self.screen.set_focus(self._list)

    def action_x_axis(self) -> None:
        """The next x axis."""
        self._charts.turn_axis()

    def action_log_y(self) -> None:
        """Logarithmic, or not."""
        self._charts.turn_log()

    def action_smooth(self) -> None:
        """The next smoothing."""
        self.say(f"training loss smoothed: {self._charts.turn_smoothing()}")

    def action_next_chart(self) -> None:
        """The next measure."""
        self._charts.turn_measure()

    def action_tab(self, tab: str) -> None:
        """Samples, checks or log."""
        if self._charts.zoomed:
            self.action_zoom()
        self._tabs.choose(tab)
