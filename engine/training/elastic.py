"""Starts and stops a run's ranks on this machine: torch's elastic agent, without its failure reports.

`python -m engine.training.elastic …` takes what `torchrun` takes. A rank that fails says why in the run's directory.
"""

import logging
import os
import sys

from torch.distributed import run
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

from engine.base import threads
from engine.ranks import end_with_parent
from engine.runs.process import PARENT_VARIABLE

ATTACHED = "--attached"  # end with the process that started this one


def main(words: list[str]) -> int:
    if words[:1] == [ATTACHED]:
        end_with_parent()
        words = words[1:]
    os.environ[PARENT_VARIABLE] = str(os.getpid())  # for the ranks
    logging.disable(logging.ERROR)  # so that a log ends with a rank's own message, not with a report of its failure
    try:
        asked = run.parse_args(words)  # type: ignore[no-untyped-call]
        if asked.nproc_per_node.isdecimal():  # the cores are shared; torchrun would give each rank one
            share = threads.default_count() // int(asked.nproc_per_node)
            os.environ.setdefault("OMP_NUM_THREADS", str(max(1, share)))
        run.run(asked)  # type: ignore[no-untyped-call]
    except ChildFailedError as error:
        return max(1, error.get_first_failure()[1].exitcode)
    except SignalException as signalled:
        return 128 + signalled.sigval
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
