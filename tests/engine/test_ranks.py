"""The tree in which gradients are added up: the same sums, to the last bit, on any number of ranks."""

import pytest
import torch

from engine.ranks import Grads, TreeSum, node_sizes

SHARDS = (1, 2, 3, 4, 6, 7, 8, 12)


def leaf(micro: int) -> Grads:
    generator = torch.Generator().manual_seed(micro)
    return [torch.randn(50, generator=generator), None if micro % 3 else torch.randn(3, generator=generator)]


def by_ranks(shards: int, size: int, missing: int | None = None) -> Grads:
    """What `Group.total` does, without the exchange."""
    weights = [torch.empty(50), torch.empty(3)]
    whole = TreeSum(weights)
    for rank in range(size):
        mine = range(rank * shards // size, (rank + 1) * shards // size)
        own = TreeSum(weights, mine.start)
        for micro in mine:
            own.add(1, None if micro == missing else leaf(micro))
        assert [n for n, _ in own.nodes] == node_sizes(mine)
        for n, grads in own.nodes:
            whole.add(n, grads)
    return whole.total()


def same(one: Grads, other: Grads) -> bool:
    return all((a is None) == (b is None) and (a is None or torch.equal(a, b)) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("shards", SHARDS)
def test_a_sum_has_the_same_bits_on_every_number_of_ranks_that_divides_its_micro_batches(shards: int) -> None:
    alone = by_ranks(shards, 1)
    for size in (n for n in range(2, shards + 1) if shards % n == 0):
        assert same(by_ranks(shards, size), alone)


def test_micro_batches_without_targets_are_left_out_of_the_sum() -> None:
    alone = by_ranks(4, 1, missing=2)
    assert same(by_ranks(4, 2, missing=2), alone)
    assert same(by_ranks(4, 4, missing=2), alone)
    assert not same(alone, by_ranks(4, 1))


def test_two_micro_batches_are_added_as_one_after_the_other_was() -> None:
    for shards in (1, 2, 3):
        found, kept = by_ranks(shards, 1)[0], leaf(0)[0]
        assert found is not None and kept is not None
        for micro in range(1, shards):
            more = leaf(micro)[0]
            assert more is not None
            kept = kept + more
        assert torch.equal(found, kept)


def test_no_more_sums_are_held_than_the_tree_is_deep() -> None:
    tree, most = TreeSum([torch.empty(50), torch.empty(3)]), 0
    for micro in range(64):
        tree.add(1, leaf(micro))
        most = max(most, len(tree.nodes))
    assert most == 6
