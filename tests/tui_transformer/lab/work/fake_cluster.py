"""A cluster of this machine alone: `sbatch`, `squeue`, `scancel` and `ssh` on PATH, and a Python that only says how it
was started as a worker.

`sbatch` really starts the script of each task, with the variables that Slurm gives it; what else happens is asked for
in the environment: FAKE_SBATCH and FAKE_SQUEUE are shell commands to run first.
"""

import stat
import sys
from pathlib import Path

SBATCH = """\
eval "$FAKE_SBATCH"
printf '%s\\n' "$@" > "{place}/submitted"
for word; do case $word in
    --array=*) tasks=${{word#--array=0-}}; tasks=${{tasks%\\%*}} ;;
    --output=*) output=${{word#--output=}} ;;
    -*) ;;
    *) script=$word ;;
esac; done
[ -n "$script" ] || {{ script={place}/stdin.sh; cat > "$script"; }}
for task in $(seq 0 "${{tasks:-0}}"); do
    log=$(printf %s "$output" | sed "s/%A/7/; s/%a/$task/; s/%j/7/; s/%%/%/g")
    SLURM_JOB_ID=$((7 + task)) SLURMD_NODENAME=n$task bash "$script" >> "$log" 2>&1 < /dev/null &
    echo $! >> "{place}/pids"
done
echo "7;here"
"""
SQUEUE = """eval "$FAKE_SQUEUE"; case "$*" in *%e) echo 2030-01-01T00:00:00 ;; *) echo 'RUNNING|None' ;; esac"""
SSH = """\
while [ "$1" = -o ]; do shift 2; done
[ "$1" != nowhere ] || { echo "ssh: Could not resolve hostname nowhere" >&2; exit 255; }
shift; cd /; exec env -u PYTHONPATH sh -c "$*"
"""
PYTHON = """\
case "$*" in *" work "*) echo "$PWD: $*"; exit "${{FAKE_WORKER:-0}}" ;; esac
exec {python} "$@"
"""


def write_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def fake_cluster(place: Path) -> tuple[Path, Path]:
    """Write the programs; return the folder for PATH, and the Python."""
    programs = {"sbatch": SBATCH.format(place=place), "squeue": SQUEUE, "scancel": "", "ssh": SSH}
    for name, text in programs.items():
        write_program(place / "bin" / name, text)
    return place / "bin", write_program(place / "python", PYTHON.format(python=sys.executable))
