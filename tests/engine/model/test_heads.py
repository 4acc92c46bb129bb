"""The parts of attention where the table of parts does not reach: recomputing, bf16, rows that see nothing."""

import pytest
import torch

from engine.config.visibility import Visibility
from engine.model.attention import AttentionCall, Softmax, attention_weights, softmax_attention
from engine.model.decoding import Predictor
from engine.model.positions import Positions, PositionScheme
from engine.model.reference import ReferenceNetwork
from tests.engine.model.cells import BASE, LENGTH, draw, network

PARTS = ({"qk_norm": "before"}, {"qk_norm": "after"}, {"score_cap": 2.0}, {"sinks": True}, {"gate": "head"})
PARTS += ({"gate": "output"}, {"value_mix": True})
EACH = pytest.mark.parametrize("part", PARTS, ids=str)


def changed(part: dict[str, object], **more):
    model = BASE.model.model_copy(update={"dropout": 0.0, "attention_dropout": 0.0, "n_layers": 3, **part, **more})
    return network(BASE.model_copy(update={"model": model}))


@EACH
@pytest.mark.parametrize("attention", ["global", "linear"])
def test_recomputing_a_layer_gives_the_same_gradients(part, attention: str) -> None:
    if attention == "linear" and part.keys() & {"score_cap", "sinks"}:
        return
    found = []
    for again in (False, True):
        model = changed(part, attention=attention)
        for name, module in model.named_modules():
            if name.endswith("dropout"):
                module.eval()
        model.training, model.checkpointing = True, again
        model(draw(1, LENGTH)).square().sum().backward()
        found.append([parameter.grad for parameter in model.parameters()])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def test_values_are_mixed_with_the_first_layers_in_a_deep_network() -> None:
    model, tokens = changed({"value_mix": True}, n_layers=4), draw(1, LENGTH)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        whole = model(tokens)
        expected = ReferenceNetwork(model.config, dict(model.named_parameters())).logits(tokens)
        steps = Predictor(model)
        steps.begin(4)
        found = [steps.feed(tokens[:, :3]), *(steps.feed(tokens[:, t : t + 1]) for t in range(3, LENGTH))]
    assert (whole - expected).abs().max() <= 1e-10
    assert (torch.stack(found, dim=1) - whole[:, 2:]).abs().max() <= 1e-10


@EACH
@pytest.mark.parametrize("position", ["rope", "alibi"])
def test_bf16_is_near_float64(part, position: str) -> None:
    model = changed(part, position=position, init_std=0.1)
    exact = model(draw(1, LENGTH))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = model.float()(draw(1, LENGTH))
    assert rounded.dtype == torch.bfloat16
    assert (rounded - exact).abs().max() <= 0.05 * exact.abs().max()


def test_a_sink_takes_its_share_and_all_of_a_row_that_sees_nothing() -> None:
    at = Positions.of_tokens(torch.tensor([[True] * 6, [False, False, True, True, True, True]]))
    q, k, v = (torch.randn(2, 2, 6, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    softmax = Softmax(sinks=torch.tensor([0.0, 3.0], dtype=torch.float64))
    sinks = softmax.sinks
    call = AttentionCall(q, k, at, at, Visibility(True), PositionScheme(), softmax=softmax)
    scores = (q @ k.transpose(2, 3) / 2.0).exp() * call.visible()
    expected = scores / (scores.sum(-1, keepdim=True) + sinks.exp()[:, None, None])
    assert (attention_weights(call) - expected).abs().max() <= 1e-12
    out = softmax_attention(call, v)
    assert (out[1, :, :2] == 0).all() and (out - expected @ v).abs().max() <= 1e-12
    out.sum().backward()
    assert all(torch.isfinite(x.grad).all() for x in (q, k, v, sinks))
