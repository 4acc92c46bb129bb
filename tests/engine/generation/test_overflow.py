"""A founding report's samples all break at character 128 of 306, where the trained context ends: replayed small."""

import numpy as np
import pytest
import torch

from engine.config.schema import RunConfig
from engine.evaluation.metrics import score_tokens
from engine.generation.sampling import Sampling, stream_tokens
from engine.model.decoding import Predictor
from engine.training.assemble import assemble

CONTEXT, ASKED = 32, 154
CONFIG = RunConfig.model_validate(
    {
        "model": {"n_layers": 2, "d_model": 64, "n_heads": 4, "context_length": CONTEXT, "dropout": 0.0},
        "data": {"corpus_size": 100_000},
        "train": {"steps": 200, "batch_size": 16, "threads": 1},
        "optimizer": {"lr": 3e-3, "betas": [0.9, 0.95], "warmup": 30},
        "evaluation": {"every": 0, "sample_every": 0, "sample_length": 0},
        "checkpoint": {"every": 0},
    }
)


@pytest.mark.usefixtures("no_self_check")
def test_text_past_the_context_falls_apart_without_the_rule_and_not_with_it(tmp_path) -> None:
    trainer = assemble(CONFIG, runs_dir=tmp_path, device="cpu").trainer
    trainer.run()
    model = trainer.model.eval()

    def strangeness(text: list[int]) -> np.ndarray:
        """Nats a character under the model itself, read in windows it was trained for."""
        return score_tokens(model, torch.tensor(text), context=CONTEXT, stride=CONTEXT // 2, batch_size=64).nll

    prompt = trainer.scorer.tokens[:8].long()
    change = {}
    for rule, context in (("restart", CONTEXT), ("none", 10**6)):
        before, after = [], []
        for seed in range(4):
            drawn = stream_tokens(Predictor(model), prompt, ASKED, Sampling(0.8, 40), seed, context=context)
            values = strangeness(prompt.tolist() + [d.token for d in drawn])
            before.append(values[: CONTEXT - 10].mean())
            after.append(values[CONTEXT:].mean())
        change[rule] = np.mean(after) - np.mean(before)
    assert change["restart"] < 0.3 and change["none"] > 1.0, change
