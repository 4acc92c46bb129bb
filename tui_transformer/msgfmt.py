"""Compile a catalogue of messages: from a PO file, which people edit, to an MO file, which gettext reads.

A subset of gettext's `msgfmt`. It imports only the standard library, because `hatch_build.py` runs it
before the package is installed.
"""

import re
import struct
from collections.abc import Iterator

MAGIC = 0x950412DE  # of an MO file
HEADER = struct.Struct("<7I")  # magic, version, number of messages, where the two tables start, no hash table
LINE = re.compile(r'(msgctxt|msgid|msgid_plural|msgstr|msgstr\[[0-9]\]|)\s*"((?:[^"\\\0]|\\[\\"ntr])*)"')
ESCAPE = re.compile(r"\\(.)")
ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
CONTEXT_END = "\x04"  # after a message's context
Entry = dict[str, str]  # keyword -> text


def compile_po(po: bytes) -> bytes:
    """Return the MO file for a PO file; messages that are fuzzy, obsolete or not translated are left out.

    Raises:
        ValueError: a line cannot be read, a message is defined twice or lacks a part, or the text is not UTF-8
    """
    translations: dict[str, tuple[str, str]] = {}  # msgid -> its key in the MO file, its translation
    for number, entry in _entries(po.decode("utf-8-sig")):
        context = [entry.pop("msgctxt") + CONTEXT_END] if next(iter(entry)) == "msgctxt" else []
        keys = list(entry)
        plural = ["msgid_plural"] if "msgid_plural" in entry else []
        forms = [f"msgstr[{i}]" for i in range(len(keys) - 2)] if plural else ["msgstr"]
        if keys != ["msgid", *plural, *forms] or not forms:
            raise ValueError(f"line {number}: a message must have msgid and msgstr, in this order")
        message = "".join([*context, entry["msgid"]])
        if message in translations:
            raise ValueError(f"line {number}: {message[:40]!r} is defined twice")
        said = [entry[form] for form in forms]
        if all(said):
            translations[message] = "\0".join([message, *(entry[key] for key in plural)]), "\0".join(said)
    if "charset=utf-8" not in translations.get("", ("", ""))[1].lower():
        raise ValueError("the header must say charset=utf-8")
    pairs = sorted((message.encode(), said.encode()) for message, said in translations.values())
    return _mo_file([message for message, _ in pairs], [said for _, said in pairs])


def _mo_file(*columns: list[bytes]) -> bytes:
    """Write sorted messages and their translations: two tables of lengths and offsets, then the texts."""
    count = len(columns[0])
    tables, at = list[int](), HEADER.size + 16 * count
    for text in (text for column in columns for text in column):
        tables += (len(text), at)
        at += len(text) + 1
    head = HEADER.pack(MAGIC, 0, count, HEADER.size, HEADER.size + 8 * count, 0, 0)
    texts = b"".join(text + b"\0" for column in columns for text in column)
    return head + struct.pack(f"<{len(tables)}I", *tables) + texts


def _entries(po: str) -> Iterator[tuple[int, Entry]]:
    """Yield the messages that are not fuzzy, each with the number of its last line. The header is never fuzzy."""
    entry, key, fuzzy = Entry(), "", False
    for number, line in enumerate([*po.split("\n"), ""], 1):  # not splitlines(): texts may have other separators
        line = line.strip()
        starts = line.startswith("msgctxt") or (
            line.startswith("msgid") and not line.startswith("msgid_plural") and list(entry) != ["msgctxt"]
        )
        if entry and (starts or not line or line.startswith("#")):  # it ended above
            if not fuzzy or entry.get("msgid") == "":
                yield number - 1, entry
            entry, key, fuzzy = Entry(), "", False
        if line.startswith("#"):  # of obsolete messages, `#~`, not even the flags count
            flags = re.split(r"[,\s]+", line) if line.startswith("#,") else []
            fuzzy = (fuzzy or "fuzzy" in flags) and not line.startswith("#~")
        elif line:
            found = LINE.fullmatch(line)
            if found is None or not (found[1] or key) or found[1] in entry:
                raise ValueError(f"line {number}: cannot be read: {line[:40]!r}")
            key = found[1] or key
            entry[key] = entry.get(key, "") + ESCAPE.sub(lambda sign: ESCAPED.get(sign[1], sign[1]), found[2])
