import errno
import os
import shutil
import threading

import numpy as np
import pytest
import torch

from engine.data import cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TUI_TRANSFORMER_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "MIN_CACHED_LENGTH", 10)
    return tmp_path / "tokens"


IDS = np.arange(1000, dtype=np.int64)


def pieces():
    pieces.calls += 1
    yield from np.array_split(IDS.astype(np.int32), 3)


pieces.calls = 0


def tokens(text: str = "t", tokenizer: str = "k", length: int = 1000) -> torch.Tensor:
    return torch.from_numpy(cache.cached_tokens(length, text, tokenizer, pieces))


def test_a_text_is_encoded_once_and_then_found(folder) -> None:
    before = pieces.calls
    assert all(tokens().tolist() == IDS.tolist() for _ in range(3))
    assert pieces.calls == before + 1


def test_another_text_tokenizer_or_version_is_another_entry(folder, monkeypatch) -> None:
    before = pieces.calls
    tokens(), tokens(text="u"), tokens(tokenizer="l")
    monkeypatch.setattr(cache, "CACHE_VERSION", 999)
    tokens()
    assert pieces.calls == before + 4


def test_a_small_text_is_not_kept(folder) -> None:
    tokens(length=9)
    assert not folder.exists()


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY", b"x" * 100])
def test_a_damaged_entry_is_made_again(folder, damage: bytes) -> None:
    tokens()
    next(folder.iterdir()).write_bytes(damage)
    assert tokens().tolist() == IDS.tolist()
    assert np.load(next(folder.iterdir())).tolist() == IDS.tolist()


@pytest.mark.parametrize("place", [5, 60, 200, 2000, -1])
def test_a_flipped_bit_anywhere_is_found_and_made_good(folder, place: int) -> None:
    tokens()
    path = next(folder.iterdir())
    whole = path.read_bytes()
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place:][1:])
    assert tokens().tolist() == IDS.tolist()
    assert path.read_bytes() == whole


def test_no_pickle_is_ever_loaded(folder) -> None:
    tokens()
    np.save(next(folder.iterdir()), np.array([os.getcwd], dtype=object), allow_pickle=True)
    assert tokens().tolist() == IDS.tolist()


def test_writing_to_the_tokens_does_not_reach_the_file(folder) -> None:
    tokens()
    tokens()[0] = 77
    assert tokens()[0] == 0


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TUI_TRANSFORMER_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(cache, "MIN_CACHED_LENGTH", 10)
    assert tokens().tolist() == IDS.tolist()


FAULTS = {
    "no room for the file": ("tempfile.NamedTemporaryFile", errno.ENOSPC),
    "no room for its content": ("numpy.lib.format.write_array_header_1_0", errno.ENOSPC),
    "broken as it is synced": ("os.fsync", errno.EIO),
    "read-only": ("pathlib.Path.mkdir", errno.EROFS),
    "vanished before it is put in place": ("pathlib.Path.replace", errno.ENOENT),
    "not readable": ("pathlib.Path.open", errno.EACCES),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_a_cache_refuses_the_tokens_are_there(folder, monkeypatch, fault: str) -> None:
    where, number = FAULTS[fault]

    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(where, refused)
        assert tokens().tolist() == IDS.tolist()
        assert tokens().tolist() == IDS.tolist()
    assert not [path for path in folder.rglob("*") if path.suffix == ".new"]
    assert tokens().tolist() == IDS.tolist()
    assert [path.suffix for path in folder.iterdir()] == [".npy"]


def test_a_cache_that_vanishes_takes_nothing_from_who_reads_it_and_is_made_anew(folder) -> None:
    tokens()
    held = tokens()
    shutil.rmtree(folder)
    assert held.tolist() == IDS.tolist() == tokens().tolist()
    assert [path.suffix for path in folder.iterdir()] == [".npy"]


def test_many_at_once_leave_one_whole_entry(folder) -> None:
    threads = [threading.Thread(target=tokens) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.suffix for path in folder.iterdir()] == [".npy"] and tokens().tolist() == IDS.tolist()
