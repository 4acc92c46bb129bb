"""What the exit code of a command means."""

from enum import IntEnum


class ExitCode(IntEnum):
    """0 done, 1 the run failed, 2 bad input, 128 + n ended by signal n, a run with a checkpoint."""

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    HUNG_UP = 129
    INTERRUPTED = 130
    READER_LEFT = 141
    TERMINATED = 143
