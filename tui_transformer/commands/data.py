"""`data list | show | fetch`: which corpora there are, what is in one, and how to get it."""

import sys
from pathlib import Path

from engine.data.corpora import REGISTRY, CorpusEntry, data_folders, find_file, load_corpus
from engine.errors import InputError, nearest
from tui_transformer.clean import clean, clean_line
from tui_transformer.columns import print_columns
from tui_transformer.exit_codes import ExitCode
from tui_transformer.output import emit, is_terminal, say, stderr

GLIMPSE = 400  # characters


def _where(entry: CorpusEntry, data_dir: Path | None) -> str:
    if entry.remote is None:
        return "built in"
    found = find_file(entry.remote, data_folders(data_dir))
    return str(found) if found is not None else "not here"


def list_command(*, as_json: bool, data_dir: Path | None) -> int:
    """A line a corpus: its name, where it is, what it is."""
    rows = [(entry.name, _where(entry, data_dir), entry.description) for entry in REGISTRY.values()]
    if as_json:
        for name, where, description in rows:
            emit({"name": name, "where": where, "description": description})
        return ExitCode.DONE
    print_columns([("CORPUS", "WHERE", "WHAT IT IS"), *rows])
    print("\nand any UTF-8 text file: --corpus PATH")
    return ExitCode.DONE


def show_command(name: str, *, as_json: bool, data_dir: Path | None) -> int:
    """Sizes, vocabulary, the lines a loss should be held against, and a glimpse of the text."""
    from engine.config.schema import DataConfig
    from engine.data.tokenizers import CharacterTokenizer
    from engine.evaluation.baselines import bigram_loss, unigram_loss

    corpus = load_corpus(DataConfig(corpus=name), data_dir)
    tokenizer = CharacterTokenizer.of(split.text for split in corpus.splits.values())
    train, held_out = (tokenizer.encode(corpus.splits[s].text) for s in ("train", "validation"))
    if len(train) < 2 or len(held_out) < 2:
        raise InputError(f"corpus {corpus.name}: too short to be split into training and validation text")
    floor = corpus.splits["validation"].floor_mean
    facts = {
        "name": corpus.name,
        "version": corpus.version,
        "source": corpus.source,
        "characters": {split: len(part.text) for split, part in corpus.splits.items()},
        "vocabulary": tokenizer.vocab_size,
        "unigram": unigram_loss(train, held_out, tokenizer.vocab_size),
        "bigram": bigram_loss(train, held_out, tokenizer.vocab_size),
        "floor": None if floor is None else floor[0],
        "sha256": corpus.sha256,
    }
    if as_json:
        emit(facts)
        return ExitCode.DONE
    print(clean_line(f"{corpus.version}, {corpus.source}"))
    sizes = ", ".join(f"{split} {len(part.text):,}" for split, part in corpus.splits.items())
    print(f"  characters  {sizes}; {tokenizer.vocab_size} different ones")
    lines = [f"{key} {value:.3f}" for key in ("unigram", "bigram", "floor") if isinstance(value := facts[key], float)]
    print(f"  loss lines  {', '.join(lines)} nats per character on validation")
    for probe in corpus.splits["validation"].probes:
        print(f"  probe       {probe.name}: {probe.description} ({probe.at.size:,} places)")
    print("\n" + clean(corpus.splits["train"].text[:GLIMPSE]))
    return ExitCode.DONE


def fetch_command(name: str, *, as_json: bool, data_dir: Path | None) -> int:
    """Download a corpus into the data folder and check it."""
    from engine.data.download import fetch

    entry = REGISTRY.get(name)
    if entry is None:
        raise InputError(f"no corpus is called '{name[:80]}'{nearest(name, REGISTRY) or '; `data list` shows them'}")
    if entry.remote is None:
        say(f"{name} is built in: it is generated when it is needed")
        return ExitCode.DONE
    folder = data_folders(data_dir)[0] if data_dir is not None else data_folders(None)[-1]
    if is_terminal(sys.stderr):
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

        columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=stderr()) as bar:
            task = bar.add_task(name, total=None)
            path = fetch(entry.remote, folder, progress=lambda done, _: bar.update(task, completed=done))
    else:
        path = fetch(entry.remote, folder)
    if as_json:
        emit({"name": name, "path": str(path), "sha256": entry.remote.sha256})
    else:
        print(clean_line(f"{name} is at {path}, SHA-256 as it should be"))
    return ExitCode.DONE
