"""One warm process for all that fails."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.faults.rig import Rig, possible
from tests.e2e.faults.slices import run_words


@pytest.fixture(scope="session")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Runs command lines on a disk that fails; skips where none can be had."""
    if not possible():
        pytest.skip("needs Linux and a C compiler")
    rig = Rig(tmp_path_factory.mktemp("rig"))
    yield rig
    rig.close()


@pytest.fixture(scope="session")
def trained(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A runs folder with a run `a` that is finished; only read."""
    runs = tmp_path_factory.mktemp("trained") / "runs"
    words = run_words(runs)
    ended = rig.run(words, runs)
    assert ended.code == 0, ended.said
    return runs
