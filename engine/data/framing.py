"""Texts for comparison: hashes framed so that no two lists of texts give the same bytes, and sentences without case."""

import hashlib
from collections.abc import Iterable, Iterator

BEGINNING, LETTERS = 16, 3  # of a prompt: most characters, fewest letters


def sha256_of_texts(*columns: Iterable[str]) -> str:
    """Return the hash of columns of texts. Each text is preceded by its length in bytes, and each column by a mark:
    moving a line break, or a sentence to the other side, changes the hash.
    """
    digest = hashlib.sha256()
    for column in columns:
        digest.update(b"column\n")
        for text in column:
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d\n" % len(raw))
            digest.update(raw)
    return digest.hexdigest()


def fold_case_and_spaces(sentence: str) -> str:
    """Return a sentence for comparison: without case, and with single spaces."""
    return " ".join(sentence.casefold().split())


def beginnings(text: str) -> Iterator[str]:
    """Yield the first words of a text's lines, as prompts to try."""
    begun = (" ".join(line.split()[:2])[:BEGINNING] for line in text.split("\n"))
    return (words for words in dict.fromkeys(begun) if sum(map(str.isalpha, words)) >= LETTERS)
