"""What is special about the parts that change what a layer adds to its stream."""

import pytest
import torch

from engine.model.dropout import RowDropout
from engine.model.transformer import Network, build_model
from engine.runs.reader import RunReader
from engine.runs.verdict import OK
from engine.training.assemble import assemble
from engine.training.optimizer import decay_groups

VOCAB, DEPTH = 50, 4


def network(tiny, *changes: str) -> Network:
    return build_model(tiny(f"model.n_layers={DEPTH}", *changes).model, VOCAB, 1).double().eval()


def tokens(rows: int) -> torch.Tensor:
    return torch.randint(VOCAB, (rows, 12), generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize(
    "changes",
    [
        ("model.zero_init=outputs",),
        ("model.zero_init=outputs-and-head", "train.clip=0.5"),
        ("model.norm_placement=sandwich",),
        ("model.parallel=true",),
        ("model.layer_scale=1e-5", "model.embedding_mix=true", "model.layer_drop=0.3"),
        ("model.layer_drop=0.3", "model.n_layers=1", "train.batch_size=1", "train.accumulation=2"),
    ],
    ids=str,
)
def test_a_run_passes_its_own_checks(tiny, tmp_path, changes) -> None:
    ready = assemble(tiny("train.steps=4", *changes), runs_dir=tmp_path, name="run", device="cpu")
    assert ready.trainer.run().state == "finished"
    verdicts = RunReader(ready.path).verdicts
    assert len(verdicts) > 8
    assert [verdict.why for verdict in verdicts if verdict.verdict != OK and verdict.when == "before"] == []


def test_a_layer_is_dropped_more_often_the_later_it_is(tiny) -> None:
    model = network(tiny, "model.layer_drop=0.4")
    rates = [[part.p for part in layer.modules() if isinstance(part, RowDropout)] for layer in model.stacks[0].layers]
    assert rates == [[pytest.approx(0.4 * depth / DEPTH)] * 2 for depth in range(1, DEPTH + 1)]  # Huang et al., eq. 4


def test_rows_lose_a_whole_part_and_the_mean_stays() -> None:
    drop, x = RowDropout(0.25), torch.ones(20_000, 2, 3, dtype=torch.float64)
    torch.manual_seed(1)
    found = drop(x)
    assert set(found.unique().tolist()) == {0.0, 4 / 3} and (found.amax((1, 2)) == found.amin((1, 2))).all()
    assert found.mean().item() == pytest.approx(1.0, abs=0.01)
    torch.manual_seed(1)
    assert torch.equal(drop(x), found)
    assert torch.equal(drop.eval()(x), x)


def test_a_network_is_evaluated_whole_however_it_was_trained(tiny) -> None:
    plain, dropping = network(tiny), network(tiny, "model.layer_drop=0.4")
    assert torch.equal(plain(tokens(3)), dropping(tokens(3)))
    dropping.load_state_dict(plain.state_dict())  # no parameters of its own


def test_a_network_mixes_in_nothing_at_first(tiny) -> None:
    plain, mixing = network(tiny), network(tiny, "model.embedding_mix=true")
    assert torch.equal(plain(tokens(3)), mixing(tokens(3)))
    weights = dict(mixing.named_parameters())
    assert weights["layers.1.mix.weight"].tolist() == [1.0, 0.0]


def test_a_layer_scale_begins_as_set(tiny) -> None:
    weights = dict(network(tiny, "model.layer_scale=0.1").named_parameters())
    gains = {name: gain for name, gain in weights.items() if name.endswith("scale.weight")}
    assert len(gains) == 2 * DEPTH and all(torch.allclose(gain, torch.tensor(0.1).double()) for gain in gains.values())


def test_recomputing_layers_changes_no_gradient(tiny) -> None:
    found = []
    for again in (False, True):
        model = network(tiny, "model.layer_drop=0.4", "model.layer_scale=0.1", "model.embedding_mix=true").train()
        model.stacks[0].checkpointing = again
        torch.manual_seed(3)
        model(tokens(4)).square().sum().backward()
        found.append([parameter.grad for parameter in model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_gains_do_not_decay_unless_all_do(tiny) -> None:
    model = network(tiny, "model.layer_scale=0.1", "model.embedding_mix=true")
    mine = [name for name, _ in model.named_parameters() if "_after.scale" in name or ".mix." in name]
    assert len(mine) == 3 * DEPTH
    assert set(mine) <= set(decay_groups(model, "matrices")["plain"])
    assert set(mine) <= set(decay_groups(model, "all")["decayed"])


@pytest.mark.parametrize("residual", [True, False])
def test_in_parallel_no_part_reads_the_other(tiny, residual: bool) -> None:
    model = network(tiny, "model.parallel=true", f"model.residual={str(residual).lower()}")
    read: dict[str, torch.Tensor] = {}
    for name, part in model.named_modules():
        part.register_forward_pre_hook(lambda _, given, name=name: read.update({name: given[0]}))
    model(tokens(2))
    for i in range(DEPTH):
        stream = read[f"layers.{i}"]
        assert torch.equal(read[f"layers.{i}.attention_norm"], stream)
        assert torch.equal(read[f"layers.{i}.feed_forward_norm"], stream)
