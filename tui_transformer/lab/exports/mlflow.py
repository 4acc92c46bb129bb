"""MLflow, through its own client: a local database, unless the user's environment names a server."""

import logging
import os
import re
from pathlib import Path
from typing import Any

from engine.base.language import tr
from engine.config.toml import config_toml
from tui_transformer.lab.escaping import markdown_block, markdown_text
from tui_transformer.lab.exports.recorded import ExportedRun, scalars

EXPERIMENT = "tui-transformer"
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "MLFLOW_LOGGING_LEVEL": "WARNING"}
RUN_STATUSES = {"finished": "FINISHED", "failed": "FAILED"}  # else KILLED: ended early
AT_ONCE = 100  # parameters and metrics any server takes per request
LONGEST = 500  # parameter length any server takes, characters
_STRANGE = re.compile(r"[^A-Za-z0-9_\-. :/]")  # characters MLflow refuses in names


def write(run: ExportedRun, out: Path, checkpoint: str) -> tuple[Path, str]:
    """Write an MLflow run: metrics by step with times, every setting, samples and config as files; no weights."""
    for variable, value in QUIET.items():
        os.environ.setdefault(variable, value)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient

    server = os.environ.get("MLFLOW_TRACKING_URI")
    out = out.absolute()
    if server is None:
        out.mkdir(parents=True, exist_ok=True)
    uri = server or f"sqlite:///{out / 'mlflow.db'}"
    client = MlflowClient(tracking_uri=uri)
    files = None if server else (out / "artifacts").as_uri()
    start = int(1000 * run.start)
    # Problems with the scores first, then people's notes.
    note = [f"**{markdown_text(badge)}** {markdown_text(why)}" for badge, why in run.badges.items()]
    note += [markdown_block(run.notes.text)] if run.notes.text else []
    tags = {"state": run.state, "badges": " ".join(run.badges), "mlflow.note.content": "\n\n".join(note)}
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
    known = client.get_experiment_by_name(name)
    experiment = str(known.experiment_id if known is not None else client.create_experiment(name, files))
    made = client.create_run(experiment, start_time=start, tags=tags, run_name=run.name)
    identity = made.info.run_id
    for part in _parts([Param(key, str(value)[:LONGEST]) for key, value in run.settings.items()]):
        client.log_batch(identity, params=part)
    metrics = [
        Metric(_STRANGE.sub("_", name), value, int(1000 * time), step)
        for (step, record), time in zip(run.metrics_lines, run.times, strict=True)
        for name, value in scalars(record)
    ]
    for part in _parts(metrics):
        client.log_batch(identity, metrics=part)
    client.log_text(identity, config_toml(run.config), "config.toml")
    if run.texts:
        samples = (
            tr("step {step}\n{prompt}\n→\n{text}\n", step=sample.step, prompt=sample.prompt, text=sample.text)
            for sample in run.texts
        )
        client.log_text(identity, "\n".join(samples), "samples.txt")
    end = int(1000 * run.times[-1]) if run.times else start
    client.set_terminated(identity, RUN_STATUSES.get(run.state, "KILLED"), end)
    if server:
        return Path(identity), tr("sent to {server}, as set by MLFLOW_TRACKING_URI", server=server)
    return out, tr("no data has left this machine; to view the run: mlflow ui --backend-store-uri {uri}", uri=uri)


def _parts(items: list[Any]) -> list[list[Any]]:
    return [items[i : i + AT_ONCE] for i in range(0, len(items), AT_ONCE)]
