import pytest

from engine.data.parallel.pairs import Pairs, ParallelCorpus, pair_statistics, pair_warnings

PAIRS = Pairs(
    ("One two three.", "one  TWO three.", "Same", "Hello there my old friend", *(f"Word {i}" for i in range(96))),
    ("Eins zwei drei.", "eins zwei drei.", "same", "x " * 200, *(f"Wort {i}" for i in range(96))),
)


def test_shares_are_of_all_pairs() -> None:
    numbers = pair_statistics(PAIRS)
    assert (numbers.pairs, numbers.duplicates, numbers.copies) == (100, pytest.approx(0.01), 0.01)
    assert (numbers.longer, numbers.outliers, numbers.target_longest) == (0.01, 0.01, 200)
    assert numbers.source_mean == pytest.approx((3 + 3 + 1 + 5 + 2 * 96) / 100)


def test_a_split_with_few_pairs_gets_a_warning() -> None:
    few = Pairs(("one", "two"), ("a", "b"))
    corpus = ParallelCorpus("x", "x", "x", ("en", "de"), {"train": PAIRS, "validation": few})
    lines = pair_warnings("validation", pair_statistics(corpus.splits["validation"]))
    assert lines == ["validation: only 2 pairs; a score on so few means little"]


def test_a_misaligned_file_is_warned_of() -> None:
    sentences = [f"{'word ' * (1 + i * 7 % 40)}{i}" for i in range(400)]
    aligned = Pairs(tuple(sentences), tuple(s.replace("word", "wort") for s in sentences))
    moved = Pairs(aligned.sources, (*aligned.targets[1:], aligned.targets[0]))
    assert pair_warnings("train", pair_statistics(aligned)) == []
    assert [line for line in pair_warnings("train", pair_statistics(moved)) if "are the files aligned?" in line]


def test_short_sentences_are_no_outliers() -> None:
    short = Pairs(("Hi.", "Go.", *(f"A word {i}." for i in range(9))), ("Guten Tag!", "Geh!", *(["Ein Wort."] * 9)))
    assert pair_statistics(short).outliers == 0.0


def test_no_pairs_have_numbers_too() -> None:
    assert pair_statistics(Pairs((), ())).pairs == 0


def test_the_real_corpora_raise_no_false_alarm(real_data) -> None:
    from engine.config.sections import DataConfig
    from engine.data.catalogue import load_corpus

    for name in ("multi30k", "tatoeba-en-de"):
        splits = load_corpus(ParallelCorpus, DataConfig(corpus=name), real_data).splits
        assert [line for split, pairs in splits.items() for line in pair_warnings(split, pair_statistics(pairs))] == []
