"""What each objective makes of a window, and that its places are found out and not declared."""

import pytest
import torch

from engine.config.schema import RunConfig
from engine.data.objectives import IGNORED, Batch, make_objective, token_origins

VOCAB = 50


def config(kind: str, context: int = 8, **model) -> RunConfig:
    return RunConfig.model_validate({"model": {"context_length": context, **model}, "objective": {"kind": kind}})


def batch(kind: str, windows: torch.Tensor, seed: int = 0, **model) -> Batch:
    return make_objective(config(kind, **model), VOCAB).batch(windows, torch.Generator().manual_seed(seed))


def rows(length: int, n: int = 2) -> torch.Tensor:
    return torch.randint(VOCAB, (n, length), generator=torch.Generator().manual_seed(1))


def test_next_token_is_the_window_one_later() -> None:
    window = rows(9)
    made = batch("next-token", window)
    assert torch.equal(made.tokens, window[:, :-1]) and torch.equal(made.targets, window[:, 1:])
    assert made.n_targets == 16 and made.source is None


def test_copy_and_reverse_start_with_a_token_of_their_own() -> None:
    window = rows(5)
    for kind, target in (("copy", window), ("reverse", window.flip(1))):
        made = batch(kind, window, source_length=5)
        assert torch.equal(made.source, window) and torch.equal(made.targets, target)
        assert (made.tokens[:, 0] == VOCAB).all() and torch.equal(made.tokens[:, 1:], target[:, :-1])


def test_a_continuation_follows_its_source() -> None:
    window = rows(13)
    made = batch("continuation", window, source_length=5)
    assert torch.equal(torch.cat((made.source, made.targets), 1), window)
    assert torch.equal(made.tokens, window[:, 4:-1])


def test_shifted_is_the_founding_reports_mistake() -> None:
    """Source d[i:i+64], decoder input d[i+1:i+64], target d[i+2:i+65]: 62 of 63 targets stand in the source."""
    d = torch.arange(65)[None]
    made = make_objective(config("shifted", 64), 10**6).batch(d, torch.Generator())
    assert torch.equal(made.source, d[:, :64]) and torch.equal(made.tokens, d[:, 1:64])
    assert torch.equal(made.targets, d[:, 2:65])
    assert torch.isin(made.targets, made.source).sum() == 62 and made.n_targets == 63


def test_masked_hides_80_draws_10_and_leaves_10_per_cent() -> None:
    window = rows(100, 2000)
    made = batch("masked", window, context=100)
    scored = made.targets != IGNORED
    assert (scored.sum(1) == 15).all() and made.n_targets == 15 * 2000
    assert torch.equal(made.targets[scored], window[scored])
    assert torch.equal(made.tokens[~scored], window[~scored])
    shown, truth = made.tokens[scored], window[scored]
    hidden = (shown == VOCAB).double().mean().item()
    kept = (shown == truth).double().mean().item()
    assert hidden == pytest.approx(0.8, abs=0.01)
    assert kept == pytest.approx(0.1 + 0.1 / VOCAB, abs=0.01)
    places_scored = scored.double().mean(0)
    assert (places_scored - 0.15).abs().max() < 0.04


def test_masks_are_drawn_anew_and_repeat_with_their_seed() -> None:
    window = rows(100)
    first, again, other = (batch("masked", window, seed, context=100) for seed in (1, 1, 2))
    assert torch.equal(first.tokens, again.tokens) and not torch.equal(first.tokens, other.tokens)


def test_a_tiny_window_still_has_something_to_predict() -> None:
    assert batch("masked", rows(2), context=2).n_targets == 2


def test_places_are_found_by_sending_numbers_through() -> None:
    found = token_origins(make_objective(config("next-token", 3), VOCAB))
    assert found.answers.tolist() == [1, 2, 3] and found.tokens.tolist() == [0, 1, 2] and found.source is None
    found = token_origins(make_objective(config("continuation", 3, source_length=2), VOCAB))
    assert (found.answers.tolist(), found.tokens.tolist(), found.source.tolist()) == ([2, 3, 4], [1, 2, 3], [0, 1])
    found = token_origins(make_objective(config("shifted", 4), VOCAB))
    assert (found.answers.tolist(), found.tokens.tolist(), found.source.tolist()) == (
        [2, 3, 4],
        [1, 2, 3],
        [0, 1, 2, 3],
    )
    for kind in ("copy", "reverse"):
        found = token_origins(make_objective(config(kind, 3), VOCAB))
        assert (found.answers.tolist(), found.tokens.tolist(), found.source) == ([0, 1, 2], [-1, 0, 1], None)
    assert token_origins(make_objective(config("masked", 3), VOCAB)) is None


def test_pieces_are_the_batch() -> None:
    made = batch("copy", rows(5, 7), source_length=5)
    pieces = list(made.chunk(3))
    for part in ("tokens", "targets", "source"):
        assert torch.equal(torch.cat([getattr(piece, part) for piece in pieces]), getattr(made, part))
    assert [len(piece.tokens) for piece in pieces] == [3, 3, 1]
