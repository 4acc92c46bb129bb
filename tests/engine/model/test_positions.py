import math

import pytest
import torch

from engine.model.positions import Rope, Sinusoidal
from engine.model.transformer import build_model


def test_sinusoidal_table_is_the_papers() -> None:
    table = Sinusoidal(8).embed(torch.tensor([[0, 3, 100]]))[0]
    for row, pos in enumerate((0, 3, 100)):
        for i in range(4):
            angle = pos / 10_000 ** (2 * i / 8)
            assert table[row, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-12)
            assert table[row, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-12)


@pytest.mark.parametrize("pairing", ["half", "adjacent"])
def test_rope_scores_depend_on_the_distance_only(pairing: str) -> None:
    rope = Rope(8, 10_000.0, pairing)
    q, k = torch.randn(2, 1, 1, 1, 8, dtype=torch.float64)

    def score(q_pos: int, k_pos: int) -> float:
        turned = rope.rotate(q, torch.tensor([[q_pos]])) * rope.rotate(k, torch.tensor([[k_pos]]))
        return turned.sum().item()

    assert score(7, 4) == pytest.approx(score(1007, 1004), abs=1e-9)
    assert abs(score(7, 4) - score(7, 5)) > 1e-6


def test_rope_by_hand_for_one_pair() -> None:
    x = torch.tensor([1.0, 2.0]).view(1, 1, 1, 2).double()
    turned = Rope(2, 10_000.0, "adjacent").rotate(x, torch.tensor([[3]])).flatten()
    assert turned[0].item() == pytest.approx(math.cos(3) - 2 * math.sin(3))
    assert turned[1].item() == pytest.approx(2 * math.cos(3) + math.sin(3))


def test_the_two_pairings_are_one_permutation_apart() -> None:
    x = torch.randn(1, 2, 5, 8, dtype=torch.float64)
    order = [0, 2, 4, 6, 1, 3, 5, 7]  # adjacent pairs → halves
    pos = torch.arange(5)[None]
    half = Rope(8, 10_000.0, "half").rotate(x[..., order], pos)
    adjacent = Rope(8, 10_000.0, "adjacent").rotate(x, pos)
    assert torch.allclose(half, adjacent[..., order], atol=1e-12)


@pytest.mark.parametrize("position", ["none", "sinusoidal", "learned", "rope"])
def test_permuting_time_changes_the_output(tiny, position: str) -> None:
    """The positional table indexed by batch, and any scheme without effect, fails this: order must matter.

    Without positions it still does, through the causal mask of the layer below.
    """
    model = build_model(tiny(f"model.position={position}", "model.init_std=0.3").model, 11, 1).eval()
    tokens = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 8]])
    swapped = tokens[:, [1, 0, 2, 3, 4, 5, 6, 7]]
    with torch.no_grad():
        change = (model(tokens)[0, -1] - model(swapped)[0, -1]).abs().max()
    assert change > 1e-3


def test_rows_of_a_batch_do_not_change_each_others_positions(tiny) -> None:
    model = build_model(tiny("model.position=sinusoidal").model, 11, 1).eval()
    tokens = torch.randint(11, (3, 9))
    with torch.no_grad():
        assert torch.allclose(model(tokens)[1:2], model(tokens[1:2]), atol=1e-6)


def test_learned_positions_end_where_the_table_ends(tiny) -> None:
    model = build_model(tiny("model.position=learned").model, 11, 1)
    with pytest.raises(ValueError, match="past the 16 learned positions"):
        model(torch.zeros(1, 17, dtype=torch.long))
