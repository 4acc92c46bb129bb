import math

import pytest
import torch

from engine.config import presets
from engine.config.schema import RunConfig
from engine.config.sections import OptimizerConfig
from engine.model.transformer import build_model
from engine.training.optimizer import decay_groups, learning_rate, make_optimizer
from tests.engine.model.cells import VOCAB, cells, name


def groups(tiny, decay: str) -> dict[str, list[str]]:
    changes = ("model.position=learned", "model.head_bias=true")
    return decay_groups(build_model(tiny(*changes).model, 11, 1), decay)


def test_matrices_leaves_biases_norms_and_position_tables_alone(tiny) -> None:
    found = groups(tiny, "matrices")
    assert "token_embedding.weight" in found["decayed"] and "head.weight" in found["decayed"]
    assert not [n for n in found["decayed"] if n.endswith("bias") or "norm" in n or "positions" in n]


def test_linear_weights_leaves_embeddings_alone_too(tiny) -> None:
    found = groups(tiny, "linear-weights")
    assert "token_embedding.weight" in found["plain"] and "head.weight" in found["decayed"]


def test_all_means_all(tiny) -> None:
    assert groups(tiny, "all")["plain"] == []


def test_tied_weights_are_in_one_group_once(tiny) -> None:
    model = build_model(tiny("model.tie_embeddings=true").model, 11, 1)
    names = [name for group in decay_groups(model, "matrices").values() for name in group]
    assert len(names) == len(set(names)) == len(list(model.parameters()))


def test_a_parameter_nobody_classified_is_an_error(tiny) -> None:
    model = build_model(tiny().model, 11, 1)
    model.extra = torch.nn.PReLU()
    with pytest.raises(ValueError, match="no decay group knows"):
        decay_groups(model, "matrices")


def test_decay_is_applied_to_its_group_only(tiny) -> None:
    model = build_model(tiny().model, 11, 1)
    optimizer = make_optimizer(model, OptimizerConfig(lr=0.1, weight_decay=0.5))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    after = dict(model.named_parameters())
    assert torch.allclose(after["head.weight"], before["head.weight"] * 0.95)
    assert torch.equal(after["final_norm.weight"], before["final_norm.weight"])


def rate(step: int, **changes) -> float:
    return learning_rate(OptimizerConfig(lr=1.0, **changes), step, 1000)


def test_warm_up_is_linear_and_reaches_the_rate() -> None:
    assert rate(1, warmup=100) == pytest.approx(0.01)
    assert rate(100, warmup=100) == pytest.approx(1.0)
    assert rate(1, warmup=0, schedule="constant") == 1.0


def test_cosine_ends_at_the_minimum_and_is_half_way_in_the_middle() -> None:
    assert rate(1000, warmup=100, min_lr=0.1) == pytest.approx(0.1)
    assert rate(550, warmup=100, min_lr=0.1) == pytest.approx(0.55)
    assert rate(5000, warmup=100, min_lr=0.1) == pytest.approx(0.1)
    assert rate(325, warmup=100) == pytest.approx(0.5 * (1 + math.cos(math.pi / 4)))


def test_step_schedule_decays_by_its_factor_every_interval() -> None:
    rates = [rate(s, warmup=0, schedule="step", decay_every=100, decay_factor=0.5) for s in (1, 100, 101, 201)]
    assert rates == [1.0, 1.0, 0.5, 0.25]


def test_a_rate_held_for_an_interval_is_a_scheduler_stepped_once_an_epoch() -> None:
    """torch's own CosineAnnealingLR over 30 epochs of 10 steps."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=3e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=30, eta_min=1e-6)
    config = OptimizerConfig(lr=3e-4, min_lr=1e-6, warmup=0, decay_every=10)
    for step in range(1, 301):
        assert learning_rate(config, step, 300) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9)
        optimizer.step()
        if step % 10 == 0:
            scheduler.step()


def test_a_cosine_may_be_longer_than_the_run() -> None:
    assert rate(1000, warmup=0, decay_over=2000) == pytest.approx(0.5)


def test_a_line_falls_to_the_minimum_at_the_end_or_at_decay_over() -> None:
    assert rate(1000, warmup=100, min_lr=0.1, schedule="linear") == pytest.approx(0.1)
    assert rate(550, warmup=100, min_lr=0.1, schedule="linear") == pytest.approx(0.55)
    assert rate(1000, warmup=0, decay_over=4000, schedule="linear") == pytest.approx(0.75)


def test_wsd_stays_until_its_decay_begins_and_ends_at_the_minimum() -> None:
    wsd = {"warmup": 100, "min_lr": 0.1, "schedule": "wsd"}
    assert [rate(step, **wsd) for step in (50, 100, 101, 799, 800)] == pytest.approx([0.5, 1.0, 1.0, 1.0, 1.0])
    assert rate(900, **wsd) == pytest.approx(0.55) and rate(1000, **wsd) == pytest.approx(0.1)
    assert rate(750, **wsd, decay_from=0.5) == pytest.approx(0.55)
    assert rate(550, **wsd, decay_from=0.0) == pytest.approx(rate(550, **wsd | {"schedule": "linear"}))
    assert rate(2000, **wsd) == pytest.approx(0.1)


def test_durations_must_be_resolved_first() -> None:
    with pytest.raises(ValueError, match="not resolved"):
        rate(1, warmup="5 epochs")


def test_adam_couples_its_decay_into_the_gradient(tiny) -> None:
    """With no gradient, coupled decay moves a weight by about lr; decoupled by lr · decay · weight."""
    model = build_model(tiny().model, 11, 1)
    optimizer = make_optimizer(model, OptimizerConfig(kind="adam", lr=0.01, weight_decay=0.5))
    before = model.head.weight.detach().clone()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    change = (model.head.weight - before).abs()
    assert change.median().item() == pytest.approx(0.01, rel=1e-2)


@pytest.mark.parametrize("cell", cells(), ids=name)
def test_every_parameter_of_every_network_has_a_decay_group(cell) -> None:
    model = build_model(cell.model, VOCAB, 1)
    groups = decay_groups(model, "matrices")
    assert sorted(groups["decayed"] + groups["plain"]) == sorted(n for n, _ in model.named_parameters())
    for plain in groups["decayed"]:
        assert not plain.endswith("bias") and "norm" not in plain and "positions" not in plain and "scheme" not in plain


def test_nanogpts_decay_takes_all_of_two_dimensions_or_more_and_nothing_else() -> None:
    config = presets.resolve(presets.find("nanogpt"))
    small = RunConfig.model_validate(config.miniature().dump())
    model = build_model(small.model, 65, 1)
    found = decay_groups(model, config.optimizer.decay)
    dimensions = {name: parameter.dim() for name, parameter in model.named_parameters()}
    assert "positions.table.weight" in found["decayed"]
    assert {name for name, n in dimensions.items() if n >= 2} == set(found["decayed"])
