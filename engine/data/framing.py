"""The hash of a list of texts, framed so that no other list has the same bytes."""

import hashlib
from collections.abc import Iterable


def sha256_of_texts(*columns: Iterable[str]) -> str:
    """Return the hash of one or more columns of texts.

    Each text is preceded by its length in bytes, each column by a mark: moving a line break, or a sentence from one
    side to the other, changes the hash.
    """
    digest = hashlib.sha256()
    for column in columns:
        digest.update(b"column\n")
        for text in column:
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d\n" % len(raw))
            digest.update(raw)
    return digest.hexdigest()
