"""Downloads against a server that misbehaves in every way a test can write down."""

import hashlib
import urllib.error
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.data.corpus import Remote
from engine.data.download import MIRROR_VARIABLE, apply_endpoint, fetch, open_url, recorded_sha256, sha256_path

CONTENT = bytes(range(256)) * 1000
REMOTE = Remote("https://example.org/a.txt", "folder/a.txt", hashlib.sha256(CONTENT).hexdigest(), 300_000)


class Server:
    """Serves CONTENT, from the byte that is asked for if `ranges`; breaks off after `breaks_at` bytes."""

    def __init__(self, content: bytes = CONTENT, *, ranges: bool = True, breaks_at: int | None = None) -> None:
        self.content, self.ranges, self.breaks_at = content, ranges, breaks_at
        self.asked: list[int] = []

    def __call__(self, url: str, start: int) -> "Server":
        self.asked.append(start)
        if self.ranges and start > len(self.content):
            raise urllib.error.HTTPError(url, 416, "Range Not Satisfiable", {}, None)
        self.at = start if self.ranges else 0
        self.status = 206 if self.ranges and start else 200
        return self

    def read(self, size: int) -> bytes:
        if self.breaks_at is not None and self.at >= self.breaks_at:
            raise ConnectionResetError("connection reset")
        block = self.content[self.at : self.at + size]
        self.at += len(block)
        return block

    def close(self) -> None:
        pass


def test_a_file_arrives_whole_and_is_not_fetched_twice(tmp_path) -> None:
    server = Server()
    seen: list[int] = []
    path = fetch(REMOTE, tmp_path, opener=server, progress=lambda done, cap: seen.append(done))
    assert path.read_bytes() == CONTENT and seen[-1] == len(CONTENT)
    assert fetch(REMOTE, tmp_path, opener=server) == path and server.asked == [0]
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_a_broken_download_goes_on_where_it_stopped(tmp_path) -> None:
    with pytest.raises(InputError, match=r"cannot be downloaded.*put the file at"):
        fetch(REMOTE, tmp_path, opener=Server(breaks_at=100_000))
    part = tmp_path / "folder" / "a.txt.part"
    kept = part.stat().st_size
    assert 0 < kept < len(CONTENT)
    server = Server()
    assert fetch(REMOTE, tmp_path, opener=server).read_bytes() == CONTENT
    assert server.asked == [kept] and not part.exists()


def test_a_server_without_ranges_starts_over(tmp_path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt.part").write_bytes(CONTENT[:5000])
    assert fetch(REMOTE, tmp_path, opener=Server(ranges=False)).read_bytes() == CONTENT


def test_a_vanished_part_starts_over(tmp_path) -> None:
    with pytest.raises(InputError):
        fetch(REMOTE, tmp_path, opener=Server(breaks_at=100_000))
    (tmp_path / "folder" / "a.txt.part").unlink()
    assert fetch(REMOTE, tmp_path, opener=Server()).read_bytes() == CONTENT


def test_a_part_of_something_else_is_found_out_and_thrown_away(tmp_path) -> None:
    (tmp_path / "folder").mkdir()
    part = tmp_path / "folder" / "a.txt.part"
    part.write_bytes(b"x" * 1000)
    with pytest.raises(InputError, match="SHA-256"):
        fetch(REMOTE, tmp_path, opener=Server())
    assert not part.exists()
    assert fetch(REMOTE, tmp_path, opener=Server()).read_bytes() == CONTENT


@pytest.mark.parametrize("size", [256_001, 300_000, 400_000])
def test_a_part_that_is_too_long_is_thrown_away(tmp_path, size: int) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt.part").write_bytes(b"x" * size)
    assert fetch(REMOTE, tmp_path, opener=Server()).read_bytes() == CONTENT


def test_another_file_under_its_name_is_replaced(tmp_path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_bytes(b"old")
    assert fetch(REMOTE, tmp_path, opener=Server()).read_bytes() == CONTENT


def test_a_wrong_file_is_not_kept(tmp_path) -> None:
    with pytest.raises(InputError, match="nothing was kept"):
        fetch(REMOTE, tmp_path, opener=Server(CONTENT[:-1] + b"x"))
    assert list((tmp_path / "folder").iterdir()) == []


def test_an_endless_file_is_cut_off(tmp_path) -> None:
    with pytest.raises(InputError, match="larger than the limit of 300,000 bytes"):
        fetch(REMOTE, tmp_path, opener=Server(CONTENT * 10))
    assert list((tmp_path / "folder").iterdir()) == []


@pytest.mark.parametrize(
    "error",
    [
        urllib.error.URLError("no route"),
        urllib.error.HTTPError("u", 404, "Not Found", {}, None),
        TimeoutError("slow"),
        ConnectionRefusedError("refused"),
    ],
    ids=["offline", "404", "timeout", "refused"],
)
def test_no_network_says_what_to_do_instead(tmp_path, error: Exception) -> None:
    def fails(url: str, start: int):
        raise error

    with pytest.raises(InputError, match=r"put the file at .*folder/a\.txt.*built-in corpora .*need no download"):
        fetch(REMOTE, tmp_path, opener=fails)


@pytest.mark.parametrize("url", ["http://example.org/a", "ftp://example.org/a", "file:///etc/passwd"])
def test_only_https_is_opened(url: str) -> None:
    with pytest.raises(urllib.error.URLError, match="only https"):
        open_url(url, 0)


def test_a_mirror_folder_is_used_and_checked(tmp_path, monkeypatch) -> None:
    mirror = tmp_path / "mirror"
    (mirror / "folder").mkdir(parents=True)
    monkeypatch.setenv("TUI_TRANSFORMER_MIRROR", str(mirror))
    with pytest.raises(InputError, match=r"has no folder/a\.txt"):
        fetch(REMOTE, tmp_path / "data", opener=Server())
    (mirror / "folder" / "a.txt").write_bytes(CONTENT)
    server = Server()
    assert fetch(REMOTE, tmp_path / "data", opener=server).read_bytes() == CONTENT and server.asked == []
    (mirror / "folder" / "a.txt").write_bytes(b"wrong")
    with pytest.raises(InputError, match="SHA-256"):
        fetch(REMOTE, tmp_path / "other", opener=server)


def test_the_hub_is_where_hf_endpoint_says(monkeypatch) -> None:
    url = "https://huggingface.co/datasets/x/resolve/main/a.zip"
    assert apply_endpoint(url) == url
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    assert apply_endpoint(url) == "https://mirror.example/datasets/x/resolve/main/a.zip"
    assert apply_endpoint(REMOTE.url) == REMOTE.url


# ── a file whose hash nobody knows beforehand ──

UNKNOWN = Remote(REMOTE.url, REMOTE.file, None, REMOTE.max_bytes)
CHANGED = CONTENT[:-1] + b"x"


def test_a_file_of_unknown_hash_is_trusted_once_and_its_hash_recorded(tmp_path) -> None:
    server = Server()
    path = fetch(UNKNOWN, tmp_path, opener=server)
    assert sha256_path(path).read_text() == f"{REMOTE.sha256}  a.txt\n"
    assert fetch(UNKNOWN, tmp_path, opener=server) == path and server.asked == [0]


def test_another_file_is_not_trusted_the_second_time(tmp_path) -> None:
    path = fetch(UNKNOWN, tmp_path, opener=Server())
    path.unlink()
    with pytest.raises(InputError, match=r"nothing was kept.*delete .*a\.txt\.sha256 to accept the new version"):
        fetch(UNKNOWN, tmp_path, opener=Server(CHANGED))
    assert not path.exists()
    sha256_path(path).unlink()
    assert fetch(UNKNOWN, tmp_path, opener=Server(CHANGED)).read_bytes() == CHANGED


def test_a_damaged_copy_is_fetched_again(tmp_path) -> None:
    path = fetch(UNKNOWN, tmp_path, opener=Server())
    path.write_bytes(CHANGED)
    assert fetch(UNKNOWN, tmp_path, opener=Server()).read_bytes() == CONTENT


def test_a_file_put_there_by_hand_is_trusted_as_it_is(tmp_path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / UNKNOWN.file).write_bytes(CHANGED)
    server = Server()
    path = fetch(UNKNOWN, tmp_path, opener=server)
    assert path.read_bytes() == CHANGED and server.asked == [] and recorded_sha256(path) is not None


def test_half_a_file_of_unknown_hash_is_not_gone_on_with(tmp_path) -> None:
    with pytest.raises(InputError, match="cannot be downloaded"):
        fetch(UNKNOWN, tmp_path, opener=Server(CHANGED, breaks_at=100_000))
    server = Server()
    assert fetch(UNKNOWN, tmp_path, opener=server).read_bytes() == CONTENT and server.asked == [0]


def test_a_connection_that_ends_early_is_noticed_without_a_hash(tmp_path) -> None:
    server = Server(CONTENT[:1000])
    server.length = len(CONTENT) - 1000  # what http.client says is still to come
    with pytest.raises(InputError, match="closed before the file was complete"):
        fetch(UNKNOWN, tmp_path, opener=server)
    assert not (tmp_path / UNKNOWN.file).exists()


@pytest.mark.parametrize("record", ["", "short", "x" * 64, "\xff", "g" * 64 + "  a.txt"])
def test_a_damaged_record_is_none(tmp_path, record: str) -> None:
    sha256_path(tmp_path / "a.txt").write_text(record, encoding="latin-1")
    assert recorded_sha256(tmp_path / "a.txt") is None


def test_a_mirror_folder_has_files_of_unknown_hash_too(tmp_path, monkeypatch) -> None:
    (tmp_path / "mirror" / "folder").mkdir(parents=True)
    (tmp_path / "mirror" / UNKNOWN.file).write_bytes(CONTENT)
    monkeypatch.setenv(MIRROR_VARIABLE, str(tmp_path / "mirror"))
    path = fetch(UNKNOWN, tmp_path / "data", opener=Server())
    assert path.read_bytes() == CONTENT and recorded_sha256(path) == REMOTE.sha256


def test_a_folder_that_cannot_be_made_is_named(tmp_path) -> None:
    (tmp_path / "folder").write_text("in the way")
    with pytest.raises(InputError, match="cannot be written"):
        fetch(REMOTE, tmp_path, opener=Server())


TRUSTED_ON_FIRST_USE = {"wikitext-2/train.txt", "ptb/ptb.train.txt"}  # no copy was at hand to hash


def test_every_registered_file_is_https_and_has_a_hash() -> None:
    from engine.data.known import CORPORA, names_of

    for name in names_of("text"):
        for remote in CORPORA[name].remotes:
            assert remote.url.startswith("https://")
            assert len(remote.sha256 or "") == (0 if remote.file in TRUSTED_ON_FIRST_USE else 64), remote.file
            assert not Path(remote.file).is_absolute() and ".." not in remote.file


def test_the_recorded_hash_is_the_real_files(real_data) -> None:
    from engine.data.known import CORPORA

    (remote,) = CORPORA["tiny-shakespeare"].remotes
    assert hashlib.sha256((real_data / remote.file).read_bytes()).hexdigest() == remote.sha256
