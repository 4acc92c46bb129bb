"""Proofs that behave badly in every way, for the process that runs them."""

import os
import signal
import time

from engine.proofs.device.proof import Context, Proof
from engine.runs.verdict import CheckResult, failed, passed, skipped


def holds(context: Context) -> CheckResult:
    (context.folder / "file").write_text("its own")
    return passed("it holds", number=1.5, device=context.device)


def breaks(context: Context) -> CheckResult:
    return failed("it does not hold", number=float("nan"))


def cannot_tell(context: Context) -> CheckResult:
    return skipped("no such device")


def raises(context: Context) -> CheckResult:
    raise RuntimeError("first line\n\x1b[31msecond line")


def hangs(context: Context) -> CheckResult:
    time.sleep(10**6)
    return passed("never")


def leaves(context: Context) -> CheckResult:
    os.write(2, b"last words\n")
    os._exit(3)


def crashes(context: Context) -> CheckResult:
    os.kill(os.getpid(), signal.SIGSEGV)
    return passed("never")


def says_nothing(context: Context) -> CheckResult:
    return None  # type: ignore[return-value]


def loses_its_device(context: Context) -> CheckResult:
    import torch

    raise torch.AcceleratorError("CUDA error: device-side assert triggered\nadvice for developers")


def own_pid() -> int:
    return os.getpid()


def proof(run, *, group: str = "planted", limit: float = 120.0) -> Proof:
    return Proof(run.__name__, group, run, seconds=1.0, limit=limit)


EVERY = [
    proof(holds),
    proof(breaks),
    proof(raises),
    proof(hangs, limit=0.5),
    proof(leaves),
    proof(crashes),
    proof(says_nothing),
    proof(loses_its_device),
    proof(cannot_tell),
    proof(holds),
]
