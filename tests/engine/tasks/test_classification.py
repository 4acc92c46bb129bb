"""Runs that classify texts: what they leave behind, how they are scored, and that padding changes nothing."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.base.errors import InputError
from engine.capabilities import check
from engine.config.schema import RunConfig
from engine.config.schemes import ATTENTIONS, POSITIONS
from engine.data.baselines import class_prior_loss, naive_bayes
from engine.data.objectives import Batch, make_objective
from engine.data.synthetic import bulletins
from engine.evaluation.checks import leak_probe
from engine.evaluation.metrics import confusion_matrix, macro_f1
from engine.model.size import parameter_count, training_flops_per_token
from engine.model.transformer import build_model, evaluating
from engine.proofs.verify.claims import verify
from engine.runs.files import write_json
from engine.runs.reader import RunReader
from engine.tasks.classification import ClassificationObjective, PooledBatch, class_probabilities, encode_texts
from engine.tasks.task import make_task
from engine.training.checkpoint import load_network
from engine.training.self_check import self_check
from engine.training.step import Stepper
from tests import trained_runs
from tui_transformer.lab.records.run_lines import classification_baseline_lines

pytestmark = pytest.mark.usefixtures("cached_checks", "cached_corpora", "minimal_leak_probe")

CPU = torch.device("cpu")
TINY = {
    "model": {"architecture": "encoder", "n_layers": 2, "d_model": 32, "n_heads": 4, "context_length": 48},
    "data": {"corpus": "bulletins", "corpus_size": 300, "tokenizer": "words"},
    "objective": {"kind": "classification"},
    "train": {"steps": 6, "batch_size": 16, "threads": 1},
    "optimizer": {"lr": 1e-2, "warmup": 2, "schedule": "constant"},
    "evaluation": {"every": 3, "sample_every": 3},
    "checkpoint": {"every": 3},
    "log": {"every": 1},
}


def config(**changes: dict) -> RunConfig:
    return RunConfig.model_validate(TINY | {section: TINY.get(section, {}) | new for section, new in changes.items()})


def ready(wanted: RunConfig):
    task = make_task(wanted, None)
    return task.resolve_config(wanted, "test", 1), task


def trained(wanted: RunConfig, root: Path, name: str = "run") -> RunReader:
    return RunReader(trained_runs.cached_run(wanted, root, name))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunReader:
    return trained(config(), tmp_path_factory.mktemp("runs"))


# What a run leaves behind


def test_a_run_records_what_it_is_about(run) -> None:
    data, last = run.data, run.summary.last
    assert data.classes == ("weather", "markets", "politics", "result", "upset")
    assert data.splits["validation"]["texts"] == 30 == last.texts == data.majority.of
    assert data.majority.score == "accuracy" and 0.2 < data.bag_of_words < 1.0
    assert (
        data.best_reader.accuracy
        >= data.best_reader.unordered
        == ready(config())[1].corpus.reader_accuracies["validation"].unordered
    )
    assert sum(map(sum, last.confusion)) == 30
    assert sum(last.confusion[i][i] for i in range(5)) == round(30 * last.accuracy)
    assert last.macro_f1 == pytest.approx(macro_f1(np.array(last.confusion)))
    ordered = last.probe_places["order"]
    right = sum(last.confusion[i][i] for i in (3, 4))
    assert last.probes["order"] == pytest.approx(right / ordered) and ordered == sum(map(sum, last.confusion[3:]))
    assert run.config.model.classes == 5
    assert [v.verdict for v in run.verdicts if v.check == "leak"] == ["ok", "ok"]
    assert all(v.verdict == "ok" for v in run.verdicts if v.when == "before")


def test_a_sample_is_held_out_texts_with_their_classes_and_probabilities(run) -> None:
    (*_, last) = run.samples()
    assert len(last.translations) == 5
    for row in last.translations:
        assert row.reference in run.data.classes and row.text == next(iter(row.probabilities))
        assert sum(row.probabilities.values()) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("tokenizer", "bounded"), [("words", True), ("characters", True), ("bpe", False)])
def test_a_reader_without_order_is_a_bound_only_if_a_bag_of_the_tokens_hides_it(tokenizer: str, bounded: bool) -> None:
    wanted, task = ready(config(data={"tokenizer": tokenizer, "bpe_size": 400}))
    texts = [" ".join(["Rovers beat Harriers by two points on Sunday."] * 2)]
    texts += [texts[0].replace("Rovers", "-").replace("Harriers", "Rovers").replace("-", "Harriers")]
    bags = [Counter(tokens.tolist()) for tokens in task.tokenizer.encode_all(texts)]
    assert (bags[0] == bags[1]) == bounded
    facts, before = task.facts(wanted), task.with_records_version(2).facts(wanted)
    ((now,), (then,)) = facts.probes, before.probes
    assert now.n == then.n and then.chance is not None and before.best_reader.unordered is not None
    assert (facts.best_reader == before.best_reader) == bounded
    held_out = Counter(task.corpus.splits["validation"].classes)
    often = max(held_out[i] for i in task.corpus.order_only_classes) / now.n
    assert not bounded or now.chance == pytest.approx(max(then.chance, often), abs=1e-6)
    assert (facts.best_reader.unordered is None, now.chance is None) == (not bounded, not bounded)
    assert any("word order" in line for line in classification_baseline_lines(facts)) == bounded and "None" not in str(
        now.description
    )


def test_it_is_verified(run) -> None:
    assert not [(name, one) for name, one in verify(run, device="cpu") if one.status == "failed"]


def test_the_score_is_that_of_each_text_by_itself(run) -> None:
    model, tokenizer, _ = load_network(run, "last")
    task = make_task(run.config, None)
    texts, truth = task.corpus.splits["validation"].texts, task.corpus.splits["validation"].classes
    chances = [class_probabilities(model, tokenizer.target, run.config, [text])[0] for text in texts]
    nll = [-math.log(float(p[label])) for p, label in zip(chances, truth, strict=True)]
    last = run.summary.last
    assert last.loss == pytest.approx(math.fsum(nll) / len(nll), abs=1e-5)
    assert last.accuracy == np.mean([int(p.argmax()) == label for p, label in zip(chances, truth, strict=True)])


def test_texts_that_contain_their_class_are_reported_before_training_and_beat_the_best_reader(
    tmp_path, monkeypatch
) -> None:
    """A planted bug: the class is left in the text."""
    real = bulletins.generate
    told = lambda *how: [replace(item, text=f"{item.label}: {item.text}") for item in real(*how)]
    monkeypatch.setattr(bulletins, "generate", told)
    wanted = config(
        data={"corpus_size": 2_000, "test_fraction": 0.0, "validation_fraction": 0.2},
        train={"steps": 100, "batch_size": 64},
        evaluation={"every": 0, "sample_every": 0},
    )
    run = trained(wanted, tmp_path)
    found = {v.check: v for v in run.verdicts if v.verdict != "ok"}
    assert (found["shortcut"].verdict, found["shortcut"].when) == ("SUSPICIOUS", "before")
    assert found["plausible"].verdict == "IMPLAUSIBLE" and set(run.badges) == {"SUSPICIOUS", "IMPLAUSIBLE"}
    assert any(event.event == "lint" and "one word per class" in event.text for event in run.events())
    for said in ("shortcut SUSPICIOUS", "checked again: leak ok"):
        again = dict(verify(RunReader(run.path), device="cpu"))["verdicts"]
        assert again.status == "passed" and said in again.why, again
        # From here on it is a run of an earlier version, which asked nothing of the kind.
        sound = [one for one in run.raw("checks")["verdicts"] if one["verdict"] == "ok"]
        write_json(run.path / "checks.json", run.raw("checks") | {"verdicts": sound})
        write_json(run.path / "run.json", run.raw("run") | {"records": 2})


# The pooled head


@pytest.mark.parametrize("architecture", ["encoder", "decoder"])
@pytest.mark.parametrize("position", list(POSITIONS))
def test_padding_changes_nothing_whatever_it_holds(architecture: str, position: str) -> None:
    wanted = config(model={"architecture": architecture, "position": position})
    if check(wanted) is not None:
        pytest.skip("not legal")
    wanted = RunConfig.model_validate(wanted.dump() | {"model": wanted.dump()["model"] | {"classes": 5}})
    model = build_model(wanted.model, 22, 1).double().eval()
    objective, draw = ClassificationObjective(wanted, 20), np.random.default_rng(1)
    texts = [draw.integers(0, 20, n) for n in (3, 11, 7)]
    batch = objective.class_batch(texts, [0, 1, 2])
    other = torch.where(batch.source_positions.index >= 0, batch.tokens, 5)
    with torch.no_grad():
        together = batch.target_logits(model(*batch.inputs))
        refilled = batch.target_logits(model(other, batch.source_positions))
        alone = [model(torch.from_numpy(text)[None]).mean(1) for text in texts]
    assert torch.equal(together, refilled) and together.shape == (3, 1, 5)
    assert torch.allclose(together[:, 0], torch.cat(alone), atol=1e-12)


def test_the_mean_of_the_logits_is_the_head_on_the_mean_of_the_hidden_states() -> None:
    wanted, _ = ready(config())
    model = build_model(wanted.model, wanted.model.vocab_size, 1).double().eval()
    tokens = torch.arange(9)[None]
    with torch.no_grad():
        pooled = model.head(model.hidden(tokens).mean(1))
        assert torch.allclose(
            PooledBatch(tokens, tokens[:, :1], 1).target_logits(model(tokens))[:, 0], pooled, atol=1e-12
        )


def test_an_encoder_without_positions_gives_every_order_of_the_words_the_same_class() -> None:
    wanted, task = ready(config(model={"position": "none"}))
    model = build_model(wanted.model, wanted.model.vocab_size, 1).double()
    one, other = "Rovers beat Harriers by two points on Monday.", "Harriers beat Rovers by two points on Monday."
    with evaluating(model):
        first, second = (class_probabilities(model, task.tokenizer, wanted, [text]) for text in (one, other))
    assert torch.allclose(first, second, atol=1e-6)


def test_sizes_are_those_of_the_network_that_is_built() -> None:
    for architecture in ("encoder", "decoder"):
        wanted, _ = ready(config(model={"architecture": architecture, "head_bias": True}))
        model = build_model(wanted.model, wanted.model.vocab_size, 1)
        assert model.head.weight.shape == (5, 32)
        assert parameter_count(wanted.model, wanted.model.vocab_size) == sum(p.numel() for p in model.parameters())
    more = wanted.model.model_copy(update={"classes": 6})
    assert training_flops_per_token(more, 100) - training_flops_per_token(wanted.model, 100) == 6 * 32


# Leaks


def verdict(objective: ClassificationObjective, wanted: RunConfig) -> str:
    model = build_model(wanted.model, 24, 1)
    windows = torch.randint(20, (2, objective.window), generator=torch.Generator().manual_seed(1))
    return leak_probe(model, objective, windows, 20, when="before", step=0).verdict


@pytest.mark.parametrize("architecture", ["encoder", "decoder"])
@pytest.mark.parametrize("attention", list(ATTENTIONS))
def test_no_network_sees_the_class_unless_it_is_in_what_it_reads(architecture: str, attention: str) -> None:
    changes = {"architecture": architecture, "attention": attention, "position": "rope", "classes": 5}
    wanted = config(model=changes | ({} if ATTENTIONS[attention].has_scores else {"attention_dropout": 0.0}))
    assert check(wanted) is None

    class Leaking(ClassificationObjective):
        """Puts the class at the end of the text."""

        def batch(self, windows: torch.Tensor, generator: torch.Generator) -> Batch:
            rows = torch.cat((windows[:, 1:], windows[:, :1]), dim=1).numpy()
            return self.class_batch(list(rows), windows[:, 0].tolist())

    assert verdict(make_objective(wanted, 20), wanted) == "ok"
    assert verdict(Leaking(wanted, 20), wanted) == "LEAK"


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"architecture": "decoder"}, "train": {"accumulation": 2}},
        {"objective": {"label_smoothing": 0.1, "z_loss": 1e-3}, "optimizer": {"kind": "muon"}},
        {
            "model": {"position": "learned", "dropout": 0.2},
            "train": {"batch_tokens": 300},
            "data": {"tokenizer": "bpe", "bpe_size": 300},
        },
        {"model": {"attention": "window", "context_length": 300}, "data": {"tokenizer": "characters"}},
    ],
)
def test_the_self_check_passes(changes: dict) -> None:
    tables = {section: dict(values) for section, values in changes.items()}
    if "batch_tokens" in tables.get("train", {}):
        tables["train"] = {**TINY["train"], **tables["train"]}
        del tables["train"]["batch_size"]
        wanted = RunConfig.model_validate(
            TINY | {k: TINY.get(k, {}) | v for k, v in tables.items() if k != "train"} | {"train": tables["train"]}
        )
    else:
        wanted = config(**tables)
    wanted, task = ready(wanted)
    model = build_model(wanted.model, wanted.model.vocab_size, 1)
    assert [v for v in self_check(wanted, model, task) if v.verdict != "ok"] == []


# What it reads


def test_the_vocabulary_is_that_of_the_training_texts_and_other_words_are_unknown() -> None:
    wanted, task = ready(config())
    unknown = task.vocab_size + 1
    (found,) = encode_texts(task.tokenizer, wanted, ["Rovers beat Zyzzyva by two points."])
    assert list(found).count(unknown) == 1 and wanted.model.vocab_size == task.vocab_size + 2
    counts = Counter(word for text in task.corpus.splits["train"].texts for word in text.replace(".", " .").split())
    assert set(task.tokenizer.words) == {word for word, n in counts.items() if n >= 2}
    (cut,) = encode_texts(task.tokenizer, wanted, ["Rovers " * 100])
    assert len(cut) == 48
    lower, same = ready(config(data={"lowercase": True}))
    (small,) = encode_texts(same.tokenizer, lower, ["ROVERS beat Harriers"])
    assert same.tokenizer.decode(small) == "rovers beat harriers" and same.vocab_size < task.vocab_size
    with pytest.raises(InputError, match="empty text"):
        encode_texts(task.tokenizer, wanted, [" "])


def test_another_number_of_classes_than_the_corpus_has_is_refused() -> None:
    wanted = config(model={"classes": 4})
    with pytest.raises(InputError, match="has 5 classes"):
        make_task(wanted, None).resolve_config(wanted, "test", 1)
    assert "leave model.classes out" in check(RunConfig.model_validate({"model": {"classes": 4}})).reason
    assert check(config(model={"tie_embeddings": True})).keys == ("model.tie_embeddings", "objective.kind")


def test_a_run_may_start_from_one_that_predicts_tokens(tmp_path) -> None:
    text = tmp_path / "news.txt"
    task = make_task(config(), None)
    text.write_text("\n".join(task.corpus.splits["train"].texts))
    characters = {"data": {"corpus": "bulletins", "tokenizer": "characters"}}
    tables = config(model={"context_length": 64}).dump()
    of_tokens = RunConfig.model_validate(
        {"model": tables["model"] | {"architecture": "decoder", "causal": True}, "data": {"corpus": str(text)}}
        | {"train": tables["train"], "evaluation": {"sample_every": 0}}
    )
    trained(of_tokens, tmp_path, "first")
    model = {"architecture": "decoder", "context_length": 64}
    second = trained(config(model=model, train={"init_from": "first", "steps": 2}, **characters), tmp_path, "second")
    assert any("the head starts fresh" in event.text for event in second.events())


# Baselines and scores


def test_naive_bayes_is_the_rule_of_the_book() -> None:
    """Manning et al. 2008, table 13.1: a document about China, twice "China", and once each "Tokyo" and "Japan"."""
    words = ["Chinese", "Beijing", "Shanghai", "Macao", "Tokyo", "Japan"]
    texts = ["Chinese Beijing Chinese", "Chinese Chinese Shanghai", "Chinese Macao", "Tokyo Japan Chinese"]
    encoded = [
        np.array([words.index(word) for word in text.split()])
        for text in [*texts, "Chinese Chinese Chinese Tokyo Japan"]
    ]
    found = naive_bayes(encoded[:4], np.array([0, 0, 0, 1]), encoded[4:], len(words), 2)
    assert found.tolist() == [0]  # 0.0003 against 0.0001
    assert naive_bayes(encoded[:4], np.array([0, 0, 0, 1]), [np.array([4, 5])], len(words), 2).tolist() == [1]


def test_macro_f1_weighs_every_class_alike() -> None:
    truth, found = np.array([0] * 8 + [1, 1]), np.array([0] * 8 + [0, 1])
    counts = confusion_matrix(truth, found, 3)
    assert counts.tolist() == [[8, 0, 0], [1, 1, 0], [0, 0, 0]]
    assert macro_f1(counts) == pytest.approx((16 / 17 + 2 / 3) / 2)
    assert class_prior_loss(truth, truth, 2) == pytest.approx(-(0.8 * math.log(0.8) + 0.2 * math.log(0.2)))


def test_it_learns_what_words_tell() -> None:
    wanted, task = ready(config(data={"corpus_size": 1_000}, model={"dropout": 0.0}, optimizer={"lr": 3e-3}))
    model = build_model(wanted.model, wanted.model.vocab_size, 1)
    stepper = Stepper(wanted, model, task.batches(wanted, CPU))
    for step in range(1, 121):
        stepper.step(step)
    assert task.scorer(wanted, CPU).score_model(model).accuracy > 0.55  # always the same class: 0.25
