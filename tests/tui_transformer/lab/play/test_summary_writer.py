"""Summarization at the prompt, in Compare's details and in reports."""

from pathlib import Path

import pytest

from engine.base.errors import InputError
from engine.runs.reader import RunReader
from tests.engine.tasks.test_summaries import PRESETS, config
from tests.engine.tasks.test_translation import trained
from tui_transformer.__main__ import main
from tui_transformer.cli.run.translate import TranslationSession
from tui_transformer.lab.analysis.detail import detail
from tui_transformer.lab.analysis.entry import read_entry
from tui_transformer.lab.play.writers import GREEDY, WriterCache
from tui_transformer.lab.reports.report import write_report

ARTICLE = "Snow will reach the coast by noon. Our next bulletin follows on Monday by noon."


@pytest.fixture(scope="module", params=PRESETS)
def run(request, tmp_path_factory) -> RunReader:
    return trained(config(request.param), tmp_path_factory.mktemp("runs"), "headlines")


def test_an_article_typed_gets_a_summary(run, capsys) -> None:
    writer = WriterCache("cpu").get(run.path, "last")
    assert writer.config.task.name == "summarization" and "article" in writer.invitation
    written = "".join(piece.text for piece in writer.stream(ARTICLE, {**GREEDY, "length": 200}))
    assert (
        main(["translate", "headlines", "--text", ARTICLE, "--checkpoint", "last", "--runs-dir", str(run.path.parent)])
        == 0
    )
    assert capsys.readouterr().out.strip() == written.replace("■", "").strip()
    with pytest.raises(InputError, match="enter an article"):
        list(writer.stream(" ", GREEDY))


def test_surprise_and_attention_are_those_of_the_summary(run) -> None:
    writer = WriterCache("cpu").get(run.path, "last")
    found = writer.surprise(f"{ARTICLE} → Snow to reach coast")
    assert found.source == ARTICLE
    assert len(found.nats) == 1 + len(writer.tokenizer.target.encode("Snow to reach coast"))
    read = 0 if run.config.has_source else len(writer.translator.prompt(ARTICLE).source_or_tokens) - 1
    seen = writer.attention(ARTICLE, "Snow", 1, 1)
    assert len(seen.queries) == len(seen.weights) == read + 1 + len(writer.tokenizer.target.encode("Snow"))


def test_align_needs_cross_attention(run, capsys) -> None:
    work = TranslationSession(run.path.parent, "cpu", "last", False)
    work.use_run("headlines")
    work.answer(ARTICLE)
    if run.config.has_source:
        work.align("")
    else:
        with pytest.raises(InputError, match="a decoder-only model has no cross-attention"):
            work.align("")


def test_sample_says_which_command_summarizes(run, capsys) -> None:
    assert main(["sample", "headlines", "--prompt", ARTICLE, "--runs-dir", str(run.path.parent)]) == 2
    assert "summarizes articles" in capsys.readouterr().err


def test_comparisons_show_the_first_sentence_beside_the_model(run) -> None:
    lines = [f"{line.head} {line.text}" for block in detail(read_entry(run.path), None).values() for line in block]
    assert any("first sentence as the summary: ROUGE-1" in line for line in lines)
    assert any("ROUGE-L" in line for line in lines) and any("copied" in line for line in lines)


@pytest.mark.parametrize(("language", "said"), [("en", "as headlines summarized them"), ("zh", "写的摘要")])
def test_a_report_has_the_summaries_their_rouge_and_the_first_sentences(run, language, said, tmp_path: Path) -> None:
    file, _ = write_report([read_entry(run.path)], {}, kind="markdown", language=language, out=tmp_path / "report")
    text = file.read_text(encoding="utf-8").replace("\\", "")
    assert said in text and "BLEU" not in text
    assert f"{run.data.lead.rouge_l:.1f}" in text and f"{run.data.lead.copied:.1%}" in text
