"""What a step costs, from the config alone: operations against torch's counter, memory against what autograd keeps."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from engine.config import presets
from engine.config.schema import RunConfig
from engine.config.schemes import ACTIVATIONS, ATTENTIONS, POSITIONS, Attention
from engine.model import size
from engine.model.heads import SelfAttention
from engine.model.positions import Positions
from engine.model.size import training_kernel
from engine.model.transformer import build_model
from engine.proofs.bench.memory import measure_training_peak

VOCABULARY, ROWS = 50, 3
CHANGES: dict[str, dict[str, object]] = {  # each scheme by itself, and two settings that change the widths
    **{kind: {"position": kind} for kind in POSITIONS},
    **{kind: {"attention": kind} for kind in ATTENTIONS},
    "kv1": {"n_kv_heads": 1},
    "swiglu": {"activation": "swiglu"},
}
WEIGHTED = [name for name in CHANGES if name != "linear"]  # with attention weights, which dropout needs
NORMS: dict[str, dict[str, object]] = {
    "rms": {"norm": "rms"},
    "none": {"norm": "none", "final_norm": False},
    "post": {"norm_placement": "post", "final_norm": False},
}
LENGTHS = (128, 200)
PARTS_KEPT = (
    {"qk_norm": "before"},
    {"score_cap": 5.0},
    {"sinks": True},
    {"gate": "output"},
    {"value_mix": True},
    {"conv": 4},
)


def config_of(name: str, *, length: int, **model) -> RunConfig:
    """`demo` with the change of this name."""
    data = presets.resolve(presets.find("demo")).dump()
    data["model"] |= {"n_layers": 2, "context_length": length, "backend": "auto"} | CHANGES[name] | model
    data["train"]["batch_size"] = ROWS
    return RunConfig.model_validate(data)


def inputs_of(config: RunConfig) -> tuple[torch.Tensor, ...]:
    model = config.model
    lengths = [model.source_tokens] if config.has_source else []
    draw = torch.Generator().manual_seed(0)
    return tuple(torch.randint(VOCABULARY, (ROWS, n), generator=draw) for n in (*lengths, model.context_length))


class Operations(TorchDispatchMode):
    """Counts by torch's own formulas, as `FlopCounterMode` does, but not for each module, which takes longer."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        found = func(*args, **kwargs)
        if (formula := flop_registry.get(func.overloadpacket)) is not None:
            self.total += formula(*args, **kwargs, out_val=found)
        return found


def counted(config: RunConfig) -> float:
    network = build_model(config.model, VOCABULARY, 1)
    with Operations() as operations:
        torch.autograd.backward(network(*inputs_of(config)).sum())
    return operations.total / (ROWS * config.model.context_length)


def autograd_keeps(config: RunConfig) -> float:
    """Numbers that the forward pass keeps, those of weights aside."""
    network = build_model(config.model, VOCABULARY, 1)
    weights = {parameter.untyped_storage().data_ptr() for parameter in network.parameters()}
    found: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        logits = network(*inputs_of(config))
    assert logits.requires_grad
    return sum(found.values()) / size.BYTES


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", CHANGES)
def test_operations_are_those_that_torch_counts(name: str, length: int) -> None:
    config = config_of(name, length=length)
    if training_kernel(config.model, True, length).name in (
        "sdpa",
        "math",
    ):  # the counter does not know every fused one
        config = config_of(name, length=length, backend="reference")
    assert size.training_flops_per_token(config.model, VOCABULARY, ROWS) == pytest.approx(counted(config), rel=1e-3)


@pytest.mark.parametrize("lengths", [(40, 40), (40, 24), (24, 40)])
def test_operations_of_an_encoder_decoder_are_those_that_torch_counts(lengths: tuple[int, int]) -> None:
    target, source = lengths
    data = presets.resolve(presets.find("copy")).dump()
    data["model"] |= {"context_length": target, "source_length": source, "backend": "reference", "n_kv_heads": 2}
    config = RunConfig.model_validate(data)
    assert size.training_flops_per_token(config.model, VOCABULARY) == pytest.approx(counted(config), rel=1e-3)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("name", "norm"), [*((name, None) for name in CHANGES), *(("rope", norm) for norm in NORMS)])
def test_the_account_of_what_is_kept_is_what_autograd_keeps(name, norm, length: int, dropout: float) -> None:
    rates = ["dropout", "attention_output_dropout", "embedding_dropout", "ff_dropout"]
    rates += ["attention_dropout"] if name in WEIGHTED else []
    config = config_of(name, length=length, **dict.fromkeys(rates, dropout), **NORMS.get(norm, {}))
    shape = size.BatchShape.from_config(config)
    assert size.saved_activation_numbers(config, shape) == pytest.approx(autograd_keeps(config), rel=0.08)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_account_of_what_each_activation_keeps_is_what_autograd_keeps(activation: str, dropout: float) -> None:
    config = config_of("rope", length=32, activation=activation, d_ff=512, ff_dropout=dropout)
    assert size.saved_activation_numbers(config, size.BatchShape.from_config(config)) == pytest.approx(
        autograd_keeps(config), rel=0.03
    )


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("part", PARTS_KEPT, ids=str)
@pytest.mark.parametrize("name", ["rope", "learned", "xl", "window", "kv1"])
def test_the_account_of_a_part_of_attention_is_what_autograd_keeps(name: str, part, dropout: float) -> None:
    config = config_of(name, length=128, attention_dropout=dropout, **part)
    assert size.saved_activation_numbers(config, size.BatchShape.from_config(config)) == pytest.approx(
        autograd_keeps(config), rel=0.1
    )


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize(
    "change",
    [
        {"norm_placement": "sandwich"},
        {"parallel": True},
        {"layer_scale": 0.1},
        {"embedding_mix": True},
        {"layer_drop": 0.5},
        {"parallel": True, "layer_scale": 0.1, "embedding_mix": True, "layer_drop": 0.5},
    ],
    ids=str,
)
def test_the_account_of_what_a_layers_stream_keeps_is_what_autograd_keeps(change, dropout: float, norm: str) -> None:
    config = config_of("rope", length=32, d_ff=64, norm=norm, dropout=dropout, **change)
    assert size.saved_activation_numbers(config, size.BatchShape.from_config(config)) == pytest.approx(
        autograd_keeps(config), rel=0.02
    )


@pytest.mark.parametrize("part", [{}, {"score_cap": 5.0}, {"sinks": True}], ids=str)
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("length", [20, 128, 1500])
@pytest.mark.parametrize("name", WEIGHTED)
def test_the_kernel_that_is_counted_is_the_one_that_is_chosen(name, length, dropout, padded, part) -> None:
    config = config_of(name, length=length, attention_dropout=dropout, **part)
    attention = build_model(config.model, VOCABULARY, 1).layers[0].get_submodule("attention")
    assert isinstance(attention, SelfAttention)
    real = torch.arange(length)[None] < torch.tensor([[length], [length - 3]])
    at = Positions.of_tokens(real, one_side=True) if padded else Positions.consecutive(length)
    heads = torch.empty(2, config.model.n_heads, length, config.model.head_width)
    found = training_kernel(config.model, True, length, padded=padded).name
    assert {"math": "sdpa"}.get(found, found) == attention.kernel_name(heads, at)


def test_an_attention_without_a_kernel_is_counted_as_written_out(monkeypatch) -> None:
    row = Attention(**vars(ATTENTIONS["window"]) | {"backends": ("auto", "reference")})
    monkeypatch.setitem(ATTENTIONS, "window", row)
    for length in (20, 1500):
        for dropout in (0.0, 0.1):
            config = config_of("window", length=length, attention_dropout=dropout)
            assert training_kernel(config.model, True, length).name == "reference"
            assert training_kernel(config.model, True, length, gpu=True).name == "reference"


def test_the_largest_batch_of_rows_is_what_memory_is_estimated_for() -> None:
    config = RunConfig.model_validate(presets.resolve(presets.find("phrasebook")).dump())
    upper = size.memory_bytes(config, 2000)
    assert size.memory_bytes(config, 2000, size.BatchShape(16, 32, 32)) < upper
    assert size.memory_bytes(config, 2000, size.BatchShape.from_config(config)) == upper


def test_checkpointing_keeps_less_and_a_gpu_has_no_slack() -> None:
    config = config_of("rope", length=128)
    data = config.dump()
    data["train"]["activation_checkpointing"] = True
    shape = size.BatchShape.from_config(config)
    assert size.saved_activation_numbers(RunConfig.model_validate(data), shape) < 0.7 * size.saved_activation_numbers(
        config, shape
    )
    assert size.memory_bytes(config, 65, gpu=True) - size.WORKSPACES[False] < size.memory_bytes(config, 65)


WITHIN = 0.25
QUICK = {  # less text, which does not count: the same network on batches of the same size; the others: below
    "xl@demo": {"data": {"corpus_size": 50_000}},
    "phrasebook": {"data": {"corpus_size": 3_000}, "model": {"vocab_size": 2003}},
}


def measured(name: str, **given: object) -> float:
    """The estimate's share of a measured peak. On a busy machine freed blocks are used again in another order, and a
    peak may be a third higher: then it is measured again.
    """
    preset, _, base = name.partition("@")
    for _ in range(3):
        found = measure_training_peak(presets.resolve(presets.find(preset), on=base or None, **given))
        if found.estimate_over_measured is None:
            pytest.skip("resident memory cannot be asked here")
        if found.estimate_over_measured > 1 - WITHIN:
            break
    return found.estimate_over_measured


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", QUICK)
def test_the_estimate_is_near_the_measured_peak(name: str) -> None:
    assert measured(name, overrides=[QUICK[name]]) == pytest.approx(1.0, abs=WITHIN)


@pytest.mark.slow
@pytest.mark.parametrize("preset", presets.list_presets(), ids=lambda preset: preset.name)
def test_the_estimate_of_every_preset_is_near_the_measured_peak(preset: presets.Preset) -> None:
    assert measured(preset.name) == pytest.approx(1.0, abs=WITHIN)
    if preset.extends is not None and presets.extends_chain(preset)[0].name == "baseline":
        assert measured(f"{preset.name}@demo") == pytest.approx(1.0, abs=WITHIN)
