"""The registry of parallel corpora, and the one door to all of them: a name, or a path (`by_path.py`).

A corpus is added by a row: a loader that gives splits, and the files that `data fetch` puts in place; one that is
generated has none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.command_line import command_line
from engine.config.sections import DataConfig
from engine.data.corpora import data_folders, is_there
from engine.data.download import Remote
from engine.data.parallel.by_path import load_path, split_selector
from engine.data.parallel.named import (
    IWSLT_FILES,
    TATOEBA_FILES,
    Loaded,
    load_iwslt2017,
    load_multi30k,
    load_tatoeba,
)
from engine.data.parallel.pairs import Pairs, ParallelCorpus
from engine.data.synthetic import phrasebook
from engine.errors import InputError, nearest


@dataclass(frozen=True)
class ParallelEntry:
    """A parallel corpus that has a name.

    Args:
        languages: of sources and targets; `NAME#de,en` asks for the other direction.
        load: gives a config's corpus; looks into the data folders if it has files.
        remotes: its files, and where they belong under a data folder; none for generated ones.
        licence: under which it may be used, where that is known.
        instead: names of other files in the same folder that do as well.
    """

    name: str
    description: str
    languages: tuple[str, str]
    load: Callable[["ParallelEntry", DataConfig, Sequence[Path]], ParallelCorpus]
    remotes: tuple[Remote, ...] = ()
    licence: str = ""
    instead: tuple[tuple[str, ...], ...] = ()


def _from_files(
    load: Callable[[Sequence[Path]], Loaded | None],
) -> Callable[[ParallelEntry, DataConfig, Sequence[Path]], ParallelCorpus]:
    def loaded(entry: ParallelEntry, data: DataConfig, folders: Sequence[Path]) -> ParallelCorpus:
        found = load(folders)
        if found is None:
            raise _not_here(entry, folders)
        splits, place, notes = found
        return ParallelCorpus(entry.name, entry.name, str(place.resolve()), entry.languages, splits, notes)

    return loaded


def _multi30k(stem: str, language: str, sha256: str) -> Remote:
    name = f"{stem}.{language}.gz"
    base = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
    return Remote(base + name, f"multi30k/{name}", sha256, 2_000_000)


def _load_phrasebook(entry: ParallelEntry, data: DataConfig, folders: Sequence[Path]) -> ParallelCorpus:
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
    return ParallelCorpus(entry.name, made.version, "generated", entry.languages, splits, (note,), phrases)


PARALLEL: dict[str, ParallelEntry] = {
    entry.name: entry
    for entry in (
        ParallelEntry(
            "phrasebook",
            "generated English sentences with their German: gender, case, word order, separable verbs, negation",
            ("en", "de"),
            _load_phrasebook,
        ),
        ParallelEntry(
            "multi30k",
            "29,000 English image captions with German translations (Elliott et al. 2016), test 2016 flickr",
            ("en", "de"),
            _from_files(load_multi30k),
            (
                _multi30k("train", "en", "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"),
                _multi30k("train", "de", "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"),
                _multi30k("val", "en", "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"),
                _multi30k("val", "de", "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"),
                _multi30k("test_2016_flickr", "en", "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"),
                _multi30k("test_2016_flickr", "de", "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"),
            ),
        ),
        ParallelEntry(
            "tatoeba-en-de",
            "short everyday sentences from English to German, 1,000 each for validation and test",
            ("en", "de"),
            _from_files(load_tatoeba),
            # A new edition appears every few weeks: what is fetched is trusted on first use.
            (Remote("https://www.manythings.org/anki/deu-eng.zip", "tatoeba-en-de/deu-eng.zip", None, 100_000_000),),
            "CC BY 2.0 FR",
            TATOEBA_FILES,
        ),
        ParallelEntry(
            "iwslt2017-en-de",
            "206,112 sentences of TED talks (Cettolo et al. 2017), validation dev2010, test tst2013",
            ("en", "de"),
            _from_files(load_iwslt2017),
            (
                Remote(
                    "https://huggingface.co/datasets/IWSLT/iwslt2017/resolve/main/"
                    "data/2017-01-trnted/texts/en/de/en-de.zip",
                    "iwslt2017-en-de/en-de.zip",
                    None,
                    200_000_000,
                ),
            ),
            "CC BY-NC-ND",
            (IWSLT_FILES,),
        ),
    )
}


def load_parallel(data: DataConfig, data_dir: Path | None = None) -> ParallelCorpus:
    """The parallel corpus a config names: a registered name, or the path of a table, two files or a folder.

    Args:
        data: `corpus` is what is asked for; `validation_fraction` and `test_fraction` cut files of your own.
        data_dir: where named corpora are looked for first.

    Raises:
        InputError: no such corpus or file, or something wrong with it; names the file and the line.
    """
    name, chosen = split_selector(data.corpus)
    entry = PARALLEL.get(name)
    if entry is not None:
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


def _not_here(entry: ParallelEntry, folders: Sequence[Path]) -> InputError:
    looked = ", ".join(str(folder)[:120] for folder in folders)
    files = ", ".join(remote.url.rpartition("/")[2] for remote in entry.remotes)
    place = (folders[-1] / entry.remotes[0].file).parent
    built_in = next((f"; --corpus {one.name} works now" for one in PARALLEL.values() if not one.remotes), "")
    return InputError(
        f"corpus '{entry.name}' is not on this machine: `{command_line('data', 'fetch', entry.name)}` gets it, or put "
        f"{files} from {entry.remotes[0].url.rpartition('/')[0]} into {place} (looked in {looked}){built_in}"
    )
