"""Random choices in an evaluation do not depend on the run's seed: runs with different seeds are asked the same."""

import pytest

from engine.model.transformer import build_model
from engine.runs.reader import RunReader
from engine.tasks.task import make_task
from engine.training.assemble import assemble

ENCODER = ("model.architecture=encoder", "objective.kind=masked")


@pytest.mark.parametrize("changes", [ENCODER, ("evaluation.nanogpt_batches=2",)], ids=["masked", "nanogpt"])
def test_runs_of_two_seeds_are_asked_the_same(changes, tiny) -> None:
    records = []
    for seed in (1, 2):
        config = tiny(*changes, f"seed={seed}")
        task = make_task(config, None)
        config = task.resolve_config(config, "", 1)
        one_model = build_model(config.model, config.min_vocab_size(task.vocab_size), 7)
        records.append(task.scorer(config, next(one_model.parameters()).device).score_model(one_model).dump())
    assert records[0] == records[1]


def test_an_older_run_keeps_the_questions_of_its_own_seed(tiny, tmp_path) -> None:
    config = tiny(*ENCODER, "seed=5")
    ready = assemble(config, runs_dir=tmp_path, name="run", device="cpu")
    kept = ready.path / "config.toml"
    assert RunReader(ready.path).config.evaluation.seed == 1
    lines = kept.read_text().splitlines()
    at = lines.index("[evaluation]")
    rest = [line for line in lines[at:] if not line.startswith("seed =")]
    kept.write_text("\n".join([*lines[:at], *rest]) + "\n")
    assert RunReader(ready.path).config.evaluation.seed == 5
    ready.trainer.writer.release_lock()
