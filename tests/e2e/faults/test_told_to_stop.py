"""TERM takes effect at any moment: while a run is being prepared, during its checks, and in the middle of a step."""

import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.model.layers import Layer
from engine.runs.control import Control
from engine.runs.reader import RunReader
from engine.training import assemble as assembling
from engine.training import checkpoint
from engine.training.assemble import resume
from engine.training.trainer import Trainer
from tests.e2e.faults.slices import BRIEF
from tests.engine.training.test_crash import exit_code, forked, run_command, train
from tests.engine.training.test_resume import outcome
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def ends(pid: int) -> int:
    """The exit code of a process that is to end by itself."""
    found = [(0, 0)]

    def ended() -> bool:
        found[0] = os.waitpid(pid, os.WNOHANG)
        return found[0][0] != 0

    wait_for(ended, "the end of the process")
    return os.waitstatus_to_exitcode(found[0][1])


@pytest.mark.parametrize("moment", ["the corpus is read", "the model is built"])
def test_a_run_stopped_while_being_prepared_ends_and_leaves_nothing(tmp_path, moment: str) -> None:
    told, tell = os.pipe()

    def never(*_: Any, **__: Any) -> None:
        os.write(tell, b"x")
        time.sleep(10 * PATIENCE)

    def work() -> int:
        name = {"the corpus is read": "make_task", "the model is built": "build_network"}[moment]
        pytest.MonkeyPatch().setattr(assembling, name, never)
        return run_command(tmp_path, "run", BRIEF)

    pid = forked(work)
    os.close(tell)
    assert os.read(told, 1)
    os.kill(pid, signal.SIGTERM)
    assert ends(pid) == 143
    assert not list(tmp_path.iterdir())


# How many layers have been computed by then: since the start, or since the first step began.
MOMENTS = {"its checks": 3, "a step forwards": 2, "another one": 7}


@pytest.mark.parametrize("moment", MOMENTS)
def test_no_further_layer_is_computed_after_term(tmp_path, moment: str) -> None:
    assert train(tmp_path, "whole", BRIEF) == 0
    (told, tell), (heard, hear), (go, gone) = os.pipe(), os.pipe(), os.pipe()
    real, step, count, counting = Layer.forward, Trainer._step, [0], [moment == "its checks"]

    def stepping(self: Trainer) -> None:
        counting[0] = True
        step(self)

    def forward(self: Layer, *given: Any) -> Any:
        count[0] += counting[0]
        if count[0] >= MOMENTS[moment]:
            os.write(tell, b"x")
        if count[0] == MOMENTS[moment]:
            os.read(go, 1)
        return real(self, *given)

    def request(
        self: Control, *given: Any, request: Callable[..., None] = Control.enqueue_command, **named: Any
    ) -> None:
        request(self, *given, **named)
        os.write(hear, b"x")

    def work() -> int:
        patch = pytest.MonkeyPatch()
        patch.setattr(Control, "enqueue_command", request)
        patch.setattr(Layer, "forward", forward)
        patch.setattr(Trainer, "_step", stepping)
        return run_command(tmp_path, "run", BRIEF)

    pid = forked(work)
    os.close(tell)
    assert os.read(told, 1)
    os.kill(pid, signal.SIGTERM)
    os.read(heard, 1)
    os.write(gone, b"x")
    assert exit_code(pid) == 143
    assert not select.select([told], [], [], 0)[0] or not os.read(told, 100), "layers after TERM"
    reader = RunReader(tmp_path / "run")
    assert reader.status.state == "interrupted"
    assert checkpoint.never_saved(reader) == (moment == "its checks")
    assert resume(tmp_path / "run", device="cpu").trainer.run().state == "finished"
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


def test_a_stop_takes_effect_in_the_backward_pass_too(tmp_path, monkeypatch) -> None:
    """Of a step that takes long, two thirds are the backward pass."""
    from engine.runs.commands import RunCommand
    from engine.training.assemble import assemble

    ready = assemble(BRIEF, runs_dir=tmp_path, name="run", device="cpu")
    forwards, heeds = [0], [0]
    real, heed, step = Layer.forward, Control.raise_if_stopped, [False]

    def forward(self: Layer, *given: Any) -> Any:
        forwards[0] += step[0]
        return real(self, *given)

    def heeded(self: Control) -> None:
        heeds[0] += step[0]
        if heeds[0] == 3:  # two layers forwards, then the first backwards
            self.enqueue_command(RunCommand.STOP, "test")
        heed(self)

    def take(*given: Any, **named: Any) -> Any:
        step[0] = True
        return taken(*given, **named)

    taken = ready.trainer.stepper.step
    monkeypatch.setattr(Layer, "forward", forward)
    monkeypatch.setattr(Control, "raise_if_stopped", heeded)
    monkeypatch.setattr(ready.trainer.stepper, "step", take)
    ended = ready.trainer.run()
    assert (ended.state, ended.step, forwards[0], heeds[0]) == ("stopped", 0, BRIEF.model.n_layers, 3)


def test_checking_for_stops_changes_no_number(tmp_path, monkeypatch) -> None:
    from contextlib import nullcontext

    from engine.training import trainer

    train(tmp_path, "heeding", BRIEF)
    monkeypatch.setattr(trainer, "stop_checks_between_layers", lambda *_: nullcontext())
    train(tmp_path, "deaf", BRIEF)
    assert outcome(Path(tmp_path / "heeding")) == outcome(Path(tmp_path / "deaf"))
