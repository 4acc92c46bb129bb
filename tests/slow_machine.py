"""Run the tests as on a slow machine, to find those that depend on its speed.

    python -m tests.slow_machine --busy 2 -- -n auto -m "not slow"
    python -m tests.slow_machine --share 0.1 --slow-files --shuffle -- tests/tui_transformer/studio

Arguments after `--` go to pytest. `--share` needs Linux, and root or a control group of one's own.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
PERIOD = 100_000  # µs
BUSY = "while True: pass"
SOURCE = Path(__file__).with_name("slow_files.c")


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.slow_machine", description=__doc__.partition("\n")[0])
    asked.add_argument("--busy", type=int, default=0, metavar="N", help="run N busy processes alongside the tests")
    asked.add_argument("--share", type=float, metavar="CORES", help="limit all tests together to so many cores: 0.1")
    asked.add_argument("--slow-files", action="store_true", help="delay every file access by milliseconds")
    asked.add_argument("--shuffle", action="store_true", help="run the tests in random order")
    asked.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    chosen = asked.parse_args()
    command = [sys.executable, "-m", "pytest", *(("-p", "randomly") if chosen.shuffle else ()), *chosen.pytest]
    surroundings = dict(os.environ)
    with ExitStack() as stack:
        if chosen.slow_files:
            surroundings["LD_PRELOAD"] = str(stack.enter_context(library()))
        if chosen.share:
            tasks = stack.enter_context(group(chosen.share))
            command = ["sh", "-c", f'echo $$ > "{tasks}" && exec "$@"', "sh", *command]
        for _ in range(chosen.busy):
            stack.enter_context(busy())
        try:
            return subprocess.call(command, env=surroundings)
        except KeyboardInterrupt:
            return 130


@contextmanager
def busy() -> Iterator[None]:
    """A process that computes all the time."""
    process = subprocess.Popen([sys.executable, "-c", BUSY], start_new_session=True)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def library() -> Iterator[Path]:
    """Compile what delays the use of files, to be loaded before the C library."""
    with tempfile.TemporaryDirectory(prefix="slow-files-") as folder:
        made = Path(folder) / "slow_files.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", made, SOURCE, "-ldl"], check=True)
        yield made


@contextmanager
def group(cores: float) -> Iterator[Path]:
    """Make a control group whose processes together get a share of a core.

    Yields:
        Its `cgroup.procs`: writing a PID to it adds a process.

    Raises:
        SystemExit: no such group can be made here.
    """
    quota = f"{cores * PERIOD:.0f}"
    made = CGROUPS / "cpu" / f"slow-machine-{os.getpid()}"
    limits = {"cpu.cfs_period_us": f"{PERIOD}", "cpu.cfs_quota_us": quota}
    try:
        if (CGROUPS / "cgroup.controllers").exists():  # version 2
            (CGROUPS / "cgroup.subtree_control").write_text("+cpu")
            made, limits = CGROUPS / made.name, {"cpu.max": f"{quota} {PERIOD}"}
        made.mkdir()
        for name, limit in limits.items():
            (made / name).write_text(limit)
    except OSError as error:
        sys.exit(f"--share: no control group with a limit can be made here: {error}")
    try:
        yield made / "cgroup.procs"
    finally:
        while left := (made / "cgroup.procs").read_text().split():  # by tests
            for process in left:
                with suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
            time.sleep(0.05)
        made.rmdir()


if __name__ == "__main__":
    sys.exit(main())
