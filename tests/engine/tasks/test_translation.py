"""A run on sentence pairs: what it leaves behind, how it is scored, and what its smoothing and schedule do."""

import math
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from engine.base.errors import InputError
from engine.config import presets
from engine.config.schema import RunConfig
from engine.config.schemes import learning_rate
from engine.evaluation.translation import score_translations
from engine.generation.translation import Translator
from engine.model.size import parameter_count
from engine.model.transformer import EncoderDecoder, build_model, evaluating
from engine.runs.reader import RunReader
from engine.runs.records import EvaluationScores
from engine.tasks.task import make_task
from engine.training.assemble import assemble
from engine.training.checkpoint import load_network
from engine.training.step import Stepper
from engine.training.trainer import is_better
from tests import trained_runs

pytestmark = pytest.mark.usefixtures("cached_checks", "cached_corpora", "minimal_leak_probe")


def config(**changes: dict) -> RunConfig:
    data = presets.resolve(presets.find("phrasebook")).miniature().dump()
    data["data"]["corpus_size"] = 600
    for section, values in changes.items():
        data[section] |= values
    return RunConfig.model_validate(data)


def trained(wanted: RunConfig, root: Path, name: str = "run") -> RunReader:
    return RunReader(trained_runs.cached_run(wanted, root, name))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunReader:
    return trained(config(), tmp_path_factory.mktemp("runs"))


def test_a_run_records_its_sentences_scores_and_examples(run) -> None:
    data, last = run.raw("data"), run.raw("summary")["last"]
    assert set(data["splits"]) == {"train", "validation", "test", "unseen_pairs"}
    assert data["unigram"] > data["bigram"] and data["vocabulary"] == data["source_vocabulary"]
    assert 0.0 <= data["padding"] < 0.5 and data["examples"][0]["from"] == "a training sentence"
    assert {"bleu", "bleu_signature", "chrf", "exact_match", "loss", "perplexity"} <= last.keys()
    assert "tok:13a" in last["bleu_signature"] and "case:mixed" in last["bleu_signature"]
    assert last["translated"] == 8 and set(last["probes"]) == {"unseen_pairs"}
    shown = list(run.raw_lines("samples"))[-1]["translations"]
    assert len(shown) == 5 and all({"source", "reference", "text"} == row.keys() for row in shown)
    assert [v.verdict for v in run.verdicts if v.check == "leak"] == ["ok", "ok"]


def test_the_translations_that_were_scored_are_kept_beside_their_references(run) -> None:
    kept, last = run.raw("translations"), run.raw("summary")["last"]
    assert (kept["step"], kept["split"], kept["beam"]) == (last["step"], "validation", last["beam"])
    scores = score_translations(kept["references"], kept["references"], kept["outputs"])
    assert (scores.bleu, scores.n) == (pytest.approx(last["bleu"]), last["translated"])


def test_a_checkpoint_brings_its_tokenizer_and_translates_alike(run) -> None:
    model, tokenizer, step = load_network(run, "last")
    assert step == 8
    translator = Translator(model, tokenizer, run.config)
    outputs = translator.translate(translator.encode([run_source(run)]))
    assert outputs[0][0].text == list(run.raw_lines("samples"))[-1]["translations"][0]["text"]


def run_source(run: RunReader) -> str:
    return str(list(run.raw_lines("samples"))[-1]["translations"][0]["source"])


def test_the_reported_loss_is_the_sum_over_reference_tokens(run) -> None:
    wanted = config(evaluation={"batch_size": 3})
    task = make_task(wanted, None)
    model, tokenizer, _ = load_network(run, "last")
    pairs = task.encoded["validation"]
    total, count = 0.0, 0
    special = Translator(model, tokenizer, wanted).special
    with evaluating(model):
        for source, target in zip(pairs.sources, pairs.targets, strict=True):
            ended = torch.tensor([[*source, special.source.end]])
            logits = model(ended, torch.tensor([[special.target.start, *target]]))[0]
            answers = torch.tensor([*target, special.target.end])
            total += F.cross_entropy(logits, answers, reduction="sum").item()
            count += len(answers)
    assert run.raw("summary")["last"]["loss"] == pytest.approx(total / count, abs=1e-5)


@pytest.mark.usefixtures("minimal_leak_probe")
def test_a_vocabulary_for_each_side_is_another_embedding(tmp_path) -> None:
    apart = trained(config(data={"shared_vocabulary": False}, train={"steps": 2}, evaluation=FEW), tmp_path)
    data, model = apart.raw("data"), apart.config.model
    assert model.source_vocab_size == data["source_vocabulary"] + 3
    assert "source embedding" in apart.raw("model")["components"]


@pytest.mark.usefixtures("minimal_leak_probe")
def test_characters_will_do_as_tokens(tmp_path) -> None:
    few = {"train": {"steps": 2}, "evaluation": FEW}
    wanted = config(data={"tokenizer": "characters"}, model={"context_length": 120}, **few)
    assert trained(wanted, tmp_path).raw("data")["vocabulary"] < 100


def test_maximum_length_leaves_out_training_pairs_only() -> None:
    task = make_task(config(), None)
    short = config(data={"max_length": 12})
    assert len(task.batches(short, torch.device("cpu")).pairs) < len(task.encoded["train"])
    assert task.facts(short).dump()["left_out"] > 0
    assert len(task.scorer(short, torch.device("cpu")).pairs) == len(task.encoded["validation"])


def test_smoothing_moves_mass_to_words_and_the_end_and_to_no_special_token() -> None:
    wanted = config(objective={"label_smoothing": 0.1})
    task = make_task(wanted, None)
    wanted = task.resolve_config(wanted, "test", 1)
    ready = torch.device("cpu")
    from engine.model.transformer import build_model

    model = build_model(wanted.model, wanted.model.vocab_size, 1)
    stepper = Stepper(wanted, model, task.batches(wanted, ready))
    words = task.vocab_size
    logits, targets = torch.randn(5, words + 3, dtype=torch.float64), torch.tensor([1, 2, words + 2, -100, 4])
    total = F.cross_entropy(logits, targets, reduction="sum", ignore_index=-100)
    q = torch.zeros_like(logits)
    open_ids = [*range(words), words + 2]
    q[:, open_ids] = 0.1 / len(open_ids)
    for row, target in enumerate(targets.tolist()):
        if target >= 0:
            q[row, target] += 0.9
        else:
            q[row] = 0.0
    expected = -(q * logits.log_softmax(-1)).sum()
    assert stepper._smoothed_loss(total, logits.log_softmax(-1), targets) == pytest.approx(float(expected), abs=1e-9)


def test_the_reported_training_loss_is_not_smoothed() -> None:
    plain, smooth = (load_and_step(config(objective={"label_smoothing": share})) for share in (0.0, 0.4))
    assert plain == pytest.approx(smooth, abs=1e-6)


def load_and_step(wanted: RunConfig) -> float:
    from engine.model.transformer import build_model

    task = make_task(wanted, None)
    wanted = task.resolve_config(wanted, "test", 1)
    model = build_model(wanted.model, wanted.model.vocab_size, 1)
    return Stepper(wanted, model, task.batches(wanted, torch.device("cpu"))).step(1).read()[0]


def test_inverse_square_root_rises_and_falls_with_the_root() -> None:
    optimizer = config(optimizer={"schedule": "inverse-sqrt", "warmup": 4, "lr": 1e-3}).optimizer
    rates = [learning_rate(optimizer, step, 100) for step in (2, 4, 16, 64)]
    assert rates == pytest.approx([5e-4, 1e-3, 5e-4, 2.5e-4])


@pytest.mark.parametrize(
    ("select", "new", "old", "expected"),
    [
        ("loss", {"loss": 1.0, "bleu": 1.0}, {"loss": 2.0, "bleu": 9.0}, True),
        ("bleu", {"loss": 1.0, "bleu": 1.0}, {"loss": 2.0, "bleu": 9.0}, False),
        ("bleu", {"loss": 3.0, "bleu": 10.0}, {"loss": 2.0, "bleu": 9.0}, True),
        ("bleu", {"loss": 1.0, "bleu": 9.0}, {"loss": 2.0, "bleu": 9.0}, True),
        ("bleu", {"loss": math.nan, "bleu": 99.0}, {"loss": 2.0, "bleu": 9.0}, False),
        ("exact_match", {"loss": 9.0, "exact_match": 0.0}, None, True),
    ],
)
def test_the_best_checkpoint_is_chosen_by_what_the_config_says(select, new, old, expected) -> None:
    records = [None if one is None else EvaluationScores.create(**one) for one in (new, old)]
    assert is_better(*records, select) is expected


def test_the_founding_report_has_its_parameters_and_each_ablation_its_own() -> None:
    expected = {
        "": 90_248_496,
        "-no-pe": 90_248_496,
        "-4heads": 90_248_496,
        "-3layers": 68_179_248,
        "-d256": 40_432_944,
    }
    for name, count in expected.items():
        model = presets.resolve(presets.find(f"report-translation{name}")).model
        assert parameter_count(model, 30_000) == count


def test_a_translation_does_not_depend_on_its_batch_even_at_its_length_limit(run) -> None:
    wanted = config(model={"context_length": 64})
    task = make_task(wanted, None)
    size = wanted.min_vocab_size(task.vocab_size)
    model = build_model(wanted.model, size, 1)  # untrained: it never ends
    assert isinstance(model, EncoderDecoder)
    translator = Translator(model, task.tokenizer, wanted)
    sentences = ["the dog sees a cat .", "the old farmer gives the small child a red apple in the garden .", "I run ."]
    for beam in (1, 3):
        together = translator.translate(translator.encode(sentences), beam=beam)
        alone = [translator.translate(translator.encode([sentence]), beam=beam)[0] for sentence in sentences]
        tokens = lambda found: [[h.hypothesis.tokens for h in hypotheses] for hypotheses in found]
        assert tokens(together) == tokens(alone)
        assert len({len(hypotheses[0].hypothesis.tokens) for hypotheses in together}) == 3  # each came to its own limit
        short = translator.translate(translator.encode(sentences), beam=beam, most=2)
        assert {len(hypotheses[0].hypothesis.tokens) for hypotheses in short} == {2}


LONG, FEW = {"context_length": 16}, {"every": 2, "translations": 2}


@pytest.mark.usefixtures("minimal_leak_probe")
@pytest.mark.parametrize("position", ["sinusoidal", "rope", "none", "relative"])
def test_references_longer_than_the_context_are_scored_with_all_positions_that_have_no_end(position, tmp_path) -> None:
    wanted = config(model=LONG | {"position": position}, train={"steps": 2}, evaluation=FEW | {"every": 1})
    found = make_task(wanted, None)
    long = int((found.encoded["validation"].lengths > 16).any(1).sum())
    assert long > 0
    done = trained(wanted, tmp_path)
    assert done.raw("summary")["last"]["sentences"] == len(found.encoded["validation"])
    said = [event["text"] for event in done.raw_lines("events") if event["event"] == "lint"]
    held_out = [text for text in said if f"{long:,} of" in text and "validation pairs" in text]
    assert held_out and "still scored" in held_out[0]
    left = done.raw("data")["left_out"]
    assert any(f"{left:,} of" in text and "training pairs" in text and "left out" in text for text in said)


@pytest.mark.usefixtures("minimal_leak_probe")
def test_references_longer_than_the_learned_positions_are_refused_before_the_start_with_a_remedy(tmp_path) -> None:
    wanted = config(model=LONG | {"position": "learned"}, train={"steps": 2})
    with pytest.raises(
        InputError, match=r"validation pairs have more tokens than there are learned positions"
    ) as refused:
        assemble(wanted, runs_dir=tmp_path, name="run", device="cpu")
    assert not (tmp_path / "run").exists()
    needed = int(str(refused.value).rpartition("=")[2])
    enough = {"context_length": needed, "position": "learned"}
    done = trained(config(model=enough, train={"steps": 2}, evaluation=FEW), tmp_path)
    assert math.isfinite(done.raw("summary")["last"]["loss"])
