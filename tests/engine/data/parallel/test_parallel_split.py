import random

from hypothesis import given
from hypothesis import strategies as st

from engine.base.errors import InputError
from engine.data.framing import fold_case_and_spaces
from engine.data.parallel.pairs import Pairs, grouped_split

WORDS = st.sampled_from(["a", "A", " a", "b", "B  c", "b C", "d", "ẞ", "ss", "e", "f", "g"])


def pairs_of(rows: list[tuple[str, str]]) -> Pairs:
    return Pairs(tuple(a for a, _ in rows), tuple(b for _, b in rows))


def rows_of(pairs: Pairs) -> list[tuple[str, str]]:
    return list(zip(pairs.sources, pairs.targets, strict=True))


@given(st.lists(st.tuples(WORDS, WORDS), min_size=3, max_size=60), st.integers(1, 9), st.integers(0, 9))
def test_no_sentence_is_on_two_sides_of_a_cut(rows: list[tuple[str, str]], validation: int, test: int) -> None:
    try:
        splits = grouped_split(pairs_of(rows), validation, test, "x")
    except InputError:
        return
    assert sorted(row for pairs in splits.values() for row in rows_of(pairs)) == sorted(rows)
    assert len(splits["validation"]) <= validation
    parts = list(splits.values())
    for side in ("sources", "targets"):
        seen = [{fold_case_and_spaces(sentence) for sentence in getattr(part, side)} for part in parts]
        assert sum(map(len, seen)) == len(set().union(*seen))


MANY = [(f"source {i // 2}", f"target {i}") for i in range(2_000)]


def test_the_sizes_are_as_wanted_and_the_files_order_stays() -> None:
    splits = grouped_split(pairs_of(MANY), 100, 50, "x")
    assert {name: len(pairs) for name, pairs in splits.items()} == {"train": 1850, "validation": 100, "test": 50}
    assert [rows_of(pairs) for pairs in splits.values()] == [
        sorted(rows_of(p), key=MANY.index) for p in splits.values()
    ]


def test_the_order_of_the_file_does_not_choose_the_splits() -> None:
    shuffled = random.Random(1).sample(MANY, len(MANY))
    ones, others = (grouped_split(pairs_of(rows), 100, 50, "x") for rows in (MANY, shuffled))
    assert all(set(rows_of(ones[name])) == set(rows_of(others[name])) for name in ones)


def test_a_new_line_moves_next_to_nothing() -> None:
    ones, others = (grouped_split(pairs_of(rows), 100, 50, "x") for rows in (MANY, [*MANY, ("new", "neu")]))
    assert len(set(rows_of(ones["test"])) - set(rows_of(others["test"]))) <= 2


def test_sentences_are_compared_without_case_and_spaces() -> None:
    assert fold_case_and_spaces("  Große\u00a0 STRASSE\t") == fold_case_and_spaces("große straße")


def test_a_long_chain_of_shared_sentences_is_one_group() -> None:
    rows = [(f"s{i // 2}", f"t{(i + 1) // 2}") for i in range(5_000)] + [("x", "y"), ("v", "w")]
    splits = grouped_split(pairs_of(rows), 1, 1, "x")
    assert [len(pairs) for pairs in splits.values()] == [5_000, 1, 1]
