"""Runs on documents and on questions: what they leave behind, how they are scored, and that they learn."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.base.errors import InputError
from engine.config.schema import RunConfig
from engine.data.catalogue import portable_name
from engine.data.documents import corpus as corpora
from engine.data.objectives import IGNORED, TokenPrompt, make_objective
from engine.generation.answering import greedy_answers
from engine.model.size import parameter_count
from engine.model.transformer import build_model, evaluating
from engine.runs.reader import RunReader
from engine.tasks.questions import QuestionTask
from engine.tasks.task import Task, make_task
from engine.training.checkpoint import load_network
from engine.training.step import Stepper
from tests import trained_runs
from tests.small_documents import PLACES, config, corpus, folder

pytestmark = pytest.mark.usefixtures("cached_checks", "cached_corpora", "minimal_leak_probe")

CPU = torch.device("cpu")
KINDS = [("span-corruption", False), ("span-corruption", True), ("question-answer", False), ("question-answer", True)]
NAMES = ["cs224n", "t5", "questions", "questions-read"]
kinds = pytest.mark.parametrize(("kind", "reads"), KINDS, ids=NAMES)


@pytest.fixture
def small(monkeypatch) -> corpora.DocumentCorpus:
    """The small corpus in the place of any other."""
    made = corpus()
    monkeypatch.setattr("engine.data.catalogue.load_corpus", lambda kind, data, data_dir, version: made)
    return made


def ready(wanted: RunConfig) -> tuple[RunConfig, Task]:
    task = make_task(wanted, None)
    return task.resolve_config(wanted, "test", 1), task


def learned(wanted: RunConfig, steps: int) -> tuple[RunConfig, Task, torch.nn.Module]:
    wanted, task = ready(wanted)
    model = build_model(wanted.model, wanted.model.vocab_size, 1)
    stepper = Stepper(wanted, model, task.batches(wanted, CPU))
    for step in range(1, steps + 1):
        stepper.step(step)
    return wanted, task, model


def trained(wanted: RunConfig, root: Path, name: str = "run") -> RunReader:
    return RunReader(trained_runs.cached_run(wanted, root, name))


# What a run leaves behind


@pytest.mark.parametrize(("kind", "reads"), [*KINDS[:3], pytest.param(*KINDS[3], marks=pytest.mark.slow)], ids=NAMES)
def test_a_run_of_each_objective_records_what_it_is_about(kind: str, reads: bool, tmp_path) -> None:
    run = trained(config(kind, reads=reads, train={"steps": 3}), tmp_path)
    data, last = run.raw("data"), run.raw("summary")["last"]
    assert data["corpus"].startswith("biographies@") and data["vocabulary"] > 50
    assert data["unigram"] > data["bigram"] > 0.0
    assert last["loss"] > 0.0 and len(last["profile"]) > 1
    assert [v.verdict for v in run.verdicts if v.check == "leak"] == ["ok", "ok"]
    shown = list(run.raw_lines("samples"))[-1]["translations"]
    assert len(shown) == 5 and all({"source", "reference", "text"} == row.keys() for row in shown)
    if kind == "span-corruption":
        assert {"documents", "characters", "tokens"} <= data["splits"]["train"].keys()
        asked = {"recall", "recall-reworded"} | (set() if reads else {"recall-continued"})
        assert set(last["probes"]) == {probe["name"] for probe in data["probes"]} == asked
        assert all(0.0 <= share <= 1.0 for share in last["probes"].values())
        assert "⁇" in shown[0]["source"] and not (run.path / "predictions.txt").exists()
    else:
        assert data["splits"]["validation"]["questions"] == 10 == data["majority"]["of"] == last["questions"]
        assert last["exact_match"] == last["right"] / last["questions"]
        assert len((run.path / "predictions.txt").read_text().splitlines()) == 10


@kinds
def test_miniature_shrinks_any_of_them_to_seconds(kind: str, reads: bool) -> None:
    large = config(kind, reads=reads, model={"d_model": 256, "n_layers": 6, "context_length": 512, "d_ff": 1024})
    wanted, _, model = learned(large.miniature(), 1)
    assert sum(p.numel() for p in model.parameters()) < 100_000 and wanted.train.steps == 8


@pytest.mark.parametrize("tokenizer", ["characters", "bpe"])
@pytest.mark.parametrize("kind", ["span-corruption", "question-answer"])
def test_other_tokens_will_do(kind: str, tokenizer: str) -> None:
    wanted, task, model = learned(config(kind, data={"tokenizer": tokenizer, "bpe_size": 300}), 1)
    assert task.scorer(wanted, CPU).score_model(model).dump()["loss"] < task.facts(wanted).dump()["unigram"] + 3.0
    assert len(task.sampler(wanted).sample(model, 1).translations) == 5


def test_both_objectives_have_the_same_tokens_and_special_ones_in_the_same_rows(small) -> None:
    spans, questions = (ready(config(kind)) for kind in ("span-corruption", "question-answer"))
    assert spans[1].tokenizer.sha256 == questions[1].tokenizer.sha256
    assert spans[0].special_tokens == questions[0].special_tokens == ("[pad]", "[mask]")
    assert spans[0].model.vocab_size == questions[0].model.vocab_size


def test_the_founding_model_has_its_parameters() -> None:
    """Vocabulary 256: 254 characters, of which the line end is one that no document holds, □ and ⁇."""
    shape = {"n_layers": 4, "n_heads": 8, "d_model": 256, "context_length": 128}
    for position, count in (
        ({"position": "learned", "position_init": "zero"}, 3_323_392),
        ({"position": "rope"}, 3_290_624),
    ):
        for kind in ("span-corruption", "question-answer"):
            model = config(kind, model=shape | {"d_ff": 1024, "vocab_size": 256} | position).model
            assert parameter_count(model, 256) == count


def test_the_assignments_documents_need_no_larger_vocabulary(real_data) -> None:
    if not (real_data / "cs224n-birthplaces" / "wiki.txt").is_file():
        pytest.skip("cs224n-birthplaces is not here")
    wanted = config("span-corruption", model={"context_length": 128, "vocab_size": 256}, train={"batch_size": 128})
    data = wanted.dump()
    data["data"] = {"corpus": "cs224n-birthplaces", "tokenizer": "characters"}
    data["train"] = {"epochs": 650, "batch_size": 128}
    task = make_task(RunConfig.model_validate(data), real_data)
    found = task.resolve_config(RunConfig.model_validate(data), "test", 1)
    assert task.vocab_size == 253 and found.model.vocab_size == 256
    assert found.train.steps == 14_950


# What is scored


def test_the_reported_loss_of_documents_is_the_sum_over_all_their_tokens(small) -> None:
    wanted, task = ready(config("span-corruption", evaluation={"batch_size": 2}))
    model = build_model(wanted.model, wanted.model.vocab_size, 1)
    record = task.scorer(wanted, CPU, "train").score_model(model).dump()
    again = (
        task.scorer(config("span-corruption", evaluation={"batch_size": 64}), CPU, "train").score_model(model).dump()
    )
    assert record["loss"] == pytest.approx(again["loss"], abs=1e-6) and record["documents"] == 12


def test_questions_are_not_scored_and_the_mark_before_the_answer_is() -> None:
    """As the assignment's NameDataset: y = PAD * (len(q) − 1) + x[len(q):]."""
    objective = make_objective(config("question-answer"), 100)
    batch = objective.answer_batch([np.array([1, 2, 3]), np.array([4])], [np.array([7, 8]), np.array([9])])
    pad, mask = 100, 101
    assert batch.tokens.tolist() == [[1, 2, 3, mask, 7, 8], [4, mask, 9, pad, pad, pad]]
    none = IGNORED
    assert batch.targets.tolist() == [[none, none, mask, 7, 8, mask], [mask, 9, mask, none, none, none]]
    assert batch.n_targets == 7


def test_an_encoder_reads_the_question_and_only_the_answer_is_written() -> None:
    objective = make_objective(config("question-answer", reads=True), 100)
    batch = objective.answer_batch([np.array([1, 2, 3]), np.array([4])], [np.array([7, 8]), np.array([9])])
    assert batch.source.tolist() == [[1, 2, 3], [4, 100, 100]] and batch.source_positions.index.tolist() == [
        [0, 1, 2],
        [0, -1, -1],
    ]
    assert batch.tokens.tolist() == [[101, 7, 8], [101, 9, 100]]
    assert batch.targets.tolist() == [[7, 8, 101], [9, 101, IGNORED]]


@pytest.mark.parametrize("reads", [False, True])
def test_greedy_answers_are_those_of_full_passes_one_prompt_at_a_time(reads: bool) -> None:
    wanted = config("question-answer", reads=reads, model={"position": "rope", "init_std": 0.3, "head_bias": True})
    model = build_model(wanted.model, 22, 3)
    with torch.no_grad():
        model.head.bias[21] += 2.0  # some end
    draw = np.random.default_rng(0)
    text = lambda: draw.integers(0, 20, draw.integers(1, 6))
    mark = np.array([21])
    prompts = [TokenPrompt(mark, 21, text()) if reads else TokenPrompt(np.append(text(), 21), 21) for _ in range(30)]
    found = greedy_answers(model, prompts, text_vocab_size=20, most=7)
    ends = set()
    for prompt, answer in zip(prompts, found, strict=True):
        tokens, written = torch.from_numpy(prompt.tokens)[None], []
        with evaluating(model):
            while len(written) < 7:
                logits = model(torch.from_numpy(prompt.source)[None], tokens) if reads else model(tokens)
                logits[..., 20] = -torch.inf  # padding
                written.append(int(logits[0, -1].argmax()))
                if written[-1] == 21:
                    break
                tokens = torch.cat((tokens, torch.tensor([[written[-1]]])), dim=1)
        assert answer.finished == (written[-1] == 21) and [*answer.tokens] == [t for t in written if t != 21]
        ends.add(answer.finished)
    assert ends == {True, False}


def test_a_prompt_longer_than_the_context_is_refused() -> None:
    model = build_model(config("question-answer", model={"context_length": 8}).model, 22, 1)
    with pytest.raises(InputError, match="9 tokens does not fit in a context of 8"):
        greedy_answers(model, [TokenPrompt(np.arange(9), 21)], text_vocab_size=20, most=3)


# That they learn


@pytest.mark.parametrize("reads", [False, True])
def test_questions_learned_by_heart_are_answered_exactly(small, reads: bool) -> None:
    easy = {"model": {"position": "learned"}, "optimizer": {"lr": 5e-3}}
    wanted, task, model = learned(config("question-answer", reads=reads, **easy), 60)
    scorer = task.scorer(wanted, CPU, "train")
    record = scorer.score_model(model).dump()
    assert record["exact_match"] == 1.0 and record["right"] == 4 and record["accuracy"] == 1.0
    assert scorer.predictions().split() == list(PLACES.values())[:4]
    blind = task.scorer(wanted, CPU, "test")
    assert blind.score_model(model).dump() == {"questions": 1} and blind.predictions() == "Rome\n"


def test_facts_learned_from_masked_documents_are_recalled(small) -> None:
    wanted = config("span-corruption", model={"position": "learned"}, optimizer={"lr": 5e-3})
    wanted, task, model = learned(wanted, 180)
    before = build_model(wanted.model, wanted.model.vocab_size, 1)
    scorer = task.scorer(wanted, CPU)
    assert scorer.score_model(before).dump()["probes"] == {"recall": 0.0}
    assert scorer.score_model(model).dump()["probes"]["recall"] >= 0.8


# The best checkpoint, and the alarm


def test_the_best_checkpoint_has_the_most_exact_answers_and_its_predictions_are_kept(small, tmp_path) -> None:
    looks = {"every": 4, "select": "exact_match", "sample_every": 0}
    run = trained(config("question-answer", train={"steps": 12}, evaluation=looks, checkpoint={"every": 0}), tmp_path)
    scored = [r for r in run.raw_lines("metrics") if r["kind"] == "validation"]
    best = run.raw("summary")["best"]
    assert best["exact_match"] == max(r["exact_match"] for r in scored)
    model, _, step = load_network(run, "best")
    scorer = make_task(run.config, None).scorer(run.config, CPU)
    assert step == best["step"] and scorer.score_model(model).dump()["exact_match"] == best["exact_match"]
    assert (run.path / "predictions.txt").read_text() == scorer.predictions()


def test_patience_is_with_exact_answers_and_always_the_same_answer_is_marked(small, tmp_path) -> None:
    looks = {"every": 2, "select": "exact_match", "patience": 3, "sample_every": 0}
    still = config("question-answer", train={"steps": 24}, evaluation=looks, optimizer={"lr": 0.0})
    run = trained(still, tmp_path)
    assert run.raw("summary")["step"] == 8 and run.status.reason == "no improvement for 3 evaluations"
    found = [v for v in run.verdicts if v.check == "answers"]
    assert [v.verdict for v in found] == ["NOT-LEARNING"] and "always answering 'Rome'" in found[0].why


# What is wrong with the input


def test_documents_alone_have_no_questions(tmp_path) -> None:
    (tmp_path / "mine.txt").write_text("".join(f"Ada the {i}th was born in London.\n" for i in range(40)))
    here = {"corpus": str(tmp_path / "mine.txt")}
    with pytest.raises(InputError, match="no train questions with answers"):
        make_task(RunConfig.model_validate({"objective": {"kind": "question-answer"}, "data": here}), None)
    spans = RunConfig.model_validate({"objective": {"kind": "span-corruption"}, "data": here})
    assert portable_name(spans.data.corpus, spans.task.corpus) == make_task(spans, None).corpus.source


def test_a_folder_of_ones_own_is_trained_on(tmp_path) -> None:
    wanted = config("question-answer")
    data = wanted.dump()
    data["data"] = {"corpus": str(folder(tmp_path / "mine")), "tokenizer": "words"}
    run = trained(RunConfig.model_validate(data), tmp_path / "runs")
    assert run.raw("data")["majority"]["of"] == 2


def test_documents_too_short_to_mask_are_left_out(small) -> None:
    object.__setattr__(small, "documents", {"train": ("Ada is", "Ada was born here ."), "validation": ("So it is .",)})
    _, task = ready(config("span-corruption"))
    assert len(task.encoded["train"]) == 1
    assert task.facts(config("span-corruption")).dump()["left_out"] == 1
    object.__setattr__(small, "documents", {"train": ("Ada is",), "validation": ("So it is .",)})
    with pytest.raises(InputError, match="no document of at least 4 tokens"):
        make_task(config("span-corruption"), None)


@pytest.mark.parametrize(("reads", "key"), [(False, "model.context_length"), (True, "model.source_length")])
def test_a_question_that_does_not_fit_is_refused_with_what_would_be_enough(small, reads: bool, key: str) -> None:
    short = {"context_length": 6, "source_length": 4} if reads else {"context_length": 6}
    with pytest.raises(InputError, match=rf"--set {key}=(\d+)"):
        make_task(config("question-answer", reads=reads, model=short), None)


def test_the_vocabulary_must_be_large_enough(small) -> None:
    with pytest.raises(InputError, match="different words and"):
        ready(config("span-corruption", model={"vocab_size": 10}))


def test_a_tokenizer_may_be_taken_over_from_the_run_it_starts_from(small) -> None:
    from engine.data.tokenizers import CharacterTokenizer, WordTokenizer

    wanted, texts = config("question-answer"), list(small.texts())
    larger = WordTokenizer.from_texts([*texts, "Gus was born in Paris."])
    assert QuestionTask.load(wanted, None, larger).tokenizer is larger
    with pytest.raises(InputError, match="corpus small: cannot be encoded with the parent.s tokenizer"):
        QuestionTask.load(wanted, None, WordTokenizer.from_texts(["Where was Ada born?"]))
    with pytest.raises(InputError, match="data.tokenizer is 'words', but the parent's tokenizer is 'characters'"):
        QuestionTask.load(wanted, None, CharacterTokenizer.from_texts(texts))


def test_exported_special_tokens_have_their_roles(tmp_path) -> None:
    from engine.training.pretrained import write_pretrained

    once = {"every": 0, "sample_every": 0, "probes": False}
    run = trained(config("span-corruption", reads=True, train={"steps": 1}, evaluation=once), tmp_path)
    write_pretrained(run, "last", tmp_path / "out")
    found = json.loads((tmp_path / "out" / "special_tokens_map.json").read_text())
    assert found["pad_token"] == "[pad]" and found["additional_special_tokens"][0] == "[span 1]"
