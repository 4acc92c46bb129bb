"""Span corruption: it can be undone, its lengths are those of the assignment and of T5, and no draw sees a token."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.base.errors import InputError
from engine.config.schema import RunConfig
from engine.data.objectives import IGNORED, Batch, make_objective, token_origins
from engine.tasks.spans import (
    DocumentBatches,
    corruption_objective,
    cs224n_spans,
    documents_to_score,
    early_half_length_spans,
    random_prefix_lengths,
    random_segmentation,
    replace_with_sentinels,
)

VOCAB = 50
PAD, MASK = VOCAB, VOCAB + 1
FIRST = VOCAB + 2  # T5's first sentinel: after padding and the start


def config(form: str = "cs224n", context: int = 128, **changes: dict) -> RunConfig:
    architecture = "encoder-decoder" if form == "t5" else "decoder"
    tables = {
        "model": {"context_length": context, "architecture": architecture},
        "objective": {"kind": "span-corruption", "span_form": form},
    }
    for section, values in changes.items():
        tables[section] = tables.get(section, {}) | values
    return RunConfig.model_validate(tables)


def drawn(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some_documents(n: int = 300, seed: int = 0, shortest: int = 4, longest: int = 200) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    return [draw.integers(0, VOCAB, draw.integers(shortest, longest)).astype(np.int64) for _ in range(n)]


def rows_of(batch: Batch) -> list[np.ndarray]:
    """What stands in each row from its first token to its last target."""
    return [
        np.concatenate((tokens[:1], targets[targets != IGNORED]))
        for tokens, targets in zip(batch.tokens.numpy(), batch.targets.numpy(), strict=True)
    ]


def undone(row: np.ndarray) -> np.ndarray:
    """prefix ⁇ suffix ⁇ span ⁇ → the document."""
    first, second, last = np.flatnonzero(row == MASK)
    assert last == len(row) - 1
    return np.concatenate((row[:first], row[second + 1 : last], row[first + 1 : second]))


def joined(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """T5's source and target → the document."""
    spans = {int(part[0]): part[1:] for part in np.split(target, np.flatnonzero(target >= FIRST)) if len(part)}
    parts = [spans[int(token)] if token >= FIRST else np.array([token]) for token in source]
    return np.concatenate(parts)


documents = st.lists(st.integers(0, VOCAB - 1), min_size=4, max_size=150).map(lambda d: np.array(d, dtype=np.int64))
several = st.lists(documents, min_size=1, max_size=5)


@pytest.mark.parametrize("form", ["cs224n", "cs224n-half"])
@settings(deadline=None, max_examples=60)
@given(found=several, seed=st.integers(0, 2**32))
def test_undoing_the_corruption_gives_the_document_back(form: str, found: list[np.ndarray], seed: int) -> None:
    batch = corruption_objective(config(form), VOCAB).corrupt(found, drawn(seed))
    for document, row, tokens in zip(found, rows_of(batch), batch.tokens.numpy(), strict=True):
        assert np.array_equal(undone(row), document)
        assert np.array_equal(tokens[: len(row) - 1], row[:-1]) and (tokens[len(row) - 1 :] == PAD).all()
    assert batch.n_targets == sum(len(document) + 2 for document in found)


@settings(deadline=None, max_examples=60)
@given(found=several, seed=st.integers(0, 2**32), share=st.floats(0.05, 0.9), mean=st.floats(1.0, 6.0))
def test_source_and_target_of_t5_make_the_document(found, seed: int, share: float, mean: float) -> None:
    asked = config("t5", 200, objective={"mask_fraction": share, "span_mean": mean})
    objective = corruption_objective(asked, VOCAB)
    batch = objective.corrupt(found, drawn(seed))
    lengths = objective.side_lengths(np.array([len(document) for document in found]))
    for i, document in enumerate(found):
        source, target = batch.source[i].numpy(), batch.targets[i].numpy()
        source, target = source[batch.source_positions.index[i].numpy() >= 0], target[target != IGNORED]
        assert (len(source), len(target)) == tuple(lengths[i])
        assert np.array_equal(joined(source, target), document)
        sentinels = target[target >= FIRST]
        assert sentinels.tolist() == list(range(FIRST, FIRST + len(sentinels))) and target[-1] == sentinels[-1]
        assert sentinels[-1] < VOCAB + len(asked.special_tokens)
        assert batch.tokens[i, 0] == VOCAB + 1 and (batch.tokens[i, 1 : len(target)].numpy() == target[:-1]).all()


def test_a_document_is_cut_from_its_beginning_to_every_length_the_assignment_allows() -> None:
    lengths = np.array([500] * 60_000 + [7, 4])
    cuts = random_prefix_lengths(lengths, config().window_tokens, drawn())
    assert config().window_tokens == int(128 * 7 / 8) == 112
    assert set(cuts[:-2]) == set(range(4, 113)) and cuts[-1] == 4 and cuts[-2] <= 7
    assert cuts[:-2].mean() == pytest.approx((4 + 112) / 2, abs=0.5)
    found = [np.arange(200) % VOCAB] * 8
    for batch in documents_to_score(found, corruption_objective(config(), VOCAB), drawn(), 8, "cpu"):
        for row in rows_of(batch):
            whole = undone(row)
            assert 4 <= len(whole) <= 112 and np.array_equal(whole, found[0][: len(whole)])


@pytest.mark.parametrize("length", [4, 5, 6, 7, 30, 57, 112])
def test_the_masked_span_is_a_quarter_on_average_at_any_place(length: int) -> None:
    starts, sizes = cs224n_spans(np.full(100_000, length), 0.25, drawn())
    assert sizes.mean() == pytest.approx(length / 4, rel=0.01)
    assert sizes.min() == 1 and (starts >= 0).all() and (starts + sizes <= length).all()
    assert starts.min() == 0 and (starts + sizes).max() == length  # it may stand at either end
    middles = (starts + (sizes - 1) / 2) / (length - 1)
    assert middles.mean() == pytest.approx(0.5, abs=0.01)
    if length >= 30:
        assert len(set(sizes)) >= length // 2 - 1


def test_half_of_the_share_is_what_the_founding_report_masked() -> None:
    """Its documents were cut to 4 to 112 characters: 13.7 % of the text, and 26.5 % after its correction."""
    cuts = np.random.default_rng(0).integers(4, 113, 200_000)
    for fraction, share in ((0.25, 0.137), (0.5, 0.265)):
        starts, sizes = early_half_length_spans(cuts, fraction, drawn())
        assert (sizes / cuts).mean() == pytest.approx(share, abs=0.005)
        assert (starts >= 1).all() and (starts + sizes <= cuts).all()
        assert (starts <= np.maximum(1, (fraction * cuts).astype(int))).all()


@pytest.mark.parametrize(("share", "mean"), [(0.15, 3.0), (0.5, 3.0), (0.15, 10.0)])
def test_t5_takes_out_its_share_in_spans_of_its_mean(share: float, mean: float) -> None:
    document, taken, spans = np.arange(400), 0, 0
    for seed in range(50):
        source, target = replace_with_sentinels(document, share, mean, 1000, drawn(seed))
        taken += (target < 1000).sum()
        spans += (source >= 1000).sum()
    assert taken / (50 * 400) == pytest.approx(share, abs=1e-9)
    assert taken / spans == pytest.approx(mean, rel=0.02)


def test_a_span_of_t5_may_stand_anywhere_in_a_short_document() -> None:
    document = np.arange(12)
    spans = [
        target[1:-1].tolist()
        for _, target in (replace_with_sentinels(document, 0.15, 3.0, 99, drawn(s)) for s in range(300))
    ]
    assert {tuple(span) for span in spans} == {(i, i + 1) for i in range(11)}


def test_every_way_to_cut_into_segments_is_as_likely() -> None:
    generator = drawn()
    found = [tuple(random_segmentation(5, 3, generator)) for _ in range(6_000)]
    counts = {one: found.count(one) for one in set(found)}
    assert set(counts) == {(a, b, 5 - a - b) for a in range(1, 4) for b in range(1, 5 - a)}
    assert max(counts.values()) < 1.2 * min(counts.values())


@pytest.mark.parametrize("form", ["cs224n", "cs224n-half", "t5"])
def test_what_is_drawn_does_not_depend_on_what_the_tokens_are(form: str) -> None:
    """So numbered places are arranged as the text is, which the leak probe rests on."""
    objective = make_objective(config(form, 20), VOCAB)
    window = torch.arange(objective.window)[None]
    for seed in range(5):
        where, batch = token_origins(objective, drawn(seed)), objective.batch(window, drawn(seed))
        for t, token in enumerate(batch.targets[0].tolist()):
            seen = [j for j, text in enumerate(batch.tokens[0].tolist()) if text == token < VOCAB]
            assert all(where.tokens[j] == t for j in seen)
            if batch.source is not None and token < VOCAB:
                assert token not in batch.source[0]
        assert where.source is None or (where.source == -1).all()


def batches(found: list[np.ndarray], form: str = "cs224n", **train: object) -> DocumentBatches:
    wanted = config(form, train=train)
    return DocumentBatches(found, wanted, corruption_objective(wanted, VOCAB))


@pytest.mark.parametrize("form", ["cs224n", "t5"])
def test_every_document_comes_once_an_epoch_and_is_corrupted_anew_each_time(form: str) -> None:
    found = [np.full(30, i % VOCAB) for i in range(40)]
    stream = batches(found, form, batch_size=7)
    assert stream.steps_per_epoch == 6
    epochs = []
    for epoch in range(3):
        made = [stream.batch(1 + 6 * epoch + step, 0) for step in range(6)]
        rows = [row for batch in made for row in (batch.targets if form == "t5" else batch.tokens).numpy()]
        first = sorted(int(row[(row >= 0) & (row < VOCAB)][0]) for row in rows)
        assert first == sorted(int(document[0]) for document in found)
        epochs.append([batch.targets.tolist() for batch in made])
    assert epochs[0] != epochs[1] != epochs[2]


@pytest.mark.parametrize("form", ["cs224n", "t5"])
def test_a_batch_depends_on_seed_step_and_micro_batch_only(form: str) -> None:
    found = some_documents()
    stream = batches(found, form, batch_size=16, accumulation=2)
    late = stream.batch(40, 1)
    for step in (1, 7, 39, 80):
        stream.batch(step, 0)
    for again in (stream.batch(40, 1), batches(found, form, batch_size=16, accumulation=2).batch(40, 1)):
        assert torch.equal(late.tokens, again.tokens) and torch.equal(late.targets, again.targets)


def test_documents_of_like_length_after_the_cut_stand_side_by_side() -> None:
    found = some_documents(2_000)
    assert batches(found, batch_size=32).padding_share < 0.05
    assert batches(found[:32], batch_size=32).padding_share > 0.3  # what a batch of any documents would waste


def test_no_batch_of_documents_is_larger_than_its_budget() -> None:
    stream = batches(some_documents(1_000), batch_tokens=600)
    for step in range(1, stream.steps_per_epoch + 1):
        assert stream.batch(step, 0).tokens.numel() <= 600
    with pytest.raises(InputError, match="the longest document has"):
        batches(some_documents(1_000), batch_tokens=50)


@pytest.mark.parametrize("form", ["cs224n", "cs224n-half", "t5"])
def test_what_is_scored_is_the_same_each_time_and_in_batches_of_any_size(form: str) -> None:
    found, objective = some_documents(50), corruption_objective(config(form), VOCAB)
    alone, together = (
        [
            row.tolist()
            for batch in documents_to_score(found, objective, drawn(3), size, "cpu")
            for row in rows_of(batch)
        ]
        for size in (1, 17)
    )
    assert alone == together


def test_a_small_context_still_has_room_for_the_marks() -> None:
    for context in range(6, 40):
        wanted = config(context=context)
        assert wanted.window_targets <= context
        if context >= 9:
            assert wanted.window_tokens == int(context * 7 / 8)
