"""`data show` of a text: its sizes, the lines a loss should be held against, and how it begins."""

from pathlib import Path

from engine.clean import clean, clean_line
from engine.config.sections import DataConfig
from engine.data.corpora import load_corpus
from engine.data.overlap import text_overlap
from engine.errors import InputError
from tui_transformer.cli.exit_codes import ExitCode
from tui_transformer.cli.output import answer, emit
from tui_transformer.cli.overlap_shown import overlap_facts, overlap_lines

GLIMPSE = 400  # characters


def show_text(name: str, *, as_json: bool, data_dir: Path | None) -> int:
    """Sizes, vocabulary, the lines a loss should be held against, and a glimpse of the text."""
    from engine.data.tokenizers import CharacterTokenizer
    from engine.evaluation.baselines import bigram_loss, unigram_loss

    corpus = load_corpus(DataConfig(corpus=name), data_dir)
    tokenizer = CharacterTokenizer.of(split.text for split in corpus.splits.values())
    train, held_out = (tokenizer.encode(corpus.splits[s].text) for s in ("train", "validation"))
    if len(train) < 2 or len(held_out) < 2:
        raise InputError(f"corpus {corpus.name}: too short to be split into training and validation text")
    floor = corpus.splits["validation"].floor_mean
    overlaps = [
        found
        for split, part in corpus.splits.items()
        if split != "train" and (found := text_overlap([corpus.splits["train"].text], part.text, split)) is not None
    ]
    facts = {
        "name": corpus.name,
        "kind": "text",
        "version": corpus.version,
        "source": corpus.source,
        "characters": {split: len(part.text) for split, part in corpus.splits.items()},
        "vocabulary": tokenizer.vocab_size,
        "unigram": unigram_loss(train, held_out, tokenizer.vocab_size),
        "bigram": bigram_loss(train, held_out, tokenizer.vocab_size),
        "floor": None if floor is None else floor[0],
        "overlap": overlap_facts(overlaps),
        "sha256": corpus.sha256,
    }
    if as_json:
        emit(facts)
        return ExitCode.DONE
    answer(clean_line(f"{corpus.version}, {corpus.source}"))
    sizes = ", ".join(f"{split} {len(part.text):,}" for split, part in corpus.splits.items())
    answer(f"  characters  {sizes}; {tokenizer.vocab_size} different ones")
    named = {"unigram": "unigram", "bigram": "bigram", "floor": "floor given the whole past"}
    lines = [f"{said} {value:.3f}" for key, said in named.items() if isinstance(value := facts[key], float)]
    answer(f"  loss lines  {', '.join(lines)} nats per character on validation")
    for label, line in overlap_lines(overlaps):
        answer(clean_line(f"  {label:<12}{line}"))
    for probe in corpus.splits["validation"].probes:
        answer(f"  probe       {probe.name}: {probe.description} ({probe.at.size:,} places)")
    answer("\n" + clean(corpus.splits["train"].text[:GLIMPSE]))
    return ExitCode.DONE
