"""Rows of finished runs in the cache folder: never another answer than the files', and read only if nothing changed."""

import json
import os
import random
import threading
from contextvars import copy_context
from pathlib import Path

import pytest

from engine.base.cache_folder import use_cache_folder
from engine.runs import row_cache
from engine.runs.row_cache import WORTH_SAVING, RowCache
from tests.tui_transformer.recorded import everything, record
from tui_transformer.cli.show.runs import BLOCK
from tui_transformer.cli.show.runs import runs as list_runs
from tui_transformer.lab.analysis import folder
from tui_transformer.lab.analysis.entry import read_entry
from tui_transformer.lab.analysis.folder import RunsFolder
from tui_transformer.lab.records import feed
from tui_transformer.lab.records.feed import Feed, rows_oldest_first
from tui_transformer.lab.records.run_files import READ_FILES

LISTS = {
    "Compare": lambda root: RunsFolder(root).scan().entries,
    "Train": lambda root: Feed(root).poll().rows,
    "runs": lambda root: tuple(rows_oldest_first(root)[1]),
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache folder that keeps every row at once."""
    monkeypatch.setattr(row_cache, "WORTH_SAVING", 1)
    monkeypatch.setattr(row_cache, "SETTLED", -(10**12))
    with use_cache_folder(tmp_path / "cache"):
        yield tmp_path / "cache" / "rows"


@pytest.fixture
def root(tmp_path) -> Path:
    everything(tmp_path / "runs")
    for name in ("pe-1", "pe-2"):
        run = record(tmp_path / "runs", name)
        (run / "notes.json").write_text('{"text": "odd", "tags": ["x"], "seen": ["STILL-FALLING"]}')
    return tmp_path / "runs"


@pytest.fixture
def read(monkeypatch) -> list[str]:
    """The names of the runs that are read."""
    found: list[str] = []
    entry, row = read_entry, feed._row
    monkeypatch.setattr(folder, "read_entry", lambda path: found.append(path.name) or entry(path))
    monkeypatch.setattr(feed, "_row", lambda reader: found.append(reader.name) or row(reader))
    return found


@pytest.mark.parametrize("of", LISTS)
def test_finished_runs_are_read_once_and_their_rows_stay_the_same(of: str, root, read, cache) -> None:
    before = set(root.rglob("*"))
    first = LISTS[of](root)
    read.clear()
    assert LISTS[of](root) == first and all(isinstance(row.path, Path) for row in LISTS[of](root))
    unfinished = {row.name for row in first if row.state != "finished"}
    assert len(first) - len(unfinished) == 4 and set(read) == unfinished
    assert set(root.rglob("*")) == before and [path.stat().st_mode & 0o777 for path in cache.iterdir()] == [0o600]


@pytest.mark.parametrize("file", ["run.json", *READ_FILES])
def test_a_file_that_was_changed_is_read_again_whatever_its_time_and_size_say(file: str, root, read) -> None:
    RunsFolder(root).scan()
    path = root / "pe-1" / file
    text, was = path.read_bytes(), path.stat()
    path.write_bytes(text.replace(b"2", b"3"))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    read.clear()
    found = {entry.name: entry for entry in RunsFolder(root).scan().entries}
    assert "pe-1" in read and "pe-2" not in read and found["pe-1"] == read_entry(root / "pe-1")


def test_rows_follow_neither_a_renamed_run_nor_another_language_nor_another_version(root, read, monkeypatch) -> None:
    RunsFolder(root).scan()
    (root / "pe-1").rename(root / "pe-3")
    read.clear()
    RunsFolder(root).scan()
    assert "pe-3" in read and "pe-2" not in read
    for name, other in (("language_code", lambda: "zh"), ("release_facts", lambda: {"version": "next"})):
        monkeypatch.setattr(row_cache, name, other)
        read.clear()
        RunsFolder(root).scan()
        assert {"pe-2", "pe-3"} <= set(read)


def test_what_was_just_written_or_cannot_be_read_is_not_kept(root, read, monkeypatch) -> None:
    (root / "pe-1" / "checks.json").write_text("{")
    RunsFolder(root).scan()
    read.clear()
    RunsFolder(root).scan()
    assert "pe-1" in read and "pe-2" not in read
    monkeypatch.setattr(row_cache, "SETTLED", 10**12)
    record(root, "new")
    RunsFolder(root).scan()
    read.clear()
    RunsFolder(root).scan()
    assert "new" in read


def test_a_config_that_json_cannot_hold_is_not_kept(root, read) -> None:
    with (root / "pe-1" / "config.toml").open("a") as file:
        file.write("[later]\nlimit = inf\n")
    first = RunsFolder(root).scan()
    read.clear()
    assert RunsFolder(root).scan() == first and "pe-1" in read and "pe-2" not in read


def test_a_damaged_or_foreign_file_costs_only_time_and_is_replaced(root, read, cache) -> None:
    right = RunsFolder(root).scan()
    (file,) = cache.iterdir()
    whole, chance = file.read_bytes(), random.Random(1)
    head = whole.index(b"\n") + 1
    damages = [whole[: chance.randrange(len(whole))] for _ in range(30)]
    for _ in range(60):
        at = chance.randrange(len(whole))
        damages.append(whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :])
    damages += [b"", b"\xff" * 5000, b"\n" * 5000, whole[:head] + b"00000000\t\n" * 9, whole[:head] * 2]
    for damaged in damages:
        file.write_bytes(damaged)
        assert RunsFolder(root).scan() == right
    read.clear()
    RunsFolder(root).scan()
    assert "pe-1" not in read


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_whatever_is_in_the_place_of_the_file_or_its_folder_the_rows_are_there(root, cache) -> None:
    right = RunsFolder(root).scan()
    (file,) = cache.iterdir()
    for put in (os.mkfifo, os.mkdir):
        file.unlink()
        put(file)
        assert RunsFolder(root).scan() == right
        file.rmdir() if file.is_dir() else None
    for path in cache.iterdir():
        path.unlink()
    cache.rmdir()
    cache.write_text("a file")
    assert RunsFolder(root).scan() == right and cache.read_text() == "a file"


def test_processes_that_save_at_once_leave_a_file_that_is_right(root, read, cache) -> None:
    right = RunsFolder(root).scan()

    def many() -> None:
        for _ in range(20):
            assert RunsFolder(root).scan() == right
            for file in cache.iterdir():
                file.unlink(missing_ok=True)

    threads = [threading.Thread(target=copy_context().run, args=(many,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    RunsFolder(root).scan()
    read.clear()
    assert RunsFolder(root).scan() == right and "pe-1" not in read


def test_runs_that_are_gone_are_left_out_and_a_few_new_rows_are_not_written(root, cache, monkeypatch) -> None:
    RunsFolder(root).scan()
    (file,) = cache.iterdir()
    (root / "pe-1").rename(root.parent / "pe-1")
    record(root, "pe-3")
    RunsFolder(root).scan()
    assert b"pe-1" not in file.read_bytes() and b"pe-3" in file.read_bytes()
    monkeypatch.setattr(row_cache, "WORTH_SAVING", WORTH_SAVING)
    record(root, "pe-4")
    RunsFolder(root).scan()
    assert b"pe-4" not in file.read_bytes()


def test_the_first_lines_of_a_long_list_are_there_before_the_last_runs_are_read(tmp_path, capsys, read) -> None:
    root = tmp_path / "many"
    for i in range(BLOCK + 30):
        run = root / f"run-{i:04}{'-long' * (i > BLOCK)}"
        run.mkdir(parents=True)
        (run / "run.json").write_text(json.dumps({"id": "x", "created": f"{i:04}", "preset": "demo"}))
        (run / "status.json").write_text(json.dumps({"state": "finished", "step": i, "steps": 20_000}))
    some_from_others, rows = rows_oldest_first(root)
    assert not some_from_others and not read and next(rows).name == "run-0000" and len(read) == 1
    list_runs(runs_dir=root)
    head, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(path.name for path in root.iterdir())
    columns = [line.index("finished") for line in lines]
    assert columns == sorted(columns) and columns[0] == head.index("state") and len(set(columns)) == 2


def test_a_list_without_rows_writes_nothing(tmp_path, cache) -> None:
    kept = RowCache(tmp_path, int, lambda row: True)
    kept.save()
    assert not cache.exists()
