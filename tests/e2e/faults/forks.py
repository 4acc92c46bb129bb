"""One process with `failing.c` before its C library: each scenario runs in a fork of it, with one write failing.

Started by `rig.Rig`; reads requests on stdin, one JSON object a line, answers on stdout.
"""

import contextlib
import ctypes
import json
import os
import sys
from pathlib import Path

import torch

from tui_transformer.__main__ import main

torch.set_num_threads(1)  # a fork has none of the other threads


def forked(folder: str, words: list[str], k: int, error: int, output: str) -> dict[str, int]:
    """Runs a command line in a fork, the k-th write below the folder failing; its exit code and writes."""
    disk = ctypes.CDLL(None)
    told, tell = os.pipe()
    if (child := os.fork()) == 0:
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        code = 70
        try:
            disk.arm(os.fsencode(folder), ctypes.c_long(k), ctypes.c_long(error))
            code = main(words)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            disk.writes.restype = ctypes.c_long
            os.write(tell, str(disk.writes()).encode())
            with contextlib.suppress(Exception):
                sys.stdout.flush()
            os._exit(code)
    os.close(tell)
    count = os.read(told, 20)
    os.close(told)
    _, status = os.waitpid(child, 0)
    return {"code": os.waitstatus_to_exitcode(status), "writes": int(count or 0)}


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        Path(request["output"]).parent.mkdir(parents=True, exist_ok=True)
        print(json.dumps(forked(**request)), file=answers, flush=True)
