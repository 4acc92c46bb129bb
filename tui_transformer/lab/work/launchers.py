"""How to start a study's workers on other machines: `ablate --via`. A further scheduler is a row of `LAUNCHERS`.

A launcher only starts workers. They share the cells themselves, and the run directories alone say what is done, so a
scheduler is never asked for a result. Every worker runs in the folder, with the Python and at the paths of this
machine.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.base.clean import clean_line
from engine.base.errors import InputError, comma_separated, process_start_error, write_error
from engine.base.language import Message, tr
from engine.runs.files import write_atomic
from tui_transformer.lab.work.logs import last_line

PATIENCE = 60.0  # seconds for a scheduler's command to answer
WARNED = 120  # seconds before the time limit that Slurm sends TERM
CARRIED_VARIABLES = ("PYTHONPATH", "TUI_TRANSFORMER_DATA", "TUI_TRANSFORMER_CACHE")  # passed on to workers unchanged
UNKNOWN = "UNKNOWN"
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE")


@dataclass(frozen=True)
class Workers:
    """The workers of a study that are to be started."""

    via: str  # a name in `LAUNCHERS`
    study: str
    runs_dir: Path
    data_dir: Path | None
    device: str  # of each
    count: int
    retry_failed: bool = False  # train what failed again
    options: tuple[str, ...] = ()  # sbatch's options, the hosts, or Ray's address

    @property
    def shell_command(self) -> str:
        """The shell command that runs one of them, on any machine."""
        words = ["work", self.study, "--device", self.device, "--runs-dir", str(self.runs_dir.resolve())]
        words += ["--retry-failed"] if self.retry_failed else []
        words += [] if self.data_dir is None else ["--data-dir", str(self.data_dir.resolve())]
        return remote_shell_command(*words)

    def file(self, name: str) -> Path:
        """A file about the workers, beside the study's."""
        return self.runs_dir.resolve() / f".{self.study}.{name}"


@dataclass(frozen=True)
class LaunchResult:
    said: str  # what was started
    jobs: tuple[str, ...]  # by the scheduler's own names
    log: str  # where the workers' output goes
    watch: str = ""  # a command that shows them
    stop: str = ""  # one that stops them, with checkpoints
    failed: tuple[str, ...] = ()  # a line for each that could not be started
    wait: Callable[[], Sequence[str]] | None = None  # set if they end with this process: waits until all have
    # ended, and returns a line for each that failed


@dataclass(frozen=True)
class Launcher:
    cli_options: tuple[str, ...]  # the options of `ablate` that only some ways have
    plan: Callable[[Workers], str]  # what `start` does, as it would be typed; does nothing
    start: Callable[[Workers], LaunchResult]


def remote_shell_command(*words: str) -> str:
    """This program's command as a line for a shell on another machine that shares the disk; its texts are English."""
    carried = [f"{name}={os.environ[name]}" for name in CARRIED_VARIABLES if os.environ.get(name)]
    command = [*(["env", *carried] if carried else []), sys.executable, "-m", "tui_transformer", "--language", "en"]
    return f"cd {shlex.quote(str(Path.cwd()))} && exec {shlex.join([*command, *words])}"


def run_command(*command: str, text: str | None = None, patience: float | None = None) -> str:
    """What a scheduler's command prints; raises `InputError` with its last words if it fails, hangs or is missing."""
    patience = PATIENCE if patience is None else patience
    try:
        done = subprocess.run(
            command,
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
            check=False,
        )
    except FileNotFoundError:
        raise InputError(
            Message(
                "{program} is not on PATH; run this where it is, e.g. on the cluster's login node", program=command[0]
            )
        ) from None
    except subprocess.TimeoutExpired:
        message = Message("{program} did not answer within {seconds:.0f} s", program=command[0], seconds=patience)
        raise InputError(message) from None
    except OSError as error:
        raise process_start_error(error) from None
    if done.returncode != 0:
        said = last_line(done.stderr).removeprefix(f"{command[0]}: ").removeprefix("error: ").removesuffix(".")
        said = said or tr("exit code {code}", code=done.returncode)
        raise InputError(f"{command[0]}: {said}")
    return done.stdout.strip()


# Slurm


def slurm_script(workers: Workers) -> str:
    return f"#!/bin/bash\n# One worker of the study {workers.study}.\n{workers.shell_command}\n"


def sbatch_command(workers: Workers) -> list[str]:
    folder = str(workers.runs_dir.resolve()).replace("%", "%%")  # sbatch fills in what follows a %
    log = f"{folder}/{workers.file('slurm-%A_%a.log').name}"
    return [
        "sbatch",
        "--parsable",
        f"--job-name={workers.study}",
        f"--array=0-{workers.count - 1}%{workers.count}",
        "--requeue",
        "--open-mode=append",  # else a worker that starts again would empty its own log
        f"--signal=B:TERM@{WARNED}",
        f"--output={log}",
        *workers.options,
        str(workers.file("slurm.sh")),
    ]


def _plan_slurm(workers: Workers) -> str:
    return f"{workers.file('slurm.sh')}:\n{slurm_script(workers)}\n{shlex.join(sbatch_command(workers))}"


def _start_slurm(workers: Workers) -> LaunchResult:
    path = workers.file("slurm.sh")
    try:
        write_atomic(path, slurm_script(workers))
    except OSError as error:
        raise write_error(tr("cannot write {filename}", filename=path), error) from None
    try:
        job = submit_job(sbatch_command(workers))
    except InputError as error:
        if "array" not in str(error).lower():
            raise
        more = tr(
            "an array of {count:,} is too large for this cluster; use fewer --workers (`scontrol show config` shows "
            "MaxArraySize)",
            count=workers.count,
        )
        raise InputError(f"{error}; {more}") from None
    state, why = job_state_and_reason(job)
    said = tr("Slurm array {job}: {state}", job=job, state=f"{state} ({why})" if why else state)
    log = str(workers.file(f"slurm-{job}_*.log"))
    return LaunchResult(said, (job,), log, f"squeue -j {job}", f"scancel {job}")


def submit_job(command: list[str], text: str | None = None) -> str:
    """Submit a job; return its id. Raises `InputError` with sbatch's own words if it is refused."""
    try:
        return run_command(*command, text=text).partition(";")[0]
    except InputError as error:
        if "sbatch: " not in str(error) or "array" in str(error).lower():
            raise
        hint = tr('pass what your site requires as --slurm "--partition=…", or set options = […] under [slurm]')
        raise InputError(f"{error}; {hint}") from None


def job_state_and_reason(job: str) -> tuple[str, str]:
    """A Slurm job's state and why it waits, in Slurm's words; `UNKNOWN` and why if squeue does not say."""
    try:
        lines = run_command("squeue", "-h", "-t", "all", "-j", job, "-o", "%T|%r").splitlines()
    except InputError as error:
        return UNKNOWN, str(error)
    states = sorted((line.partition("|") for line in lines), key=lambda parts: parts[0] in ENDED)
    if not states:
        return UNKNOWN, tr("squeue does not list it")
    state, _, why = states[0]
    return state, "" if why == "None" else why


def pending_reason(name: str, patience: float) -> str:
    """What the jobs of a name wait for, `PENDING (Resources)`; "" if none does, or squeue does not say."""
    try:
        said = run_command("squeue", "-h", "-t", "PENDING", "-n", name, "-o", "%T|%r", patience=patience)
    except InputError:
        return ""
    state, _, why = clean_line(said.partition("\n")[0]).partition("|")
    return f"{state} ({why})" if why and why != "None" else state


# Ray


def _plan_ray(workers: Workers) -> str:
    where = repr(workers.options[0] if workers.options else "local")
    options = f"max_retries=0, num_gpus={_gpus_per_worker(workers)}"
    return f"ray.init({where}); ray.remote({options}) × {workers.count}:\n{workers.shell_command}"


def _gpus_per_worker(workers: Workers) -> int:
    return 1 if workers.device.startswith("cuda") else 0


def _start_ray(workers: Workers) -> LaunchResult:
    try:
        import ray
    except ImportError:
        raise InputError(Message("--via ray needs Ray: pip install ray")) from None
    address = workers.options[0] if workers.options else "local"  # without one, Ray may join a neighbour's cluster
    try:
        ray.init(address, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # ConnectionError, RuntimeError, ValueError and Ray's own
        why = last_line(str(error))
        raise InputError(Message("Ray at {address} does not answer: {why}", address=address, why=why)) from None

    def work(line: str, log: str) -> int:  # sent to the node by value: it knows only what it imports
        import ctypes
        import signal
        import subprocess
        import sys
        import time

        def end_with_ray() -> None:
            if sys.platform == "linux":
                ctypes.CDLL(None).prctl(1, signal.SIGTERM)

        with open(log, "ab") as file:  # noqa: PTH123
            worker = subprocess.Popen(["/bin/sh", "-c", line], stdout=file, stderr=file, preexec_fn=end_with_ray)
        try:
            while worker.poll() is None:
                time.sleep(1)  # Ray's interrupt does not reach a process that waits in the system
        except KeyboardInterrupt:  # cancelled
            worker.terminate()
        return worker.wait()

    task = ray.remote(max_retries=0, num_gpus=_gpus_per_worker(workers))(
        work
    )  # another worker claims what a lost one trained
    logs = [str(workers.file(f"ray-{i}.log")) for i in range(workers.count)]
    going = {task.remote(workers.shell_command, log): log for log in logs}

    def wait() -> list[str]:
        failed = []
        try:
            while going:
                ended = ray.wait(list(going))[0][0]
                log = going.pop(ended)
                try:
                    code = ray.get(ended)
                except ray.exceptions.RayError as error:
                    why = last_line(str(error)).partition(". ")[0]  # the rest is about Ray's own tools
                    failed.append(tr("a worker was lost: {why}; its log is {log}", why=why, log=log))
                else:
                    said = tr("a worker ended with exit code {code}; its log is {log}", code=code, log=log)
                    failed += [said] if code else []
        except BaseException:
            for one in going:
                ray.cancel(one)
            ray.wait(list(going), num_returns=len(going), timeout=PATIENCE)
            raise
        finally:
            ray.shutdown()
        return failed

    said = tr("Ray at {address}: workers requested: {n}; they exit with this process", address=address, n=workers.count)
    return LaunchResult(said, tuple(logs), str(workers.file("ray-*.log")), wait=wait)


# ssh


def _ssh_command(workers: Workers, i: int) -> list[str]:
    """The command that starts a worker on a host, to outlive the connection, and prints its process id."""
    log = shlex.quote(str(workers.file(f"ssh-{i}.log")))
    needed = shlex.join([str(Path.cwd()), sys.executable, str(workers.runs_dir.resolve())])
    worker = f"(trap '' HUP; {workers.shell_command}) >>{log} 2>&1 </dev/null & echo $!"
    remote = shlex.join(["sh", "-c", f"ls -d {needed} >/dev/null && {{ {worker}; }}"])
    return ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", workers.options[i], remote]


def _plan_ssh(workers: Workers) -> str:
    return "\n".join(shlex.join(_ssh_command(workers, i)) for i in range(len(workers.options)))


def _start_ssh(workers: Workers) -> LaunchResult:
    begun, failed = [], []
    for i, host in enumerate(workers.options):
        try:
            begun.append((host, last_line(run_command(*_ssh_command(workers, i)))))  # a login may say more
        except InputError as error:
            failed.append(f"{host}: {error}")
    if not begun:
        raise InputError("; ".join(failed))
    said = tr("started on {hosts}", hosts=comma_separated(f"{host} (process {process})" for host, process in begun))
    stop = "; ".join(shlex.join(["ssh", host, "kill", process]) for host, process in begun)
    jobs = tuple(f"{host}:{process}" for host, process in begun)
    return LaunchResult(said, jobs, str(workers.file("ssh-*.log")), stop=stop, failed=tuple(failed))


LAUNCHERS: Mapping[str, Launcher] = {
    "slurm": Launcher(("--workers", "--slurm"), _plan_slurm, _start_slurm),
    "ray": Launcher(("--workers", "--address"), _plan_ray, _start_ray),
    "ssh": Launcher(("--hosts",), _plan_ssh, _start_ssh),
}
