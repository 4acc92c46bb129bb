"""A working copy's messages are those of its PO file, whatever the cache folder has; a wheel has them compiled."""

import errno
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.base import cache_folder
from engine.base.errors import InputError
from tests.waiting import PATIENCE
from tui_transformer import catalogues, languages, msgfmt
from tui_transformer.catalogues import COMPILER, catalogue

HEADER = 'msgid ""\nmsgstr "Language: zh\\nContent-Type: text/plain; charset=utf-8\\n"\n\n'


@pytest.fixture
def source(tmp_path, monkeypatch) -> Iterator[Path]:
    """The PO file of a working copy, whose cache folder is empty."""
    monkeypatch.setenv(cache_folder.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(catalogues, "FOLDER", tmp_path / "locale")
    file = tmp_path / "locale" / "zh" / "LC_MESSAGES" / "messages.po"
    file.parent.mkdir(parents=True)
    write(file, "一")
    yield file
    catalogue.cache_clear()


@pytest.fixture
def compilations(monkeypatch) -> list[bytes]:
    """The texts that were compiled."""
    texts, compile_po = [], msgfmt.compile_po

    def counted(text: bytes) -> bytes:
        texts.append(text)
        return compile_po(text)

    monkeypatch.setattr(msgfmt, "compile_po", counted)
    return texts


def write(source: Path, said: str) -> None:
    source.write_text(f'{HEADER}msgid "one"\nmsgstr "{said}"\n', encoding="utf-8")


def said() -> str:
    """What the next process would say."""
    catalogue.cache_clear()
    return catalogue("zh").gettext("one")


def kept() -> Path:
    (found,) = (cache_folder.cache_folder() / "messages").iterdir()
    return found


def test_a_catalogue_is_compiled_once_and_then_found(source, compilations) -> None:
    assert [said() for _ in range(3)] == ["一"] * 3
    assert len(compilations) == 1
    assert kept().suffix == ".mo"


def test_an_edit_is_seen_even_if_neither_size_nor_time_tell(source) -> None:
    assert said() == "一"
    before = source.stat()
    write(source, "二")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert source.stat().st_size == before.st_size and said() == "二"
    write(source, "一")
    assert said() == "一"
    assert kept()  # the one before is not left behind


def test_a_change_of_the_compiler_is_seen(source, compilations, tmp_path, monkeypatch) -> None:
    said()
    other = shutil.copy(COMPILER, tmp_path / "msgfmt.py")
    monkeypatch.setattr(catalogues, "COMPILER", other)
    said()
    assert len(compilations) == 1  # it is the same
    with other.open("a") as file:
        file.write("# changed\n")
    said()
    assert len(compilations) == 2


def test_two_working_copies_keep_one_each(source, compilations, tmp_path, monkeypatch) -> None:
    said()
    shutil.copytree(tmp_path / "locale", tmp_path / "other")
    monkeypatch.setattr(catalogues, "FOLDER", tmp_path / "other")
    write(tmp_path / "other" / "zh" / "LC_MESSAGES" / "messages.po", "二")
    assert said() == "二"
    monkeypatch.setattr(catalogues, "FOLDER", tmp_path / "locale")
    assert said() == "一"
    assert len(compilations) == 2


@pytest.mark.parametrize("damage", ["empty", "cut", "interrupted", "longer", "flipped", "stale", "folder"])
def test_a_damaged_file_is_not_used_and_is_made_again(source, damage) -> None:
    said()
    file = kept()
    whole = file.read_bytes()
    flipped = bytearray(whole)
    flipped[-35] ^= 4  # in the translation
    write(source, "二")
    said()
    stale = file.read_bytes()
    write(source, "一")
    changed = {"empty": b"", "cut": whole[:20], "interrupted": whole[:-1], "longer": whole + b"\0", "flipped": flipped}
    if damage == "folder":
        file.unlink()
        (file / "in the way").mkdir(parents=True)
    else:
        file.write_bytes(changed.get(damage, stale))
    assert said() == "一"
    assert damage == "folder" or file.read_bytes() == whole


FAULTS = {
    "no room for the file": ("io.open", errno.ENOSPC),
    "broken as it is synced": ("os.fsync", errno.EIO),
    "read-only": ("pathlib.Path.mkdir", errno.EROFS),
    "vanished before it is put in place": ("pathlib.Path.replace", errno.ENOENT),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_the_cache_folder_refuses_the_messages_are_there(source, compilations, monkeypatch, fault) -> None:
    where, number = FAULTS[fault]

    opened = io.open

    def refused(*what: Any, **how: Any) -> Any:
        if where == "io.open" and "x" not in what[1]:  # what is read
            return opened(*what, **how)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(where, refused)
        assert [said(), said()] == ["一"] * 2
    assert not list(cache_folder.cache_folder().rglob("*.new"))
    assert [said(), said()] == ["一"] * 2
    assert len(compilations) == 3 and kept()


def test_a_file_in_place_of_the_cache_folder_costs_only_time(source, tmp_path) -> None:
    (tmp_path / "cache").write_text("in the way")
    assert said() == "一"


def test_processes_that_are_the_first_at_once_say_the_same_and_leave_one_file(tmp_path) -> None:
    code = "from tui_transformer.catalogues import catalogue; print(hash(frozenset(catalogue('zh')._catalog.items())))"
    environment = os.environ | {cache_folder.CACHE_VARIABLE: str(tmp_path), "PYTHONHASHSEED": "0"}
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    printed = {process.communicate(timeout=PATIENCE)[0] for process in started}
    assert len(printed) == 1 and printed != {""}
    assert [path.suffix for path in (tmp_path / "messages").iterdir()] == [".mo"]


def test_a_wheel_has_its_messages_compiled_and_keeps_nothing(source, compilations, tmp_path) -> None:
    source.with_suffix(".mo").write_bytes(msgfmt.compile_po(source.read_bytes()))
    source.unlink()
    compilations.clear()
    assert said() == "一"
    assert not compilations and not (tmp_path / "cache").exists()


def test_a_compiled_file_that_lies_about_in_a_working_copy_is_not_read(source) -> None:
    source.with_suffix(".mo").write_bytes(msgfmt.compile_po(source.read_bytes()))
    write(source, "二")
    assert said() == "二"


def test_a_mistake_in_a_catalogue_is_one_line_that_says_where(source) -> None:
    with source.open("a", encoding="utf-8") as file:
        file.write('\nmsgid "two\n')
    catalogue.cache_clear()
    with pytest.raises(InputError, match=r"messages\.po: line 7: cannot be read: 'msgid \"two'$"):
        languages.apply_language_option(["--language", "zh"])


def test_english_needs_no_file(source) -> None:
    source.unlink()
    assert catalogue("en").gettext("one") == "one"
