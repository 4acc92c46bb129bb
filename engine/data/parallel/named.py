"""The kind of sentence pairs, and loaders for the named ones."""

from functools import partial
from pathlib import Path

from engine.config.sections import DataConfig
from engine.data.corpus import CorpusEntry, CorpusKind, is_file
from engine.data.parallel.by_path import absolute, load_path, read_aligned, split_selector, takes
from engine.data.parallel.iwslt import joined, tagged
from engine.data.parallel.lines import lines_of, read_bytes, read_member
from engine.data.parallel.pairs import Pairs, ParallelCorpus, grouped_split, several
from engine.data.parallel.table import table
from engine.data.synthetic.phrasebook import corpus as phrasebook
from engine.errors import InputError
from engine.language import tr

SIDES = ("en", "de")
MULTI30K = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
TATOEBA_HELD_OUT = 1_000  # pairs in each of validation and test
IWSLT = "IWSLT17.TED."


def load_phrasebook(entry: CorpusEntry, data: DataConfig, place: None) -> ParallelCorpus:
    _, *targets = languages = entry.languages or SIDES
    made = phrasebook.generate(data.corpus_seed, data.corpus_size or phrasebook.DEFAULT_SIZE, targets)
    splits = {}
    for name, found in made.items():
        sources = tuple(pair.source for pair in found)
        by_target = {one: Pairs(sources, tuple(pair.to(one) for pair in found)) for one in targets}
        splits[name] = by_target[targets[0]] if len(targets) == 1 else several(by_target)
    if not all(splits.values()):
        raise InputError(
            tr(
                "data.corpus_size = {corpus_size}: too few sentences to fill every split; 2000 is enough",
                corpus_size=data.corpus_size,
            )
        )
    phrases = tuple(pair.source for pair in phrasebook.PHRASES)
    note = tr(
        "{n} everyday phrases appear {phrase_repeats} times per epoch in the training split: they are learned by heart",
        n=len(phrases),
        phrase_repeats=phrasebook.PHRASE_REPEATS,
    )
    version = phrasebook.VERSION if len(targets) == 1 else phrasebook.VERSION_2
    return ParallelCorpus(entry.name, version, "generated", languages, splits, (note,), phrases)


def load_multi30k(entry: CorpusEntry, data: DataConfig, place: Path) -> ParallelCorpus:
    """Image captions with their official splits."""
    splits = {split: read_aligned(*(place / f"{stem}.{one}.gz" for one in SIDES)) for split, stem in MULTI30K.items()}
    return ParallelCorpus(entry.name, entry.name, str(place.resolve()), SIDES, splits)


def load_tatoeba(entry: CorpusEntry, data: DataConfig, place: Path) -> ParallelCorpus:
    """Short sentences, often with several translations: split so that no two splits share one.

    The file is deu.tsv (with or without a header), or deu.txt from manythings.org's archive.
    """
    name = "deu.tsv" if is_file(place / "deu.tsv") else "deu.txt"
    raw, where = _bytes(place, name, "deu-eng.zip")
    pairs, _ = table(lines_of(raw, where))
    splits = grouped_split(pairs, TATOEBA_HELD_OUT, TATOEBA_HELD_OUT, where)
    note = tr(
        "validation and test share no sentence with training on either side, except sentences that "
        "differ only in punctuation"
    )
    return ParallelCorpus(entry.name, entry.name, str(place.resolve()), SIDES, splits, (note,))


def load_iwslt2017(entry: CorpusEntry, data: DataConfig, place: Path, test: str = "tst2013") -> ParallelCorpus:
    """TED talks: the training text, dev2010 as validation, and a test set; from the archive, or unpacked."""
    read = partial(_bytes, place, archive=Path(entry.remotes[0].file).name)
    source, *targets = languages = entry.languages or SIDES
    found: dict[str, dict[str, Pairs]] = {"train": {}, "validation": {}, "test": {}}
    left_out = 0
    for target in targets:
        pair, sides = f"{source}-{target}", (source, target)
        found["train"][target], dropped = tagged(*(lines_of(*read(f"train.tags.{pair}.{side}")) for side in sides))
        left_out += dropped
        for split, stem in (("validation", "dev2010"), ("test", test)):
            found[split][target] = joined(*(read(f"{IWSLT}{stem}.{pair}.{side}.xml") for side in sides))
    splits = {split: several(apart) if len(apart) > 1 else apart[targets[0]] for split, apart in found.items()}
    notes = (tr("{left_out:,} training pairs with an empty side are left out", left_out=left_out),) if left_out else ()
    return ParallelCorpus(entry.name, entry.name, str(place.resolve()), languages, splits, notes)


def _bytes(place: Path, name: str, archive: str) -> tuple[bytes, str]:
    """Return a file's content and its name in errors, from the folder or else the archive in it."""
    if not is_file(place / name) and is_file(place / archive):
        return read_member(place / archive, name)
    where = str(place / name)[:200]
    return read_bytes(place / name, where), where


PAIRS = CorpusKind(
    ParallelCorpus,
    noun=tr("parallel corpus"),
    is_a=tr("sentence pairs"),
    preset="multi30k",
    known=tr("known"),
    path=tr("the path to a TSV file or a.en,b.de"),
    yours=tr("pairs.tsv, text.en,text.de or a folder of sentence pairs"),
    signs="/\\.,~",
    meanwhile=tr("phrasebook needs no download"),
    takes=takes,
    load_path=load_path,
    named={
        "phrasebook": load_phrasebook,
        "phrasebook-2": load_phrasebook,
        "multi30k": load_multi30k,
        "tatoeba-en-de": load_tatoeba,
        "iwslt2017-en-de": load_iwslt2017,
        "iwslt2017-en-zh": load_iwslt2017,
        "ted-talks": partial(load_iwslt2017, test="tst2010"),
    },
    selected=split_selector,
    portable=absolute,
)
