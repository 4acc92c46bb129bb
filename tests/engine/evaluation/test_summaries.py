"""Scores of summaries, checked against counts by hand and the library's own."""

import pytest
from rouge_score.rouge_scorer import RougeScorer

from engine.base.errors import InputError
from engine.evaluation.summaries import copied_word_share, first_sentence, score_summaries

ARTICLES = ["Snow kept farmers at home. Nothing else fell.", "Rovers beat Orient."]
RIGHT = ["Snow: farmers stay home", "Rovers win"]
WRITTEN = ["Snow: farmers stay home", "Orient loses to Rovers"]


def test_rouge_is_the_mean_f1_of_stemmed_words_without_case() -> None:
    found = score_summaries(ARTICLES, RIGHT, WRITTEN)
    # Of the second: 1 word of 4 is shared with a reference of 2, no pair is.
    assert found.rouge_1 == pytest.approx((100.0 + 100.0 * 2 * 0.25 * 0.5 / 0.75) / 2)
    assert found.rouge_2 == pytest.approx(50.0) and found.rouge_l == pytest.approx(found.rouge_1)
    assert (found.exact_match, found.n) == (0.5, 2)
    assert score_summaries(ARTICLES[:1], ["FARMER STAYS"], ["farmers stayed"]).rouge_2 == 100.0


def test_each_row_has_the_librarys_own_rouge_l() -> None:
    found = score_summaries(ARTICLES, RIGHT, WRITTEN)
    library = RougeScorer(["rougeL"], use_stemmer=True)
    each = [library.score(*pair)["rougeL"].fmeasure for pair in zip(RIGHT, WRITTEN, strict=True)]
    assert [row.score for row in found.rows] == pytest.approx([100 * one for one in each])
    assert found.best(1)[0].source == ARTICLES[0] and found.worst(1)[0].source == ARTICLES[1]


def test_the_copied_share_is_of_all_words_without_case() -> None:
    assert copied_word_share(ARTICLES, WRITTEN) == pytest.approx((3 + 2) / (4 + 4))
    assert copied_word_share(ARTICLES, ["", "..."]) == 0.0


@pytest.mark.parametrize(
    ("article", "lead"),
    [
        (" One two. Three.", "One two."),
        ("It fell by 2.5 percent! More", "It fell by 2.5 percent!"),
        ("no full stop at all", "no full stop at all"),
        ("下雪了。很冷。", "下雪了。"),
    ],
)
def test_the_lead_is_the_first_sentence(article: str, lead: str) -> None:
    assert first_sentence(article) == lead


def test_nothing_to_score_is_refused() -> None:
    with pytest.raises(InputError, match="no articles"):
        score_summaries([], [], [])
