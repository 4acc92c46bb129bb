"""Commands from several places at once: the states stay those of the table, and none is lost or obeyed twice."""

import itertools
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from engine.base.errors import InputError
from engine.runs import commands
from engine.runs.commands import RunCommand, send
from engine.runs.reader import RunReader
from engine.training.assemble import assemble, resume
from tests import waiting
from tests.engine.training.test_crash import ENDLESS, wait_for
from tests.engine.training.test_resume import StopAt
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("cached_checks", "cached_corpora")

# Which state may follow which, without what ends a run.
LEGAL = {
    "starting": {"starting", "running"},
    "running": {"running", "paused", "stopped"},
    "paused": {"running", "paused", "stopped"},
    "stopped": set(),
}


def expected(order: list[RunCommand]) -> dict[str, int]:
    """The model: which events a list of commands leads to."""
    paused, counts = False, {"paused": 0, "continued": 0, "checkpoint": 0}
    for command in order:
        if command is RunCommand.PAUSE and not paused:
            paused = True
            counts["paused"] += 1
        elif command is RunCommand.CONTINUE and paused:
            paused = False
            counts["continued"] += 1
        elif command is RunCommand.CHECKPOINT and not paused:
            counts["checkpoint"] += 1
    return counts


# What two apps do: write commands as keys are pressed. What a command line does: write one, wait until it is obeyed.
APP = """
import random, sys, time
from pathlib import Path
from engine.runs.commands import RunCommand, send
run, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
draw = random.Random(seed)
for _ in range(count):
    command = draw.choice((RunCommand.PAUSE, RunCommand.CONTINUE, RunCommand.CHECKPOINT))
    print(send(run, command), command.value, flush=True)
    if draw.random() < 0.02:
        time.sleep(0.05)
"""
LINE = """
import random, sys
from tui_transformer.__main__ import main
run, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
draw = random.Random(seed)
for _ in range(count):
    assert main([draw.choice(("pause", "continue", "checkpoint")), run, "--json"]) == 0
"""


def told(line: str) -> tuple[int, RunCommand]:
    """What a sender says of a command: its number and its name."""
    if line.startswith("{"):
        answer = json.loads(line)
        return answer["id"], RunCommand(answer["command"])
    number, command = line.split()
    return int(number), RunCommand(command)


def test_a_thousand_commands_from_two_apps_and_a_command_line(tmp_path) -> None:
    trainer = assemble(ENDLESS, runs_dir=tmp_path, name="run", device="cpu").trainer
    run, states, ids, write = tmp_path / "run", [], [], trainer.writer._replace_json

    def record(name: str, data: dict) -> None:
        if name == "status.json":
            states.append(data["state"])
            ids.append(data["control_id"])
        write(name, data)

    trainer.writer._replace_json = record
    training = threading.Thread(target=trainer.run, daemon=True)
    training.start()
    wait_for(run / "checkpoints" / "last")
    senders = [
        subprocess.Popen([sys.executable, "-c", code, run, str(seed), str(count)], stdout=subprocess.PIPE, text=True)
        for code, seed, count in ((APP, 1, 480), (APP, 2, 480), (LINE, 3, 40))
    ]
    said = [sender.communicate(timeout=PATIENCE)[0].splitlines() for sender in senders]
    assert [sender.returncode for sender in senders] == [0, 0, 0]
    sent = [told(line) for lines in said for line in lines]
    last = send(run, RunCommand.STOP)
    training.join(PATIENCE)
    assert not training.is_alive() and sorted(number for number, _ in sent) == list(range(1, 1001)) and last == 1001
    assert ids == sorted(ids) and ids[-1] == 1001
    assert all(after in LEGAL[before] for before, after in itertools.pairwise(states))
    found = [record["event"] for record in RunReader(run).raw_lines("events")]
    counts = expected([command for _, command in sorted(sent)])
    assert {event: found.count(event) for event in counts} == counts


def test_what_was_asked_of_an_earlier_attempt_is_not_asked_of_the_next(tmp_path) -> None:
    ready = assemble(ENDLESS, runs_dir=tmp_path, name="run", device="cpu", control=StopAt(9))
    for command in (RunCommand.PAUSE, RunCommand.STOP):
        send(ready.path, command)  # nobody listens to them: it stops by itself before
    ready.trainer.control._next_poll = float("inf")
    assert ready.trainer.run().state == "stopped"
    again = resume(ready.path, device="cpu", control=StopAt(20))
    assert again.trainer.run().state == "stopped" and again.trainer.state.step > ready.trainer.state.step + 2


FLOOD = (
    *(b"", b"{", b"[" * 5000, b"\x00" * 5000, b"\xff" * 5000, b'{"commands": [{"id": 1, "command": "dance"}]}'),
    b'{"commands": [{"id": 7, "command": ["stop"]}, {"id": "8", "command": "stop"}]}',
    b'{"commands": [%s]}' % b", ".join(b'{"id": %d, "command": "stop"}' % n for n in range(40_000)),  # beyond its size
)


def test_a_run_outlives_whatever_its_control_file_is_replaced_by(tmp_path) -> None:
    trainer = assemble(ENDLESS, runs_dir=tmp_path, name="run", device="cpu").trainer
    training = threading.Thread(target=trainer.run, daemon=True)
    training.start()
    wait_for(tmp_path / "run" / "checkpoints" / "last")
    file = commands.control_file(tmp_path / "run")
    for data in FLOOD:
        file.with_name("new").write_bytes(data)
        file.with_name("new").replace(file)
        there = (file.stat().st_mtime_ns, file.stat().st_ino)
        waiting.wait_for(lambda there=there: trainer.control._seen == there or not training.is_alive(), "a look at it")
        step = trainer.state.step
        waiting.wait_for(lambda step=step: trainer.state.step > step + 1 or not training.is_alive(), "a further step")
        assert training.is_alive(), data[:99]
    file.unlink()
    send(tmp_path / "run", RunCommand.STOP)
    training.join(PATIENCE)
    assert RunReader(tmp_path / "run").state == "stopped"


def test_commands_that_nobody_obeys_do_not_pile_up_for_ever(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(commands, "MOST_WAITING", 5)
    run = Path(tmp_path)
    for number in range(1, 6):
        assert send(run, RunCommand.PAUSE) == number
    with pytest.raises(InputError, match="has not acted on its last 5 commands"):
        send(run, RunCommand.STOP)


def test_a_lock_that_somebody_keeps_is_one_line(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(commands, "LOCK_TIMEOUT", 0.1)
    with FileLock(tmp_path / ".control.lock"), pytest.raises(InputError, match=r"holds the lock .*\.control\.lock"):
        send(tmp_path, RunCommand.STOP)
    assert send(tmp_path, RunCommand.STOP) == 1
