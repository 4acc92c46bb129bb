"""A resumed run is the run it was: settings that were edited while it was stopped are refused by name."""

import json
import random
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from engine.base.errors import InputError
from engine.capabilities import with_value
from engine.config import toml
from engine.config.keys import all_keys, changed_settings, fixed_settings, flatten
from engine.config.schema import RunConfig
from engine.runs.reader import RunReader
from engine.training import checkpoint, trainer
from engine.training.assemble import assemble, resume
from tests.command import command
from tests.engine.training.test_resume import StopAfter, miniature, outcome, whole
from tui_transformer.lab.work.processes import TrainingThread

pytestmark = pytest.mark.usefixtures("cached_checks", "module_minimal_leak_probe")

EDITABLE = {"description": "another", "data.corpus": "moved/own.txt", "checkpoint.every": 1, "checkpoint.keep_last": 7}
REFUSED: dict[str, Any] = {
    "seed": 2,
    "preset": "baseline",
    "model.n_heads": 1,  # the shapes of the weights stay
    "model.d_ff": 64,
    "model.dropout": 0.5,
    "model.backend": "reference",
    "data.validation_fraction": 0.2,
    "data.corpus_seed": 7,
    "objective.label_smoothing": 0.1,
    "train.steps": 60,
    "train.batch_size": 2,
    "train.accumulation": 2,
    "train.clip": 0.5,
    "train.precision": "bf16",
    "train.threads": 2,
    "train.ema": 0.5,
    "train.init_from": "another@last",
    "optimizer.lr": 0.5,
    "optimizer.betas": [0.5, 0.5],
    "optimizer.warmup": "1 epochs",
    "evaluation.every": 1,
    "evaluation.seed": 2,
    "evaluation.patience": 3,
    "checkpoint.average_last": 2,
    "generation.temperature": 0.1,
    "log.every": 7,
}


def made_config(root: Path) -> RunConfig:
    text, draw = root / "own.txt", random.Random(1)
    text.write_text("".join(" ".join(draw.choices(["ash", "bee", "cow", "dew"], k=6)) + "\n" for _ in range(400)))
    tables = miniature("demo").dump()
    tables["data"] = {"corpus": str(text)}
    tables["train"] |= {"steps": 6, "clip": 0.25}
    tables["optimizer"] |= {"lr": 0.01, "warmup": 0, "schedule": "constant"}
    return RunConfig.model_validate(tables)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with a run on its own text, stopped after step 3 of 6, and how that run ends if it is not stopped."""
    root = tmp_path_factory.mktemp("made")
    config = made_config(root)
    expected, _ = whole(config, root)
    ready = assemble(config, runs_dir=root, name="run", device="cpu", control=StopAfter(3))
    assert ready.trainer.run().state == "stopped"
    return root, expected


@pytest.fixture
def stopped(made, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made[0] / "run", tmp_path / "run"))


def edit(run: Path, changes: dict[str, Any]) -> None:
    tables = toml.read_toml(run / "config.toml")
    for key, value in changes.items():
        section, _, name = key.rpartition(".")
        (tables[section] if section else tables)[name] = value
    (run / "config.toml").write_text(tomli_w.dumps(tables))


def lasting(run: Path) -> dict[str, bytes]:
    """The files of a run's directory that only training may change."""
    return {str(one): one.read_bytes() for one in sorted(run.rglob("*")) if one.is_file() and one.name[0] != "."}


def test_an_edited_rate_is_refused_by_name_and_once_restored_the_run_ends_the_same(made, stopped) -> None:
    before = lasting(stopped)
    edit(stopped, {"optimizer.lr": 0.5})
    answer = command("resume", "run", "--runs-dir", str(stopped.parent), "--device", "cpu")
    assert answer.code == 2 and answer.err.count("\n") == 1
    assert "run 'run' was started with different settings: optimizer.lr was 0.01 and is now 0.5; " in answer.err
    training = TrainingThread("resume", stopped, device="cpu")  # as the studio does
    training.start()
    training.join()
    assert isinstance(training.error, InputError) and str(training.error) in answer.err
    edit(stopped, {"optimizer.lr": 0.01})
    assert RunReader(stopped).config == toml.validate(toml.parse(before[f"{stopped}/config.toml"], ""), "")
    (stopped / "config.toml").write_bytes(before[f"{stopped}/config.toml"])
    assert lasting(stopped) == before
    assert command("resume", "run", "--runs-dir", str(stopped.parent), "--device", "cpu").code == 0
    assert outcome(stopped) == made[1]


def test_the_command_in_the_refusal_trains_on_from_the_weights(stopped) -> None:
    edit(stopped, {"optimizer.lr": 0.5})
    with pytest.raises(InputError) as refused:
        resume(stopped, device="cpu")
    program, *words = shlex.split(str(refused.value).split("`")[1])
    assert program == "tui-transformer" and command(*words, "--name", "on", "--device", "cpu").code == 0
    reader = RunReader(stopped.parent / "on")
    assert reader.config.optimizer.lr == 0.5 and reader.run.origin is not None and reader.run.origin.step == 3
    weights = [stopped / "checkpoints/step-00000003", reader.path / "checkpoints/step-00000000"]
    assert len({(folder / checkpoint.WEIGHTS).read_bytes() for folder in weights}) == 1


@pytest.mark.parametrize("key", REFUSED)
def test_what_may_not_be_edited_is_refused(key: str, stopped) -> None:
    was = flatten(RunReader(stopped).config.dump()).get(key)
    edit(stopped, {key: REFUSED[key]})
    before = lasting(stopped)
    now = toml.short_repr_or_unset(flatten(RunReader(stopped).config.dump())[key])
    with pytest.raises(InputError) as refused:
        resume(stopped, device="cpu")
    assert f"different settings: {key} was {toml.short_repr_or_unset(was)} and is now {now}; " in str(refused.value)
    assert lasting(stopped) == before


def test_several_edits_are_named_together_including_a_removed_line(stopped) -> None:
    edit(stopped, {"optimizer.lr": 0.02, "seed": 3})
    lines = (stopped / "config.toml").read_text().splitlines(keepends=True)
    (stopped / "config.toml").write_text("".join(line for line in lines if not line.startswith("clip")))
    with pytest.raises(
        InputError, match="optimizer.lr was .*, seed was 1 and is now 3, train.clip was 0.25 and is now 1.0;"
    ):
        resume(stopped, device="cpu")


@pytest.mark.parametrize("key", EDITABLE)
def test_what_may_be_edited_changes_no_bit(key: str, made, stopped) -> None:
    value = EDITABLE[key]
    if key == "data.corpus":
        value = str(stopped.parent / value)
        Path(value).parent.mkdir()
        shutil.copy(made[0] / "own.txt", value)
    edit(stopped, {key: value})
    text = (stopped / "config.toml").read_text()
    (stopped / "config.toml").write_text("# mine\n" + text)
    assert resume(stopped, device="cpu").trainer.run().state == "finished"
    assert outcome(stopped) == made[1]
    assert (stopped / "config.toml").read_text() == "# mine\n" + text
    settings = [checkpoint.settings_of(folder) for folder in checkpoint.step_folders(stopped)]
    assert len(settings) > 1 and all(one == settings[0] for one in settings)


def test_another_text_is_refused_although_its_path_may_be_edited(stopped) -> None:
    (stopped.parent / "other.txt").write_text("fig gum\n" * 900)
    edit(stopped, {"data.corpus": str(stopped.parent / "other.txt")})
    with pytest.raises(InputError, match="this is not the text that run 'run' started with"):
        resume(stopped, device="cpu")


def test_every_setting_is_fixed_except_those_declared_editable() -> None:
    config = RunConfig()
    usual = flatten(config.dump())
    kept = {key for key in all_keys() if changed_settings({**fixed_settings(config), key: "another"}, config)}
    assert all_keys().keys() - kept == EDITABLE.keys()
    assert all(
        changed_settings({**fixed_settings(config), key: "x"}, config) == {key: ("x", usual.get(key))} for key in kept
    )
    assert changed_settings(json.loads(json.dumps(fixed_settings(config))), config) == {}


@pytest.mark.parametrize("name", ["demo", "multi30k", "gigaword"])
def test_settings_are_the_same_once_they_have_been_written_and_read(name: str) -> None:
    config = miniature(name)
    again = toml.validate(toml.parse(toml.config_toml(config).encode(), ""), "")
    assert fixed_settings(again) == json.loads(json.dumps(fixed_settings(config)))


def test_a_run_without_a_checkpoint_starts_over_with_the_new_settings_and_says_so(tmp_path) -> None:
    ready = assemble(made_config(tmp_path), runs_dir=tmp_path, name="run", device="cpu")
    ready.trainer.writer.close("interrupted")
    edit(tmp_path / "run", {"optimizer.lr": 0.02})
    answer = command("resume", "run", "--runs-dir", str(tmp_path), "--device", "cpu")
    said = "the run had no checkpoint yet; it starts over with config.toml as it is now"
    assert answer.code == 0 and f"warning: run: {said}" in answer.err
    reader = RunReader(tmp_path / "run")
    assert [event.text for event in reader.events() if event.event == "begun again"] == [said]
    assert {row.lr for row in reader.metrics() if row.kind == "train"} == {0.02}


Change = Callable[[dict[str, Any]], object]
TAMPERED: dict[str, tuple[Change, str]] = {
    "a setting": (lambda one: one["settings"].update({"optimizer.lr": 0.5}), "it has changed since it was written"),
    "the hash": (lambda one: one.update(settings_sha256="0" * 64), "it has changed since it was written"),
    "no hash": (lambda one: one.pop("settings_sha256"), "it has changed since it was written"),
    "no settings": (lambda one: one.pop("settings"), "it has changed since it was written"),
    "another type": (lambda one: one.update(settings=[]), "manifest.json is damaged"),
    "neither": (lambda one: (one.pop("settings"), one.pop("settings_sha256")), "learning rate at step 3 was 0.01"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_editing_the_manifests_too_does_not_help(what: str, stopped) -> None:
    change, said = TAMPERED[what]
    for folder in checkpoint.step_folders(stopped):
        manifest = json.loads((folder / checkpoint.MANIFEST).read_text())
        change(manifest)
        (folder / checkpoint.MANIFEST).write_text(checkpoint._manifest_text(manifest))
    edit(stopped, {"optimizer.lr": 0.5})
    with pytest.raises(InputError, match=said):
        resume(stopped, device="cpu")


def test_no_byte_of_a_manifest_reaches_the_terminal(stopped) -> None:
    for folder in checkpoint.step_folders(stopped):
        manifest = json.loads((folder / checkpoint.MANIFEST).read_text())
        manifest["settings"] |= {"\x1b]0;x\x07": "\x1b[2J", "optimizer.lr": {"deep": ["\x9b"] * 99}}
        manifest["settings_sha256"] = checkpoint._settings_sha256(manifest["settings"])
        (folder / checkpoint.MANIFEST).write_text(checkpoint._manifest_text(manifest))
    answer = command("resume", "run", "--runs-dir", str(stopped.parent), "--device", "cpu")
    assert answer.code == 2 and answer.err.count("\n") == 1 and answer.err.strip().isprintable()


def test_averages_carry_the_settings_and_are_intact_without_them(tmp_path) -> None:
    config = miniature("demo", "train.steps=4", "train.ema=0.5", "checkpoint.average_last=2")
    run = assemble(config, runs_dir=tmp_path, name="run", device="cpu")
    assert run.trainer.run().state == "finished"
    for folder in (run.path / "checkpoints" / name for name in checkpoint.AVERAGES):
        assert checkpoint.settings_of(folder) == fixed_settings(RunReader(run.path).config)
        manifest = json.loads((folder / checkpoint.MANIFEST).read_text())
        del manifest["settings"], manifest["settings_sha256"]
        (folder / checkpoint.MANIFEST).write_text(checkpoint._manifest_text(manifest))
        assert checkpoint.find_damage(folder) is None and checkpoint.settings_of(folder) is None


def test_a_checkpoint_that_records_resolved_instead_of_asked_settings_is_noticed(stopped, monkeypatch) -> None:
    """A planted bug: a resumed run records the settings that it computes with, not those in its config.toml."""
    monkeypatch.setattr(
        trainer, "fixed_settings", lambda config: fixed_settings(with_value(config, "train.precision", "fp32"))
    )
    resume(stopped, device="cpu", control=StopAfter(1)).trainer.run()
    with pytest.raises(InputError, match="train.precision was 'fp32' and is now 'auto'"):
        resume(stopped, device="cpu")
