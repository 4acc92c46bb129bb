"""The forest plot: what it shows by shape and in words, what it leaves out where it is narrow, and its conclusion."""

import re
from pathlib import Path

import pytest

from engine.base.language import translate
from tests.tui_transformer.lab.analysis.studies import attention, cell
from tests.tui_transformer.lab.analysis.variants import study, variant
from tui_transformer.catalogues import catalogue
from tui_transformer.lab.analysis.answer import StudyConclusion
from tui_transformer.lab.analysis.charts.forest import ForestLayout, forest, forest_text
from tui_transformer.lab.analysis.folder import RunsFolder
from tui_transformer.lab.analysis.sentences import _listed, conclusion_sentences
from tui_transformer.lab.analysis.view import View


def answers(root: Path, measure: str = "") -> tuple[StudyConclusion, ...]:
    look = RunsFolder(root).scan()
    assert not look.problem
    return View().conclusions(look.entries, look.studies, None, measure)


def said(answer: StudyConclusion) -> str:
    return " ".join(conclusion_sentences(answer))


def rows(answer: StudyConclusion, width: int = 110) -> dict[str, str]:
    """The plot's lines by the variant's name."""
    lines = forest_text(answer, width, colour=False).splitlines()
    return {line.split()[0]: line for line in lines if line and not line.startswith(" ")}


@pytest.fixture(scope="module")
def att(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("att")
    attention(root)
    return root


def test_variants_stand_from_the_best_to_the_worst_and_what_does_not_count_is_last(att) -> None:
    assert list(rows(answers(att)[0])) == ["global", "heads2", "win16", "hot", "leaky"]


def test_a_verdict_is_told_by_shape_and_word(att) -> None:
    shown = rows(answers(att)[0])
    assert "●" in shown["win16"] and shown["win16"].endswith("✗ worse")
    assert "○" in shown["heads2"] and "●" not in shown["heads2"] and "= no difference" in shown["heads2"]
    assert "LEAK: not comparable" in shown["leaky"] and "○" not in shown["leaky"] and "●" not in shown["leaky"]
    assert "DIVERGED 1/3" in shown["hot"]


def test_the_loss_of_the_baseline_is_no_difference(att) -> None:
    assert re.search(r" ◆ +◆ baseline \(\d\.\d{4}\)", rows(answers(att)[0])["global"])  # nothing in the column Δ
    assert re.search(r"◆ baseline \(\d+\.\d %\)", rows(answers(att, "recall<110")[0], 150)["global"])


def test_a_row_has_the_colour_of_its_curve_and_only_its_verdict_has_another(att) -> None:
    layout = ForestLayout(forest(answers(att)[0]), 110)
    at = next(i for i, row in enumerate(layout.forest.rows) if row.name == "win16")
    styles = {text.strip(): style for text, style in layout.row(at, "run3")}
    assert styles["✗ worse"] == "bad" and not any(style == "bad" for text, style in styles.items() if "●" in text)
    assert any("●" in text and style == "run3" for text, style in styles.items())


def test_the_caption_says_what_the_marks_are(att, tmp_path) -> None:
    assert "95 % interval" in ForestLayout(forest(answers(att)[0]), 110).caption()
    for name in ("base", "other"):
        cell(tmp_path, "s", name, 1, f"model.n_heads={len(name) - 3}")
    (tmp_path / "s.study.toml").write_text('baseline = "base"\n')
    assert ForestLayout(forest(answers(tmp_path)[0]), 110).caption() == "○ difference with one seed: no interval"


def test_a_mark_lies_on_its_side_of_the_line(att) -> None:
    lines = rows(answers(att)[0])
    zero = lines["global"].index("◆")
    assert lines["hot"].index("●") > lines["win16"].index("●") > zero


def test_the_better_side_is_that_of_the_measure(att) -> None:
    by_loss, by_recall = (forest_text(answers(att, key)[0], 150, colour=False) for key in ("", "recall<110"))
    assert "◂ better │ worse ▸" in by_loss and "◂ worse │ better ▸" in by_recall
    lines = rows(answers(att, "recall<110")[0], 150)
    assert lines["win16"].index("●") < lines["global"].index("◆")


@pytest.mark.parametrize("width", range(56, 200, 6))
def test_no_number_is_ever_cut_and_no_line_is_too_wide(att, width) -> None:
    answer = answers(att)[0]
    whole = {
        number
        for row in forest(answer).rows
        for number in re.findall(r"\d+\.\d+", f"{row.value} {row.verdict} {row.more}")
    }
    for line in list(rows(answer, width).values()):
        assert len(line) <= width and set(re.findall(r"\d+\.\d+", line)) <= whole


def test_an_interval_that_would_flatten_the_others_is_cut_off_with_an_arrow(tmp_path) -> None:
    for seed in (1, 2):  # the t interval of two seeds is very wide
        cell(tmp_path, "s", "base", seed)
        cell(tmp_path, "s", "win16", seed, "model.n_heads=2", loss=0.001)
        cell(tmp_path, "s", "wide", seed, "model.n_layers=1", loss=0.2 * seed)
    (tmp_path / "s.study.toml").write_text('baseline = "base"\n')
    answer = answers(tmp_path)[0]
    assert {"◂", "▸"} & set(rows(answer)["wide"])
    layout = ForestLayout(forest(answer), 110)
    assert layout._high - layout._low < 2.5


def test_the_answer_is_a_sentence_for_a_report(att) -> None:
    text = said(answers(att)[0])
    assert text.startswith(
        "At these settings, win16 and hot are worse than global; heads2 is no different from global."
    )
    assert "leaky (LEAK: not comparable) is excluded." in text
    assert "Excluding the 1 of 3 seeds that diverged flatters hot." in text
    assert said(answers(att, "recall<110")[0]).startswith("At these settings, by near recall, win16 is")


def test_the_answer_is_written_in_chinese_too(att) -> None:
    text = " ".join(translate(one, catalogue("zh")) for one in conclusion_sentences(answers(att)[0]))
    assert (
        text.startswith("在这些设置下，") and "劣于 global" in text and "leaky" in text and not re.search(r"[{}]", text)
    )


def test_p_values_are_not_part_of_the_answer(att) -> None:
    text = forest_text(answers(att)[0], 160, colour=False) + said(answers(att)[0])
    assert not re.search(r"\bp\b|sign-flip|correlation", text)


def test_undecided_variants_say_how_many_seeds_would_settle_it(tmp_path) -> None:
    for seed in (1, 2, 3):
        cell(tmp_path, "s", "base", seed)
        cell(tmp_path, "s", "noisy", seed, "model.n_heads=2", loss=(0.1, -0.02, 0.05)[seed - 1])
    (tmp_path / "s.study.toml").write_text('baseline = "base"\n')
    answer = answers(tmp_path)[0]
    enough = r"base with 3 seeds\. Settling that takes about \d+ seeds per variant in total, baseline included\."
    assert re.search(rf"noisy cannot be told apart from {enough}", said(answer))
    assert re.search(r"inconclusive \(≈ \d+ seeds\)", rows(answer)["noisy"])
    for seed in (1, 2, 3):
        cell(tmp_path, "s", "other", seed, "model.n_heads=1", loss=(0.2, -0.1, 0.02)[seed - 1])
    each = r"Seeds needed in all to settle that: about \d+ for \w+ and \d+ for \w+, and \d+ for the baseline\."
    assert re.search(each, said(answers(tmp_path)[0]))


def test_an_interval_that_excludes_0_is_not_enough_among_many_comparisons(tmp_path) -> None:
    for seed in (1, 2, 3):
        cell(tmp_path, "s", "base", seed)
        for i in range(5):
            loss = 0.02 + 0.004 * seed if i == 0 else (0.1, -0.1, 0.0)[seed - 1]
            cell(tmp_path, "s", f"v{i}", seed, f"optimizer.lr=0.00{i + 1}", loss=loss)
    (tmp_path / "s.study.toml").write_text('baseline = "base"\n')
    text = said(answers(tmp_path)[0])
    assert "cannot be told apart from base" in text
    assert "On its own, the interval of v0 excludes 0, but with " in text
    assert "that may be chance." in text


def test_runs_that_were_still_improving_rank_the_budget(tmp_path) -> None:
    falling = [("falling", "STILL-FALLING", "it falls")]
    for seed in (1, 2, 3):
        cell(tmp_path, "s", "base", seed, verdicts=falling)
        cell(tmp_path, "s", "far", seed, "model.n_heads=2", loss=0.3 + 0.001 * seed, verdicts=falling)
    (tmp_path / "s.study.toml").write_text('baseline = "base"\n')
    text = said(answers(tmp_path)[0])
    assert text.endswith("All runs were still improving: this ranks them after 2,000 steps, not at their best.")


def test_many_names_are_counted(tmp_path) -> None:
    for seed in (1, 2, 3):
        cell(tmp_path, "s", "base", seed)
        for i in range(6):
            cell(tmp_path, "s", f"v{i}", seed, f"optimizer.lr=0.00{i + 1}", loss=0.1 * (i + 1) + 0.001 * seed)
    (tmp_path / "s.study.toml").write_text('baseline = "base"\n')
    assert "v0, v1, v2 and 3 more are worse than base" in said(answers(tmp_path)[0])


def test_the_newest_study_comes_first_and_runs_of_none_last(tmp_path) -> None:
    study(tmp_path)
    for name, minute in (("old", 1), ("new", 2)):
        for variant_name in ("base", "far"):
            cell(tmp_path, name, variant_name, 1, created=f"2026-11-22T0{minute}:00:00+00:00")
        (tmp_path / f"{name}.study.toml").write_text('baseline = "base"\n')
    assert [answer.study for answer in answers(tmp_path)] == ["new", "old", ""]


def test_runs_of_no_study_are_compared_with_the_first_that_others_can_be_compared_with(tmp_path) -> None:
    study(tmp_path)
    answer = answers(tmp_path)[0]
    shown = rows(answer)
    assert answer.family.baseline.name == "baseline" and "short" not in shown  # another context
    assert "one seed" in shown["no-pe"] and "●" not in shown["no-pe"]
    assert "One seed proves nothing" in said(answer)


def test_where_there_is_no_answer_it_says_why_and_what_to_do(tmp_path) -> None:
    def why(name: str) -> str:
        look, view = RunsFolder(tmp_path / name).scan(), View()
        assert not view.conclusions(look.entries, look.studies, None, "")
        return view.why_no_conclusion(look.entries, look.studies, None)

    variant(tmp_path / "one", "a")
    assert "only one variant. Press 1" in why("one")
    for i, name in enumerate(("a", "b"), 1):
        variant(tmp_path / "apart", name, f"model.n_heads={i}", scored={"context": 64 * i})
        cell(tmp_path / "lost", "s", name, 1, f"model.n_heads={i}")
        variant(tmp_path / "live", name, f"model.n_heads={i}", state="running", step=400)
    assert "no two runs can be compared" in why("apart") and "Press 1" in why("apart")
    assert "study s has no baseline" in why("lost") and "Press p" in why("lost")
    assert why("live") == "No answer yet: no run has finished."


def test_one_run_answers_nothing(tmp_path) -> None:
    variant(tmp_path, "alone")
    assert answers(tmp_path) == ()


def test_a_long_list_of_names_is_cut_and_the_rest_counted() -> None:
    assert [_listed(["a"]), _listed([*"abcd"]), _listed([*"abcde"])] == ["a", "a, b, c and d", "a, b, c and 2 more"]
