"""No pickle is ever loaded: one whose loading leaves a mark is put in the place of every file there can be."""

import ast
import gzip
import io
import os
import pickle
import random
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.data import cache
from engine.data.known import CORPORA
from tests.hostile.forked import said
from tests.hostile.poisoned_runs import completed, read, rehash, write
from tests.tui_transformer.trained import train

ROOT = Path(__file__).parents[2]


class Bomb:
    """Unpickled, it makes a folder."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def _saved(bomb: Bomb, *, packed: bool) -> bytes:
    buffer = io.BytesIO()
    torch.save({"model": bomb}, buffer, _use_new_zipfile_serialization=packed)
    return buffer.getvalue()


def _array(bomb: Bomb) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([bomb], dtype=object), allow_pickle=True)
    return buffer.getvalue()


FORMS: dict[str, Callable[[Bomb], bytes]] = {
    "pickle": pickle.dumps,
    "old pickle": lambda bomb: pickle.dumps(bomb, protocol=0),  # printable, and so a text
    "torch": lambda bomb: _saved(bomb, packed=True),
    "old torch": lambda bomb: _saved(bomb, packed=False),
    "numpy": _array,
}
OPENED: dict[str, Callable[[bytes], object]] = {
    "pickle": pickle.loads,
    "old pickle": pickle.loads,
    "torch": lambda raw: torch.load(io.BytesIO(raw), weights_only=False),
    "old torch": lambda raw: torch.load(io.BytesIO(raw), weights_only=False),
    "numpy": lambda raw: np.load(io.BytesIO(raw), allow_pickle=True),
}
OTHERS = ("model.pt", "model.bin", "pytorch_model.bin", "model.ckpt", "state.pkl", "optimizer.pt", "tokenizer.pkl")
COMMANDS = (
    *(("evaluate",), ("sample", "--prompt", "a", "--length", "3"), ("verify", "--steps", "1"), ("doctor",)),
    *(("watch",), ("note",), ("compare",), ("export", "--to", "csv"), ("export", "--to", "huggingface")),
    *(("export", "--to", "tensorboard"), ("report",), ("resume",)),
)
ON_CPU = ("evaluate", "sample", "verify", "resume", "run")


@pytest.mark.parametrize("form", FORMS)
def test_the_bombs_go_off_where_pickle_is_loaded(tmp_path, form: str) -> None:
    OPENED[form](FORMS[form](Bomb(tmp_path / "mark")))
    assert (tmp_path / "mark").is_dir()


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A run that can be gone on with, one that starts from it, and a filled cache."""
    home = tmp_path_factory.mktemp("home")
    words = random.Random(1).choices(["to", "be", "or", "not", "that", "is", "the", "question"], k=5_000)
    (home / "corpus.txt").write_text(" ".join(words))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TUI_TRANSFORMER_CACHE", str(home / "cache"))
        patched.setattr(cache, "MIN_CACHED_LENGTH", 0)
        run = completed(train(home / "runs", "run", f"data.corpus={home / 'corpus.txt'}"))
    write(run / "status.json", read(run / "status.json") | {"state": "stopped"})
    config = read(run / "config.toml")
    config["train"]["steps"] = 8
    write(run / "config.toml", config)
    return home


def places(home: Path) -> Iterator[Path]:
    """Every file of the run, the cache and the corpus, and names that other programs give pickles; relative."""
    run = home / "runs" / "run"
    newest = sorted((run / "checkpoints").glob("step-*"))[-1]
    yield from (path.relative_to(home) for path in sorted(home.rglob("*")) if path.is_file() and path.name[0] != ".")
    yield from ((folder / name).relative_to(home) for folder in (run, newest) for name in OTHERS)


def planted(home: Path, place: Path, form: str, into: Path) -> tuple[Path, Path]:
    """A copy of everything with a bomb in one place; it, and the mark of the bomb."""
    copy, mark = into / "home", into / "mark"
    shutil.copytree(home, copy)
    config = read(copy / "runs" / "run" / "config.toml")
    config["data"]["corpus"] = str(copy / "corpus.txt")
    write(copy / "runs" / "run" / "config.toml", config)
    (copy / place).write_bytes(FORMS[form](Bomb(mark)))
    if place.name != "manifest.json":
        rehash((copy / place).parent)
    return copy, mark


def told(copy: Path, mark: Path, commands: Sequence[tuple[str, ...]] = COMMANDS) -> None:
    """Each command, and a run that starts from this one: none leaves a mark or breaks, and each refusal is a line."""
    runs, variables = copy / "runs", {"TUI_TRANSFORMER_CACHE": str(copy / "cache")}
    settings = [part for key in ("train.steps=1", "model.d_model=16") for part in ("--set", key)]
    started = ["run", "--config", str(runs / "run" / "config.toml"), "--set", "train.init_from=run", *settings]
    for words in (*((name, "run", *more) for name, *more in commands), (*started, "--name", "child")):
        options = ["--device", "cpu"] if words[0] in ON_CPU else []
        options += ["--out", str(copy / "out" / "-".join(words[2:4]))] if words[0] in ("report", "export") else []
        found = said([*words, "--runs-dir", str(runs), *options], environment=variables)
        assert not mark.exists(), (words, found.text)
        assert found.code in (0, 1, 2), (words, found.code, found.text[-1500:])
        if found.code == 2:
            assert len(found.text.strip().splitlines()) == 1 and "\x1b" not in found.text, (words, found.text)


def quickly(monkeypatch) -> None:
    """No pictures are drawn, and even a short text is kept in the cache."""
    monkeypatch.setattr("tui_transformer.lab.reports.report.render", lambda *_: {"svg": b"<svg></svg>", "png": b"png"})
    monkeypatch.setattr("tui_transformer.lab.reports.report.chinese_font", lambda: "some font")
    monkeypatch.setattr(cache, "MIN_CACHED_LENGTH", 0)


@pytest.mark.parametrize("name", ["model.safetensors", "*.npy"])
def test_a_planted_pickle_is_refused_and_never_loaded(home, tmp_path, monkeypatch, name: str) -> None:
    quickly(monkeypatch)
    place = [place for place in places(home) if place.match(name)][-1]
    copy, mark = planted(home, place, "numpy" if name == "*.npy" else "torch", tmp_path)
    told(copy, mark, [words for words in COMMANDS if words[0] in ("evaluate", "resume")])


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_no_file_of_a_run_a_cache_or_a_corpus_is_ever_unpickled(home, tmp_path, monkeypatch, form: str) -> None:
    quickly(monkeypatch)
    found = list(places(home))
    assert {"run.json", "metrics.jsonl", "state.json", "optimizer.safetensors", "model.pt", "corpus.txt"} <= {
        place.name for place in found
    } and any(place.suffix == ".npy" for place in found)
    for number, place in enumerate(found):
        told(*planted(home, place, form, tmp_path / str(number)))
        shutil.rmtree(tmp_path / str(number))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_no_corpus_of_any_kind_is_ever_unpickled(tmp_path, form: str) -> None:
    mark = tmp_path / "mark"
    raw = FORMS[form](Bomb(mark))
    (tmp_path / "folder").mkdir()
    for name in ("a.txt", "a.tsv", "a.tsv.gz", "a.npy", "a.pkl", "a.pt", "a.csv", "folder/documents.txt"):
        (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        where = tmp_path / (Path(name).parent if "/" in name else name)
        for words in (("data", "show", str(where)), ("run", "--preset", "demo", "--corpus", str(where), "--set")):
            more = (
                ["train.steps=1", "--device", "cpu", "--runs-dir", str(tmp_path / "runs")]
                if words[-1] == "--set"
                else []
            )
            found = said([*words, *more])
            assert not mark.exists() and found.code in (0, 1, 2), (words, found.text[-1500:])
    for entry in CORPORA.values():
        for remote in entry.remotes:
            path = tmp_path / "data" / remote.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(raw)
            if path.suffix == ".zip":
                with zipfile.ZipFile(path, "w") as archive:
                    for name in ("deu.txt", "train.tags.en-de.en", "train.tags.en-de.de"):
                        archive.writestr(name, raw)
        found = said(["data", "show", entry.name, "--data-dir", str(tmp_path / "data")])
        assert not mark.exists() and found.code in (0, 2), (entry.name, found.text[-1500:])


# ── nothing in the code could ──

MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "marshal",
    "yaml",
    "jsonpickle",
    "tarfile",
    "telnetlib",
}


def wrong_in(tree: ast.Module) -> Iterator[str]:
    """Imports and calls by which data becomes code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (f"import {name}" for name in names if name.partition(".")[0] in MODULES)
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec", "compile", "__import__"):
            yield f"{node.func.id}()"
        called = ast.unparse(node.func)
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        if called in ("torch.load", "os.system", "os.popen", "subprocess.getoutput", "extractall", "unpack_archive"):
            yield f"{called}()"
        if called.endswith((".extractall", ".extract", "unpack_archive", "read_pickle")):
            yield f"{called}()"
        if called in ("np.load", "numpy.load") and given.get("allow_pickle") != "False":
            yield f"{called}() without allow_pickle=False"
        if "shell" in given or given.get("trust_remote_code", "False") != "False":
            yield f"{called}(shell or remote code)"


def test_no_code_of_ours_could_load_a_pickle_run_a_shell_or_unpack_into_a_folder() -> None:
    for path in sorted(path for folder in ("engine", "tui_transformer") for path in (ROOT / folder).rglob("*.py")):
        assert list(wrong_in(ast.parse(path.read_text(encoding="utf-8")))) == [], path


@pytest.mark.parametrize(
    "code",
    [
        *("import pickle", "from pickle import loads", "torch.load(f, weights_only=True)", "np.load(f)", "eval(text)"),
        *("np.load(f, allow_pickle=True)", "subprocess.run(c, shell=True)", "yaml.load(f)\nimport yaml", "exec(text)"),
        *("archive.extractall(folder)", "os.system(text)", "from_pretrained(name, trust_remote_code=True)"),
    ],
)
def test_the_search_finds_what_it_is_for(code: str) -> None:
    assert list(wrong_in(ast.parse(code)))
