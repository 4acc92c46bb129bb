"""What other tools read back of an exported run."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.base.errors import InputError
from tests.tui_transformer.recorded import record
from tests.waiting import PATIENCE
from tui_transformer.lab.exports import formats, mlflow, tensorboard, wandb
from tui_transformer.lab.exports.recorded import ExportedRun, scalars


def recorded(root, **options) -> ExportedRun:
    return ExportedRun(record(root, "run", **options))


def test_tensorboard_reads_every_point_back_with_its_step_and_time(tmp_path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = recorded(tmp_path)
    folder, _ = tensorboard.write(run, tmp_path / "logs", "best")
    read = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    read.Reload()
    expected: dict[str, list] = {}
    for (_, metrics), time in zip(run.metrics_lines, run.times, strict=True):
        for tag, value in scalars(metrics):
            expected.setdefault(tag, []).append((metrics["step"], time, np.float32(value)))
    assert expected.keys() == set(read.Tags()["scalars"])
    assert {"train/loss", "validation/loss", "validation/probes/rhyme"} <= expected.keys()
    for tag, points in expected.items():
        assert [(p.step, p.wall_time, np.float32(p.value)) for p in read.Scalars(tag)] == points
    assert {"config", "checks", "sample"} <= set(read.Tags()["tensors"])
    samples = read.Tensors("sample")
    assert [event.step for event in samples] == [500, 1000, 1500, 2000]
    assert b"the gate is barred" in samples[0].tensor_proto.string_val[0]
    assert b"n_heads = 4" in read.Tensors("config")[0].tensor_proto.string_val[0]


def test_the_hyperparameters_are_the_settings(tmp_path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata

    run = recorded(tmp_path)
    folder, _ = tensorboard.write(run, tmp_path / "logs", "best")
    read = EventAccumulator(str(folder))
    read.Reload()
    content = read.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    found = metadata.parse_session_start_info_plugin_data(content).hparams
    assert found["model.n_heads"].number_value == 4.0 and found["model.position"].string_value == "sinusoidal"
    assert found["model.bias"].bool_value is True and found.keys() == run.settings.keys()


def test_event_files_are_never_written_beside_others(tmp_path) -> None:
    pytest.importorskip("tensorboard")
    run = recorded(tmp_path, step=300)
    tensorboard.write(run, tmp_path / "logs", "best")
    with pytest.raises(InputError, match="already has event files"):
        tensorboard.write(run, tmp_path / "logs", "best")


def test_a_client_that_is_missing_is_a_line_that_names_the_extra(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(formats, "find_spec", lambda name: None)
    run = recorded(tmp_path, step=300)
    for tool in ("tensorboard", "wandb", "mlflow"):
        with pytest.raises(InputError, match=rf"pip install 'tui-transformer\[{tool}\]'"):
            formats.write(tool, run, tmp_path / "out", "best")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_mlflow_has_every_point_and_setting_in_a_local_database(tmp_path, monkeypatch) -> None:
    for name in ("mlflow", "sqlalchemy", "alembic"):
        pytest.importorskip(name)
    from mlflow.tracking import MlflowClient

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    run = recorded(tmp_path, step=400)
    out, words = mlflow.write(run, tmp_path / "out", "best")
    assert "nothing left this machine" in words
    client = MlflowClient(tracking_uri=f"sqlite:///{out / 'mlflow.db'}")
    (experiment,) = (e for e in client.search_experiments() if e.name == mlflow.EXPERIMENT)
    (found,) = client.search_runs([experiment.experiment_id])
    assert found.info.status == "FINISHED" and found.data.params["model.n_heads"] == "4"
    points = client.get_metric_history(found.info.run_id, "train/loss")
    expected = [(step, r["loss"]) for step, r in run.metrics_lines if r["kind"] == "train"]
    assert sorted((p.step, p.value) for p in points) == expected
    assert client.get_metric_history(found.info.run_id, "validation/probes/recall_110")


@pytest.mark.slow
def test_wandb_stays_on_this_machine_unless_the_environment_says_otherwise(tmp_path) -> None:
    pytest.importorskip("wandb")
    run = recorded(tmp_path, step=400)
    program = (
        "from pathlib import Path; import sys; "
        "from tui_transformer.lab.exports.recorded import ExportedRun; from tui_transformer.lab.exports import wandb;"
        f"print(*wandb.write(ExportedRun(Path({str(run.path)!r})), Path({str(tmp_path / 'out')!r}), ''))"
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WANDB")}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert "offline-run-" in done.stdout and "nothing left this machine" in done.stdout
    assert list((tmp_path / "out").rglob("*.wandb"))


class FakeWandb:
    """The client as far as the export calls it."""

    def __init__(self, folder: Path) -> None:
        self.dir, self.logged, self.summary, self.settings = str(folder / "files"), [], {}, {}

    def init(self, **settings) -> "FakeWandb":
        self.settings = settings
        return self

    def __enter__(self) -> "FakeWandb":
        return self

    def __exit__(self, *_) -> None:
        return None

    def log(self, values, step=None) -> None:
        self.logged.append((step, values))

    Settings = staticmethod(lambda **given: given)
    Table = staticmethod(lambda columns, data: (columns, data))


def test_wandb_gets_each_step_once_with_train_and_validation_together(tmp_path, monkeypatch) -> None:
    client = FakeWandb(tmp_path)
    monkeypatch.setitem(sys.modules, "wandb", client)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = recorded(tmp_path, verdicts=[("leak", "LEAK", "sees it all")], text="\x1b[31mred")
    wandb.write(run, tmp_path / "out", "best")
    assert os.environ["WANDB_MODE"] == "offline"
    *points, (_, samples) = client.logged
    steps = [step for step, _ in points]
    assert steps == sorted(set(steps)) and {"train/loss", "validation/loss"} <= dict(points)[200].keys()
    assert all(math.isfinite(value) for _, values in points for value in values.values())
    assert client.summary["badges"] == ["LEAK"] and client.settings["tags"] == ["LEAK"]
    assert "\x1b" not in json.dumps(samples["samples"], ensure_ascii=False)
