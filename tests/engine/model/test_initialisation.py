import math
import subprocess
import sys

import pytest
import torch

from engine.capabilities import check
from engine.data.objectives import make_objective
from engine.evaluation.checks import leak_probe
from engine.model.transformer import build_model
from engine.training.trial import switch_effect

VOCAB = 50


def weights(tiny, *changes: str, seed: int = 1) -> dict[str, torch.Tensor]:
    return dict(build_model(tiny("model.d_model=64", "model.d_ff=256", *changes).model, VOCAB, seed).named_parameters())


def test_equal_seeds_give_equal_weights_and_others_do_not(tiny) -> None:
    a, b, c = weights(tiny), weights(tiny), weights(tiny, seed=2)
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(a["head.weight"], c["head.weight"])


def test_variants_share_initial_weights_where_shapes_agree(tiny) -> None:
    rope, learned, wide = weights(tiny), weights(tiny, "model.position=learned"), weights(tiny, "model.d_ff=100")
    assert all(torch.equal(rope[name], learned[name]) for name in rope)
    same = [name for name in rope if rope[name].shape == wide[name].shape]
    assert len(same) > 10 and all(torch.equal(rope[name], wide[name]) for name in same)


def test_residual_outputs_start_smaller(tiny) -> None:
    scaled, plain = weights(tiny), weights(tiny, "model.init=normal")
    name = "layers.0.feed_forward.output.weight"
    assert plain[name].std().item() == pytest.approx(0.02, rel=0.05)
    assert scaled[name].std().item() == pytest.approx(0.02 / math.sqrt(4), rel=0.05)


def test_xavier_bounds_are_those_of_each_matrix(tiny) -> None:
    found = weights(tiny, "model.init=xavier")
    bound = math.sqrt(6 / (64 + 64))
    joined = found["layers.0.attention.query_key_value.weight"]
    assert bound * 0.97 < joined.abs().max().item() <= bound


def test_gains_are_one_and_biases_zero(tiny) -> None:
    for name, parameter in weights(tiny, "model.head_bias=true").items():
        if name.endswith("norm.weight"):
            assert (parameter == 1).all()
        elif name.endswith("bias"):
            assert (parameter == 0).all()


def test_learned_positions_can_start_at_zero(tiny) -> None:
    found = weights(tiny, "model.position=learned", "model.position_init=zero")
    assert (found["positions.table.weight"] == 0).all()


@pytest.mark.parametrize("init", ["scaled-normal", "torch"])
def test_outputs_and_head_can_start_at_zero_and_all_others_keep_their_numbers(tiny, init: str) -> None:
    plain, outputs, head = (
        weights(tiny, "model.architecture=encoder-decoder", "objective.kind=copy", f"model.init={init}", *changes)
        for changes in ((), ("model.zero_init=outputs",), ("model.zero_init=outputs-and-head",))
    )
    zero = {name for name in plain if ".output." in name}
    assert len(zero) == 2 * 2 * (2 + 3)  # weight and bias of each part of two layers, in each of two stacks
    for found, expected in ((outputs, zero), (head, zero | {"head.weight"})):
        for name, values in found.items():
            assert not values.any() if name in expected else torch.equal(values, plain[name]), name


def test_a_tied_head_cannot_start_at_zero(tiny) -> None:
    for zero, wrong in (("outputs", False), ("outputs-and-head", True)):
        refusal = check(tiny(f"model.zero_init={zero}", "model.tie_embeddings=true"))
        assert (refusal is not None) == wrong
    assert check(tiny("model.zero_init=outputs", "model.residual=false")) is not None


@pytest.mark.parametrize("zero", ["none", "outputs", "outputs-and-head"])
def test_layers_that_start_as_the_identity_hide_no_leak_and_no_switch(tiny, zero: str) -> None:
    config = tiny("model.architecture=encoder", "model.position=learned", f"model.zero_init={zero}")
    objective = make_objective(config, VOCAB)
    windows = torch.randint(VOCAB, (2, objective.window), generator=torch.Generator().manual_seed(1))
    found = leak_probe(build_model(config.model, VOCAB, 1), objective, windows, VOCAB, when="before", step=0)
    assert found.verdict == "LEAK"
    changed = tiny("model.architecture=encoder", "model.position=learned", f"model.zero_init={zero}", "model.n_heads=1")
    assert [verdict.verdict for verdict in switch_effect(changed, config, VOCAB)] == ["ok"]


def test_tied_embeddings_are_one_parameter(tiny) -> None:
    model = build_model(tiny("model.tie_embeddings=true").model, VOCAB, 1)
    assert model.head.weight is model.token_embedding.weight
    assert "head.weight" not in dict(model.named_parameters())


def test_a_vocabulary_smaller_than_the_tokenizers_is_refused(tiny) -> None:
    with pytest.raises(ValueError, match="smaller"):
        build_model(tiny("model.vocab_size=10").model, VOCAB, 1)


def test_building_a_network_does_not_import_the_compiler() -> None:
    code = """
import sys
from engine.config.model import ModelConfig
from engine.model.transformer import build_model
for position in ("learned", "relative", "t5"):
    build_model(ModelConfig(position=position), 10, 1)
sys.exit("torch._dynamo" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
