"""A queued run of another owner reads nothing that only the account of the runner may read."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.base import plain_files
from engine.base.errors import InputError
from engine.base.plain_files import OWNER_VARIABLE, may_read, open_regular_file
from engine.data import corpora
from engine.runs.reader import RunReader
from engine.training.assemble import begin, resume
from tests.tui_transformer.recorded import record
from tests.tui_transformer.trained import train
from tui_transformer.lab.work import processes
from tui_transformer.lab.work.processes import create_queued_run

pytest.importorskip("pwd", reason="needs owners of files")
pytestmark = pytest.mark.usefixtures("cached_checks")

ANA = 54321  # a user without an account here; every other file is this process's
SECRET = "swordfish swordfish and tuna " * 400


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody may enter: pytest's own may not be."""
    folder = Path(tempfile.mkdtemp()).resolve()
    folder.chmod(0o755)
    yield folder
    plain_files.PUBLIC_FOLDERS.clear()
    shutil.rmtree(folder)


def written(path: Path, mode: int, text: str = SECRET) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def queued_by_ana(config: Any, shared: Path, patch: pytest.MonkeyPatch) -> Path:
    """Her queued run, in a process that the runner has started to train it."""
    run = create_queued_run(config, runs_dir=shared / "runs", name="run", command="")
    patch.setenv(OWNER_VARIABLE, f"{ANA}:{run}")
    return run


def refused(run: Path, data_dir: Path | None = None) -> None:
    with pytest.raises(InputError, match="may not be read by the owner of this queued run") as caught:
        begin(run, device="cpu", data_dir=data_dir)
    assert "\n" not in str(caught.value) and RunReader(run).status.state == "failed"
    assert not any("swordfish" in path.read_text(errors="ignore") for path in run.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("mode", "folder_mode", "may"),
    [(0o600, 0o755, False), (0o644, 0o700, False), (0o640, 0o755, False), (0o604, 0o711, True)],
)
def test_a_text_is_read_only_if_the_owner_of_the_run_may_read_it(
    shared, tiny, monkeypatch, mode: int, folder_mode: int, may: bool
) -> None:
    """With tokens that are words, tokenizer.json would tell them."""
    text = written(shared / "home" / "letters.txt", mode)
    text.parent.chmod(folder_mode)
    run = queued_by_ana(tiny(f"data.corpus={text}", "data.tokenizer=words"), shared, monkeypatch)
    if not may:
        refused(run)
        return
    assert begin(run, device="cpu").trainer.run().state == "finished"
    assert "swordfish" in (run / "tokenizer.json").read_text()


def test_nor_through_a_link_nor_in_the_folder_that_the_run_names_for_data(shared, tiny, monkeypatch) -> None:
    text = written(shared / "home" / "letters.txt", 0o600)
    link = shared / "public.txt"
    link.symlink_to(text)
    refused(queued_by_ana(tiny(f"data.corpus={link}", "data.tokenizer=words"), shared, monkeypatch))
    shutil.rmtree(shared / "runs")
    moved = tiny(f"data.corpus={shared}/gone/letters.txt", "data.tokenizer=words")
    refused(queued_by_ana(moved, shared, monkeypatch), data_dir=shared / "home")


def test_nor_what_is_kept_of_a_large_text(shared, tiny, monkeypatch) -> None:
    """Its tokens are found by its size and times, without opening it."""
    monkeypatch.setattr(corpora, "LARGE", 1000)
    text = written(shared / "home" / "letters.txt", 0o600)
    config = tiny(f"data.corpus={text}", "data.tokenizer=bytes")
    begin(create_queued_run(config, runs_dir=shared, name="own", command=""), device="cpu").trainer.writer.discard()
    refused(queued_by_ana(config, shared, monkeypatch))


def test_nor_a_tokenizer_nor_the_weights_of_another_run(shared, tiny, monkeypatch) -> None:
    parent = train(shared / "home", "parent")
    text = written(shared / "letters.txt", 0o644)
    loaded = (f"data.corpus={text}", "data.tokenizer=loaded", f"data.tokenizer_from={parent}")
    started = (f"train.init_from={parent}@last",)
    for changes in (loaded, started):
        run = queued_by_ana(tiny(*changes), shared, monkeypatch)
        (shared / "home").chmod(0o700)
        with pytest.raises(InputError):
            begin(run, device="cpu")
        assert RunReader(run).status.state == "failed" and not (run / "tokenizer.json").exists()
        (shared / "home").chmod(0o755)
        monkeypatch.delenv(OWNER_VARIABLE)
        shutil.rmtree(run)


def test_a_run_that_resumes_is_held_to_the_same(shared, tiny, monkeypatch) -> None:
    text = written(shared / "letters.txt", 0o644)
    run = queued_by_ana(tiny(f"data.corpus={text}"), shared, monkeypatch)
    ready = begin(run, device="cpu")
    ready.trainer.writer.close("interrupted", "")
    text.chmod(0o600)
    with pytest.raises(InputError, match="may not be read by the owner of this queued run"):
        resume(run, device="cpu")
    text.chmod(0o644)
    assert resume(run, device="cpu").trainer.run().state == "finished"


def test_a_file_that_takes_the_place_of_another_while_it_is_opened_is_not_read(shared, monkeypatch) -> None:
    secret, public = written(shared / "home" / "letters.txt", 0o600), written(shared / "public.txt", 0o644, "nothing")
    monkeypatch.setenv(OWNER_VARIABLE, f"{ANA}:{shared}/runs/run")
    assert open_regular_file(public).read() == b"nothing"
    monkeypatch.setattr(os.path, "realpath", lambda path: str(public))  # a moment later, the link leads there
    with pytest.raises(PermissionError):
        open_regular_file(secret)


def test_named_corpora_of_the_account_are_everybodys(shared, tiny, monkeypatch) -> None:
    """But not other files beside them, such as what the account has fetched with a key of its own."""
    data = shared / "account"
    monkeypatch.setenv("TUI_TRANSFORMER_DATA", str(data))
    data.mkdir(mode=0o700)
    for split in ("train", "valid", "test"):
        written(data / "wikitext-2" / f"{split}.txt", 0o600)
    run = queued_by_ana(tiny("data.corpus=wikitext-2"), shared, monkeypatch)
    assert begin(run, device="cpu").trainer.run().state == "finished"
    shutil.rmtree(run)
    text = written(data / "private" / "letters.txt", 0o644)
    refused(queued_by_ana(tiny(f"data.corpus={text}", "data.tokenizer=words"), shared, monkeypatch))


@pytest.mark.parametrize(
    ("owner", "group", "mode", "may"),
    [
        (ANA, 0, 0o400, True),
        (ANA, 0, 0o077, False),  # the owner's own bits count, whatever others may do
        (0, 500, 0o640, True),
        (0, 500, 0o604, False),
        (0, 501, 0o640, False),
        (0, 501, 0o604, True),
    ],
)
def test_owners_groups_and_others_are_told_apart(monkeypatch, owner: int, group: int, mode: int, may: bool) -> None:
    """Ana has an account here, and is in group 500."""
    import pwd

    place = SimpleNamespace(st_uid=owner, st_gid=group, st_mode=stat.S_IFREG | mode)
    folder = SimpleNamespace(st_uid=0, st_gid=0, st_mode=stat.S_IFDIR | 0o711)
    monkeypatch.setattr(pwd, "getpwuid", lambda user: SimpleNamespace(pw_name="ana", pw_gid=100))
    monkeypatch.setattr(os, "getgrouplist", lambda name, group: [100, 500])
    monkeypatch.setattr(Path, "stat", lambda path: place if path.name == "text" else folder)
    assert may_read(ANA, Path("/a/b/text")) is may
    folder.st_mode = stat.S_IFDIR | 0o700
    assert not may_read(ANA, Path("/a/b/text")) and may_read(0, Path("/a/b/text"))


@pytest.mark.parametrize("theirs", [True, False])
def test_the_runner_says_whose_run_its_process_trains(tmp_path, monkeypatch, theirs: bool) -> None:
    run, real = record(tmp_path, "run", state="queued"), Path.lstat
    given = list[Any]()

    def lstat(path: Path) -> Any:
        found = real(path)
        return SimpleNamespace(st_uid=found.st_uid + theirs, st_mode=found.st_mode) if path == run else found

    def start(*_: Any, variables: Any, **__: Any) -> Any:
        given.append(variables)
        return SimpleNamespace(pid=os.getpid())

    monkeypatch.setattr(Path, "lstat", lstat)
    monkeypatch.setattr(processes, "NICENESS", os.nice(0))
    monkeypatch.setattr(processes, "start_detached", start)
    processes.spawn("begin", run, device="cpu", for_owner=True)
    processes.spawn("begin", run, device="cpu")
    uid = os.getuid() + 1
    assert given == [{OWNER_VARIABLE: f"{uid}:{run.resolve()}"} if theirs else {}, {}]
