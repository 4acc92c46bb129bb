"""Networks whose layers differ: every two kinds of layers together, by the proofs of the parts."""

import itertools

import pytest
import torch

from engine import capabilities
from engine.base.errors import InputError
from engine.config.lints import lint
from engine.config.schema import RunConfig
from engine.config.schemes import ATTENTIONS, POSITIONS
from engine.config.toml import validate
from engine.config.visibility import Visibility, reach_of, sees_ahead
from engine.evaluation.checks import order_check
from engine.model import size
from engine.model.cache import Cache, KeyValueCache
from engine.model.decoding import supports_fast_decoding
from engine.model.positions import Rope
from engine.model.transformer import Network, Stack, build_model
from engine.training.self_check import check_cache, check_reference, small_copy
from engine.training.trial import switch_effect
from tests.engine.model.cells import VOCAB
from tests.engine.model.test_parts import (  # the proofs, here of this module's cells
    Change,
    config_of,
    test_a_cache_and_single_steps_give_the_full_pass,  # noqa: F401
    test_every_backend_agrees_in_values_and_gradients,  # noqa: F401
    test_no_leak,  # noqa: F401
    test_padding_changes_nothing,  # noqa: F401
    test_the_second_implementation_agrees,  # noqa: F401
    test_what_is_counted_is_what_is_built,  # noqa: F401
)

ARCHITECTURES = ("decoder", "encoder", "encoder-decoder")
OF_A_LAYER = [name for name, row in POSITIONS.items() if row.acts_on != "embeddings"]
KINDS = [
    f"{attention} {position}"
    for attention, position in itertools.product(ATTENTIONS, OF_A_LAYER)
    if ATTENTIONS[attention].has_scores or not POSITIONS[position].adds
]
EVERY_FOURTH = ("window", "window", "window", "global none")


def _cells() -> list[Change]:
    pairs = [pair[:: 1 if turn % 2 else -1] for turn, pair in enumerate(itertools.combinations(KINDS, 2))]
    found: list[Change] = [
        {"architecture": architecture, "position": "none", "layers": list(pair)}
        for pair in pairs
        for architecture in ARCHITECTURES
    ]
    for architecture in ARCHITECTURES:
        for position in (
            name for name in POSITIONS if name not in OF_A_LAYER
        ):  # added before all layers: only attentions differ
            found += [
                {"architecture": architecture, "position": position, "layers": list(pair)}
                for pair in itertools.combinations(ATTENTIONS, 2)
            ]
        several = {"position": "rope", "layers": list(EVERY_FOURTH), "n_layers": 5, "window": 3}
        found.append({"architecture": architecture, **several})
        found.append({"architecture": architecture, **several, "norm_placement": "post", "n_encoder_layers": 1})
    return found


CELLS = _cells()


@pytest.fixture(
    params=[
        pytest.param(
            change,
            id="-".join(str(value) for value in change.values()),
            marks=(pytest.mark.one_in(3) if turn % 16 == 0 or "n_layers" in change else pytest.mark.slow,),
        )
        for turn, change in enumerate(CELLS)
    ]
)
def cell(request) -> RunConfig:
    config = config_of(request.param)
    assert config is not None
    return config


def of(**change: object) -> RunConfig:
    config = config_of({"position": "rope", **change})
    assert config is not None
    return config


def test_the_grid_has_every_two_kinds_of_layers() -> None:
    assert len(KINDS) == 3 * 6 + 2
    met = {frozenset(change["layers"]) for change in CELLS if change["position"] == "none"}  # type: ignore[call-overload]
    assert met == {frozenset(pair) for pair in itertools.combinations(KINDS, 2)}


def test_the_layers_of_a_pattern_matter(cell) -> None:
    """Other layers, or the same in another order, are another network."""
    for layers in ([], [*cell.model.layers[1:], cell.model.layers[0]]):
        other = cell.model_copy(update={"model": cell.model.model_copy(update={"layers": tuple(layers)})})
        if capabilities.check(other) is None:
            verdicts = switch_effect(cell, other, VOCAB)
            assert verdicts and all(v.verdict == "ok" for v in verdicts), (layers, verdicts)


def test_the_small_copy_has_every_kind_of_layer() -> None:
    model = of(layers=list(EVERY_FOURTH), n_layers=12)
    assert small_copy(model, VOCAB).model.distinct_attentions == ["window", "global"]
    long = small_copy(of(layers=["window"] * 11 + ["global none"], n_layers=12), VOCAB).model
    assert (
        long.n_layers == 2
        and long.distinct_attentions == ["window", "global"]
        and long.distinct_positions == ["rope", "none"]
    )
    mini = model.miniature()
    assert mini.model.distinct_attentions == ["window", "global"] and capabilities.check(mini) is None


def test_layer_i_takes_entry_i_of_the_pattern_again_and_again() -> None:
    model = of(layers=["window", "global none", "sparse alibi"], n_layers=5).model
    kinds = [(model.layer_config(i).attention, model.layer_config(i).position) for i in range(5)]
    assert kinds == [
        ("window", "rope"),
        ("global", "none"),
        ("sparse", "alibi"),
        ("window", "rope"),
        ("global", "none"),
    ]
    assert [places for _, places in model.layer_kinds()] == [(0, 3), (1, 4), (2,)]
    built = build_model(model, VOCAB, 1)
    assert [layer.attention.visibility for layer in built.layers] == [
        Visibility(True, 5),
        Visibility(True),
        Visibility(True, 5, 4),
        Visibility(True, 5),
        Visibility(True),
    ]
    assert isinstance(built.layers[0].attention.scheme, Rope)
    assert built.layers[0].attention.scheme is built.layers[3].attention.scheme
    caches = built.new_cache().layers
    assert [state.window for state in caches if isinstance(state, KeyValueCache)] == [5, None, None, 5, None]


def test_a_pattern_of_one_kind_is_the_plain_network() -> None:
    plain = of(attention="window")
    for layers in (["window"], ["window rope", "window"], ["rope"]):
        same = of(attention="window", layers=layers)
        a, b = (build_model(config.model, VOCAB, 1).eval() for config in (plain, same))
        assert [(n, p.shape) for n, p in a.named_parameters()] == [(n, p.shape) for n, p in b.named_parameters()]
        tokens = torch.arange(12)[None] % VOCAB
        assert torch.equal(a(tokens), b(tokens))
        assert size.training_flops_per_token(plain.model, VOCAB) == size.training_flops_per_token(same.model, VOCAB)
        assert size.memory_bytes(plain, VOCAB) == size.memory_bytes(same, VOCAB)


def test_a_learned_bias_is_one_table_for_all_layers_that_have_it() -> None:
    model = of(layers=["global t5", "window", "sparse relative", "window t5"], n_layers=4, position="t5").model
    names = [name for name, _ in build_model(model, VOCAB, 1).named_parameters() if "table" in name]
    assert names == ["positions.table.weight", "layer_positions.relative.table.weight"]


def test_what_is_estimated_lies_between_the_plain_networks() -> None:
    both = of(layers=["window", "global"], context_length=256)
    window, full = (of(attention=kind, context_length=256) for kind in ("window", "global"))
    for measure in (lambda c: size.training_flops_per_token(c.model, VOCAB), lambda c: size.memory_bytes(c, VOCAB)):
        assert measure(window) < measure(both) < measure(full)
    kept = [
        size.saved_activation_numbers(config, size.BatchShape.from_config(config)) for config in (window, both, full)
    ]
    assert kept[1] - kept[0] == pytest.approx(kept[2] - kept[1])  # a layer each


def test_reach_and_sight_are_those_of_all_layers() -> None:
    assert reach_of(of(attention="window").model) == 2 * 4
    assert reach_of(of(layers=["window", "global"]).model) is None
    assert reach_of(of(layers=["window", "window alibi", "window none"], n_layers=4).model) == 4 * 4
    narrow = {"architecture": "encoder", "window": 1}
    assert not sees_ahead(of(**narrow, attention="window").model)
    assert sees_ahead(of(**narrow, layers=["window", "global"]).model)


def test_a_stack_without_positions_need_not_tell_order() -> None:
    short = of(architecture="encoder-decoder", layers=["global none", "global"], n_encoder_layers=1)
    result = order_check(build_model(short.model, VOCAB, 1), VOCAB)
    assert result is not None and result.status == "passed" and "rope positions" in result.why
    assert order_check(build_model(of(layers=["none"]).model, VOCAB, 1), VOCAB) is None


# Planted bugs


def _first_kind_for_all(network: Network, capacity: int = 0, source: object = None, source_at: object = None) -> Cache:
    first = network.stacks[-1].layers[0].get_submodule("attention")
    return Cache([first.new_state(capacity) for _ in network.stacks[-1].layers])  # type: ignore[operator]


@pytest.mark.parametrize("layers", [["window", "global"], ["global", "window"], list(EVERY_FOURTH)])
def test_a_cache_that_forgets_the_kind_of_a_layer_is_heard(monkeypatch, layers: list[str]) -> None:
    config = of(layers=layers, n_layers=4, context_length=64)
    copy = small_copy(config, VOCAB)
    assert supports_fast_decoding(copy.network) and check_cache(config, copy).status == "passed"
    monkeypatch.setattr(type(copy.network), "new_cache", _first_kind_for_all)
    found = check_cache(config, copy)
    assert found.status == "failed" and "samples are wrong" in found.why


@pytest.mark.parametrize("wrong", [[], ["global none", "window"], ["window", "global"], ["window none", "global none"]])
def test_a_network_that_ignores_its_pattern_is_heard(monkeypatch, wrong: list[str]) -> None:
    config = of(layers=["window", "global none"])
    real = Stack.__init__

    def other(self: Stack, model, *given, **more) -> None:
        real(self, model.model_copy(update={"layers": tuple(wrong)}), *given, **more)

    assert check_reference(small_copy(config, VOCAB)).status == "passed"
    monkeypatch.setattr(Stack, "__init__", other)
    assert check_reference(small_copy(config, VOCAB)).status == "failed"


# What may be written


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        (["windw", "global"], "'windw' is neither an attention"),
        (["windw"], "did you mean 'window'?"),
        (["global nope"], "did you mean 'rope'?"),
        (["window global"], "one of each"),
        (["rope none"], "one of each"),
        ([""], "one of each"),
        ("window", "must be a list of layers"),
        ([1], "must be a list of layers"),
        (["window"] * 1001, "the maximum is 1,000"),
    ],
)
def test_a_wrong_pattern_is_one_clear_line(layers: object, said: str) -> None:
    with pytest.raises(InputError) as raised:
        validate({"model": {"layers": layers}}, "here")
    line = str(raised.value)
    assert line.startswith("here: model.layers: ") and said in line and "\n" not in line and len(line) < 250


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"position": "sinusoidal", "layers": ["global none", "global"]}, "added to the embeddings"),
        ({"position": "none", "layers": ["global learned"]}, "added to the embeddings"),
        ({"position": "alibi", "layers": ["window", "linear"]}, "layer 2: linear attention has no score matrix"),
        (
            {"position": "rope", "layers": ["linear", "global"], "attention_dropout": 0.1},
            "layer 1: linear attention has",
        ),
        ({"position": "rope", "layers": ["window", "global"], "backend": "banded"}, "layer 2: backend 'banded'"),
        ({"position": "rope", "layers": ["none"], "rope_part": 0.5}, "choose position = 'rope'"),
        (
            {"position": "none", "layers": ["linear rope", "global"], "rope_scaling": "yarn"},
            "linear attention has no scores and no softmax",
        ),
        (
            {"position": "rope", "layers": ["window", "linear"], "sinks": True},
            "layer 2: linear attention has no scores",
        ),
    ],
)
def test_what_a_layer_cannot_be_is_refused_with_the_reason(change: Change, said: str) -> None:
    data = of().dump()
    data["model"].pop("attention_dropout")
    data["model"] |= change
    refusal = capabilities.check(RunConfig.model_validate(data))
    assert refusal is not None and said in refusal.reason


def test_words_may_stand_in_either_order_and_come_back_as_written_once() -> None:
    model = of(layers=["none  global", "window"]).model
    assert model.layers == ("global none", "window")
    assert of(layers=["linear", "global"]).model.attention_dropout == 0.0


def test_entries_that_no_layer_takes_are_named() -> None:
    config = of(layers=list(EVERY_FOURTH), n_layers=2)
    assert any("the last 2 are unused" in found.text for found in lint(config) if found.key == "model.layers")
    kept = of(layers=["window", "global none"], window=7, attention="global")
    assert not any(found.key in ("model.window", "model.rope_base") for found in lint(kept))
