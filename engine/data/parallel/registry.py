"""Parallel corpora that have a name, and the one door to all of them: a name, or a path (`by_path.py`).

A corpus is added by a row: a loader that gives splits, and the files that `data fetch` puts in place; one that is
generated has none.
"""

from collections.abc import Sequence
from pathlib import Path

from engine.config.sections import DataConfig
from engine.data.download import Remote
from engine.data.entry import CorpusEntry, data_folders, is_file, is_there
from engine.data.parallel.by_path import load_path, read_aligned, split_selector
from engine.data.parallel.iwslt import joined, segments, tagged
from engine.data.parallel.lines import lines_of, read_bytes, read_member
from engine.data.parallel.pairs import Pairs, ParallelCorpus, grouped_split
from engine.data.parallel.table import table
from engine.data.synthetic import phrasebook
from engine.errors import InputError, nearest

Entry = CorpusEntry[ParallelCorpus]

SIDES = ("en", "de")
MULTI30K = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
MULTI30K_HASHES = {
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
}
TATOEBA_HELD_OUT = 1_000  # pairs, of validation and of test
IWSLT = {"validation": "IWSLT17.TED.dev2010", "test": "IWSLT17.TED.tst2013"}
MEANWHILE = "--corpus phrasebook works now"


def _load_phrasebook(entry: Entry, data: DataConfig, folders: Sequence[Path]) -> ParallelCorpus:
    made = phrasebook.generate(data.corpus_seed, data.corpus_size or phrasebook.DEFAULT_SIZE)
    splits = {
        name: Pairs(tuple(pair.source for pair in pairs), tuple(pair.target for pair in pairs))
        for name, pairs in made.splits.items()
    }
    if not all(splits.values()):
        raise InputError(
            f"data.corpus_size = {data.corpus_size}: too few sentences to fill every split; 2000 are enough"
        )
    phrases = tuple(pair.source for pair in made.phrases)
    note = (
        f"{len(phrases)} everyday phrases stand {phrasebook.PHRASE_REPEATS} times an epoch in the training split: "
        "they are learned by heart"
    )
    return _corpus(entry, splits, None, (note,), phrases, made.version)


def _load_multi30k(entry: Entry, data: DataConfig, folders: Sequence[Path]) -> ParallelCorpus:
    """Image captions with their official splits."""
    place = entry.found(folders)
    if place is None:
        raise entry.not_here(folders, MEANWHILE)
    splits = {split: read_aligned(*(place / f"{stem}.{one}.gz" for one in SIDES)) for split, stem in MULTI30K.items()}
    return _corpus(entry, splits, place)


def _load_tatoeba(entry: Entry, data: DataConfig, folders: Sequence[Path]) -> ParallelCorpus:
    """Short sentences, often with several translations: cut so that no split shares one with another.

    The file is deu.tsv (with or without a header), or deu.txt as it comes in manythings.org's archive.
    """
    place = entry.found(folders)
    found = (_bytes(place, "deu.tsv") or _bytes(place, "deu.txt", "deu-eng.zip")) if place is not None else None
    if place is None or found is None:
        raise entry.not_here(folders, MEANWHILE)
    splits = grouped_split(table(lines_of(*found)).pairs, TATOEBA_HELD_OUT, TATOEBA_HELD_OUT, found[1])
    note = "validation and test share no sentence with training on either side, unless punctuation is ignored"
    return _corpus(entry, splits, place, (note,))


def _load_iwslt2017(entry: Entry, data: DataConfig, folders: Sequence[Path]) -> ParallelCorpus:
    """TED talks: the training text, dev2010 as validation, tst2013 as test; from the archive, or unpacked."""
    for folder in folders:
        place = folder / entry.name
        one, other = (_bytes(place, f"train.tags.en-de.{side}", "en-de.zip") for side in SIDES)
        if one is None or other is None:
            continue
        train, left_out = tagged(lines_of(*one), lines_of(*other))
        splits = {"train": train}
        for split, stem in IWSLT.items():
            names = [f"{stem}.en-de.{side}.xml" for side in SIDES]
            one, other = (_bytes(place, name, "en-de.zip") or _read(place / name) for name in names)
            splits[split] = joined(segments(*one), segments(*other), one[1], other[1])
        notes = (f"{left_out:,} training pairs with an empty side are left out",) if left_out else ()
        return _corpus(entry, splits, place, notes)
    raise entry.not_here(folders, MEANWHILE)


def _corpus(
    entry: Entry,
    splits: dict[str, Pairs],
    place: Path | None,
    notes: tuple[str, ...] = (),
    examples: tuple[str, ...] = (),
    version: str = "",
) -> ParallelCorpus:
    source = "generated" if place is None else str(place.resolve())
    return ParallelCorpus(entry.name, version or entry.name, source, SIDES, splits, notes, examples)


def _bytes(place: Path, name: str, archive: str | None = None) -> tuple[bytes, str] | None:
    """Return a file's content and what an error calls it: unpacked in the folder, or else in the archive there."""
    if is_file(place / name):
        return _read(place / name)
    if archive is not None and is_file(place / archive):
        return read_member(place / archive, name)
    return None


def _read(path: Path) -> tuple[bytes, str]:
    return read_bytes(path, str(path)[:200]), str(path)[:200]


PARALLEL: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "phrasebook",
            "pairs",
            "generated English sentences with their German: gender, case, word order, separable verbs, negation",
            _load_phrasebook,
            languages=SIDES,
        ),
        Entry(
            "multi30k",
            "pairs",
            "29,000 English image captions with German translations (Elliott et al. 2016), test 2016 flickr",
            _load_multi30k,
            tuple(
                Remote(
                    f"https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/{file}",
                    f"multi30k/{file}",
                    sha256,
                    2_000_000,
                )
                for file, sha256 in MULTI30K_HASHES.items()
            ),
            languages=SIDES,
        ),
        Entry(
            "tatoeba-en-de",
            "pairs",
            "short everyday sentences from English to German, 1,000 each for validation and test",
            _load_tatoeba,
            # A new edition appears every few weeks: what is fetched is trusted on first use.
            (Remote("https://www.manythings.org/anki/deu-eng.zip", "tatoeba-en-de/deu-eng.zip", None, 100_000_000),),
            instead=(("deu.tsv",), ("deu.txt",)),
            licence="CC BY 2.0 FR",
            languages=SIDES,
        ),
        Entry(
            "iwslt2017-en-de",
            "pairs",
            "206,112 sentences of TED talks (Cettolo et al. 2017), validation dev2010, test tst2013",
            _load_iwslt2017,
            (
                Remote(
                    "https://huggingface.co/datasets/IWSLT/iwslt2017/resolve/main/"
                    "data/2017-01-trnted/texts/en/de/en-de.zip",
                    "iwslt2017-en-de/en-de.zip",
                    None,
                    200_000_000,
                ),
            ),
            instead=(
                (
                    *(f"train.tags.en-de.{side}" for side in SIDES),
                    *(f"{stem}.en-de.{side}.xml" for stem in IWSLT.values() for side in SIDES),
                ),
            ),
            licence="CC BY-NC-ND",
            languages=SIDES,
        ),
    )
}


def load_parallel(data: DataConfig, data_dir: Path | None = None) -> ParallelCorpus:
    """Return the parallel corpus a config names: a registered name, or the path of a table, two files or a folder.

    Args:
        data: `corpus` is what is asked for; `validation_fraction` and `test_fraction` cut files of your own.
        data_dir: where named corpora are looked for first.

    Raises:
        InputError: no such corpus or file, or something wrong with it; names the file and the line.
    """
    name, chosen = split_selector(data.corpus)
    entry = PARALLEL.get(name)
    if entry is not None and entry.languages is not None:
        directions = (entry.languages, entry.languages[::-1])
        if chosen not in (None, *directions):
            known = " and ".join(f"{name}#{one},{other}" for one, other in directions)
            raise InputError(f"corpus '{data.corpus[:80]}': {name} has the directions {known}")
        corpus = entry.load(entry, data, data_folders(data_dir))
        return corpus.reversed() if chosen == directions[1] else corpus
    if not any(sign in name for sign in "/\\.,~") and not is_there(name):
        hint = nearest(name, PARALLEL) or f"; known: {', '.join(PARALLEL)}; or the path of a TSV file or a.en,b.de"
        raise InputError(f"no parallel corpus is called '{name[:80]}'{hint}")
    return load_path(data)
