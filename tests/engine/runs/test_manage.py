"""Deleting and renaming beside links: nothing elsewhere is touched, and nothing half done stays."""

import pytest

from engine.base.errors import InputError
from engine.runs.manage import delete, rename
from engine.runs.reader import RunReader
from tests.tui_transformer.recorded import record


@pytest.mark.parametrize("what", ["delete", "rename"])
def test_a_run_that_is_a_link_stays_and_is_named_with_where_it_is(tmp_path, what: str) -> None:
    there = record(tmp_path / "elsewhere", "real")
    before = sorted(tmp_path.rglob("*"))
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "linked").symlink_to(there)
    reader = RunReader(tmp_path / "runs" / "linked")
    with pytest.raises(InputError, match=f"'linked' is a link to .*elsewhere/real; {what} it there"):
        delete(reader) if what == "delete" else rename(reader, "other")
    assert (tmp_path / "runs" / "linked").is_symlink()
    assert set(before) <= set(tmp_path.rglob("*")) and not (there / ".lock").exists()


@pytest.mark.parametrize("kind", ["link", "file", "folder"])
def test_what_a_deletion_left_behind_holds_no_other_up(tmp_path, kind: str) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    run = record(tmp_path / "runs", "a")
    grave = tmp_path / "runs" / ".deleted-a"
    if kind == "link":
        grave.symlink_to(tmp_path / "precious")
    else:
        grave.touch() if kind == "file" else (grave / "half").mkdir(parents=True)
    delete(RunReader(run))
    assert not list((tmp_path / "runs").iterdir()) and (tmp_path / "precious" / "file").exists()
