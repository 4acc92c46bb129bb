"""`doctor --via slurm`: have a job report what a worker would find on the node it is given."""

import json
import re
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from engine.base.errors import InputError, write_error
from engine.base.language import tr
from engine.data.corpus import data_folders
from engine.runs.tail import read_end
from engine.runs.verdict import CheckResult, failed, passed, passed_if
from tui_transformer.cli.output import print_info
from tui_transformer.lab.work.launchers import (
    ENDED,
    UNKNOWN,
    job_state_and_reason,
    remote_shell_command,
    run_command,
    submit_job,
)
from tui_transformer.lab.work.logs import END, last_line

POLL_INTERVAL = 1.0  # seconds between two calls of squeue
LATE = 60.0  # seconds that a shared disk may take to show what a node wrote
NamedResult = tuple[str, CheckResult]  # what was checked, and what was found
DONE = "all was asked"  # the report's last line
SCRIPT = """\
#!/bin/bash
try() {{ printf '%s\\t' "$1"; shift; "$@" 2>&1 | tr '\\n' ' '; echo; }}
written() {{ touch "$1/.written-$SLURM_JOB_ID" && rm "$1/.written-$SLURM_JOB_ID" && echo yes; }}
try node echo "${{SLURMD_NODENAME:-$(hostname)}}"
try python {python} --version
try runs written {runs}
for folder in {data}; do try "data $folder" ls -d "$folder"; done
try squeue squeue -h -j "$SLURM_JOB_ID" -o %e
({line})
echo {done}
"""


def check_node(options: tuple[str, ...], runs_dir: Path, data_dir: Path | None) -> tuple[list[NamedResult], bool]:
    """Return what a node has, and whether a worker can train there; waits until a job has run."""
    runs_dir = runs_dir.resolve()
    try:
        runs_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(tr("cannot write {filename}", filename=runs_dir), error) from None
    folders = [folder.resolve() for folder in data_folders(data_dir) if folder.is_dir()]
    words = ["doctor", "--json", "--runs-dir", str(runs_dir)]
    words += [] if data_dir is None else ["--data-dir", str(data_dir.resolve())]
    script = SCRIPT.format(
        python=shlex.quote(sys.executable),
        runs=shlex.quote(str(runs_dir)),
        data=shlex.join(map(str, folders)),
        line=remote_shell_command(*words),
        done=shlex.quote(DONE),
    )
    output = str(runs_dir).replace("%", "%%") + "/.node-%j.log"
    job = submit_job(["sbatch", "--parsable", "--job-name=doctor", f"--output={output}", *options], script)
    log = runs_dir / f".node-{job}.log"
    try:
        state = _await_last_job_state(job, log)
        report = read_end(log, END).decode("utf-8", "replace") if log.is_file() else ""
    finally:
        with suppress(InputError):
            run_command("scancel", job)
        log.unlink(missing_ok=True)
    if not report:
        found = tr("Slurm job {job}: {state}; it wrote nothing to {runs_dir}", job=job, state=state, runs_dir=runs_dir)
        return [(tr("runs folder"), failed(found, advice=_shared_disk_advice()))], False
    inside = list(_doctor_results(report))
    own = list(_node_results(report, runs_dir, folders, starts=bool(inside)))
    return [*own, *inside], all(found.status == "passed" for _, found in own)


def _await_last_job_state(job: str, log: Path) -> str:
    """Wait until the report is complete or can no longer be; return the job's last state in Slurm."""
    said, since = "", None
    while True:
        state, why = job_state_and_reason(job)
        if DONE in (read_end(log, END).decode("utf-8", "replace") if log.is_file() else ""):
            return state
        now = f"{state} ({why})" if why else state
        if now != said:
            print_info(tr("Slurm job {job}: {state}", job=job, state=now))
            said = now
        if state not in (*ENDED, UNKNOWN):
            since = None
        elif since is None:
            since = time.monotonic()
        elif time.monotonic() - since > LATE:
            return now
        time.sleep(POLL_INTERVAL)


def _node_results(report: str, runs_dir: Path, folders: list[Path], *, starts: bool) -> Iterator[NamedResult]:
    """Yield what the job's script found; `starts`: the program itself also reported."""
    lines = report.splitlines()
    said = {what: found.strip() for line in lines for what, tab, found in [line.partition("\t")] if tab}
    yield tr("node"), passed(said.get("node", ""))
    found = f"{sys.executable}: {said.get('python', '')}"
    yield "Python", passed_if(said.get("python", "").startswith("Python"), found, advice=_same_path_advice("Python"))
    found = last_line("\n".join(line for line in lines if "\t" not in line and line != DONE))
    yield tr("program"), passed_if(starts, tr("can be started"), found, advice=_same_path_advice(tr("the program")))
    found, right = said.get("runs", ""), tr("{folder}: writable", folder=runs_dir)
    yield tr("runs folder"), passed_if(found == "yes", right, found, advice=_shared_disk_advice())
    advice = tr("the node cannot read the corpora there")
    for folder in folders:
        found, right = said.get(f"data {folder}", ""), tr("{folder}: readable", folder=folder)
        yield tr("data folder"), passed_if(found == str(folder), right, found, advice=advice)
    found = said.get("squeue", "")
    right = tr("answers; the job's time runs out at {time}", time=found)
    advice = tr("without it, a worker learns its time limit only from Slurm's signal")
    known = bool(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]+|NONE|N/A|Unknown", found))
    yield "squeue", passed_if(known, right, found or tr("does not answer"), advice=advice)


def _same_path_advice(what: str) -> str:
    return tr("{what} must be on the node, at the same path as here", what=what)


def _shared_disk_advice() -> str:
    return tr("the runs folder must be on a disk that the nodes share")


def _doctor_results(report: str) -> Iterator[NamedResult]:
    """Yield what the program itself found on the node."""
    for line in report.splitlines():
        with suppress(ValueError, TypeError, KeyError):
            found = json.loads(line)
            if found["what"] not in ("python", "terminal"):
                advice = tr(found["advice"])
                yield tr(found["what"]), passed_if(found["ok"], tr(found["found"]), advice=advice)
