"""A run that summarizes: what it records, where articles are cut, and what is compared with what."""

import json
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from engine import capabilities
from engine.base.errors import InputError
from engine.config import presets
from engine.config.schema import RunConfig
from engine.data import objectives
from engine.data.rows import BothSpecials, pair_batch
from engine.evaluation.summaries import first_sentence, score_summaries
from engine.generation.translation import Translator
from engine.model.transformer import Network, evaluating
from engine.runs.reader import RunReader
from engine.tasks.task import make_task
from engine.tasks.translation import TranslationTask
from engine.training.assemble import assemble
from engine.training.checkpoint import load_network
from tests.engine.tasks.test_translation import trained
from tui_transformer.__main__ import main

pytestmark = pytest.mark.usefixtures("cached_checks", "cached_corpora", "minimal_leak_probe")

PRESETS = ("headlines", "headlines-decoder")


def config(preset: str = "headlines", **changes: dict) -> RunConfig:
    data = presets.resolve(presets.find(preset)).miniature().dump()
    for section, values in changes.items():
        data[section] |= values
    return RunConfig.model_validate(data)


@pytest.fixture(scope="module", params=PRESETS)
def run(request, tmp_path_factory) -> RunReader:
    return trained(config(request.param), tmp_path_factory.mktemp("runs"), "headlines")


def test_a_run_records_rouge_the_copied_share_and_the_first_sentences_scores(run) -> None:
    last, lead = run.raw("summary")["last"], run.raw("data")["lead"]
    assert {"rouge_1", "rouge_2", "rouge_l", "copied", "exact_match"} <= last.keys() and "bleu" not in last
    kept = run.raw("translations")
    corpus = make_task(run.config, None).corpus
    articles = corpus.splits["validation"].sources[: last["translated"]]
    own = score_summaries(articles, kept["references"], kept["outputs"])
    assert (own.rouge_1, own.rouge_l, own.copied) == (last["rouge_1"], last["rouge_l"], last["copied"])
    first = score_summaries(articles, kept["references"], [first_sentence(one) for one in articles])
    assert lead["rouge_2"] == first.rouge_2 and lead["articles"] == last["translated"] == 8
    assert [v.verdict for v in run.verdicts if v.check == "leak"] == ["ok", "ok"]


def test_no_held_out_article_or_headline_is_in_training(run) -> None:
    data = run.data
    assert data.overlap is not None and (data.overlap.seen, data.overlap.of) == (0, "texts")
    splits = make_task(config(data={"test_fraction": 0.1}), None).corpus.splits
    assert not set(splits["train"].targets) & {*splits["validation"].targets, *splits["test"].targets}


@pytest.mark.parametrize("preset", PRESETS)
def test_articles_are_cut_alike_in_training_scoring_and_at_the_prompt(preset: str, tmp_path: Path) -> None:
    wanted = config(preset, model={"source_length": 12, "context_length": 60})
    task = make_task(wanted, None)
    assert max(task.encoded["train"].lengths[:, 0]) == max(task.encoded["validation"].lengths[:, 0]) == 12
    assert len(task.encoded["train"]) == len(task.batches(wanted, "cpu").pairs)  # none is left out
    ready = assemble(wanted, runs_dir=tmp_path, name="cut", device="cpu")
    translator = Translator(ready.trainer.model, task.tokenizer, wanted)
    article = " ".join(task.corpus.splits["validation"].sources[:40])
    (encoded,) = translator.encode([article])
    assert len(encoded) == 11 and encoded.tolist() == task.tokenizer.source.encode(article)[:11].tolist()


def test_the_reported_scores_are_those_of_evaluate_on_the_same_pairs(run, tmp_path: Path, capsys) -> None:
    held_out = make_task(run.config, None).corpus.splits["validation"]
    files = {name: tmp_path / name for name in ("articles.txt", "headlines.txt")}
    for file, lines in zip(files.values(), (held_out.sources, held_out.targets), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    where = ["--json", "--runs-dir", str(run.path.parent)]
    assert (
        main(
            [
                "evaluate",
                "headlines",
                "--source",
                str(files["articles.txt"]),
                "--reference",
                str(files["headlines.txt"]),
                *where,
            ]
        )
        == 0
    )
    own = json.loads(capsys.readouterr().out)
    assert main(["evaluate", "headlines", *where]) == 0
    split = json.loads(capsys.readouterr().out)
    same = ("loss", "rouge_1", "rouge_2", "rouge_l", "copied", "exact_match", "lead", "sentences")
    assert {name: own[name] for name in same} == {name: split[name] for name in same}
    assert len(own["rows"]) == len(held_out) and own["rows"][0]["source"] == held_out.sources[0]


def test_evaluate_shows_the_first_sentence_beside_the_model(run, capsys) -> None:
    assert main(["evaluate", "headlines", "--runs-dir", str(run.path.parent)]) == 0
    said = capsys.readouterr().out
    assert "ROUGE-L" in said and "the first sentence" in said and "in the reference summaries" in said


def test_a_checkpoint_summarizes_as_it_did_in_training(run) -> None:
    model, tokenizer, _ = load_network(run, "last")
    shown = list(run.raw_lines("samples"))[-1]["translations"]
    translator = Translator(model, tokenizer, run.config)
    outputs = translator.translate(translator.encode([row["source"] for row in shown]))
    assert [best[0].text for best in outputs] == [row["text"] for row in shown]


def decoder(tmp_path: Path) -> tuple[Translator, TranslationTask]:
    wanted = config("headlines-decoder")
    task, ready = make_task(wanted, None), assemble(wanted, runs_dir=tmp_path, name="run", device="cpu")
    return Translator(ready.trainer.model, task.tokenizer, wanted), task


def scored(task: TranslationTask, model: Network, config: RunConfig) -> float:
    return task.scorer(config, torch.device("cpu")).token_scores(model).loss


def test_a_decoders_loss_is_that_of_the_headlines_alone(tmp_path: Path, monkeypatch) -> None:
    """The sum over the headlines' tokens, pair by pair; another one if articles counted too."""
    writes, task = decoder(tmp_path)
    model, pairs = writes.model, task.encoded["validation"]
    start, end = writes.special.target.start, writes.special.target.end
    total, count = 0.0, 0
    with evaluating(model):
        for source, target in zip(pairs.sources, pairs.targets, strict=True):
            logits = model(torch.tensor([[*source, start, *target]]))[0, len(source) :]
            answers = torch.tensor([*target, end])
            total, count = total + F.cross_entropy(logits, answers, reduction="sum").item(), count + len(answers)
    assert scored(task, model, writes.config) == pytest.approx(total / count, abs=1e-5)
    real = objectives.shifted_batch
    monkeypatch.setattr(objectives, "shifted_batch", lambda rows, given, *rest: real(rows, [0] * len(rows), *rest))
    assert abs(scored(task, model, writes.config) - total / count) > 1e-3


@pytest.mark.parametrize("beam", [1, 3])
def test_a_decoder_with_a_cache_writes_what_whole_passes_give_alone_and_in_a_batch(beam: int, tmp_path: Path) -> None:
    writes, task = decoder(tmp_path)
    sources = task.encoded["validation"].sources[:12]
    found = writes.translate(sources, beam=beam)
    assert [writes.translate([one], beam=beam)[0][0].hypothesis.tokens for one in sources] == [
        best[0].hypothesis.tokens for best in found
    ]
    start, end = writes.special.target.start, writes.special.target.end
    open_ = torch.tensor([*range(task.vocab_size), end])
    for source, [best, *_] in zip(sources, found, strict=True):
        written = [*best.hypothesis.tokens, *([end] if best.hypothesis.finished else [])]
        read = [*source, start]
        with evaluating(writes.model):
            log_p = writes.model(torch.tensor([[*read, *written[:-1]]]))[0, len(read) - 1 :].log_softmax(-1)
        taken = log_p.gather(1, torch.tensor(written)[:, None]).sum()
        assert float(taken) == pytest.approx(best.hypothesis.log_probability, abs=1e-3)
        assert len(written) <= writes.max_length(len(read)) <= writes.config.model.context_length + 1 - len(read)
        if beam == 1:
            assert written == open_[log_p[:, open_].argmax(-1)].tolist()


def test_padding_changes_nothing_that_a_decoder_predicts(tmp_path: Path) -> None:
    writes, task = decoder(tmp_path)
    special = BothSpecials(*[writes.special.target] * 2)
    rows = task.encoded["validation"].select(range(6))
    with evaluating(writes.model):
        together = pair_batch(rows, special, joined=True)
        logits = writes.model(*together.inputs)
        for i in range(6):
            alone = pair_batch(rows.select([i]), special, joined=True)
            expected = writes.model(*alone.inputs)[0]
            assert torch.allclose(logits[i, : len(expected)], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data": {"shared_vocabulary": False}}, "share a vocabulary; --set data.shared_vocabulary=true"),
        ({"model": {"source_length": 40}}, "--set model.context_length=41"),
        ({"model": {"architecture": "encoder"}}, "needs architecture = 'encoder-decoder' or 'decoder'"),
    ],
)
def test_what_a_decoder_cannot_summarize_with_is_refused(changes: dict, said: str) -> None:
    refusal = capabilities.check(config("headlines-decoder", **changes))
    assert refusal is not None and said in refusal.reason


@pytest.mark.usefixtures("minimal_leak_probe")
@pytest.mark.parametrize("name", ["phrasebook", "phrasebook-2"])
def test_a_decoder_translates_too(name: str, tmp_path: Path) -> None:
    """To each language that its source names, and as `evaluate` scores it."""
    data = presets.resolve(presets.find(name)).miniature().dump()
    data["model"] |= {"architecture": "decoder", "context_length": 192}
    data["train"] |= {"steps": 4}
    reader = trained(RunConfig.model_validate(data), tmp_path)
    last = reader.raw("summary")["last"]
    assert last["bleu"] >= 0.0 and reader.raw("data")["left_out"] == 0
    assert all(verdict.verdict == "ok" for verdict in reader.verdicts)


def test_pairs_longer_than_a_decoders_context_are_left_out_and_scored_or_refused(tmp_path: Path) -> None:
    task = make_task(config("headlines-decoder"), None)
    over = int((task.encoded["train"].joined_lengths > 40).sum())
    assert over > 0 and task.facts(config("headlines-decoder")).dump()["left_out"] == over
    said = [lint.text for lint in task.lints(config("headlines-decoder"))]
    assert any(f"{over:,} of" in text and "or 40 together: left out" in text for text in said)
    with pytest.raises(InputError, match="for source and target together") as refused:
        make_task(config("headlines-decoder", model={"position": "learned"}), None)
    context, source = (int(part.split()[0]) for part in str(refused.value).split("=")[-2:])
    fitting = {"position": "learned", "source_length": source, "context_length": context}
    make_task(config("headlines-decoder", model=fitting), None)


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_the_presets_write_more_than_19_of_20_headlines_exactly(preset: str, tmp_path: Path) -> None:
    """Trained as they are shipped."""
    reader = trained(presets.resolve(presets.find(preset)), tmp_path)
    best = reader.raw("summary")["best"]
    print(preset, best, reader.raw("summary")["seconds"])
    assert best["exact_match"] >= 0.95
