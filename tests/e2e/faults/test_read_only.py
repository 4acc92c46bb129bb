"""A disk that takes nothing: what only reads works as ever, what writes is one line that names the file."""

import errno
import os
from pathlib import Path

import pytest

from tests.e2e.faults.rig import Rig
from tests.e2e.faults.slices import complaints
from tests.e2e.faults.test_study_faults import words

READS = (
    "runs",
    "doctor a",
    "compare a",
    "watch a",
    "sample a --prompt x --length 4",
    "evaluate a",
    "export a --to csv",
)
WRITES = {
    "note a hello": "a: ",
    "rename a c": "a/.lock: ",
    "delete a --yes": "a/.lock: ",
    "run --preset demo --device cpu": "demo in the runs folder: ",
    "run --preset demo --detach": "demo in the runs folder: ",
    "export a --to csv --out {runs}/x.csv": "x.csv cannot be written: ",
    "report a --out {runs}/x": "x cannot be written: ",
}


@pytest.mark.parametrize("line", READS)
def test_what_only_reads_works_on_a_read_only_disk(rig: Rig, trained: Path, line: str) -> None:
    ended = rig.run([*line.split(), "--runs-dir", str(trained)], trained, -1, errno.EROFS)
    assert ended.code == 0 and ended.writes == 0 and "Traceback" not in ended.said, ended.said


@pytest.mark.parametrize("error", [errno.EROFS, errno.EACCES], ids=["read-only", "not-allowed"])
def test_what_writes_says_what_it_could_not_write(rig: Rig, trained: Path, error: int) -> None:
    for line, named in WRITES.items():
        given = line.format(runs=trained).split()
        ended = rig.run([*given, "--runs-dir", str(trained)], trained, -1, error)
        lines = complaints(ended.said)
        assert ended.code in (1, 2) and len(lines) == 1 and "Traceback" not in ended.said, ended.said
        assert lines[0].endswith(f": {os.strerror(error)}") and (named in lines[0] or "run 'a'" in lines[0]), lines
    ended = rig.run(words(trained), trained, -1, error)
    assert ended.code == 2 and complaints(ended.said)[0].endswith(f".s.study.lock: {os.strerror(error)}"), ended.said
