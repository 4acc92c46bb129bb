import json
import threading
from pathlib import Path

import pytest
import torch

from engine.base.errors import InputError
from engine.model.size import optimizer_state_numbers
from engine.runs.commands import RunCommand
from engine.runs.control import Control
from engine.runs.reader import RunReader
from engine.training.assemble import assemble
from engine.training.checkpoint import load_network, moments_of, weights_of
from engine.training.step import Stepper
from engine.training.trainer import Trainer
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.usefixtures("cached_corpora", "minimal_leak_probe", "no_self_check")

CLOCK_FIELDS = ("seconds", "tokens_per_second", "device_load", "memory_bytes")
QUIET = ("evaluation.every=0", "evaluation.sample_every=0", "checkpoint.every=0")  # until the end


def train(config, root: Path, name: str = "run", control: Control | None = None) -> tuple[Trainer, RunReader]:
    ready = assemble(config, runs_dir=root, name=name, device="cpu", control=control)
    outcome = ready.trainer.run()
    reader = RunReader(ready.path)
    assert reader.status.state == outcome.state
    return ready.trainer, reader


def metrics(reader: RunReader) -> list[dict]:
    return [{k: v for k, v in r.items() if k not in CLOCK_FIELDS} for r in reader.raw_lines("metrics")]


def test_a_run_directory_holds_everything_that_was_asked_built_and_measured(tiny, tmp_path) -> None:
    _, run = train(tiny(), tmp_path)
    names = {path.name for path in run.path.iterdir()}
    assert names >= {
        *("run.json", "config.toml", "model.json", "data.json", "environment.json", "metrics.jsonl", "events.jsonl"),
        *("samples.jsonl", "checks.json", "summary.json", "status.json", "tokenizer.json", "checkpoints"),
    }
    assert run.status.state == "finished" and run.status.step == 6
    assert run.config.model.vocab_size == run.raw("data")["vocabulary"] and run.config.train.threads == 1
    assert run.raw("model")["parameters"] == sum(run.raw("model")["components"].values())
    assert run.raw("data")["floor"]["nats_per_char"] > 0
    kinds = [(r["kind"], r["step"]) for r in run.raw_lines("metrics")]
    assert [step for kind, step in kinds if kind == "train"] == [1, 2, 3, 4, 5, 6]
    assert [step for kind, step in kinds if kind == "validation"] == [3, 6]
    assert kinds.index(("validation", 3)) == kinds.index(("train", 3)) + 1
    assert [s["step"] for s in run.raw_lines("samples")] == [3, 6]
    assert [v.when for v in run.verdicts if v.check == "leak"] == ["before", "after"]
    assert all(v.when == "before" for v in run.verdicts if v.check != "leak")
    assert all(v.verdict == "ok" for v in run.verdicts)
    for path in run.path.glob("*.json"):
        assert json.loads(path.read_text())["schema"] == 1, path


def test_equal_seeds_give_equal_runs_and_others_do_not(tiny, tmp_path) -> None:
    config = tiny("model.dropout=0.2", "model.attention_dropout=0.2")
    (a, run_a), (b, run_b) = train(config, tmp_path, "a"), train(config, tmp_path, "b")
    _, run_c = train(tiny("seed=2"), tmp_path, "c")
    assert metrics(run_a) == metrics(run_b) != metrics(run_c)
    assert all(torch.equal(x, y) for x, y in zip(a.model.parameters(), b.model.parameters(), strict=True))
    assert list(run_a.raw_lines("samples")) == list(run_b.raw_lines("samples"))


def test_a_thread_trains_the_same_as_the_main_thread(tiny, tmp_path) -> None:
    config = tiny("model.dropout=0.2")
    _, here = train(config, tmp_path, "here")
    ready = assemble(config, runs_dir=tmp_path, name="there", device="cpu")
    thread = threading.Thread(target=ready.trainer.run)
    thread.start()
    thread.join()
    assert metrics(here) == metrics(RunReader(ready.path))


def test_looking_more_often_does_not_change_what_is_learned(tiny, tmp_path) -> None:
    config = tiny("model.dropout=0.2", "evaluation.every=0", "evaluation.sample_every=0", "checkpoint.every=0")
    a, _ = train(config, tmp_path, "a")
    often = tiny("model.dropout=0.2", "evaluation.every=1", "evaluation.sample_every=1", "checkpoint.every=1")
    b, _ = train(often, tmp_path, "b")
    assert all(torch.equal(x, y) for x, y in zip(a.model.parameters(), b.model.parameters(), strict=True))


def test_accumulated_micro_batches_make_the_gradient_of_their_union(tiny, tmp_path) -> None:
    """Σ nll / Σ tokens over the whole step: two halves are one batch."""
    config = tiny("train.accumulation=2", "train.steps=1", "optimizer.warmup=0")
    ready = assemble(config, runs_dir=tmp_path, name="a", device="cpu")
    trainer, halves = ready.trainer, [ready.trainer.batches.batch(1, micro) for micro in (0, 1)]
    model = trainer.model
    logits = model(torch.cat([h.tokens for h in halves]))
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.cat([h.targets for h in halves]).flatten())
    loss.backward()
    expected = torch.stack([p.grad.norm() for p in model.parameters()]).norm().item()
    trainer.run()
    record = next(RunReader(ready.path).raw_lines("metrics"))
    assert record["grad_norm"] == pytest.approx(expected, rel=1e-5)
    assert record["loss"] == pytest.approx(loss.item(), rel=1e-6)
    assert record["tokens"] == 2 * 4 * 16


def test_the_train_loss_is_over_all_tokens_since_the_last_record(tiny, tmp_path) -> None:
    _, each = train(tiny("log.every=1"), tmp_path, "each")
    _, every = train(tiny("log.every=3"), tmp_path, "every")
    losses = [r["loss"] for r in each.raw_lines("metrics") if r["kind"] == "train"]
    thirds = [r["loss"] for r in every.raw_lines("metrics") if r["kind"] == "train"]
    assert thirds == pytest.approx([sum(losses[:3]) / 3, sum(losses[3:]) / 3])


def test_training_lowers_the_loss_below_the_unigram_line(tiny, tmp_path) -> None:
    _, run = train(tiny("train.steps=120", "train.batch_size=16", "evaluation.every=120"), tmp_path)
    assert run.raw("summary")["last"]["loss"] < run.raw("data")["unigram"] - 0.2
    assert run.raw("summary")["last"]["excess"] > 0


def test_a_stop_keeps_a_checkpoint_of_the_step_it_reached(tiny, tmp_path) -> None:
    control = Control()
    ready = assemble(tiny("train.steps=100000"), runs_dir=tmp_path, name="a", device="cpu", control=control)
    thread = threading.Thread(target=ready.trainer.run, daemon=True)
    thread.start()
    wait_for(lambda: ready.trainer.state.step >= 7 or not thread.is_alive(), "step 7")
    control.enqueue_command(RunCommand.STOP, "enough")
    thread.join(PATIENCE)
    run = RunReader(ready.path)
    assert run.status.state == "stopped" and run.status.reason == "enough"
    step = ready.trainer.state.step
    assert run.status.checkpoint == f"step-{step:08d}"
    model, _, saved = load_network(run, "last")
    assert saved == step and list(run.raw_lines("metrics"))[-1]["step"] <= step
    for name, value in weights_of(ready.trainer.model).items():
        assert torch.equal(value, weights_of(model)[name])


def test_a_loss_that_is_no_number_fails_the_run_and_names_the_step(tiny, tmp_path) -> None:
    ready = assemble(tiny(), runs_dir=tmp_path, name="a", device="cpu")
    with torch.no_grad():
        ready.trainer.model.head.weight.fill_(float("nan"))
    outcome = ready.trainer.run()
    assert outcome.state == "failed" and "is NaN or infinite at step 1" in outcome.reason
    assert RunReader(ready.path).status.reason == outcome.reason


def test_a_leak_while_training_is_stamped(tiny, tmp_path) -> None:
    from engine.config.visibility import Visibility

    ready = assemble(tiny(), runs_dir=tmp_path, name="a", device="cpu")
    for layer in ready.trainer.model.layers:
        layer.attention.visibility = Visibility(causal=False)
    ready.trainer.run()
    assert {v.verdict for v in RunReader(ready.path).verdicts} == {"LEAK"}


def test_best_and_last_checkpoints_are_kept_and_others_pruned(tiny, tmp_path) -> None:
    _, run = train(tiny("train.steps=12", "checkpoint.every=1", "checkpoint.keep_last=2"), tmp_path)
    best = run.raw("summary")["best"]["step"]
    kept = {int(p.name[5:]) for p in (run.path / "checkpoints").glob("step-*")}
    assert kept == {best, 11, 12}
    assert (
        load_network(run, "best")[2] == best and load_network(run, "last")[2] == 12 and load_network(run, "11")[2] == 11
    )
    with pytest.raises(InputError, match="no checkpoint '5'; it has best, last and steps"):
        load_network(run, "5")


def test_damaged_weights_are_not_loaded(tiny, tmp_path) -> None:
    _, run = train(tiny(), tmp_path)
    path = run.path / "checkpoints" / "step-00000006" / "model.safetensors"
    raw = bytearray(path.read_bytes())
    raw[-3] ^= 1
    path.write_bytes(raw)
    with pytest.raises(InputError, match="damaged"):
        load_network(run, "last")


def test_nothing_is_left_behind_when_the_input_is_bad(tiny, tmp_path) -> None:
    for change in ("model.context_length=50000", "model.vocab_size=5", "evaluation.sample_prompt=日本"):
        with pytest.raises(InputError):
            assemble(tiny(change), runs_dir=tmp_path, device="cpu")
    assert list(tmp_path.iterdir()) == []


def test_patience_ends_a_run_that_gets_no_better(tiny, tmp_path) -> None:
    changes = (
        "train.steps=400",
        "evaluation.every=2",
        "evaluation.patience=3",
        "optimizer.lr=0.5",
        "checkpoint.every=0",
    )
    trainer, run = train(tiny(*changes, "evaluation.sample_length=0"), tmp_path)
    best = run.raw("summary")["best"]["step"]
    assert run.status.state == "finished" and trainer.state.step == best + 6 < 400
    assert "no improvement for 3 evaluations" in run.status.reason


def test_bf16_trains_with_fp32_weights_and_scores_in_fp32(tiny, tmp_path) -> None:
    trainer, run = train(tiny("train.precision=bf16", "train.steps=30", *QUIET), tmp_path)
    assert run.raw("model")["built"]["precision"] == "bf16"
    assert all(p.dtype == torch.float32 for p in trainer.model.parameters())
    assert all(s.dtype == torch.float32 for p in trainer.stepper.optimizer.state.values() for s in p.values())
    exact = trainer.scorer.token_scores(trainer.model).loss
    assert run.raw("summary")["last"]["loss"] == pytest.approx(exact, abs=1e-7)
    _, fp32 = train(tiny("train.steps=30", *QUIET), tmp_path, "fp32")
    a, b = run.raw("summary")["last"]["loss"], fp32.raw("summary")["last"]["loss"]
    assert a != b and a == pytest.approx(b, abs=0.05)


def test_auto_precision_says_what_it_chose(tiny, tmp_path) -> None:
    _, run = train(tiny("train.precision=auto"), tmp_path)
    assert run.raw("model")["built"]["precision"] == "fp32"
    assert any("in fp32" in event["text"] for event in run.raw_lines("events"))


def test_epochs_of_windows_train_as_many_steps_as_they_need(tiny, tmp_path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("To be, or not to be, that is the question. " * 10)
    changes = ("data.window_stride=8", "train.epochs=2", f"data.corpus={text}")
    tables = tiny(*changes)
    trainer, run = train(tables, tmp_path)
    n_windows = (387 - 16 - 1) // 8 + 1
    assert run.config.train.steps == trainer.state.step == 2 * -(-n_windows // 4)
    assert trainer.state.tokens == 2 * n_windows * 16


def two_at_most(model: torch.nn.Module, inputs: tuple) -> None:
    """A device with room for two windows at a time."""
    if model.training and len(inputs[0]) > 2:
        raise torch.OutOfMemoryError("CUDA out of memory")


def on_a_small_device(config, root: Path, name: str):
    ready = assemble(config, runs_dir=root, name=name, device="cpu")
    ready.trainer.model.register_forward_pre_hook(two_at_most)
    return ready.trainer.run(), RunReader(ready.path)


def test_out_of_memory_is_one_line_that_says_what_would_fit(tiny, tmp_path) -> None:
    outcome, run = on_a_small_device(tiny("train.batch_size=8"), tmp_path, "run")
    assert outcome.state == "failed" and outcome.step == 0
    assert "train.batch_size=4" in outcome.reason and "auto_batch=true" in outcome.reason
    assert load_network(run, "last")[2] == 0


def test_auto_batch_computes_in_pieces_and_learns_the_same(tiny, tmp_path) -> None:
    config = tiny("train.batch_size=8", "train.auto_batch=true")
    outcome, run = on_a_small_device(config, tmp_path, "small")
    assert outcome.state == "finished"
    events = [e for e in run.raw_lines("events") if e["event"] == "auto_batch"]
    assert [e["text"][-8:] for e in events] == ["2 pieces", "4 pieces"]
    _, whole = train(config, tmp_path, "whole")
    for a, b in zip(metrics(run), metrics(whole), strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-5)


@pytest.mark.parametrize(
    "model", ["architecture=decoder", "architecture=encoder-decoder"], ids=["decoder", "encoder-decoder"]
)
def test_activation_checkpointing_learns_bit_for_bit_the_same(tiny, tmp_path, model: str) -> None:
    kinds = {"architecture=encoder-decoder": ["objective.kind=copy", "model.source_length=8"]}
    found = []
    for name, wanted in (("kept", "false"), ("again", "true")):
        config = tiny(
            f"model.{model}", *kinds.get(model, []), "model.dropout=0.3", f"train.activation_checkpointing={wanted}"
        )
        trainer, run = train(config, tmp_path, name)
        found.append(({n: w.clone() for n, w in weights_of(trainer.model).items()}, [m["loss"] for m in metrics(run)]))
    assert found[0][1] == found[1][1]
    assert all(torch.equal(found[0][0][name], found[1][0][name]) for name in found[0][0])


def test_the_mean_of_the_last_checkpoints_is_saved_and_scored(tiny, tmp_path) -> None:
    trainer, run = train(tiny("train.steps=9", "checkpoint.average_last=3", "checkpoint.every=1"), tmp_path)
    assert run.raw("summary")["average"]["steps"] == [7, 8, 9]
    average, _, step = load_network(run, "average")
    assert step == 9
    each = [weights_of(load_network(run, str(s))[0]) for s in (7, 8, 9)]
    for name, value in weights_of(average).items():
        assert torch.allclose(value, sum(weights[name] for weights in each) / 3, atol=1e-7)
        assert torch.equal(dict(trainer.model.named_parameters())[name], each[2][name])
    assert trainer.scorer.token_scores(average).loss == pytest.approx(run.raw("summary")["average"]["loss"], abs=1e-7)


def test_z_loss_is_minimised_and_not_reported(tiny, tmp_path) -> None:
    """At the first step, the loss is the same without it; it moves the logits' normaliser towards 1."""
    found = {}
    for z_loss in (0.0, 1.0):
        trainer, run = train(tiny(f"objective.z_loss={z_loss}", "train.steps=30", *QUIET), tmp_path, f"z{z_loss:g}")
        batch = trainer.batches.batch(1, 0)
        log_z = trainer.model.eval()(*batch.inputs).logsumexp(-1)
        found[z_loss] = metrics(run)[0]["loss"], log_z.square().mean().item()
    assert found[0.0][0] == found[1.0][0] and found[1.0][1] < 0.1 * found[0.0][1]


def test_a_moving_average_of_the_weights_is_saved_and_scored(tiny, tmp_path) -> None:
    trainer, run = train(
        tiny("train.steps=5", "train.ema=0.75", "checkpoint.every=1", "checkpoint.keep_last=9"), tmp_path
    )
    average, _, step = load_network(run, "ema")
    assert step == 5
    each = [weights_of(load_network(run, str(s))[0]) for s in (1, 2, 3, 4, 5)]
    for name, value in weights_of(average).items():
        expected = each[0][name]
        for weights in each[1:]:
            expected = 0.75 * expected + 0.25 * weights[name]
        assert torch.allclose(value, expected, atol=1e-7) and not torch.equal(value, each[-1][name])
        assert torch.equal(dict(trainer.model.named_parameters())[name], each[-1][name])
    assert trainer.scorer.token_scores(average).loss == pytest.approx(run.raw("summary")["ema"]["loss"], abs=1e-7)
    kept = sum(value.numel() for state in trainer.stepper.optimizer.state.values() for value in state.values())
    assert optimizer_state_numbers(run.config, trainer.model.vocab_size) == kept - len(each[0])  # without Adam's step


def test_a_run_without_steps_has_its_first_weights_for_a_moving_average(tiny, tmp_path) -> None:
    _, run = train(tiny("train.steps=0", "train.ema=0.9"), tmp_path)
    first = weights_of(load_network(run, "last")[0])
    assert all(torch.equal(value, first[name]) for name, value in weights_of(load_network(run, "ema")[0]).items())


def read_later(config, root: Path, name: str) -> tuple[Trainer, RunReader]:
    """A run whose results are read at its log points, as on CUDA."""
    ready = assemble(config, runs_dir=root, name=name, device="cpu")
    ready.trainer.stepper = Stepper(config, ready.trainer.model, ready.trainer.batches, deferred=True)
    ready.trainer.run()
    return ready.trainer, RunReader(ready.path)


@pytest.mark.parametrize("kind", ["adamw", "muon", "lion", "sgd"])
def test_results_that_are_read_later_are_the_same(tiny, tmp_path, kind: str) -> None:
    config = tiny(
        *("train.steps=11", "train.accumulation=2", "log.every=4", "checkpoint.every=5", "evaluation.every=7"),
        *(f"optimizer.kind={kind}", "train.ema=0.9"),
    )
    (first, now), (second, later) = train(config, tmp_path, "now"), read_later(config, tmp_path, "later")
    mine, others = (moments_of(trainer.model, trainer.stepper.optimizer) for trainer in (first, second))
    assert mine.keys() == others.keys() and all(torch.equal(value, others[name]) for name, value in mine.items())
    clocks = ("seconds", "tokens_per_second", "device_load", "memory_bytes")
    found = [[{k: v for k, v in m.items() if k not in clocks} for m in metrics(run)] for run in (now, later)]
    assert found[0] == found[1] and [m["step"] for m in found[0] if m["kind"] == "train"] == [4, 8, 11]


@pytest.mark.parametrize("changes", [(), ("optimizer.kind=muon", "train.ema=0.9")], ids=["adamw", "muon"])
def test_a_step_that_is_no_number_changes_nothing_even_if_it_is_read_later(tiny, tmp_path, changes) -> None:
    config = tiny(
        *changes,
        *("train.steps=200", "train.clip=0", "optimizer.lr=1000", "optimizer.warmup=0", "optimizer.schedule=constant"),
        *("model.init_std=10", "log.every=50", "checkpoint.every=0", "evaluation.every=0", "evaluation.sample_every=0"),
    )
    (first, now), (second, later) = train(config, tmp_path, "now"), read_later(config, tmp_path, "later")
    assert now.status.state == later.status.state == "failed"
    assert now.status.reason == later.status.reason and "is NaN or infinite at step" in now.status.reason
    assert first.state.step == second.state.step and first.state.tokens == second.state.tokens
    mine, others = (
        weights_of(trainer.model) | moments_of(trainer.model, trainer.stepper.optimizer) for trainer in (first, second)
    )
    assert all(torch.isfinite(w).all() and torch.equal(w, others[name]) for name, w in mine.items())
    assert now.status.checkpoint == later.status.checkpoint


@pytest.mark.parametrize(
    ("changes", "backend"),
    [
        ((), "sdpa"),
        (("model.dropout=0.1",), "dense"),
        (("train.precision=bf16",), "dense"),
        (("model.attention=window", "model.window=3"), "banded"),
        (("model.attention=linear", "model.position=none"), "chunked"),
    ],
)
def test_model_json_names_the_backend_that_a_step_uses(tiny, tmp_path, monkeypatch, changes, backend: str) -> None:
    from engine.model import attention

    used = []
    choose = attention.choose_backend

    def noted(case: attention.AttentionCall, wanted: str = "auto") -> attention.Backend:
        found = choose(case, wanted)
        used.append((case.q.requires_grad, found.name))
        return found

    monkeypatch.setattr(attention, "choose_backend", noted)
    _, run = train(tiny("train.steps=2", *changes), tmp_path)
    assert run.raw("model")["built"]["backend"] == backend
    trained = {name for trains, name in used if trains}
    assert backend in trained or not used


@pytest.mark.slow
def test_a_compiled_step_learns_the_same_and_says_that_it_compiles(tiny, tmp_path) -> None:
    config = tiny("model.dropout=0", "train.compile=always")
    ready = assemble(config, runs_dir=tmp_path, name="compiled", device="cpu")
    phases, write = [], ready.trainer.writer._replace_json

    def record(name: str, data: dict) -> None:
        if name == "status.json":
            phases.append(data["phase"])
        write(name, data)

    ready.trainer.writer._replace_json = record
    assert ready.trainer.run().state == "finished" and "compiling" in phases
    _, plain = train(tiny("model.dropout=0"), tmp_path, "plain")
    for a, b in zip(metrics(RunReader(ready.path)), metrics(plain), strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-5)
