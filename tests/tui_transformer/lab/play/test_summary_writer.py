"""Summarization at the prompt, in Compare's details and in reports."""

from pathlib import Path

import pytest

from engine.errors import InputError
from engine.runs.reader import RunReader
from tests.engine.training.test_summaries import config
from tests.engine.training.test_translation import trained
from tui_transformer.__main__ import main
from tui_transformer.lab.analysis.detail import detail
from tui_transformer.lab.analysis.entry import read_entry
from tui_transformer.lab.play.writers import GREEDY, SummaryWriter, Writers
from tui_transformer.lab.reports.report import make

ARTICLE = "Snow will reach the coast by noon. Our next bulletin follows on Monday by noon."


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunReader:
    return trained(config(), tmp_path_factory.mktemp("runs"), "headlines")


def test_an_article_typed_gets_a_summary(run, capsys) -> None:
    writer = Writers("cpu").get(run.path, "last")
    assert isinstance(writer, SummaryWriter) and "article" in writer.invitation
    written = "".join(piece.text for piece in writer.pieces(ARTICLE, {**GREEDY, "length": 200}))
    assert (
        main(["translate", "headlines", "--text", ARTICLE, "--checkpoint", "last", "--runs-dir", str(run.path.parent)])
        == 0
    )
    assert capsys.readouterr().out.strip() == written.replace("■", "").strip()
    with pytest.raises(InputError, match="enter an article"):
        list(writer.pieces(" ", GREEDY))


def test_sample_says_which_command_summarizes(run, capsys) -> None:
    assert main(["sample", "headlines", "--prompt", ARTICLE, "--runs-dir", str(run.path.parent)]) == 2
    assert "summarizes articles" in capsys.readouterr().err


def test_comparisons_show_the_first_sentence_beside_the_model(run) -> None:
    lines = [f"{line.head} {line.text}" for block in detail(read_entry(run.path), None).values() for line in block]
    assert any("first sentence as the summary: ROUGE-1" in line for line in lines)
    assert any("ROUGE-L" in line for line in lines) and any("copied" in line for line in lines)


@pytest.mark.parametrize(("language", "said"), [("en", "as headlines summarized them"), ("zh", "写的摘要")])
def test_a_report_has_the_summaries_their_rouge_and_the_first_sentences(run, language, said, tmp_path: Path) -> None:
    file, _ = make([read_entry(run.path)], {}, kind="markdown", language=language, out=tmp_path / "report")
    text = file.read_text(encoding="utf-8").replace("\\", "")
    assert said in text and "BLEU" not in text
    assert f"{run.data.lead.rouge_l:.1f}" in text and f"{run.data.lead.copied:.1%}" in text
