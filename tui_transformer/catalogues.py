"""Message catalogues: translations of the program's English texts.

A wheel contains `messages.mo`; a working copy only `messages.po`, which is compiled on first use and cached.
"""

import hashlib
import struct
from collections.abc import Iterator
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path

from engine.base.cache_folder import cache_folder, try_write_atomically
from engine.base.errors import InputError
from engine.base.language import CONTEXT_END

FOLDER = Path(__file__).parent / "locale"
COMPILER = Path(__file__).parent / "msgfmt.py"


class Messages(GNUTranslations):
    """A compiled catalogue whose messages can be iterated."""

    def __init__(self, compiled: bytes) -> None:
        super().__init__(BytesIO(compiled))
        self._compiled = compiled

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the messages that have no context with their translations, singular and plural apart."""
        count, texts, translations = struct.unpack_from("<3I", self._compiled, 8)
        for i in range(count):
            said = self._forms(translations, i)
            for text, translation in zip(self._forms(texts, i), (said[0], said[-1]), strict=False):
                if text and CONTEXT_END not in text:
                    yield text, translation

    def _forms(self, table: int, i: int) -> list[str]:
        size, at = struct.unpack_from("<2I", self._compiled, table + 8 * i)
        return self._compiled[at : at + size].decode().split("\0")


@cache
def catalogue(code: str) -> NullTranslations:
    """Return the messages of a language, e.g. `zh`.

    Raises:
        InputError: its PO file has a mistake.
    """
    if code == "en":
        return NullTranslations()
    source = FOLDER / code / "LC_MESSAGES" / "messages.po"
    try:
        text = source.read_bytes()
    except FileNotFoundError:  # an installed wheel
        return Messages(source.with_suffix(".mo").read_bytes())
    try:
        return Messages(_compile_cached(source, text))
    except ValueError as error:
        raise InputError(f"{source}: {error}") from error


def _compile_cached(source: Path, text: bytes) -> bytes:
    """Return the MO file for a PO file with this text: from the cache folder, or compiled now and cached there.

    A cached file ends with a hash over the compiler, the text and itself: neither a stale nor a damaged one is used.
    """
    before = hashlib.sha256(COMPILER.read_bytes() + text)

    def digest(compiled: bytes) -> bytes:
        found = before.copy()
        found.update(compiled)
        return found.digest()

    kept = cache_folder() / "messages" / f"{hashlib.sha256(str(source).encode()).hexdigest()}.mo"
    try:
        raw = kept.read_bytes()
        compiled, end = raw[: -before.digest_size], raw[-before.digest_size :]
        if digest(compiled) == end:
            return compiled
    except OSError:
        pass
    from tui_transformer import msgfmt

    compiled = msgfmt.compile_po(text)
    try_write_atomically(kept, lambda file: file.write(compiled + digest(compiled)))
    return compiled
