"""Every write of an export may fail, once or from then on: nothing half is left, and the same command does it all."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.faults.rig import Rig
from tests.e2e.faults.slices import ERRORS, NAMES, complaints, few
from tests.e2e.faults.test_report_faults import content

KINDS = ("csv", "json", "tensorboard", "huggingface")
SLICE = 1  # writes that CI lets fail with each error, of some 5 to 20


Holds = Callable[[int, int], None]


@pytest.fixture(scope="module", params=KINDS)
def export(request: pytest.FixtureRequest, rig: Rig, trained: Path, tmp_path_factory: Any) -> tuple[Holds, int, str]:
    """What is promised of an export, how many writes it takes, and its name."""
    if request.param == "tensorboard":
        pytest.importorskip("tensorboard")
    out = tmp_path_factory.mktemp("export") / "out"
    words = ["export", "a", "--to", request.param, "--out", str(out), "--runs-dir", str(trained)]
    if request.param in ("csv", "json"):
        words[5] = str(out / f"a.{request.param}")
    first = rig.run(words, out)
    assert first.code == 0, first.said
    whole = content(out)

    def holds(k: int, error: int) -> None:
        shutil.rmtree(out)
        ended = rig.run(words, out, k, error)
        where = f"write {k}, {ERRORS[error]}: {ended.said}"
        lines = complaints(ended.said)
        assert ended.code == 1 and "Traceback" not in ended.said, where
        assert len(lines) == 1 and ERRORS[error] in lines[0] and str(out) in lines[0] and ".new" not in lines[0], where
        assert not content(out) and not [path for path in out.rglob("*") if path.is_file()], where
        again = rig.run(words, out)
        assert again.code == 0 and content(out) == whole, where + again.said

    return holds, first.writes, request.param


@pytest.mark.parametrize("error", ERRORS, ids=NAMES)
def test_some_writes_of_an_export_fail(export: tuple[Holds, int, str], error: int) -> None:
    holds, writes, name = export
    for k in few(SLICE, f"{name} {error}", writes):
        holds(k, error)


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS, ids=NAMES)
def test_each_write_of_an_export_fails_once_or_from_then_on(export: tuple[Holds, int, str], error: int) -> None:
    holds, writes, _ = export
    for k in range(1, writes + 1):
        holds(k, error)
        holds(-k, error)
