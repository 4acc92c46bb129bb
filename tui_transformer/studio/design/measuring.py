"""Work in a separate process, such as a measurement, while a pane or screen shows the time it has taken."""

from collections.abc import Awaitable, Callable
from time import monotonic

from textual.timer import Timer
from textual.widget import Widget

from engine.base.clean import clean_line
from engine.base.errors import InputError
from engine.base.language import tr

GROUP = "measurement"
TICK = 1.0  # seconds between updates on it


class BackgroundWork:
    """At most one of a group at a time, of a draft or a study; `redraw` is called every second and at the end."""

    def __init__(self, widget: Widget, redraw: Callable[[], None], group: str = GROUP) -> None:
        self._widget, self._redraw, self._group = widget, redraw, group
        self.subject: object = None  # what is being measured
        self.began_at = 0.0  # when that began
        self.activity = ""  # what it does now
        self._tick: Timer | None = None
        self._failed: tuple[object, str] | None = None

    def begin(self, subject: object, work: Awaitable[object]) -> None:
        self.subject, self._failed, self.began_at, self.activity = subject, None, monotonic(), tr("measuring")
        self._tick = self._widget.set_interval(TICK, self._redraw)
        self._widget.run_worker(self._run(subject, work), group=self._group, exclusive=True)
        self._redraw()

    def set_activity(self, doing: str) -> None:
        self.activity = clean_line(doing)
        self._redraw()

    def stop(self) -> None:
        self._widget.workers.cancel_group(self._widget, self._group)
        self._finish()

    def elapsed(self, subject: object) -> float | None:
        """Since it began; None if something else, or nothing, is being measured."""
        return monotonic() - self.began_at if self.subject is not None and self.subject == subject else None

    def failure(self, subject: object) -> str:
        """Why the last one failed; "" if it did not, or was of something else."""
        return self._failed[1] if self._failed is not None and self._failed[0] == subject else ""

    async def _run(self, subject: object, work: Awaitable[object]) -> None:
        try:
            await work
        except InputError as error:
            self._failed = (subject, str(error))
        if self.subject is not None and self.subject == subject:
            self._finish()
        if self._widget.is_attached:
            self._redraw()

    def _finish(self) -> None:
        self.subject = None
        if self._tick is not None:
            self._tick.stop()
