"""Two files, the n-th line of one translating the n-th line of the other."""

from pathlib import Path

from engine.data.parallel.lines import Lines, read_lines
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
    sources, targets = source.without_trailing(), target.without_trailing()
    if len(sources) != len(targets):
        short, long = sorted((source, target), key=lambda side: len(side.without_trailing()))
        last, most = len(short.without_trailing()), len(long.without_trailing())
        raise InputError(
            f"{source.where} has {len(sources):,} lines and {target.where} has {len(targets):,}: {short.where} ends "
            f"after line {last:,} where {long.where} goes on to line {most:,}; every line needs its translation"
        )
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
