"""Your own translations, by path: one table, two aligned files, or a folder with a file for each split and language.

    pairs.tsv                  the first two columns; `pairs.tsv#english,german` or `pairs.tsv#3,1` for others
    text.en,text.de            two aligned files, perhaps .gz
    folder                     train.en and train.de, val.* (or valid, validation, dev), test.*;
                               `folder#de,en` for the direction, or where there are more than two languages

What has no files for validation or test gets them from its training pairs, by `data.validation_fraction` and
`data.test_fraction`, so that no sentence is on both sides (`split.py`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.config.sections import DataConfig
from engine.data.corpora import is_there
from engine.data.parallel.aligned import read_aligned
from engine.data.parallel.languages import LANGUAGES
from engine.data.parallel.pairs import Pairs, ParallelCorpus
from engine.data.parallel.split import grouped_split
from engine.data.parallel.table import SIDES, read_table
from engine.errors import InputError, not_a_path, one_of

STEMS: dict[str, tuple[str, ...]] = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "tst"),
}
NAMED = re.compile(r"(?P<stem>[a-z]+)\.(?P<language>[A-Za-z][A-Za-z_-]{1,19})(\.gz)?")
NO_LANGUAGES = frozenset({"gz", "tsv", "csv", "txt", "json", "md", "zip", "xml"})


@dataclass(frozen=True)
class _Found:
    """What a path holds, before anything is cut."""

    languages: tuple[str, str]
    splits: Mapping[str, Pairs]


def split_selector(corpus: str) -> tuple[str, tuple[str, str] | None]:
    """`"pairs.tsv#en,de"` → `("pairs.tsv", ("en", "de"))`; a path that exists with its # is taken as it is.

    Raises:
        InputError: something else than two names behind the #.
    """
    base, mark, behind = corpus.rpartition("#")
    if not mark or is_there(corpus):
        return corpus, None
    names = [name.strip() for name in behind.split(",")]
    if len(names) != 2 or not all(names):
        raise InputError(f"corpus '{corpus[:200]}': behind # stand two columns or languages, as in {base[:80]}#en,de")
    return base, (names[0], names[1])


def absolute(corpus: str) -> str:
    """The path of pairs as it is understood wherever one stands, with its columns or languages.

    Raises:
        InputError: something else than two names behind a #, or no path.
    """
    base, chosen = split_selector(corpus)
    try:
        paths = [str(Path(file.strip()).expanduser().absolute()) for file in files_of(base)]
    except (OSError, ValueError, RuntimeError) as error:  # ~nobody
        raise not_a_path(corpus, error) from None
    return ",".join(paths) + (f"#{','.join(chosen)}" if chosen else "")


def files_of(base: str) -> list[str]:
    """The one path, or the two with a comma between them."""
    return [base] if is_there(base) else base.split(",")


def load_path(data: DataConfig) -> ParallelCorpus:
    """The corpus at the path that a config names.

    Raises:
        InputError: nothing there, or something wrong with it; names the file and the line.
    """
    base, chosen = split_selector(data.corpus)
    try:
        found, source = _read(base, chosen)
    except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, ~nobody
        raise not_a_path(data.corpus, error) from None
    splits = _filled(found.splits, data, base[:200])
    return ParallelCorpus(source, source, base, found.languages, splits)


def _read(base: str, chosen: tuple[str, str] | None) -> tuple[_Found, str]:
    path = Path(base).expanduser()
    if is_there(base):
        return (_folder(path, chosen) if path.is_dir() else _table(path, chosen)), path.resolve().name
    if "," not in base:
        return _table(path, chosen), path.name  # says what is wrong with the path
    files = [Path(part.strip()).expanduser() for part in base.split(",")]
    if len(files) != 2 or not all(part.strip() for part in base.split(",")):
        raise InputError(f"corpus '{base[:200]}': name two files with one comma between them, as in text.en,text.de")
    if chosen is not None:
        raise InputError(f"corpus '{base[:200]}': # chooses columns of a table; these two files have no columns")
    languages = (_language(files[0], 0), _language(files[1], 1))
    return _Found(languages, {"train": read_aligned(*files)}), f"{files[0].name},{files[1].name}"


def _table(path: Path, chosen: tuple[str, str] | None) -> _Found:
    columns: Sequence[str | int] = (1, 2)
    if chosen is not None:
        columns = [int(name) if name.isascii() and name.isdigit() else name for name in chosen]
    table = read_table(path, columns)
    return _Found(table.languages, {"train": table.pairs})


def _folder(folder: Path, chosen: tuple[str, str] | None) -> _Found:
    files = _files(folder)
    languages = chosen or _languages(folder, files)
    splits = {}
    for split, stems in STEMS.items():
        stem = next((stem for stem in stems if any((stem, one) in files for one in languages)), None)
        if stem is None:
            continue
        missing = [one for one in languages if (stem, one) not in files]
        if missing:
            raise InputError(f"{folder}: has no {stem}.{missing[0]} to go with its {stem}.*; both languages are needed")
        splits[split] = read_aligned(*(files[stem, one] for one in languages))
    if "train" not in splits:
        raise InputError(f"{folder}: has no train.{languages[0]} and train.{languages[1]}; it has {_shown(files)}")
    return _Found(languages, splits)


def _files(folder: Path) -> dict[tuple[str, str], Path]:
    """The folder's files by stem and language; an unpacked one comes before its .gz."""
    known = {stem for stems in STEMS.values() for stem in stems}
    files: dict[tuple[str, str], Path] = {}
    for path in sorted(folder.iterdir()):
        match = NAMED.fullmatch(path.name)
        if match and match["stem"] in known and match["language"].lower() not in NO_LANGUAGES:
            files.setdefault((match["stem"], match["language"]), path)
    return files


def _languages(folder: Path, files: Mapping[tuple[str, str], Path]) -> tuple[str, str]:
    """The two languages of the training files: English first, else in alphabetical order."""
    names = sorted({language for stem, language in files if stem in STEMS["train"]}, key=lambda one: (one != "en", one))
    if not names:
        raise InputError(f"{folder}: has no train.XX and train.YY, XX and YY being its languages; {_shown(files)}")
    if len(names) == 1:
        raise InputError(f"{folder}: has train.{names[0]} and no translation of it, such as train.de")
    if len(names) > 2:
        raise InputError(f"{folder}: has {one_of(names).replace(' or ', ' and ')}; choose two: --corpus {folder}#en,de")
    return names[0], names[1]


def _shown(files: Mapping[tuple[str, str], Path]) -> str:
    names = [path.name for path in files.values()]
    return f"it has {', '.join(names[:6])}" if names else "nothing in it has such a name"


def _filled(splits: Mapping[str, Pairs], data: DataConfig, where: str) -> dict[str, Pairs]:
    """The splits, with validation and test cut from training where they have no files of their own."""
    total = len(splits["train"])
    wanted = {
        "validation": max(1, round(total * data.validation_fraction)),
        "test": max(1, round(total * data.test_fraction)) if data.test_fraction else 0,
    }
    sizes = {name: 0 if name in splits else size for name, size in wanted.items()}
    cut = grouped_split(splits["train"], sizes["validation"], sizes["test"], where)
    together = {**splits, **cut}
    return {name: together[name] for name in STEMS if name in together}


def _language(path: Path, side: int) -> str:
    name = path.name.removesuffix(".gz").rpartition(".")[2]
    return name if name.lower() in LANGUAGES else SIDES[side]
