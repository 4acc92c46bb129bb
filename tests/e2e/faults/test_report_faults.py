"""Every write of a report may fail, once or from then on: the older report stays, and a line names the file."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.faults.rig import Rig
from tests.e2e.faults.slices import ERRORS, NAMES, complaints, few
from tests.tui_transformer.lab.analysis.studies import attention
from tui_transformer.lab.reports.formats import FORMATS

KINDS = ("markdown", "html")
SLICE = 2  # writes that CI lets fail with each error, of some 10 to 30


def content(folder: Path) -> dict[str, bytes]:
    """All that a reader of a folder sees; what is hidden is no part of a report."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(files)}


class Reports:
    """A study and one of its runs, each as a report: the older one and the newer, undisturbed."""

    def __init__(self, rig: Rig, folder: Path, kind: str) -> None:
        self.rig, self.kind, self.out = rig, kind, folder / "out"
        self.runs = folder / "runs"
        attention(self.runs)
        self.older = self.made("att.global.s1")
        kept = shutil.copytree(self.out, folder / "older")
        first = self.rig.run(self.words("att"), self.out)
        assert first.code == 0, first.said
        self.newer, self.writes = content(self.out), first.writes
        self.kept = kept
        assert self.newer != self.older

    def words(self, what: str) -> list[str]:
        return ["report", what, "--format", self.kind, "--out", str(self.out), "--runs-dir", str(self.runs)]

    def made(self, what: str) -> dict[str, bytes]:
        ended = self.rig.run(self.words(what), self.out)
        assert ended.code == 0, ended.said
        return content(self.out)

    def holds(self, k: int, error: int) -> None:
        """What is promised when write k fails; of a negative k, all later ones too."""
        shutil.rmtree(self.out)
        shutil.copytree(self.kept, self.out)
        ended = self.rig.run(self.words("att"), self.out, k, error)
        where = f"write {k}, {ERRORS[error]}: {ended.said}"
        if ended.code == 0:  # it can do without, such as making a folder that is there
            assert content(self.out) == self.newer, where
            return
        lines = complaints(ended.said)
        assert ended.code == 1 and "Traceback" not in ended.said, where
        assert len(lines) == 1 and ERRORS[error] in lines[0] and str(self.out) in lines[0], where
        assert any(name.rpartition("/")[2] in lines[0] for name in self.newer) or "figures" in lines[0], where
        left = content(self.out)
        assert left == self.older or (k < 0 and FORMATS[self.kind].file not in left), where
        assert self.made("att") == self.newer, where
        assert not list(self.out.rglob(".*")), where


@pytest.fixture(scope="module", params=KINDS)
def reports(request: pytest.FixtureRequest, rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Reports:
    return Reports(rig, tmp_path_factory.mktemp("reports"), request.param)


@pytest.mark.parametrize("error", ERRORS, ids=NAMES)
def test_some_writes_of_a_report_fail(reports: Reports, error: int) -> None:
    for k in few(SLICE, f"{reports.kind} {error}", reports.writes):
        reports.holds(k, error)


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS, ids=NAMES)
def test_each_write_of_a_report_fails_once_or_from_then_on(reports: Reports, error: int) -> None:
    for k in range(1, reports.writes + 1):
        reports.holds(k, error)
        reports.holds(-k, error)
