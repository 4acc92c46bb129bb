"""Run proofs one by one in a process that may hang or die, and keep their record on disk up to date."""

import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from engine.base.command_line import current_command_line
from engine.base.errors import write_error
from engine.base.language import Message, tr
from engine.base.release import release_facts
from engine.proofs.device.proof import THREADS, Context, Proof
from engine.proofs.device.worker import TimedOut, Worker, WorkerDied, WorkerError
from engine.runs.files import replace_non_finite, write_user_file
from engine.runs.verdict import CheckResult, failed, skipped

Facts = dict[str, Any]  # as the file has them
BUDGET = 570.0  # seconds for all proofs; with start-up, ten minutes
# Environment variables that change how a device computes; recorded if set.
VARIABLES = (
    *("CUBLAS_WORKSPACE_CONFIG", "CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE"),
    *("OMP_NUM_THREADS", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"),
)


class ProofRecord:
    """The JSON file: everything found so far, rewritten as a whole after each proof; raises if it cannot be written."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path, self._started = path, time.monotonic()
        self.content: Facts = {
            "schema": 1,
            "kind": "gpu-proof",
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "complete": False,
            "command": current_command_line(),
            "project": release_facts(),
            "machine": {},
            "settings": dict(settings) | {name: os.environ[name] for name in VARIABLES if name in os.environ},
            "seconds": 0.0,
            "counts": {},
            "proofs": [],
        }
        self.write()

    def add_and_write(self, proof: Proof, result: CheckResult) -> None:
        self.content["proofs"].append({"name": proof.name, "group": proof.group, **asdict(result)})
        statuses = [entry["status"] for entry in self.content["proofs"]]
        self.content["counts"] = {status: statuses.count(status) for status in ("passed", "failed", "skipped")}
        self.write()

    def write(self) -> None:
        self.content["seconds"] = round(time.monotonic() - self._started, 1)
        try:
            write_user_file(self.path, json.dumps(replace_non_finite(self.content), indent=1, ensure_ascii=True) + "\n")
        except (OSError, ValueError) as error:
            problem = error if isinstance(error, OSError) else OSError(None, str(error))
            raise write_error(tr("--out {path}: cannot be written", path=str(self.path)[:200]), problem) from None


def run_proofs(
    proofs: Sequence[Proof],
    device: str,
    record: ProofRecord,
    *,
    budget: float = BUDGET,
    begins: Callable[[int, Proof, float], None] = lambda number, proof, left: None,
) -> Iterator[tuple[Proof, CheckResult]]:
    """Run every proof that fits in `budget` (seconds); no proof can stop the others. `begins` is called before each
    with its number, the proof, and the estimated seconds left.
    """
    started = time.monotonic()
    expected, done = sum(proof.seconds for proof in proofs), 0.0
    with (
        tempfile.TemporaryDirectory(prefix="tui-transformer-proof-", ignore_cleanup_errors=True) as root,
        Worker(Path(root) / "log.txt") as worker,
    ):
        record.content["machine"] = _machine_facts(worker, device)
        record.write()
        began = time.monotonic()
        for number, proof in enumerate(proofs, 1):
            pace = (time.monotonic() - began) / done if done else 1.0
            begins(number, proof, (expected - done) * pace)
            left = budget - (time.monotonic() - started)
            result = _run_proof(worker, proof, Context(device, Path(root) / f"{number:03d}"), left, budget)
            done += proof.seconds
            record.add_and_write(proof, result)
            yield proof, result
    record.content["complete"] = True
    record.write()


def _run_proof(worker: Worker, proof: Proof, context: Context, left: float, budget: float) -> CheckResult:
    if left < 2.0:  # seconds
        return skipped(Message("not started: the {budget:.0f}-minute limit was reached", budget=budget / 60))
    started = time.monotonic()
    context.folder.mkdir()
    try:
        result = worker.call(_call_and_clean_up, proof.run, context, limit=min(proof.limit, left))
        if not isinstance(result, CheckResult):
            result = failed(Message("the proof returned {name} instead of a result", name=type(result).__name__))
    except TimedOut as error:
        result = failed(Message("the proof hung: {error}", error=error))
        if left < proof.limit:
            result = skipped(Message("not finished within the {budget:.0f}-minute limit", budget=budget / 60))
    except (WorkerError, WorkerDied) as error:
        result = failed(str(error))
    finally:
        shutil.rmtree(context.folder, ignore_errors=True)
    return replace(result, seconds=round(time.monotonic() - started, 2))


def _call_and_clean_up(function: Callable[[Context], CheckResult], context: Context) -> CheckResult:
    if "torch" not in sys.modules:
        return function(context)
    import torch

    from engine.model.numerics import set_fp32_matmul

    torch.set_num_threads(THREADS)
    try:
        result = function(context)
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.synchronize()  # so that a late error fails this proof, not the next one
            torch.cuda.empty_cache()
        return result
    finally:
        set_fp32_matmul("exact")


def _machine_facts(worker: Worker, device: str) -> Facts:
    own = {
        "device": device,
        "threads": THREADS,
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "os": platform.platform(),
        "python": platform.python_version(),
    }
    with suppress(WorkerError, WorkerDied):
        return own | worker.call(device_facts, device, limit=120.0)
    return own


def device_facts(device: str) -> Facts:
    import torch

    from engine.model.devices import device_name, processor_description
    from engine.model.numerics import is_gpu_with_bf16

    where = torch.device(device)
    facts: Facts = {"device_name": device_name(where), "processor": processor_description()}
    facts |= {"torch": torch.__version__, "cuda": torch.version.cuda, "hip": torch.version.hip}
    if where.type == "cuda":
        properties = torch.cuda.get_device_properties(where)
        facts |= {
            "capability": f"{properties.major}.{properties.minor}",
            "device_memory_bytes": properties.total_memory,
            "multiprocessors": properties.multi_processor_count,
            "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]
            "bf16": is_gpu_with_bf16(where),
            "driver": None,
        }
        with suppress(Exception):  # no NVIDIA library, or an AMD device
            import pynvml

            pynvml.nvmlInit()
            try:
                version = pynvml.nvmlSystemGetDriverVersion()
            finally:
                pynvml.nvmlShutdown()
            facts["driver"] = version.decode() if isinstance(version, bytes) else str(version)
    return facts
