"""What comes over the network or out of an archive: https alone, checked, capped, and nowhere but in its place."""

import gzip
import hashlib
import http.client
import http.server
import os
import random
import ssl
import threading
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.config.sections import DataConfig
from engine.data import download, text_files
from engine.data.catalogue import load_corpus
from engine.data.corpora import TextCorpus
from engine.data.corpus import Remote
from engine.data.download import MIRROR_VARIABLE, fetch
from engine.data.known import CORPORA
from engine.data.parallel import lines
from engine.data.parallel.lines import read_member, read_text
from tests.waiting import PATIENCE

CONTENT = b"a line of text\n" * 5000
HUB = Remote("https://huggingface.co/a.txt", "folder/a.txt", hashlib.sha256(CONTENT).hexdigest(), 100_000)
REDIRECTS = (301, 302, 303, 307, 308)


class Answers(http.server.BaseHTTPRequestHandler):
    """`/302/WHERE` redirects there; anything else is CONTENT."""

    def do_GET(self) -> None:
        code, _, where = self.path[1:].partition("/")
        if code.isdigit():
            self.send_response(int(code))
            self.send_header("Location", where)
            self.end_headers()
        else:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(CONTENT)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()


@pytest.mark.parametrize("code", REDIRECTS)
@pytest.mark.parametrize("where", ["http://127.0.0.1:1/a", "ftp://127.0.0.1/a", "file:///etc/passwd", "//127.0.0.1/a"])
def test_a_redirect_away_from_https_is_not_followed(server: str, code: int, where: str) -> None:
    opener = urllib.request.build_opener(download._HttpsOnly)
    with pytest.raises(urllib.error.URLError, match="which is not https|is not allowed"):
        opener.open(f"{server}/{code}/{where}", timeout=PATIENCE)


@pytest.mark.parametrize(
    "endpoint", ["http://mirror.example", "ftp://mirror.example", "file:///mnt/hub", "/mnt/hub", "HTTP://x", "x\x1b[2J"]
)
def test_an_endpoint_that_is_not_https_is_refused_before_it_is_asked(tmp_path, monkeypatch, endpoint: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    asked = []
    with pytest.raises(InputError, match=f"only https URLs are fetched; set HF_ENDPOINT .*{MIRROR_VARIABLE}"):
        fetch(HUB, tmp_path, opener=lambda url, start: asked.append(url))
    assert not asked and not (tmp_path / HUB.file).exists()


def test_a_local_folder_stands_in_for_the_network(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror.example")
    monkeypatch.setenv(MIRROR_VARIABLE, str(tmp_path / "mirror"))
    (tmp_path / "mirror" / "folder").mkdir(parents=True)
    (tmp_path / "mirror" / HUB.file).write_bytes(CONTENT)
    assert fetch(HUB, tmp_path / "data").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "error",
    [
        http.client.IncompleteRead(b"x"),
        http.client.BadStatusLine("\x1b[2J"),
        http.client.InvalidURL("a port that is none"),
        http.client.LineTooLong("header"),
        ssl.SSLCertVerificationError("self-signed certificate"),
        ssl.SSLEOFError("ended"),
        UnicodeError("label too long"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_server_that_speaks_nonsense_is_one_line(tmp_path, error: Exception) -> None:
    def broken(url: str, start: int):
        raise error

    with pytest.raises(InputError) as said:
        fetch(HUB, tmp_path, opener=broken)
    assert "\n" not in str(said.value) and not (tmp_path / HUB.file).exists()


def test_a_part_is_never_what_a_corpus_is_read_from(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))  # the user's own may have the corpus
    for entry in CORPORA.values():
        for remote in entry.remotes:
            (tmp_path / remote.file).parent.mkdir(exist_ok=True)
            (tmp_path / (remote.file + ".part")).write_bytes(CONTENT)
        assert not entry.remotes or entry.find_files([tmp_path]) is None
    with pytest.raises(InputError, match="not on this machine"):
        load_corpus(TextCorpus, DataConfig(corpus="tiny-shakespeare"), tmp_path)


def test_every_file_of_every_corpus_is_https_capped_and_stays_in_its_folder() -> None:
    for entry in CORPORA.values():
        for remote in entry.remotes:
            assert remote.url.startswith("https://") or not remote.url
            assert remote.sha256 is None or len(remote.sha256) == 64
            assert 0 < remote.max_bytes <= (400_000_000 if remote.url else 2_000_000_000)  # or put there by hand
            place = Path(remote.file)
            assert not place.is_absolute() and ".." not in place.parts and len(place.parts) == 2


# ── archives ──

NAMES = ("../../deu.txt", "/deu.txt", "..\\deu.txt", "a/../../deu.txt", "deu.txt")


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_puts_nothing_anywhere(tmp_path, name: str) -> None:
    inside = tmp_path / "data" / "folder"
    inside.mkdir(parents=True)
    with zipfile.ZipFile(inside / "a.zip", "w") as archive:
        archive.writestr(name, CONTENT)
    before = sorted(tmp_path.rglob("*"))
    try:
        assert read_member(inside / "a.zip", "deu.txt")[0] == CONTENT.decode()
    except InputError as error:
        assert "no deu.txt in it" in str(error)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_link_in_an_archive_is_the_text_of_its_target(tmp_path) -> None:
    link = zipfile.ZipInfo("deu.txt")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert read_member(tmp_path / "a.zip", "deu.txt")[0] == "/etc/passwd"


def test_bombs_are_cut_off_by_their_ratio_and_by_their_size(tmp_path, monkeypatch) -> None:
    bomb = b"a" * 4_000_000
    (tmp_path / "a.gz").write_bytes(gzip.compress(bomb))
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bomb)
    assert read_text(tmp_path / "a.gz")[0] == read_member(tmp_path / "a.zip", "a")[0] == bomb.decode()
    monkeypatch.setattr(text_files, "BLOCK", 1 << 16)
    for module, limit, value, says in (
        (text_files, "UNCHECKED_BYTES", 1 << 16, "200 times its size"),
        (lines, "MAX_CHARACTERS", 1 << 20, "larger than"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(module, limit, value)
            for refused in (
                lambda: read_text(tmp_path / "a.gz"),
                lambda: read_member(tmp_path / "a.zip", "a"),
            ):
                with pytest.raises(InputError, match=says):
                    refused()


@pytest.mark.parametrize("packed", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_packing_that_asks_for_memory_at_will_is_refused(tmp_path, packed: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", packed) as archive:
        archive.writestr("a", CONTENT)
    with pytest.raises(InputError, match="compressed with an unsupported method"):
        read_member(tmp_path / "a.zip", "a")


def mangled(count: int) -> None:
    """So many damaged archives, each of which is read or refused in one line."""
    draw = random.Random(count)
    folder = Path(os.environ["TUI_TRANSFORMER_CACHE"]) / "mangled"
    folder.mkdir(parents=True, exist_ok=True)
    for packed in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(folder / "whole.zip", "w", packed) as archive:
            archive.writestr("dé/a", CONTENT[:3000])
            archive.writestr("b", CONTENT[:300])
        for kind, whole in (("zip", (folder / "whole.zip").read_bytes()), ("gz", gzip.compress(CONTENT))):
            for _ in range(count):
                raw = bytearray(whole)
                for _ in range(draw.randint(1, 8)):
                    raw[draw.randrange(max(1, len(raw)))] = draw.choice((0, 255, draw.randrange(256)))
                path = folder / f"a.{kind}"
                path.write_bytes(raw[: draw.choice((len(raw), draw.randrange(len(raw))))])
                try:
                    read_member(path, "a") if kind == "zip" else read_text(path)
                except InputError as error:
                    assert "\n" not in str(error)


def test_a_damaged_archive_is_read_or_refused_and_nothing_else() -> None:
    mangled(60)


@pytest.mark.slow
def test_any_damaged_archive_is_read_or_refused_and_nothing_else() -> None:
    mangled(25_000)
