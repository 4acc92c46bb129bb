"""Two files, the n-th line of one translating the n-th line of the other."""

from pathlib import Path

from engine.data.parallel.lines import Lines, read_lines, side_by_side, uneven
from engine.data.parallel.pairs import Pairs
from engine.errors import InputError


def read_aligned(source: Path, target: Path) -> Pairs:
    """The pairs of two aligned text files.

    Raises:
        InputError: files that cannot be read, the same text twice, different numbers of lines, or an empty line.
    """
    if source == target or (source.exists() and target.exists() and source.samefile(target)):
        raise InputError(f"{source}: is the file of both sides; name the file of the translations as well")
    return aligned(read_lines(source), read_lines(target))


def aligned(source: Lines, target: Lines) -> Pairs:
    """The pairs of two lists of lines.

    Raises:
        InputError: the same text twice, different numbers of lines, or an empty line.
    """
    sources, targets = side_by_side(source, target)
    if len(sources) != len(targets):
        raise uneven(source, target, len(sources), len(targets))
    for number, (one, other) in enumerate(zip(sources, targets, strict=True), start=1):
        if one.strip() and other.strip():
            continue
        if not (one.strip() or other.strip()):
            raise source.refuse(number, f"is empty, and so is that of {target.where}; take the line out of both files")
        side, against = (target, source) if one.strip() else (source, target)
        raise side.refuse(number, f"is empty, where {against.where} has a sentence; take the line out of both files")
    if sources == targets:
        raise InputError(f"{source.where} and {target.where} hold the same text; one should be the translation")
    return Pairs(tuple(sources), tuple(targets))
