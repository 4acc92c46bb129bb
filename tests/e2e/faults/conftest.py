"""One warm process for all that fails."""

from collections.abc import Iterator

import pytest

from tests.e2e.faults.rig import Rig, possible


@pytest.fixture(scope="session")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Runs command lines on a disk that fails; skips where none can be had."""
    if not possible():
        pytest.skip("needs Linux and a C compiler")
    rig = Rig(tmp_path_factory.mktemp("rig"))
    yield rig
    rig.close()
