"""Your own translations, by path: one table, two aligned files, or a folder with a file for each split and language.

    pairs.tsv                  the first two columns; `pairs.tsv#english,german` or `pairs.tsv#3,1` for others
    news.jsonl#article,summary two fields of its rows; also of .csv, .parquet and a folder of these (`fields.py`)
    text.en,text.de            two aligned files, perhaps .gz
    folder                     train.en and train.de, val.* (or valid, validation, dev), test.*;
                               `folder#de,en` for the direction, or where there are more than two languages

With more than two names after the #, as in `pairs.tsv#en,de,fr`, all but the first are target languages: each sentence
is a source once for each of its translations, and starts with a tag that says which. An empty cell or line means that
the sentence has no such translation.

Without files for validation or test, `data.validation_fraction` and `data.test_fraction` of the training pairs are
split off, so that no sentence is on both sides (`pairs.py`).
"""

import re
from dataclasses import replace
from pathlib import Path

from engine.base.errors import InputError, invalid_path_error, join_and
from engine.base.language import Message, tr
from engine.config.sections import DataConfig
from engine.data import sources
from engine.data.corpus import SPLIT_ALIASES, path_exists
from engine.data.parallel.fields import has_fields, read_fields
from engine.data.parallel.lines import NumberedLines, read_lines, trim_both, uneven_error
from engine.data.parallel.pairs import Pairs, ParallelCorpus, complete_pairs, grouped_split, interleave_targets
from engine.data.parallel.table import LANGUAGES, SIDES, parse_pairs_and_languages
from engine.data.tables import read_delimited
from engine.data.text_files import LATEST, Reading

TABLES = (".tsv", ".tsv.gz")  # suffixes of files that are pairs even without named columns
FILE_PATTERN = re.compile(r"(?P<stem>[a-z]+)\.(?P<language>[A-Za-z][A-Za-z_-]{1,19})(\.gz)?")
NO_LANGUAGES = frozenset({"gz", "tsv", "csv", "txt", "json", "md", "zip", "xml", "jsonl", "parquet"})


def read_aligned(source: Path, target: Path, reading: Reading | None = None) -> Pairs:
    """Return the pairs of two aligned files; `InputError` for an empty line in either."""
    if source == target or (source.exists() and target.exists() and source.samefile(target)):
        raise InputError(
            Message("{source}: given for both sides; one side must be the file of translations", source=source)
        )
    ones, others = (read_lines(file, reading) for file in (source, target))
    rows = align_lines(ones, others)
    for number, (one, other) in enumerate(rows, start=1):
        if not (one.strip() or other.strip()):
            problem = tr(
                "this line is empty, and so is the same line of {where}; remove it from both files", where=others.where
            )
            raise ones.error_at(number, problem)
        if not (one.strip() and other.strip()):
            side, against = (others, ones) if one.strip() else (ones, others)
            problem = tr(
                "this line is empty, but {where} has a sentence there; remove the line from both files",
                where=against.where,
            )
            raise side.error_at(number, problem)
    return complete_pairs(rows)[0]


def align_lines(source: NumberedLines, target: NumberedLines) -> list[tuple[str, str]]:
    """Return the lines of two files side by side, empty ones too."""
    sources, targets = trim_both(source, target)
    if len(sources) != len(targets):
        raise uneven_error(source, target, len(sources), len(targets))
    if sources == targets:
        problem = Message(
            "{where} and {where2} contain the same text; one should be the translation",
            where=source.where,
            where2=target.where,
        )
        raise InputError(problem)
    return list(zip(sources, targets, strict=True))


def split_selector(corpus: str) -> tuple[str, tuple[str, ...] | None]:
    """`"pairs.tsv#en,de"` → `("pairs.tsv", ("en", "de"))`; an existing path with a # is taken as it is."""
    base, mark, behind = corpus.rpartition("#")
    if not mark or path_exists(corpus):
        return corpus, None
    names = [name.strip() for name in behind.split(",")]
    if len(names) < 2 or not all(names):
        problem = Message(
            "corpus '{corpus}': # must be followed by two or more columns or languages, as in {base}#en,de",
            corpus=corpus[:200],
            base=base[:80],
        )
        raise InputError(problem)
    again = next((name for name in names if names.count(name) > 1), None)
    if again is not None and len(names) > 2:
        raise InputError(Message("corpus '{corpus}': '{name}' is chosen twice", corpus=corpus[:200], name=again[:40]))
    return base, tuple(names)


def accepts_path(corpus: str) -> bool:
    """Return whether a path names sentence pairs: a table, a folder, two files, or anything with columns. A folder of
    texts (`sources.py`) is not one, unless it has pairs too.
    """
    base, columns = split_selector(corpus)
    there = Path(base).expanduser()
    if columns is None and there.is_dir():
        return bool(_pair_files(there)) or not sources.is_text_folder(base)
    return columns is not None or base.lower().endswith(TABLES) or ("," in base and not there.exists())


def make_absolute(corpus: str) -> str:
    """Return a path of pairs made absolute, with its columns or languages."""
    base, chosen = split_selector(corpus)
    try:
        paths = [str(Path(file.strip()).expanduser().absolute()) for file in split_comma_joined_paths(base)]
    except (OSError, ValueError, RuntimeError) as error:  # ~nobody
        raise invalid_path_error(corpus, error) from None
    return ",".join(paths) + (f"#{','.join(chosen)}" if chosen else "")


def split_comma_joined_paths(base: str) -> list[str]:
    """Return the one path, or the two joined by a comma."""
    return [base] if path_exists(base) else base.split(",")


def load_path(data: DataConfig, version: int = LATEST) -> ParallelCorpus:
    base, chosen = split_selector(data.corpus)
    reading = Reading.of(data, version)
    try:
        corpus = _read_corpus(base, chosen, reading)
    except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, ~nobody
        raise invalid_path_error(data.corpus, error) from None
    # Validation and test without files of their own are split off from training.
    splits = dict(corpus.splits)
    total = len(splits["train"])
    validation = 0 if "validation" in splits else max(1, round(total * data.validation_fraction))
    test = 0 if "test" in splits or not data.test_fraction else max(1, round(total * data.test_fraction))
    splits |= grouped_split(splits["train"], validation, test, base[:200])
    in_order = {name: splits[name] for name in SPLIT_ALIASES if name in splits}
    return replace(corpus, splits=in_order, reading=reading)


def _read_corpus(base: str, chosen: tuple[str, ...] | None, reading: Reading) -> ParallelCorpus:
    """Return what there is in files, of which the names of fields are languages too."""
    path = Path(base).expanduser()
    notes: tuple[str, ...] = ()
    folder = path_exists(base) and path.is_dir()
    if chosen is not None and ((folder and not _pair_files(path) and sources.is_text_folder(base)) or has_fields(path)):
        files = {split or "train": found for split, found in sources.find_source(base, reading).files.items()}
        languages, (splits, notes) = chosen, read_fields(files, chosen, reading=reading)
    elif folder:
        languages, splits = _read_folder(path, chosen, reading)
    elif path_exists(base) or "," not in base:  # if missing, the table's error says what is wrong with the path
        columns = [int(name) if name.isascii() and name.isdigit() else name for name in chosen or ("1", "2")]
        rows = read_delimited(path, reading, "\t")
        pairs, languages = parse_pairs_and_languages(rows, str(path)[:200], columns)
        splits = {"train": pairs}
    else:
        return _read_two_files(base, chosen, reading)
    name = path.resolve().name
    return ParallelCorpus(name, name, base, languages, splits, notes)


def _read_two_files(base: str, chosen: tuple[str, ...] | None, reading: Reading) -> ParallelCorpus:
    files = [Path(part.strip()).expanduser() for part in base.split(",")]
    if len(files) != 2 or not all(part.strip() for part in base.split(",")):
        problem = Message(
            "corpus '{base}': name two files separated by one comma, as in text.en,text.de", base=base[:200]
        )
        raise InputError(problem)
    if chosen is not None:
        raise InputError(
            Message(
                "corpus '{base}': # selects columns of a table, but these two files have no columns", base=base[:200]
            )
        )
    named = [file.name.removesuffix(".gz").rpartition(".")[2] for file in files]
    languages = tuple(name if name.lower() in LANGUAGES else side for name, side in zip(named, SIDES, strict=True))
    name = ",".join(file.name for file in files)
    return ParallelCorpus(name, name, base, languages, {"train": read_aligned(files[0], files[1], reading)})


def _read_folder(
    folder: Path, chosen: tuple[str, ...] | None, reading: Reading
) -> tuple[tuple[str, ...], dict[str, Pairs]]:
    files = _pair_files(folder)
    names = ", ".join([path.name for path in files.values()][:6])
    has = tr("it has {names}", names=names) if names else tr("it has no files with such names")
    if chosen is None:  # English first, else alphabetically
        languages = {one for stem, one in files if stem in SPLIT_ALIASES["train"]}
        found = sorted(languages, key=lambda one: (one != "en", one))
        if not found:
            problem = Message(
                "{folder}: train.XX and train.YY are needed, where XX and YY are the languages; {has}",
                folder=folder,
                has=has,
            )
            raise InputError(problem)
        if len(found) == 1:
            problem = Message(
                "{folder}: found train.{found} but no translation of it, such as train.{other}",
                folder=folder,
                found=found[0],
                other="en" if found[0] == "de" else "de",
            )
            raise InputError(problem)
        if len(found) > 2:
            problem = Message(
                "{folder}: found the languages {several}; choose two: --corpus {folder}#{source},{target}, "
                "or a source and several targets",
                folder=folder,
                several=join_and(found),
                source=found[0],
                target=found[1],
            )
            raise InputError(problem)
        chosen = found[0], found[1]
    splits = {}
    for split, stems in SPLIT_ALIASES.items():
        stem = next((stem for stem in stems if any((stem, one) in files for one in chosen)), None)
        if stem is None:
            continue
        missing = [one for one in chosen if (stem, one) not in files]
        if missing:
            problem = Message(
                "{folder}: no {stem}.{missing} to go with {stem}.*; both languages are needed",
                folder=folder,
                stem=stem,
                missing=missing[0],
            )
            raise InputError(problem)
        first, *others = (files[stem, one] for one in chosen)
        if len(others) == 1:
            splits[split] = read_aligned(first, others[0], reading)
        else:
            source, *targets = (read_lines(file, reading) for file in (first, *others))
            pairs = (complete_pairs(align_lines(source, target))[0] for target in targets)
            splits[split] = interleave_targets(dict(zip(chosen[1:], pairs, strict=True)))
    if "train" not in splits:
        problem = Message(
            "{folder}: no train.{chosen} and train.{chosen2} found; {has}",
            folder=folder,
            chosen=chosen[0],
            chosen2=chosen[1],
            has=has,
        )
        raise InputError(problem)
    return chosen, splits


def _pair_files(folder: Path) -> dict[tuple[str, str], Path]:
    """Return a folder's files of pairs by stem and language; an unpacked file wins over its .gz."""
    known = {stem for stems in SPLIT_ALIASES.values() for stem in stems}
    files: dict[tuple[str, str], Path] = {}
    for path in sorted(folder.iterdir()):
        match = FILE_PATTERN.fullmatch(path.name)
        if match and match["stem"] in known and match["language"].lower() not in NO_LANGUAGES:
            files.setdefault((match["stem"], match["language"]), path)
    return files
