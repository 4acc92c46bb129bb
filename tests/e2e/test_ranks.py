"""Several ranks train the same bits as one, end together however they end, and leave nothing behind."""

import errno
import hashlib
import json
import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.config import presets
from engine.config.keys import parse_overrides
from engine.config.schema import RunConfig
from engine.runs.commands import RunCommand, send
from engine.runs.reader import RunReader
from engine.training import checkpoint
from engine.training.step import Stepper
from engine.training.trainer import Trainer
from tests.command import command
from tests.engine.training.test_resume import without_clocks
from tests.paused import assert_stays_paused
from tests.waiting import PATIENCE, wait_for
from tui_transformer.lab.work.processes import create_queued_run, spawn

NETWORKS = {"decoder": "baseline", "encoder-decoder": "phrasebook", "masked": "encoder-mlm"}
SIZES = {"phrasebook": ("train.batch_tokens=60", "data.corpus_size=400")}
pytestmark = pytest.mark.usefixtures("module_fork_start", "module_minimal_leak_probe")


def small(preset: str, *changes: str) -> RunConfig:
    tables = presets.resolve(presets.find(preset)).miniature().dump()
    size = SIZES.get(preset, ("train.batch_size=2",))
    asked = ("train.accumulation=4", "evaluation.every=4", "checkpoint.every=2", "checkpoint.keep_last=99", *size)
    for override in parse_overrides((*asked, *changes)):
        tables = presets.merge(tables, override)
    return RunConfig.model_validate(tables)


def begun(runs: Path, name: str, config: RunConfig, ranks: int = 1) -> "subprocess.Popen[bytes]":
    path = create_queued_run(config, runs_dir=runs, name=name, command="")
    return spawn("begin", path, device="cpu", ranks=ranks, attached=ranks > 1)


def trained(runs: Path, name: str, config: RunConfig, ranks: int = 1) -> dict[str, object]:
    begun(runs, name, config, ranks).wait(PATIENCE)
    return state(runs / name)


def state(run: Path) -> dict[str, object]:
    """Weights and moments of the last checkpoint, and the records without times."""
    last = max((run / "checkpoints").glob("step-????????"))
    found: dict[str, object] = {"step": last.name, "state": RunReader(run).state}
    for file in ("model.safetensors", "optimizer.safetensors"):
        found[file] = hashlib.sha256((last / file).read_bytes()).hexdigest()
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return found | {"metrics": [without_clocks(json.loads(line)) for line in lines]}


@pytest.mark.parametrize("network", ["decoder", "encoder-decoder"])  # the slow test has the others
def test_two_ranks_train_what_one_trains(tmp_path: Path, network: str) -> None:
    config = small(NETWORKS[network], "model.dropout=0.1")
    alone = trained(tmp_path, "one", config)
    assert alone["state"] == "finished"
    assert trained(tmp_path, "two", config, 2) == alone


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("accumulation", [4, 8])
@pytest.mark.parametrize("network", NETWORKS)
def test_one_two_and_four_ranks_train_the_same_bits(
    tmp_path: Path, network: str, accumulation: int, precision: str, dropout: float
) -> None:
    changes = (f"model.dropout={dropout}", f"train.precision={precision}", f"train.accumulation={accumulation}")
    config = small(NETWORKS[network], *changes)
    alone = trained(tmp_path, "one", config)
    assert alone["state"] == "finished"
    assert trained(tmp_path, "two", config, 2) == alone
    assert trained(tmp_path, "four", config, 4) == alone


def stopped_at(run: Path, process: "subprocess.Popen[bytes]", step: int, number: int = signal.SIGTERM) -> None:
    """Send a signal to rank 0 once a step is done, and wait until all is over."""
    reaches(run, process, step)
    lead = RunReader(run).status.pid
    if lead is not None and process.poll() is None:
        os.kill(lead, number)
    process.wait(PATIENCE)


def reaches(run: Path, process: "subprocess.Popen[bytes]", step: int) -> None:
    """Wait until a run is at a step, or has ended before."""
    wait_for(
        lambda: RunReader(run).status.step >= step or process.poll() is not None,
        f"step {step}",
        lambda: RunReader(run).status,
    )


@pytest.mark.slow
@pytest.mark.parametrize("at", [(2, 5), (3, 9), (6, 7), (1, 11)])
def test_four_ranks_go_on_as_one_and_then_as_two(tmp_path: Path, at: tuple[int, int]) -> None:
    config = small("baseline", "model.dropout=0.1", "train.steps=14")
    alone = trained(tmp_path, "alone", config)
    run = tmp_path / "moved"
    stopped_at(run, begun(tmp_path, "moved", config, 4), at[0])
    stopped_at(run, spawn("resume", run, device="cpu"), at[1])
    spawn("resume", run, device="cpu", ranks=2, attached=True).wait(PATIENCE)
    assert state(run) == alone


def test_two_ranks_refuse_settings_that_were_edited_after_one_had_trained_with_others(
    real_start: None, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    stopped_at(run, begun(tmp_path, "run", small("baseline", "train.steps=1000")), 1)
    metrics = (run / "metrics.jsonl").read_bytes()
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace("\nlr = ", "\nlr = 1", 1))
    answer = command("resume", "run", "--ranks", "2", "--runs-dir", str(tmp_path), "--device", "cpu")
    assert answer.code == 2 and "was started with different settings: optimizer.lr was " in answer.err
    assert len(answer.err.strip().splitlines()) == 1 and (run / "metrics.jsonl").read_bytes() == metrics


def family(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    try:
        return [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    except psutil.Error:
        return []


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def held_at(step: int, gate: Path, patch: pytest.MonkeyPatch) -> None:
    """Ranks that are begun now wait after a step, until there is the gate: no run ends before it is hit."""
    real = Trainer._step

    def go_on(self: Trainer) -> None:
        if self.state.step == step:
            wait_for(gate.exists, "the gate")
        real(self)

    patch.setattr(Trainer, "_step", go_on)


def hit(
    run: Path, process: "subprocess.Popen[bytes]", whom: str, number: int, then: Callable[[], None] = lambda: None
) -> bool:
    """Send a signal to rank 0, another rank, or the agent that watches them, if it has started; then nothing may be
    left.
    """
    everyone = family(process)
    lead = RunReader(run).status.pid
    ranks = [one for one in everyone if one.ppid() == process.pid]
    chosen = {
        "rank 0": [one for one in ranks if one.pid == lead],
        "another rank": [one for one in ranks if one.pid != lead],
        "the agent": everyone[:1],
    }[whom]
    if not chosen:
        return False
    chosen[0].send_signal(number)
    then()
    wait_for(lambda: process.poll() is not None and not alive(everyone), "the end of all", lambda: alive(everyone))
    return True


CASES = [
    ("another rank", signal.SIGKILL),
    ("the agent", signal.SIGKILL),
    ("rank 0", signal.SIGKILL),
    ("another rank", signal.SIGTERM),
    ("the agent", signal.SIGTERM),
    ("rank 0", signal.SIGTERM),
]
LONG = ("train.steps=40", "model.dropout=0.1", "evaluation.every=10")
SHORT = ("train.steps=16", *LONG[1:])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, object]]]:
    folder = tmp_path_factory.mktemp("undisturbed")
    yield folder, trained(folder, "alone", small("baseline", *SHORT))


@pytest.mark.usefixtures("no_self_check")
@pytest.mark.parametrize(("whom", "number"), CASES[:2])
def test_when_a_rank_or_the_agent_is_killed_all_end_and_the_run_resumes_bit_for_bit(
    tmp_path: Path, undisturbed: tuple[Path, dict[str, object]], monkeypatch, whom: str, number: int
) -> None:
    run, gate = tmp_path / "run", tmp_path / "gate"
    with monkeypatch.context() as patch:
        held_at(8, gate, patch)
        process = begun(tmp_path, "run", small("baseline", *SHORT), 2)
    reaches(run, process, 5)
    assert hit(run, process, whom, number, gate.touch)
    status = RunReader(run).status
    if whom == "another rank":
        assert status.state == "failed" and status.reason.startswith("rank 1 (process ")
    else:
        assert status.state == "interrupted"
    assert status.checkpoint == f"step-{status.step:08d}"  # nothing that was computed is lost
    spawn("resume", run, device="cpu").wait(PATIENCE)
    assert state(run) == undisturbed[1]


def on_rank(number: int) -> bool:
    return os.environ.get("RANK") == str(number)


def ended(process: "subprocess.Popen[bytes]") -> None:
    everyone = family(process)
    process.wait(PATIENCE)
    wait_for(lambda: not alive(everyone), "the end of all", lambda: alive(everyone))


@pytest.mark.usefixtures("no_self_check")
def test_a_loss_that_is_not_finite_on_one_rank_ends_all_at_the_same_step(tmp_path: Path, monkeypatch) -> None:
    losses, seen = Stepper._nll_and_training_loss, list[int]()

    def wrong(self: Stepper, *piece: Any, **given: Any) -> Any:
        total, aim = losses(self, *piece, **given)
        seen.append(1)
        return (total * float("nan"), aim * float("nan")) if on_rank(1) and len(seen) == 12 else (total, aim)

    monkeypatch.setattr(Stepper, "_nll_and_training_loss", wrong)  # in the ranks as well, which are forks
    ended(begun(tmp_path, "run", small("baseline", *SHORT), 2))
    status = RunReader(tmp_path / "run").status
    assert status.state == "failed" and status.step == 5
    assert status.reason == "the loss is NaN or infinite at step 6; the last good state is step 5; first on rank 1"
    assert status.checkpoint == "step-00000005"


@pytest.mark.usefixtures("no_self_check")
def test_a_full_disk_pauses_all_ranks_until_there_is_room(tmp_path: Path, undisturbed, monkeypatch) -> None:
    save, tries = checkpoint.save, list[int]()

    def full(*given: Any) -> Any:
        if on_rank(0) and given[3].step == 6 and len(tries) < 5:
            tries.append(1)
            raise OSError(errno.ENOSPC, "No space left on device", "x")
        return save(*given)

    monkeypatch.setattr(checkpoint, "save", full)
    ended(begun(tmp_path, "run", small("baseline", *SHORT), 2))
    assert [event["event"] for event in RunReader(tmp_path / "run").raw_lines("events")].count("continued") == 1
    assert state(tmp_path / "run") == undisturbed[1]


@pytest.mark.usefixtures("no_self_check")
def test_paused_ranks_go_on_where_they_were(tmp_path: Path, undisturbed, monkeypatch) -> None:
    run, gate = tmp_path / "run", tmp_path / "gate"
    with monkeypatch.context() as patch:
        held_at(8, gate, patch)
        process = begun(tmp_path, "run", small("baseline", *SHORT), 2)
    reaches(run, process, 5)
    send(run, RunCommand.PAUSE)
    gate.touch()
    wait_for(lambda: RunReader(run).state == "paused", "the pause", lambda: RunReader(run).status)
    assert_stays_paused(run)
    send(run, RunCommand.CONTINUE)
    ended(process)
    assert state(run) == undisturbed[1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_sixty_kills_and_signals_lose_no_checkpoint_and_leave_no_process(tmp_path: Path, seed: int) -> None:
    undisturbed = trained(tmp_path, "alone", small("baseline", *LONG))
    kills = int(os.environ.get("TUI_TRANSFORMER_KILLS", "60"))
    chance, done, count = random.Random(seed), 0, 0
    while done < kills:
        count += 1
        run = tmp_path / f"run-{count}"
        process = begun(tmp_path, run.name, small("baseline", *LONG), chance.choice((2, 4)))
        while True:
            before = RunReader(run).status.checkpoint
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.0, 6.0))  # a moment, whatever the run does then
            if process.poll() is not None:
                break
            if not hit(run, process, *chance.choice(CASES[:3] if chance.random() < 0.8 else CASES[3:])):
                continue
            done += 1
            kept = RunReader(run).status.checkpoint
            assert before is None or (kept is not None and kept >= before)
            verb = "begin" if RunReader(run).state == "queued" else "resume"
            process = spawn(verb, run, device="cpu", ranks=chance.choice((1, 2, 4)), attached=True)
        if RunReader(run).state != "finished":
            spawn("resume", run, device="cpu").wait(PATIENCE)
        assert state(run) == undisturbed


def test_averaged_gradients_mark_the_run_from_its_start(tmp_path: Path, real_start) -> None:
    config = small("baseline", "train.steps=2", "train.exact_sum=off")
    assert trained(tmp_path, "two", config, 2)["state"] == "finished"
    (first,) = RunReader(tmp_path / "two").environment.attempts
    assert first.bit_exact is False
    assert first.why_not == "with train.exact_sum=off, the bits depend on the number of ranks"


def test_ranks_that_do_not_divide_a_step_are_refused_in_one_line(tmp_path: Path) -> None:
    found = command("run", "--preset", "demo", "--ranks", "3", "--runs-dir", str(tmp_path / "runs"))
    assert found.code == 2
    assert "3 ranks cannot evenly share a step with train.accumulation = 1" in found.err
    assert not list((tmp_path / "runs").glob("*")) if (tmp_path / "runs").exists() else True
