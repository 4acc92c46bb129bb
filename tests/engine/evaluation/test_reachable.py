"""The floor reachable in a window: a perfect model reaches it, and no honest model gets far below."""

import json
import math
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from engine.config.schema import RunConfig
from engine.config.sections import DataConfig
from engine.config.tasks import TASKS
from engine.data.catalogue import load_corpus
from engine.data.corpora import TextCorpus
from engine.data.splits import Split
from engine.data.synthetic import playlets
from engine.data.synthetic.playlets import window_filter
from engine.data.tokenizers import CharacterTokenizer
from engine.evaluation import reachable
from engine.evaluation.alarms import check_plausible
from engine.evaluation.metrics import scoring_windows
from engine.evaluation.reachable import reachable_floor
from engine.runs.reader import RunReader
from engine.runs.records import DataFacts, EvaluationScores
from engine.tasks.task import task_of_run
from engine.tasks.text import TextScorer, TextTask
from engine.training.checkpoint import load_network
from tests.trained_runs import cached_run
from tests.window_predictions import next_characters


class PerfectModel(nn.Module):
    """The generator's own distribution, given what the window shows, put in place of a network."""

    def __init__(self, tokenizer: CharacterTokenizer, confidence: float = 1.0) -> None:
        super().__init__()
        self.characters, self.confidence = tokenizer.characters, confidence

    def forward(self, tokens: Tensor) -> Tensor:
        reads, numbers = window_filter(), {c: i for i, c in enumerate(self.characters)}
        logits = torch.full((*tokens.shape, len(numbers)), -1e9)
        for b, row in enumerate(tokens.tolist()):
            belief = None
            for t, token in enumerate(row):
                character = self.characters[token]
                belief = reads.initial_beliefs[character][1] if belief is None else reads.advance(belief, character)[1]
                for following, p in next_characters(reads, belief).items():
                    logits[b, t, numbers[following]] = self.confidence * math.log(p)
        return logits


@cache
def corpus(seed: int = 1, size: int = 150_000) -> TextCorpus:
    return load_corpus(TextCorpus, DataConfig(corpus_seed=seed, corpus_size=size))


@cache
def perfect(context: int, stride: int | None = None, seed: int = 1, confidence: float = 1.0) -> dict:
    asked: dict = {"model": {"context_length": context}, "data": {"corpus_seed": seed, "corpus_size": 150_000}}
    config = RunConfig.model_validate(asked | ({} if stride is None else {"evaluation": {"stride": stride}}))
    split = corpus(seed).splits["validation"]
    tokenizer = CharacterTokenizer.from_texts(part.text for part in corpus(seed).splits.values())
    tokens = torch.from_numpy(tokenizer.encode(split.text))
    return TextScorer(config, split, tokens, tokenizer).score_model(PerfectModel(tokenizer, confidence)).dump()


@pytest.mark.parametrize("context", [64, 128, 256])
def test_a_perfect_model_has_no_excess_and_knows_all_that_its_window_shows(context: int) -> None:
    record = perfect(context)
    assert record["stride"] == context // 2
    assert record["excess"] == pytest.approx(0.0, abs=1e-6)
    assert set(record["probe_places"]) == set(record["probes"])
    certain = [name for name in record["probes"] if name != "bind"]
    # No counter stands within 64 characters of this text: no place, no score.
    assert {"rhyme", "bracket", "recall<110"} <= set(certain) and ("counter" in certain) == (context > 64)
    assert {name: record["probes"][name] for name in certain} == dict.fromkeys(certain, 1.0)


@pytest.mark.parametrize("context", [64, 128, 256])
def test_a_perfect_model_scores_the_expected_floor_of_another_text(context: int) -> None:
    stride = context // 2
    other = reachable_floor(corpus(2).splits["validation"], context, stride)
    own = reachable_floor(corpus().splits["validation"], context, stride)
    assert other is not None and own is not None
    assert abs(perfect(context)["loss"] - other.facts.nats_per_char) < 3 * math.hypot(own.facts.se, other.facts.se)


def test_what_a_perfect_model_knows_does_not_depend_on_the_stride() -> None:
    for name in ("rhyme", "bracket", "counter", "recall<110"):
        assert perfect(128, 32)["probes"][name] == perfect(128, 128)["probes"][name] == 1.0
    near, far = (perfect(128, stride)["probe_places"]["counter"] for stride in (32, 128))
    assert near > 1.3 * far > 0  # but it is asked less often


def test_less_of_the_past_is_shown_at_a_longer_stride_and_a_shorter_context() -> None:
    split = corpus().splits["validation"]
    floors = [reachable_floor(split, *asked) for asked in ((256, 64), (256, 128), (256, 256), (128, 128), (64, 64))]
    losses = [floor.facts.nats_per_char for floor in floors if floor is not None]
    assert split.floor_mean is not None
    assert [split.floor_mean[0], *losses] == sorted([split.floor_mean[0], *losses])


def test_the_floor_is_of_the_characters_that_are_scored() -> None:
    split = corpus(size=20_000).splits["validation"]
    found = reachable_floor(split, 64, 24)
    assert found is not None and np.isnan(found.nats[0]) and np.isfinite(found.nats[1:]).all()
    assert found.facts.nats_per_char == pytest.approx(found.nats[1:].mean())
    assert set(found.facts.dump()) == {"nats_per_char", "se", "luck", "context", "stride"}


def test_evenly_spaced_windows_represent_too_many_to_read(monkeypatch) -> None:
    split = corpus().splits["validation"]
    every = reachable_floor(split, 64, 8)
    monkeypatch.setattr(reachable, "MOST_READ", 30_000)
    some = reachable_floor(split, 64, 8)
    assert every is not None and some is not None
    read, of = some.facts.dump()["windows"]
    assert read < of / 3 and of == len(scoring_windows(len(split.text), 64, 8))
    assert some.facts.nats_per_char == pytest.approx(every.facts.nats_per_char, abs=3 * some.facts.se)
    known = np.isfinite(some.nats)
    assert known.sum() < len(known) / 2
    np.testing.assert_array_equal(some.nats[known], every.nats[known])


def test_a_floor_is_computed_once(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("TUI_TRANSFORMER_CACHE", str(tmp_path))
    split = corpus(size=20_000).splits["validation"]
    first = reachable_floor(split, 32, 16)
    monkeypatch.setattr(reachable, "_window_losses", lambda *_: pytest.fail("computed again"))
    second = reachable_floor(split, 32, 16)
    assert first is not None and second is not None
    np.testing.assert_array_equal(first.nats, second.nats)
    for file in tmp_path.rglob("*.npy"):
        file.write_bytes(file.read_bytes()[:-100] + bytes(100))  # damaged: made again
    monkeypatch.undo()
    monkeypatch.setenv("TUI_TRANSFORMER_CACHE", str(tmp_path))
    third = reachable_floor(split, 32, 16)
    assert third is not None and third.facts.nats_per_char == first.facts.nats_per_char


def test_a_text_that_was_not_generated_has_no_such_floor() -> None:
    assert reachable_floor(Split("to be or not to be"), 8, 4) is None


def verdict_of(record: dict, floor: dict) -> str:
    facts = {"floor": {"nats_per_char": 0.357, "se": 0.0013, "reachable": floor}, "unigram": 3.0}
    found = check_plausible(EvaluationScores.read(record), DataFacts.read(facts), TASKS["next-token"], step=1)
    assert found is not None
    return found.verdict


def test_a_perfect_model_raises_no_alarm_and_a_mild_leak_does() -> None:
    for context in (64, 128, 256):
        floor = reachable_floor(corpus().splits["validation"], context, context // 2)
        assert floor is not None
        record = perfect(context)
        assert verdict_of(record, floor.facts.dump()) == "ok"
        assert verdict_of(record | {"excess": -1.1 * floor.facts.luck}, floor.facts.dump()) == "IMPLAUSIBLE"
    demo = reachable_floor(load_corpus(TextCorpus, DataConfig()).splits["validation"], 256, 128)
    assert demo is not None and demo.facts.luck < 0.002  # four standard errors of the floor were 0.0052


@pytest.mark.parametrize("confidence", [0.7, 1.5, 3.0])
def test_over_and_underconfidence_never_pay(confidence: float) -> None:
    """A model that bets on what is likely gains often and loses seldom, but more."""
    assert perfect(64, 64, confidence=confidence)["excess"] > 0


def test_data_json_has_both_floors() -> None:
    config = RunConfig.model_validate({"model": {"context_length": 64}, "data": {"corpus_size": 20_000}})
    facts = TextTask.load(config, None).facts(config).dump()
    assert facts["floor"]["reachable"]["context"] == 64 and facts["floor"]["reachable"]["stride"] == 32
    assert facts["floor"]["reachable"]["nats_per_char"] > facts["floor"]["nats_per_char"]
    masked = RunConfig.model_validate(
        {"model": {"architecture": "encoder"}, "objective": {"kind": "masked"}, "data": {"corpus_size": 20_000}}
    )
    assert TextTask.load(masked, None).facts(masked).dump()["floor"] is None


def test_a_run_of_an_earlier_version_is_scored_to_its_end_by_the_rules_it_began_with(tiny, tmp_path) -> None:
    reader, cpu = RunReader(cached_run(tiny(), tmp_path, "run")), torch.device("cpu")
    model, *_ = load_network(reader, "last")
    path = reader.path / "run.json"
    born = json.loads(path.read_text())
    assert born.pop("records") >= 2
    now = task_of_run(reader, None).scorer(reader.config, cpu).score_model(model).dump()
    path.write_text(json.dumps(born))  # as version 1 wrote it
    task = task_of_run(reader, None)
    then = task.scorer(reader.config, cpu).score_model(model).dump()
    assert "probe_places" in now and "probe_places" not in then
    assert set(then["probes"]) > set(now["probes"])  # it asked for what no window showed
    text = corpus_of(task)
    assert then["excess"] == pytest.approx(then["loss"] - text.floor[1:].mean(), abs=1e-12)
    assert now["excess"] < then["excess"] and now["loss"] == then["loss"]
    said = task.facts(reader.config).dump()
    assert "reachable" not in said["floor"]


def corpus_of(task: object) -> Split:
    assert isinstance(task, TextTask)
    return task.corpus.splits["validation"]


def test_a_text_of_playlets_is_what_its_filter_was_made_for() -> None:
    assert playlets.VERSION in reachable.FILTERS
