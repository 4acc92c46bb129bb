"""The kind of sentence pairs, and loaders for the named ones."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from engine.base.errors import InputError, join_and
from engine.base.language import Message, tr
from engine.config.sections import DataConfig
from engine.data.corpus import CorpusEntry, CorpusKind, is_file
from engine.data.parallel.by_path import (
    accepts_path,
    align_lines,
    load_path,
    make_absolute,
    read_aligned,
    split_selector,
)
from engine.data.parallel.fields import left_out_note, read_fields
from engine.data.parallel.iwslt import parse_tagged, parse_xml_pair
from engine.data.parallel.lines import read_lines, read_member, read_text, split_lines
from engine.data.parallel.pairs import Pairs, ParallelCorpus, complete_pairs, grouped_split, interleave_targets
from engine.data.parallel.table import parse_pairs_and_languages
from engine.data.sources import group_by_split
from engine.data.synthetic import bulletins
from engine.data.synthetic.phrasebook import corpus as phrasebook
from engine.data.tables import parse_delimited
from engine.data.text_files import cut_lines

SIDES = ("en", "de")
SUMMARY = ("article", "summary")
MULTI30K = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
GIGAWORD = {  # files of the two sides of each split, in the archive of Rush et al. or in UniLM's
    "train": (("train.article.txt", "train.title.txt"), ("train.src.txt", "train.tgt.txt")),
    "validation": (("valid.article.filter.txt", "valid.title.filter.txt"), ("dev.src.txt", "dev.tgt.txt")),
    "test": (("input.txt", "task1_ref0.txt"), ("test.src.txt", "test.tgt.txt"), ("test.article.txt", "test.title.txt")),
}
HIGHLIGHTS = ("article", "highlights")
TATOEBA_HELD_OUT = 1_000  # pairs in each of validation and test
IWSLT = "IWSLT17.TED."


def load_phrasebook(entry: CorpusEntry, data: DataConfig, place: None) -> ParallelCorpus:
    _, *targets = languages = entry.languages or SIDES
    made = phrasebook.generate(data.corpus_seed, data.corpus_size or phrasebook.DEFAULT_SIZE, targets)
    splits = {}
    for name, found in made.items():
        sources = tuple(pair.source for pair in found)
        by_target = {one: Pairs(sources, tuple(pair.translation(one) for pair in found)) for one in targets}
        splits[name] = by_target[targets[0]] if len(targets) == 1 else interleave_targets(by_target)
    if not all(splits.values()):
        problem = Message(
            "data.corpus_size = {corpus_size}: too few sentences to fill every split; 2000 is enough",
            corpus_size=data.corpus_size,
        )
        raise InputError(problem)
    phrases = tuple(pair.source for pair in phrasebook.PHRASES)
    note = Message(
        "{n} everyday phrases each appear {phrase_repeats} times per epoch in the training split, so the model "
        "memorizes them",
        n=len(phrases),
        phrase_repeats=phrasebook.PHRASE_REPEATS,
    )
    version = phrasebook.VERSION if len(targets) == 1 else phrasebook.VERSION_2
    return ParallelCorpus(entry.name, version, "generated", languages, splits, (note,), phrases)


def load_headlines(entry: CorpusEntry, data: DataConfig, place: None) -> ParallelCorpus:
    """Bulletins with their headlines; `data.corpus_size` is how many. No held-out headline occurs in training."""
    items = bulletins.generate(data.corpus_seed, data.corpus_size or bulletins.TEXTS)
    pairs = Pairs(tuple(item.text for item in items), tuple(item.headline for item in items))
    shares = (data.validation_fraction, data.test_fraction)
    validation, test = (max(1, round(len(items) * share)) if share else 0 for share in shares)
    note = Message(
        "each item has exactly one right headline, so a perfect model reaches loss 0 and 100% exact matches; no "
        "held-out headline occurs in training"
    )
    splits = grouped_split(pairs, validation, test, entry.name)
    return ParallelCorpus(entry.name, bulletins.HEADLINES_VERSION, "generated", SUMMARY, splits, (note,))


def load_gigaword(entry: CorpusEntry, data: DataConfig, place: Path) -> ParallelCorpus:
    """First sentences of news and their headlines, with their official splits; `data.corpus_size` is how many of the
    training pairs are read.
    """
    splits: dict[str, Pairs] = {}
    left_out = 0
    for split, names in GIGAWORD.items():
        here = ([_path_or_gzipped(place / name) for name in sides] for sides in names)
        files = next((files for files in here if all(map(is_file, files))), None)
        if files is not None:
            splits[split], dropped = _first_pairs(files, _pair_limit(split, data))
            left_out += dropped
    missing = [split for split in ("train", "validation") if split not in splits]
    if missing:
        first = join_and(GIGAWORD[missing[0]][0])
        raise InputError(Message("{place}: {files} are missing", place=str(place)[:200], files=first))
    return ParallelCorpus(entry.name, entry.name, str(place.resolve()), SUMMARY, splits, left_out_note(left_out))


def load_cnn_dailymail(entry: CorpusEntry, data: DataConfig, place: Path) -> ParallelCorpus:
    """News articles and their highlights, with their official splits; `data.corpus_size` as in `load_gigaword`."""
    files = group_by_split(place, sorted(place.rglob("*.parquet")))
    splits, notes = read_fields(files, HIGHLIGHTS, lambda split: _pair_limit(split, data))
    return ParallelCorpus(entry.name, entry.name, str(place.resolve()), SUMMARY, splits, notes)


def _path_or_gzipped(path: Path) -> Path:
    packed = path.with_name(f"{path.name}.gz")
    return path if is_file(path) or not is_file(packed) else packed


def _pair_limit(split: str, data: DataConfig) -> int | None:
    """Return how many pairs are read: `data.corpus_size` in training, and a tenth as many of each held-out split."""
    return data.corpus_size if split == "train" or data.corpus_size is None else data.corpus_size // 10


def _first_pairs(files: Sequence[Path], most: int | None) -> tuple[Pairs, int]:
    """Return the first pairs of two aligned files as `complete_pairs` does, without reading much more than these."""
    lines = most
    while True:
        articles, titles = (read_lines(file, max_lines=lines) for file in files)
        pairs, left_out = complete_pairs(align_lines(articles, titles), most)
        if lines is None or len(pairs) == most or len(articles.lines) < lines:
            return pairs, left_out
        lines *= 2


def load_multi30k(entry: CorpusEntry, data: DataConfig, place: Path) -> ParallelCorpus:
    """Image captions with their official splits."""
    splits = {split: read_aligned(place / f"{stem}.en.gz", place / f"{stem}.de.gz") for split, stem in MULTI30K.items()}
    return ParallelCorpus(entry.name, entry.name, str(place.resolve()), SIDES, splits)


def load_tatoeba(entry: CorpusEntry, data: DataConfig, place: Path) -> ParallelCorpus:
    """Short sentences, often with several translations: split so that no two splits share one.

    The file is deu.tsv (with or without a header), or deu.txt from manythings.org's archive.
    """
    name = "deu.tsv" if is_file(place / "deu.tsv") else "deu.txt"
    text, where = _read_file_or_member(place, name, "deu-eng.zip")
    rows = parse_delimited(cut_lines([text], where), where, delimiter="\t")
    pairs, _ = parse_pairs_and_languages(rows, where)
    splits = grouped_split(pairs, TATOEBA_HELD_OUT, TATOEBA_HELD_OUT, where)
    note = Message(
        "validation and test share no sentence with training on either side, except sentences that "
        "differ only in punctuation"
    )
    return ParallelCorpus(entry.name, entry.name, str(place.resolve()), SIDES, splits, (note,))


def load_iwslt2017(entry: CorpusEntry, data: DataConfig, place: Path, test: str = "tst2013") -> ParallelCorpus:
    """TED talks: the training text, dev2010 as validation, `test` as test; from the archive, or unpacked."""
    read = partial(_read_file_or_member, place, archive=Path(entry.remotes[0].file).name)
    source, *targets = languages = entry.languages or SIDES
    found: dict[str, dict[str, Pairs]] = {"train": {}, "validation": {}, "test": {}}
    left_out = 0
    for target in targets:
        pair, sides = f"{source}-{target}", (source, target)
        tagged = (split_lines(*read(f"train.tags.{pair}.{side}")) for side in sides)
        found["train"][target], dropped = parse_tagged(*tagged)
        left_out += dropped
        for split, stem in (("validation", "dev2010"), ("test", test)):
            found[split][target] = parse_xml_pair(*(read(f"{IWSLT}{stem}.{pair}.{side}.xml") for side in sides))
    splits = {name: interleave_targets(apart) if len(apart) > 1 else apart[targets[0]] for name, apart in found.items()}
    return ParallelCorpus(entry.name, entry.name, str(place.resolve()), languages, splits, left_out_note(left_out))


def _read_file_or_member(place: Path, name: str, archive: str) -> tuple[str, str]:
    """Return a file's text and its name in errors, from the folder or else the archive in it."""
    if not is_file(place / name) and is_file(place / archive):
        return read_member(place / archive, name)
    return read_text(place / name)


PAIRS = CorpusKind(
    ParallelCorpus,
    noun=tr("parallel corpus"),
    description=tr("sentence pairs"),
    preset="multi30k",
    names_heading=tr("known"),
    path_hint=tr("the path to a TSV file or a.en,b.de"),
    own_files_hint=tr("pairs.tsv, text.en,text.de or a folder of sentence pairs"),
    path_characters="/\\.,~",
    offline_hint=tr("phrasebook needs no download"),
    accepts_path=accepts_path,
    load_path=load_path,
    named_loaders={
        "phrasebook": load_phrasebook,
        "phrasebook-2": load_phrasebook,
        "headlines": load_headlines,
        "gigaword": load_gigaword,
        "cnn-dailymail": load_cnn_dailymail,
        "multi30k": load_multi30k,
        "tatoeba-en-de": load_tatoeba,
        "iwslt2017-en-de": load_iwslt2017,
        "iwslt2017-en-zh": load_iwslt2017,
        "ted-talks": partial(load_iwslt2017, test="tst2010"),
    },
    split_selector=split_selector,
    make_portable=make_absolute,
)
