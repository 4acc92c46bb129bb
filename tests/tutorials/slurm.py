"""The commands of a cluster, as far as a tutorial types them: `python slurm.py sbatch JOB`, `… srun COMMAND` …

`sbatch` runs the tasks of an array here, one after another, with the variables that Slurm gives them. The first task is
told to stop before its time is up, as by `--signal`, once its run has a checkpoint; a task that asks for it is begun
again.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

JOB = "7001"
# The pid of a task's step; whether the task is to be begun again; the runs that tasks have made.
STEP, AGAIN, MADE = Path(".slurm-step"), Path(".slurm-again"), Path(".slurm-runs")
LOOK = 0.02  # seconds


def options(script: str) -> dict[str, str]:
    """What the lines `#SBATCH --name=value` say."""
    return dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)", script, re.MULTILINE))


def sbatch(words: Sequence[str]) -> int:
    *_, name = words
    asked = options(Path(name).read_text(encoding="utf-8"))
    print(f"Submitted batch job {JOB}", flush=True)
    first, _, last = asked.get("array", "0-0").partition("-")
    most = os.environ.get("TUTORIAL_TASKS")  # so many tasks are enough
    tasks = range(int(first), int(last or first) + 1)
    for task in tasks[: int(most) if most else None]:
        variables = {"SLURM_JOB_ID": str(int(JOB) + task), "SLURM_ARRAY_JOB_ID": JOB, "SLURM_ARRAY_TASK_ID": str(task)}
        variables |= {"SLURM_CPUS_PER_TASK": asked.get("cpus-per-task", "1")}
        log = Path(
            asked.get("output", "slurm-%A_%a.out").replace("%A", JOB).replace("%a", str(task)).replace("%j", JOB)
        )
        for path in (STEP, AGAIN):
            path.unlink(missing_ok=True)
        _run(name, variables, log, told="signal" in asked and task == tasks[0])
        if AGAIN.exists():
            AGAIN.unlink()
            _run(name, variables | {"SLURM_RESTART_COUNT": "1"}, log, told=False)
    return 0


def _run(name: str, variables: dict[str, str], log: Path, *, told: bool) -> None:
    before = set(Path("runs").glob("*"))
    with log.open("ab") as file:
        job = subprocess.Popen(["bash", name], env=os.environ | variables, stdout=file, stderr=file)
        while told and job.poll() is None:
            time.sleep(LOOK)
            begun = set(Path("runs").glob("*")) - before
            if STEP.exists() and any(list(run.glob("checkpoints/step-*[1-9]*")) for run in begun):
                os.kill(int(STEP.read_text()), signal.SIGTERM)
                told = False
        job.wait()
    with MADE.open("a", encoding="utf-8") as made:
        made.writelines(f"{run.name}\n" for run in sorted(set(Path("runs").glob("*")) - before))


def srun(words: Sequence[str]) -> int:
    STEP.write_text(str(os.getpid()))
    command = list(words)
    while command[0].startswith("-"):
        command.pop(0)
    os.execvp(command[0], command)


def scontrol(words: Sequence[str]) -> int:
    if words[0] == "requeue":
        AGAIN.touch()
    return 0


def squeue(words: Sequence[str]) -> int:
    print("             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)")
    return 0


def rsync(words: Sequence[str]) -> int:
    """Copy the runs of the cluster, whose folder is this one here: those that its tasks have made."""
    *_, source, target = words
    assert source == f"cluster:{Path.cwd().name}/runs/", words
    for name in MADE.read_text(encoding="utf-8").split():
        shutil.copytree(Path("runs") / name, Path(target) / name)
    return 0


if __name__ == "__main__":
    work = {"sbatch": sbatch, "srun": srun, "scontrol": scontrol, "squeue": squeue, "rsync": rsync}
    sys.exit(work[sys.argv[1]](sys.argv[2:]))
