"""Who may read and write the files of a run, of a model and of the cache: whoever the umask says."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.runs.reader import RunReader
from engine.training.pretrained import write_pretrained
from tests.trained_runs import train_run

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="needs a umask"),
    pytest.mark.usefixtures("cached_checks", "cached_corpora", "module_minimal_leak_probe"),
]


@pytest.fixture(params=[0o002, 0o022, 0o027, 0o077], ids=oct)
def umask(request) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_every_file_has_the_permissions_of_the_umask(tiny, tmp_path: Path, monkeypatch, umask: int) -> None:
    monkeypatch.setenv("TUI_TRANSFORMER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("engine.data.cache.MIN_CACHED_LENGTH", 10)
    run = train_run(tiny("checkpoint.keep_last=2", "train.ema=0.9"), tmp_path / "runs", "mine")
    write_pretrained(RunReader(run), "last", tmp_path / "model")
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*") if path.is_file()}
    names = {path.name for path in modes}
    assert {"model.safetensors", "optimizer.safetensors", "manifest.json"} <= names
    assert any("cache" in path.parts and path.stat().st_size for path in modes)
    allowed = 0o666 & ~umask
    assert not {path: oct(mode) for path, mode in modes.items() if mode != allowed}
