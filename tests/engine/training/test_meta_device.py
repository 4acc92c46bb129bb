"""Every network on torch's `meta` device: no tensor of a training step or of decoding is made on another device.

Nothing is computed there, so the presets are tried at their full size. Not tried here, but on the fake card of
`test_fake_card`: the batches of rows, which numpy makes on the host; the update, since torch has no fused kernel for
it on `meta`; bf16, since torch has no autocast there.
"""

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import get_args

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from engine import capabilities
from engine.base.errors import InputError
from engine.config import presets
from engine.config.model import ModelConfig
from engine.config.schema import RunConfig
from engine.data.objectives import Batch
from engine.model import dropout, positions
from engine.model.attention import AttentionCall
from engine.model.decoding import Predictor
from engine.model.positions import Learned, Positions, Sinusoidal
from engine.model.size import BatchShape
from engine.model.transformer import NETWORKS, Network, SkipInit
from engine.training.step import Stepper
from tests.engine.model.cells import cells, name, some_of
from tests.fake_card import OneDevice, WrongDevice

VOCABULARY = 100
BACKENDS = get_args(ModelConfig.model_fields["backend"].annotation)
PRESETS = [preset.name for preset in presets.list_presets()]
NETWORKS_OF_THE_GRID = some_of(cells())


@pytest.fixture(autouse=True)
def no_autocast(monkeypatch) -> None:
    """Linear and banded attention switch it off where it is on; torch refuses even that for `meta`."""
    monkeypatch.setattr(torch, "autocast", lambda kind, **settings: nullcontext())


def made(config: RunConfig) -> Network:
    """The network at its full size, without numbers."""
    with torch.device("meta"), SkipInit():
        return NETWORKS[config.model.architecture](config.model, config.model.vocab_size or VOCABULARY)


def tokens(*shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.int64, device="meta")


def batch_of(config: RunConfig) -> Batch:
    """Its largest batch; rows of like length are padded, windows of a text are not."""
    shape = BatchShape.from_config(config)
    asked = tokens(shape.rows, shape.target)
    if not shape.source:
        return Batch(asked, asked, asked.numel())
    at = Positions(tokens(shape.rows, shape.source), one_sided_padding=True) if config.trains_on_rows else None
    return Batch(asked, asked, asked.numel(), tokens(shape.rows, shape.source), at)


def train(config: RunConfig) -> None:
    """A training step up to the update: forward, loss, backward, clipping, whether it is a number."""
    model, batch = made(config), batch_of(config)
    batches = SimpleNamespace(batch=lambda step, micro: batch, objective=SimpleNamespace(vocab_size=VOCABULARY // 2))
    stepper = Stepper(config, model, batches, deferred=True)
    stepper.optimizer.step = lambda: None
    with OneDevice("meta"):
        taken = stepper.step(1)
    assert taken.norm.device.type == "meta"
    assert all(p.grad is not None for p in model.parameters() if p.numel())


def decode(config: RunConfig) -> None:
    """Three tokens at once, then two alone; with tables, and layer by layer."""
    model = made(config).eval()
    with OneDevice("meta"), torch.no_grad():
        if not model.has_cache:
            return
        cache = model.new_cache(0, tokens(2, 5))
        for length in (3, 1, 1):
            assert model.decode(tokens(2, length), cache).shape[:2] == (2, length)
        predictor = Predictor(model, tokens(2, 5))
        predictor.begin(8)
        for length in (3, 1, 1):
            assert predictor.feed(tokens(2, length)).shape[0] == 2


def resolved(config: RunConfig) -> RunConfig:
    """With durations in steps, as `Stepper` wants them."""
    known = config.model.vocab_size or VOCABULARY
    return config.resolved(vocab_size=known, threads=1, train_tokens=10**6)


@pytest.mark.one_in(12)
@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_at_full_size_makes_no_tensor_on_another_device(preset: str) -> None:
    config = resolved(presets.resolve(presets.find(preset)))
    train(config)
    decode(config)


@pytest.mark.one_in(12)
@pytest.mark.parametrize("cell", [pytest.param(cell, id=name(cell)) for cell in NETWORKS_OF_THE_GRID])
def test_every_network_makes_no_tensor_on_another_device_with_any_backend(cell: RunConfig) -> None:
    config, tried = resolved(cell), 0
    decode(config)
    for backend in BACKENDS:
        try:
            wanted = capabilities.with_value(config, "model.backend", backend)
            capabilities.require_valid(wanted, "test")
            train(wanted)
        except (InputError, ValueError):  # not for this network
            continue
        tried += 1
    assert tried >= 2


@pytest.mark.parametrize(
    "preset",
    [
        pytest.param(name, marks=() if name == "rope" else pytest.mark.slow)
        for name in ("baseline", "gpt2-small", "rope", "alibi", "t5", "relative", "xl", "swiglu", "win16")
    ],
)
def test_a_step_for_a_card_is_one_graph_that_is_compiled_once(preset: str, monkeypatch) -> None:
    """On the CPU it is not: numpy draws its dropout masks."""
    model = made(resolved(presets.resolve(presets.find(preset)).miniature()))
    torch._dynamo.reset()
    forward = torch.compile(model, backend="eager", fullgraph=True)
    for step in range(4):
        forward(tokens(4, 16)).sum().backward()
        with torch.inference_mode():  # evaluation, with the same modules
            model.eval()(tokens(4, 16))
        model.train()
        monkeypatch.setattr(torch._dynamo.config, "error_on_recompile", step >= 1)


def a_mask_on_the_cpu(patch: pytest.MonkeyPatch) -> None:
    def visible(self: AttentionCall) -> Tensor:
        return torch.ones(self.q_at.length, self.k_at.length, dtype=torch.bool).tril()[None, None]

    patch.setattr(AttentionCall, "visible", visible)


def a_table_of_positions_that_is_no_buffer(patch: pytest.MonkeyPatch) -> None:
    table, embed = torch.ones(1, 4096, 256), Sinusoidal.embed

    def looked_up(self: Sinusoidal, pos: Tensor) -> Tensor:
        return table[:, : pos.shape[1], : self.d_model] if pos.dim() == 2 else embed(self, pos)

    patch.setattr(Sinusoidal, "embed", looked_up)


def positions_on_the_cpu(patch: pytest.MonkeyPatch) -> None:
    def run(length: int, start: int = 0, device: object = None) -> Positions:
        return Positions(torch.arange(start, start + length)[None], start)

    patch.setattr(positions.Positions, "consecutive", run)


def dropout_from_the_cpus_generator(patch: pytest.MonkeyPatch) -> None:
    def drop(x: Tensor, p: float) -> Tensor:
        return x * torch.empty_like(x).bernoulli_(1.0 - p, generator=torch.Generator())

    patch.setattr(dropout, "F", SimpleNamespace(dropout=drop))


def a_weight_that_stayed_behind(patch: pytest.MonkeyPatch) -> None:
    def embed(self: Learned, pos: Tensor) -> Tensor:
        return F.embedding(pos.clamp(min=0), torch.ones(self.table.weight.shape))

    patch.setattr(Learned, "embed", embed)


@pytest.mark.parametrize(
    ("plant", "preset"),
    [
        (a_mask_on_the_cpu, "sparse"),
        (a_table_of_positions_that_is_no_buffer, "baseline"),
        (positions_on_the_cpu, "rope"),
        (dropout_from_the_cpus_generator, "baseline"),
        (a_weight_that_stayed_behind, "gpt2-small"),
    ],
)
def test_a_planted_mistake_is_found(plant: Callable[[pytest.MonkeyPatch], None], preset: str, monkeypatch) -> None:
    plant(monkeypatch)
    with pytest.raises((WrongDevice, RuntimeError), match=r"(?i)device|generator|on cpu"):
        train(resolved(presets.resolve(presets.find(preset))))
