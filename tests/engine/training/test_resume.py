"""k steps, an interruption anywhere, the rest: bit for bit what an undisturbed run gives. Over every preset."""

import json
import shutil
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.base.errors import InputError
from engine.config import presets
from engine.config.keys import parse_overrides
from engine.config.schema import RunConfig
from engine.runs.commands import RunCommand, send
from engine.runs.control import Control
from engine.runs.reader import RunReader
from engine.training.assemble import assemble, resume
from tests.small_documents import config as documents
from tests.small_documents import folder
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.usefixtures("cached_checks", "cached_corpora", "minimal_leak_probe")

CLOCKS = {"seconds", "tokens_per_second", "device_load", "memory_bytes", "interval_seconds"}
IN_CI = (  # one of each kind: what is new in the others has tests of its own
    *("baseline", "linear", "encoder-mlm", "copy", "phrasebook", "report-decoder", "biographies-scratch"),
    *("bulletins", "headlines", "headlines-decoder"),
)
NAMES = [
    pytest.param(name, marks=() if name in IN_CI else pytest.mark.slow)
    for name in (preset.name for preset in presets.list_presets())
]
# Two micro-batches a step, two steps an epoch, an evaluation in several batches.
HARD = ("train.accumulation=2", "data.corpus_size=10000", "data.window_stride=600", "evaluation.batch_size=8")
HARD_ROWS = (  # ends of epochs too
    *("train.accumulation=2", "train.batch_tokens=160", "evaluation.batch_size=8", "evaluation.translations=4"),
)
MOST_ROWS = 400
SIX_STEPS = ("train.steps=6", "data.corpus_size=10000", "evaluation.every=6", "evaluation.sample_every=0")


class StopAt(Control):
    """Asks to stop at the n-th time that the trainer listens, wherever it is then."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.left = n

    def _listen(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.enqueue_command(RunCommand.STOP, "test")

    def poll(self) -> RunCommand | None:
        self._listen()
        return super().poll()

    def stop_is_queued(self) -> bool:
        self._listen()
        return super().stop_is_queued()


class StopAfter(StopAt):
    """Asks to stop after a step."""

    def __init__(self, step: int) -> None:
        super().__init__(step + 1)  # it is asked once before the first

    def stop_is_queued(self) -> bool:
        return Control.stop_is_queued(self)


def miniature(name: str, *changes: str) -> RunConfig:
    config = presets.resolve(presets.find(name)).miniature()
    tables = config.dump()
    for override in parse_overrides(changes):
        tables = presets.merge(tables, override)
    return RunConfig.model_validate(tables)


def without_clocks(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_clocks(v) for k, v in value.items() if k not in CLOCKS and k != "offsets"}
    return [without_clocks(v) for v in value] if isinstance(value, list) else value


def outcome(run: Path) -> dict[str, Any]:
    """All that a run leaves behind but its clocks."""
    reader = RunReader(run)
    last = run / "checkpoints" / (run / "checkpoints" / "last").read_text().strip()
    return {
        "metrics": without_clocks(list(reader.raw_lines("metrics"))),
        "samples": list(reader.raw_lines("samples")),
        "summary": without_clocks(reader.raw("summary")),
        "verdicts": reader.verdicts,
        "state": without_clocks(json.loads((last / "state.json").read_text())),
        "weights": (last / "model.safetensors").read_bytes(),
        "moments": (last / "optimizer.safetensors").read_bytes(),
        "best": (run / "checkpoints" / "best").read_text(),
    }


def whole(config: RunConfig, root: Path) -> tuple[dict[str, Any], int]:
    """An undisturbed run, and how often it listened."""
    control = StopAt(10**9)
    ready = assemble(config, runs_dir=root, name="whole", device="cpu", control=control)
    assert ready.trainer.run().state == "finished"
    return outcome(ready.path), 10**9 - control.left


def broken(
    config: RunConfig, root: Path, n: int, *, in_thread: bool = False, stop: type[StopAt] = StopAt
) -> dict[str, Any]:
    """The same run, stopped at the n-th listening (or after step n) and resumed."""
    ready = assemble(config, runs_dir=root, name=f"broken-{n}", device="cpu", control=stop(n))
    if ready.trainer.run().state == "finished":
        return outcome(ready.path)
    again = resume(ready.path, device="cpu")
    if in_thread:
        thread = threading.Thread(target=again.trainer.run)
        thread.start()
        thread.join()
    else:
        again.trainer.run()
    reader = RunReader(ready.path)
    assert reader.status.state == "finished" and reader.status.attempt == 2
    assert reader.raw("environment")["attempts"][1]["bit_exact"] is True
    return outcome(ready.path)


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_resumes_bit_for_bit_at_four_points(name: str, tmp_path) -> None:
    """At its first listening, after a third, after two thirds, just before its end; each time the same run goes on, so
    that what is lost anywhere is missing at its end.
    """
    rows, size = presets.resolve(presets.find(name)).trains_on_rows, miniature(name).data.corpus_size
    config = miniature(name, *((*HARD_ROWS, f"data.corpus_size={min(size, MOST_ROWS)}") if rows else HARD))
    expected, listened = whole(config, tmp_path)
    ready = assemble(config, runs_dir=tmp_path, name="run", device="cpu", control=StopAt(1))
    for _ in range(2):
        assert ready.trainer.run().state == "stopped"
        ready = resume(ready.path, device="cpu", control=StopAt(listened // 3))
    assert ready.trainer.run().state == "stopped"
    last = StopAt(10**9)  # how many listenings are left
    spared = resume(Path(shutil.copytree(ready.path, tmp_path / "spared")), device="cpu", control=last)
    assert spared.trainer.run().state == "finished" and outcome(spared.path) == expected
    ready = resume(ready.path, device="cpu", control=StopAt(10**9 - last.left - 2))
    assert ready.trainer.run().state == "stopped"
    assert resume(ready.path, device="cpu").trainer.run().state == "finished" and outcome(ready.path) == expected
    assert [attempt["bit_exact"] for attempt in RunReader(ready.path).raw("environment")["attempts"]] == [True] * 5


def test_parts_of_layers_that_are_dropped_are_the_same_after_a_resumption(tmp_path) -> None:
    config = miniature("demo", *HARD, "model.layer_drop=0.5", "model.layer_scale=0.1", "model.embedding_mix=true")
    expected, listened = whole(config, tmp_path)
    assert broken(config, tmp_path, listened // 2) == expected


@pytest.mark.parametrize(
    ("kind", "reads"),
    [
        ("span-corruption", False),
        pytest.param("span-corruption", True, marks=pytest.mark.slow),
        ("question-answer", False),
    ],
)
def test_runs_on_documents_and_questions_resume_bit_for_bit(kind: str, reads: bool, tmp_path) -> None:
    """Over the ends of epochs: what is cut and masked is drawn again as it was."""
    tables = {"train": {"accumulation": 2, "batch_size": 3, "steps": 4}, "model": {"dropout": 0.1}}
    own = {"corpus": str(folder(tmp_path / "data")), "corpus_size": None}
    config = documents(kind, reads=reads, evaluation={"every": 2, "batch_size": 8}, data=own, **tables)
    expected, listened = whole(config, tmp_path)
    assert broken(config, tmp_path, listened // 2) == expected
    answers = [path.read_text() for path in sorted(tmp_path.glob("*/predictions.txt"))]
    assert len(answers) == (2 if kind == "question-answer" else 0) and len(set(answers)) <= 1


@pytest.mark.parametrize(
    "changes",
    [
        ("optimizer.schedule=linear",),
        ("optimizer.schedule=wsd",),
        ("optimizer.kind=muon",),
        ("optimizer.kind=muon", "optimizer.matrix_lr=0.002", "optimizer.nesterov=false"),
        ("optimizer.kind=lion",),
        ("optimizer.kind=sgd",),
        ("optimizer.kind=sgd", "optimizer.momentum=0.0"),
        ("optimizer.embedding_lr=0.01", "optimizer.head_lr=0.0005"),
        ("objective.z_loss=0.001",),
        ("train.ema=0.9",),
        ("train.ema=0.5", "optimizer.kind=muon"),
    ],
)
@pytest.mark.usefixtures("no_self_check")
def test_every_way_of_taking_steps_resumes_bit_for_bit(changes: tuple[str, ...], tmp_path) -> None:
    """Six steps at once are three, and three more after a resume."""
    config = miniature("demo", *SIX_STEPS, "optimizer.warmup=1", *changes)
    expected, _ = whole(config, tmp_path)
    assert broken(config, tmp_path, 3, stop=StopAfter) == expected
    assert [e["step"] for e in RunReader(tmp_path / "broken-3").raw_lines("events") if e["event"] == "resumed"] == [3]
    assert ("ema" in expected["summary"]) == bool(config.train.ema)
    averages = [(run / "checkpoints/ema/model.safetensors") for run in tmp_path.iterdir()]
    assert len({path.read_bytes() for path in averages if path.exists()}) == bool(config.train.ema)


@pytest.mark.usefixtures("no_self_check")
@pytest.mark.parametrize("bug", ["not written", "not read", "begun anew"])
def test_a_moving_average_that_is_not_resumed_is_noticed(bug: str, tmp_path, monkeypatch) -> None:
    """One that is lost on the way to or from a file is refused; one that begins anew is not the same to the bit."""
    from engine.training import checkpoint, trainer

    config = miniature("demo", *SIX_STEPS, "train.ema=0.9")
    expected, _ = whole(config, tmp_path)
    save, load = checkpoint.moments_of, checkpoint.load_state

    def saved(model, optimizer):
        return {name: value for name, value in save(model, optimizer).items() if not name.endswith("/ema")}

    def loaded(folder, model, optimizer):
        state = load(folder, model, optimizer)
        for kept in optimizer.state.values():
            del kept["ema"]
        return state

    if bug == "not written":
        monkeypatch.setattr(checkpoint, "moments_of", saved)
    if bug == "not read":
        adam = ("step", "exp_avg", "exp_avg_sq")
        monkeypatch.setattr(checkpoint, "state_names", lambda optimizer: defaultdict(lambda: adam))
    if bug == "begun anew":
        monkeypatch.setattr(trainer.checkpoint, "load_state", loaded)
        found = broken(config, tmp_path, 3, stop=StopAfter)
        assert found["weights"] == expected["weights"] and found["metrics"] == expected["metrics"]
        assert found["moments"] != expected["moments"] and found["summary"]["ema"] != expected["summary"]["ema"]
    else:
        with pytest.raises(InputError, match="/ema' is missing or does not belong here"):
            broken(config, tmp_path, 3, stop=StopAfter)


FIFTH = pytest.param("fp32", 5, id="fp32-each-fifth")
ALL = [pytest.param(precision, 1, marks=pytest.mark.slow, id=precision) for precision in ("fp32", "bf16")]


@pytest.mark.parametrize(("precision", "every"), [FIFTH, *ALL])
def test_wherever_it_listens_it_can_be_interrupted(precision: str, every: int, tmp_path) -> None:
    """Between steps, in accumulation, in an evaluation, in a sample, at an epoch's end: every place there is."""
    config = miniature("baseline", *HARD, "train.steps=4", "evaluation.every=2", f"train.precision={precision}")
    expected, listened = whole(config, tmp_path)
    for n in range(1, listened + 1, every):
        assert broken(config, tmp_path, n, in_thread=n % 2 == 0) == expected, n


def test_a_run_may_be_interrupted_many_times(tmp_path) -> None:
    config = miniature("demo", *HARD)
    expected, _ = whole(config, tmp_path)
    ready = assemble(config, runs_dir=tmp_path, name="often", device="cpu", control=StopAt(3))
    attempts = 1
    while ready.trainer.run().state != "finished" and attempts < 50:
        attempts += 1
        ready = resume(ready.path, device="cpu", control=StopAt(27))
    assert attempts > 2 and outcome(ready.path) == expected


def stopped(tmp_path: Path, n: int = 8) -> Path:
    ready = assemble(miniature("demo", *SIX_STEPS), runs_dir=tmp_path, name="run", device="cpu", control=StopAt(n))
    assert ready.trainer.run().state == "stopped"
    return ready.path


@pytest.mark.parametrize("missing", ["step", "best", "offsets", "interval_nll", "evaluations_since_best"])
def test_a_missing_piece_of_state_is_an_error(tmp_path, missing: str) -> None:
    run = stopped(tmp_path)
    from engine.training import checkpoint

    folder, _ = checkpoint.newest_intact(run)
    state = json.loads((folder / "state.json").read_text())
    del state[missing]
    (folder / "state.json").write_text(json.dumps(state))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sha256"]["state.json"] = checkpoint._sha256(folder / "state.json")
    (folder / "manifest.json").write_text(checkpoint._manifest_text(manifest))
    with pytest.raises(InputError, match=f"'{missing}' is missing"):
        resume(run, device="cpu")


def test_missing_moments_are_an_error(tmp_path) -> None:
    from safetensors.torch import load_file, save_file

    from engine.training import checkpoint

    run = stopped(tmp_path)
    folder, _ = checkpoint.newest_intact(run)
    moments = load_file(folder / "optimizer.safetensors")
    moments.pop(next(iter(moments)))
    save_file(moments, folder / "optimizer.safetensors")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sha256"]["optimizer.safetensors"] = checkpoint._sha256(folder / "optimizer.safetensors")
    (folder / "manifest.json").write_text(checkpoint._manifest_text(manifest))
    with pytest.raises(InputError, match="is missing or does not belong here"):
        resume(run, device="cpu")


def test_metrics_that_lost_records_are_an_error(tmp_path) -> None:
    run = stopped(tmp_path)
    (run / "metrics.jsonl").write_text("")
    with pytest.raises(InputError, match="records are missing"):
        resume(run, device="cpu")


def test_events_are_kept_and_say_that_it_was_resumed(tmp_path) -> None:
    run = stopped(tmp_path)
    before = (run / "events.jsonl").read_text()
    resume(run, device="cpu").trainer.run()
    after = (run / "events.jsonl").read_text()
    assert after.startswith(before) and '"event":"resumed"' in after and '"attempt":2' in after


def test_a_finished_run_is_not_resumed(tmp_path) -> None:
    ready = assemble(miniature("demo"), runs_dir=tmp_path, name="run", device="cpu")
    ready.trainer.run()
    with pytest.raises(InputError, match="is finished"):
        resume(ready.path, device="cpu")


def test_a_damaged_checkpoint_is_skipped_named_and_kept(tmp_path) -> None:
    config = miniature("demo", *HARD, "checkpoint.every=1", "checkpoint.keep_last=5")
    expected, _ = whole(config, tmp_path)
    ready = assemble(config, runs_dir=tmp_path, name="run", device="cpu", control=StopAt(25))
    ready.trainer.run()
    newest = sorted((ready.path / "checkpoints").glob("step-*"))[-1]
    (newest / "model.safetensors").write_bytes(b"torn")
    again = resume(ready.path, device="cpu")
    assert again.trainer.state.step == int(newest.name[5:]) - 1
    again.trainer.run()
    assert outcome(ready.path) == expected
    assert [
        p for p in (ready.path / "checkpoints").glob("damaged-*") if (p / "model.safetensors").read_bytes() == b"torn"
    ]
    assert any(newest.name in e["text"] for e in RunReader(ready.path).raw_lines("events"))


def test_an_old_stop_never_stops_a_resumed_run(tmp_path) -> None:
    run = stopped(tmp_path)
    send(run, RunCommand.STOP)
    ready = resume(run, device="cpu")
    assert ready.trainer.run().state == "finished"


def test_pause_keeps_the_process_and_continue_goes_on(tmp_path) -> None:
    config = miniature("demo", "train.steps=1000000", "evaluation.every=0", "checkpoint.every=0", "log.every=100")
    ready = assemble(config, runs_dir=tmp_path, name="run", device="cpu")
    reader = RunReader(ready.path)
    thread = threading.Thread(target=ready.trainer.run, daemon=True)
    thread.start()

    def reached(state: str) -> int:
        wait_for(lambda: reader.status.state == state or not thread.is_alive(), f"a {state} run", lambda: reader.status)
        assert reader.status.state == state
        return int(reader.status.step)

    reached("running")
    number = send(ready.path, RunCommand.PAUSE)
    at = reached("paused")
    assert reader.status.control_id == number and ready.trainer.state.step == at
    assert (ready.path / "checkpoints" / f"step-{at:08d}").is_dir()
    send(ready.path, RunCommand.CONTINUE)
    reached("running")
    send(ready.path, RunCommand.STOP)
    thread.join(timeout=PATIENCE)
    assert reader.status.state == "stopped" and reader.status.control_id == 3


def test_another_thread_count_is_said_to_be_inexact(tmp_path, monkeypatch) -> None:
    run = stopped(tmp_path)
    path = run / "environment.json"
    facts = json.loads(path.read_text())
    facts["attempts"][0]["processor"] = "another"
    path.write_text(json.dumps(facts))
    resume(run, device="cpu").trainer.run()
    entry = RunReader(run).raw("environment")["attempts"][1]
    assert entry["bit_exact"] is False and entry["why_not"].startswith("processor was another")


def test_a_failed_run_keeps_its_last_good_state(tmp_path) -> None:
    ready = assemble(miniature("demo"), runs_dir=tmp_path, name="run", device="cpu")
    trainer, real = ready.trainer, ready.trainer.batches

    class Poisoned:
        objective, windows = real.objective, real.windows

        def batch(self, step: int, micro: int):
            if step == 3:
                with torch.no_grad():
                    trainer.model.head.weight[0, 0] = float("nan")
            return real.batch(step, micro)

    trainer.stepper.batches = Poisoned()
    result = trainer.run()
    assert result.state == "failed" and "step 3" in result.reason and result.step == 2
    assert RunReader(ready.path).raw("summary").get("best") is None


def test_a_kill_between_a_checkpoint_and_the_word_that_it_is_the_last_leaves_no_stale_word(tmp_path) -> None:
    config = miniature("demo", "train.steps=9", "checkpoint.every=3", "evaluation.every=0")
    run = assemble(config, runs_dir=tmp_path, name="run", device="cpu").path
    ready = assemble(config, runs_dir=tmp_path, name="whole", device="cpu")
    ready.trainer.run()
    shutil.rmtree(run)
    shutil.copytree(ready.path, run)
    (run / "checkpoints" / "last").write_text("step-00000006\n")
    status = json.loads((run / "status.json").read_text())
    (run / "status.json").write_text(
        json.dumps(status | {"state": "stopped", "step": 6, "checkpoint": "step-00000006"})
    )
    assert resume(run, device="cpu").trainer.run().state == "finished"
    assert RunReader(run).status.checkpoint == "step-00000009"
    assert outcome(run) == outcome(ready.path)
