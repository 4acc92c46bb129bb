"""Processes that end with the one that started them, however that ends, on any POSIX system.

Their stdin is a pipe whose other end the starter holds open: it ends when the starter does.
"""

import os
import signal
import threading

STARTER_VARIABLE = "TUI_TRANSFORMER_ENDS_WITH_STDIN"  # environment variable: set for such a process


def end_with_starter() -> None:
    """Kill this process and its children once stdin ends, if its starter asked for that."""

    def wait_and_end() -> None:
        while os.read(0, 1):
            pass
        os.killpg(0, signal.SIGKILL)

    asked = os.environ.pop(STARTER_VARIABLE, "")
    if asked and os.name == "posix" and os.getpgrp() == os.getpid():  # in a group of its own
        threading.Thread(target=wait_and_end, daemon=True).start()
