"""Honest runs of every kind are confirmed; whatever is changed in one is named by the claim it breaks."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engine.base.errors import InputError
from engine.config import presets
from engine.config.schema import RunConfig
from engine.proofs.verify.claims import CLAIMS, verify
from engine.proofs.verify.comparison import same_value
from engine.proofs.verify.evidence import Evidence
from engine.runs.control import Control, RunCommand
from engine.runs.reader import RunReader
from engine.runs.verdict import CheckResult
from engine.training.assemble import assemble, resume
from tests.tui_transformer.trained import train

pytestmark = [
    pytest.mark.one_in(3),  # each opens an app or a run of its own
    pytest.mark.usefixtures("cached_corpora"),
]

KINDS = {
    "decoder": ("model.dropout=0.1",),
    "masked": ("model.architecture=encoder", "objective.kind=masked"),
    "copy": ("model.architecture=encoder-decoder", "objective.kind=copy", "model.source_length=8"),
    "leaking": ("model.architecture=encoder", "train.allow_leak=true"),
    "sparse-log": ("log.every=4", "evaluation.every=4", "checkpoint.every=2", "evaluation.sample_every=0"),
    "one-checkpoint": (
        "checkpoint.keep_last=1",
        "evaluation.every=0",
        "checkpoint.every=0",
        "evaluation.sample_every=0",
    ),
    "averaged": ("checkpoint.average_last=2", "train.ema=0.9"),
}
TRANSLATION = (
    *("model.architecture=encoder-decoder", "objective.kind=translation", "data.corpus=phrasebook"),
    *("data.corpus_size=500", "data.tokenizer=bpe", "data.bpe_size=300", "model.context_length=40"),
    *("evaluation.translations=8", "train.batch_size=8"),
)


class StopAfter(Control):
    """Asks to stop at the n-th boundary."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.left = n

    def poll(self) -> RunCommand | None:
        self.left -= 1
        if self.left == 0:
            self.enqueue_command(RunCommand.STOP, "test")
        return super().poll()


def findings(run: Path, **options) -> dict[str, CheckResult]:
    return dict(verify(RunReader(run), device="cpu", **options))


def differing(run: Path) -> list[str]:
    found = {name: finding for name, finding in findings(run).items() if finding.status == "failed"}
    for finding in found.values():  # with --json, too, the text says what differs
        assert str(finding.figures["differences"][0]) in finding.why and " match" not in finding.why
    return [*found]


def unchecked(run: Path) -> set[str]:
    return {name for name, finding in findings(run).items() if finding.status == "skipped"}


def fingerprint_of_folder(folder: Path) -> dict[str, str]:
    """Every file with its hash and every folder with its time: what was made there and removed again shows too."""
    content = lambda path: hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return {str(path): f"{path.stat().st_mtime_ns} {content(path)}" for path in [folder, *sorted(folder.rglob("*"))]}


@pytest.fixture(scope="module")
def honest(tmp_path_factory) -> Path:
    """A decoder, and the same with another seed."""
    root = tmp_path_factory.mktemp("runs")
    train(root, "run", "model.dropout=0.1")
    train(root, "other", "model.dropout=0.1", "seed=2")
    return root


@pytest.mark.parametrize("kind", KINDS)
def test_an_honest_run_is_confirmed(kind, tmp_path) -> None:
    found = findings(train(tmp_path, kind, *KINDS[kind]))
    assert list(found) == list(CLAIMS)
    assert all(f.status == "passed" for f in found.values())
    whence = "from the seed" if kind == "one-checkpoint" else "from the checkpoint"
    assert whence in found["steps"].why and "to the last bit" in found["steps"].why


def test_an_honest_translation_is_confirmed(tmp_path) -> None:
    run = train(tmp_path, "translation", *TRANSLATION)
    assert differing(run) == [] and unchecked(run) == set()


@pytest.mark.parametrize("boundary", [2, 4, 5])
def test_a_stopped_run_and_the_same_resumed_are_confirmed(boundary, tiny, tmp_path) -> None:
    config: RunConfig = tiny("model.dropout=0.1", "log.every=2")
    ready = assemble(config, runs_dir=tmp_path, name="run", device="cpu", control=StopAfter(boundary))
    assert ready.trainer.run().state == "stopped"
    assert differing(ready.path) == []
    assert resume(ready.path, device="cpu").trainer.run().state == "finished"
    assert differing(ready.path) == [] and unchecked(ready.path) == set()


def finish(config: RunConfig, root: Path, control: Control | None = None) -> tuple[str, Path]:
    ready = assemble(config, runs_dir=root, name="run", device="cpu", control=control)
    return ready.trainer.run().state, ready.path


ENDS = {
    "out-of-patience": (
        ("evaluation.patience=1", "evaluation.every=1", "optimizer.lr=0.5", "train.steps=12"),
        "finished",
    ),
    "diverged": (
        ("optimizer.lr=900.0", "train.clip=0", "optimizer.warmup=0", "train.steps=300", "log.every=4"),
        "failed",
    ),
    "accumulating": (("train.accumulation=2", "data.window_stride=1200", "evaluation.batch_size=8"), "finished"),
    "without-samples": (("evaluation.sample_length=0",), "finished"),
    "no-step": (("train.steps=0",), "finished"),
}


@pytest.mark.parametrize("end", ENDS)
def test_however_a_run_ended_nothing_differs(end, tiny, tmp_path) -> None:
    changes, state = ENDS[end]
    ended, run = finish(tiny(*changes), tmp_path)
    assert ended == state
    assert differing(run) == []


def test_a_killed_run_and_the_same_resumed_are_confirmed(tiny, tmp_path) -> None:
    """What a kill leaves: a last line without its end, records after the checkpoint, a status that says running."""
    _, run = finish(tiny("model.dropout=0.1", "evaluation.every=2"), tmp_path, StopAfter(5))
    (run / "events.jsonl").write_text("".join((run / "events.jsonl").read_text().splitlines(keepends=True)[:-1]))
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"kind":"train","st')
    edit(run, "status.json", lambda status: status | {"state": "running", "pid": 2**22 + 1})
    assert RunReader(run).state == "lost" and differing(run) == []
    assert resume(run, device="cpu").trainer.run().state == "finished"
    assert differing(run) == [] and unchecked(run) == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", [preset.name for preset in presets.list_presets()])
def test_a_run_of_every_preset_is_confirmed(name, tmp_path) -> None:
    state, run = finish(presets.resolve(presets.find(name)).miniature(), tmp_path)
    assert state == "finished" and differing(run) == [] and unchecked(run) == set()


def test_verifying_writes_nothing_into_the_run(honest) -> None:
    before = fingerprint_of_folder(honest / "run")
    findings(honest / "run")
    assert fingerprint_of_folder(honest / "run") == before


def test_a_run_that_is_alive_is_refused(honest, tmp_path) -> None:
    run = shutil.copytree(honest / "run", tmp_path / "run")
    edit(run, "status.json", lambda status: status | {"state": "queued"})
    with pytest.raises(InputError, match="run 'run' is queued"):
        findings(run)


def test_elsewhere_results_need_not_agree_to_the_last_bit_and_it_says_why(honest, tmp_path) -> None:
    run = shutil.copytree(honest / "run", tmp_path / "run")
    edit(run, "environment.json", lambda e: e | {"attempts": [a | {"processor": "abacus"} for a in e["attempts"]]})
    edit_lines(run, "metrics.jsonl", lambda r: r | {"loss": r["loss"] * (1 + 1e-6), "grad_norm": r.get("grad_norm")})
    found = findings(run)
    assert found["best score"].status == "passed" and found["steps"].status == "passed"
    assert "within rounding (processor was abacus" in found["steps"].why


def test_a_corpus_that_is_not_here_leaves_only_what_needs_it_unchecked(honest, tmp_path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("To be, or not to be: that is the question.\n" * 200)
    run = train(tmp_path, "own-text", f"data.corpus={text}")
    text.unlink()
    found = findings(run)
    assert not [f for f in found.values() if f.status == "failed"]
    assert {"data", "best score", "samples", "steps", "verdicts"} <= unchecked(run)
    assert found["metrics hash"].status == "passed"


def test_a_text_that_lies_elsewhere_is_found_by_its_name_and_must_be_the_same(tmp_path) -> None:
    text, there = tmp_path / "text.txt", tmp_path / "there"
    text.write_text("To be, or not to be: that is the question.\n" * 200)
    run = train(tmp_path, "own-text", f"data.corpus={text}")
    there.mkdir()
    text.rename(there / "text.txt")
    assert all(f.status == "passed" for f in findings(run, data_dir=there).values())
    (there / "text.txt").write_text("To be, or not to be? That is the question.\n" * 200)
    assert findings(run, data_dir=there)["data"].status == "failed"
    (there / "text.txt").unlink()
    assert "data" in unchecked(run)


# What somebody may do to a run.


def edit(run: Path, name: str, change: Callable) -> None:
    path = run / name
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def edit_lines(run: Path, name: str, change: Callable) -> None:
    records = [change(json.loads(line)) for line in (run / name).read_text().splitlines()]
    text = "".join(json.dumps(r, separators=(",", ":"), ensure_ascii=False) + "\n" for r in records if r is not None)
    (run / name).write_text(text)


def a_loss_is_edited(run: Path, other: Path) -> None:
    edit_lines(run, "metrics.jsonl", lambda r: r | ({"loss": r["loss"] - 0.5} if r["step"] == 2 else {}))


def a_score_is_edited_everywhere(run: Path, other: Path) -> None:
    """As a careful person would: metrics, summary and the noted hash fit each other."""
    from engine.runs.twins import loss_and_gradient_hash

    better = {"loss": 1.0, "perplexity": 2.718281828459045}
    is_last = lambda r: r["kind"] == "validation" and r["step"] == 6
    edit_lines(run, "metrics.jsonl", lambda r: r | (better if is_last(r) else {}))
    records = [r for r in RunReader(run).raw_lines("metrics") if is_last(r)]
    edit(
        run,
        "summary.json",
        lambda s: s | {"best": records[0], "last": records[0], "fingerprint": loss_and_gradient_hash(run)},
    )


def the_weights_are_anothers(run: Path, other: Path) -> None:
    for step in ("step-00000003", "step-00000006"):
        shutil.rmtree(run / "checkpoints" / step)
        shutil.copytree(other / "checkpoints" / step, run / "checkpoints" / step)


def a_sample_is_invented(run: Path, other: Path) -> None:
    edit_lines(run, "samples.jsonl", lambda r: r | ({"text": "To be, or no"} if r["step"] == 6 else {}))


def a_sample_is_added(run: Path, other: Path) -> None:
    with (run / "samples.jsonl").open("a") as file:
        file.write('{"step":5,"prompt":"ROMEO:","text":"To be, or no"}\n')


def a_switch_is_changed(run: Path, other: Path) -> None:
    (run / "config.toml").write_text((run / "config.toml").read_text().replace("n_heads = 2", "n_heads = 1"))


def a_width_is_changed(run: Path, other: Path) -> None:
    (run / "config.toml").write_text((run / "config.toml").read_text().replace("d_ff = 32", "d_ff = 64"))


def a_decay_is_changed(run: Path, other: Path) -> None:
    (run / "config.toml").write_text(
        (run / "config.toml").read_text().replace("\nweight_decay = ", "\nweight_decay = 1")
    )


def the_end_of_the_metrics_is_cut_off(run: Path, other: Path) -> None:
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(lines[:-2]))


def a_record_is_taken_out(run: Path, other: Path) -> None:
    edit_lines(run, "metrics.jsonl", lambda r: None if r["kind"] == "train" and r["step"] == 4 else r)


def the_best_score_is_improved(run: Path, other: Path) -> None:
    edit(run, "summary.json", lambda s: s | {"best": s["best"] | {"loss": s["best"]["loss"] - 0.1}})


def the_tokenizer_is_changed(run: Path, other: Path) -> None:
    edit(run, "tokenizer.json", lambda t: t | {"characters": t["characters"] + "\U0001f600"})


def a_hash_of_the_data_is_edited(run: Path, other: Path) -> None:
    edit(run, "data.json", lambda d: d | {"sha256": d["sha256"] | {"validation": "0" * 64}})


def the_floor_is_lowered(run: Path, other: Path) -> None:
    edit(run, "data.json", lambda d: d | {"unigram": d["unigram"] + 1.0})


def the_seed_is_changed(run: Path, other: Path) -> None:
    (run / "config.toml").write_text((run / "config.toml").read_text().replace("\nseed = 1", "\nseed = 7", 1))


def the_metrics_are_anothers(run: Path, other: Path) -> None:
    shutil.copy(other / "metrics.jsonl", run / "metrics.jsonl")


def a_byte_of_the_weights_is_flipped(run: Path, other: Path) -> None:
    path = run / "checkpoints" / "step-00000006" / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))


def an_attempt_is_hidden(run: Path, other: Path) -> None:
    edit_lines(run, "events.jsonl", lambda e: None if e["event"] == "finished" else e)


TAMPERINGS = {
    a_loss_is_edited: "metrics hash",
    a_score_is_edited_everywhere: "last score",
    the_weights_are_anothers: "last score",
    a_sample_is_invented: "samples",
    a_sample_is_added: "sample records",
    a_switch_is_changed: "last score",
    a_width_is_changed: "config",
    a_decay_is_changed: "config",
    the_end_of_the_metrics_is_cut_off: "metrics",
    a_record_is_taken_out: "metrics",
    the_best_score_is_improved: "summary",
    the_tokenizer_is_changed: "tokenizer",
    a_hash_of_the_data_is_edited: "data",
    the_floor_is_lowered: "data",
    the_seed_is_changed: "steps",
    the_metrics_are_anothers: "metrics hash",
    a_byte_of_the_weights_is_flipped: "checkpoints",
    an_attempt_is_hidden: "events",
}


@pytest.mark.parametrize("tamper", TAMPERINGS, ids=lambda tamper: tamper.__name__)
def test_tampering_is_named_by_the_claim_it_breaks(tamper, honest, tmp_path) -> None:
    run = shutil.copytree(honest / "run", tmp_path / "run")
    tamper(run, honest / "other")
    assert TAMPERINGS[tamper] in differing(run)


def test_a_leak_that_was_taken_out_of_the_checks_comes_back(tmp_path) -> None:
    run = train(tmp_path, "leaking", *KINDS["leaking"])
    assert "LEAK" in RunReader(run).badges
    edit(run, "checks.json", lambda c: c | {"verdicts": [v for v in c["verdicts"] if v["verdict"] != "LEAK"]})
    found = findings(run)["verdicts"]
    assert found.status == "failed"
    assert [(d.recorded, d.found) for d in found.figures["differences"]] == [(None, "LEAK"), (None, "LEAK")]


def test_a_difference_says_both_values(honest, tmp_path) -> None:
    run = shutil.copytree(honest / "run", tmp_path / "run")
    the_best_score_is_improved(run, honest / "other")
    true = RunReader(honest / "run").raw("summary")["best"]["loss"]
    (difference,) = [d for d in findings(run)["summary"].figures["differences"] if d.what.startswith("loss")]
    assert (difference.recorded, difference.found) == (true - 0.1, true)


@pytest.mark.parametrize("name", ["data.json", "model.json", "summary.json", "environment.json", "checks.json"])
@pytest.mark.parametrize("text", ["", "[]", "{}", '{"sha256": 3, "attempts": 3, "best": 3, "verdicts": 3}'])
def test_damage_is_told_and_never_raised(name, text, honest, tmp_path) -> None:
    run = shutil.copytree(honest / "run", tmp_path / "run")
    (run / name).write_text(text)
    found = findings(run, steps=0)
    assert list(found) == list(CLAIMS)
    assert {one.status for one in found.values()} != {"passed"}


def test_no_room_on_the_device_is_no_difference(honest, monkeypatch) -> None:
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate")

    monkeypatch.setattr("engine.proofs.verify.evidence.Evidence.network", full)
    found = findings(honest / "run", steps=0)
    assert found["best score"].status == "skipped" and "out of memory" in found["best score"].why


def test_a_gpu_is_not_held_to_the_last_bit(honest, monkeypatch) -> None:
    evidence = Evidence(RunReader(honest / "run"), None, "cpu", 0)
    assert evidence.exact
    on_gpu = Evidence(RunReader(honest / "run"), None, "cpu", 0)
    on_gpu.verification_device = torch.device("meta")
    monkeypatch.setattr("engine.proofs.verify.evidence.environment", lambda *_: on_gpu.attempts[0])
    assert not on_gpu.exact and "different order each time" in on_gpu.why_not_exact


def recorded_by_version_1(run: Path) -> Path:
    """A run as version 1 would have recorded it: numbers redefined since have other values."""
    edit(run, "run.json", lambda born: {key: value for key, value in born.items() if key != "records"})
    edit(run, "model.json", lambda found: found | {"flops_per_token": 7, "memory_bytes": 7})

    def other(scored):
        return scored | {"probes": {name: share / 2 for name, share in scored["probes"].items()}, "excess": 7.0}

    edit_lines(run, "metrics.jsonl", lambda r: other(r) if r["kind"] == "validation" else r)
    edit(run, "summary.json", lambda s: s | {name: other(s[name]) for name in ("best", "last")})
    return run


def test_a_number_that_an_older_version_defined_differently_is_not_reported_as_different(honest, tmp_path) -> None:
    run = recorded_by_version_1(shutil.copytree(honest / "run", tmp_path / "run"))
    found = findings(run)
    for claim in ("config", "best score", "last score"):
        assert found[claim].status == "passed", found[claim]
    assert "(defined differently by an older version): flops_per_token, memory_bytes" in found["config"].why
    assert "(defined differently by an older version): probes, excess" in found["best score"].why
    the_version = json.loads((honest / "run" / "run.json").read_text())["records"]
    edit(run, "run.json", lambda born: born | {"records": the_version})
    assert {"config", "best score", "last score"} <= set(differing(run))


def test_a_sum_that_another_processor_adds_up_differently_is_no_difference() -> None:
    assert same_value("unigram", 4.088746311519502, 4.088746311519503, exact=True)
    assert not same_value("unigram", 4.088746311519502, 4.0887463116, exact=True)
    assert not same_value("plausible", 4.088746311519502, 4.088746311519503, exact=True)
