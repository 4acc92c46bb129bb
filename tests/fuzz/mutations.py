"""Damage to files: bytes flipped, lines cut, values of other types. An edit is drawn once and fits any file."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

ODD = (
    *(None, True, False, -1, 0, 1, 3, 10**18, -(10**18), 2**63, 10**400, -(10**400), 1e308, 5e-324, 0.5, -0.0),
    *(
        float("nan"),
        float("inf"),
        -float("inf"),
        "",
        "x",
        "nan",
        "1",
        "\x1b[2J\x07",
        "\ud800",
        "\x00",
        "../..",
        "a" * 999,
    ),
    *("ok", "LEAK", "train", "validation", "running", "lost", "step-00000006", "é界\u202e"),
    *([], {}, [[]], [None], ["x"], [1, "x", None], {"a": {}}, {"": None}, [[[[[[[[[[]]]]]]]]]]),
)
VALUES = st.one_of(
    st.sampled_from(ODD),
    st.sampled_from(ODD),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.recursive(
        st.sampled_from(ODD),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=6,
    ),
)
# What no value of Python writes, but a file may hold.
RAW_JSON = (b"1e400", b"-1e999", b"9" * 5000, b"[" * 100_000, b'{"a":' * 3000, b'"\xff\xfe"', b"nan", b"'x'", b"0x10")
RAW_TOML = (
    *(b"nan", b"-inf", b"1e999", b"-1", b"0", b"true", b'""', b"'x'", b"[]", b"{}", b"[[[[[[1]]]]]]", b"{a={b={c=1}}}"),
    *(
        b"[" * 5000,
        b"9" * 30,
        b"9" * 5000,
        b"1979-05-27",
        b"0xffffffffffffffffffff",
        b"",
        b'"\\ud800"',
        b'"\xff"',
        b'"""',
    ),
    *(b'["x", 1, true]', b"[{}]", b"[[1],[2]]", b"1e-999", b"'''\n\n'''", b"[1,1]", b'{"" = ""}', b'"all"', b"0.5"),
)


@dataclass(frozen=True)
class Edit:
    """One piece of damage.

    Args:
        kind: a key of `KINDS`, or of `PLACES` where a file's place itself is damaged.
        file: which file, modulo how many there are.
        where: which byte, line or value, modulo how many there are.
        value: what is put there.
    """

    kind: str
    file: int
    where: int
    value: Any


def _bytes_of(value: Any) -> bytes:
    return json.dumps(value).encode() if not isinstance(value, str) else value.encode("utf-8", "surrogatepass")


def _flip(raw: bytes, where: int, value: Any) -> bytes:
    if not raw:
        return _bytes_of(value)
    at = where % len(raw)
    return raw[:at] + bytes([raw[at] ^ (1 << where % 8)]) + raw[at + 1 :]


def _insert(raw: bytes, where: int, value: Any) -> bytes:
    at = where % (len(raw) + 1)
    return raw[:at] + _bytes_of(value) + raw[at:]


def _cut(raw: bytes, where: int, value: Any) -> bytes:
    return raw[: where % (len(raw) + 1)]


def _gap(raw: bytes, where: int, value: Any) -> bytes:
    lines = raw.splitlines(keepends=True)
    return b"".join(line for i, line in enumerate(lines) if i != where % len(lines))


def _twice(raw: bytes, where: int, value: Any) -> bytes:
    lines = raw.splitlines(keepends=True)
    return b"".join(line * (2 if i == where % len(lines) else 1) for i, line in enumerate(lines))


def _whole(raw: bytes, where: int, value: Any) -> bytes:
    return _bytes_of(value)


def _raw_value(raw: bytes, where: int, value: Any) -> bytes:
    """One value of a JSON text by one that Python would not write; one of a TOML text likewise."""
    lines = raw.splitlines(keepends=True)
    marked = [i for i, line in enumerate(lines) if b"=" in line]
    if not raw.lstrip().startswith((b"{", b"[{")) and marked:
        i = marked[where % len(marked)]
        key, _, _ = lines[i].partition(b"=")
        lines[i] = key + b"= " + RAW_TOML[where // 7 % len(RAW_TOML)] + b"\n"
        return b"".join(lines)
    colons = [i for i, byte in enumerate(raw) if byte == ord(":")]
    if not colons:
        return RAW_JSON[where % len(RAW_JSON)]
    at = colons[where % len(colons)] + 1
    stop = min((found for found in (raw.find(b",", at), raw.find(b"}", at)) if found >= 0), default=len(raw))
    return raw[:at] + RAW_JSON[where // 7 % len(RAW_JSON)] + raw[stop:]


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every value within."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in list(inner):
        yield data, key
        yield from _places(value)


def _with_value(raw: bytes, where: int, value: Any) -> bytes:
    """One value of a JSON text, or of one line of JSON, by another."""
    lines = raw.splitlines(keepends=True)
    whole = not raw.startswith(b'{"') or len(lines) < 2
    i = where % max(1, len(lines))
    try:
        data = json.loads(raw if whole else lines[i])
    except (ValueError, RecursionError):
        return _raw_value(raw, where, value)
    places = list(_places(data))
    if not places:
        return _bytes_of(value)
    container, key = places[where // 3 % len(places)]
    if where % 11 == 0:
        del container[key]
    else:
        container[key] = value
    changed = json.dumps(data).encode() + b"\n"
    return changed if whole else b"".join([*lines[:i], changed, *lines[i + 1 :]])


KINDS: dict[str, Callable[[bytes, int, Any], bytes]] = {
    "value": _with_value,
    "raw value": _raw_value,
    "flip": _flip,
    "insert": _insert,
    "cut": _cut,
    "gap": lambda raw, where, value: _gap(raw, where, value) if raw else raw,
    "twice": lambda raw, where, value: _twice(raw, where, value) if raw else raw,
    "whole": _whole,
    "empty": lambda raw, where, value: b"",
}
PLACES = ("missing", "folder")
_FILE, _WHERE = st.integers(0, 10_000), st.integers(0, 1 << 20)
_USUAL = ("value", "value", "value", "value", *KINDS)
TEXT_EDITS = st.lists(st.builds(Edit, st.sampled_from(_USUAL), _FILE, _WHERE, VALUES), min_size=1, max_size=3)
EDITS = st.lists(st.builds(Edit, st.sampled_from((*_USUAL, *PLACES)), _FILE, _WHERE, VALUES), min_size=1, max_size=3)


def edited(raw: bytes, edits: Sequence[Edit]) -> bytes:
    """The text with all of that damage."""
    for edit in edits:
        raw = KINDS[edit.kind](raw, edit.where, edit.value)
    return raw


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def damaged(files: Sequence[Path], edits: Sequence[Edit]) -> Iterator[None]:
    """These files with that damage, and afterwards as they were."""
    before: dict[Path, bytes] = {}
    try:
        for edit in edits:
            path = files[edit.file % len(files)]
            if path not in before:
                before[path] = path.read_bytes()
            raw = path.read_bytes() if path.is_file() else before[path]
            _clear(path)
            if edit.kind == "folder":
                path.mkdir()
            elif edit.kind != "missing":
                path.write_bytes(KINDS[edit.kind](raw, edit.where, edit.value))
        yield
    finally:
        for path, raw in before.items():
            if path.parent.is_dir():  # else somebody deleted or renamed the run meanwhile
                _clear(path)
                path.write_bytes(raw)
