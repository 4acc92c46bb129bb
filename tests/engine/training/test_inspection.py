"""Planted bugs are each caught by a named check, in a whole run, and the clean model by none."""

import pytest
import torch

from engine.base.errors import InputError
from engine.config import presets
from engine.config.schema import RunConfig
from engine.data.objectives import Batch, make_objective
from engine.evaluation.checks import leak_probe, order_check
from engine.model import attention, positions, transformer
from engine.model.size import parameter_count
from engine.model.transformer import build_model
from engine.runs.reader import RunReader
from engine.tasks.text import MaskedObjective, NextTokenObjective
from engine.training.assemble import assemble
from engine.training.trial import switch_effect
from tests.engine.model import cells
from tests.engine.training.test_resume import miniature

pytestmark = pytest.mark.usefixtures("cached_corpora")

UNCHECKED = pytest.mark.usefixtures("no_self_check", "minimal_leak_probe")
VOCAB = 12


def run(config: RunConfig, root, name: str = "run"):
    ready = assemble(config, runs_dir=root, name=name, device="cpu")
    return ready.trainer.run(), RunReader(ready.path)


@pytest.mark.usefixtures("minimal_leak_probe")
def test_a_clean_run_wears_no_badge(tmp_path) -> None:
    for name in ("baseline", "encoder-mlm", "copy", "report-seq2seq-char-honest", "linear"):
        outcome, reader = run(miniature(name), tmp_path, name)
        assert outcome.state == "finished" and reader.badges == {}, (name, reader.badges)


def test_positions_indexed_by_batch_are_caught(tmp_path, monkeypatch) -> None:
    """`pe[:x.size(0)]` with batch-first input: every time step of a row gets the same vector."""

    def by_batch(self, pos):
        table = real(self, torch.arange(64)[None])[0]
        return table[:1].expand(pos.shape[1], -1)[None]

    real = positions.Sinusoidal.embed
    monkeypatch.setattr(positions.Sinusoidal, "embed", by_batch)
    _, reader = run(miniature("baseline"), tmp_path)
    assert set(reader.badges) == {"NO-ORDER", "BROKEN"}
    assert "indexed by batch" in reader.badges["NO-ORDER"]


@pytest.mark.parametrize(
    "name", ["baseline", "rope", "relative", "alibi", "t5", "xl", "learned-pe", "encoder-mlm", "copy"]
)
def test_right_positions_pass_the_order_check(name: str) -> None:
    result = order_check(build_model(miniature(name).model, VOCAB, 1), VOCAB)
    assert result is not None and result.status == "passed"


CHANGES = [{"position_init": "zero"}, {}, {"residual": False}, {"init_std": 0.002}, {"context_length": 3}]


def orders_are_told(changes: dict, grid: list[RunConfig]) -> None:
    for cell in grid:
        model = cell.model.model_copy(update=changes)
        result = order_check(build_model(model, VOCAB, 1), VOCAB)
        if model.position == "none":
            assert result is None
        else:
            assert result is not None and result.status == "passed", (cells.name(cell), changes, result)


def test_order_is_told_by_networks_with_every_position_and_attention() -> None:
    orders_are_told({"position_init": "zero"}, cells.some_of(cells.cells()))


@pytest.mark.slow
@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_order_is_told_by_every_network_that_has_positions(changes: dict) -> None:
    orders_are_told(changes, cells.cells())


def test_a_dropped_switch_is_inert_by_its_metrics_and_by_its_effect(tmp_path, monkeypatch) -> None:
    real = transformer.make_schemes

    def dropped(model, n_layers, longest, *, causal):
        return real(model.model_copy(update={"position": "sinusoidal"}), n_layers, longest, causal=causal)

    monkeypatch.setattr(transformer, "make_schemes", dropped)
    with_table, without = miniature("baseline"), miniature("no-pe")
    effects = switch_effect(without, with_table, VOCAB)
    assert [(v.verdict, "model.position" in v.why) for v in effects] == [("INERT", True)]
    run(with_table, tmp_path, "with")
    _, reader = run(without, tmp_path, "without")
    assert set(reader.badges) == {"INERT", "BROKEN"}
    assert "model.position sinusoidal → none" in reader.badges["INERT"] and "'with'" in reader.badges["INERT"]


@UNCHECKED
def test_switches_with_an_effect_and_plain_repeats_are_not_inert(tmp_path) -> None:
    _, first = run(miniature("baseline"), tmp_path, "a")
    for name, changes in (("b", ()), ("c", ("log.every=2",)), ("d", ("evaluation.patience=5",)), ("e", ("seed=2",))):
        _, reader = run(miniature("baseline", *changes), tmp_path, name)
        assert reader.badges == {}, name
    _, other = run(miniature("no-pe"), tmp_path, "f")
    assert other.badges == {} and other.raw("summary")["fingerprint"] != first.raw("summary")["fingerprint"]


def test_a_finite_mask_is_refused_before_the_first_step(tmp_path, monkeypatch) -> None:
    right = attention.AttentionCall.visible

    def soft(call):
        return (call.q @ call.k.transpose(-2, -1) * call.scale).masked_fill(~right(call), -8.0).softmax(-1)

    monkeypatch.setattr(attention, "attention_weights", soft)
    outcome, reader = run(miniature("baseline", "model.backend=reference"), tmp_path)
    assert outcome.state == "failed" and outcome.step == 0 and outcome.reason.startswith("LEAK before the first step")
    assert set(reader.badges) == {"LEAK"}


def test_a_swapped_shift_is_refused_before_the_first_step(tmp_path, monkeypatch) -> None:
    """Targets one earlier instead of one later: the answer stands in the input."""

    def swapped(self, windows, generator):
        return Batch(windows[:, 1:], windows[:, :-1], windows[:, 1:].numel())

    monkeypatch.setattr(NextTokenObjective, "batch", swapped)
    outcome, reader = run(miniature("baseline"), tmp_path)
    assert outcome.state == "failed" and set(reader.badges) == {"LEAK"}


def test_masks_that_show_what_they_hide_leak(monkeypatch) -> None:
    """The place of the mask token carries the answer in another way: here as the token after it."""
    real = MaskedObjective.batch

    def telling(self, windows, generator):
        made = real(self, windows, generator)
        hidden = (made.tokens == self.mask).roll(1, 1)
        tokens = torch.where(hidden, made.targets.roll(1, 1).clamp(min=0), made.tokens)
        return Batch(tokens, made.targets, made.n_targets)

    config = miniature("encoder-mlm")
    model = build_model(config.model, VOCAB + 1, 1)
    objective = make_objective(config, VOCAB)
    windows = torch.randint(VOCAB, (4, objective.window), generator=torch.Generator().manual_seed(1))
    assert leak_probe(model, objective, windows, VOCAB, when="before", step=0).verdict == "ok"
    monkeypatch.setattr(MaskedObjective, "batch", telling)
    assert leak_probe(model, objective, windows, VOCAB, when="before", step=0).verdict == "LEAK"


LEAKING = ["report-encoder", "report-seq2seq-char"]
LEAKING += [f"report-encoder-{variant}" for variant in ("no-pe", "win16", "sparse", "rope", "relative", "alibi")]


@UNCHECKED
@pytest.mark.parametrize("name", LEAKING)
def test_leaking_reports_are_refused_or_stamped(name: str, tmp_path) -> None:
    with pytest.raises(InputError, match=r"allow_leak=true to see it happen"):
        run(miniature(name, "train.allow_leak=false"), tmp_path)
    assert not any(tmp_path.iterdir())
    outcome, reader = run(miniature(name), tmp_path)
    assert outcome.state == "finished" and "LEAK" in reader.badges
    first = reader.verdicts[0]
    assert (first.check, first.when, first.step, first.verdict) == ("leak", "before", 0, "LEAK")


@pytest.mark.parametrize("name", ["report-encoder-decoder", "report-seq2seq-char-honest", "report-decoder"])
def test_honest_twins_are_clean(name: str, tmp_path) -> None:
    outcome, reader = run(miniature(name), tmp_path)
    assert outcome.state == "finished" and reader.badges == {}


@UNCHECKED
def test_the_honest_rest_of_a_copied_target_is_scored_apart(tmp_path) -> None:
    """Of the shifted target only the last place is not in the source; of an encoder's only the window's last."""
    for name in ("report-seq2seq-char", "report-encoder"):
        _, reader = run(miniature(name), tmp_path, name)
        record = reader.raw("summary")["last"]
        places = record["profile"]
        assert record["honest_loss"] == pytest.approx(places[-1])
    _, reader = run(miniature("baseline"), tmp_path, "baseline")
    assert "honest_loss" not in reader.raw("summary")["last"]


def test_every_report_preset_counts_as_reported() -> None:
    expected = {"report-encoder": 3_192_897, "report-encoder-relative": 3_192_897 + 1_020, "report-decoder": 3_192_897}
    expected |= {f"report-seq2seq-char{variant}": 242_242 for variant in ("", "-honest", "-no-pe")}
    expected |= {f"report-encoder-{v}": 3_192_897 for v in ("no-pe", "win16", "rope", "alibi", "sparse", "decoder")}
    for name, count in expected.items():
        assert parameter_count(presets.resolve(presets.find(name)).model, 65) == count, name


def test_a_crossover_is_the_length_from_which_it_stays_quicker() -> None:
    from engine.training.trial import crossover_length

    assert crossover_length([(64, 0.9), (128, 1.2), (256, 0.8), (512, 0.5)]) == 256
    assert crossover_length([(64, 0.9), (128, 0.8)]) == 64
    assert crossover_length([(64, 2.0), (128, 1.0)]) is None
