"""A run that starts from another one's checkpoint: what it takes over, what is refused, what it needs later."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from safetensors.torch import load_file

from engine.base.errors import InputError
from engine.config.schema import RunConfig
from engine.model.transformer import build_model
from engine.proofs.verify.claims import verify
from engine.proofs.verify.evidence import Evidence
from engine.proofs.verify.inputs import lineage
from engine.runs.reader import RunReader
from engine.training import checkpoint
from engine.training.assemble import assemble, begin, resume
from tests.conftest import Tiny
from tests.engine.training.test_resume import StopAt, outcome
from tests.tui_transformer.trained import train
from tui_transformer.lab.work.processes import create_queued_run

pytestmark = pytest.mark.usefixtures("cached_corpora", "minimal_leak_probe", "no_self_check")

FROM = "train.init_from=pretrain"
TEXT = "enter & Hero\na lamp burns low and nobody speaks.\n" * 200  # written with some of the characters of playlets
MASKED = ("model.architecture=encoder", "objective.kind=masked")
PAIRS = (
    *("model.architecture=encoder-decoder", "objective.kind=translation", "data.corpus=phrasebook"),
    *("data.corpus_size=500", "model.context_length=40", "evaluation.translations=2", "train.batch_size=8"),
    *("train.steps=2", "evaluation.every=2", "checkpoint.every=2", "evaluation.sample_every=0"),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    """A folder with runs to start from; tests copy what they change."""
    root = tmp_path_factory.mktemp("runs")
    train(root, "pretrain", "checkpoint.keep_last=9")
    train(root, "learned", "model.position=learned")
    train(root, "masked", *MASKED)
    return root


@pytest.fixture
def runs(shared: Path, tmp_path) -> Path:
    shutil.copytree(shared, tmp_path / "runs")
    return tmp_path / "runs"


def made(config: RunConfig, root: Path, name: str = "finetune", **options: Any) -> Any:
    return assemble(config, runs_dir=root, name=name, device="cpu", **options)


def events(run: Path, event: str) -> list[str]:
    return [record["text"] for record in RunReader(run).raw_lines("events") if record["event"] == event]


def weights(run: Path, which: str) -> dict[str, torch.Tensor]:
    return load_file(checkpoint.find(RunReader(run), which) / checkpoint.WEIGHTS)


def refused(config: RunConfig, root: Path) -> str:
    before = sorted(path.name for path in root.iterdir())
    with pytest.raises(InputError) as error:
        made(config, root)
    assert sorted(path.name for path in root.iterdir()) == before
    return str(error.value)


@pytest.mark.parametrize(("which", "step"), [("", 6), ("@best", 6), ("@last", 6), ("@3", 3)])
def test_it_begins_with_the_weights_of_that_checkpoint_and_a_step_and_optimizer_of_its_own(
    runs: Path, tiny: Tiny, which: str, step: int
) -> None:
    ready = made(tiny(FROM + which), runs)
    there = weights(runs / "pretrain", str(step))
    own = dict(ready.trainer.model.named_parameters())
    assert all(torch.equal(own[name], there[name]) for name in there) and own.keys() == there.keys()
    assert ready.trainer.state.step == 0 and not ready.trainer.stepper.optimizer.state
    ready.trainer.run()
    facts = RunReader(ready.path).raw("run")["from"]
    assert facts["id"] == RunReader(runs / "pretrain").raw("run")["id"] and facts["name"] == "pretrain"
    assert (facts["checkpoint"], facts["step"]) == (which[1:] or "best", step)
    manifest = json.loads((runs / "pretrain" / "checkpoints" / f"step-{step:08d}" / "manifest.json").read_text())
    assert facts["sha256"] == manifest["sha256"][checkpoint.WEIGHTS]
    assert RunReader(ready.path).config.train.init_from == f"pretrain@{facts['checkpoint']}"
    assert (
        f"weights and tokenizer of pretrain@{facts['checkpoint']} (step {step})" in events(ready.path, "init_from")[0]
    )


def test_going_on_from_another_run_scores_better_at_once_than_beginning_anew(runs: Path, tiny: Tiny) -> None:
    losses = []
    for name, changes in (("finetune", (FROM,)), ("scratch", ())):
        ready = made(tiny("optimizer.lr=0.0", "model.dropout=0.0", *changes), runs, name)
        ready.trainer.run()
        losses.append(RunReader(ready.path).raw("summary")["best"]["loss"])
    assert losses[0] == RunReader(runs / "pretrain").raw("summary")["best"]["loss"] < losses[1]


def test_a_text_is_read_by_the_other_runs_tokenizer_whatever_characters_it_has(
    runs: Path, tiny: Tiny, tmp_path
) -> None:
    text = tmp_path / "play.txt"
    text.write_text(TEXT)
    ready = made(tiny(FROM, f"data.corpus={text}"), runs)
    ready.trainer.run()
    own, other = (RunReader(runs / name).raw("data") for name in ("finetune", "pretrain"))
    assert own["tokenizer_sha256"] == other["tokenizer_sha256"] and own["vocabulary"] == other["vocabulary"]
    assert "a tokenizer made from this text alone would differ" in events(ready.path, "init_from")[1]


def test_a_character_that_the_tokenizer_has_not_is_named_with_its_place(runs: Path, tiny: Tiny, tmp_path) -> None:
    text = tmp_path / "play.txt"
    text.write_text(TEXT[:55] + "€ a seat\n" + TEXT)
    said = refused(tiny(FROM, f"data.corpus={text}"), runs)
    assert "corpus play.txt: its train split has '€' (U+20AC) at character 56 (line 3)" in said


@pytest.mark.parametrize("kind", ["masked", "next-token"])
def test_special_tokens_go_by_name_and_new_ones_begin_afresh(runs: Path, tiny: Tiny, kind: str) -> None:
    """[mask] stands after the text's tokens: a run without it has no such row, and one with it finds its own."""
    changes = {
        "masked": (*MASKED, "train.init_from=pretrain"),
        "next-token": ("model.architecture=decoder", "train.init_from=masked"),
    }[kind]
    config = tiny(*changes)
    ready = made(config, runs)
    own = dict(ready.trainer.model.named_parameters())["token_embedding.weight"]
    there = weights(runs / ("pretrain" if kind == "masked" else "masked"), "best")["token_embedding.weight"]
    text = min(len(own), len(there))
    assert torch.equal(own[:text], there[:text]) and len(own) - len(there) == (1 if kind == "masked" else -1)
    said = events(ready.path, "init_from")[0]
    if kind == "masked":
        fresh = dict(build_model(ready.trainer.config.model, len(own), config.seed).named_parameters())
        assert torch.equal(own[-1], fresh["token_embedding.weight"][-1]) and "special tokens: [mask] new" in said
    else:
        assert "special tokens: [mask] left out" in said


def test_a_special_token_of_the_same_name_is_the_same_row(runs: Path, tiny: Tiny) -> None:
    ready = made(tiny(*MASKED, "train.init_from=masked", "model.vocab_size=90"), runs)
    own = dict(ready.trainer.model.named_parameters())
    there = weights(runs / "masked", "best")
    for name in ("token_embedding.weight", "head.weight"):
        assert torch.equal(own[name][: len(there[name])], there[name]) and len(own[name]) == 90
    assert "special tokens: [mask] kept" in events(ready.path, "init_from")[0]


def test_pairs_go_on_from_pairs_with_both_vocabularies(tiny: Tiny, tmp_path) -> None:
    each = ("data.tokenizer=bpe", "data.bpe_size=280", "data.shared_vocabulary=false")
    for name, changes in (("pretrain", ()), ("finetune", (FROM, "data.corpus_seed=2"))):
        ready = made(tiny(*PAIRS, *each, *changes), tmp_path, name)
        before = {name: value.clone() for name, value in ready.trainer.model.named_parameters()}
        assert ready.trainer.run().state == "finished"
    there = weights(tmp_path / "pretrain", "best")
    assert all(torch.equal(before[name], there[name]) for name in there)
    assert "[pad] [start] [end] kept" in events(tmp_path / "finetune", "init_from")[0]
    assert not lineage(Evidence(RunReader(tmp_path / "finetune"), None, "cpu", 0))[1]
    said = refused(tiny(*PAIRS, *each[:1], "data.bpe_size=300", each[2], FROM), tmp_path)
    assert "data.bpe_size = 300, but 'pretrain' was trained with 280" in said


MISFITS: dict[str, tuple[tuple[str, ...], str]] = {
    "wider": (
        ("model.d_model=32",),
        r"layers.0.attention_norm.weight: is \(16,\), must be \(32,\); .* and 22 more: "
        r"model.d_model differs \(16 there, 32 here\)",
    ),
    "fewer layers": (("model.n_layers=1",), "layers.1.attention.*should not exist.*model.n_layers differs"),
    "more layers": (("model.n_layers=3",), "layers.2.attention_norm.weight: is missing, must be .16,."),
    "tied": (("model.tie_embeddings=true",), "head.weight: is .64, 16., should not exist: model.tie_embeddings"),
    "another network": (
        ("model.architecture=encoder-decoder", "objective.kind=copy", "model.source_length=8"),
        "encoder.layers.*model.architecture differs .decoder there, encoder-decoder here.",
    ),
    "a translation": (PAIRS, "translation needs a tokenizer for each side, but the parent's is 'characters'"),
    "no such run": (("train.init_from=pretain",), "no run named 'pretain' in .*did you mean 'pretrain'"),
    "no such step": (("train.init_from=pretrain@5",), "has no checkpoint '5'; it has best, last and steps 0, 3, 6"),
    "no checkpoint": (("train.init_from=pretrain@bset",), "did you mean 'best'"),
    "a shorter table": (
        ("train.init_from=learned", "model.position=learned", "model.context_length=8"),
        r"positions.table.weight: is \(16, 16\), must be \(8, 16\) \(a position table is never truncated\)",
    ),
}


@pytest.mark.parametrize("case", MISFITS)
def test_what_does_not_fit_is_named_before_there_is_a_run_directory(runs: Path, tiny: Tiny, case: str) -> None:
    changes, said = MISFITS[case]
    found = refused(tiny(FROM, *changes), runs)
    assert re.search(said, found), found
    assert found.count("train.init_from") >= 1 and "\n" not in found


WARNED: dict[str, tuple[tuple[str, ...], str]] = {
    "heads": (("model.n_heads=1",), "model.n_heads is 1, but the weights of 'pretrain' were trained with 2"),
    "positions": (("model.position=rope",), "model.position is 'rope', but the weights were trained with 'sinusoidal'"),
    "learned positions": (("model.position=learned",), "with 'sinusoidal'; its learned weights start fresh"),
    "longer": (
        ("model.context_length=24",),
        "model.context_length is 24, but was 16 in 'pretrain': its weights have",
    ),
    "a longer table": (
        ("train.init_from=learned", "model.position=learned", "model.context_length=24"),
        "positions.table.weight: rows 16 to 23 of the position table start fresh",
    ),
    "held-out text": (("data.validation_fraction=0.5",), "was trained on .*% of the data held out here"),
}


@pytest.mark.parametrize("case", WARNED)
def test_what_fits_and_is_not_as_it_was_trained_is_said_and_goes_on(runs: Path, tiny: Tiny, case: str) -> None:
    changes, said = WARNED[case]
    ready = made(tiny(FROM, *changes), runs)
    lints = [f"{lint.key}: {lint.text}" for lint in ready.lints]
    assert any(re.search(said, text) for text in lints), lints
    assert set(events(ready.path, "lint")) >= set(lints) and ready.trainer.run().state == "finished"


def test_rows_of_a_longer_table_keep_their_seeds_weights_and_the_others_are_taken_over(runs: Path, tiny: Tiny) -> None:
    config = tiny("train.init_from=learned", "model.position=learned", "model.context_length=24")
    ready = made(config, runs)
    table = dict(ready.trainer.model.named_parameters())["positions.table.weight"]
    fresh = dict(build_model(ready.trainer.config.model, 64, config.seed).named_parameters())["positions.table.weight"]
    assert torch.equal(table[:16], weights(runs / "learned", "best")["positions.table.weight"])
    assert torch.equal(table[16:], fresh[16:])


def test_a_parent_that_leaks_is_said_to_whoever_starts_from_it(tiny: Tiny, tmp_path) -> None:
    train(tmp_path, "pretrain", "model.architecture=encoder", "train.allow_leak=true")
    ready = made(tiny(FROM, *MASKED), tmp_path)
    assert any("parent 'pretrain' is marked LEAK" in lint.text for lint in ready.lints)
    assert any("parent 'pretrain' is marked LEAK" in text for text in events(ready.path, "lint"))


def test_a_parent_that_is_not_finished_is_taken_as_it_stands_and_named_by_its_step(runs: Path, tiny: Tiny) -> None:
    status = json.loads((runs / "pretrain" / "status.json").read_text())
    (runs / "pretrain" / "status.json").write_text(json.dumps(status | {"state": "stopped"}))
    ready = made(tiny(FROM), runs)
    assert RunReader(ready.path).config.train.init_from == "pretrain@6"  # its best may move yet
    assert any("'pretrain' has not finished (stopped)" in lint.text for lint in ready.lints)


def test_damaged_weights_are_never_started_from(runs: Path, tiny: Tiny) -> None:
    file = runs / "pretrain" / "checkpoints" / "step-00000006" / checkpoint.WEIGHTS
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert "is damaged: its SHA-256 has changed since it was written" in refused(tiny(FROM), runs)


def test_a_stopped_run_goes_on_bit_for_bit_when_the_one_it_came_from_is_gone(runs: Path, tiny: Tiny, tmp_path) -> None:
    text = tmp_path / "play.txt"
    text.write_text(TEXT)
    config = tiny(FROM, f"data.corpus={text}", "train.steps=9")
    whole = made(config, runs, "whole")
    whole.trainer.run()
    for n in (1, 12):  # before the first step, and in the middle
        ready = made(config, runs, f"broken-{n}", control=StopAt(n))
        assert ready.trainer.run().state == "stopped"
    shutil.rmtree(runs / "pretrain")
    for n in (1, 12):
        again = resume(runs / f"broken-{n}", device="cpu")
        assert again.trainer.run().state == "finished"
        assert outcome(again.path) == outcome(whole.path)


def test_its_own_config_repeats_it_and_says_in_one_line_what_is_missing_elsewhere(runs: Path, tiny: Tiny) -> None:
    ready = made(tiny(FROM), runs)
    ready.trainer.run()
    config = RunReader(ready.path).config
    again = made(config, runs, "again")
    again.trainer.run()
    assert outcome(again.path) == outcome(ready.path)
    shutil.rmtree(runs / "pretrain")
    assert "train.init_from = 'pretrain@best': no run named 'pretrain' in" in refused(config, runs)


def test_a_queued_run_finds_its_parent_when_it_begins_and_says_so_then(runs: Path, tiny: Tiny, monkeypatch) -> None:
    monkeypatch.chdir(runs.parent)
    waits = create_queued_run(tiny("train.init_from=runs/pretrain@last"), runs_dir=runs, name="finetune", command="")
    assert RunReader(waits).config.train.init_from == "pretrain@last" and "from" not in RunReader(waits).raw("run")
    ready = begin(waits, device="cpu")
    assert RunReader(waits).raw("run")["from"]["name"] == "pretrain" and ready.trainer.run().state == "finished"
    with pytest.raises(InputError, match="no run named 'pretain'"):
        create_queued_run(tiny("train.init_from=pretain"), runs_dir=runs, name="other", command="")


@pytest.mark.slow  # a process that loads the engine
def test_killed_as_it_begins_it_is_resumed_bit_for_bit_without_the_parent(runs: Path, tiny: Tiny) -> None:
    config = tiny(FROM, "train.steps=40", "checkpoint.every=2", "evaluation.every=20", "evaluation.sample_every=0")
    whole = made(config, runs, "whole")
    whole.trainer.run()
    waits = create_queued_run(config, runs_dir=runs, name="killed", command="")
    words = ["-m", "tui_transformer", "begin", str(waits), "--device", "cpu"]
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while not list((waits / "checkpoints").glob("step-*")):
        assert process.poll() is None
        time.sleep(0.01)
    psutil.Process(process.pid).kill()
    process.wait()
    shutil.rmtree(runs / "pretrain")
    again = resume(waits, device="cpu")
    assert again.trainer.run().state == "finished" and outcome(waits) == outcome(whole.path)


def verified(run: Path) -> dict[str, Any]:
    return dict(verify(RunReader(run), device="cpu"))


def _other_sha(run: dict[str, Any]) -> None:
    run["from"]["sha256"] = "0" * 64


def _other_checkpoint(run: dict[str, Any]) -> None:
    run["from"]["checkpoint"] = "last"


def _no_origin(run: dict[str, Any]) -> None:
    del run["from"]


LIES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "other weights": (_other_sha, "SHA-256 of the weights of pretrain@best (step 6)"),
    "another checkpoint": (_other_checkpoint, "checkpoint in train.init_from"),
    "none at all": (_no_origin, "`from` in run.json"),
}


def test_verify_confirms_the_lineage_and_names_what_is_not_true_of_it(runs: Path, tiny: Tiny) -> None:
    ready = made(tiny(FROM, "checkpoint.keep_last=9"), runs)
    ready.trainer.run()
    found = verified(ready.path)
    assert all(finding.status == "passed" for finding in found.values())
    assert "pretrain ─▶ finetune" in found["lineage"].why and "step 0 has them" in found["lineage"].why
    path = ready.path / "run.json"
    before = path.read_text()
    for lie, said in LIES.values():
        facts = json.loads(before)
        lie(facts)
        path.write_text(json.dumps(facts))
        assert lineage(Evidence(RunReader(ready.path), None, "cpu", 0))[1][0].what == said
    path.write_text(before)
    shutil.rmtree(runs / "pretrain")
    found = verified(ready.path)
    assert found["lineage"].status == "skipped" and "'pretrain' cannot be found" in found["lineage"].why
    assert {f.status for name, f in found.items() if name != "lineage"} == {"passed"}


def test_steps_are_repeated_from_the_other_runs_weights_where_no_checkpoint_is_kept(runs: Path, tiny: Tiny) -> None:
    quiet = ("checkpoint.keep_last=1", "evaluation.every=0", "checkpoint.every=0", "evaluation.sample_every=0")
    ready = made(tiny(FROM, *quiet), runs)
    ready.trainer.run()
    steps = verified(ready.path)["steps"]
    assert steps.status == "passed" and "from the weights of pretrain@best (step 6)" in steps.why


def test_one_checkpoint_by_two_names_is_no_switch_without_effect(runs: Path, tiny: Tiny) -> None:
    for name, which in (("finetune", "best"), ("again", "6")):
        made(tiny(f"{FROM}@{which}"), runs, name).trainer.run()
    assert "INERT" not in RunReader(runs / "again").badges
