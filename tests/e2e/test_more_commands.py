"""evaluate, watch, data, doctor: from a finished run, in-process."""

import json
import shutil
import threading
from pathlib import Path

import pytest
import torch

from engine.data.catalogue import load_corpus
from engine.data.corpora import TextCorpus
from engine.evaluation.metrics import score_tokens
from engine.model.transformer import build_model
from engine.runs.reader import RunReader
from engine.training.checkpoint import load_network
from tests.waiting import PATIENCE
from tui_transformer.__main__ import main

SETTINGS = [
    *("train.steps=12", "train.batch_size=4", "train.threads=1", "model.d_model=16", "model.n_heads=2"),
    *("model.context_length=32", "evaluation.every=6", "evaluation.sample_length=10", "optimizer.warmup=2"),
    *("data.corpus_size=20000", "data.test_fraction=0.2"),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    overrides = [part for setting in SETTINGS for part in ("--set", setting)]
    assert main(["run", "--preset", "demo", *overrides, "--device", "cpu", "--runs-dir", str(root), "--json"]) == 0
    return root


def evaluated(capsys, runs: Path, *arguments: str) -> dict:
    assert main(["evaluate", "demo", *arguments, "--runs-dir", str(runs), "--device", "cpu", "--json"]) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_evaluate_gives_the_trainers_own_score(runs, capsys) -> None:
    trained = [r for r in RunReader(runs / "demo").raw_lines("metrics") if r["kind"] == "validation"]
    for record in trained:
        found = evaluated(capsys, runs, "--checkpoint", str(record["step"]))
        assert found["loss"] == pytest.approx(record["loss"], abs=1e-9)
        assert found["probes"] == record["probes"] and found["excess"] == pytest.approx(record["excess"], abs=1e-9)


def test_evaluate_names_split_context_stride_and_step(runs, capsys) -> None:
    found = evaluated(capsys, runs, "--split", "test", "--stride", "8", "--checkpoint", "last")
    assert (found["split"], found["context"], found["stride"], found["step"]) == ("test", 32, 8, 12)
    assert main(["evaluate", "demo", "--split", "test", "--stride", "8", "--runs-dir", str(runs)]) == 0
    assert "context 32, stride 8" in capsys.readouterr().out


def test_more_history_a_token_gives_another_score(runs, capsys) -> None:
    a, b = (evaluated(capsys, runs, "--stride", s)["loss"] for s in ("32", "4"))
    assert a != b


def test_a_run_is_read_at_a_longer_context_by_slowed_rotations(runs, capsys) -> None:
    """The score is that of the network with these settings and the run's weights, and says so."""
    own = evaluated(capsys, runs)
    assert evaluated(capsys, runs, "--context", "32") == own and "read_as" not in own
    losses = {}
    for kind in ("none", "linear", "ntk", "yarn", "llama3"):
        found = evaluated(capsys, runs, "--context", "128", "--set", f"model.rope_scaling={kind}", "--stride", "128")
        assert (found["context"], found["stride"]) == (128, 128)
        expected = {"model.context_length": 128, "model.rope_scaling": kind}
        if kind != "none":
            expected |= {"model.rope_original": 32, "model.rope_factor": 4.0}
        assert found["read_as"] == expected
        losses[kind] = found["loss"]
    assert len(set(losses.values())) == 5
    reader = RunReader(runs / "demo")
    changes = {"context_length": 128, "rope_scaling": "yarn", "rope_original": 32, "rope_factor": 4.0}
    weights, tokenizer, _ = load_network(reader)
    model = reader.config.model.model_copy(update=changes)
    by_hand = build_model(model, tokenizer.vocab_size, 1)
    by_hand.load_state_dict(weights.state_dict())
    text = load_corpus(TextCorpus, reader.config.data).splits["validation"].text
    tokens = torch.tensor(tokenizer.encode(text))
    scores = score_tokens(by_hand, tokens, context=128, stride=128, batch_size=8)
    assert losses["yarn"] == pytest.approx(scores.loss, abs=1e-6)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--set", "model.rope_scaling=yarn", "--context", "64", "--set", "model.position=none"], "choose position"),
        (["--context", "64", "--set", "model.position=learned"], "would change the parameters"),
        (["--set", "model.d_ff=8"], "would change the parameters"),
        (["--set", "optimizer.lr=1.0"], "only model.… settings of a trained run"),
        (["--set", "model.rope_scaling=yarn"], "--context 128"),
        (["--set", "model.rope_scalin=yarn"], "model.rope_scaling"),
    ],
)
def test_what_the_weights_depend_on_cannot_be_read_otherwise(runs, capsys, given: list[str], said: str) -> None:
    assert main(["evaluate", "demo", *given, "--runs-dir", str(runs), "--device", "cpu"]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") <= 3


@pytest.mark.parametrize("size", ["1", "7", "1000"])
def test_evaluation_batch_sizes_do_not_change_the_score(runs, capsys, size: str) -> None:
    reference = evaluated(capsys, runs)["loss"]
    assert evaluated(capsys, runs, "--batch-size", size)["loss"] == pytest.approx(reference, abs=1e-6)


def test_another_text_under_the_same_name_is_refused(tmp_path, capsys) -> None:
    text = tmp_path / "text.txt"
    text.write_text("All the world is a stage, and all the men and women merely players. " * 60)
    overrides = [part for setting in SETTINGS[:8] for part in ("--set", setting)]
    common = ["--runs-dir", str(tmp_path / "r"), "--device", "cpu"]
    assert main(["run", "--preset", "demo", *overrides, "--corpus", str(text), *common, "--json"]) == 0
    text.write_text(text.read_text().replace("stage", "stake"))
    assert main(["evaluate", "last", *common]) == 2
    assert "SHA-256 mismatch" in capsys.readouterr().err


def test_watch_follows_a_run_to_its_end(tmp_path, capsys) -> None:
    from engine.training.assemble import assemble
    from tui_transformer.cli.run.run import Request

    more = ("train.steps=60", "log.every=2", "evaluation.every=30")
    request = Request("demo", None, None, (*SETTINGS, *more), None, None)
    ready = assemble(request.resolve(), runs_dir=tmp_path, device="cpu")
    thread = threading.Thread(target=ready.trainer.run)
    thread.start()
    assert main(["watch", "last", "--runs-dir", str(tmp_path), "--json"]) == 0
    thread.join()
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert records[0]["kind"] == "run" and records[-1]["kind"] == "end" and records[-1]["state"] == "finished"
    assert sum(r["kind"] == "train" for r in records) == 30


def test_watching_a_finished_run_shows_what_came_out(runs, capsys) -> None:
    assert main(["watch", "demo", "--runs-dir", str(runs)]) == 0
    assert "validation loss" in capsys.readouterr().out


def test_watching_a_lost_run_says_so(runs, tmp_path, capsys) -> None:
    shutil.copytree(runs / "demo", tmp_path / "demo")
    path = tmp_path / "demo" / "status.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"state": "running", "process_started": 1.0}))
    assert main(["watch", "demo", "--runs-dir", str(tmp_path)]) == 1
    assert ": lost at step 12: its process is gone" in capsys.readouterr().err


def test_watching_a_run_whose_status_is_damaged_says_so(runs, tmp_path, capsys) -> None:
    shutil.copytree(runs / "demo", tmp_path / "demo")
    (tmp_path / "demo" / "status.json").write_text("{")
    assert main(["watch", "demo", "--runs-dir", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "status.json is missing or damaged" in said.err and "validation loss" in said.out


def test_doctor_says_what_this_machine_has(capsys, tmp_path) -> None:
    assert main(["doctor", "--runs-dir", str(tmp_path), "--json"]) == 0
    found = {json.loads(line)["what"] for line in capsys.readouterr().out.splitlines()}
    assert found == {"python", "torch", "device", "memory", "disk", "corpus", "terminal"}


def test_doctor_says_which_checkpoint_is_damaged(runs, tmp_path, capsys) -> None:
    assert main(["doctor", "demo", "--runs-dir", str(runs)]) == 0
    assert "!" not in capsys.readouterr().out
    shutil.copytree(runs / "demo", tmp_path / "demo")
    weights = tmp_path / "demo" / "checkpoints" / "step-00000012" / "optimizer.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    (tmp_path / "demo" / "model.json").write_text("{")
    assert main(["doctor", "demo", "--runs-dir", str(tmp_path), "--json"]) == 1
    bad = {f["what"]: f["found"] for line in capsys.readouterr().out.splitlines() if not (f := json.loads(line))["ok"]}
    assert set(bad) == {"model.json", "step-00000012"} and "optimizer.safetensors is damaged" in bad["step-00000012"]


def test_a_stopped_run_is_resumed_and_finishes(tmp_path, capsys) -> None:
    from engine.runs.commands import RunCommand
    from engine.runs.control import Control
    from engine.training.assemble import assemble
    from tui_transformer.cli.run.run import Request

    control = Control()
    request = Request("demo", None, None, tuple(SETTINGS), None, None)
    ready = assemble(request.resolve(), runs_dir=tmp_path, device="cpu", control=control)
    control.enqueue_command(RunCommand.STOP, "enough")
    ready.trainer.run()
    assert main(["resume", "demo", "--device", "cpu", "--runs-dir", str(tmp_path), "--json"]) == 0
    end = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert end["state"] == "finished" and end["summary"]["step"] == 12
    assert RunReader(tmp_path / "demo").status.attempt == 2


def test_a_command_is_heard_from_the_first_moment_and_acknowledged_when_obeyed(tmp_path) -> None:
    from engine.runs.commands import RunCommand, send
    from engine.training.assemble import assemble
    from tui_transformer.cli.run.run import Request

    request = Request("demo", None, None, (*SETTINGS, "evaluation.every=0"), None, None)
    trainer = assemble(request.resolve(), runs_dir=tmp_path, device="cpu").trainer
    orders = [send(tmp_path / "demo", command) for command in (RunCommand.PAUSE, RunCommand.PAUSE, RunCommand.STOP)]
    seen, write = [], trainer.writer._replace_json

    def record(name: str, data: dict) -> None:
        if name == "status.json":
            seen.append((data["control_id"], data["state"]))
        write(name, data)

    trainer.writer._replace_json = record
    trainer.run()
    allowed = {0: {"starting", "running"}, orders[0]: {"paused"}, orders[1]: {"paused"}}
    assert all(state in allowed.get(number, {"paused", "running", "stopped"}) for number, state in seen), seen
    assert (orders[0], "paused") in seen and seen[-1] == (orders[-1], "stopped")


def test_another_terminal_pauses_continues_and_stops_a_run(tmp_path, capsys) -> None:
    from engine.training.assemble import assemble
    from tui_transformer.cli.run.run import Request

    request = Request("demo", None, None, (*SETTINGS, "train.steps=1000000", "evaluation.every=0"), None, None)
    ready = assemble(request.resolve(), runs_dir=tmp_path, device="cpu")
    thread = threading.Thread(target=ready.trainer.run)
    thread.start()
    for command, state in (("pause", "paused"), ("continue", "running"), ("stop", "stopped")):
        assert main([command, "demo", "--runs-dir", str(tmp_path), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["state"] == state
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_vocabulary_larger_than_the_text_is_built_saved_resumed_and_never_drawn(tmp_path, capsys) -> None:
    sets = [part for setting in (*SETTINGS, "model.vocab_size=300") for part in ("--set", setting)]
    where = ["--runs-dir", str(tmp_path), "--device", "cpu", "--json"]
    assert main(["run", "--preset", "demo", *sets, *where]) == 0
    run = RunReader(tmp_path / "demo")
    assert run.raw("model")["components"]["token embedding"] == 300 * 16
    capsys.readouterr()
    assert main(["sample", "demo", "--prompt", "a", "--length", "30", "--temperature", "9", *where]) == 0
    assert len(json.loads(capsys.readouterr().out)["text"]) == 30
