"""A small Textual app that trains in its worker thread.

A hang-up, a TERM and `q` leave the run to a process of its own.
"""

import asyncio
import os
import signal
import threading
from pathlib import Path
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.widgets import Static

from tests.engine.training.test_crash import BUSY
from tui_transformer.lab.work.logs import redirect_stderr
from tui_transformer.lab.work.processes import TrainingThread, create_queued_run

NOISE = b"C LIBRARY SPEAKING\n"
HOSTED = BUSY.model_copy(update={"train": BUSY.train.model_copy(update={"steps": 40})})


class Host(App[None]):
    """Shows the step of one run."""

    BINDINGS: ClassVar = [("q", "leave", "leave")]

    def __init__(self, runs: Path) -> None:
        super().__init__()
        self.training = TrainingThread(
            "begin", create_queued_run(HOSTED, runs_dir=runs, name="run", command=""), device="cpu"
        )

    def compose(self) -> ComposeResult:
        yield Static(id="step")

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGHUP, signal.SIGTERM):
            loop.add_signal_handler(number, lambda: asyncio.ensure_future(self.action_leave()))
        self.training.start()
        self.set_interval(0.1, self.show)

    def show(self) -> None:
        os.write(2, NOISE)  # as CUDA's or OpenMP's libraries do, whenever they like
        self.query_one("#step", Static).update(f"training: {self.training.alive}")

    async def action_leave(self) -> None:
        """Hand over off the event loop, then go."""
        await asyncio.get_running_loop().run_in_executor(None, self.training.hand_over)
        self.exit()


def run_host(root: Path) -> int:
    """Run it on the terminal of this process; what it says goes into a file."""
    with redirect_stderr(root / "app.log"):
        Host(root).run()
    assert threading.active_count() < 20
    return 0
