"""The leak probe must speak on a broken model and be silent on a right one."""

import pytest
import torch

from engine.config.schema import RunConfig
from engine.config.visibility import Visibility
from engine.data.objectives import Batch, token_origins
from engine.evaluation.checks import gradient_leak, leak_probe, perturbation_leak, places_to_try
from engine.model import attention
from engine.model.transformer import build_model
from engine.tasks.text import NextTokenObjective

VOCAB = 11
WINDOWS = torch.randint(VOCAB, (2, 17), generator=torch.Generator().manual_seed(3))
OBJECTIVE = NextTokenObjective(RunConfig.model_validate({"model": {"context_length": 16}}), VOCAB)
PLACES, BATCH = token_origins(OBJECTIVE), OBJECTIVE.batch(WINDOWS, torch.Generator())
ROW = Batch(BATCH.tokens[:1], BATCH.targets[:1], 16)


def model(tiny, see: Visibility | None = None, *changes: str) -> torch.nn.Module:
    built = build_model(tiny(*changes).model, VOCAB, 1).eval()
    if see is not None:
        for layer in built.layers:
            layer.attention.visibility = see
    return built


def verdict(built: torch.nn.Module) -> str:
    return leak_probe(built, OBJECTIVE, WINDOWS, VOCAB, when="before", step=0).verdict


def test_a_clean_model_is_clean_by_both_probes(tiny) -> None:
    built = model(tiny)
    assert gradient_leak(built, BATCH, PLACES, [0, 7, 14]) == 0.0
    assert perturbation_leak(built, ROW, PLACES, [0, 7, 14], VOCAB) <= 1e-6
    assert verdict(built) == "ok"


def test_a_bidirectional_model_leaks_by_both_probes(tiny) -> None:
    built = model(tiny, Visibility(causal=False))
    assert gradient_leak(built, BATCH, PLACES, [7]) > 0.0
    assert perturbation_leak(built, ROW, PLACES, [7], VOCAB) > 1e-5
    assert verdict(built) == "LEAK"


def test_a_mask_off_by_one_leaks(tiny) -> None:
    class OneMore(Visibility):
        def __call__(self, q, k):
            return super().__call__(q + 1, k)

    assert verdict(model(tiny, OneMore(causal=True), "model.backend=reference")) == "LEAK"


def test_a_finite_mask_leaks_though_barely(tiny, monkeypatch) -> None:
    """A mask of −8 instead of −∞ lets through e⁻⁸: a trained model learns around it."""
    right = attention.AttentionCall.visible

    def soft(call):
        return (call.q @ call.k.transpose(-2, -1) * call.scale).masked_fill(~right(call), -8.0).softmax(-1)

    monkeypatch.setattr(attention, "attention_weights", soft)
    assert verdict(model(tiny, None, "model.backend=reference")) == "LEAK"


LOCAL = {
    "one position sees the next": lambda q, k: (q == 9) & (k == 10),
    "some positions see the next": lambda q, k: (q >= 4) & (q < 8) & (k == q + 1),
    "odd positions see their answer": lambda q, k: (q + 1) // 2 == (k + 1) // 2,
    "every eighth sees the next": lambda q, k: (q % 8 == 7) & (k == q + 1),
    "only the last": lambda q, k: (q == 14) & (k == 15),
}


@pytest.mark.parametrize("extra", LOCAL.values(), ids=LOCAL.keys())
@pytest.mark.parametrize("layer", [0, 1])
def test_a_leak_at_one_place_in_one_layer_is_found(tiny, extra, layer: int) -> None:
    class Local(Visibility):
        def __call__(self, q, k):
            return super().__call__(q, k) | extra(q, k)

    built = model(tiny, None, "model.backend=reference")
    built.layers[layer].attention.visibility = Local(causal=True)
    assert verdict(built) == "LEAK"


def test_a_leak_that_exists_only_while_training_is_found(tiny) -> None:
    class WhileTraining(Visibility):
        def __call__(self, q, k):
            return (q >= 0) & (k >= 0) if built.training else super().__call__(q, k)

    built = model(tiny, None, "model.backend=reference", "model.dropout=0.1")
    for layer in built.layers:
        layer.attention.visibility = WhileTraining(causal=True)
    assert verdict(built) == "LEAK"


def test_dropout_itself_is_no_leak(tiny) -> None:
    state = torch.get_rng_state()
    assert verdict(model(tiny, None, "model.dropout=0.3")) == "ok"
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_predictions_that_are_no_numbers_are_never_called_ok(tiny, value: float) -> None:
    built = model(tiny)
    with torch.no_grad():
        built.final_norm.bias.fill_(value)
    assert verdict(built) == "NOT A NUMBER"


def test_a_large_logit_does_not_hide_a_leak_in_the_others(tiny) -> None:
    built = model(tiny, Visibility(causal=False), "model.head_bias=true")
    with torch.no_grad():
        built.head.bias[3] = 1e7
    assert verdict(built) == "LEAK"


@pytest.mark.parametrize("length", [1, 2, 3, 10, 50, 300])
@pytest.mark.parametrize("how_many", [1, 8, 1000])
def test_places_cover_the_window(length: int, how_many: int) -> None:
    places = places_to_try(length, how_many, seed=1)
    assert places == sorted(set(places)) and all(0 <= t <= length - 2 for t in places)
    if how_many >= length:
        assert places == list(range(length - 1))
    elif length > 3:
        assert {t % 2 for t in places} == {0, 1} and len(places) >= how_many


def test_a_leak_past_attention_is_found_too(tiny) -> None:
    built = model(tiny)
    built.final_norm = torch.nn.Sequential(built.final_norm, BatchMean())
    assert verdict(built) == "LEAK"


class BatchMean(torch.nn.Module):
    """Mixes over time, as a norm over the wrong axis does."""

    def forward(self, x):
        return x - x.mean(1, keepdim=True)


@pytest.mark.parametrize("training", [True, False])
def test_the_probe_leaves_the_mode_and_the_gradients_alone(tiny, training: bool) -> None:
    built = model(tiny).train(training)
    verdict(built)
    assert built.training is training
    assert all(parameter.grad is None for parameter in built.parameters())
    assert not built.token_embedding._forward_hooks
