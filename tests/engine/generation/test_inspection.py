import math

import pytest
import torch

from engine.base.errors import InputError
from engine.config.schema import RunConfig
from engine.generation import inspection, surprise
from engine.generation.inspection import attention_kinds, head_attention
from engine.model import heads
from engine.model.attention import attention_weights, softmax_attention
from engine.model.transformer import build_model
from tests.engine.model.cells import LENGTH, SOURCE, VOCAB, cells, draw, name, network

# Norms do not change what a head compares with what: one kind of them is enough.
CELLS = [cell for cell in cells() if (cell.model.norm, cell.model.norm_placement) == ("layer", "pre")]
TOKENS, SOURCES = draw(5, LENGTH)[0], draw(6, SOURCE)[0]


def has(cell: RunConfig, which: str) -> bool:
    return which == "self" or cell.model.architecture == "encoder-decoder"


def weighted(cell: RunConfig, which: str) -> bool:
    return has(cell, which) and (which == "cross" or cell.model.attention != "linear")


WEIGHTED = [(cell, which) for cell in CELLS for which in inspection.ATTENTION_KINDS if weighted(cell, which)]


@pytest.mark.parametrize(("cell", "which"), WEIGHTED, ids=[f"{name(c)}-{w}" for c, w in WEIGHTED])
@torch.inference_mode()
def test_what_is_shown_is_what_the_model_attends_to(cell, which, monkeypatch) -> None:
    """The reference's weights of the layer's own call; and times the values, what the fast kernel made of it."""
    model, calls = network(cell), []

    def watch(call, v, backend):
        out = softmax_attention(call, v, backend)
        calls.append((call, v, out))
        return out

    monkeypatch.setattr(heads, "softmax_attention", watch)
    layer, head, both = 1, 1, model.reads_source
    looks = head_attention(model, TOKENS, layer, head, which, SOURCES if both else None)
    order = ["encoder"] * 2 + ["self", "cross"] * 2 if both else ["self"] * 2  # two layers each
    if cell.model.attention == "linear":
        order = [kind for kind in order if kind == "cross"]
    case, v, out = [call for call, kind in zip(calls, order, strict=True) if kind == which][layer]
    assert (looks.weights - attention_weights(case)[0, head]).abs().max() <= 1e-5
    assert torch.allclose(looks.weights @ v[0, head], out[0, head], atol=1e-9)
    q_pos, k_pos = case.q_at.index, case.k_at.index
    assert torch.equal(looks.visible, case.visibility(q_pos[0, :, None], k_pos[0, None]))
    assert not looks.weights[~looks.visible].any()
    bias = case.scheme.bias(q_pos, k_pos)
    assert looks.bias is None if bias is None else torch.equal(looks.bias, bias[0, head])


LINEAR = [(c, w) for c in CELLS if c.model.attention == "linear" for w in attention_kinds(network(c)) if w != "cross"]


@pytest.mark.parametrize(("cell", "which"), LINEAR, ids=[f"{name(c)}-{w}" for c, w in LINEAR])
def test_linear_attention_says_why_it_has_no_weights(cell, which) -> None:
    with pytest.raises(InputError, match="has no weights to show"):
        head_attention(network(cell), TOKENS, 0, 0, which, SOURCES)


def test_a_layer_or_head_that_is_not_there_is_said(tiny) -> None:
    model = build_model(tiny().model, VOCAB, 1)
    for layer, head, said in ((2, 0, "1 to 2"), (-1, 0, "1 to 2"), (0, 2, "1 to 2")):
        with pytest.raises(InputError, match=said):
            head_attention(model, TOKENS[:5], layer, head)
    with pytest.raises(InputError, match="in this network it must be self"):
        head_attention(model, TOKENS[:5], 0, 0, "cross")


def test_looking_leaves_the_model_as_it_was(tiny) -> None:
    model = build_model(tiny().model, VOCAB, 1)
    before = model(TOKENS[None, :5])
    head_attention(model, TOKENS[:5], 0, 0)
    assert model.training and torch.equal(model(TOKENS[None, :5]), before)
    assert all(getattr(part, "observe", None) is None for part in model.modules())


@pytest.mark.parametrize("length", [2, 9, 16, 17, 24, 25, 60])
def test_surprise_is_the_negative_log_of_a_direct_pass_over_its_window(tiny, length) -> None:
    """The rule written out: windows of 16 every 8; each token in the first window that has it as a target."""
    config = tiny("model.init_std=0.3")
    model, ids = build_model(config.model, VOCAB, 1).eval(), draw(8, length)[0]
    found = surprise.text_surprise(model, config, VOCAB, ids, alternatives=4)
    assert found.tokens[0].nats is None and [token.token for token in found.tokens] == ids.tolist()
    for i in range(1, length):
        start = next(start for start in range(0, length, 8) if start + 16 >= i)
        with torch.no_grad():
            belief = model(ids[None, start:i])[0, -1].softmax(-1)
        token = found.tokens[i]
        assert token.nats == pytest.approx(-math.log(belief[ids[i]]), abs=1e-5)
        best = belief.topk(4)
        assert [one.token for one in token.alternatives] == best.indices.tolist()
        assert [one.probability for one in token.alternatives] == pytest.approx(best.values.tolist(), abs=1e-5)
    assert (found.context, found.stride) == (16, 8)


SEQUENCE = ("model.architecture=encoder-decoder", "model.source_length=6")


@pytest.mark.parametrize(("kind", "length"), [("copy", 6), ("copy", 3), ("reverse", 6), ("continuation", 9)])
def test_a_models_surprise_of_a_target_is_given_its_source(tiny, kind, length) -> None:
    config = tiny(*SEQUENCE, f"objective.kind={kind}")
    model, ids = build_model(config.model, VOCAB + 1, 1).eval(), draw(8, length)[0]
    found = surprise.text_surprise(model, config, VOCAB, ids)
    target = {"copy": ids, "reverse": ids.flip(0), "continuation": ids[6:]}[kind].tolist()
    source = ids[:6].tolist()
    read = [source[-1] if kind == "continuation" else VOCAB, *target]
    assert [token.token for token in found.tokens] == target and list(found.source) == source
    for i, token in enumerate(found.tokens):
        with torch.no_grad():
            logits = model(torch.tensor([source]), torch.tensor([read[: i + 1]]))[0, -1]
        assert token.nats == pytest.approx(-logits.log_softmax(-1)[target[i]].item(), abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "length", "said"),
    [
        (("model.architecture=encoder", "objective.kind=masked"), 9, "fills gaps"),
        (("model.architecture=encoder", "model.causal=false", "train.allow_leak=true"), 9, "sees the character"),
        ((), 1, "at least two"),
        ((*SEQUENCE, "objective.kind=continuation"), 6, "7 to 22 characters\\); this text has 6"),
    ],
)
def test_where_surprise_is_not_defined_a_sentence_says_so(tiny, changes, length, said) -> None:
    config = tiny(*changes)
    with pytest.raises(InputError, match=said):
        surprise.text_surprise(build_model(config.model, VOCAB + 1, 1), config, VOCAB, draw(8, length)[0])
