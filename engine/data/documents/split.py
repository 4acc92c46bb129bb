"""Cutting documents into training, validation and test: by line, the same line always on the same side.

Lines are put in order by the hash of their text: neither the order of the file nor a new line at its end moves the
others.
"""

import hashlib
from collections.abc import Sequence

from engine.config.sections import DataConfig
from engine.errors import InputError


def drawn(documents: Sequence[str], count: int) -> set[str]:
    """So many different documents, the same ones wherever they stand."""
    return set(_by_hash(documents)[:count])


def split_documents(documents: Sequence[str], data: DataConfig, where: str) -> dict[str, tuple[str, ...]]:
    """Training, validation and perhaps test documents that share no line, each in the file's order.

    Args:
        documents: all of them.
        data: `validation_fraction` and `test_fraction` of the different ones.
        where: what an error calls the corpus.

    Raises:
        InputError: too few different documents to fill every split.
    """
    order = _by_hash(documents)
    validation = max(1, round(len(order) * data.validation_fraction))
    test = max(1, round(len(order) * data.test_fraction)) if data.test_fraction else 0
    if validation + test >= len(order):
        raise InputError(
            f"{where}: {len(order):,} different lines are too few to leave some for validation; one line is one "
            "document, and a few hundred of them are the least that teaches anything"
        )
    parts = {"validation": set(order[:validation]), "test": set(order[validation : validation + test])}
    parts["train"] = set(order[validation + test :])
    names = ("train", "validation", *(("test",) if test else ()))
    return {name: tuple(text for text in documents if text in parts[name]) for name in names}


def _by_hash(documents: Sequence[str]) -> list[str]:
    return sorted(set(documents), key=lambda text: hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
