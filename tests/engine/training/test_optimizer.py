import math

import pytest
import torch

from engine.config import presets
from engine.config.schema import RunConfig
from engine.config.schemes import learning_rate
from engine.config.sections import OptimizerConfig
from engine.model.transformer import NETWORKS, build_model
from engine.runs.reader import RunReader
from engine.training.assemble import assemble
from engine.training.optimizer import DECAYED, decay_groups, make_optimizer, orthogonalise
from engine.training.self_check import is_decayed
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
    model.extra = torch.nn.Bilinear(2, 2, 2)
    with pytest.raises(ValueError, match="no decay group covers"):
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
    with pytest.raises(ValueError, match="not been resolved"):
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


def test_every_parameter_of_every_network_has_a_decay_group() -> None:
    for cell in cells():
        with torch.device("meta"):  # names and shapes are enough
            model = NETWORKS[cell.model.architecture](cell.model, VOCAB)
        groups = decay_groups(model, "matrices")
        assert sorted(groups["decayed"] + groups["plain"]) == sorted(n for n, _ in model.named_parameters()), name(cell)
        for plain in groups["decayed"]:
            assert not plain.endswith("bias"), (name(cell), plain)
            assert not any(part in plain for part in ("norm", "positions", "scheme")), (name(cell), plain)
        for which in DECAYED:
            found = {n for n, weight in model.named_parameters() if is_decayed(which, n, weight)}
            assert found == set(decay_groups(model, which)["decayed"]), (name(cell), which)


def test_nanogpts_decay_takes_all_of_two_dimensions_or_more_and_nothing_else() -> None:
    config = presets.resolve(presets.find("nanogpt"))
    small = RunConfig.model_validate(config.miniature().dump())
    model = build_model(small.model, 65, 1)
    found = decay_groups(model, config.optimizer.decay)
    dimensions = {name: parameter.dim() for name, parameter in model.named_parameters()}
    assert "positions.table.weight" in found["decayed"]
    assert {name for name, n in dimensions.items() if n >= 2} == set(found["decayed"])


def stepped(tiny, optimizer: OptimizerConfig, *changes: str, steps: int = 2, dtype=torch.float64):
    """A network before and after steps of an optimizer over fixed gradients, and the optimizer."""
    model = build_model(tiny(*changes).model, 11, 1).to(dtype)
    made, before = make_optimizer(model, optimizer), {n: p.detach().clone() for n, p in model.named_parameters()}
    draw = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=draw, dtype=dtype)
    for group in made.param_groups:
        group["lr"] = optimizer.lr * group["scale"]
    for _ in range(steps):
        made.step()
    return model, before, made


def newton_schulz(x: torch.Tensor) -> torch.Tensor:
    """Through singular values, to which alone the iteration applies its polynomial."""
    u, s, v = torch.linalg.svd(x, full_matrices=False)
    s = s / s.norm()
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return u @ torch.diag(s) @ v


@pytest.mark.parametrize("shape", [(16, 16), (8, 40), (40, 8), (1, 7)], ids=str)
def test_an_orthogonalised_matrix_has_singular_values_near_one_and_the_same_singular_vectors(shape) -> None:
    x = torch.randn(3, *shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = orthogonalise(x)
    assert (found - torch.stack([newton_schulz(one) for one in x])).abs().max() < 1e-10
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.6 and values.max() < 1.3
    assert not orthogonalise(torch.zeros(1, 4, 4)).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_rounding_does_not_blow_up_a_matrix_of_low_rank(dtype) -> None:
    """As most gradients are: a few large singular values, and many small ones."""
    draw = torch.Generator().manual_seed(0)
    low = torch.randn(2, 64, 8, generator=draw) @ torch.randn(2, 8, 256, generator=draw)
    found = orthogonalise((low + 1e-3 * torch.randn(2, 64, 256, generator=draw)).to(dtype))
    assert torch.linalg.svdvals(found.float()).max() < 1.3


@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("changes", [(), ("model.n_kv_heads=1", "model.activation=swiglu")], ids=["", "joined"])
def test_muon_equals_a_written_out_step(tiny, nesterov: bool, changes) -> None:
    """To 1e-6; queries, keys and values, and a gate and its values, are matrices of their own."""
    config = OptimizerConfig(kind="muon", lr=0.01, weight_decay=0.1, nesterov=nesterov)
    model, before, _ = stepped(tiny, config, *changes)
    width, shared, ff = model.config.d_model, model.config.kv_width, model.config.d_ff
    maps = {"query_key_value": [width, shared, shared], "expand": [ff] * (1 + bool(changes))}
    for of, weight in model.named_parameters():
        if "layers." not in of or weight.dim() != 2:
            continue
        expected, moment, g = before[of], torch.zeros_like(weight), weight.grad
        for _ in range(2):
            moment = 0.95 * moment + 0.05 * g
            aim = 0.95 * moment + 0.05 * g if nesterov else moment
            parts = aim.split(maps.get(of.split(".")[-2], [len(aim)]))
            update = torch.cat([0.2 * max(part.shape) ** 0.5 * newton_schulz(part) for part in parts])
            expected = expected - 0.01 * (update + 0.1 * expected)
        assert (weight - expected).abs().max() < 1e-6 * 0.01, of


def test_muon_is_torchs_own_but_for_bf16_and_adamw_on_the_rest(tiny) -> None:
    config = OptimizerConfig(kind="muon", lr=0.01, weight_decay=0.1)
    model, before, _ = stepped(tiny, config, dtype=torch.float32, steps=3)
    for of, weight in model.named_parameters():
        mine = weight.detach()
        theirs = torch.nn.Parameter(before[of].clone())
        theirs.grad = weight.grad.clone()
        matrix = "layers." in of and weight.dim() == 2
        decay = 0.1 if weight.dim() == 2 else 0.0
        if not matrix:
            other = torch.optim.AdamW([theirs], lr=0.01, betas=config.betas, eps=config.eps, weight_decay=decay)
        elif "query_key_value" in of:
            continue  # torch's would take all three as one
        else:
            other = torch.optim.Muon([theirs], lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
        for _ in range(3):
            other.step()
        moved = (mine - before[of]).norm()
        assert (mine - theirs.detach()).norm() < (0.03 if matrix else 1e-5) * moved, of


@pytest.mark.parametrize("kind", ["adamw", "adam", "muon", "lion", "sgd"])
def test_where_a_step_is_not_finite_nothing_changes_on_the_device(tiny, kind: str) -> None:
    model, _, optimizer = stepped(tiny, OptimizerConfig(kind=kind, lr=0.01), dtype=torch.float32)
    weights = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    state = {(p, key): value.clone() for p, kept in optimizer.state.items() for key, value in kept.items()}
    for found in (1.0, 0.0):
        for parameter in model.parameters():
            parameter.grad.fill_(float("nan") if found else 1.0)
        optimizer.found_inf = torch.tensor(found)
        optimizer.step()
        unchanged = [torch.equal(parameter, weights[name]) for name, parameter in model.named_parameters()]
        unchanged += [
            torch.equal(value, state[p, key]) for p, kept in optimizer.state.items() for key, value in kept.items()
        ]
        assert all(unchanged) if found else not any(unchanged)


@pytest.mark.parametrize("kind", ["adamw", "muon", "sgd"])
def test_a_part_of_the_network_may_have_a_rate_of_its_own(tiny, kind: str) -> None:
    rates = {"matrix_lr": 0.02, "embedding_lr": 0.03, "head_lr": 0.0}
    config = OptimizerConfig(kind=kind, lr=0.01, weight_decay=0.0)
    usual, before, _ = stepped(tiny, config, steps=1)
    found, _, _ = stepped(tiny, config.model_copy(update=rates), steps=1)
    theirs = dict(usual.named_parameters())
    for of, weight in found.named_parameters():
        matrix = "layers." in of and weight.dim() == 2
        times = 2 if matrix else 3 if "embedding" in of else 0 if of.startswith("head.") else 1
        assert torch.allclose(weight - before[of], times * (theirs[of] - before[of]), rtol=1e-9, atol=1e-15), of


def test_groups_are_divided_only_where_something_is_set(tiny) -> None:
    model = build_model(tiny().model, 11, 1)
    assert [group["name"] for group in make_optimizer(model, OptimizerConfig()).param_groups] == ["decayed", "plain"]
    divided = make_optimizer(model, OptimizerConfig(head_lr=1e-4)).param_groups
    assert [group["name"] for group in divided] == ["decayed", "decayed head", "plain"]
    assert sum(len(group["params"]) for group in divided) == len(list(model.parameters()))


def test_a_rate_of_its_own_needs_one_to_be_in_proportion_to() -> None:
    with pytest.raises(ValueError, match="matrix_lr follows the schedule in proportion to lr"):
        OptimizerConfig(lr=0.0, matrix_lr=0.01)


COPYING = ("model.architecture=encoder-decoder", "objective.kind=copy", "model.source_length=8")
RATES = ("optimizer.matrix_lr=0.02", "optimizer.embedding_lr=0.005", "optimizer.head_lr=0.0")


@pytest.mark.parametrize(
    "changes",
    [
        ("model.activation=swiglu", "model.n_kv_heads=1", "model.position=xl", *RATES),
        (*COPYING, "model.position=learned", "optimizer.decay=all", *RATES),
        ("model.tie_embeddings=true", "model.head_bias=true", "model.gate=head", "model.qk_norm=before", *RATES),
    ],
    ids=["joined", "copying", "tied"],
)
@pytest.mark.parametrize("kind", ["muon", "lion"])
def test_the_self_check_knows_the_groups_of_any_network(tiny, tmp_path, kind: str, changes: tuple[str, ...]) -> None:
    config = tiny(f"optimizer.kind={kind}", "optimizer.weight_decay=0.1", "train.steps=1", *changes)
    ready = assemble(config, runs_dir=tmp_path, name="run", device="cpu")
    assert ready.trainer.run().state == "finished"
    assert not [verdict for verdict in RunReader(ready.path).verdicts if verdict.verdict != "ok"]
