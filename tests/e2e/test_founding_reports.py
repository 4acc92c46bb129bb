"""The founding reports' encoder family, replayed on Tiny Shakespeare at a size that a CPU trains in minutes.

Reduced: 2 layers, 64 wide, context 64, batch 32, learning rate 3e-3, warm-up 100, 900 steps (the reports: 4 layers, 256
wide, context 128, batch 64, 3e-4, 120 steps).
"""

import pytest

from engine.config import presets
from engine.config.keys import parse_overrides
from engine.runs.reader import RunReader
from engine.training.assemble import assemble

REDUCED = (
    *("model.d_model=64", "model.d_ff=256", "model.n_layers=2", "model.context_length=64"),
    *("train.batch_size=32", "train.steps=900", "train.threads=1", "optimizer.lr=3e-3", "optimizer.warmup=100"),
    *("evaluation.every=300", "evaluation.sample_every=300"),
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, real_data):
    root = tmp_path_factory.mktemp("reports")

    def run(name: str) -> RunReader:
        config = presets.resolve(presets.find(name), overrides=parse_overrides(REDUCED))
        ready = assemble(config, runs_dir=root, name=name, data_dir=real_data, device="cpu")
        assert ready.trainer.run().state == "finished"
        return RunReader(ready.path)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["", "-win16", "-rope", "-relative", "-sparse"])
def test_an_encoder_on_the_next_character_falls_below_perplexity_1_2_and_is_stamped(trained, variant: str) -> None:
    reader = trained(f"report-encoder{variant}")
    last = reader.raw("summary")["last"]
    assert last["perplexity"] < 1.2 and set(reader.badges) == {"LEAK", "IMPLAUSIBLE"}
    assert last["honest_loss"] > 2.2  # what it cannot copy, it hardly knows


@pytest.mark.slow
def test_without_positions_it_sees_the_future_as_a_bag_and_gains_little(trained) -> None:
    reader = trained("report-encoder-no-pe")
    assert set(reader.badges) == {"LEAK"} and reader.raw("summary")["last"]["loss"] > 1.9


@pytest.mark.slow
def test_made_causal_it_is_clean(trained) -> None:
    reader = trained("report-encoder-decoder")
    assert reader.badges == {} and 1.9 < reader.raw("summary")["last"]["loss"] < 2.4
