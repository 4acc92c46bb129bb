"""Weights & Biases, through its own client: offline, unless the user's environment says otherwise."""

import os
from pathlib import Path

from engine.base.clean import clean_line
from engine.base.language import tr
from tui_transformer.lab.exports.recorded import ExportedRun, scalars

PROJECT = "tui-transformer"
QUIET = {"WANDB_ERROR_REPORTING": "false", "WANDB_SILENT": "true"}


def write(run: ExportedRun, out: Path, checkpoint: str) -> tuple[Path, str]:
    """Write an offline W&B run, or an online one if `WANDB_MODE=online`; no weights."""
    mode = os.environ.setdefault("WANDB_MODE", "offline")
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    import wandb

    out.mkdir(parents=True, exist_ok=True)
    settings = wandb.Settings(silent=True, console="off", disable_git=True, disable_code=True, x_disable_stats=True)
    with wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        name=run.name,
        notes=run.notes.text or None,
        tags=[clean_line(tag)[:64] for tag in (*run.badges, *run.notes.tags)],
        config=run.settings,
        dir=str(out),
        settings=settings,
    ) as logged:
        folder = Path(logged.dir).parent
        steps: dict[int, dict[str, float]] = {}
        for step, record in run.metrics_lines:
            steps.setdefault(step, {}).update(scalars(record))
        for step, values in sorted(steps.items()):
            logged.log(values, step=step)
        if run.texts:
            rows = [[sample.step, sample.prompt, sample.text] for sample in run.texts]
            logged.log({"samples": wandb.Table(columns=["step", "prompt", "text"], data=rows)})
        logged.summary.update({"badges": list(run.badges), "state": run.state})
    if mode == "offline":
        return folder, tr("no data has left this machine; to upload the run: wandb sync {folder}", folder=folder)
    return folder, tr("the W&B client ran with WANDB_MODE={mode}", mode=mode)
