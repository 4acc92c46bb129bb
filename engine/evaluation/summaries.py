"""Scores of summaries: ROUGE by Google's rouge-score, exact matches, and how much is copied. No torch here.

ROUGE-1 and ROUGE-2 count words and pairs of words that a summary shares with its reference, ROUGE-L their longest
common subsequence (Lin 2004). Words are runs of the letters a to z and digits, without case, stemmed by Porter's rules:
text in another script has none, and scores 0.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.base.errors import InputError
from engine.base.language import Message
from engine.config.measures import ROUGE
from engine.evaluation.translation import OutputScores, ScoredSentence, exact_match

KINDS: dict[str, str] = dict(zip(ROUGE, ("rouge1", "rouge2", "rougeL"), strict=True))  # their names in the library
SENTENCE = re.compile(r".*?(?:[.!?](?=\s|$)|[。！？])", re.DOTALL)  # the first one of a text


@dataclass(frozen=True)
class SummaryScores(OutputScores):
    metric = "ROUGE-L"
    rouge_1: float  # mean F1 of each summary and its reference, 0 to 100
    rouge_2: float  # the same
    rouge_l: float  # the same
    copied: float  # share of the words of all summaries that occur in their article; 0 to 1
    exact_match: float  # share of summaries equal to their reference, except for white space at the ends; 0 to 1
    n: int  # articles
    rows: tuple[ScoredSentence, ...]  # in their order


def score_summaries(articles: Sequence[str], references: Sequence[str], outputs: Sequence[str]) -> SummaryScores:
    if not articles:
        raise InputError(Message("no articles to score"))
    from rouge_score.rouge_scorer import RougeScorer  # imported here: takes 1 s, as it imports all of nltk

    scorer = RougeScorer(list(KINDS.values()), use_stemmer=True)
    found = [scorer.score(reference, output) for reference, output in zip(references, outputs, strict=True)]
    f1 = {name: [100.0 * float(one[kind].fmeasure) for one in found] for name, kind in KINDS.items()}
    rows = zip(articles, references, outputs, f1["rouge_l"], strict=True)
    return SummaryScores(
        **{name: sum(each) / len(each) for name, each in f1.items()},
        copied=copied_word_share(articles, outputs),
        exact_match=exact_match(references, outputs),
        n=len(found),
        rows=tuple(ScoredSentence(*row) for row in rows),
    )


def copied_word_share(articles: Sequence[str], summaries: Sequence[str]) -> float:
    """Return the share of all words of the summaries that occur in their article; 0 without words."""
    words = [(set(_words(article)), _words(summary)) for article, summary in zip(articles, summaries, strict=True)]
    there = sum(word in known for known, summary in words for word in summary)
    return there / max(1, sum(len(summary) for _, summary in words))


def first_sentence(article: str) -> str:
    """Return the first sentence of an article: up to a full stop, question mark or exclamation mark."""
    found = SENTENCE.match(article.strip())
    return article.strip() if found is None else found[0]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
