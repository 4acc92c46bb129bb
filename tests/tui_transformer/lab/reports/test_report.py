"""What a report has in it, in which order; and that it says the same in each language."""

import json
import re
import string

import pytest

from engine.base.language import translate
from engine.runs.reader import RunReader
from tests.tui_transformer.lab.analysis.seeds import attention as by_distance
from tests.tui_transformer.lab.analysis.studies import attention
from tests.tui_transformer.lab.analysis.variants import change, variant
from tests.tui_transformer.lab.reports.reports import document, first, headings, table, words
from tui_transformer.cli.names import resolve_names
from tui_transformer.lab.analysis.entry import LAST
from tui_transformer.lab.analysis.sentences import verdict_sentence
from tui_transformer.lab.analysis.verdict import BRIEF_WORDING, WORDING, judgement_text
from tui_transformer.lab.records.badges import BADGES
from tui_transformer.lab.reports.context import read_context
from tui_transformer.lab.reports.document import Figure, Formula, Listing, Table
from tui_transformer.lab.reports.figures.diagram import diagram
from tui_transformer.lab.reports.languages import load_report_language
from tui_transformer.lab.reports.sections import first_paragraph

ENGLISH = load_report_language("en")
SECTIONS = [
    *("What was run", "The model", "Data", "Hyperparameters", "Training", "Results", "Probes and other scores"),
    *("What the models write", "What this does not show", "Environment", "How to repeat it"),
]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study's runs."""
    root = tmp_path_factory.mktemp("study")
    attention(root)
    return root


def test_a_study_has_every_section_in_order(study) -> None:
    made = document(study, "att")
    assert headings(made) == SECTIONS
    assert [figure.name for figure in made.figures] == ["model", "curves", "ablation"]


def test_the_ablation_table_has_the_numbers_and_the_verdicts_of_compare(study) -> None:
    made, meant = document(study, "att"), resolve_names(["att"], study)
    standings = {s.name: s for s in read_context(meant.entries, meant.studies, ENGLISH, ENGLISH).results}
    rows = {row[0].text: [cell.text for cell in row] for row in table(made, "variants and their baseline").rows}
    for name, standing in standings.items():
        mean = standing.mean(LAST)
        assert LAST.format_mean(mean) in rows[name]
        assert standing.verdict() in rows[name]
    text = "\n".join(words(made))
    assert all(verdict_sentence(standing) in text for standing in standings.values())
    assert "LEAK" in rows["leaky"] and "2/3" in rows["hot"]


def test_a_table_has_the_losses_of_averaged_weights_if_any_were_scored(tmp_path) -> None:
    run = variant(tmp_path, "a")
    captions = [block.caption for block in document(tmp_path, "a").blocks if isinstance(block, Table)]
    assert not any("averaged weights" in caption for caption in captions)
    change(run / "summary.json", ema={"loss": 0.5}, average={"loss": 2.0})
    best = RunReader(run).summary.best.loss
    for code, heads in (("en", ("weights", "minus best loss")), ("zh", ("权重", "减去最佳损失"))):
        found = table(document(tmp_path, "a", language=code), "averaged weights" if code == "en" else "平均后权重")
        assert (found.heads[1], found.heads[4]) == heads
        rows = [[cell.text for cell in row] for row in found.rows]
        assert [row[2:] for row in rows] == [[f"{x:.4f}", f"{best:.4f}", f"{x - best:+.4f}"] for x in (0.5, 2.0)]
    assert rows[0][1] == "权重的滑动平均"


def test_expectations_and_their_reasons_stand_there(study) -> None:
    text = "\n".join(words(document(study, "att")))
    assert "expected recall worse: as expected" in text and "expected the loss better: not as expected" in text
    assert "Two layers with a window of 16 reach 30 characters." in text


def test_a_single_run_has_a_row_for_each_evaluation_and_marks_the_best(tmp_path) -> None:
    variant(tmp_path, "demo", data={"splits": {"train": {"tokens": 500_000}}})
    found = table(document(tmp_path, "demo"), "The evaluations")
    assert found.heads[:3] == ("step", "epoch", "loss") and len(found.rows) == 10
    assert sum(row[0].strong for row in found.rows) == 1 and found.rows[-1][0].text == "2,000"


def test_a_long_run_has_a_short_table_that_says_so(tmp_path) -> None:
    variant(tmp_path, "long", step=20_000, steps=20_000, every=500)
    found = table(document(tmp_path, "long"), "The evaluations")
    assert len(found.rows) <= 26 and "of 100 evaluations are shown" in found.note


def test_probes_are_drawn_by_distance_where_they_were_counted(tmp_path) -> None:
    by_distance(tmp_path)
    made = document(tmp_path, "attention")
    assert "distance" in [figure.name for figure in made.figures]
    caption = next(figure.caption for figure in made.figures if figure.name == "distance")
    assert "win16: 30 characters (2 × 15)" in caption


@pytest.mark.parametrize(
    ("settings", "formula"),
    [
        (["model.attention=window", "model.window=16"], r"0 \le i - j < 16"),
        (["model.attention=sparse", "model.link_every=8"], r"j \bmod 8 = 7"),
        (["model.attention=linear", "model.position=rope"], r"\operatorname{elu}(x) + 1"),
        (["model.position=alibi"], r"b_{ij} = -m_h"),
        (["model.position=t5"], r"s_{ij} =  q_i^\top k_j + b_{ij}"),
        (["model.position=xl"], r"v^\top W_R r_{i-j}"),
        (["model.position=relative"], r"\operatorname{clip}"),
        (["model.norm=rms"], r"\operatorname{RMS}"),
        (["model.norm_placement=post"], r"x \leftarrow \operatorname{LN}(x + f(x))"),
        (
            ["model.norm_placement=sandwich"],
            r"x \leftarrow x + \operatorname{LN}(f(\operatorname{LN}(x)))",
        ),
        (["model.parallel=true"], r"x + \operatorname{Attn}(\operatorname{LN}_1(x)) + \operatorname{FFN}"),
        (["model.layer_scale=0.1"], r"\gamma \odot \Delta"),
        (["model.embedding_mix=true"], r"\mu_\ell \, x_0"),
        (["model.layer_drop=0.2"], r"p_\ell = 0.2 \, \ell / L"),
        (["model.zero_init=outputs-and-head"], r"W_{\text{head}} = 0"),
        (["model.residual=false"], r"x \leftarrow f(\operatorname{LN}(x))"),
        (["model.activation=swiglu"], r"\operatorname{silu}"),
        (["model.architecture=encoder", "objective.kind=masked"], r"0 \le j < T"),
        (["model.architecture=encoder-decoder", "objective.kind=copy"], r"0 \le j < T_s"),
    ],
)
def test_the_formulas_are_those_of_the_model(tmp_path, settings, formula) -> None:
    variant(tmp_path, "one", *settings)
    shown = [block.latex for block in document(tmp_path, "one").blocks if isinstance(block, Formula)]
    assert any(formula in latex for latex in shown), shown


def test_formulas_of_layers_that_differ_say_which_layers(tmp_path) -> None:
    pattern = 'model.layers=["window","window","global none"]'
    variant(tmp_path, "one", "model.position=rope", "model.n_layers=4", "model.window=8", pattern)
    made = document(tmp_path, "one")
    shown = {block.what: block.latex for block in made.blocks if isinstance(block, Formula)}
    assert shown["Which keys a query sees: a window (layers 1-2, 4)"].endswith(r"0 \le i - j < 8 \right\}")
    assert shown["Which keys a query sees (layer 3)"].endswith(r"0 \le j \le i \right\}")
    assert "R_j k_j" in shown["Attention (layers 1-2, 4)"] and "R_j" not in shown["Attention (layer 3)"]
    config = RunReader(tmp_path / "one").config.model
    told = [text.get_text() for text in diagram(config, load_report_language("en")).axes[0].texts]
    assert any(text.endswith("causal\n2 × window 8, RoPE\n1 × global, no positions") for text in told)
    zh = [text.get_text() for text in diagram(config, load_report_language("zh")).axes[0].texts]
    assert any("1 × 全局，无位置编码" in text for text in zh)


def test_reach_adds_up_the_layers(tmp_path) -> None:
    pattern = 'model.layers=["window","window none","window"]'
    variant(tmp_path, "one", "model.position=rope", "model.n_layers=3", "model.window=8", pattern)
    shown = [block.latex for block in document(tmp_path, "one").blocks if isinstance(block, Formula)]
    assert r"\text{reach} = 2 \cdot 7 + 1 \cdot 7 = 21" in shown


def test_formulas_that_differ_say_whose_they_are(tmp_path) -> None:
    variant(tmp_path, "rope", "model.position=rope")
    variant(tmp_path, "alibi", "model.position=alibi")
    shown = [block.what for block in document(tmp_path, "rope", "alibi").blocks if isinstance(block, Formula)]
    assert "Positions: queries and keys are rotated (RoPE) (rope)" in shown
    assert "Layer norm" in shown


def test_no_folder_of_the_author_is_told(tmp_path) -> None:
    run = variant(
        tmp_path, "mine", "data.corpus=/home/ada/secret/play.txt", data={"corpus": "/home/ada/secret/play.txt"}
    )
    change(run / "run.json", command="tui-transformer run --corpus /home/ada/secret/play.txt --runs-dir /home/ada/runs")
    text = "\n".join(words(document(tmp_path, "mine")))
    assert "/home/ada" not in text and str(tmp_path) not in text and "play.txt" in text
    assert "tui-transformer run --corpus play.txt" in text


def test_how_to_repeat_a_study_is_its_file(study) -> None:
    listings = [block for block in document(study, "att").blocks if isinstance(block, Listing)]
    assert any("tui-transformer ablate --study att.study.toml" in found.text for found in listings)
    assert listings[-1].text.strip().startswith('name = "att"')


def test_translations_stand_beside_their_references_with_the_signature(tmp_path) -> None:
    scored = {"bleu": 31.4, "chrf": 55.0, "exact_match": 0.25, "translated": 40, "sentences": 363, "beam": 5}
    settings = ("model.architecture=encoder-decoder", "objective.kind=translation", "data.corpus=phrasebook")
    run = variant(tmp_path, "mt", *settings, scored={**scored, "bleu_signature": "nrefs:1|case:mixed"})
    rows = [{"source": "Good morning.", "reference": "Guten Morgen.", "text": "Guten Morgen."}]
    sample = {"step": 2000, "prompt": "", "text": "", "translations": rows}
    (run / "samples.jsonl").write_text(json.dumps(sample) + "\n")
    made = document(tmp_path, "mt")
    text = "\n".join(words(made))
    assert "BLEU 31.40, chrF 55.0, 25.0% exactly right, over 40 of 363 validation sentences, with a beam of 5." in text
    assert "nrefs:1|case:mixed" in text
    assert [cell.text for cell in table(made, "Held-out").rows[0]] == [
        "Good morning.",
        "Guten Morgen.",
        "Guten Morgen.",
    ]


def test_limits_say_what_does_not_follow(study) -> None:
    text = "\n".join(words(document(study, "att")))
    for said in (
        "At most 3 seeds each",
        "With 3 seeds, this study has 80 % power to detect a difference of ",
        "Not all runs of hot count",
        "Only one corpus, playlets@1",
        "no test split was scored",
    ):
        assert said in text


def test_a_warm_up_longer_than_the_run_is_told(tmp_path) -> None:
    variant(tmp_path, "odd", "optimizer.warmup=5000")
    assert any(
        "warm-up takes 5,000 steps, but the run ends after 2,000" in text for text in words(document(tmp_path, "odd"))
    )


# Languages


def gaps(phrase: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(phrase) if name is not None}


def test_both_languages_word_verdicts_and_badges_from_the_same_values() -> None:
    values, chinese = {"amount", "interval", "seeds", "fewest", "most"}, load_report_language("zh")
    for wording in (WORDING, BRIEF_WORDING, first_paragraph.WORDING):
        for key, text in wording.items():
            assert gaps(translate(text, chinese)) == gaps(text) <= values, key
            assert translate(text, chinese) != text
    for name, badge in BADGES.items():
        for text in (badge.means, badge.advice, badge.alarm):
            assert translate(text, chinese) != text, name


def test_a_chinese_report_says_the_same_and_keeps_names_as_they_are(study) -> None:
    made = document(study, "att", language="zh")
    said = first(made)
    assert "leaky 不可比较：存在泄漏" in said and "劣于基线 global" in said and "win16（差值 0.0508 ± " in said
    assert "hot 的 3 个种子中有 1 个发散" in said
    assert headings(made)[0] == "实验内容" and len(headings(made)) == len(SECTIONS)
    numbers = re.compile(r"\d+\.\d{3,}")
    english = document(study, "att")
    assert sorted(numbers.findall(" ".join(words(made)))) == sorted(numbers.findall(" ".join(words(english))))


def test_a_chinese_report_has_no_english_sentence_of_this_program(study) -> None:
    quoted = ("原文", "tui-transformer", "=", "name", "{", "sees a later token")
    for text in words(document(study, "att", language="zh")):
        if not any(mark in text for mark in quoted) and "\n" not in text:
            assert not re.search(r"[a-z]{3,} [a-z]{2,} [a-z]{3,}", text), text


def test_a_language_phrases_judgements_from_their_amounts(study) -> None:
    meant = resolve_names(["att"], study)
    found = {s.name: s for s in read_context(meant.entries, meant.studies, ENGLISH, ENGLISH).results}["win16"]
    assert judgement_text(found.judgement(LAST)).startswith("worse by 0.0508 ± ")
    chinese = load_report_language("zh")
    assert translate(judgement_text(found.judgement(LAST)), chinese).startswith("劣于基线，差值 0.0508 ± ")
    assert "个种子" in translate(verdict_sentence(found), chinese)


def test_figures_say_what_they_show(study) -> None:
    for block in document(study, "att").blocks:
        if isinstance(block, Figure):
            assert len(block.caption) > 20 and block.name.isascii()
