"""Poisoned copies of a run: each text of each file of it, one file and one way at a time, so that the rest still reads.

A copy is the run of somebody who means harm: the checkpoints' manifests are those of the poisoned files.
"""

import hashlib
import json
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tomli_w

from tests.engine.tasks.test_translation import config as pairs_config
from tests.engine.tasks.test_translation import trained
from tests.hostile.poison import INJECTION, POISON
from tests.tui_transformer.answering import answering
from tests.tui_transformer.trained import train

BAD = POISON + INJECTION
JSON_FILES = ("run", "status", "model", "data", "environment", "checks", "summary", "translations", "notes", "control")
LINES = ("metrics", "samples", "events")
PLAIN = ("log.txt", "predictions.txt")
IN_CHECKPOINT = ("tokenizer", "state", "manifest")

KINDS: dict[str, Callable[[Path], Path]] = {
    "text": lambda root: train(root, "run"),
    "pairs": lambda root: trained(pairs_config(), root).path,
    "questions": lambda root: answering(root, "run"),
}
Change = Callable[[Any], Any]


def appended(value: Any) -> Any:
    """Every text with poison after it."""
    return value + BAD if isinstance(value, str) else value


def replaced(value: Any) -> Any:
    """Every text is poison."""
    return BAD if isinstance(value, str) else value


def confused(value: Any) -> Any:
    """Everything that is no text is poison, where a number or a truth is expected."""
    return value if isinstance(value, str) else BAD


def endless(value: Any) -> Any:
    """Every text is a million characters long."""
    return (value + BAD + "x" * 1_000_000)[:1_000_000] if isinstance(value, str) else value


def huge(value: Any) -> Any:
    """Every number is beyond all that a machine counts with."""
    return 10**400 if isinstance(value, int | float) and not isinstance(value, bool) else value


LEAVES: dict[str, Change] = {"appended": appended, "replaced": replaced, "confused": confused, "huge": huge}


def walked(data: Any, change: Change, *, keys: bool = False) -> Any:
    """The same data with its leaves changed; `keys` adds a poisoned twin of every key instead."""
    if isinstance(data, dict):
        new = {key: walked(value, change, keys=keys) for key, value in data.items()}
        return new | {key + BAD: value for key, value in new.items()} if keys else new
    if isinstance(data, list):
        return [walked(value, change, keys=keys) for value in data]
    return data if keys else change(data)


def leaves(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the leaves are, and the tables and lists themselves."""
    items = data.items() if isinstance(data, dict) else enumerate(data[:2]) if isinstance(data, list) else ()
    if at:
        yield at
    for key, value in items:
        yield from leaves(value, (*at, key))


def put(data: Any, at: tuple[Any, ...], value: Any) -> Any:
    """A copy with one place replaced."""
    copy = json.loads(json.dumps(data))
    inner = copy
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    return copy


def read(path: Path) -> Any:
    """The data of a JSON, JSON-lines or TOML file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def write(path: Path, data: Any) -> None:
    """Put data into a file of the same kind, and its hash into the manifest beside it."""
    if path.suffix == ".jsonl":
        text = "".join(json.dumps(record) + "\n" for record in data)
    elif path.suffix == ".toml":
        text = tomli_w.dumps(data)
    else:
        text = json.dumps(data)
    path.write_text(text, encoding="utf-8", errors="replace")
    rehash(path.parent)


def rehash(folder: Path) -> None:
    """A checkpoint's manifest says that its files are as they were written."""
    path = folder / "manifest.json"
    if path.is_file():
        manifest = json.loads(path.read_text())
        if isinstance(manifest.get("sha256"), dict):
            for name in manifest["sha256"]:
                if (folder / name).is_file():
                    manifest["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
            path.write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")


def files(run: Path) -> list[Path]:
    """Every structured file of a run, those of one checkpoint among them; relative."""
    top = [run / f"{name}.json" for name in JSON_FILES] + [run / f"{name}.jsonl" for name in LINES]
    newest = sorted((run / "checkpoints").glob("step-*"))[-1:]
    inner = [folder / f"{name}.json" for folder in newest for name in IN_CHECKPOINT]
    return [path.relative_to(run) for path in [*top, run / "config.toml", *inner] if path.is_file()]


def completed(run: Path) -> Path:
    """The run with notes and an obeyed command, which training does not leave behind."""
    (run / "notes.json").write_text(json.dumps({"schema": 1, "text": "a note", "tags": ["good"]}))
    (run / "control.json").write_text(json.dumps({"schema": 1, "id": 1, "commands": [{"id": 1, "command": "save"}]}))
    return run


def copies(run: Path, into: Path, ways: dict[str, Change] = LEAVES) -> list[Path]:
    """For every file and every way a copy of the run in which that file is poisoned; also its keys, and plain text."""
    made = []
    for file in files(run):
        data = read(run / file)
        for way in (*ways, "keys"):
            copy = into / f"{file.stem}-{way}"
            shutil.copytree(run, copy)
            write(copy / file, walked(data, ways.get(way, appended), keys=way == "keys"))
            made.append(copy)
    for name in PLAIN:
        copy = into / f"{Path(name).stem}-plain"
        shutil.copytree(run, copy)
        raw = (BAD.encode("utf-8", "surrogatepass") + b"\x9b31m\xff\x9d0;pwned\x07\n") * 20
        (copy / name).write_bytes(raw + b"y" * 1_000_000 + b"\n")
        made.append(copy)
    return made
