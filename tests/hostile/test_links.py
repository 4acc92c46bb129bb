"""A run directory whose files are links, pipes or devices: nothing outside it is written, and nobody waits for ever."""

import io
import os
import shutil
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.base.plain_files import open_regular_file, read_regular_file, require_regular_files
from engine.data.text_files import Reading
from engine.runs.commands import RunCommand, send
from engine.runs.files import write_user_file
from engine.runs.manage import write_notes
from tests.hostile.forked import said
from tests.hostile.poisoned_runs import completed, read, write
from tests.tui_transformer.recorded import record
from tests.tui_transformer.trained import train
from tui_transformer.cli.run import translate

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")

WRITTEN = (
    *("metrics.jsonl", "events.jsonl", "samples.jsonl", "status.json", "log.txt", ".status.json.new", ".lock"),
    *(
        "control.json",
        ".control.lock",
        ".notes.lock",
        ".notes.json.new",
        "checkpoints",
        "checkpoints/.step-00000008.new",
    ),
)
READ = ("run.json", "config.toml", "status.json", "metrics.jsonl", "samples.jsonl", "checkpoints/best", "log.txt")
LOOKING = (
    ("runs",),
    ("compare",),
    ("doctor", "run"),
    ("watch", "run"),
    ("export", "run", "--to", "csv"),
    ("note", "run"),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    run = completed(train(tmp_path_factory.mktemp("linked") / "runs", "run"))
    write(run / "status.json", read(run / "status.json") | {"state": "stopped"})
    config = read(run / "config.toml")
    config["train"]["steps"] = 8
    write(run / "config.toml", config)
    return run


IN_CI = ("metrics.jsonl", ".status.json.new")


@pytest.mark.parametrize("name", [n if n in IN_CI else pytest.param(n, marks=pytest.mark.slow) for n in WRITTEN])
def test_nothing_is_written_through_a_link(run, tmp_path, name: str) -> None:
    copy, victim = tmp_path / "runs" / "run", tmp_path / "victim"
    shutil.copytree(run, copy)
    victim.write_bytes(b"precious\n" * 10_000)
    path = copy / name
    if path.is_dir():
        shutil.copytree(path, tmp_path / "elsewhere")
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(tmp_path / "elsewhere" if (tmp_path / "elsewhere").exists() else victim)
    before = sorted(tmp_path.rglob("*"))
    root = ["--runs-dir", str(copy.parent)]
    for words in (["resume", "run", "--device", "cpu"], ["resume", "run", "--detach", "--device", "cpu"]):
        found = said([*words, *root])
        assert found.code in (1, 2) and len(found.text.strip().splitlines()) == 1, found.text
    for change in (lambda: send(copy, RunCommand.STOP), lambda: write_notes(copy, text="a note")):
        with pytest.raises(InputError, match="is a link or not a regular file"):
            change()
    assert victim.read_bytes() == b"precious\n" * 10_000
    assert sorted(path for path in tmp_path.rglob("*") if not path.name.endswith(".lock")) == [
        path for path in before if not path.name.endswith(".lock")
    ]


@pytest.mark.parametrize("name", [READ[0], *(pytest.param(name, marks=pytest.mark.slow) for name in READ[1:])])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_holds_no_reader_up(tmp_path, name: str, kind: str) -> None:
    copy = record(tmp_path / "runs", "run")
    (copy / "checkpoints").mkdir()
    path = copy / name
    path.unlink(missing_ok=True)
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    for words in LOOKING:
        found = said([*words, "--runs-dir", str(copy.parent)])
        assert found.code in (0, 1, 2), (words, found.code, found.text[-1500:])


def test_a_run_is_deleted_without_what_its_links_point_to(tmp_path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("precious")
    copy = record(tmp_path / "runs", "run")
    (copy / "checkpoints").symlink_to(tmp_path / "precious")
    assert said(["delete", "run", "--yes", "--runs-dir", str(copy.parent)]).code == 0
    assert not copy.exists() and (tmp_path / "precious" / "file").read_text() == "precious"


def test_only_plain_files_are_opened(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(OSError):
            open_regular_file(path).close()
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular_file(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_regular_file(tmp_path / "file", 4)
    with pytest.raises(InputError, match="pipe: is a link or not a regular file"):
        require_regular_files(tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("shape", ["a.tsv", "a.tsv.gz", "a.en,a.de", "folder"])
def test_a_corpus_that_is_a_pipe_or_a_device_holds_nobody_up(tmp_path, shape: str, kind: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    odd = folder / "train.en" if shape == "folder" else tmp_path / shape.partition(",")[0]
    os.mkfifo(odd) if kind == "pipe" else odd.symlink_to("/dev/zero")
    for path in (tmp_path / "a.de", folder / "train.de"):
        path.write_text("hallo\n", encoding="utf-8")
    corpus = ",".join(str(tmp_path / part) for part in shape.split(","))
    words = ["run", "--preset", "phrasebook", "--corpus", corpus, "--runs-dir", str(tmp_path / "runs")]
    found = said(words)
    assert found.code == 2 and f"{odd}: cannot be read: is not a regular file" in found.text


def test_a_line_without_end_is_no_sentence(tmp_path) -> None:
    with pytest.raises(InputError, match="line 1 has a NUL byte, so this is not text"):
        next(translate._file(Path("/dev/zero"), Reading()))
    endless = io.BufferedReader(io.BytesIO(b"a" * 100_001))  # the rest of it is not read
    with pytest.raises(InputError, match="pipe: line 1: longer than 100,000 characters"):
        next(translate._line_batches(endless, "pipe", Reading()))


def test_what_a_person_names_is_written_where_that_leads(tmp_path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link.csv", tmp_path / "pipe.csv"
    link.symlink_to(target)
    write_user_file(link, "a,b\n")
    assert link.is_symlink() and target.read_text() == "a,b\n"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_user_file(pipe, "a,b\n")
        assert os.read(reader, 100) == b"a,b\n" and pipe.is_fifo()
    finally:
        os.close(reader)
    with pytest.raises(OSError):
        write_user_file(tmp_path, "a folder")
    write_user_file(Path("/dev/null"), "gone")
    assert not Path("/dev/null").is_file()
