"""Every legal cell of the capability table: no leak, cached = uncached, reference parity, counts, an effect."""

import pytest
import torch

from engine import capabilities
from engine.config.schema import RunConfig
from engine.evaluation.checks import leak_probe
from engine.model.size import parameter_count
from engine.model.transformer import build_model
from engine.training.trial import cache_parity, in_chunks

BASE = RunConfig.model_validate(
    {"model": {"n_layers": 2, "d_model": 16, "n_heads": 2, "d_ff": 24, "context_length": 20, "init_std": 0.2}}
)
CELLS = list(capabilities.legal_cells(BASE))
IDS = ["-".join(str(v) for v in (c.model.architecture, c.model.position, c.model.norm_placement)) for c in CELLS]
VOCAB = 13


@pytest.fixture(params=CELLS, ids=IDS)
def cell(request) -> RunConfig:
    return request.param


def tokens(length: int = 20) -> torch.Tensor:
    return torch.randint(VOCAB, (2, length), generator=torch.Generator().manual_seed(5))


def test_no_position_sees_its_future(cell) -> None:
    verdict = leak_probe(build_model(cell.model, VOCAB, 1), tokens(), VOCAB, when="before", step=0)
    assert verdict.verdict == "ok" and verdict.value == 0.0


def test_cached_logits_equal_full_logits(cell) -> None:
    verdict = cache_parity(cell, VOCAB, chunks=(1, 3, 20))
    assert verdict.verdict == "ok" and verdict.value <= 1e-10


def test_a_cache_whose_rows_are_reordered_follows_the_rows(cell) -> None:
    model = build_model(cell.model, VOCAB, 1).double().eval()
    rows = torch.tensor([1, 0])
    with torch.no_grad():
        cache = model.new_cache()
        model(tokens()[:, :7], cache=cache)
        cache.select(rows)
        after = model(tokens()[rows][:, 7:9], cache=cache)
        assert torch.allclose(after, model(tokens()[rows])[:, 7:9], atol=1e-10)


def test_the_fast_backend_equals_the_reference(cell) -> None:
    reference = capabilities.with_value(cell, "model.backend", "reference")
    models = [build_model(c.model, VOCAB, 1).double().eval() for c in (cell, reference)]
    out = [model(tokens()) for model in models]
    assert (out[0] - out[1]).abs().max() <= 1e-12
    for _model, logits in zip(models, out, strict=True):
        logits.square().sum().backward()
    gradients = [[p.grad for p in model.parameters()] for model in models]
    assert max((a - b).abs().max() for a, b in zip(*gradients, strict=True)) <= 1e-10


def test_size_counts_what_is_built(cell) -> None:
    for change in ({}, {"tie_embeddings": True}, {"head_bias": True, "bias": False}, {"final_norm": False}):
        model = cell.model.model_copy(update=change)
        built = build_model(model, VOCAB, 1)
        assert sum(p.numel() for p in built.parameters()) == parameter_count(model, VOCAB)


@pytest.mark.parametrize(
    "change",
    [
        {"activation": "relu"},
        {"activation": "gelu-tanh"},
        {"norm_eps": 1e-2},
        {"embedding_scale": True},
        {"n_heads": 1},
        {"n_layers": 1},
        {"init": "xavier"},
        {"init_std": 0.1},
        {"bias": False},
        {"final_norm": None},
    ],
    ids=lambda c: next(iter(c)),
)
def test_every_switch_changes_the_function_or_the_parameters(cell, change) -> None:
    change = {k: (not cell.model.final_norm if k == "final_norm" else v) for k, v in change.items()}
    before = build_model(cell.model, VOCAB, 1).eval()
    after = build_model(cell.model.model_copy(update=change), VOCAB, 1).eval()
    if parameter_count(before.config, VOCAB) == parameter_count(after.config, VOCAB):
        with torch.no_grad():
            assert (before(tokens()) - after(tokens())).abs().max() > 1e-7


def test_cells_differ_from_each_other() -> None:
    with torch.no_grad():
        logits = [build_model(c.model, VOCAB, 1).eval()(tokens()) for c in CELLS]
    for i, a in enumerate(logits):
        for b in logits[i + 1 :]:
            assert (a - b).abs().max() > 1e-6


@pytest.mark.parametrize("pairing", ["half", "adjacent"])
def test_rope_options_change_the_function(pairing: str) -> None:
    rope = capabilities.with_value(BASE, "model.position", "rope").model.model_copy(update={"rope_pairing": pairing})
    other = rope.model_copy(update={"rope_base": 100.0})
    with torch.no_grad():
        a, b = (build_model(m, VOCAB, 1).eval()(tokens()) for m in (rope, other))
    assert (a - b).abs().max() > 1e-6


def test_chunks_may_be_of_any_length() -> None:
    model = build_model(BASE.model, VOCAB, 1).double().eval()
    with torch.no_grad():
        assert (in_chunks(model, tokens(), [5, 1, 9, 5]) - model(tokens())).abs().max() <= 1e-10
