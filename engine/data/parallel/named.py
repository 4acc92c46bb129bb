"""Loading the corpora that have a name: where their files stand under a data folder, and how they are cut."""

from collections.abc import Sequence
from pathlib import Path

from engine.data.parallel.aligned import read_aligned
from engine.data.parallel.iwslt import joined, segments, tagged
from engine.data.parallel.lines import lines_of, read_bytes, read_member
from engine.data.parallel.pairs import Pairs
from engine.data.parallel.split import grouped_split
from engine.data.parallel.table import table

MULTI30K = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
TATOEBA_HELD_OUT = 1_000  # pairs, of validation and of test
IWSLT = {"validation": "IWSLT17.TED.dev2010", "test": "IWSLT17.TED.tst2013"}
SIDES = ("en", "de")
# What stands in a folder where an archive was unpacked, or made into a table.
TATOEBA_FILES = (("deu.tsv",), ("deu.txt",))
IWSLT_FILES = (
    *(f"train.tags.en-de.{side}" for side in SIDES),
    *(f"{stem}.en-de.{side}.xml" for stem in IWSLT.values() for side in SIDES),
)

Loaded = tuple[dict[str, Pairs], Path, tuple[str, ...]]
"""Splits, where they are from, notes."""


def load_multi30k(folders: Sequence[Path]) -> Loaded | None:
    """Image captions with their official splits; None if a file is missing."""
    for folder in folders:
        place = folder / "multi30k"
        files = {split: [place / f"{stem}.{one}.gz" for one in SIDES] for split, stem in MULTI30K.items()}
        if all(_is_file(path) for pair in files.values() for path in pair):
            return {split: read_aligned(*pair) for split, pair in files.items()}, place, ()
    return None


def load_tatoeba(folders: Sequence[Path]) -> Loaded | None:
    """Short sentences, often with several translations: cut so that no split shares one with another.

    The file is deu.tsv (with or without a header), or deu.txt as it comes in manythings.org's archive.
    """
    for folder in folders:
        place = folder / "tatoeba-en-de"
        found = _bytes(place, "deu.tsv") or _bytes(place, "deu.txt", "deu-eng.zip")
        if found is not None:
            raw, where = found
            pairs = table(lines_of(raw, where)).pairs
            splits = grouped_split(pairs, TATOEBA_HELD_OUT, TATOEBA_HELD_OUT, where)
            note = "validation and test share no sentence with training on either side, unless punctuation is ignored"
            return splits, place, (note,)
    return None


def load_iwslt2017(folders: Sequence[Path]) -> Loaded | None:
    """TED talks: the training text, dev2010 as validation, tst2013 as test; from the archive, or unpacked."""
    for folder in folders:
        place = folder / "iwslt2017-en-de"
        one, other = (_bytes(place, f"train.tags.en-de.{side}", "en-de.zip") for side in SIDES)
        if one is None or other is None:
            continue
        train, left_out = tagged(lines_of(*one), lines_of(*other))
        splits = {"train": train}
        for split, stem in IWSLT.items():
            names = [f"{stem}.en-de.{side}.xml" for side in SIDES]
            one, other = (_bytes(place, name, "en-de.zip") or _absent(place, name) for name in names)
            splits[split] = joined(segments(*one), segments(*other), one[1], other[1])
        notes = (f"{left_out:,} training pairs with an empty side are left out",) if left_out else ()
        return splits, place, notes
    return None


def _bytes(place: Path, name: str, archive: str | None = None) -> tuple[bytes, str] | None:
    """A file's content and what an error calls it: unpacked in the folder, or else in the archive there."""
    if _is_file(place / name):
        return read_bytes(place / name, str(place / name)[:200]), str(place / name)[:200]
    if archive is not None and _is_file(place / archive):
        return read_member(place / archive, name)
    return None


def _absent(place: Path, name: str) -> tuple[bytes, str]:
    return read_bytes(place / name, str(place / name)[:200]), ""  # its error says that there is none


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a folder's name may be too long, or none at all
        return False
