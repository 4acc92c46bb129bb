"""`run`: train one model in a worker thread while this one shows what the run directory says."""

import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from engine.config import presets
from engine.config.overrides import parse_overrides
from engine.config.schema import RunConfig
from engine.errors import InputError
from tui_transformer.exit_codes import ExitCode
from tui_transformer.output import complain, is_terminal, say, stderr, warn

if TYPE_CHECKING:
    from engine.training.control import Control
    from engine.training.trainer import Outcome


@dataclass(frozen=True)
class Request:
    """What the command line asks to be built."""

    preset: str | None
    config: Path | None
    on: str | None
    overrides: tuple[str, ...]
    corpus: str | None
    seed: int | None

    def source(self) -> presets.Preset:
        """The preset or config file that is meant.

        Raises:
            InputError: neither or both.
        """
        if (self.preset is None) == (self.config is None):
            raise InputError("say what to build: --preset NAME or --config FILE (one of them), e.g. --preset demo")
        return presets.find(self.preset) if self.preset is not None else presets.load(Path(str(self.config)))

    def resolve(self) -> RunConfig:
        """The complete config, command line last."""
        tables = parse_overrides(self.overrides)
        if self.corpus is not None:
            tables.append({"data": {"corpus": self.corpus}})
        if self.seed is not None:
            tables.append({"seed": self.seed})
        where = str(self.config) if self.config is not None else f"preset '{self.preset}'"
        return presets.resolve(self.source(), on=self.on, overrides=tables, where=where)


def run_command(
    request: Request,
    *,
    name: str | None,
    device: str,
    as_json: bool,
    runs_dir: Path,
    data_dir: Path | None,
) -> int:
    """Train, showing progress on stderr, then print what came out on stdout."""
    config = request.resolve()
    with loading("loading the engine, the corpus and the model"):
        from engine.training.assemble import assemble
        from engine.training.control import Control

        control = Control()
        ready = assemble(
            config,
            runs_dir=runs_dir,
            name=name,
            data_dir=data_dir,
            device=device,
            command=shlex.join(["tui-transformer", *sys.argv[1:]]),
            control=control,
        )
    for lint in ready.lints:
        warn(f"{lint.key}: {lint.text}")

    from engine.runs.reader import RunReader
    from tui_transformer.progress import follow

    reader = RunReader(ready.path)
    with _stopping_on_signals(control) as received:
        outcome = _in_thread(ready.trainer.run, lambda alive: follow(reader, alive, as_json=as_json))
    if outcome.state == "failed":
        complain(f"run '{reader.name}' failed: {outcome.reason}")
        return ExitCode.FAILED

    from tui_transformer.summary import print_summary

    print_summary(reader, as_json=as_json, runs_dir=runs_dir)
    if outcome.state == "interrupted":
        say(f"{outcome.reason}: stopped at step {outcome.step:,} with a checkpoint in {ready.path}")
        return 128 + received[0]
    return ExitCode.DONE


def _in_thread(work: "Callable[[], Outcome]", watch: Callable[[Callable[[], bool]], None]) -> "Outcome":
    """Run `work` in a thread, `watch` here until it ends; give back what the work gave."""
    result: list[Outcome] = []
    thread = threading.Thread(target=lambda: result.append(work()), name="training")
    thread.start()
    watch(thread.is_alive)
    thread.join()
    return result[0]


@contextmanager
def _stopping_on_signals(control: "Control") -> Iterator[list[int]]:
    """The first signal asks the run to stop at its next step; a second ctrl-c leaves at once."""
    from engine.training.control import Command

    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            raise SystemExit(128 + number)
        received.append(number)
        control.request(Command.STOP, signal.Signals(number).name, interrupted=True)

    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {n: signal.signal(n, handle) for n in numbers if signal.getsignal(n) is not signal.SIG_IGN}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def loading(what: str) -> Iterator[None]:
    """A spinner on a terminal while something is loaded."""
    if is_terminal(sys.stderr):
        with stderr().status(f"{what} …"):
            yield
    else:
        yield
