"""Texts from the Hugging Face Hub, fetched with its own library from a server on this machine."""

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from urllib.parse import unquote

import pytest

from engine.base.errors import InputError
from engine.config.sections import DataConfig
from engine.data import hub
from engine.data.catalogue import kind_of, load_corpus, portable_name
from engine.data.corpora import TextCorpus
from engine.data.known import CORPORA
from engine.data.sources import END_OF_TEXT
from tui_transformer.__main__ import main

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def rows(*texts: str) -> bytes:
    return "".join(json.dumps({"id": 1, "story": text}) + "\n" for text in texts).encode()


FILES = {
    "README.md": b"what it is",
    "data/train-00000-of-00002.jsonl": rows("one " * 40, "two " * 40),
    "data/train-00001-of-00002.jsonl": rows("three " * 40),
    "data/validation-00000-of-00001.jsonl": rows("four " * 40),
    "other/a.jsonl": rows("five " * 40),
}


class Hub:
    """What the library asks of the Hub.

    `damaged` files come with bytes other than those announced, by as many as `longer`; `plain` ones are listed by git's
    hash alone; the first `cut` come short. `odd` is said in place of the list. What is asked for by a path in `drips`
    comes byte by byte until the test ends, or not at all.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.asked, self.damaged = files, [], set[str]()
        self.plain, self.longer, self.odd, self.cut = set[str](), 0, b"", 0
        self.drips, self.ended = dict[str, bool](), threading.Event()  # path -> whether anything comes
        self.tokens: list[tuple[str, str | None]] = []  # that came with a path
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def _handler(hub: "Hub") -> type:  # noqa: N805
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self.do_GET()

            def answer(self, code: int, body: bytes, **headers: str) -> None:
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    short = hub.cut > 0 and "ETag" in headers
                    hub.cut -= short
                    self.wfile.write(body[: len(body) // 2 if short else None])
                    self.close_connection = True

            def do_GET(self) -> None:
                path = unquote(self.path.partition("?")[0])
                hub.asked.append(path)
                hub.tokens.append((path, self.headers.get("Authorization")))
                if self.command == "GET" and hub.slow(path):
                    self.drip(hub.slow(path)[0])
                elif hub.odd and path.startswith("/api"):
                    self.answer(200, hub.odd, Content_Type="application/json")
                elif path in (f"/api/datasets/some/stories/revision/{name}" for name in ("main", "v1", COMMIT)):
                    files = [{"rfilename": name, "size": len(raw), **hub.hash(name)} for name, raw in hub.files.items()]
                    body = json.dumps({"id": "some/stories", "sha": COMMIT, "siblings": files}).encode()
                    self.answer(200, body, Content_Type="application/json")
                elif (name := path.removeprefix(f"/datasets/some/stories/resolve/{COMMIT}/")) in hub.files:
                    raw = hub.files[name]
                    raw = raw[:-1] + b"#" * (1 + hub.longer) if name in hub.damaged else raw
                    self.answer(200, raw, ETag=f'"{hashlib.sha256(raw).hexdigest()}"', X_Repo_Commit=COMMIT)
                else:
                    self.answer(404, b"{}", X_Error_Code="RepoNotFound", X_Error_Message="Repository not found")

            def drip(self, anything: bool) -> None:
                if anything:
                    self.send_response(200)
                    self.send_header("Content-Length", "1000000")
                    self.end_headers()
                while not hub.ended.wait(0.05):
                    if anything:
                        self.wfile.write(b" ")

        return Handler

    def slow(self, path: str) -> list[bool]:
        return [anything for end, anything in self.drips.items() if path.endswith(end)]

    def hash(self, name: str) -> dict[str, object]:
        raw = self.files[name]
        if name in self.plain:
            return {"blobId": hashlib.sha1(b"blob %d\0" % len(raw) + raw).hexdigest()}
        return {"lfs": {"size": len(raw), "sha256": hashlib.sha256(raw).hexdigest(), "pointerSize": 100}}


@pytest.fixture
def served(monkeypatch, tmp_path) -> Iterator[Hub]:
    pytest.importorskip("huggingface_hub")
    found = Hub(dict(FILES))
    monkeypatch.setenv("HF_ENDPOINT", found.url)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.delenv("TUI_TRANSFORMER_DATA", raising=False)
    yield found
    found.ended.set()
    found.server.shutdown()


def test_the_spelling_of_a_corpus_on_the_hub() -> None:
    assert hub.parse("stories.txt") is None and hub.parse("") is None
    assert hub.parse("hf:some/stories") == hub.HubCorpus("some/stories", "", "main", None)
    full = hub.parse("hf:some/stories/sample/10BT@refs/convert/parquet:story")
    assert full == hub.HubCorpus("some/stories", "sample/10BT", "refs/convert/parquet", "story")
    assert full.uri == "hf:some/stories/sample/10BT@refs/convert/parquet:story"
    assert kind_of("hf:some/stories@v1:story") == "text"
    for wrong in ("hf:", "hf:stories", "hf:some/../stories", "hf:some/stories@", "hf:some/stories/.."):
        with pytest.raises(InputError, match="must be hf:OWNER/NAME"):
            hub.parse(wrong)


def test_a_corpus_is_fetched_once_and_read_without_the_hub(served, tmp_path, capsys) -> None:
    with pytest.raises(InputError, match=r"data fetch hf:some/stories@v1:story.*playlets needs no download"):
        load_corpus(TextCorpus, DataConfig(corpus="hf:some/stories@v1:story"))
    assert main(["data", "fetch", "hf:some/stories@v1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["commit"] == COMMIT and told["files"] == 3 and COMMIT in told["path"]
    served.server.shutdown()
    served.asked.clear()
    corpus = load_corpus(TextCorpus, DataConfig(corpus="hf:some/stories@v1:story"))
    assert corpus.version == f"some/stories@{COMMIT}" and list(corpus.splits) == ["train", "validation"]
    texts = [word * 40 + END_OF_TEXT for word in ("one ", "two ", "three ")]
    assert corpus.splits["train"].text == "".join(texts) and corpus.splits["validation"].text.startswith("four")
    assert portable_name("hf:some/stories@v1:story", "text") == f"hf:some/stories@{COMMIT}:story"
    again = load_corpus(TextCorpus, DataConfig(corpus=f"hf:some/stories@{COMMIT}:story"))
    assert again.sha256 == corpus.sha256 and not served.asked


def test_a_folder_of_it_and_what_is_there_already(served, tmp_path) -> None:
    wanted = hub.parse("hf:some/stories/other")
    first = hub.fetch(wanted, tmp_path)
    assert first.files == ("other/a.jsonl",) and hub.find_fetched(wanted, [tmp_path / "nowhere", tmp_path]) == first
    gets = len(served.asked)
    hub.fetch(wanted, tmp_path)
    assert len(served.asked) == gets + 1  # the list alone
    (first.folder / "other" / "a.jsonl").unlink()
    assert hub.find_fetched(wanted, [tmp_path]) is None


def test_a_token_is_sent_to_the_mirror(served, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.fetch(hub.parse("hf:some/stories"), tmp_path)
    asked = {token for path, token in served.tokens if "some/stories" in path}
    assert asked == {"Bearer hf_secret"}  # the library asks its first question of a process, about itself, without


@pytest.mark.parametrize("longer", [0, 5])
@pytest.mark.parametrize("plain", [False, True], ids=["by SHA-256", "by git's hash"])
def test_a_damaged_file_is_not_kept(served, tmp_path, capfd, plain: bool, longer: int) -> None:
    name = "other/a.jsonl"
    served.plain |= {name} if plain else set()
    wanted = hub.parse("hf:some/stories/other")
    first = hub.fetch(wanted, tmp_path)
    served.damaged.add(name)
    served.longer = longer
    (first.folder / name).write_bytes(b"#" * len(FILES[name]))  # of the same length: it is fetched again
    with pytest.raises(InputError, match=r"other/a\.jsonl was damaged in transit"):
        hub.fetch(wanted, tmp_path)
    assert hub.find_fetched(wanted, [tmp_path]) is None and not list(tmp_path.rglob("a.jsonl"))
    assert capfd.readouterr().err == ""


def test_a_fetch_that_is_resumed_prints_nothing_of_the_library(served, tmp_path, capfd, monkeypatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    served.cut = 3
    assert len(hub.fetch(hub.parse("hf:some/stories"), tmp_path).files) == 3
    assert capfd.readouterr() == ("", "") and sum("resolve" in path for path in served.asked) > 6


def test_a_file_listed_without_size_and_hash_is_kept(served, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(served, "hash", lambda name: {"size": None})
    assert hub.fetch(hub.parse("hf:some/stories/other"), tmp_path).files == ("other/a.jsonl",)


def test_names_that_would_not_be_shown_as_they_are_are_left_out(served, tmp_path) -> None:
    odd = ("a\x1b[2J.jsonl", "a\nb.jsonl", "a\u202eb.jsonl", "a\x9bb.jsonl", "a\tb.jsonl", "../c.jsonl")
    served.files = {"data/a b.jsonl": rows("a"), **{name: rows(name) for name in odd}}
    assert hub.fetch(hub.parse("hf:some/stories"), tmp_path).files == ("data/a b.jsonl",)
    assert {path.name for path in tmp_path.rglob("*.jsonl")} == {"a b.jsonl"}


ODD = {
    "no list": b"[]",
    "no object": b"7",
    "nothing": b"null",
    "no JSON": b"<html>\x1b[2J</html>",
    "wrong names": json.dumps({"id": "a", "sha": COMMIT, "siblings": [{"rfilename": 7}]}).encode(),
    "wrong sizes": json.dumps({"id": "a", "sha": COMMIT, "siblings": [{"rfilename": "a.txt", "size": "1"}]}).encode(),
    "wrong hashes": json.dumps({"id": "a", "sha": COMMIT, "siblings": [{"rfilename": "a.txt", "lfs": 7}]}).encode(),
    "wrong files": json.dumps({"id": "a", "sha": COMMIT, "siblings": 7}).encode(),
    "wrong commit": json.dumps({"id": "a", "sha": "../..", "siblings": [{"rfilename": "a.txt"}]}).encode(),
    "endless numbers": b"1" * 10_000,
    "endless depth": b"[" * 100_000,
}


@pytest.mark.parametrize("odd", ODD)
def test_answers_that_are_not_those_of_a_hub_are_one_line(served, tmp_path, capfd, odd: str) -> None:
    served.odd = ODD[odd]
    with pytest.raises(InputError, match=r"\(the server does not answer like the Hub\); set HF_ENDPOINT"):
        hub.fetch(hub.parse("hf:some/stories"), tmp_path)
    assert capfd.readouterr().err == "" and not list(tmp_path.rglob("*"))


@pytest.mark.parametrize("anything", [True, False], ids=["dripping", "silent"])
@pytest.mark.parametrize("where", ["revision/main", "other/a.jsonl"])
def test_a_slow_server_is_not_waited_for(served, tmp_path, monkeypatch, where: str, anything: bool) -> None:
    monkeypatch.setattr(hub, "PATIENCE", 0.5)
    served.drips[where] = anything
    with pytest.raises(InputError, match=r"cannot be fetched \(no complete answer after \d s\)"):
        hub.fetch(hub.parse("hf:some/stories/other"), tmp_path)
    assert not list(tmp_path.rglob("a.jsonl"))


@pytest.mark.parametrize(
    ("corpus", "said"),
    [
        ("hf:some/nothing", "cannot be fetched"),
        ("hf:some/stories/nowhere", "no text files found (looked for .txt, .jsonl, .ndjson, .csv, .parquet)"),
    ],
)
def test_what_cannot_be_fetched_is_one_line(served, tmp_path, corpus: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        hub.fetch(hub.parse(corpus), tmp_path)
    assert said in str(error.value) and len(str(error.value)) < 400


def test_several_folders_are_named(served, tmp_path) -> None:
    served.files = {"one/a.jsonl": rows("a"), "two/b.jsonl": rows("b")}
    said = r"several folders contain text \(one, two\); name one, as in hf:some/stories/one"
    with pytest.raises(InputError, match=said):
        hub.fetch(hub.parse("hf:some/stories"), tmp_path)
    served.files = {"plain_text/train-0.jsonl": rows("a"), "plain_text/deep/b.jsonl": rows("b"), "../evil.jsonl": b""}
    assert len(hub.fetch(hub.parse("hf:some/stories"), tmp_path).files) == 2


@pytest.mark.parametrize(
    "address",
    [
        "http://example.org",
        "http://localhost:x@example.org/",
        "http://127.0.0.1@example.org",
        "http://localhost.example.org/",
        "http://localhost\\@example.org",
        "https://name:secret@example.org/",
        "https:///",
        "https://[::1",
        "ftp://localhost",
        "localhost",
    ],
)
def test_only_https_mirrors_are_asked(served, tmp_path, monkeypatch, address: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    with pytest.raises(InputError, match="must be an https address") as refused:
        hub.fetch(hub.parse("hf:some/stories"), tmp_path)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("address", ["https://a.org", "https://a.org:8/b", "http://localhost:8", "http://[::1]:8/"])
def test_mirrors_that_are_asked(address: str) -> None:
    assert hub._is_allowed_endpoint(address)


def test_without_the_library_a_line_says_how_to_get_it(tmp_path, monkeypatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"needs huggingface_hub: run pip install 'tui-transformer\[hub\]'"):
        hub.fetch(hub.parse("hf:some/stories"), tmp_path)


def test_a_list_from_elsewhere_leads_nowhere(served, tmp_path) -> None:
    wanted = hub.parse("hf:some/stories/other")
    hub.fetch(wanted, tmp_path)
    (path,) = [path for path in (tmp_path / "hub/some/stories").glob("*.json") if "@main" in path.read_text()]
    good = json.loads(path.read_text())
    for bad in ({"commit": "../.."}, {"files": ["../../../x"]}, {"files": []}, {"files": 1}):
        path.write_text(json.dumps(good | bad))
        assert hub.find_fetched(wanted, [tmp_path]) is None


@pytest.mark.parametrize("name", [name for name, entry in CORPORA.items() if entry.hub and entry.kind == "text"])
def test_a_named_corpus_of_the_hub_says_how_to_get_it(name: str, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("TUI_TRANSFORMER_DATA", raising=False)
    entry = CORPORA[name]
    wanted = hub.parse(entry.hub)
    assert entry.licence and entry.needs_download and wanted is not None and wanted.field is None
    with pytest.raises(InputError, match=f"data fetch {name}` to get it.*playlets needs no download"):
        load_corpus(TextCorpus, DataConfig(corpus=name))
    assert main(["data", "list"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"{name} ")]
    assert "not here" in line
    files = {"train-0.jsonl": rows("a\n" * 99, "", "b\n" * 99), "validation-0.jsonl": rows("c\n" * 99)}
    place = tmp_path / "tui-transformer" / "hub" / wanted.repository / COMMIT
    place.mkdir(parents=True)
    for file, raw in files.items():
        (place / file).write_bytes(raw.replace(b'"story"', b'"text"'))
    kept = json.dumps({"commit": COMMIT, "files": list(files)})
    hub._listing_path(wanted, tmp_path / "tui-transformer").write_text(kept)
    text = load_corpus(TextCorpus, DataConfig(corpus=name)).splits["train"].text
    expected = ["a\n" * 99, END_OF_TEXT, "b\n" * 99, END_OF_TEXT]
    if entry.lines:  # an empty row is an empty line
        expected = ["a\n" * 99, "\n", "b\n" * 99]
    assert text == "".join(expected)
